//! How wake-ups are shown: how late threads ran that slept until absolute times, and why.
//!
//! Two latencies stand side by side everywhere. The *service* latency is cyclictest's: of the wake-ups that
//! happened. The *response* latency counts every activation, each missed one with what it waited, so that a
//! stall of a hundred intervals counts a hundred times ("coordinated omission" is the name of not doing so).

mod checks;
mod csv;
mod landolfi_2018;
mod late;
mod measures;
mod pictures;
mod tables;
mod verdict;
mod words;
mod worst;

use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tare_report::analysis::Alarm;
use tare_report::cases::Case;
use tare_report::claims::Published;
use tare_report::html::places::counters;
use tare_report::html::{Detail, Section};
use tare_report::rows::{Carried, CellData, Figure, Measure};
use tare_report::tables::{Line, Tabled};
use tare_report::terminal::Page;
use tare_report::verdict::Verdict;
use tare_report::{Collect, Run, Story, View};
use tare_results::model::{CellPlan, Plan};

use super::{NAME, Wakeup};
use pictures::Pictures;
use words::{N, Phase, cases, time, under};
pub use worst::Worst;

impl View for Wakeup {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn measures(&self) -> &'static [Measure] {
        measures::MEASURES
    }

    fn studies(&self) -> &'static [&'static Published] {
        &[&landolfi_2018::STUDY]
    }

    fn begin(&self, _plan: &Plan) -> Box<dyn Collect> {
        Box::new(Woken::default())
    }

    fn live(&self, data: &CellData<'_>) -> Result<String, String> {
        live(data)
    }
}

/// What rows can't hold of a run's wake-ups.
#[derive(Debug, Default)]
struct Woken {
    kept: Vec<Kept>,
}

/// That of the cells that repeat each other.
#[derive(Debug)]
struct Kept {
    plan: CellPlan,
    pictures: Pictures,
    worst: Vec<Worst>,
}

/// The part of `summary.json` that only wakeup has.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WakeupStory {
    /// The ten worst wake-ups of each target under each load, or schedule of loads; the worst first.
    pub worst: Vec<Worst>,
}

impl Woken {
    fn kept(&self, case: &Case<'_>) -> Option<&Kept> {
        self.kept.iter().find(|kept| kept.plan.repeats(case.plan))
    }

    /// Returns the worst wake-ups of a case, worst first.
    fn worst(&self, case: &Case<'_>) -> &[Worst] {
        self.kept(case).map_or(&[], |kept| kept.worst.as_slice())
    }

    /// Divides the cases with their worst wake-ups into those that ran undisturbed and those that were traced.
    fn worst_of<'a>(&'a self, cases: &'a [Case<'a>]) -> [Vec<worst::OfCase<'a>>; 2] {
        let all = cases.iter().map(|case| (case, self.worst(case)));
        let (traced, plain) = all.partition(|(case, _)| case.plan.is_traced());
        [plain, traced]
    }
}

impl Collect for Woken {
    fn take(&mut self, _run: &Plan, data: &CellData<'_>) -> Result<(), String> {
        check(data)?;
        let plan = data.plan();
        let place = self.kept.iter().position(|kept| kept.plan.repeats(plan));
        let place = place.unwrap_or_else(|| {
            self.kept.push(Kept {
                plan: plan.clone(),
                pictures: Pictures::default(),
                worst: Vec::new(),
            });
            self.kept.len() - 1
        });
        let kept = &mut self.kept[place];
        kept.pictures.take(data)?;
        kept.worst.append(&mut worst::find(data));
        worst::keep(&mut kept.worst);
        Ok(())
    }

    fn finish(self: Box<Self>, _run: &Run) -> Box<dyn Story> {
        self
    }
}

impl Story for Woken {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn tables(&self, run: &Run) -> Vec<Tabled> {
        tables::tables(run)
    }

    fn arrange(&self, run: &Run, tabled: &Tabled, lines: &mut Vec<Line<'_>>) {
        tables::arrange(run, tabled, lines);
    }

    fn name(&self, run: &Run, line: &Line<'_>) -> (Option<String>, String) {
        tables::name(run, line)
    }

