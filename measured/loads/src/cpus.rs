//! Which CPUs a load runs on.

use std::fmt;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use tare_wire::cpus::Cpus as Measured;

use crate::error::Trouble;

/// Names CPUs for a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cpus {
    /// All that the process may use, the measured one among them: as in the studies.
    #[default]
    All,
    /// All but the measured ones.
    Others,
    /// These, in ascending order.
    These(Vec<u32>),
}

impl Cpus {
    /// Reads `all`, `others`, or a list in the kernel's notation, `0-2,5`; None if it is none of them.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "all" => Some(Self::All),
            "others" => Some(Self::Others),
            list => parse_list(list).map(Self::These),
        }
    }

    /// Returns the CPUs themselves, given those that may be used and the measured ones.
    ///
    /// # Errors
    ///
    /// Returns [`Trouble::NoCpu`] if none is left, or one of a list may not be used.
    pub fn choose(&self, allowed: &[u32], measured: &Measured) -> Result<Vec<u32>, Trouble> {
        let chosen: Vec<u32> = match self {
            Self::All => allowed.to_vec(),
            Self::Others => {
                let other = |cpu: &u32| !measured.contains(*cpu);
                allowed.iter().copied().filter(other).collect()
            }
            Self::These(cpus) => cpus.clone(),
        };
        let usable = |cpu: &u32| allowed.contains(cpu);
        if chosen.is_empty() || !chosen.iter().all(usable) {
            let (asked, allowed) = (self.to_string(), list(allowed));
            return Err(Trouble::NoCpu { asked, allowed });
        }
        Ok(chosen)
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Others => f.write_str("others"),
            Self::These(cpus) => f.write_str(&list(cpus)),
        }
    }
}

/// Returns the CPUs that this process may use: its cpuset, not the affinity mask that it inherited from a parent who
/// stepped aside.
///
/// # Errors
///
/// Returns [`Trouble::System`] if the kernel does not tell.
pub fn allowed() -> Result<Vec<u32>, Trouble> {
    let failed = |errno| Trouble::system("find out which CPUs it may use", errno);
    let inherited = sched_getaffinity(None).map_err(failed)?;
    // The kernel cuts a mask to the cpuset, so asking for all gives the cpuset.
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    sched_setaffinity(None, &all).map_err(failed)?;
    let cpuset = sched_getaffinity(None).map_err(failed);
    sched_setaffinity(None, &inherited).map_err(failed)?;
    let cpuset = cpuset?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|cpu| cpuset.is_set(*cpu))
        .map(|cpu| cpu as u32)
        .collect())
}

/// Makes the kernel's affinity mask.
pub(crate) fn mask(cpus: &[u32]) -> CpuSet {
    let mut set = CpuSet::new();
    for cpu in cpus.iter().filter(|cpu| (**cpu as usize) < CpuSet::MAX_CPU) {
        set.set(*cpu as usize);
    }
    set
}

/// Writes ascending CPUs in the kernel's notation.
pub(crate) fn list(cpus: &[u32]) -> String {
    let runs = cpus.chunk_by(|one, next| one.checked_add(1) == Some(*next));
    let runs: Vec<String> = runs
        .map(|run| match run {
            [first, .., last] => format!("{first}-{last}"),
            run => format!("{}", run[0]),
        })
        .collect();
    runs.join(",")
}

fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (number(first)?, number(last)?);
        if first > last || last as usize >= CpuSet::MAX_CPU {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_as_the_kernel_does() {
        for (text, canonical) in [
            ("0", "0"),
            ("2,0-1", "0-2"),
            ("3,1,1", "1,3"),
            ("0-1,4", "0-1,4"),
        ] {
            assert_eq!(Cpus::parse(text).unwrap().to_string(), canonical);
        }
        for wrong in ["", ",", "1-", "-1", "2-1", "a", "+1", "0-99999", "1 2"] {
            assert_eq!(Cpus::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn others_are_all_but_the_measured_one() {
        let choose = |cpus: Cpus| {
            cpus.choose(&[0, 1, 3], &Measured::one(1))
                .map_err(|e| e.to_string())
        };
        assert_eq!(choose(Cpus::All), Ok(vec![0, 1, 3]));
        assert_eq!(choose(Cpus::Others), Ok(vec![0, 3]));
        assert_eq!(choose(Cpus::These(vec![3])), Ok(vec![3]));
        let refused = choose(Cpus::These(vec![1, 2])).unwrap_err();
        assert!(
            refused.contains("CPU 1-2") && refused.contains("0-1,3"),
            "{refused}"
        );
        assert!(Cpus::Others.choose(&[1], &Measured::one(1)).is_err());
    }

    #[test]
    fn the_cpuset_is_found_from_a_narrow_mask_which_is_kept() {
        let all = allowed().unwrap();
        sched_setaffinity(None, &mask(&all[..1])).unwrap();
        assert_eq!(allowed().unwrap(), all);
        assert_eq!(sched_getaffinity(None).unwrap(), mask(&all[..1]));
    }
}
