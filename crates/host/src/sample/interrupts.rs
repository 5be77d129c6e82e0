//! `/proc/interrupts`: which interrupts arrived on which CPU.
//!
//! Numbered lines are devices, whose interrupts can be sent elsewhere. Lines with a
//! name (LOC, RES, CAL, …) are the processor's own and belong to each CPU.

use std::collections::BTreeMap;

/// One interrupt line, with how often it arrived per CPU during the sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// The number of a device's interrupt, or the name of a local one (`LOC`).
    pub name: String,
    /// The rest of the line: chip and device, or the meaning of the name.
    pub description: String,
    /// How often it arrived, by CPU.
    pub counts: BTreeMap<u32, u64>,
}

impl Interrupt {
    /// Returns the number of a device's interrupt; local ones have none.
    pub fn number(&self) -> Option<u32> {
        self.name.parse().ok()
    }

    /// Returns how often it arrived on one CPU.
    pub fn on(&self, cpu: u32) -> u64 {
        self.counts.get(&cpu).copied().unwrap_or(0)
    }

    /// Returns the end of the description, which names the device; of a shared interrupt all
    /// devices, between which commas stand.
    pub fn device(&self) -> &str {
        let mut words = self.description.rmatch_indices(' ').map(|(at, _)| at);
        let is_end = |at: &usize| !self.description[..*at].ends_with(',');
        let from = words.find(is_end).map_or(0, |at| at + 1);
        match &self.description[from..] {
            "" => "?",
            device => device,
        }
    }
}

/// Subtract an earlier reading from a later one.
pub(super) fn difference(before: &str, after: &str) -> Vec<Interrupt> {
    let earlier: BTreeMap<String, Interrupt> = parse(before)
        .into_iter()
        .map(|line| (line.name.clone(), line))
        .collect();
    let mut lines = parse(after);
    for line in &mut lines {
        let before = earlier.get(&line.name);
        for (cpu, count) in &mut line.counts {
            let before = before.map_or(0, |before| before.on(*cpu));
            // The kernel counts in 32 bits; a device that was added anew starts from 0.
            let has_wrapped = *count < before && before > 1 << 31;
            let wrapped = if has_wrapped { 1 << 32 } else { 0 };
            *count = (*count + wrapped).saturating_sub(before);
        }
    }
    lines
}

/// Parses the table. Its head names the CPUs, which need not be consecutive; lines
/// such as `ERR:` have fewer columns.
fn parse(text: &str) -> Vec<Interrupt> {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let cpus: Vec<u32> = head
        .split_ascii_whitespace()
        .map_while(|word| word.strip_prefix("CPU")?.parse().ok())
        .collect();
    lines.filter_map(|line| parse_line(line, &cpus)).collect()
}

fn parse_line(line: &str, cpus: &[u32]) -> Option<Interrupt> {
    let (name, rest) = line.split_once(':')?;
    let mut rest = rest.trim_start();
    let mut counts = BTreeMap::new();
    for cpu in cpus {
        let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let Ok(count) = word.parse() else { break };
        counts.insert(*cpu, count);
        rest = after.trim_start();
    }
    let description = rest.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    Some(Interrupt {
        name: name.trim().to_owned(),
        description,
        counts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "           CPU0       CPU3
 36:          0      32066 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
LOC:      11090      13087   Local timer interrupts
ERR:          0
";

    #[test]
    fn counts_belong_to_the_cpus_of_the_head() {
        let after = BEFORE.replace("32066", "32070").replace("11090", "11100");
        let lines = difference(BEFORE, &after);
        assert_eq!(lines[0].number(), Some(36));
        assert_eq!((lines[0].on(0), lines[0].on(3)), (0, 4));
        assert_eq!(lines[0].device(), "virtio1-req.0");
        assert_eq!((lines[1].number(), lines[1].on(0)), (None, 10));
        assert_eq!(lines[2].on(3), 0);
    }

    #[test]
    fn a_wrapped_count_goes_on_and_a_shared_line_names_all_devices() {
        let line =
            |count: u64| format!(" CPU0\n16: {count} IO-APIC 16-fasteoi ehci_hcd:usb1, snd\n");
        let lines = difference(&line(4_294_967_290), &line(4));
        assert_eq!(lines[0].on(0), 10);
        assert_eq!(lines[0].device(), "ehci_hcd:usb1, snd");
        assert_eq!(difference(&line(7), &line(4))[0].on(0), 0);
    }

    #[test]
    fn a_line_that_appeared_in_between_counts_from_zero() {
        let lines = difference("  CPU0 CPU3\n", BEFORE);
        assert_eq!(lines[0].on(3), 32066);
    }
}
