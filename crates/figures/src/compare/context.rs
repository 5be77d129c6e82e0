//! What surrounded the measurements of two sides, and in what that differs.

use std::collections::{BTreeMap, BTreeSet};

use tare_host::{Finding, Machine};
use tare_results::model::{Cell, CellPlan, Fact, STARTED};
use tare_results::target::Kernel;

use super::SideDifference;
use super::sides::{ComparedRun, Side};
use crate::group::distinct;
use crate::run::Run;
use crate::words::{NONE, without_figures};

/// The machine, settings and kernels of a run, and its notices.
#[derive(Clone, Debug)]
pub struct Context {
    machine: Option<Machine>,
    /// The settings that were changed for the run, and the doctor's findings of others.
    settings: Vec<(String, String)>,
    /// The text in place of a setting that only others have.
    missing: &'static str,
    /// The kernels under which its targets ran.
    kernels: BTreeSet<String>,
    /// The words of all kernel command lines.
    words: BTreeSet<String>,
    /// The words of the plan of all cells of one experiment and name, whatever target and load.
    plans: BTreeMap<(String, String), BTreeSet<String>>,
    /// The agents and images that measured, by the begin of their SHA-256.
    agents: BTreeSet<String>,
    /// The notices of its cells.
    notices: Vec<String>,
}

impl Context {
    /// Takes what is known of some cells of a run.
    pub fn of(run: &Run, cells: &[&Cell]) -> Self {
        let cells = || cells.iter().copied();
        // The command and the machine that another tool's file names.
        let imported = cells().filter(|cell| cell.plan.target.kernel() == Kernel::Unknown);
        let stated = imported.flat_map(facts_of).filter(|fact| {
            let of_all = fact
                .labels
                .number("thread")
                .is_none_or(|thread| thread == 0);
            of_all && !["thread id", "CPU", STARTED].contains(&&*fact.name)
        });
        let stated = stated.map(|fact| (fact.name.clone(), fact.value.clone()));
        let changed = run.plan.settings.iter();
        let changed = changed.map(|setting| (setting.path.clone(), setting.value.clone()));
        let findings = run.machine.iter().flat_map(|record| &record.findings);
        let findings = findings.filter(|finding| SETTINGS.contains(&&*finding.id));
        let found = findings.map(|finding| (finding.title.to_lowercase(), set_to(finding)));
        let records = cells().filter_map(|cell| cell.outcome.record());
        let programs = || records.clone().flat_map(|record| &record.programs);
        let facts = programs().flat_map(|program| &program.facts);
        let lines = facts.filter(|fact| fact.name == "kernel command line");
        let mut plans: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for plan in cells().map(|cell| &cell.plan) {
            let key = (plan.experiment.clone(), plan.labels.to_string());
            plans.entry(key).or_default().extend(planned(plan));
        }
        let machine = run.machine.as_ref().map(|record| &record.machine);
        let is_on_machine = |cell: &Cell| cell.plan.target.kernel().is_host();
        let machines = machine.iter().filter(|_| cells().any(is_on_machine));
        let machines = machines.map(|machine| machine.kernel.release.to_string());
        let notices = cells().flat_map(|cell| cell.notices.iter().cloned());
        Self {
            notices: distinct(notices),
            plans,
            missing: match run.is_imported() {
                true => "not stated",
                false => "not changed",
            },
            machine: machine.cloned(),
            settings: changed.chain(found).chain(stated).collect(),
            kernels: programs()
                .filter_map(|program| program.agent.kernel.clone())
                .chain(machines)
                .collect(),
            agents: programs()
                .map(|program| program.agent.sha256.chars().take(12).collect())
                .collect(),
            words: lines
                .flat_map(|fact| {
                    // Words behind these dashes are the first process's.
                    let words = fact.value.split_whitespace();
                    words.take_while(|word| *word != "--")
                })
                .map(str::to_owned)
                .collect(),
        }
    }

