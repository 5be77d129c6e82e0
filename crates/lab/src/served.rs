//! The server of one cell, while a client asks it.
//!
//! Its CPU time is that of all threads on this machine that belong to it: of a guest, its
//! hypervisor's; of a container, its runtime's. It counts from the moment at which the client says
//! when it begins, some 250 ms before it does, to its first result: idle times are included.

use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use tare_guard::{Guard, Interrupt};
use tare_host::Source;
use tare_host::sample::{ThreadTime, ThreadTimes};
use tare_networks::TapNetwork;
use tare_results::model::{self, Labels, Value};
use tare_results::target::Kernel;
use tare_results::work::Work;
use tare_targets::instance::now_ns;
use tare_targets::{Instance, Job, Target, TargetError, process};
use tare_wire::cpus::Cpus;

/// The label of a server's CPU time: what executes its own code, or what is around that.
const PLACE: &str = "place";
/// The label of the time from its start: until its line on the console, or its first answer.
const UNTIL: &str = "until";

/// How often is looked whether a server has ended.
const EVERY: Duration = Duration::from_secs(1);

/// A server in its own network.
#[derive(Debug)]
pub(crate) struct Server {
    // Before the network in which it is.
    instance: Instance,
    network: TapNetwork,
    around: Around,
    /// The CPUs to which its threads are pinned.
    cpus: Option<Cpus>,
    before: Option<ThreadTimes>,
    spent: Vec<ThreadTime>,
    /// When its first right answer came, by CLOCK_MONOTONIC in ns.
    answered_ns: Option<u64>,
    /// When it is looked next whether it has ended.
    next_look: Instant,
    /// How it has ended, if it was seen that it has; it should not have.
    pub(crate) ended: Option<String>,
}

impl Server {
    /// Starts a server, and waits until it says that it answers, and until its first right answer.
    pub(crate) fn start(
        target: &dyn Target,
        work: &Work,
        is_answered: &(dyn Fn() -> bool + Sync),
        guard: &Guard,
        interrupt: &Interrupt,
    ) -> Result<Self, TargetError> {
        let network = TapNetwork::new()?;
        let job = Job {
            network: Some(&network),
            ..Job::idle(work)
        };
        let mut instance = target.start(&job, guard)?;
        instance.wait_until_ready(interrupt)?;
        let is_answered = network.clients.within(is_answered).unwrap_or_default();
        Ok(Self {
            answered_ns: is_answered.then(now_ns),
            instance,
            network,
            around: match target.spec().capabilities() {
                kind if kind.kernel != Kernel::Host => Around::Guest,
                kind if kind.is_direct => Around::Nothing,
                _ => Around::Runtime,
            },
            cpus: work.cpus,
            before: None,
            spent: Vec::new(),
            next_look: Instant::now() + EVERY,
            ended: None,
        })
    }

    /// Starts a client of it.
    pub(crate) fn client(&self, work: &Work, guard: &Guard) -> Result<Instance, TargetError> {
        Instance::start(process::client(&self.network, work)?, guard)
    }

    /// Returns the id of its process.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.instance.pid()
    }

    /// Records that the client begins.
    pub(crate) fn begins(&mut self) {
        self.before = self.times();
        // Threads of a process may choose their CPU, as those of Knot do; in a container they can't.
        let all = self.before.iter().flat_map(ThreadTimes::ids);
        for id in all.filter(|_| matches!(self.around, Around::Nothing)) {
            let mut set = CpuSet::new();
            let cpus = self.cpus.iter().flat_map(Cpus::iter);
            cpus.for_each(|cpu| set.set(cpu as usize));
            // One that has ended needs none.
            let _ = sched_setaffinity(Pid::from_raw(id.cast_signed()), &set);
        }
    }

    /// Records that the client is done, if it had begun.
    pub(crate) fn is_over(&mut self) {
        if let (Some(before), Some(after)) = (self.before.take(), self.times()) {
            self.spent = after.since(&before).collect();
        }
    }

    fn times(&self) -> Option<ThreadTimes> {
        let pid = self.instance.pid()?;
        Some(ThreadTimes::of(&Source::system(), pid))
    }

    /// Looks whether it has ended.
    pub(crate) fn look(&mut self) {
        let ended = self.instance.has_ended();
        let ended = ended.unwrap_or_else(|error| Some(error.to_string()));
        self.ended = self.ended.take().or(ended);
    }

    /// Looks whether it has ended, if it is time to. Returns after how long again.
    pub(crate) fn tick(&mut self) -> Duration {
        let now = Instant::now();
        if self.next_look <= now {
            self.look();
            self.next_look = now + EVERY;
        }
        self.next_look.saturating_duration_since(now)
    }

    /// Returns the times of its start.
    pub(crate) fn times_of_start(&self, planned_ns: u64) -> model::Instance {
        model::Instance {
            planned_ns,
            started_ns: self.instance.started_ns,
            ready_ns: self.instance.ready_ns(),
            ..model::Instance::default()
        }
    }

    /// Returns the CPU time that it used while it was asked, and the time from its start until it
    /// said that it answers and until it did, in ns.
    pub(crate) fn values(&self) -> impl Iterator<Item = Value> {
        let value = |measure: &str, label, ns: u64| Value {
            measure: measure.to_owned(),
            labels: Labels::of([label]),
            unit: "ns".to_owned(),
            value: ns as f64,
        };
        let of = |is_inside: bool, place| {
            let own = self.spent.iter();
            let own = own.filter(|one| self.is_inside(one) == is_inside);
            value("cpu", (PLACE, place), own.map(|one| one.ns).sum())
        };
        let started_ns = self.instance.started_ns;
        let until = [
            ("line", Some(self.instance.ready_ns())),
            ("answer", self.answered_ns),
        ];
        let ready = until.into_iter().filter_map(move |(until, at_ns)| {
            Some(value(
                "ready",
                (UNTIL, until),
                at_ns?.saturating_sub(started_ns),
            ))
        });
        let cpu = [of(true, "inside"), of(false, "outside")];
        cpu.into_iter().chain(ready)
    }

    /// Returns whether a thread executes the service, and nothing around it.
    fn is_inside(&self, thread: &ThreadTime) -> bool {
        match self.around {
            Around::Nothing => true,
            Around::Runtime => self.instance.pid() != Some(thread.process),
            Around::Guest => thread.thread.starts_with("CPU "),
        }
    }
}

/// The surroundings of a service within the process tree that was started.
#[derive(Clone, Copy, Debug)]
enum Around {
    Nothing,
    /// A container's runtime, which has started it.
    Runtime,
    /// A hypervisor, with a thread for each CPU of the guest.
    Guest,
}
