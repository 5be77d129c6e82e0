//! Which CPUs of the guest measure, and on which of the host their threads are pinned.
//!
//! A plan's CPUs are those of the host. In the guest they become the last ones of those that are kept free
//! (`isolate=`, `nohz_full=`), or the last ones of all, in the same order. If there are fewer of them, threads
//! take turns on them.

use tare_results::work::Work;

use super::settings::Settings;
use crate::qemu::Pin;

/// Return the plan as the guest gets it: the host's CPUs say nothing there.
pub(super) fn for_guest(work: &Work, settings: &Settings) -> Work {
    work.on(Some(measured(work, settings).into_iter().collect()))
}

/// Return where the threads of the guest's measured CPUs are to run: nowhere in particular for a plan without
/// CPUs.
pub(super) fn pins(work: &Work, settings: &Settings) -> Vec<Pin> {
    let host = work.cpus.unwrap_or_default();
    let pairs = measured(work, settings).into_iter().zip(host.iter());
    pairs
        .map(|(guest_cpu, cpu)| Pin { guest_cpu, cpu })
        .collect()
}

/// Return the guest's CPUs that measure, ascending.
fn measured(work: &Work, settings: &Settings) -> Vec<u32> {
    let asked_for = work.cpus.map_or(u32::MAX, |cpus| cpus.count());
    let wanted = work.threads.min(asked_for).max(1) as usize;
    let kept: Vec<u32> = settings.kept_free().iter().collect();
    let candidates = if kept.is_empty() {
        (0..settings.cpus).collect()
    } else {
        kept
    };
    let first = candidates.len().saturating_sub(wanted);
    candidates[first..].to_vec()
}

#[cfg(test)]
mod tests {
    use tare_wire::cpus::Cpus;

    use super::*;
    use crate::spec;
    use crate::tests::work;

    fn settings(options: &str) -> Settings {
        Settings::read(&spec::options("linux", options)).unwrap()
    }

    #[track_caller]
    fn are_placed(options: &str, more: &str, cpus: &str, pinned: &[(u32, u32)]) {
        let (work, settings) = (work(&format!("workload=nap {more}")), settings(options));
        let guest = for_guest(&work, &settings);
        assert_eq!((guest.cpus, guest.main), (Cpus::parse(cpus), None));
        let pins = pins(&work, &settings);
        let pins: Vec<(u32, u32)> = pins.iter().map(|pin| (pin.guest_cpu, pin.cpu)).collect();
        assert_eq!(pins, pinned);
    }

    #[test]
    fn each_cpu_of_the_plan_is_one_of_the_guests_last() {
        are_placed("", "cpu=7 main=1", "0", &[(0, 7)]);
        are_placed("cpus=4", "cpu=7", "3", &[(3, 7)]);
        are_placed("cpus=4", "cpu=5,7 threads=2", "2-3", &[(2, 5), (3, 7)]);
        // One thread uses one CPU only.
        are_placed("cpus=4", "cpu=5,7", "3", &[(3, 5)]);
        are_placed("cpus=4", "threads=2", "2-3", &[]);
    }

    #[test]
    fn cpus_that_are_kept_free_measure_and_may_be_too_few() {
        let options = "cpus=4,isolate=1-2";
        are_placed(options, "cpu=5", "2", &[(2, 5)]);
        are_placed(options, "cpu=5-7 threads=3", "1-2", &[(1, 5), (2, 6)]);
    }
}
