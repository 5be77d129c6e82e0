//! How many interrupts and softirqs the kernel counts on a CPU, where its events can't be recorded.

use std::collections::BTreeMap;
use std::fs;

use crate::output::Output;
use crate::platform::{Platform, WriteError};
use tare_wire::record::{Counter, Record};

/// The files, and what stands before the names in them.
const FILES: [(&str, &str); 2] = [
    ("/proc/interrupts", "interrupt"),
    ("/proc/softirqs", "softirq"),
];

/// The most names that are written, those with the highest counts.
const MOST: usize = 24;

/// What arrived on a CPU between two moments.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    cpu: u32,
    /// Until the end, those before.
    counts: BTreeMap<String, u64>,
}

impl Arrivals {
    /// Begins to count on a CPU.
    pub fn begin(cpu: u32) -> Self {
        let counts = read(cpu);
        Self { cpu, counts }
    }

    /// Stops counting.
    pub fn end(&mut self) {
        for (name, count) in read(self.cpu) {
            let before = self.counts.get(&name).copied().unwrap_or(0);
            // The kernel counts in 32 bits.
            let since = (count as u32).wrapping_sub(before as u32);
            self.counts.insert(name, since.into());
        }
    }

    /// Writes the counts.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] if a record can't be written.
    pub fn write(&self, output: &mut Output<'_, impl Platform>) -> Result<(), WriteError> {
        let mut counts = Vec::from_iter(self.counts.iter().filter(|(_, count)| **count > 0));
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (name, count) in counts.into_iter().take(MOST) {
            let count = *count;
            output.put(&Record::Counter(Counter { name, count }))?;
        }
        Ok(())
    }
}

/// Reads how often each interrupt and softirq has come on a CPU.
fn read(cpu: u32) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (file, kind) in FILES {
        let text = fs::read_to_string(file).unwrap_or_default();
        counts.extend(parsed(&text, cpu).map(|(name, count)| (format!("{kind} {name}"), count)));
    }
    counts
}

/// Parses a table whose head names the CPUs. Devices' interrupts are called by the device, the last
/// word of the line.
fn parsed(text: &str, cpu: u32) -> impl Iterator<Item = (String, u64)> {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default().split_ascii_whitespace();
    let wanted = format!("CPU{cpu}");
    let column = head.clone().position(|name| name == wanted);
    let columns = head.count();
    lines.filter_map(move |line| {
        let (name, row) = line.split_once(':')?;
        let words = Vec::from_iter(row.split_ascii_whitespace());
        let count = words.get(column?)?.parse().ok()?;
        let name = name.trim();
        let is_device = name.bytes().all(|byte| byte.is_ascii_digit());
        let device = words.get(columns..)?.last().filter(|_| is_device);
        Some((device.map_or(name, |device| device).to_owned(), count))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_a_cpu_are_read_by_name() {
        let text = "           CPU0       CPU2       \n \
            31:       1587       5692 PCI-MSIX-0000:00:01.0   3-edge      virtio0-stats\n\
            LOC:   20328129   13576894   Local timer interrupts\nERR:          0\n";
        let of = |cpu| Vec::from_iter(parsed(text, cpu));
        let named = |name: &str, count| (name.to_owned(), count);
        assert_eq!(
            of(2),
            [named("virtio0-stats", 5_692), named("LOC", 13_576_894)]
        );
        assert!(of(1).is_empty());
    }
}