    fn json(&self) -> Value {
        let worst = self
            .kept
            .iter()
            .flat_map(|kept| kept.worst.clone())
            .collect();
        serde_json::to_value(WakeupStory { worst }).unwrap_or_default()
    }

    fn alarms(&self, run: &Run) -> Vec<Alarm> {
        checks::find(self, run)
    }

    fn verdict(&self, run: &Run) -> Option<Verdict> {
        verdict::of(run)
    }

    fn terminal(&self, run: &Run, page: &mut Page) {
        let cases = cases(run);
        let [plain, traced] = self.worst_of(&cases);
        // Of what was traced the reasons are known.
        worst::terminal(if traced.is_empty() { &plain } else { &traced }, page);
    }

    fn first_picture(&self, run: &Run, detail: &Detail) -> Option<Markup> {
        pictures::over_time(self, run, detail)
    }

    fn sections(&self, run: &Run, detail: &Detail) -> Vec<Section> {
        let cases = cases(run);
        let [plain, traced] = self.worst_of(&cases);
        let counted: Vec<_> = cases.iter().map(Case::counters).collect();
        let counted = cases.iter().zip(&counted).map(|(case, counted)| {
            let late = ["late wake-up", "late wake-ups"];
            (case.plan.label(), counted.as_slice(), late)
        });
        let content = html! {
            (pictures::distributions(self, run, detail))
            (worst::page(&plain))
            @if !traced.is_empty() {
                h3 { "With the kernel's events recorded" }
                p.read {
                    "A further run of each place recorded what its kernel did. That costs time, so its latencies are in no \
                     picture; it is there to tell what long ones are made of."
                }
                (worst::page(&traced))
            }
            @if let Some(counters) = counters(counted) { (counters) }
            @if let Some(cost) = recording(&cases) { p.note { (cost) } }
        };
        vec![Section::new("wakeups", "Wake-up latency", content)]
    }

    fn method(&self) -> Markup {
        html! {
            p {
                b { "wakeup" } " lets threads sleep until absolute times, one interval apart, and reads the clock as soon as each \
                 runs. The " b { "service" } " latency is that time less the planned one, as cyclictest defines it. After a late \
                 wake-up the next planned time is the first one that is still to come; activations before it were missed and have \
                 no wake-up. " b { "Response" } " latencies count them, too: a wake-up that is L late at an interval I missed \
                 activations that had waited L − I, L − 2·I, … by then. Nothing is estimated: both follow from the exact counts \
                 of every latency in ns. Phases are told apart by the planned time."
            }
        }
    }

    fn limits(&self) -> Vec<String> {
        [
            "A latency ends when the thread reads the clock. What its work is slowed down by afterwards (cold caches, a low \
             frequency) is not in it.",
            "Clocks are those of the place: if a hypervisor stops a guest's clock together with the guest, nothing in the guest \
             sees that time.",
            "Who is to blame is told only where the kernel's events were recorded. Interrupts that were off are not seen by \
             themselves, and what took a virtual CPU from below looks like a late interrupt.",
        ]
        .map(str::to_owned)
        .into()
    }

    fn csv(&self, run: &Run) -> Vec<(String, String)> {
        csv::file(run)
            .map(|text| (csv::FILE.to_owned(), text))
            .into_iter()
            .collect()
    }
}

