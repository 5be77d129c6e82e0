//! The server of one cell, while a client asks it.
//!
//! Its CPU time, page faults and wake-ups are those of all threads on this machine that belong to it:
//! of a guest, its hypervisor's; of a container, those in its network and of what has started them, a
//! runtime or its monitor. They count from [`LEAD`] before the client's first request to its first
//! result: idle times are included. Read later than that request, they are unknown.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use tare_guard::{Guard, Interrupt};
use tare_host::Source;
use tare_host::sample::{ThreadTime, ThreadTimes, guest_resident, vm_exits};
use tare_networks::{Network, TapNetwork, UserNetwork};
use tare_results::model::{self, Labels, Value};
use tare_results::target::Kernel;
use tare_results::work::Work;
use tare_targets::instance::now_ns;
use tare_targets::server::STACK;
use tare_targets::{Instance, Job, Target, TargetError, process};
use tare_wire::cpus::Cpus;

/// The label of a server's cost: what executes its own code, or what is around that.
const PLACE: &str = "place";
/// The label of the time from its start: until its line on the console, or its first answer.
const UNTIL: &str = "until";
/// The label of exits from a guest.
const REASON: &str = "reason";

/// How often is looked whether a server has ended.
const EVERY: Duration = Duration::from_secs(1);
/// How long before the first request its cost is read. A server that spins has this much too much.
const LEAD: Duration = Duration::from_millis(20);

/// A server in its own network.
#[derive(Debug)]
pub(crate) struct Server {
    // Before the network in which it is.
    instance: Instance,
    network: Network,
    around: Around,
    /// The CPUs to which its threads are pinned.
    cpus: Option<Cpus>,
    before: Option<Cost>,
    /// When the client sends its first request, until its cost is read for that.
    begins_ns: Option<u64>,
    /// The cost of each thread since then, where both are known.
    spent: Option<Vec<ThreadTime>>,
    /// Whether the kernel counts the time in its guest.
    has_guest_time: bool,
    exits: BTreeMap<String, u64>,
    /// Its resident memory inside and outside, in bytes, when the client was done.
    memory: Option<[u64; 2]>,
    /// When its first right answer came, by CLOCK_MONOTONIC in ns.
    answered_ns: Option<u64>,
    /// When it is looked next whether it has ended.
    next_look: Instant,
    /// How it has ended, if it was seen that it has; it should not have.
    pub(crate) ended: Option<String>,
}

impl Server {
    /// Starts a server, and waits until it says that it answers. `user_port` is the port that QEMU
    /// forwards to it, where it has QEMU's user-mode network.
    pub(crate) fn start(
        target: &dyn Target,
        work: &Work,
        user_port: Option<u16>,
        guard: &Guard,
        interrupt: &Interrupt,
    ) -> Result<Self, TargetError> {
        let has_own_sockets = target.spec().kernel().is_host() && work.words != STACK;
        let network = match user_port {
            Some(port) => Network::User(UserNetwork::new(&[port])?),
            None if has_own_sockets => Network::Tap(TapNetwork::without_tap()?),
            None => Network::Tap(TapNetwork::new()?),
        };
        let job = Job {
            network: Some(&network),
            ..Job::idle(work)
        };
        let mut instance = target.start(&job, guard)?;
        instance.wait_until_ready(interrupt)?;
        Ok(Self {
            answered_ns: None,
            instance,
            around: match target.spec().capabilities() {
                kind if kind.kernel != Kernel::Host => Around::Guest,
                kind if kind.is_direct => Around::Nothing,
                _ => Around::Runtime(network.member()?.name()?),
            },
            network,
            cpus: work.cpus,
            before: None,
            begins_ns: None,
            spent: None,
            has_guest_time: false,
            exits: BTreeMap::new(),
            memory: None,
            next_look: Instant::now() + EVERY,
            ended: None,
        })
    }

    /// Returns where its port is reached.
    pub(crate) fn address(&self, port: u16) -> SocketAddr {
        self.network.address(port)
    }

