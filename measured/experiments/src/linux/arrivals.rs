//! The kernel's counts of a CPU: interrupts, softirqs and the time in them, where its events can't
//! be recorded. And two of which it has no events: the time that a hypervisor says it took (steal),
//! and interrupts of the firmware, where the processor counts them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::FromRawFd;

use perf_event_open_sys::bindings::{PERF_FLAG_FD_CLOEXEC, perf_event_attr};
use perf_event_open_sys::perf_event_open;

use crate::output::Output;
use crate::platform::{Platform, WriteError};
use tare_wire::record::{Counter, Record, STEAL};

/// The files, and what stands before the names in them.
const FILES: [(&str, &str); 2] = [
    ("/proc/interrupts", "interrupt"),
    ("/proc/softirqs", "softirq"),
];

/// Times of a CPU in /proc/stat, in ticks: their columns and names (proc_stat(5)).
const TIMES: [(usize, &str); 3] = [
    (5, "ticks in interrupts"),
    (6, "ticks in softirqs"),
    (7, STEAL),
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
    /// The label of the counts; empty where only one CPU is measured.
    labels: String,
    /// Whether those that the kernel counts are read.
    of_kernel: bool,
    /// Until the end, those before.
    counts: BTreeMap<String, u64>,
    /// The processor's count of system management interrupts, and its difference.
    smi: Option<(File, u64)>,
}

impl Arrivals {
    /// Begins to count on a CPU: what the hypervisor took, system management interrupts where the
    /// processor counts them, and, if it is asked for, what the kernel has events of.
    pub fn begin(cpu: u32, labels: &str, of_kernel: bool) -> Self {
        let smi = open(SMI.0, cpu).and_then(|file| Some((count(&file)?, file)));
        Self {
            cpu,
            labels: labels.to_owned(),
            of_kernel,
            counts: read(cpu, of_kernel),
            smi: smi.map(|(before, file)| (file, before)),
        }
    }

    /// Stops counting.
    pub fn end(&mut self) {
        self.smi = self.smi.take().and_then(|(file, before)| {
            let since = count(&file)?.wrapping_sub(before);
            Some((file, since))
        });
        for (name, count) in read(self.cpu, self.of_kernel) {
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
        let counts = counts.into_iter().take(MOST);
        let counts = counts.map(|(name, count)| (name.as_str(), *count));
        let smi = self.smi.iter().map(|(_, count)| (SMI.1, *count));
        counts.chain(smi).try_for_each(|(name, count)| {
            let labels = &self.labels;
            output.put(&Record::Counter(Counter {
                name,
                count,
                labels,
            }))
        })
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

/// Reads what the kernel has counted on a CPU: of that of which it has events, only if asked for.
fn read(cpu: u32, of_kernel: bool) -> BTreeMap<String, u64> {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let times = times(&stat, cpu).filter(|(name, _)| of_kernel || name == STEAL);
    let mut counts = BTreeMap::from_iter(times);
    for (file, kind) in FILES.into_iter().filter(|_| of_kernel) {
        let text = fs::read_to_string(file).unwrap_or_default();
        counts.extend(parsed(&text, cpu).map(|(name, count)| (format!("{kind} {name}"), count)));
    }
    counts
}

/// Parses the times of a CPU in /proc/stat.
fn times(text: &str, cpu: u32) -> impl Iterator<Item = (String, u64)> {
    let name = format!("cpu{cpu} ");
    let row = text.lines().find_map(|line| line.strip_prefix(&name));
    let row = Vec::from_iter(row.unwrap_or_default().split_ascii_whitespace());
    TIMES
        .into_iter()
        .filter_map(move |(column, name)| Some((name.to_owned(), row.get(column)?.parse().ok()?)))
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

        let stat =
            "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 1 2 3 4 5 6 7 8 9 0\ncpu11 0 0 0 0 0 60 70 80 0 0\n";
        let of = |cpu| Vec::from_iter(times(stat, cpu));
        assert_eq!(
            of(1),
            [
                named("ticks in interrupts", 6),
                named("ticks in softirqs", 7),
                named("ticks stolen by the hypervisor", 8),
            ]
        );
        assert!(of(2).is_empty());
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
