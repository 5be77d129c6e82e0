//! Which CPU of the guest measures, and on which of the host its thread is pinned.
//!
//! A plan's CPUs are those of the host. The guest has as many as its settings say, and measures on its last
//! ones: in order, so that each thread of a plan keeps a CPU of its own.

use tare_wire::cpus::Cpus;
use tare_wire::plan;
use tare_wire::wakeup;
use tare_wire::work::Work;

use crate::qemu::Pin;

/// Returns the plan as a guest with so many CPUs gets it.
///
/// If it has more threads than that, the image says so.
pub(super) fn for_guest(work: &Work, cpus: u32) -> Work {
    match work {
        Work::Batch(plan) => Work::Batch(plan::Plan {
            cpu: Some(cpus - 1),
            ..*plan
        }),
        Work::Wakeup(plan) => {
            let measured = (0..plan.threads).filter_map(|thread| guest_cpu(plan, thread, cpus));
            let measured: Cpus = measured.collect();
            Work::Wakeup(wakeup::Plan {
                cpu: measured.first().map(|_| measured),
                // It is the guest's first CPU that starts the others.
                main: None,
                ..*plan
            })
        }
    }
}

/// Returns where the threads of the guest's measured CPUs are to run; nothing for those that the plan
/// does not pin.
pub(super) fn pins(work: &Work, cpus: u32) -> Vec<Pin> {
    let pin = |guest_cpu: Option<u32>, cpu: Option<u32>| {
        let (guest_cpu, cpu) = guest_cpu.zip(cpu)?;
        Some(Pin { guest_cpu, cpu })
    };
    match work {
        Work::Batch(plan) => pin(Some(cpus - 1), plan.cpu).into_iter().collect(),
        Work::Wakeup(plan) => (0..plan.threads)
            .filter_map(|thread| pin(guest_cpu(plan, thread, cpus), plan.cpu_of(thread)))
            .collect(),
    }
}

/// Returns the guest's CPU of a thread: the last one for the last thread.
fn guest_cpu(plan: &wakeup::Plan, thread: u32, cpus: u32) -> Option<u32> {
    (cpus + thread).checked_sub(plan.threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wakeups(threads: u32, cpu: Option<&str>) -> Work {
        Work::Wakeup(wakeup::Plan {
            threads,
            cpu: cpu.and_then(Cpus::parse),
            main: Some(Cpus::one(0)),
            ..wakeup::Plan::new(100_000, 1_000_000)
        })
    }

    fn pinned(work: &Work, cpus: u32) -> Vec<(u32, u32)> {
        let pins = pins(work, cpus);
        pins.iter().map(|pin| (pin.guest_cpu, pin.cpu)).collect()
    }

    #[test]
    fn one_thread_measures_on_the_last_cpu() {
        for cpus in [1, 4] {
            let work = wakeups(1, Some("7"));
            assert_eq!(for_guest(&work, cpus).cpu(), Some(cpus - 1));
            assert_eq!(pinned(&work, cpus), [(cpus - 1, 7)]);
            assert_eq!(pinned(&wakeups(1, None), cpus), []);
        }
    }

    #[test]
    fn each_thread_has_one_of_the_last_cpus() {
        let work = wakeups(2, Some("3,5"));
        assert_eq!(pinned(&work, 3), [(1, 3), (2, 5)]);
        let Work::Wakeup(plan) = for_guest(&work, 3) else {
            panic!("another plan")
        };
        assert_eq!([0, 1].map(|thread| plan.cpu_of(thread)), [Some(1), Some(2)]);
        assert_eq!(plan.main, None);
    }

    #[test]
    fn more_threads_than_cpus_are_left_to_the_image_to_refuse() {
        let work = wakeups(3, Some("3-5"));
        let Work::Wakeup(plan) = for_guest(&work, 2) else {
            panic!("another plan")
        };
        assert_eq!(plan.threads, 3);
        assert_eq!(pinned(&work, 2), [(0, 4), (1, 5)]);
    }
}
