//! What a page belongs to that a thread touched and that was not there.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;

/// The most characters of a file's name.
const MOST_CHARACTERS: usize = 60;

/// The memory of this process: ranges of addresses, each with what it is.
pub struct Memory(Vec<(Range<u64>, String)>);

impl Memory {
    /// Reads the memory map of this process.
    pub fn of_self() -> Self {
        Self::parse(&fs::read_to_string("/proc/self/maps").unwrap_or_default())
    }

    /// Parses a memory map (proc_pid_maps(5)).
    fn parse(text: &str) -> Self {
        let range = |line: &str| {
            let (from, to) = line.split_once(' ')?.0.split_once('-')?;
            let [from, to] = [from, to].map(|text| u64::from_str_radix(text, 16));
            Some(from.ok()?..to.ok()?)
        };
        // Addresses, rights, offset, device and inode come before the name.
        let name = |line: &str| {
            let fields = line.splitn(6, ' ').nth(5).unwrap_or_default();
            class(fields.trim_start())
        };
        let lines = text.lines();
        Self(
            lines
                .filter_map(|line| Some((range(line)?, name(line))))
                .collect(),
        )
    }

    /// Replaces addresses by numbers of names, the same for the same name, and returns these names.
    pub fn name<'a>(&self, addresses: impl Iterator<Item = &'a mut u64>) -> HashMap<String, u64> {
        let mut names = HashMap::new();
        for address in addresses {
            let own = self.0.iter().find(|(range, _)| range.contains(address));
            let name = own.map_or("memory that was unmapped since", |(_, name)| name);
            let next = names.len() as u64;
            *address = *names.entry(name.to_owned()).or_insert(next);
        }
        names
    }
}

/// Says what memory is, by its name in the map.
fn class(name: &str) -> String {
    let is_file = name.starts_with('/');
    match name.trim_matches(['[', ']']) {
        "" => "anonymous memory".to_owned(),
        _ if is_file => {
            let file = name.rsplit('/').next().unwrap_or(name);
            format!(
                "file {}",
                file.chars().take(MOST_CHARACTERS).collect::<String>()
            )
        }
        special => special.chars().take(MOST_CHARACTERS).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_a_file_of_anonymous_memory_or_of_the_stack() {
        let memory = Memory::parse(
            "5500-5600 r-xp 00000000 fd:00 1234                       /usr/bin/a name (deleted)\n\
             5600-5700 rw-p 00000000 00:00 0                          [heap]\n\
             7000-7100 rw-p 00000000 00:00 0 \n\
             7100-7200 rw-p 00000000 00:00 0\n\
             7f00-8000 rw-p 00000000 00:00 0                          [stack]\n",
        );
        let mut addresses = [0x55ff, 0x5600, 0x7000, 0x7100, 0x7fff, 0x8000];
        let names = memory.name(addresses.iter_mut());
        let name = |number| {
            names
                .iter()
                .find(|(_, own)| **own == number)
                .unwrap()
                .0
                .as_str()
        };
        assert_eq!(
            addresses.map(name),
            [
                "file a name (deleted)",
                "heap",
                "anonymous memory",
                "anonymous memory",
                "stack",
                "memory that was unmapped since",
            ]
        );
        assert_eq!(addresses, [0, 1, 2, 2, 3, 4]);
    }
}
