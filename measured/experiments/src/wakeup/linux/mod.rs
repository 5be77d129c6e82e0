//! Measuring threads on Linux: they sleep until absolute times, as cyclictest's do.
//!
//! The order is fixed, because measuring must never wait for recording. All memory is mapped,
//! touched and locked; the threads are started, pinned and scheduled, and measure the cost of their
//! own sleep and recording; only then is the time of the first sample chosen and announced. From
//! then on a thread only sleeps, reads the clock and records, until the end; no other thread has to
//! run for that. Everything else is written afterwards.
//!
//! # When the method lies
//!
//! A latency includes the time of reading the clock. Where the timer step is a tick (no
//! high-resolution timers) latencies are multiples of ticks. SCHED_OTHER threads keep their timer
//! slack, usually 50 µs, like every ordinary program. A stopped thread (SIGSTOP, a debugger) shows
//! that as latency.
//!
//! * [`thread`]: one measuring thread; [`clock`](crate::linux::clock): its clock and sleep, and
//!   their cost;
//! * [`begin`]: announces the start to a load;
//! * [`watch`]: the thread that starts and watches the others; [`shared`]: their shared state;
//!   [`signals`];
//! * [`placing`], [`scheduling`]: the CPUs and policies of threads;
//! * [`refusal`], [`group`], [`throttling`]: reasons for refused policies, and limits;
//! * [`facts`]: facts about the system;
//! * `error`: reasons why a measurement fails.

mod begin;
mod error;
mod facts;
mod group;
mod placing;
mod refusal;
mod scheduling;
mod shared;
mod signals;
mod thread;
mod throttling;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tare_wire::cpus::Cpus;
use tare_wire::phases::LEAD_NS;
use tare_wire::record::{Begins, Record};

use crate::arena::Arena;
use crate::linux::clock::now_ns;
use crate::linux::flight::{Flight, FlightError, Snapshots, timerlat};
use crate::output::{self, Output};
use crate::platform::Platform;
use crate::session::{self, Resources, Wanted};
use crate::table::{Failure, Measurement};
use crate::wakeup::{Identity, NAME, Plan, Recorder, arena_bytes, buffer_bytes};

pub use self::error::ThreadsError;
use self::placing::Place;
use self::shared::Shared;
pub(crate) use self::signals::Signals;
use self::thread::Thread;
use self::throttling::Throttling;
use self::watch::Watch;

/// The least ratio of the interval to the cost of a sleep without a notice.
const COMFORT: u64 = 2;

/// Returns the experiment on Linux.
pub fn on<P: Platform<Error = ThreadsError>>() -> Measurement<P> {
    Measurement {
        has: |id| id == NAME,
        threads: |words| Ok(Plan::parse(words)?.threads()),
        run: |words, platform| {
            let plan = Plan::parse(words).map_err(Failure::Plan)?;
            run(&plan, platform).map_err(Failure::Measurement)
        },
    }
}

/// Runs the plan and writes the records of everything that happened.
///
/// # Errors
///
/// Returns why there is no result, as [`session::run`] does.
pub fn run(plan: &Plan, platform: &mut impl Platform) -> Result<(), ThreadsError> {
    // Preparing pins this thread to the CPU that is calibrated, the first measured one.
    let allowed_cpus = placing::allowed();
    let allowed = plan.check();
    let wanted = Wanted {
        plan,
        allowed,
        cpu: plan.cpu_of(0),
        bytes: allowed.map_or(0, |()| buffer_bytes(plan)),
    };
    session::run(
        wanted,
        platform,
        |given| Ready::prepare(plan, &allowed_cpus?, given),
        |output, ready| ready.measure(plan, output),
    )
}

/// A measurement that is ready to begin.
struct Ready {
    place: Place,
    signals: Signals,
    shared: Arc<Shared>,
    /// The recorder of the kernel's events, or why there is none; None if the plan does not request
    /// it.
    flight: Option<Result<Flight, FlightError>>,
    threads: Vec<Thread>,
}

