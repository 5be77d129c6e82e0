//! The plan of a wake-up measurement, as words.
//!
//! Threads sleep until absolute times, one interval apart, and note how late they run
//! ("cyclic" measurement, as cyclictest does it): `workload=wakeup interval=100000ns duration=25s
//! threads=1 cpu=1 policy=fifo priority=95`. All times are nanoseconds of CLOCK_MONOTONIC, or of the
//! TSC where there is no kernel.

use core::fmt;

use tare_wire::bounds::{MAX_BINS, Refusal, within};
use tare_wire::cpus::Cpus;
use tare_wire::phases::{MAX_DURATION_NS, MAX_PHASES};
use tare_wire::scheduling::Policy;
use tare_wire::words::{PlanError, parse_ns, set};

/// Is the word by which the workload is chosen.
pub const NAME: &str = "wakeup";

/// Is what the measuring threads are asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Time between two activations of the first thread.
    pub interval_ns: u64,
    /// How much longer the interval of each further thread is.
    pub distance_ns: u64,
    /// How many threads measure.
    pub threads: u32,
    /// CPUs on which they are pinned, in turn; anywhere if None.
    pub cpu: Option<Cpus>,
    /// CPUs of the thread that starts and watches them; anywhere if None.
    pub main: Option<Cpus>,
    /// Under which policy they are scheduled.
    pub policy: Policy,
    /// Real-time priority of the first thread, from 1 to 99; 0 for other policies.
    pub priority: u32,
    /// Which priorities the further threads have.
    pub spread: Spread,
    /// After what time they end; not by time if None.
    pub duration_ns: Option<u64>,
    /// After how many wake-ups each thread ends; not by their number if None.
    pub loops: Option<u64>,
    /// Into how many phases of equal length the duration is divided; counts are kept for each.
    pub phases: u32,
    /// From which latency on wake-ups are listed; the interval of each thread if None.
    pub threshold_ns: Option<u64>,
    /// How many of those are listed for each thread at most.
    pub capacity: u64,
    /// How many wake-ups are kept as they were for each thread at most, from the first on.
    pub raw: u64,
    /// Into how many bins of time the envelope is divided.
    pub bins: u32,
    /// Above which latency a thread says so at once; none if None.
    pub above_ns: Option<u64>,
    /// Whether measuring goes on after that.
    pub go_on: bool,
    /// How often the state of each thread is told meanwhile; never if None.
    pub live_ns: Option<u64>,
    /// Of how many of the worst wake-ups the kernel's own events are kept; 0 leaves tracing off.
    pub trace: u32,
}

/// Says how the real-time priorities of further threads follow from that of the first; none falls below 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Spread {
    /// A thread that shares its CPU has one less for each thread before it there: which of two that are due at once
    /// runs first is then no accident.
    #[default]
    Shared,
    /// All have the same.
    Same,
    /// Each has one less than the one before.
    Falling,
}

impl Spread {
    /// Lists all ways.
    pub const ALL: [Self; 3] = [Self::Shared, Self::Same, Self::Falling];

    /// Returns the word by which it is chosen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Same => "same",
            Self::Falling => "falling",
        }
    }

    /// Finds one by its word.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|spread| spread.name() == name)
    }
}

/// Is the longest interval: a minute.
pub const MAX_INTERVAL_NS: u64 = 60_000_000_000;
/// Is the shortest interval that is accepted; whether a machine can hold it is another question.
pub const MIN_INTERVAL_NS: u64 = 1_000;
/// Is the greatest number of threads.
pub const MAX_THREADS: u32 = 1_024;
/// Is the greatest number of wake-ups that are listed or kept as they were.
pub const MAX_KEPT: u64 = 1 << 26;
/// Is the greatest number of traced wake-ups.
pub const MAX_TRACE: u32 = 100;

