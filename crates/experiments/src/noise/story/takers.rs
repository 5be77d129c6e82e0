//! Who took the time that was lost: the kernel's events in the delays of all runs of a case.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::format::Numbers;
use tare_figures::interval::Time;
use tare_figures::notices::{Notice, Severity};
use tare_figures::rows::CellData;
use tare_figures::words::{self, NONE};
use tare_pages::Titled;
use tare_pages::kit::checks::{about, untraced};
use tare_pages::table::Table;
use tare_results::target::Kernel;
use tare_trace::takers::{Taker, takers, way_in_ns};
use tare_wire::record::STEAL;
use tare_wire::trace::MOST_TID;

use super::NAME;
use super::panels::{Panel, PerCpu, each, title};

const N: Numbers = Numbers::PLAIN;

/// The most who are named for a case by their time. Who took the longest delay is named as well, and
/// what no event explains; the others are one line.
const MOST: usize = 8;

/// The most who are named in a sentence, and the part of the time in delays from which on one is.
const TOLD: usize = 3;
const LEAST: f64 = 0.05;

/// The most names of threads of a process in the table.
const MOST_THREADS: usize = 4;

/// The part of the context switches that events have to show.
const MOST_SEEN: f64 = 0.9;

/// The most of a case and CPU that `summary.json` names.
const MOST_IN_JSON: usize = 100;

/// The time of a tick in which the kernel counts, in ns (USER_HZ).
const TICK_NS: f64 = 1e7;

/// The name of the processor's count of system management interrupts.
pub(super) const SMI: &str = "system management interrupts";

/// What stands above the table.
const TITLE: &str = "Who took the time";

/// Who took the CPU in the delays of a case, from the least that is explained on.
#[derive(Clone, Debug, Default)]
pub(super) struct Takers {
    takers: BTreeMap<Taker, Part>,
    /// Delays from this time on are explained, in ns.
    least_ns: f64,
    /// Time of the runs, in ns, and that of all repetitions: what lies between two is in no delay.
    wall_ns: f64,
    repetitions_ns: f64,
    /// How often the CPU went from the measured thread to another one: as the kernel counts, and as
    /// its events say.
    switches: [f64; 2],
    /// The longest usual way of the CPU into an interrupt in a run, in ns.
    way_ns: u64,
    /// Time that recording the events took, in ns; NaN if it is unknown.
    cost_ns: f64,
    /// Time in which these events came, in ns.
    recorded_ns: f64,
    /// System management interrupts, where the processor counts them.
    smi: Option<u64>,
    /// Time that the hypervisor says it took, in ns.
    stolen_ns: f64,
}

/// The part of one of them.
#[derive(Clone, Debug, Default)]
struct Part {
    /// Delays of which it took the greatest part.
    delays: u64,
    /// Time within delays, in ns.
    ns: u64,
    /// The longest delay of which it took the greatest part, in ns.
    longest_ns: u64,
    /// How often it came after it had been raised, and the sum of the times since then, in ns.
    waits: (u64, u64),
    /// The numbers of the threads, and their names; one above [`MOST_TID`] stands for several.
    threads: BTreeMap<u32, String>,
}