impl Ready {
    /// Starts the threads.
    fn prepare(plan: &Plan, allowed: &Cpus, given: Resources) -> Result<Self, ThreadsError> {
        let place = placing::of_main(plan, allowed)?;
        placing::pin(place.cpus)?;
        let signals = Signals::take_over().map_err(|source| ThreadsError::System {
            what: "descriptor for signals",
            source,
        })?;
        let shared = Shared::new().map_err(|errno| ThreadsError::System {
            what: "descriptor for events",
            source: errno.into(),
        })?;
        let shared = Arc::new(shared);
        let (flight, snapshots) = match open_flight(plan) {
            None => (None, Vec::new()),
            Some(Ok((flight, snapshots))) => (Some(Ok(flight)), snapshots),
            Some(Err(error)) => (Some(Err(error)), Vec::new()),
        };
        let threads = start(plan, given.arena, snapshots, &place, &shared);
        if threads.is_err() {
            // Waiting threads end; one that hangs is ignored.
            shared.release(None);
            placing::move_others(&place.cpus);
        }
        Ok(Self {
            place,
            signals,
            shared,
            flight,
            threads: threads?,
        })
    }

    /// Lets the threads measure, and writes their records during and after the measurement.
    fn measure(
        self,
        plan: &Plan,
        output: &mut Output<'_, impl Platform>,
    ) -> Result<(), ThreadsError> {
        for notice in self.notices(plan) {
            output.notice(&output::text(&notice))?;
        }
        let origin_ns = match begin::has_fixed_phase() {
            true => begin::at_fixed_phase(now_ns() + LEAD_NS, plan.interval_ns),
            false => now_ns() + LEAD_NS,
        };
        output.put(&Record::Begins(Begins { origin_ns }))?;
        output.flush()?;
        begin::tell(origin_ns).map_err(|source| ThreadsError::System {
            what: "way to tell the load when to begin",
            source,
        })?;
        self.shared.release(Some(origin_ns));
        let watch = Watch::new(plan, &self.threads, &self.shared, &self.signals, origin_ns);
        let watched = watch.until_all_end(output);
        if watched.is_err() {
            placing::move_others(&self.place.cpus);
        }
        let is_cut_short = watched?;
        let has_flight = matches!(self.flight, Some(Ok(_)));
        let flight = self.flight.and_then(Result::ok);
        report(self.threads, flight, origin_ns, output)?;
        // After a request to end early, the user does not want to wait for more.
        if is_cut_short {
            output.put(&Record::CutShort)?;
        } else if has_flight {
            second_opinion(plan, output)?;
        }
        Ok(())
    }

    /// Returns notices about the measurement.
    fn notices(&self, plan: &Plan) -> Vec<String> {
        let mut notices = Vec::new();
        let mut threads = self.threads.iter();
        if let Some(thread) = threads.find(|t| plan.interval_of(t.number) < COMFORT * taken_ns(t)) {
            notices.push(format!(
                "setting a timer, being woken up and recording took a median of {} µs before the measurement, of an interval of {} µs: \
                 if they take as long during it, much is missed",
                error::micros(taken_ns(thread)),
                error::micros(plan.interval_of(thread.number))
            ));
        }
        if self.place.shares {
            notices.push(format!(
                "threads measure on every CPU that the watching thread may use (CPU {}): its reports during the measurement \
                 come late, and its own work disturbs",
                self.place.cpus
            ));
        }
        if let Some(Err(error)) = &self.flight {
            notices.push(format!(
                "the kernel's events around the worst samples are not recorded: {error}"
            ));
        }
        if let Some(throttling) = Throttling::find()
            && let Some(warning) = throttling.warning(self.real_time_used(plan))
        {
            notices.push(warning.to_string());
        }
        notices
    }

    /// Returns the least share of a CPU that its real-time threads use, on the CPU where it is
    /// greatest.
    fn real_time_used(&self, plan: &Plan) -> f64 {
        let mut used: BTreeMap<Option<u32>, f64> = BTreeMap::new();
        let threads = self.threads.iter();
        for thread in threads.filter(|thread| thread.scheduling.is_real_time()) {
            let share = taken_ns(thread) as f64 / plan.interval_of(thread.number) as f64;
            *used.entry(thread.cpu).or_default() += share;
        }
        used.into_values().fold(0.0, f64::max)
    }
}

