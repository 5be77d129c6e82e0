//! The work that a cell asks of measured code, as far as those who run it need to know: plain data,
//! whatever is measured.
//!
//! The experiment makes it once, from its plan. Targets read which CPUs, how much memory and which
//! rights it needs; what its words mean is known only to the experiment and to the measured
//! function.

use std::fmt;

use percent_encoding::percent_decode_str;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tare_wire::cpus::Cpus;
use tare_wire::scheduling::Policy;

/// What measured code is asked to do. The default asks for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Work {
    /// Id of the measured function: `prime`.
    pub id: String,
    /// The words that it reads besides its id and its CPUs: `limit=22 repetitions=1000000`.
    pub words: String,
    /// How many threads measure.
    pub threads: u32,
    /// CPUs to which they are pinned, in turn; null if they may run anywhere.
    #[schemars(with = "Option<String>")]
    pub cpus: Option<Cpus>,
    /// CPUs of the thread that starts and watches them; null if it may run anywhere.
    #[schemars(with = "Option<String>")]
    pub main: Option<Cpus>,
    /// Size of the buffers that it takes.
    pub buffer_bytes: u64,
    /// The rights that it needs.
    pub rights: Rights,
    /// Whether it can be asked to end before it is done, from its first sample on, and then reports
    /// what it has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_early: bool,
    /// Whether it reports while it still measures, one thing after the other, and not all at its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reports_between: bool,
    /// Value above which a sample is reported at once, in ns; null for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<u64>,
}

/// What measured code must be allowed to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Rights {
    /// How its threads are scheduled; null if they are ordinary ones.
    pub real_time: Option<RealTime>,
    /// Whether it records the kernel's events, which costs time.
    pub kernel_events: bool,
}

/// How threads are scheduled that come before ordinary ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct RealTime {
    /// The policy: `fifo`, `rr` or `deadline`.
    #[schemars(with = "String")]
    pub policy: Policy,
    /// The highest priority of a thread, from 1 to 99; 0 if the policy has none.
    pub priority: u32,
}

impl Work {
    /// The id of a server that is a command of the user's own, whose words are that.
    pub const COMMAND: &str = "command";

    /// Makes work of one ordinary thread that may run anywhere and takes no buffers.
    pub fn new(id: &str, words: &str) -> Self {
        Self {
            id: id.to_owned(),
            words: words.to_owned(),
            threads: 1,
            ..Self::default()
        }
    }

    /// Returns the command line of a client that starts a command for each request.
    pub fn client_command(&self) -> Option<String> {
        let mut words = self.words.split_whitespace();
        let packed = words.find_map(|word| word.strip_prefix("client=command:"))?;
        Some(percent_decode_str(packed).decode_utf8_lossy().into_owned())
    }

    /// Returns the CPU of a thread, if they are pinned.
    pub fn cpu_of(&self, thread: u32) -> Option<u32> {
        self.cpus?.in_turn(thread)
    }

    /// Returns the CPUs that threads are pinned to; none if they are not.
    pub fn measured_cpus(&self) -> Cpus {
        let all = self.cpus.unwrap_or_default();
        all.iter().take(self.threads as usize).collect()
    }

    /// Returns the CPUs that it uses: those it measures, and those of the watching thread. None if
    /// it may run anywhere.
    pub fn used_cpus(&self) -> Option<Cpus> {
        let main = self.main.unwrap_or_default();
        Some(self.cpus?.iter().chain(main.iter()).collect())
    }

    /// Returns the same for a place with other CPUs, of which no other than those are known.
    #[must_use]
    pub fn on(&self, cpus: Option<Cpus>) -> Self {
        Self {
            cpus,
            main: None,
            ..self.clone()
        }
    }
}

impl fmt::Display for Work {
    /// Writes the words that the agent and the images take.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.id.is_empty() {
            return Ok(());
        }
        write!(f, "workload={} {}", self.id, self.words)?;
        for (key, cpus) in [("cpu", self.cpus), ("main", self.main)] {
            if let Some(cpus) = cpus {
                write!(f, " {key}={cpus}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(threads: u32, cpus: &str) -> Work {
        Work {
            threads,
            cpus: Cpus::parse(cpus),
            main: Cpus::parse("0"),
            ..Work::new("nap", "interval=1ms")
        }
    }

    #[test]
    fn threads_take_their_cpus_in_turn() {
        let three = work(3, "1,3");
        assert_eq!(
            [0, 1, 2].map(|thread| three.cpu_of(thread)),
            [Some(1), Some(3), Some(1)]
        );
        assert_eq!(three.measured_cpus(), Cpus::parse("1,3").unwrap());
        // A single thread takes the first one only.
        assert_eq!(work(1, "2-3").measured_cpus(), Cpus::one(2));
        assert_eq!(work(2, "").measured_cpus(), Cpus::default());
    }

    #[test]
    fn the_cpus_stand_last_among_the_words() {
        let work = work(2, "2-3");
        assert_eq!(work.to_string(), "workload=nap interval=1ms cpu=2-3 main=0");
        let guest = work.on(Cpus::parse("1"));
        assert_eq!(guest.to_string(), "workload=nap interval=1ms cpu=1");
        assert_eq!(Work::default().to_string(), "");
    }

    #[test]
    fn it_is_read_back_from_json() {
        let mut work = work(2, "2-3");
        work.rights.real_time = Some(RealTime {
            policy: Policy::RoundRobin,
            priority: 95,
        });
        let json = serde_json::to_string(&work).unwrap();
        assert!(
            json.contains("\"cpus\":\"2-3\"") && json.contains("\"rr\""),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<Work>(&json).unwrap(), work);
        assert!(serde_json::from_str::<Work>(&json.replace("2-3", "3-2")).is_err());
    }
}