impl Takers {
    /// Adds a cell, or its part, to those of its case and CPU.
    pub fn take(cases: &mut PerCpu<Self>, data: &CellData<'_>) {
        let value = |measure| data.record.value(measure, &data.labels());
        let Some((hz, least_ns)) = data.hz().zip(value("explained")) else {
            return;
        };
        let who = cases.entry(data.plan()).entry(data.cpu).or_default();
        who.least_ns = least_ns;
        let cost_ns = value("recording").filter(|ns| *ns > 0.0);
        who.cost_ns += cost_ns.unwrap_or(f64::NAN);
        who.recorded_ns += value("recorded").unwrap_or(f64::NAN);
        for counter in data.counters() {
            match &*counter.name {
                SMI => *who.smi.get_or_insert_default() += counter.count,
                STEAL => who.stolen_ns += counter.count as f64 * TICK_NS,
                name if name.ends_with(" context switches") => {
                    who.switches[0] += counter.count as f64;
                }
                _ => {}
            }
        }
        who.switches[1] += value("switches").unwrap_or_default();
        let in_ns = |cycles: u64| cycles as f64 / hz * 1e9;
        for (head, _) in data.sets("gap").chain(data.sets("duration")) {
            who.wall_ns += in_ns(head.length());
            who.repetitions_ns += in_ns(head.sum);
            let own_ns = match head.measure.as_str() {
                "gap" => 0,
                _ => in_ns(head.min) as u64,
            };
            let sets = &data.record.sets;
            let is_own = |set: u32| sets.get(set as usize) == Some(head);
            let traces = data.record.traces.iter();
            let traces = Vec::from_iter(traces.filter(|trace| is_own(trace.set)).cloned());
            let way_ns = way_in_ns(&traces, own_ns);
            who.way_ns = who.way_ns.max(way_ns);
            for trace in &traces {
                let shares = takers(trace, own_ns, way_ns);
                for (taker, (count, ns)) in shares.waits {
                    let waits = &mut who.takers.entry(taker).or_default().waits;
                    waits.0 = waits.0.saturating_add(count);
                    waits.1 = waits.1.saturating_add(ns);
                }
                for (taker, threads) in shares.threads {
                    let part = who.takers.entry(taker).or_default();
                    part.threads.extend(threads);
                }
                let shares = shares.takers;
                if let Some((first, _)) = shares.first() {
                    let part = who.takers.entry(first.clone()).or_default();
                    part.delays = part.delays.saturating_add(trace.samples);
                    part.longest_ns = part.longest_ns.max(trace.greatest);
                }
                for (taker, ns) in shares {
                    let part = who.takers.entry(taker).or_default();
                    part.ns = part.ns.saturating_add(ns);
                }
            }
        }
    }

    /// Returns those who took time, the greatest part first.
    fn ranked(&self) -> Vec<(&Taker, &Part)> {
        let mut all = Vec::from_iter(&self.takers);
        all.sort_by_key(|(_, part)| std::cmp::Reverse(part.ns));
        all
    }

    /// Says who took the most of the time in delays: `process hog 61.0 % and softirq RCU 20.0 %`;
    /// other threads, which somebody can end or move, and what may be threads, before interrupts such
    /// as the timer's tick.
    pub fn told(&self) -> Option<String> {
        let ranked = self.ranked();
        let all: f64 = ranked.iter().map(|(_, part)| part.ns as f64).sum();
        let share = |part: &Part| part.ns as f64 / all;
        let named = ranked.iter().take(TOLD);
        let mut named = Vec::from_iter(named.filter(|(_, part)| share(part) >= LEAST));
        named.sort_by_key(|(taker, _)| match taker {
            Taker::Process { .. } | Taker::Thread { .. } | Taker::Unseen => 0,
            _ => 1,
        });
        let named = named.iter();
        let named = named.map(|(taker, part)| format!("{taker} {}", N.percent(share(part))));
        let named = Vec::from_iter(named);
        (!named.is_empty()).then(|| words::list(&named))
    }
}

/// Names a taker with its threads, if it has any:
/// `process rustc (threads opt cgu.02 and opt cgu.03), 2 tids`.
fn numbered(taker: &Taker, part: &Part) -> String {
    let mut name = taker.to_string();
    if let Taker::Process { name: process } = taker {
        let others = part.threads.values().filter(|thread| *thread != process);
        let mut others = Vec::from_iter(BTreeSet::from_iter(others.cloned()));
        let more = others.len().saturating_sub(MOST_THREADS);
        others.truncate(MOST_THREADS);
        others.extend((more > 0).then(|| format!("{more} more")));
        match others.len() {
            0 => {}
            1 => name += &format!(" (thread {})", others[0]),
            _ => name += &format!(" (threads {})", words::list(&others)),
        }
    }
    match (part.threads.keys().next(), part.threads.len()) {
        (None, _) => name,
        _ if part.threads.range(MOST_TID + 1..).next().is_some() => format!("{name}, several tids"),
        (Some(tid), 1) => format!("{name}, tid {tid}"),
        (_, several) => format!("{name}, {} tids", N.count(several as u64)),
    }
}

