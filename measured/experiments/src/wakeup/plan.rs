//! The plan of a wake-up measurement, as words.
//!
//! Threads sleep until absolute times, one interval apart, and record how late they run ("cyclic"
//! measurement, as in cyclictest):
//! `workload=wakeup interval=100000ns duration=25s threads=1 cpu=1 policy=fifo priority=95`. All
//! times are nanoseconds of CLOCK_MONOTONIC, or of the TSC where there is no kernel.

use core::fmt;

use tare_wire::bounds::{MAX_BINS, Refusal, within};
use tare_wire::cpus::Cpus;
use tare_wire::phases::{MAX_DURATION_NS, MAX_PHASES};
use tare_wire::scheduling::Policy;
use tare_wire::words::PlanError;

use crate::table::Threads;
use crate::words::{self, Form, Put, Slot, Word};

/// The word that selects the workload.
pub const NAME: &str = "wakeup";

/// The description of the words, for the help.
pub const USAGE: &str = "
Words for wake-ups (TIME: a whole number with the unit ns, us, ms or s; CPUS: 0,2-3):
  workload=wakeup           threads sleep until absolute times and record how late they run
  interval=TIME             time between two activations
  duration=TIME             length; or until each thread was woken
  loops=N                   this many times
  threads=N                 measuring threads (1)
  distance=TIME             increment of the interval from thread to thread (0ns)
  cpu=CPUS                  CPUs to which they are pinned, in turn
  main=CPUS                 CPUs of the thread that starts and watches them
  policy=fifo|rr|deadline|other   scheduling policy (fifo)
  priority=N                real-time priority from 1 to 99 (95)
  spread=shared|same|falling   priorities of further threads (shared)
  phases=N                  phases of equal length with separate counts (1)
  threshold=TIME            latency from which wake-ups are listed (the interval)
  capacity=N                greatest number listed per thread (262144)
  raw=N                     greatest number of raw wake-ups per thread (4000000)
  bins=N                    bins of the envelope over time (1000)
  above=TIME                latency that is reported at once, and ends the measurement
  go-on=yes|no              continue after that (no)
  live=TIME                 interval of live reports on each thread
  trace=N                   number of the worst wake-ups with the kernel's events (0)
SIGINT or SIGTERM ends the measurement of wake-ups early; the results so far are reported.
";

/// The plan of the measuring threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Time between two activations of the first thread.
    pub interval_ns: u64,
    /// Increment of the interval from each thread to the next.
    pub distance_ns: u64,
    /// Number of threads.
    pub threads: u32,
    /// CPUs to which they are pinned, in turn; anywhere if None.
    pub cpu: Option<Cpus>,
    /// CPUs of the thread that starts and watches them; anywhere if None.
    pub main: Option<Cpus>,
    /// Scheduling policy.
    pub policy: Policy,
    /// Real-time priority of the first thread, from 1 to 99; 0 for other policies.
    pub priority: u32,
    /// Priorities of the further threads.
    pub spread: Spread,
    /// Duration; unlimited if None.
    pub duration_ns: Option<u64>,
    /// Number of wake-ups of each thread; unlimited if None.
    pub loops: Option<u64>,
    /// Number of phases of equal length in the duration; each has its own counts.
    pub phases: u32,
    /// Latency from which wake-ups are listed; the interval of each thread if None.
    pub threshold_ns: Option<u64>,
    /// Greatest number of listed wake-ups per thread.
    pub capacity: u64,
    /// Greatest number of raw wake-ups stored per thread, from the first one on.
    pub raw: u64,
    /// Number of bins in the envelope.
    pub bins: u32,
    /// Latency above which a thread reports at once; none if None.
    pub above_ns: Option<u64>,
    /// Whether measuring continues after that.
    pub go_on: bool,
    /// Interval of live reports; none if None.
    pub live_ns: Option<u64>,
    /// Number of the worst wake-ups for which the kernel's events are recorded; 0 turns tracing
    /// off.
    pub trace: u32,
}

/// The rule for the real-time priorities of further threads; none falls below 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Spread {
    /// One less for each earlier thread on the same CPU, so that the order of two threads due at
    /// the same time is not random.
    #[default]
    Shared,
    /// The same for all threads.
    Same,
    /// One less than the previous thread's.
    Falling,
}

/// The longest interval: a minute.
pub const MAX_INTERVAL_NS: u64 = 60_000_000_000;
/// The shortest accepted interval; whether a machine can hold it is another question.
pub const MIN_INTERVAL_NS: u64 = 1_000;
/// The greatest number of threads.
pub const MAX_THREADS: u32 = 1_024;
/// The greatest number of listed or raw wake-ups.
pub const MAX_KEPT: u64 = 1 << 26;
/// The greatest number of traced wake-ups.
pub const MAX_TRACE: u32 = 100;

impl Plan {
    /// The default of [`Plan::capacity`].
    pub const DEFAULT_CAPACITY: u64 = 1 << 18;
    /// The default of [`Plan::raw`]: 400 s at 100 µs.
    pub const DEFAULT_RAW: u64 = 4_000_000;
    /// The default of [`Plan::bins`].
    pub const DEFAULT_BINS: u32 = 1_000;

    /// Returns a plan with one thread under SCHED_FIFO and default settings.
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
    pub fn interval_of(&self, thread: u32) -> u64 {
        self.distance_ns
            .saturating_mul(thread.into())
            .saturating_add(self.interval_ns)
    }