impl Plan {
    /// Is how many wake-ups above the threshold are listed, unless the plan says otherwise.
    pub const DEFAULT_CAPACITY: u64 = 1 << 18;
    /// Is how many wake-ups are kept as they were, unless the plan says otherwise: 400 s at 100 µs.
    pub const DEFAULT_RAW: u64 = 4_000_000;
    /// Is how many bins the envelope has, unless the plan says otherwise.
    pub const DEFAULT_BINS: u32 = 1_000;

    /// Makes a plan with one thread under SCHED_FIFO and default settings.
    #[must_use]
    pub fn new(interval_ns: u64, duration_ns: u64) -> Self {
        Self {
            interval_ns,
            distance_ns: 0,
            threads: 1,
            cpu: None,
            main: None,
            policy: Policy::Fifo,
            priority: 95,
            spread: Spread::Shared,
            duration_ns: Some(duration_ns),
            loops: None,
            phases: 1,
            threshold_ns: None,
            capacity: Self::DEFAULT_CAPACITY,
            raw: Self::DEFAULT_RAW,
            bins: Self::DEFAULT_BINS,
            above_ns: None,
            go_on: false,
            live_ns: None,
            trace: 0,
        }
    }

    /// Returns the interval of a thread.
    #[must_use]
    pub fn interval_of(&self, thread: u32) -> u64 {
        self.distance_ns
            .saturating_mul(thread.into())
            .saturating_add(self.interval_ns)
    }

    /// Returns the CPU of a thread, if they are pinned.
    #[must_use]
    pub fn cpu_of(&self, thread: u32) -> Option<u32> {
        let cpus = self.cpu.as_ref()?;
        let place = thread.checked_rem(cpus.count())?;
        cpus.iter().nth(place as usize)
    }

    /// Returns the real-time priority of a thread, or 0 if the policy has none.
    #[must_use]
    pub fn priority_of(&self, thread: u32) -> u32 {
        // CPUs are taken in turn: every so many threads one meets the same CPU.
        let turn = self.cpu.map_or(1, |cpus| cpus.count()).max(1);
        let less = match self.spread {
            Spread::Shared => thread / turn,
            Spread::Same => 0,
            Spread::Falling => thread,
        };
        match self.priority {
            0 => 0,
            first => first.saturating_sub(less).max(1),
        }
    }

    /// Returns how many activations a thread has at most: what its buffers must be made for.
    #[must_use]
    pub fn activations(&self, thread: u32) -> u64 {
        let by_time = self
            .duration_ns
            .map(|duration| duration.div_ceil(self.interval_of(thread).max(1)));
        match (by_time, self.loops) {
            (Some(by_time), Some(loops)) => by_time.min(loops),
            (Some(number), None) | (None, Some(number)) => number,
            (None, None) => u64::MAX,
        }
    }

    /// Returns how long it takes if every activation is met.
    #[must_use]
    pub fn expected_ns(&self) -> u64 {
        let last = self.threads.saturating_sub(1);
        let by_loops = self
            .loops
            .map(|loops| loops.saturating_mul(self.interval_of(last)));
        match (self.duration_ns, by_loops) {
            (Some(duration), Some(by_loops)) => duration.min(by_loops),
            (Some(time), None) | (None, Some(time)) => time,
            (None, None) => u64::MAX,
        }
    }

    /// Reads a plan from words, `workload=wakeup` among them.
    ///
    /// # Errors
    ///
    /// Returns [`PlanError`] as [`crate::noise::Plan::parse`] does.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, PlanError<'a>> {
        let mut read = Read::default();
        for word in words {
            read.word(word)?;
        }
        read.plan()
    }

    /// Checks that every value is within its bounds.
    ///
    /// # Errors
    ///
    /// Returns the first value that is not.
    pub fn check(&self) -> Result<(), Refusal> {
        let interval = |thread| self.interval_of(thread);
        within("threads", self.threads.into(), 1, MAX_THREADS.into())?;
        let longest = interval(self.threads - 1);
        within("interval", interval(0), MIN_INTERVAL_NS, MAX_INTERVAL_NS)?;
        within("interval", longest, MIN_INTERVAL_NS, MAX_INTERVAL_NS)?;
        let (least, most) = if self.policy.has_priority() {
            (1, 99)
        } else {
            (0, 0)
        };
        within("priority", self.priority.into(), least, most)?;
        if let Some(duration) = self.duration_ns {
            within("duration", duration, MIN_INTERVAL_NS, MAX_DURATION_NS)?;
        }
        if let Some(loops) = self.loops {
            within("loops", loops, 1, MAX_DURATION_NS / MIN_INTERVAL_NS)?;
        }
        within("phases", self.phases.into(), 1, MAX_PHASES.into())?;
        within("capacity", self.capacity, 1, MAX_KEPT)?;
        within("raw", self.raw, 0, MAX_KEPT)?;
        within("bins", self.bins.into(), 1, MAX_BINS.into())?;
        within("trace", self.trace.into(), 0, MAX_TRACE.into())
    }
}

