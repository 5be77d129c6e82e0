//! The CPUs of a load.

use std::fmt;

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use tare_wire::cpus::Cpus as Set;

use crate::error::DriverError;

/// A choice of CPUs for a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cpus {
    /// All CPUs that the process may use, including the measured one, as in the studies.
    #[default]
    All,
    /// All but the measured ones.
    Others,
    /// These CPUs.
    These(Box<Set>),
}

impl Cpus {
    /// Parses `all`, `others`, or a list in the kernel's notation, `0-2,5`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "all" => Some(Self::All),
            "others" => Some(Self::Others),
            list => Set::parse(list).map(|set| Self::These(Box::new(set))),
        }
    }

    /// Returns the set of CPUs, given those that may be used and the measured ones.
    ///
    /// # Errors
    ///
    /// Returns [`DriverError`] if none remains, or one of a list may not be used.
    pub fn choose(&self, allowed: &Set, measured: &Set) -> Result<Set, DriverError> {
        let chosen = match self {
            Self::All => *allowed,
            Self::Others => allowed.without(measured),
            Self::These(cpus) => **cpus,
        };
        if chosen.count() == 0 || chosen.without(allowed).count() > 0 {
            return Err(DriverError(format!(
                "the load can't run on CPU {self}: this process may use {allowed} (its cpuset)"
            )));
        }
        Ok(chosen)
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Others => f.write_str("others"),
            Self::These(cpus) => cpus.fmt(f),
        }
    }
}

/// Returns the CPUs that this process may use: its cpuset, not the affinity mask inherited from its
/// parent.
///
/// # Errors
///
/// Returns [`DriverError`] if a system call fails.
pub fn allowed() -> Result<Set, DriverError> {
    let failed = |errno| DriverError::system("find out which CPUs it may use", errno);
    let inherited = sched_getaffinity(None).map_err(failed)?;
    // The kernel restricts a mask to the cpuset, so requesting all CPUs yields the cpuset.
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    sched_setaffinity(None, &all).map_err(failed)?;
    let cpuset = current().map_err(failed);
    sched_setaffinity(None, &inherited).map_err(failed)?;
    cpuset
}

/// Returns the CPUs that this thread may run on at present.
///
/// # Errors
///
/// Returns the kernel's error.
pub fn current() -> Result<Set, Errno> {
    let set = sched_getaffinity(None)?;
    let is_in = |cpu: &u32| set.is_set(*cpu as usize);
    Ok((0..CpuSet::MAX_CPU as u32).filter(is_in).collect())
}

/// Returns the kernel's affinity mask.
///
/// # Errors
///
/// Returns the kernel's error for an invalid CPU if one is beyond the mask.
pub fn mask(cpus: &Set) -> Result<CpuSet, Errno> {
    let mut set = CpuSet::new();
    for cpu in cpus.iter().map(|cpu| cpu as usize) {
        if cpu >= CpuSet::MAX_CPU {
            return Err(Errno::INVAL);
        }
        set.set(cpu);
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_all_but_the_measured_one() {
        let set = |list| Set::parse(list).unwrap();
        let choose = |cpus: &str| {
            let cpus = Cpus::parse(cpus).unwrap();
            cpus.choose(&set("0-1,3"), &set("1"))
                .map_err(|e| e.to_string())
        };
        assert_eq!(choose("all"), Ok(set("0-1,3")));
        assert_eq!(choose("others"), Ok(set("0,3")));
        assert_eq!(choose("3"), Ok(set("3")));
        let refused = choose("2,1").unwrap_err();
        assert!(
            refused.contains("CPU 1-2") && refused.contains("0-1,3"),
            "{refused}"
        );
        assert!(Cpus::Others.choose(&set("1"), &set("1")).is_err());
    }

    #[test]
    fn the_cpuset_is_found_from_a_narrow_mask_which_is_kept() {
        let all = allowed().unwrap();
        let first = all.iter().take(1).collect();
        sched_setaffinity(None, &mask(&first).unwrap()).unwrap();
        assert_eq!(allowed().unwrap(), all);
        assert_eq!(current(), Ok(first));
        assert!(matches!(mask(&Set::one(1_024)), Err(Errno::INVAL)));
    }
}