/// Returns who took most of the longest delay of a cell, if the kernel's events say so.
pub(super) fn of_longest(data: &CellData<'_>, longest: Time) -> Option<Taker> {
    // The clocks of delays and of events differ by less.
    const SAME: f64 = 0.99;
    let traces = data.record.traces.iter();
    let trace = traces.max_by_key(|trace| trace.greatest)?;
    let is_it = trace.complete && trace.greatest as f64 >= longest.ns? * SAME;
    let way_ns = way_in_ns(&data.record.traces, 0);
    let mut shares = takers(trace, 0, way_ns).takers.into_iter();
    shares.next().filter(|_| is_it).map(|(taker, _)| taker)
}

/// Who took time in the delays of a case, as `summary.json` has it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct TakerRow {
    /// The workload with its size, under its load, as tables name it.
    case: String,
    /// The target.
    target: String,
    /// The CPU, if several were measured at once.
    cpu: Option<u64>,
    /// The taker's name.
    name: String,
    /// The taker.
    taker: Taker,
    /// The numbers of the threads, as far as they are known one by one.
    tids: Vec<u32>,
    /// The names of the threads of a process.
    threads: BTreeSet<String>,
    /// Delays of which it took the greatest part.
    delays: u64,
    /// Time within delays, in ns.
    ns: u64,
    /// Its share of the time of all repetitions.
    share: f64,
    /// The longest delay of which it took the greatest part, in ns; 0 for none.
    longest_ns: u64,
}

impl TakerRow {
    /// Returns those of all cases; of each case and CPU the greatest part first.
    pub fn all(run: &Run, cases: &PerCpu<Takers>) -> Vec<Self> {
        let of_case = |case: &Case<'_>| -> Vec<Self> {
            let cpus = cases.of(case.plan).into_iter().flatten();
            let each = cpus.flat_map(|(cpu, who)| {
                let ranked = who.ranked().into_iter().take(MOST_IN_JSON);
                ranked.map(|(taker, part)| Self {
                    case: title(case.plan),
                    target: case.plan.target.text.clone(),
                    cpu: *cpu,
                    name: taker.to_string(),
                    taker: taker.clone(),
                    tids: part
                        .threads
                        .range(..=MOST_TID)
                        .map(|(tid, _)| *tid)
                        .collect(),
                    threads: part.threads.values().cloned().collect(),
                    delays: part.delays,
                    ns: part.ns,
                    share: part.ns as f64 / who.repetitions_ns,
                    longest_ns: part.longest_ns,
                })
            });
            each.collect()
        };
        Case::all(run, NAME).iter().flat_map(of_case).collect()
    }
}

/// Says where the kernel's events are missing, and where not all are there: then time may be called
/// outside that another thread took.
pub(super) fn missed(run: &Run, cases: &PerCpu<Takers>) -> Vec<Notice> {
    let all = Case::all(run, NAME);
    let has_events = |case: &Case<'_>| {
        let target = case.plan.target.text.clone();
        (target, cases.of(case.plan).is_some())
    };
    // The unikernel is no kernel that others share: it has no events to be missed.
    let kernels = all
        .iter()
        .filter(|case| case.plan.target.kernel() != Kernel::None);
    let untraced = untraced("--explain", kernels.map(has_events));
    let missed = all.iter().filter_map(|case| {
        let [counted, seen] = cases.of(case.plan)?.get(&None)?.switches;
        (seen < counted * MOST_SEEN).then(|| {
            let place = format!("{} on {}", title(case.plan), case.target());
            format!(
                "{} of {} for {place}",
                N.count(seen as u64),
                N.count(counted as u64)
            )
        })
    });
    let missed = about(
        (Severity::Note, "events-missed"),
        &missed.collect::<Vec<_>>(),
        |missed| {
            format!(
                "The kernel's events show fewer context switches of the measured thread than it counts ({missed}): what is called outside \
                 this kernel may be other threads."
            )
        },
    );
    untraced.into_iter().chain(missed).collect()
}

/// Returns from which delay on they are explained.
pub(super) fn least(cases: &PerCpu<Takers>) -> Option<String> {
    let who = each(cases).next()?;
    Some(N.ns(who.least_ns, None))
}