/// Writes the words of a plan that only its threads read: all but what it is, and on which CPUs.
#[derive(Clone, Copy, Debug)]
pub struct OwnWords<'a>(pub &'a Plan);

impl fmt::Display for OwnWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.0;
        write!(
            f,
            "interval={}ns distance={}ns threads={} policy={} priority={} phases={} capacity={} raw={} bins={} \
             trace={}",
            plan.interval_ns,
            plan.distance_ns,
            plan.threads,
            plan.policy.name(),
            plan.priority,
            plan.phases,
            plan.capacity,
            plan.raw,
            plan.bins,
            plan.trace
        )?;
        if let Some(loops) = plan.loops {
            write!(f, " loops={loops}")?;
        }
        for (key, ns) in [
            ("duration", plan.duration_ns),
            ("threshold", plan.threshold_ns),
            ("above", plan.above_ns),
            ("live", plan.live_ns),
        ] {
            if let Some(ns) = ns {
                write!(f, " {key}={ns}ns")?;
            }
        }
        if plan.spread != Spread::default() {
            write!(f, " spread={}", plan.spread.name())?;
        }
        if plan.go_on {
            f.write_str(" go-on=yes")?;
        }
        Ok(())
    }
}

impl fmt::Display for Plan {
    /// Writes the plan in the words that [`Plan::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workload={NAME} {}", OwnWords(self))?;
        for (key, cpus) in [("cpu", self.cpu), ("main", self.main)] {
            if let Some(cpus) = cpus {
                write!(f, " {key}={cpus}")?;
            }
        }
        Ok(())
    }
}

/// Collects the words of a plan before they are put together.
#[derive(Default)]
struct Read<'a> {
    workload: Option<&'a str>,
    interval: Option<u64>,
    distance: Option<u64>,
    threads: Option<u32>,
    cpu: Option<Cpus>,
    main: Option<Cpus>,
    policy: Option<Policy>,
    priority: Option<u32>,
    spread: Option<Spread>,
    duration: Option<u64>,
    loops: Option<u64>,
    phases: Option<u32>,
    threshold: Option<u64>,
    capacity: Option<u64>,
    raw: Option<u64>,
    bins: Option<u32>,
    above: Option<u64>,
    go_on: Option<bool>,
    live: Option<u64>,
    trace: Option<u32>,
}

