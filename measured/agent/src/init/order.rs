//! The order on the kernel command line.
//!
//! It is read from `/proc/cmdline`, not from the arguments: the kernel passes those after `--`, but
//! also every earlier word that it does not know itself.

use std::fs;
use std::time::Duration;

use tare_wire::guest::{ADDRESS, DIRECT, IDLE_LIMIT, LOAD, RAM_SCRATCH, ROOT, decoded};

use super::error::InitError;

/// The order of the laboratory.
#[derive(Debug, PartialEq, Eq)]
pub struct Order {
    /// The words of the plan.
    pub plan: Vec<String>,
    /// The load to run at the same time, in the notation of the command line.
    pub load: Option<String>,
    /// The size of the scratch RAM disk; None if there is a disk.
    pub ram: Option<String>,
    /// The address and prefix of its card, if it is to serve.
    pub address: Option<String>,
    /// The time limit for the guest to become idle; None by default.
    pub idle_limit: Option<Duration>,
    /// Whether a root file system on a disk is booted first.
    pub root: bool,
    /// Whether the first process carries out the plan itself, on the console, and then ends the
    /// guest.
    pub direct: bool,
}

impl Order {
    /// Reads it.
    pub fn read() -> Result<Self, InitError> {
        let line = fs::read_to_string("/proc/cmdline").map_err(InitError::Order)?;
        Self::parse(&line).ok_or(InitError::NoPlan)
    }

    /// Returns the plan's CPU as written.
    pub fn cpu(&self) -> Option<&str> {
        self.word("cpu=")
    }

    /// Returns the rest of the plan's word that begins so.
    pub fn word(&self, beginning: &str) -> Option<&str> {
        let mut words = self.plan.iter();
        words.find_map(|word| word.strip_prefix(beginning))
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (mut load, mut ram, mut address, mut idle_limit) = (None, None, None, None);
        let (mut root, mut direct) = (false, false);
        for word in words.by_ref().take_while(|word| *word != "--") {
            match word.split_once('=') {
                Some((LOAD, text)) => {
                    let text: Vec<u8> = decoded(text).collect();
                    load = Some(String::from_utf8_lossy(&text).into_owned());
                }
                Some((RAM_SCRATCH, size)) => ram = Some(size.to_owned()),
                Some((ADDRESS, text)) => address = Some(text.to_owned()),
                Some((IDLE_LIMIT, seconds)) => {
                    idle_limit = seconds.parse().ok().map(Duration::from_secs);
                }
                Some(ROOT) => root = true,
                None if word == DIRECT => direct = true,
                _ => {}
            }
        }
        let plan: Vec<String> = words.map(str::to_owned).collect();
        (!plan.is_empty()).then_some(Self {
            plan,
            load,
            ram,
            address,
            idle_limit,
            root,
            direct,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ram_disk_has_a_size() {
        let ram = |line: &str| Order::parse(line).unwrap().ram;
        assert_eq!(
            ram("tare.ram=256M -- workload=gap"),
            Some("256M".to_owned())
        );
        assert_eq!(ram("quiet -- workload=gap"), None);
    }

    #[test]
    fn the_limit_of_idleness_is_in_seconds() {
        let limit = |line: &str| Order::parse(line).unwrap().idle_limit;
        let given = limit("tare.idle=300 -- workload=gap");
        assert_eq!(given, Some(Duration::from_secs(300)));
        for other in ["tare.idle=long -- workload=gap", "-- workload=gap"] {
            assert_eq!(limit(other), None);
        }
    }

    #[test]
    fn the_plan_stands_behind_two_dashes() {
        let parse = |line: &str| {
            let order = Order::parse(line)?;
            Some((order.plan.join(" "), order.load, order.root))
        };
        assert_eq!(
            parse("console=ttyS0 tare.load=hackbench%20-g -- workload=gap repetitions=5\n"),
            Some((
                "workload=gap repetitions=5".to_owned(),
                Some("hackbench -g".to_owned()),
                false
            ))
        );
        assert_eq!(
            parse("quiet -- workload=gap tare.load=dd"),
            Some(("workload=gap tare.load=dd".to_owned(), None, false))
        );
        assert_eq!(
            parse("tare.root=debian -- workload=gap"),
            Some(("workload=gap".to_owned(), None, true))
        );
        assert_eq!(parse("quiet workload=gap"), None);
        assert_eq!(parse("quiet --"), None);
    }
}