/// Writes the results.
fn report(
    threads: Vec<Thread>,
    flight: Option<Flight>,
    origin_ns: u64,
    output: &mut Output<'_, impl Platform>,
) -> Result<(), ThreadsError> {
    let facts = facts::facts(&threads);
    let lost = |thread: &Thread| thread.channel.lost.load(Ordering::Relaxed);
    let lost: u64 = threads.iter().map(lost).sum();
    let mut of_threads = Vec::new();
    for thread in threads {
        let identity = Identity {
            tid: thread.tid,
            cpu: thread.cpu,
            policy: thread.scheduling.policy().name(),
            priority: thread.scheduling.priority(),
        };
        let (recorder, snapshots) = thread.join()?;
        recorder.report(identity, origin_ns, output)?;
        of_threads.extend(snapshots.map(|snapshots| (identity.tid, snapshots)));
    }
    if let Some(flight) = flight {
        let trace = flight.finish(&of_threads);
        trace.records(0, |record| output.put(record))?;
    }
    if lost > 0 {
        output.notice(
            "values above the limit came too fast to be reported at once; they are counted",
        )?;
    }
    for (name, value) in &facts {
        output.fact(name, "", value)?;
    }
    Ok(())
}

/// Runs the kernel's own tracer, where that is possible and disturbs nobody.
fn second_opinion(plan: &Plan, output: &mut Output<'_, impl Platform>) -> Result<(), ThreadsError> {
    // After several phases the load has ended.
    let is_alone = plan.phases == 1 && output.platform.environment() != "linux";
    let Some(cpu) = plan.cpu_of(0).filter(|_| is_alone) else {
        return Ok(());
    };
    match timerlat::run(cpu, plan.interval_ns) {
        Ok(facts) => {
            for (name, value) in facts.iter().flatten() {
                output.fact(name, "", value)?;
            }
        }
        Err(source) => {
            let text = format!("the kernel's tracer timerlat can't be used: {source}");
            output.notice(&output::text(&text))?;
        }
    }
    Ok(())
}

/// Starts recording the kernel's events on the CPUs of the threads, if the plan requests it.
/// Failure does not prevent the measurement.
fn open_flight(plan: &Plan) -> Option<Result<(Flight, Vec<Snapshots>), FlightError>> {
    let threads = (0..plan.threads).map(|thread| (thread, plan.cpu_of(thread)));
    (plan.trace > 0).then(|| Flight::open(threads, plan.trace))
}

/// Starts all threads one by one, so that they do not disturb each other's calibration, and checks
/// that they can hold their intervals.
fn start(
    plan: &Plan,
    mut arena: Arena,
    snapshots: Vec<Snapshots>,
    place: &Place,
    shared: &Arc<Shared>,
) -> Result<Vec<Thread>, ThreadsError> {
    let mut threads = Vec::new();
    let mut snapshots = snapshots.into_iter();
    for number in 0..plan.threads {
        let memory = arena.take(arena_bytes(plan, number));
        let recorder = Recorder::new(plan, number, memory);
        let thread = Thread::start(plan, number, (recorder, snapshots.next()), shared)?;
        let interval_ns = plan.interval_of(number);
        let (sleep_ns, recording_ns) = (thread.sleep.least_ns, thread.recording_ns);
        if interval_ns <= sleep_ns + recording_ns {
            return Err(ThreadsError::TooShort {
                interval_ns,
                sleep_ns,
                recording_ns,
            });
        }
        threads.push(thread);
    }
    placing::leaves_room(plan, place, |number| {
        let thread = &threads[number as usize];
        thread.sleep.least_ns + thread.recording_ns
    })?;
    Ok(threads)
}

/// Returns the typical CPU time of a period of a thread.
fn taken_ns(thread: &Thread) -> u64 {
    thread.sleep.median_ns + thread.recording_ns
}