    /// Returns the value of a setting.
    fn setting(&self, name: &str) -> String {
        let mut own = self.settings.iter();
        own.find(|(own, _)| own == name)
            .map_or_else(|| self.missing.to_owned(), |(_, value)| value.clone())
    }
}

/// Returns the words by which a cell's work, server and arrivals were planned.
fn planned(plan: &CellPlan) -> Vec<String> {
    let works = [&plan.work].into_iter().chain(&plan.server);
    let words = works.flat_map(|work| work.words.split_whitespace());
    let mut all: Vec<String> = words.map(str::to_owned).collect();
    if let Some(arrivals) = &plan.arrivals {
        let (warmup, measure) = (arrivals.warmup_ns, arrivals.measure_ns);
        all.extend([format!("warmup={warmup}ns"), format!("measure={measure}ns")]);
        all.push(format!("concurrency-limit={}", arrivals.most_live));
        let most = arrivals.most_bytes.iter();
        all.extend(most.map(|bytes| format!("memory-limit={bytes}")));
    }
    all
}

/// Returns the facts that the programs of a cell reported.
pub(super) fn facts_of(cell: &Cell) -> impl Iterator<Item = &Fact> {
    let programs = cell.outcome.record().into_iter();
    let programs = programs.flat_map(|record| &record.programs);
    programs.flat_map(|program| &program.facts)
}

/// Returns what a finding found, without how busy something was.
fn set_to(finding: &Finding) -> String {
    let set = finding.state.split_once(", which is ");
    set.map_or(&*finding.state, |(set, _)| set).to_owned()
}

/// The doctor's checks of what somebody has set, as opposed to what happens.
const SETTINGS: [&str; 14] = [
    "governor",
    "turbo",
    "smt",
    "isolation",
    "idle-states",
    "irqbalance",
    "mitigations",
    "numa-balancing",
    "rt-throttling",
    "stat-interval",
    "swap",
    "thp",
    "timer-migration",
    "watchdog",
];

