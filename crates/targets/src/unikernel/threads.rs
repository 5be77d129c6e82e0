//! Which CPU of the guest measures, and on which of the host its thread is pinned.
//!
//! A plan's CPUs are those of the host. The guest has as many as its settings say, and measures on its last
//! ones: in order, so that each thread of a plan keeps a CPU of its own.

use tare_results::work::Work;

use crate::qemu::Pin;

/// Return the plan as a guest with so many CPUs gets it. It is the guest's first CPU that starts the others.
///
/// If it has more threads than that, the image says so.
pub(super) fn for_guest(work: &Work, cpus: u32) -> Work {
    let threads = 0..work.threads;
    let measured = threads.filter_map(|thread| guest_cpu(work, thread, cpus));
    work.on(Some(measured.collect()))
}

/// Return where the threads of the guest's measured CPUs are to run; nothing for those that the plan
/// does not pin.
pub(super) fn pins(work: &Work, cpus: u32) -> Vec<Pin> {
    let pin = |thread| {
        let guest_cpu = guest_cpu(work, thread, cpus)?;
        let cpu = work.cpu_of(thread)?;
        Some(Pin { guest_cpu, cpu })
    };
    (0..work.threads).filter_map(pin).collect()
}

/// Return the guest's CPU of a thread: the last one for the last thread.
fn guest_cpu(work: &Work, thread: u32, cpus: u32) -> Option<u32> {
    (cpus + thread).checked_sub(work.threads)
}

#[cfg(test)]
mod tests {
    use tare_wire::cpus::Cpus;

    use super::*;

    fn work(threads: u32, cpus: Option<&str>) -> Work {
        Work {
            threads,
            cpus: cpus.and_then(Cpus::parse),
            main: Some(Cpus::one(0)),
            ..Work::new("nap", "")
        }
    }

    fn pinned(work: &Work, cpus: u32) -> Vec<(u32, u32)> {
        let pins = pins(work, cpus);
        pins.iter().map(|pin| (pin.guest_cpu, pin.cpu)).collect()
    }

    #[test]
    fn one_thread_measures_on_the_last_cpu() {
        for cpus in [1, 4] {
            let pinned_to = work(1, Some("7"));
            assert_eq!(for_guest(&pinned_to, cpus).cpus, Some(Cpus::one(cpus - 1)));
            assert_eq!(pinned(&pinned_to, cpus), [(cpus - 1, 7)]);
            assert_eq!(pinned(&work(1, None), cpus), []);
        }
    }

    #[test]
    fn each_thread_has_one_of_the_last_cpus() {
        let work = work(2, Some("3,5"));
        assert_eq!(pinned(&work, 3), [(1, 3), (2, 5)]);
        let guest = for_guest(&work, 3);
        assert_eq!(
            [0, 1].map(|thread| guest.cpu_of(thread)),
            [Some(1), Some(2)]
        );
        assert_eq!(guest.main, None);
    }

    #[test]
    fn more_threads_than_cpus_are_left_to_the_image_to_refuse() {
        let work = work(3, Some("3-5"));
        assert_eq!(for_guest(&work, 2).threads, 3);
        assert_eq!(pinned(&work, 2), [(0, 4), (1, 5)]);
    }
}
