//! Wake-ups on the unikernel: from the timer's interrupt to running code.
//!
//! Each thread of the plan is a CPU that halts until a planned time and reads the TSC when it runs
//! again ([`tare_unikernel::alarm`]). There is no scheduler, so each CPU has at most one thread.
//! Latencies are converted to ns with the TSC's frequency as estimated when measuring begins; the
//! records contain its uncertainty. The same error affects every interval, so it never makes a
//! wake-up late.
//!
//! `irq=off`: interrupts are enabled only while the CPU is halted, and the alarm is the only one.
//! `irq=on`: a tick of `timer-hz` shares the timer with the alarm, and interrupts are enabled while
//! code runs.
//!
//! The host ends the measurement early by an NMI, whose handler only counts: a CPU checks that
//! count before it sleeps, never between its wake-up and the record of it.
//!
//! Functions that are not generic are `#[inline]`, so that the image compiles them, for size.
//!
//! One CPU does everything; with several, the first one starts the others, and reports when all are
//! done. So there are no records during the measurement: `live=` has no effect, and values above
//! the limit are listed afterwards.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use tare_unikernel::alarm::Alarm;
use tare_unikernel::apic::{self, Message};
use tare_unikernel::interrupts::{WAKE, asked_to_end};
use tare_unikernel::local::local;
use tare_unikernel::rate::Scale;
use tare_unikernel::timer::TimerError;
use tare_unikernel::{cpu, memory, smp};
use tare_wire::bounds::Refusal;
use tare_wire::image::Settings;
use tare_wire::phases::LEAD_NS;
use tare_wire::record::{Begins, Counter, Exceeded, Record};

use super::{Identity, NAME, Pace, Plan, Recorder, arena_bytes, buffer_bytes};
use crate::arena::Arena;
use crate::bare::{self, Bare, reporting_cpu};
use crate::output::{self, Output};
use crate::platform::Platform;
use crate::session::{self, Resources, Stop, Wanted};
use crate::table::{Failure, Measurement};

/// How long before the first planned time the counters are read.
const JUST_BEFORE_NS: u64 = 1_000_000;

/// The greatest number of latencies above the plan's limit listed per CPU.
const MOST_EXCEEDED: usize = 64;

/// Returns the experiment on a machine without a kernel.
pub fn on<P: Bare>() -> Measurement<P> {
    Measurement {
        has: |id| id == NAME,
        threads: |words| Ok(Plan::parse(words)?.threads()),
        run: |words, machine| {
            let plan = Plan::parse(words).map_err(Failure::Plan)?;
            run(&plan, machine).map_err(Failure::Measurement)
        },
    }
}

/// Runs the plan on its CPUs.
///
/// # Errors
///
/// Returns [`Stop`] as [`session::run`] does.
fn run(plan: &Plan, machine: &mut impl Bare) -> Result<(), Stop> {
    let allowed = plan.check();
    let wanted = Wanted {
        plan,
        cpu: Some(reporting_cpu(plan.threads())),
        bytes: allowed.map_or(0, |()| buffer_bytes(plan)),
        allowed,
    };
    let settings = machine.settings();
    // The alarm shares the timer with the tick, if there is one.
    machine.leave_timer();
    session::run(wanted, machine, Ok, |output, given| {
        check(plan, settings)?;
        measure(plan, settings.timer_hz, output, given)
    })
}

/// Rejects plans that require a scheduler.
#[inline]
fn check(plan: &Plan, settings: Settings<'_>) -> Result<(), Stop> {
    let most = settings.cpus.into();
    if plan.threads > settings.cpus {
        return Err(Stop::Plan(Refusal {
            what: "threads, of which each needs a CPU of cpus= here,",
            given: plan.threads.into(),
            least: 1,
            most,
        }));
    }
    let cpus = || (0..plan.threads).map(|thread| cpu_of(plan, thread));
    if let Some(beyond) = cpus().find(|cpu| *cpu >= settings.cpus) {
        return Err(Stop::Plan(Refusal {
            what: "cpu",
            given: beyond.into(),
            least: 0,
            most: most - 1,
        }));
    }
    let is_shared = (0_u32..).zip(cpus()).any(|(thread, cpu)| {
        let mut before = (0..thread).map(|k| cpu_of(plan, k));
        before.any(|other| other == cpu)
    });
    if is_shared {
        return Err(Stop::Place(
            "two threads on one CPU need a scheduler, and the unikernel has none: name as many CPUs by \
             cpu= as there are threads",
        ));
    }
    Ok(())
}

