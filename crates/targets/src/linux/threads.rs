//! Which CPUs of the guest measure, and on which of the host their threads are pinned.
//!
//! A plan's CPUs are those of the host. In the guest they become the last ones of those that are kept free
//! (`isolate=`, `nohz_full=`), or the last ones of all, in the same order. If there are fewer of them, threads
//! take turns on them.

use tare_wire::cpus::Cpus;
use tare_wire::plan;
use tare_wire::wakeup;
use tare_wire::work::Work;

use super::settings::Settings;
use crate::qemu::Pin;

/// Returns the plan as the guest gets it.
pub(super) fn for_guest(work: &Work, settings: &Settings) -> Work {
    match work {
        Work::Batch(plan) => Work::Batch(plan::Plan {
            cpu: Some(settings.measured_cpu()),
            ..*plan
        }),
        Work::Wakeup(plan) => Work::Wakeup(wakeup::Plan {
            cpu: Some(measured(plan, settings).into_iter().collect()),
            // The host's CPUs say nothing there; the guest's other ones are free.
            main: None,
            ..*plan
        }),
    }
}

/// Returns where the threads of the guest's measured CPUs are to run: nowhere in particular for a plan without
/// CPUs.
pub(super) fn pins(work: &Work, settings: &Settings) -> Vec<Pin> {
    let (guest, host) = match work {
        Work::Batch(plan) => (
            vec![settings.measured_cpu()],
            plan.cpu.into_iter().collect::<Cpus>(),
        ),
        Work::Wakeup(plan) => (measured(plan, settings), plan.cpu.unwrap_or_default()),
    };
    let pairs = guest.into_iter().zip(host.iter());
    pairs
        .map(|(guest_cpu, cpu)| Pin { guest_cpu, cpu })
        .collect()
}

/// Returns the guest's CPUs on which threads measure wake-ups, ascending.
fn measured(plan: &wakeup::Plan, settings: &Settings) -> Vec<u32> {
    let asked_for = plan.cpu.map_or(u32::MAX, |cpus| cpus.count());
    let wanted = plan.threads.min(asked_for).max(1) as usize;
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
    use super::*;
    use crate::options::Options;

    fn settings(options: &str) -> Settings {
        Settings::read(Options::of("linux", options)).unwrap()
    }

    fn wakeups(more: &str) -> Work {
        let words = format!("workload=wakeup interval=1ms duration=1s {more}");
        Work::parse(words.split_whitespace()).unwrap()
    }

    #[track_caller]
    fn are_placed(options: &str, more: &str, cpus: &str, pinned: &[(u32, u32)]) {
        let (work, settings) = (wakeups(more), settings(options));
        let Work::Wakeup(plan) = for_guest(&work, &settings) else {
            panic!("another plan")
        };
        assert_eq!((plan.cpu, plan.main), (Cpus::parse(cpus), None));
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
