//! The CPUs of a unikernel that measure: one for each thread, because nothing there can divide one.
//! The first CPU starts the others.

use tare_results::work::Work;

use crate::qemu::GuestCpus;

/// Returns the measuring CPUs of a guest that has `cpus`. The image refuses more threads than that.
pub(super) fn measured(work: &Work, cpus: u32) -> GuestCpus {
    GuestCpus::last((0..cpus).collect(), work.threads)
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
        let pins = measured(work, cpus).pins(work);
        pins.iter().map(|pin| (pin.guest_cpu, pin.cpu)).collect()
    }

    #[test]
    fn one_thread_measures_on_the_last_cpu() {
        for cpus in [1, 4] {
            let pinned_to = work(1, Some("7"));
            assert_eq!(
                measured(&pinned_to, cpus).work(&pinned_to).cpus,
                Some(Cpus::one(cpus - 1))
            );
            assert_eq!(pinned(&pinned_to, cpus), [(cpus - 1, 7)]);
            assert_eq!(pinned(&work(1, None), cpus), []);
        }
    }

    #[test]
    fn each_thread_has_one_of_the_last_cpus() {
        let work = work(2, Some("3,5"));
        assert_eq!(pinned(&work, 3), [(1, 3), (2, 5)]);
        let guest = measured(&work, 3).work(&work);
        assert_eq!(
            [0, 1].map(|thread| guest.cpu_of(thread)),
            [Some(1), Some(2)]
        );
        assert_eq!(guest.main, None);
    }

    #[test]
    fn more_threads_than_cpus_are_left_to_the_image_to_refuse() {
        let work = work(3, Some("3-5"));
        assert_eq!(measured(&work, 2).work(&work).threads, 3);
        assert_eq!(pinned(&work, 2), [(0, 3), (1, 4)]);
    }
}
