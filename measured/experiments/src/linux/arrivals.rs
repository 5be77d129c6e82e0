//! How many interrupts and softirqs the kernel counts on a CPU, where its events can't be recorded; and
//! how many interrupts of the firmware the processor counts, of which the kernel has no events.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::FromRawFd;

use perf_event_open_sys::bindings::{PERF_FLAG_FD_CLOEXEC, perf_event_attr};
use perf_event_open_sys::perf_event_open;

use crate::output::Output;
use crate::platform::{Platform, WriteError};
use tare_wire::record::{Counter, Record};

/// The files, and what stands before the names in them.
const FILES: [(&str, &str); 2] = [
    ("/proc/interrupts", "interrupt"),
    ("/proc/softirqs", "softirq"),
];

/// The counts of the processor that the kernel passes on, and that of system management interrupts.
const MSR: &str = "/sys/bus/event_source/devices/msr";
const SMI: (&str, &str) = ("smi", "system management interrupts");

/// The most names that are written, those with the highest counts.
const MOST: usize = 24;

/// What arrived on a CPU between two moments.
#[derive(Debug)]
pub struct Arrivals {
    cpu: u32,
    /// Whether those that the kernel counts are read.
    of_kernel: bool,
    /// Until the end, those before.
    counts: BTreeMap<String, u64>,
    /// The processor's count of system management interrupts, and its difference.
    smi: Option<(File, u64)>,
}

impl Arrivals {
    /// Begins to count on a CPU: system management interrupts where the processor counts them, and, if
    /// it is asked for, those that the kernel counts.
    pub fn begin(cpu: u32, of_kernel: bool) -> Self {
        let smi = open(SMI.0, cpu).and_then(|file| Some((count(&file)?, file)));
        Self {
            cpu,
            of_kernel,
            counts: match of_kernel {
                true => read(cpu),
                false => BTreeMap::new(),
            },
            smi: smi.map(|(before, file)| (file, before)),
        }
    }

    /// Stops counting.
    pub fn end(&mut self) {
        self.smi = self.smi.take().and_then(|(file, before)| {
            let since = count(&file)?.wrapping_sub(before);
            Some((file, since))
        });
        if !self.of_kernel {
            return;
        }
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
        if let Some((_, count)) = self.smi {
            let name = SMI.1;
            output.put(&Record::Counter(Counter { name, count }))?;
        }
        Ok(())
    }
}

/// Opens a count of the processor on a CPU. None where the processor or the kernel has none of this
/// name, or it may not be read.
fn open(name: &str, cpu: u32) -> Option<File> {
    let kind = fs::read_to_string(format!("{MSR}/type")).ok()?;
    let event = fs::read_to_string(format!("{MSR}/events/{name}")).ok()?;
    let number = event.trim().strip_prefix("event=0x")?;
    let mut asked = perf_event_attr {
        type_: kind.trim().parse().ok()?,
        size: size_of::<perf_event_attr>() as u32,
        config: u64::from_str_radix(number, 16).ok()?,
        ..perf_event_attr::default()
    };
    let flags = PERF_FLAG_FD_CLOEXEC.into();
    // SAFETY: a live value that contains its size; the call only creates a file.
    let file = unsafe { perf_event_open(&raw mut asked, -1, cpu as i32, -1, flags) };
    // SAFETY: a new descriptor.
    (file >= 0).then(|| unsafe { File::from_raw_fd(file) })
}

fn count(mut file: &File) -> Option<u64> {
    let mut bytes = [0; 8];
    file.read_exact(&mut bytes).ok()?;
    Some(u64::from_ne_bytes(bytes))
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

    /// Each x86 processor that the kernel runs on has a count of cycles, which is read in the same way as
    /// that of system management interrupts.
    #[test]
    fn counts_of_the_processor_are_read() {
        if fs::exists(format!("{MSR}/events/tsc")).unwrap_or_default() {
            let file = open("tsc", 0).expect("the count may not be read: is this root?");
            let before = count(&file).unwrap();
            assert!(count(&file).unwrap() > before);
        }
        assert!(open("none", 0).is_none());
    }
}