/// Finds in what the sides differ that bears on their figures.
pub(super) fn differences(base: &Side, new: &Side) -> Vec<SideDifference> {
    type Of = fn(&ComparedRun) -> String;
    let told = |run: &ComparedRun, of: fn(&Machine) -> String| {
        let machine = run.context.machine.as_ref();
        machine.map_or_else(|| "not described".to_owned(), of)
    };
    type OfMachine = fn(&Machine) -> String;
    let described: [(&str, OfMachine); 5] = [
        ("processor", |m| m.processor.model_name.to_string()),
        ("microcode", |m| m.processor.microcode.to_string()),
        ("kernel of the machine", |m| m.kernel.release.to_string()),
        ("its preemption model", |m| {
            m.kernel.preemption.model.to_string()
        }),
        ("clock source", |m| m.clock.current.to_string()),
    ];
    let known: [(&str, Of); 2] = [
        ("measured CPU", |run| {
            run.identity
                .cpu
                .map_or_else(|| "any".to_owned(), |cpu| cpu.to_string())
        }),
        ("version of tare", |run| run.identity.tare_version.clone()),
    ];
    let all = |side: &Side, of: &dyn Fn(&ComparedRun) -> String| {
        let values: BTreeSet<String> = side.runs.iter().map(of).collect();
        values.into_iter().collect::<Vec<_>>().join(" and ")
    };
    let mut found = Vec::new();
    let mut add = |what: &str, of: &dyn Fn(&ComparedRun) -> String| {
        let (base, new) = (all(base, of), all(new, of));
        if base != new {
            let what = what.to_owned();
            found.push(SideDifference { what, base, new });
        }
    };
    for (what, of) in described {
        add(what, &|run| told(run, of));
    }
    for (what, of) in known {
        add(what, &of);
    }
    add("targets", &|run| {
        let targets: BTreeSet<&str> = run.rows.0.iter().map(|row| row.target.as_str()).collect();
        targets.into_iter().collect::<Vec<_>>().join(", ")
    });
    add(
        "kernels of targets",
        &|run| match run.context.kernels.len() {
            0 => NONE.to_owned(),
            _ => Vec::from_iter(run.context.kernels.iter().cloned()).join(", "),
        },
    );
    // Targets of one run have their own.
    if !base.is_of_same_runs(new) {
        add("agents and images, SHA-256", &|run| {
            Vec::from_iter(run.context.agents.iter().cloned()).join(", ")
        });
    }
    let runs = || base.runs.iter().chain(&new.runs);
    for name in
        distinct(runs().flat_map(|run| run.context.settings.iter().map(|(name, _)| name.clone())))
    {
        add(&name, &|run| run.context.setting(&name));
    }
    // Of plans and command lines only the words that the other side lacks; of plans those of what
    // both measured.
    let plans = |side: &Side| {
        let mut all: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for (key, words) in side.runs.iter().flat_map(|run| &run.context.plans) {
            all.entry(key.clone()).or_default().extend(words.clone());
        }
        all
    };
    let lacked = |own: &BTreeMap<_, BTreeSet<String>>, other: &BTreeMap<_, BTreeSet<String>>| {
        let both = own
            .iter()
            .filter_map(|(key, own)| Some(own - other.get(key)?));
        both.flatten().collect()
    };
    let words = |side: &Side| -> BTreeSet<String> {
        let runs = side.runs.iter();
        runs.flat_map(|run| run.context.words.clone()).collect()
    };
    let (base_plans, new_plans) = (plans(base), plans(new));
    let (base_words, new_words) = (words(base), words(new));
    let lacking: [(&str, [BTreeSet<String>; 2]); 2] = [
        (
            "parameters",
            [
                lacked(&base_plans, &new_plans),
                lacked(&new_plans, &base_plans),
            ],
        ),
        (
            "words of kernel command lines",
            [&base_words - &new_words, &new_words - &base_words],
        ),
    ];
    for (what, sides) in lacking
        .into_iter()
        .filter(|(_, sides)| sides[0] != sides[1])
    {
        let [base, new] = sides.map(|words| match words.is_empty() {
            true => NONE.to_owned(),
            false => Vec::from_iter(words).join(" "),
        });
        let what = what.to_owned();
        found.push(SideDifference { what, base, new });
    }
    let notices = [base, new].map(|side| side.runs.iter().flat_map(|run| &run.context.notices));
    found.extend(of_one_side("notice", notices));
    found
}

/// Returns the notices that only one of the sides has, by their first clauses; those that differ in
/// figures alone are the same.
pub(super) fn of_one_side<'a>(
    what: &str,
    sides: [impl Iterator<Item = &'a String>; 2],
) -> Vec<SideDifference> {
    let of = |text: &String| {
        let ends = ["; ", ". ", " ("].iter();
        let end = ends.filter_map(|end| text.find(end)).min();
        let clause = text[..end.unwrap_or(text.len())].to_owned();
        (without_figures(&clause), clause)
    };
    let [base, new] = sides.map(|texts| BTreeMap::from_iter(texts.map(of)));
    let only = |own: &BTreeMap<String, String>, other: &BTreeMap<String, String>| {
        let only = own.iter().filter(|(words, _)| !other.contains_key(*words));
        Vec::from_iter(only.map(|(_, text)| text.clone()))
    };
    let (of_base, of_new) = (only(&base, &new), only(&new, &base));
    let difference = |base: String, new: String| SideDifference {
        what: what.to_owned(),
        base,
        new,
    };
    let of_base = of_base.into_iter();
    let of_base = of_base.map(|text| difference(text, NONE.to_owned()));
    let of_new = of_new.into_iter();
    let of_new = of_new.map(|text| difference(NONE.to_owned(), text));
    of_base.chain(of_new).collect()
}