/// Returns the CPU of a thread: its number, if the plan names none.
#[inline]
fn cpu_of(plan: &Plan, thread: u32) -> u32 {
    plan.cpu_of(thread).unwrap_or(thread)
}

/// The state shared by all CPUs while they measure.
struct Shared<'a> {
    plan: &'a Plan,
    tick_hz: Option<u32>,
    tsc_hz: f64,
    to_tsc: Scale,
    to_ns: Scale,
    /// The jobs of all threads, contiguous.
    jobs: *mut Job,
    /// APIC id of the CPU that reports.
    reporter: u8,
    /// The number of prepared CPUs.
    prepared: AtomicU32,
    /// The number of other CPUs that no longer use this value.
    done: AtomicU32,
    /// TSC of activation 0; 0 until it is known.
    origin: AtomicU64,
    /// Whether all CPUs must end early.
    ends: AtomicBool,
    /// Whether the host ended the measurement early.
    cut_short: AtomicBool,
}

/// The work of one CPU.
struct Job {
    recorder: Option<Recorder>,
    alarm: Result<Alarm, TimerError>,
    exceeded: [Exceeded; MOST_EXCEEDED],
    exceeded_kept: usize,
    /// The counters of this CPU over the measurement.
    counted: [u64; 3],
}

/// The state, for CPUs that are being started.
static SHARED: AtomicPtr<Shared<'static>> = AtomicPtr::new(core::ptr::null_mut());

fn measure(
    plan: &Plan,
    tick_hz: Option<u32>,
    output: &mut Output<'_, impl Platform>,
    mut given: Resources,
) -> Result<(), Stop> {
    let zero = cpu::tsc();
    let Some((tsc_hz, to_tsc, to_ns)) = scales(given.hz) else {
        return Err(Stop::Place(
            "the TSC's frequency, by which wake-ups are planned, is unknown here",
        ));
    };
    if plan.trace > 0 {
        output
            .notice("trace= has no effect: there is no kernel here whose events could be kept")?;
    }
    let shared = Shared {
        plan,
        tick_hz,
        tsc_hz,
        to_tsc,
        to_ns,
        jobs: jobs(plan, &mut given.arena)?,
        reporter: local().apic_id(),
        prepared: AtomicU32::new(0),
        done: AtomicU32::new(0),
        origin: AtomicU64::new(0),
        ends: AtomicBool::new(false),
        cut_short: AtomicBool::new(false),
    };
    let origin_ns = shared.with_other_cpus(|own| {
        if let Some(thread) = own {
            shared.prepare(thread);
        }
        shared.wait_until_prepared()?;
        let origin = cpu::tsc() + to_tsc.convert(LEAD_NS);
        let origin_ns = to_ns.convert(origin - zero);
        output.put(&Record::Begins(Begins { origin_ns }))?;
        output.flush()?;
        shared.origin.store(origin, Ordering::Release);
        if let Some(thread) = own {
            shared.measure(thread);
        }
        Ok::<_, Stop>(origin_ns)
    })?;
    report(&shared, origin_ns, output)
}

#[inline]
fn scales(hz: Option<f64>) -> Option<(f64, Scale, Scale)> {
    let hz = hz?;
    Some((hz, Scale::new(1e9, hz)?, Scale::new(hz, 1e9)?))
}

