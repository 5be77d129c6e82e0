//! Names of the kernel's functions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::sync::{Mutex, PoisonError};

/// Finds the functions that contain addresses. Functions whose names the kernel hides from this
/// user are skipped. The kernel's list, which is long, is read for new addresses only.
pub fn resolve(addresses: impl Iterator<Item = u64>) -> BTreeMap<u64, String> {
    static KNOWN: Mutex<BTreeMap<u64, Option<String>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let addresses = BTreeSet::from_iter(addresses);
    let is_new = |address: &&u64| !known.contains_key(address);
    let new: Vec<u64> = addresses.iter().filter(is_new).copied().collect();
    if let (false, Ok(file)) = (new.is_empty(), File::open("/proc/kallsyms")) {
        let lines = BufReader::with_capacity(1 << 16, file);
        let mut found = resolve_in(lines, new.iter().copied()).unwrap_or_default();
        let named = new.into_iter();
        known.extend(named.map(|address| (address, found.remove(&address))));
    }
    let name = |address| Some((address, known.get(&address)?.clone()?));
    addresses.into_iter().filter_map(name).collect()
}

/// Parses lines such as `ffffffff81000000 T _text`, in any order.
fn resolve_in(
    mut lines: impl BufRead,
    addresses: impl Iterator<Item = u64>,
) -> io::Result<BTreeMap<u64, String>> {
    let mut nearest: BTreeMap<u64, (u64, String)> = addresses
        .map(|address| (address, (0, String::new())))
        .collect();
    let mut line = String::new();
    while !nearest.is_empty() && lines.read_line(&mut line)? > 0 {
        if let Some((start, name)) = function(&line) {
            // An address belongs to the last function that begins before it.
            for (_, best) in nearest.range_mut(start..) {
                if best.0 >= start {
                    break;
                }
                *best = (start, name.to_owned());
            }
        }
        line.clear();
    }
    let found = nearest.into_iter().filter(|(_, (start, _))| *start != 0);
    Ok(found.map(|(address, (_, name))| (address, name)).collect())
}

fn function(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let start = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
    // Hidden addresses are 0.
    (is_code && start != 0).then_some((start, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_function_that_begins_last_before_it() {
        let text = "0000000000000100 T start\n0000000000000300 t third\n\
            0000000000000200 t second\n0000000000000210 d data\n0000000000000000 t hidden\n";
        let found = resolve_in(
            text.as_bytes(),
            [0x1ff, 0x200, 0x2ff, 0x300, 0x99].into_iter(),
        );
        let found = found.unwrap();
        let name = |address| found.get(&address).map(String::as_str);
        assert_eq!(name(0x1ff), Some("start"));
        assert_eq!(name(0x200), Some("second"));
        assert_eq!(name(0x2ff), Some("second"));
        assert_eq!(name(0x300), Some("third"));
        assert_eq!(name(0x99), None);
    }
}