    /// Returns the number of its threads and the first CPU.
    pub fn threads(&self) -> Threads {
        Threads {
            number: self.threads,
            first_cpu: self.cpu_of(0),
        }
    }

    /// Returns the CPU of a thread, if they are pinned.
    pub fn cpu_of(&self, thread: u32) -> Option<u32> {
        self.cpu?.in_turn(thread)
    }

    /// Returns the real-time priority of a thread, or 0 if the policy has none.
    pub fn priority_of(&self, thread: u32) -> u32 {
        // CPUs are used in turn: the same CPU recurs after `turn` threads.
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

    /// Returns the greatest number of activations of a thread, which determines the size of its
    /// buffers.
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

    /// Returns the duration if no activation is missed.
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
        let mut plan = Self::new(0, 0);
        plan.duration_ns = None;
        let given = words::read(&mut plan, &WORDS, words, &["workload", "interval"])?;
        if given.workload != NAME {
            return Err(PlanError::BadValue {
                key: "workload",
                value: given.workload,
                wanted: NAME,
            });
        }
        if plan.duration_ns.is_none() && plan.loops.is_none() {
            return Err(PlanError::Missing("duration"));
        }
        if !given.keys.contains(&"priority") && !plan.policy.has_priority() {
            plan.priority = 0;
        }
        Ok(plan)
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

/// The words besides the workload. The CPUs come last.
const WORDS: [Word<Plan>; 19] = [
    ("interval", |plan| Slot::Time(&mut plan.interval_ns)),
    ("distance", |plan| Slot::Time(&mut plan.distance_ns)),
    ("threads", |plan| Slot::Small(&mut plan.threads)),
    ("policy", |plan| Slot::Form(&mut plan.policy)),
    ("priority", |plan| Slot::Small(&mut plan.priority)),
    ("phases", |plan| Slot::Small(&mut plan.phases)),
    ("capacity", |plan| Slot::Number(&mut plan.capacity)),
    ("raw", |plan| Slot::Number(&mut plan.raw)),
    ("bins", |plan| Slot::Small(&mut plan.bins)),
    ("trace", |plan| Slot::Small(&mut plan.trace)),
    ("loops", |plan| Slot::AnyNumber(&mut plan.loops)),
    ("duration", |plan| Slot::AnyTime(&mut plan.duration_ns)),
    ("threshold", |plan| Slot::AnyTime(&mut plan.threshold_ns)),
    ("above", |plan| Slot::AnyTime(&mut plan.above_ns)),
    ("live", |plan| Slot::AnyTime(&mut plan.live_ns)),
    ("spread", |plan| Slot::Form(&mut plan.spread)),
    ("go-on", |plan| Slot::Form(&mut plan.go_on)),
    ("cpu", |plan| Slot::Cpus(&mut plan.cpu)),
    ("main", |plan| Slot::Cpus(&mut plan.main)),
];

/// Displays the words of a plan that only its threads read: all but the workload and the CPUs.
#[derive(Clone, Copy, Debug)]
pub struct OwnWords<'a>(pub &'a Plan);

impl fmt::Display for OwnWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        words::write(*self.0, &WORDS[..17], f)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workload={NAME} ")?;
        words::write(*self, &WORDS, f)
    }
}

impl Form for Spread {
    fn read(&mut self, text: &str) -> Result<(), &'static str> {
        *self = match text {
            "shared" => Self::Shared,
            "same" => Self::Same,
            "falling" => Self::Falling,
            _ => return Err("shared, same or falling"),
        };
        Ok(())
    }

    fn write(&self, put: Put<'_>) -> fmt::Result {
        match self {
            Self::Shared => Ok(()),
            Self::Same => put(&"same"),
            Self::Falling => put(&"falling"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    fn parse(text: &str) -> Result<Plan, PlanError<'_>> {
        Plan::parse(text.split_whitespace())
    }

    #[test]
    fn what_is_read_is_written_as_it_was() {
        let own = "interval=1ns distance=2ns threads=3 policy=rr priority=4 phases=5 capacity=6 raw=7 bins=8 trace=9 \
                   loops=10 duration=11ns threshold=12ns above=13ns live=14ns spread=same go-on=yes";
        let text = std::format!("workload=wakeup {own} cpu=15 main=16");
        let plan = parse(&text).unwrap();
        assert_eq!(plan.to_string(), text);
        assert_eq!(OwnWords(&plan).to_string(), own);
    }

    #[test]
    fn any_plan_is_checked_without_panic() {
        for (number, small) in [(0, 0), (1, 1), (u64::MAX, u32::MAX)] {
            for (duration_ns, loops) in [(Some(number), None), (None, Some(number))] {
                let plan = Plan {
                    distance_ns: number,
                    threads: small,
                    cpu: Some(Cpus::default()),
                    spread: Spread::Falling,
                    duration_ns,
                    loops,
                    ..Plan::new(number, 0)
                };
                let _ = (plan.check(), plan.expected_ns(), plan.activations(small));
                let _ = (plan.cpu_of(small), plan.priority_of(small));
            }
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
    fn another_workload_and_a_plan_without_end_are_refused() {
        for (text, message) in [
            (
                "workload=gap interval=1ms",
                "plan: 'workload=gap': want wakeup",
            ),
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