    /// Waits for its first right answer, as a client of it. Returns whether there was one.
    pub(crate) fn wait_for_answer(&mut self, is_answered: &(dyn Fn() -> bool + Sync)) -> bool {
        let is_answered = self.network.within(is_answered).unwrap_or_default();
        self.answered_ns = is_answered.then(now_ns);
        is_answered
    }

    /// Starts a client of it.
    pub(crate) fn client(&self, work: &Work, guard: &Guard) -> Result<Instance, TargetError> {
        Instance::start(process::client(&self.network, work)?, guard)
    }

    /// Returns the id of its process.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.instance.pid()
    }

    /// Records when the client begins, by CLOCK_MONOTONIC in ns.
    pub(crate) fn begins(&mut self, origin_ns: u64) {
        // Read once more later, if there is time.
        let cost = self.cost();
        // Threads of a process may choose their CPU, as those of Knot do; in a container they can't.
        let all = cost.iter().flat_map(|cost| cost.threads.ids());
        for id in all.filter(|_| matches!(self.around, Around::Nothing)) {
            let mut set = CpuSet::new();
            let cpus = self.cpus.iter().flat_map(Cpus::iter);
            cpus.for_each(|cpu| set.set(cpu as usize));
            // One that has ended needs none.
            let _ = sched_setaffinity(Pid::from_raw(id.cast_signed()), &set);
        }
        self.before = cost.filter(|cost| cost.is_before(origin_ns));
        self.begins_ns = Some(origin_ns);
    }

    /// Records that the client is done, if it had begun.
    pub(crate) fn is_over(&mut self) {
        if let (Some(before), Some(mut after)) = (self.before.take(), self.cost()) {
            self.spent = Some(after.threads.since(&before.threads).collect());
            self.has_guest_time = after.threads.has_guest_time();
            for (reason, number) in &mut after.exits {
                let earlier = before.exits.get(reason).copied();
                *number = number.saturating_sub(earlier.unwrap_or_default());
            }
            self.exits = after.exits;
            self.memory = self.memory(&after.threads);
        }
    }

    fn memory(&self, threads: &ThreadTimes) -> Option<[u64; 2]> {
        let source = Source::system();
        let each = threads.resident(&source);
        let all: u64 = each.iter().map(|(_, bytes)| bytes).sum();
        let inside = match self.around {
            Around::Nothing => all,
            Around::Runtime(_) => {
                let own = each.iter().filter(|(is_in_network, _)| *is_in_network);
                own.map(|(_, bytes)| bytes).sum()
            }
            Around::Guest => guest_resident(&source, self.instance.pid()?)?,
        };
        Some([inside, all.saturating_sub(inside)])
    }

    fn cost(&self) -> Option<Cost> {
        let (source, pid) = (Source::system(), self.instance.pid()?);
        let network = match &self.around {
            Around::Runtime(network) => Some(&**network),
            Around::Nothing | Around::Guest => None,
        };
        let threads = ThreadTimes::of(&source, pid, network);
        let exits = vm_exits(&source, pid);
        // A server has threads: without any, they could not be read.
        threads.ids().next()?;
        Some(Cost {
            threads,
            exits,
            at_ns: now_ns(),
        })
    }

    /// Looks whether it has ended.
    pub(crate) fn look(&mut self) {
        let ended = self.instance.has_ended();
        let ended = ended.unwrap_or_else(|error| Some(error.to_string()));
        self.ended = self.ended.take().or(ended);
    }

    /// Looks whether it has ended, and reads its cost, if it is time to. Returns after how long again.
    pub(crate) fn tick(&mut self) -> Duration {
        if let Some(begins_ns) = self.begins_ns {
            let left = Duration::from_nanos(begins_ns.saturating_sub(now_ns()));
            if left > LEAD {
                return left - LEAD;
            }
            // Late, reading would take from the first requests.
            if left > LEAD / 2 {
                let cost = self.cost().filter(|cost| cost.is_before(begins_ns));
                self.before = cost.or(self.before.take());
            }
            self.begins_ns = None;
        }
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
            ready_ns: match self.instance.ready_ns() {
                // A command's first answer shows it.
                0 => self.answered_ns.unwrap_or_default(),
                line_ns => line_ns,
            },
            ..model::Instance::default()
        }
    }

    /// Returns its cost while it was asked, if it is known: CPU time in ns, page faults, wake-ups and exits from a
    /// guest; its resident memory and the size of its image in bytes; and the time from its start
    /// until it said that it answers and until it did, in ns.
    pub(crate) fn values(&self) -> impl Iterator<Item = Value> {
        let value = |measure: &str, labels, number: u64, unit: &str| Value {
            measure: measure.to_owned(),
            labels,
            unit: unit.to_owned(),
            value: number as f64,
        };
        let at = |place: &str| Labels::of([(PLACE, place)]);
        let of = move |(is_inside, place): (bool, &str)| {
            let spent = self.spent.as_ref()?;
            let own = |number: fn(&ThreadTime) -> u64| {
                let own = spent.iter();
                let own = own.filter(|one| self.is_inside(one) == is_inside);
                own.map(number).sum()
            };
            Some([
                value("cpu", at(place), self.cpu_ns(spent, is_inside), "ns"),
                value("faults", at(place), own(|one| one.faults), ""),
                value("wake-ups", at(place), own(|one| one.sleeps), ""),
            ])
        };
        let exits = self.exits.iter().map(move |(name, number)| {
            let reason = match name.trim_end_matches("exits").trim_end_matches('_') {
                "" => "all",
                reason => reason,
            };
            value("exits", Labels::of([(REASON, reason)]), *number, "")
        });
        let memory = self.memory.into_iter().flatten().zip(["inside", "outside"]);
        let memory = memory.map(move |(bytes, place)| value("memory", at(place), bytes, "bytes"));
        let image_bytes = self.instance.image_bytes();
        let image = value("image", Labels::default(), image_bytes, "bytes");
        let image = (image_bytes > 0).then_some(image);
        let started_ns = self.instance.started_ns;
        let line_ns = Some(self.instance.ready_ns()).filter(|ns| *ns > 0);
        let until = [("line", line_ns), ("answer", self.answered_ns)];
        let ready = until.into_iter().filter_map(move |(until, at_ns)| {
            Some(value(
                "ready",
                Labels::of([(UNTIL, until)]),
                at_ns?.saturating_sub(started_ns),
                "ns",
            ))
        });
        let places = [(true, "inside"), (false, "outside")];
        let cost = places.into_iter().filter_map(of).flatten().chain(exits);
        cost.chain(memory).chain(image).chain(ready)
    }

    /// Returns its CPU time inside or outside: of a guest as the kernel counts it there, if it does,
    /// else that of its threads.
    fn cpu_ns(&self, spent: &[ThreadTime], is_inside: bool) -> u64 {
        let each = spent.iter().map(|one| {
            let inside_ns = match (self.has_guest_time, self.is_inside(one)) {
                (true, _) => one.guest_ns.min(one.ns),
                (false, true) => one.ns,
                (false, false) => 0,
            };
            if is_inside {
                inside_ns
            } else {
                one.ns - inside_ns
            }
        });
        each.sum()
    }

    /// Returns whether a thread executes the service, and nothing around it.
    fn is_inside(&self, thread: &ThreadTime) -> bool {
        match &self.around {
            Around::Nothing => true,
            Around::Runtime(_) => thread.is_in_network,
            Around::Guest => thread.thread.starts_with("CPU "),
        }
    }
}

/// The cost of a server so far.
#[derive(Debug)]
struct Cost {
    threads: ThreadTimes,
    exits: BTreeMap<String, u64>,
    /// When all of it had been read, by CLOCK_MONOTONIC in ns.
    at_ns: u64,
}

impl Cost {
    /// Returns whether it lacks no part of what begins at a time.
    fn is_before(&self, begins_ns: u64) -> bool {
        self.at_ns <= begins_ns
    }
}

/// The surroundings of a service within the process tree that was started.
#[derive(Debug)]
enum Around {
    Nothing,
    /// A container's runtime or monitor, outside of its network, which has this name.
    Runtime(String),
    /// A hypervisor, with a thread for each CPU of the guest.
    Guest,
}