/// Creates the jobs of all threads, contiguous.
#[inline]
fn jobs(plan: &Plan, arena: &mut Arena) -> Result<*mut Job, Stop> {
    let count = plan.threads as usize;
    let place = memory::take(count * size_of::<Job>()).ok_or(Stop::Place(
        "there is not enough memory for this many threads",
    ))?;
    let first = place.as_mut_ptr().cast::<Job>();
    for thread in 0..plan.threads {
        let memory = arena.take(arena_bytes(plan, thread));
        let job = Job {
            recorder: Some(Recorder::new(plan, thread, memory)),
            alarm: Err(TimerError::NoFrequency),
            exceeded: [Exceeded {
                set: 0,
                index: 0,
                value: 0,
            }; MOST_EXCEEDED],
            exceeded_kept: 0,
            counted: [0; 3],
        };
        // SAFETY: whole pages, with room for `count` jobs, which nothing else uses.
        unsafe { first.add(thread as usize).write(job) };
    }
    Ok(first)
}

/// The task of another CPU.
#[inline]
fn measure_here() {
    // SAFETY: `with_other_cpus` has stored it and returns only when this CPU is done.
    let shared = unsafe { &*SHARED.load(Ordering::Acquire) };
    let mut threads = 0..shared.plan.threads;
    let own = threads.find(|thread| cpu_of(shared.plan, *thread) == local().number());
    if let Some(thread) = own {
        shared.prepare(thread);
        shared.measure(thread);
    }
    let message = Message::Interrupt {
        apic_id: shared.reporter,
        vector: WAKE,
    };
    // After this, `shared` may be gone.
    shared.done.fetch_add(1, Ordering::Release);
    apic::send(message);
}

impl Shared<'_> {
    /// Starts the other CPUs of the plan, calls `lead` with the thread of this CPU, and returns
    /// when no other CPU uses this value any more, whatever `lead` returns.
    fn with_other_cpus<R>(&self, lead: impl FnOnce(Option<u32>) -> R) -> R {
        SHARED.store((&raw const *self).cast_mut().cast(), Ordering::Release);
        let mut own = None;
        let mut others = 0;
        for thread in 0..self.plan.threads {
            let number = cpu_of(self.plan, thread);
            if number == local().number() {
                own = Some(thread);
            } else {
                smp::on_cpu(number, measure_here).expect("a CPU that was started takes a task");
                others += 1;
            }
        }
        let led = lead(own);
        if self.origin.load(Ordering::Relaxed) == 0 {
            // It gave up, while the others wait for the origin.
            self.ends.store(true, Ordering::Relaxed);
            self.origin.store(cpu::tsc(), Ordering::Release);
        }
        // Interrupts are enabled only while this CPU is halted, so no message is lost.
        cpu::disable_interrupts();
        while self.done.load(Ordering::Acquire) < others {
            cpu::wait_for_interrupt();
        }
        led
    }

    /// Returns the job of a thread.
    ///
    /// # Safety
    ///
    /// No other reference to it may exist at the same time.
    #[expect(clippy::mut_from_ref, reason = "each CPU has another one")]
    #[inline]
    unsafe fn job(&self, thread: u32) -> &mut Job {
        // SAFETY: there are as many jobs as threads; the rest is up to the caller.
        unsafe { &mut *self.jobs.add(thread as usize) }
    }

    /// Sets up the alarm of this CPU, and measures the cost of recording.
    #[inline]
    fn prepare(&self, thread: u32) {
        // SAFETY: only this CPU uses it until it is prepared.
        let job = unsafe { self.job(thread) };
        job.alarm = Alarm::new(self.tick_hz, self.tsc_hz);
        if let Some(recorder) = &mut job.recorder {
            recorder.calibrate(|| self.to_ns.convert(cpu::tsc()));
        }
        self.prepared.fetch_add(1, Ordering::Release);
    }

    /// Waits until every CPU of the plan is prepared.
    #[inline]
    fn wait_until_prepared(&self) -> Result<(), Stop> {
        while self.prepared.load(Ordering::Acquire) < self.plan.threads {
            core::hint::spin_loop();
        }
        let refused = (0..self.plan.threads).find_map(|thread| {
            // SAFETY: no CPU touches its job between its preparation and the origin.
            unsafe { self.job(thread) }.alarm.as_ref().err().copied()
        });
        match refused {
            None => Ok(()),
            Some(TimerError::NoFrequency) => {
                Err(Stop::Place("the timer of the APIC does not count"))
            }
            Some(TimerError::Rate) => {
                Err(Stop::Place("the timer can't tick at the rate of timer-hz="))
            }
        }
    }

    /// Waits for the origin, and carries out the plan.
    #[inline]
    fn measure(&self, thread: u32) {
        let origin = loop {
            match self.origin.load(Ordering::Acquire) {
                0 => core::hint::spin_loop(),
                origin => break origin,
            }
        };
        // SAFETY: only this CPU uses it from the origin until it is done.
        let job = unsafe { self.job(thread) };
        if let Ok(alarm) = &mut job.alarm {
            // Earlier events do not count.
            alarm.sleep_until(origin - self.to_tsc.convert(JUST_BEFORE_NS));
        }
        let before = bare::counters();
        self.go_through(thread, origin, job);
        cpu::disable_interrupts();
        for (place, ((_, before), (_, after))) in
            before.into_iter().zip(bare::counters()).enumerate()
        {
            job.counted[place] = after - before;
        }
    }

    #[inline]
    fn go_through(&self, thread: u32, origin: u64, job: &mut Job) {
        let (Ok(alarm), Some(recorder)) = (&mut job.alarm, &mut job.recorder) else {
            return;
        };
        let mut pace = Pace::new(self.plan, thread);
        while let Some(due) = pace.due() {
            let planned = origin + self.to_tsc.convert(due.at_ns);
            let ends = self.ends.load(Ordering::Relaxed);
            let woke = match ends || asked_to_end() {
                true => 0,
                false => alarm.sleep_until(planned),
            };
            if woke < planned {
                // Only the host's request ends a sleep early.
                self.cut_short.fetch_or(!ends, Ordering::Relaxed);
                return;
            }
            let latency_ns = self.to_ns.convert(woke - planned);
            recorder.record(due.index, latency_ns);
            recorder.missed(pace.woke(due.at_ns + latency_ns));
            if self.plan.above_ns.is_some_and(|above| latency_ns > above) {
                if let Some(place) = job.exceeded.get_mut(job.exceeded_kept) {
                    *place = Exceeded {
                        set: thread,
                        index: due.index,
                        value: latency_ns,
                    };
                    job.exceeded_kept += 1;
                }
                if !self.plan.go_on {
                    self.ends.store(true, Ordering::Relaxed);
                }
            }
        }
    }
}