impl<'a> Read<'a> {
    fn word(&mut self, word: &'a str) -> Result<(), PlanError<'a>> {
        let (key, value) = word.split_once('=').ok_or(PlanError::NotAPair(word))?;
        const NUMBER: &str = "a whole number";
        const TIME: &str = "a whole number with the unit ns, us, ms or s";
        const CPUS: &str = "CPUs such as 0,2-3";
        let number = || value.parse().ok();
        let small = || value.parse().ok();
        match key {
            "workload" => {
                let name = (value == NAME).then_some(value);
                set(&mut self.workload, key, value, name, NAME)
            }
            "interval" => set(&mut self.interval, key, value, parse_ns(value), TIME),
            "distance" => set(&mut self.distance, key, value, parse_ns(value), TIME),
            "duration" => set(&mut self.duration, key, value, parse_ns(value), TIME),
            "threshold" => set(&mut self.threshold, key, value, parse_ns(value), TIME),
            "above" => set(&mut self.above, key, value, parse_ns(value), TIME),
            "live" => set(&mut self.live, key, value, parse_ns(value), TIME),
            "threads" => set(&mut self.threads, key, value, small(), NUMBER),
            "priority" => set(&mut self.priority, key, value, small(), NUMBER),
            "phases" => set(&mut self.phases, key, value, small(), NUMBER),
            "bins" => set(&mut self.bins, key, value, small(), NUMBER),
            "trace" => set(&mut self.trace, key, value, small(), NUMBER),
            "loops" => set(&mut self.loops, key, value, number(), NUMBER),
            "capacity" => set(&mut self.capacity, key, value, number(), NUMBER),
            "raw" => set(&mut self.raw, key, value, number(), NUMBER),
            "cpu" => set(&mut self.cpu, key, value, Cpus::parse(value), CPUS),
            "main" => set(&mut self.main, key, value, Cpus::parse(value), CPUS),
            "policy" => {
                let policy = Policy::parse(value);
                let wanted = "fifo, rr, deadline or other";
                set(&mut self.policy, key, value, policy, wanted)
            }
            "spread" => {
                let spread = Spread::parse(value);
                set(
                    &mut self.spread,
                    key,
                    value,
                    spread,
                    "shared, same or falling",
                )
            }
            "go-on" => {
                let go_on = match value {
                    "yes" => Some(true),
                    "no" => Some(false),
                    _ => None,
                };
                set(&mut self.go_on, key, value, go_on, "yes or no")
            }
            _ => Err(PlanError::UnknownKey(key)),
        }
    }

    fn plan(self) -> Result<Plan, PlanError<'a>> {
        self.workload.ok_or(PlanError::Missing("workload"))?;
        let interval_ns = self.interval.ok_or(PlanError::Missing("interval"))?;
        if self.duration.is_none() && self.loops.is_none() {
            return Err(PlanError::Missing("duration"));
        }
        let default = Plan::new(interval_ns, 0);
        let policy = self.policy.unwrap_or_default();
        let priority = if policy.has_priority() {
            default.priority
        } else {
            0
        };
        Ok(Plan {
            interval_ns,
            distance_ns: self.distance.unwrap_or(default.distance_ns),
            threads: self.threads.unwrap_or(default.threads),
            cpu: self.cpu,
            main: self.main,
            policy,
            priority: self.priority.unwrap_or(priority),
            spread: self.spread.unwrap_or(default.spread),
            duration_ns: self.duration,
            loops: self.loops,
            phases: self.phases.unwrap_or(default.phases),
            threshold_ns: self.threshold,
            capacity: self.capacity.unwrap_or(default.capacity),
            raw: self.raw.unwrap_or(default.raw),
            bins: self.bins.unwrap_or(default.bins),
            above_ns: self.above,
            go_on: self.go_on.unwrap_or(default.go_on),
            live_ns: self.live,
            trace: self.trace.unwrap_or(default.trace),
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString;

    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Plan, PlanError<'_>> {
        Plan::parse(text.split_whitespace())
    }

    fn cpus() -> impl Strategy<Value = Option<Cpus>> {
        prop::option::of(
            prop::collection::vec(0_u32..64, 1..5).prop_map(|cpus| cpus.into_iter().collect()),
        )
    }

    fn plans() -> impl Strategy<Value = Plan> {
        let times = any::<(u64, u64, Option<u64>, Option<u64>, Option<u64>)>();
        let numbers = any::<(u32, u32, u32, u64, u64, u32, u32)>();
        let rest = (
            any::<(Option<u64>, u64, bool)>(),
            (0_usize..4, 0_usize..3),
            cpus(),
            cpus(),
        );
        (times, numbers, rest).prop_map(|(times, numbers, rest)| {
            let ((loops, duration, go_on), (policy, spread), cpu, main) = rest;
            Plan {
                interval_ns: times.0,
                distance_ns: times.1,
                threads: numbers.0,
                cpu,
                main,
                policy: Policy::ALL[policy],
                priority: numbers.1,
                spread: Spread::ALL[spread],
                duration_ns: Some(duration),
                loops,
                phases: numbers.2,
                threshold_ns: times.2,
                capacity: numbers.3,
                raw: numbers.4,
                bins: numbers.5,
                above_ns: times.3,
                go_on,
                live_ns: times.4,
                trace: numbers.6,
            }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(plan in plans()) {
            let words = plan.to_string();
            prop_assert_eq!(parse(&words), Ok(plan));
        }

        #[test]
        fn any_plan_is_checked_without_panic(plan in plans()) {
            let _ = (plan.check(), plan.expected_ns(), plan.activations(plan.threads));
            let _ = (plan.cpu_of(plan.threads), plan.priority_of(plan.threads));
        }

        #[test]
        fn any_text_ends_without_panic(text in "\\PC{0,80}") {
            let _ = parse(&text);
        }
    }

    #[test]
    fn defaults_fill_what_is_not_said() {
        let plan = parse("workload=wakeup interval=100us duration=25s").unwrap();
        assert_eq!(plan, Plan::new(100_000, 25_000_000_000));
        assert_eq!(plan.activations(0), 250_000);
        let other = parse("workload=wakeup interval=1ms loops=10 policy=other").unwrap();
        assert_eq!((other.priority, other.expected_ns()), (0, 10_000_000));
        assert!(other.check().is_ok());
    }

    #[test]
    fn threads_take_their_cpus_in_turn_and_their_distance() {
        let words = "workload=wakeup interval=1ms distance=500us duration=1s threads=3 cpu=1,3";
        let plan = parse(words).unwrap();
        let cpus = [0, 1, 2].map(|thread| plan.cpu_of(thread));
        assert_eq!(cpus, [Some(1), Some(3), Some(1)]);
        assert_eq!([0, 2].map(|t| plan.interval_of(t)), [1_000_000, 2_000_000]);
    }

    #[test]
    fn priorities_fall_as_it_is_said() {
        let words = "workload=wakeup interval=1ms duration=1s threads=4 cpu=1,3";
        let priorities = |more: &str| {
            let words = std::format!("{words} {more}");
            let plan = parse(&words).unwrap();
            [0, 1, 2, 3].map(|thread| plan.priority_of(thread))
        };
        assert_eq!(priorities("priority=3"), [3, 3, 2, 2]);
        assert_eq!(priorities("priority=3 spread=same"), [3; 4]);
        assert_eq!(priorities("priority=3 spread=falling"), [3, 2, 1, 1]);
        assert_eq!(priorities("policy=other"), [0; 4]);
    }

    #[test]
    fn errors_name_the_word() {
        for (text, message) in [
            (
                "interval=1",
                "plan: 'interval=1': want a whole number with the unit ns, us, ms or s",
            ),
            ("workload=gap", "plan: 'workload=gap': want wakeup"),
            (
                "policy=nice",
                "plan: 'policy=nice': want fifo, rr, deadline or other",
            ),
            ("cpu=x", "plan: 'cpu=x': want CPUs such as 0,2-3"),
            (
                "workload=wakeup interval=1ms",
                "plan: 'duration=…' is missing",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_by_name() {
        let plan = Plan::new(100_000, 1_000_000_000);
        let refused = |plan: Plan| plan.check().err().map(|refusal| refusal.what);
        assert_eq!(refused(plan), None);
        assert_eq!(
            refused(Plan {
                interval_ns: 999,
                ..plan
            }),
            Some("interval")
        );
        assert_eq!(refused(Plan { threads: 0, ..plan }), Some("threads"));
        assert_eq!(
            refused(Plan {
                priority: 100,
                ..plan
            }),
            Some("priority")
        );
        let policy = Policy::Other;
        assert_eq!(refused(Plan { policy, ..plan }), Some("priority"));
    }
}