/// Refuses a cell whose record contradicts itself.
fn check(data: &CellData<'_>) -> Result<(), String> {
    let phases = data.plan().phases.len().max(1) as u64;
    let mut derived = std::collections::BTreeMap::<u64, u64>::new();
    let (mut woken, mut uncounted) = (0, 0);
    for (head, set) in data.sets("latency") {
        let labels = &head.labels;
        let (thread, phase) = (labels.number("thread"), labels.number("phase"));
        let is_known = labels
            .get("phase")
            .is_none_or(|text| phase.is_some() || text == "unknown");
        let Some(thread) = thread.filter(|_| is_known) else {
            return Err(format!(
                "it has a set labelled '{labels}'; measure it again"
            ));
        };
        if let Some(phase) = phase.filter(|phase| *phase >= phases) {
            return Err(format!(
                "it has latencies of phase {phase}, counted from 0, but only {phases} phases; measure it again"
            ));
        }
        woken += head.n;
        uncounted += head.uncounted;
        let (missed, _) = measures::missed(&vec![(tare_report::rows::counts(set)?, head.period)])?;
        *derived.entry(thread).or_default() += missed;
    }
    if woken == 0 {
        return Err("no thread of it was ever woken; measure it longer".to_owned());
    }
    for (labels, missed) in measures::told(data, "missed").filter(|_| uncounted == 0) {
        let thread = labels.number("thread").unwrap_or(0);
        let derived = derived.get(&thread).copied().unwrap_or(0);
        if derived < missed as u64 {
            return Err(format!(
                "its thread {thread} missed {missed} activations, but its latencies account for {derived} only; measure it \
                 again"
            ));
        }
    }
    Ok(())
}

/// Says in one short line what a cell has shown.
fn live(data: &CellData<'_>) -> Result<String, String> {
    let of = |measure: &str, figure| -> Result<Vec<(Option<u64>, f64)>, String> {
        let mut measures = measures::MEASURES.iter();
        let measure = measures.find(|known| known.id == measure);
        let samples = measure.map_or(Ok(Vec::new()), |measure| (measure.from)(data))?;
        let together = samples
            .iter()
            .filter(|(labels, _)| labels.get("thread").is_none());
        let figures = together.filter_map(|(labels, sample)| {
            Some((labels.number("phase"), sample.figure(figure)?.value()?))
        });
        Ok(figures.collect())
    };
    let longest = of("response", Figure::Max)?;
    let longest = longest.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let (phase, longest) = longest.ok_or("no thread was woken")?;
    let load = phase.and_then(|phase| Phase::all(data.plan()).nth(phase as usize));
    let load = load.map_or_else(String::new, |phase| under(phase.load));
    let mut text = format!("worst {}{load}", time(longest));
    let (median, p99) = (
        of("response", Figure::MEDIAN)?,
        of("response", Figure::P99)?,
    );
    if let ([(None, median)], [(None, p99)]) = (median.as_slice(), p99.as_slice()) {
        text = format!("median {}, p99 {}, {text}", time(*median), time(*p99));
    }
    let missed: f64 = measures::told(data, "missed")
        .map(|(_, missed)| missed)
        .sum();
    let woken: u64 = data.sets("latency").map(|(head, _)| head.n).sum();
    Ok(match missed as u64 {
        0 => text + ", none missed",
        missed => format!(
            "{text}, {} of {} missed",
            N.count(missed),
            N.count(missed + woken)
        ),
    })
}

/// Adds up the totals of a measure of all phases and runs.
fn total(case: &Case<'_>, measure: &str) -> f64 {
    let rows = case.rows().filter(|row| {
        let is_together = row.labels.get("thread").is_none();
        row.measure.id == measure && row.figure == Figure::Total && is_together
    });
    let each = rows.flat_map(|row| &row.each);
    each.filter_map(|each| each.carried.value()).sum()
}

/// Adds up part and whole of the share of a measure of all runs.
fn sums(case: &Case<'_>, measure: &str) -> (f64, f64) {
    let row = case.row(measure, Figure::Share, &[]);
    let each = row.map_or(&[][..], |row| row.each.as_slice());
    each.iter()
        .fold((0.0, 0.0), |all, each| match each.carried {
            Carried::Value {
                sums: Some((part, whole)),
                ..
            } => (all.0 + part, all.1 + whole),
            _ => all,
        })
}

/// Says what recording costs at most.
fn recording(cases: &[Case<'_>]) -> Option<String> {
    let cost = |case: &Case<'_>| Some(case.over("recording share", Figure::Share, &[])?.highest);
    let most = cases.iter().filter_map(|case| Some((case, cost(case)?)));
    let (case, share) = most.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let ns = case.over("recording", Figure::Value, &[])?.highest;
    Some(format!(
        "Recording a wake-up takes {} at most, {} of the interval, after the clock was read: nothing of it is in a latency.",
        N.ns(ns, None),
        N.percent(share)
    ))
}