/// Returns the table of all cases, in the order of the panels.
pub(super) fn titled(panels: &[Panel<'_>], cases: &PerCpu<Takers>) -> Titled {
    let least = least(cases).unwrap_or_default();
    let mut all = each(cases).flat_map(|who| who.ranked().into_iter().take(MOST));
    let has_waits = all.any(|(_, part)| part.waits.0 > 0);
    let waits = has_waits.then_some("since raised");
    let columns = ["", "delays", "per s", "of the time", "longest"].into_iter();
    let mut table = Table::new(columns.chain(waits)).of_prose();
    for member in panels.iter().flat_map(|panel| &panel.members) {
        let who = member.of(cases).filter(|who| !who.takers.is_empty());
        let Some(who) = who else { continue };
        table.heading(format!("{} · {}", title(member.case.plan), member.name()));
        let ranked = who.ranked();
        let row = |name: String, part: &Part| {
            let longest = match part.longest_ns {
                0 => NONE.to_owned(),
                ns => N.ns(ns as f64, None),
            };
            let wait = has_waits.then(|| match part.waits {
                (0, _) => NONE.to_owned(),
                (count, ns) => N.ns(ns as f64 / count as f64, None),
            });
            let cells = [
                name,
                N.count(part.delays),
                N.rate(part.delays as f64 / who.wall_ns * 1e9),
                N.percent(part.ns as f64 / who.repetitions_ns),
                longest,
            ];
            cells.into_iter().chain(wait)
        };
        let longest_ns = ranked.iter().map(|(_, part)| part.longest_ns).max();
        let (named, others): (Vec<_>, Vec<_>) =
            (1..).zip(ranked).partition(|(rank, (taker, part))| {
                let is_of_events = !matches!(taker, Taker::Outside | Taker::Unseen);
                *rank <= MOST || !is_of_events || Some(part.longest_ns) == longest_ns
            });
        for (_, (taker, part)) in named {
            table.row(row(numbered(taker, part), part));
        }
        if !others.is_empty() {
            let sum = others
                .iter()
                .fold(Part::default(), |all, (_, (_, part))| Part {
                    delays: all.delays.saturating_add(part.delays),
                    ns: all.ns.saturating_add(part.ns),
                    longest_ns: all.longest_ns.max(part.longest_ns),
                    ..Part::default()
                });
            let count = words::counted(N, others.len() as u64, "other", "others");
            table.row(row(count, &sum));
        }
    }
    let shares = each(cases).map(|who| who.cost_ns / who.recorded_ns);
    let cost = match shares.reduce(f64::max).filter(|share| !share.is_nan()) {
        Some(share) => format!(
            " Recording the events took about {} of the time.",
            N.percent(share)
        ),
        None => String::new(),
    };
    let way_ns = each(cases).map(|who| who.way_ns).max();
    let way = match way_ns.filter(|ns| *ns > 0) {
        Some(ns) => format!(
            " The usual way into an interrupt, up to {} here, counts as the interrupt's.",
            N.ns(ns as f64, None)
        ),
        None => String::new(),
    };
    let smi = match each(cases)
        .filter_map(|who| who.smi)
        .reduce(|all, of| all + of)
    {
        Some(0) => " The processor counted no system management interrupts (SMIs).".to_owned(),
        Some(count) => format!(
            " The processor counted {} (SMIs).",
            words::counted(
                N,
                count,
                "system management interrupt",
                "system management interrupts"
            )
        ),
        None => String::new(),
    };
    let stolen = each(cases).map(|who| who.stolen_ns / who.wall_ns);
    let stolen = match stolen.reduce(f64::max).filter(|share| *share > 0.0) {
        Some(share) => format!(
            " A hypervisor says that it took up to {} of a case's time (steal, counted in steps of 10 ms).",
            N.percent(share)
        ),
        None => String::new(),
    };
    let is_seen = each(cases).all(|who| !who.takers.contains_key(&Taker::Unseen));
    let unseen = match is_seen {
        true => "",
        false => {
            " Not recorded is time whose events were overwritten, or before which the kernel left out a switch."
        }
    };
    let waited = match has_waits {
        true => " Since raised: the mean time from where a softirq was raised until it began.",
        false => "",
    };
    Titled {
        title: TITLE.to_owned(),
        read: format!(
            "Delays of {least} or more, joined with the kernel's events on the same CPU; all runs together. A delay counts for whom most of it \
             belongs to; times are those in all delays. What no event explains was taken from outside this kernel: by the \
             hypervisor, or firmware.{unseen}{stolen}{smi}{way}{waited}{cost}"
        ),
        table,
    }
}
