//! Facts about the system, seen from inside, that influence a measurement: the laboratory compares
//! them with its request.
//!
//! Unknown facts are omitted, so that they are not mistaken for values. An empty list of CPUs is
//! `none`.

use std::fs;

use tare_measured::linux::{Fact, pinned};

use crate::init;

/// Collects the facts.
pub fn facts() -> Vec<Fact> {
    let command_line = line("/proc/cmdline");
    let preemption = preemption(&Witnesses {
        realtime: line("/sys/kernel/realtime"),
        debugfs: line("/sys/kernel/debug/sched/preempt"),
        version: line("/proc/sys/kernel/version"),
        command_line: command_line.clone(),
    });
    let all = [
        ("kernel release", line("/proc/sys/kernel/osrelease")),
        ("preemption model", preemption.map(str::to_owned)),
        ("isolated CPUs", cpus("/sys/devices/system/cpu/isolated")),
        ("nohz_full CPUs", cpus("/sys/devices/system/cpu/nohz_full")),
        ("kernel command line", command_line),
        ("CPUs online", cpus("/sys/devices/system/cpu/online")),
        ("clock source", clock_source()),
        ("migrations of a thread", Some(migrations())),
        ("memory in huge pages", huge_pages()),
        ("idle after boot", waited()),
    ];
    all.into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// Returns how much memory of this process its kernel has in transparent huge pages.
fn huge_pages() -> Option<String> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let mut lines = text.lines();
    let kib = lines.find_map(|line| line.strip_prefix("AnonHugePages:"))?;
    let kib: u64 = kib.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(format!("{} MiB", kib / 1_024))
}

/// The sources for the preemption model, the most reliable first.
#[derive(Default)]
struct Witnesses {
    /// `1` on a PREEMPT_RT kernel; other kernels lack the file.
    realtime: Option<String>,
    /// The models that the kernel supports, the current one in parentheses: `none (full)`.
    debugfs: Option<String>,
    /// The kernel's version string, as `uname -v` prints it.
    version: Option<String>,
    command_line: Option<String>,
}

fn preemption(seen: &Witnesses) -> Option<&'static str> {
    const MODELS: [&str; 4] = ["none", "voluntary", "full", "lazy"];
    let model = |word: &str| MODELS.into_iter().find(|model| *model == word);
    let version: Vec<&str> = seen.version.iter().flat_map(|v| v.split(' ')).collect();
    if seen.realtime.as_deref() == Some("1") || version.contains(&"PREEMPT_RT") {
        return Some("rt");
    }
    let in_force = seen.debugfs.as_deref().and_then(|text| {
        let (_, rest) = text.split_once('(')?;
        model(rest.split_once(')')?.0)
    });
    if in_force.is_some() {
        return in_force;
    }
    if version.contains(&"PREEMPT_DYNAMIC") {
        // Without debugfs only an explicit request is known, not the default of the build.
        let words = seen.command_line.as_deref()?.split_whitespace();
        return words
            .filter_map(|word| word.strip_prefix("preempt="))
            .next_back()
            .and_then(model);
    }
    if version.contains(&"PREEMPT_LAZY") {
        return Some("lazy");
    }
    // The two models without PREEMPT are not in the version.
    version.contains(&"PREEMPT").then_some("full")
}

fn cpus(path: &str) -> Option<String> {
    let list = line(path)?;
    // Before 6.5 or so, a list that was never allocated is printed as a null pointer.
    Some(match list.as_str() {
        "" | "(null)" => "none".to_owned(),
        _ => list,
    })
}

/// Returns how long it took until the guest was idle that this program measures in.
fn waited() -> Option<String> {
    let ms: u64 = std::env::var(init::WAITED_MS).ok()?.parse().ok()?;
    Some(format!("after {ms} ms of waiting"))
}

fn migrations() -> String {
    match pinned::is_counted() {
        true => "counted".to_owned(),
        false => "not counted by this kernel: a move there and back would go unseen".to_owned(),
    }
}

/// Returns the kernel's clock source.
pub fn clock_source() -> Option<String> {
    line("/sys/devices/system/clocksource/clocksource0/current_clocksource")
}

fn line(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_told_by_the_weightiest_witness() {
        let dynamic = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2";
        for (realtime, debugfs, version, command_line, expected) in [
            (
                "1",
                "",
                "#1 SMP PREEMPT_RT Debian",
                "preempt=none",
                Some("rt"),
            ),
            ("", "", "#1 SMP PREEMPT_RT Debian", "", Some("rt")),
            (
                "",
                "none (voluntary) full",
                dynamic,
                "preempt=full",
                Some("voluntary"),
            ),
            ("", "none voluntary full (lazy)", dynamic, "", Some("lazy")),
            (
                "",
                "",
                dynamic,
                "quiet preempt=none preempt=full",
                Some("full"),
            ),
            ("", "", dynamic, "quiet", None),
            ("", "", dynamic, "preempt=sometimes", None),
            ("", "", "#1 SMP PREEMPT Tue", "", Some("full")),
            ("", "", "#1 SMP PREEMPT_LAZY Tue", "", Some("lazy")),
            ("", "", "#1 SMP Tue", "", None),
        ] {
            let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            let witnesses = Witnesses {
                realtime: some(realtime),
                debugfs: some(debugfs),
                version: some(version),
                command_line: Some(command_line.to_owned()),
            };
            assert_eq!(preemption(&witnesses), expected, "{version} {debugfs}");
        }
        assert_eq!(preemption(&Witnesses::default()), None);
    }

    #[test]
    fn this_machine_tells_what_every_linux_tells() {
        let found = facts();
        for name in ["kernel release", "kernel command line", "CPUs online"] {
            let fact = found.iter().find(|fact| fact.0 == name);
            assert!(fact.is_some_and(|fact| !fact.1.is_empty()), "{found:?}");
        }
    }
}