fn report(
    shared: &Shared<'_>,
    origin_ns: u64,
    output: &mut Output<'_, impl Platform>,
) -> Result<(), Stop> {
    let mut counted = [0; 3];
    for thread in 0..shared.plan.threads {
        // SAFETY: all CPUs are done.
        let job = unsafe { shared.job(thread) };
        for (sum, count) in counted.iter_mut().zip(job.counted) {
            *sum += count;
        }
        for exceeded in &job.exceeded[..job.exceeded_kept] {
            output.put(&Record::Exceeded(*exceeded))?;
        }
        let identity = Identity {
            tid: 0,
            cpu: Some(cpu_of(shared.plan, thread)),
            policy: "interrupt",
            priority: 0,
        };
        if let Some(recorder) = job.recorder.take() {
            recorder.report(identity, origin_ns, output)?;
        }
    }
    if shared.cut_short.load(Ordering::Relaxed) {
        output.put(&Record::CutShort)?;
    }
    for ((name, _), count) in bare::counters().into_iter().zip(counted) {
        let labels = "";
        output.put(&Record::Counter(Counter {
            name,
            count,
            labels,
        }))?;
    }
    // SAFETY: as above.
    let alarm = &unsafe { shared.job(0) }.alarm;
    let value = match alarm.as_ref().ok().and_then(Alarm::uncertainty_ppm) {
        Some(ppm) => output::text(&format_args!(
            "count of the APIC, its rate known in terms of the TSC to {ppm:.1} ppm of the time slept"
        )),
        None => output::text(&"TSC deadline"),
    };
    Ok(output.fact("wake-up timer", "", &value)?)
}
