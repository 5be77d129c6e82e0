//! The CPUs of a Linux guest that measure: those that are kept free (`isolate=`, `nohz_full=`), if
//! there are any. Threads that share a CPU of the host share one of the guest.

use tare_results::work::Work;

use super::settings::Settings;
use crate::qemu::GuestCpus;

/// Returns the guest's CPUs that measure.
pub(super) fn measured(work: &Work, settings: &Settings) -> GuestCpus {
    let asked_for = work.cpus.map_or(u32::MAX, |cpus| cpus.count());
    let kept: Vec<u32> = settings.kept_free().iter().collect();
    let candidates = match kept.is_empty() {
        true => (0..settings.cpus).collect(),
        false => kept,
    };
    GuestCpus::last(candidates, work.threads.min(asked_for).max(1))
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
        let measured = measured(&work, &settings);
        let guest = measured.work(&work);
        assert_eq!((guest.cpus, guest.main), (Cpus::parse(cpus), None));
        let pins = measured.pins(&work);
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
