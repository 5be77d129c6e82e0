//! How wake-ups are shown: how late threads ran that slept until absolute times, and why.
//!
//! Two latencies stand side by side everywhere. The *service* latency is cyclictest's: of the
//! wake-ups that happened. The *response* latency counts every activation, each missed one with
//! what it waited, so that a stall of a hundred intervals counts a hundred times ("coordinated
//! omission" is the name of not doing so).
//!
//! Two fifths of it are wakeup's alone: the worst wake-ups with what the kernel traced around them
//! ([`worst`], [`late`]), claims on pairs of kernels of landolfi-2018, and the causes in words.

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
use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::claims::Published;
use tare_figures::notices::Notice;
use tare_figures::rows::{CellData, Figure, Measure, Row};
use tare_figures::verdict::Verdict;
use tare_pages::html::{Detail, Section};
use tare_pages::kit::series::PerCase;
use tare_pages::tables::{Line, Tabled};
use tare_pages::{Story, Titled, View};
use tare_results::model::{CellPlan, Plan, SetHead};

use super::{NAME, Wakeup, plan_of};
use pictures::Pictures;
use words::{N, Phase, cases, time};
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

    fn samples(&self, cell: &CellPlan, measure: &str) -> Option<u64> {
        // Whoever waits for a late one may end with it.
        let plan = plan_of(cell).filter(|plan| plan.above_ns.is_none())?;
        let activations = plan.activations(plan.threads.saturating_sub(1));
        let activations = match cell.phases.len() as u64 {
            0 | 1 => activations,
            // Up to half of a phase may be over when its load begins.
            phases => activations / phases / 2,
        };
        match measure {
            "response" => Some(activations),
            "latency" => Some(match plan.duration_ns {
                // Those that are missed have none.
                Some(_) => activations - activations.div_ceil(100),
                None => activations,
            }),
            _ => None,
        }
    }

    fn elsewhere(&self, cell: &CellPlan, label: &str) -> Option<&'static str> {
        let other = match label {
            "thread" | "threads" if plan_of(cell)?.threads == 1 => "runs with several threads",
            "phase" if cell.phases.is_empty() => "runs with phases",
            "interval" => "runs with another interval than the default one",
            "policy" => "runs with another policy than SCHED_FIFO",
            "priority" => "runs with another priority than the default one",
            "traced" => "traced runs",
            _ => return None,
        };
        cell.labels.get(label).is_none().then_some(other)
    }

    fn begin(&self) -> Box<dyn Story> {
        Box::new(Woken::default())
    }

    fn live(&self, data: &CellData<'_>) -> Result<String, String> {
        live(data)
    }
}

/// What rows can't hold of a run's wake-ups.
#[derive(Debug, Default)]
struct Woken(PerCase<Stored>);

/// The figures kept of the cells of a case.
#[derive(Debug, Default)]
struct Stored {
    pictures: Pictures,
    worst: Vec<Worst>,
}

/// The part of `summary.json` that only wakeup has.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WakeupStory {
    /// The ten worst wake-ups of each target under each load, or schedule of loads; the worst
    /// first.
    pub worst: Vec<Worst>,
}

impl Woken {
    /// Returns the worst wake-ups of a case, worst first.
    fn worst(&self, case: &Case<'_>) -> &[Worst] {
        self.0
            .of(case.plan)
            .map_or(&[], |kept| kept.worst.as_slice())
    }

    /// Divides the cases with their worst wake-ups into those that ran undisturbed and those that
    /// were traced.
    fn worst_of<'a>(&'a self, cases: &'a [Case<'a>]) -> [Vec<worst::OfCase<'a>>; 2] {
        let all = cases.iter().map(|case| (case, self.worst(case)));
        let (traced, plain) = all.partition(|(case, _)| case.plan.is_traced());
        [plain, traced]
    }
}

impl Story for Woken {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn take(&mut self, _run: &Plan, data: &CellData<'_>) -> Result<(), String> {
        check(data)?;
        let kept = self.0.entry(data.plan());
        kept.pictures.take(data)?;
        kept.worst.append(&mut worst::find(data));
        worst::keep(&mut kept.worst);
        Ok(())
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
        let worst = self.0.iter().flat_map(|(_, kept)| kept.worst.clone());
        serde_json::to_value(WakeupStory {
            worst: worst.collect(),
        })
        .unwrap_or_default()
    }

    fn notices(&self, run: &Run) -> Vec<Notice> {
        checks::find(self, run)
    }

    fn verdict(&self, run: &Run) -> Option<Verdict> {
        verdict::of(self, run)
    }

    fn more(&self, run: &Run) -> Vec<Titled> {
        let cases = cases(run);
        let [plain, traced] = self.worst_of(&cases);
        // Of what was traced the reasons are known.
        let titles = ["Worst wake-ups", "Worst wake-ups of the traced runs"];
        let both = titles.into_iter().zip([plain, traced]);
        let both = both.filter(|(_, worst)| worst.iter().any(|(_, worst)| !worst.is_empty()));
        both.map(|(title, worst)| worst::few(title, &worst))
            .collect()
    }

    fn first_picture(&self, run: &Run, detail: &Detail) -> Option<Markup> {
        pictures::exceedance(self, run, detail)
    }

    fn sections(&self, run: &Run, detail: &Detail) -> Vec<Section> {
        let cases = cases(run);
        let [plain, traced] = self.worst_of(&cases);
        let content = html! {
            @if let Some(histogram) = pictures::histogram(self, run, detail) { (histogram) }
            @if let Some(strips) = pictures::over_time(self, run, detail) { (strips) }
            (worst::page(&plain))
            @if !traced.is_empty() {
                h3 { "With the kernel's events recorded" }
                p.read {
                    @if plain.is_empty() { "All runs recorded them, which costs time." }
                    @else {
                        "Where they can be recorded, each target was measured once more under each load, as part of one of the \
                         runs. That costs time, so these latencies are in no picture; they show what long ones are made of."
                    }
                }
                (worst::page(&traced))
            }
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
                 activations that had waited L − I, L − 2·I, … by then. Nothing is estimated: both follow from the counts \
                 of latencies, in ns, or in whole µs where another tool counted them. Phases are distinguished by the planned time."
            }
        }
    }

    fn limits(&self) -> Vec<String> {
        [
            "A latency ends when the thread reads the clock. What its work is slowed down by afterwards (cold caches, a low \
             frequency) is not in it.",
            "Clocks are those of the target: if a hypervisor stops a guest's clock together with the guest, nothing in the guest \
             sees that time.",
            "The culprit is shown only where the kernel's events were recorded. Interrupts that were off are not seen by \
             themselves, and what took a virtual CPU from below looks like a late interrupt.",
        ]
        .map(str::to_owned)
        .into()
    }

    fn csv(&self, run: &Run) -> Vec<(String, String)> {
        Vec::from_iter(csv::file(run).map(|text| (csv::FILE.to_owned(), text)))
    }
}

/// Rejects a cell whose record contradicts itself.
fn check(data: &CellData<'_>) -> Result<(), String> {
    let sum = |of: fn(&SetHead) -> u64| data.record.sets.iter().map(of).sum::<u64>();
    if sum(|head| head.n) == 0 {
        return Err("no thread of it was ever woken; measure it longer".to_owned());
    }
    let phases = data.plan().phases.len().max(1);
    let mut derived = 0;
    for (labels, latencies) in [
        measures::phases(data, false)?,
        measures::phases(data, true)?,
    ]
    .concat()
    {
        if labels.number("phase") >= Some(phases as u64) {
            return Err(format!(
                "it has latencies of '{labels}', counted from 0, but only {phases} phases; measure it again"
            ));
        }
        derived += measures::missed(latencies.least())?.0;
    }
    let told = measures::all_missed(data) as u64;
    if derived < told && sum(|head| head.uncounted) == 0 {
        return Err(format!(
            "its threads missed {told} activations, but its latencies account for {derived} only; measure it again"
        ));
    }
    Ok(())
}

/// Says in one short line what a cell has shown: the phase with the longest latency.
fn live(data: &CellData<'_>) -> Result<String, String> {
    const FIGURES: [(&str, Figure); 3] = [
        ("p50", Figure::MEDIAN),
        ("p99", Figure::P99),
        ("longest", Figure::Max),
    ];
    let has_phases = data.plan().phases.len() > 1;
    let mut longest: Option<(f64, String)> = None;
    let (mut missed, mut all) = (0, 0);
    for ((_, latencies), phase) in measures::phases(data, false)?
        .into_iter()
        .zip(Phase::all(data.plan()))
    {
        let own = measures::missed(latencies.least())?;
        (missed, all) = (missed + own.0, all + own.1);
        let sample = latencies.sample(measures::of_wakeups)?;
        let of = |figure| sample.as_ref()?.figure(figure)?.value();
        let each = FIGURES.map(|(name, figure)| Some(format!("{name} {}", time(of(figure)?))));
        let text = each.into_iter().flatten().collect::<Vec<_>>().join(", ");
        if let Some(max) = of(Figure::Max)
            && longest.as_ref().is_none_or(|(known, _)| max > *known)
        {
            let under = Some(phase.under()).filter(|_| has_phases);
            longest = Some((max, format!("{text}{}", under.unwrap_or_default())));
        }
    }
    let (_, text) = longest.ok_or("no thread was woken")?;
    Ok(format!(
        "{text}, {} of {} missed",
        N.count(missed),
        N.count(all)
    ))
}

/// Adds up the totals of a measure of all phases and runs.
fn total(case: &Case<'_>, measure: &str) -> f64 {
    let rows = case.rows().filter(|row| {
        let is_together = row.labels.get("thread").is_none();
        row.measure.id == measure && row.figure == Figure::Total && is_together
    });
    let each = rows.flat_map(|row| &row.each);
    each.filter_map(|each| each.figure.value()).sum()
}

/// Adds up part and whole of the share of a measure of all runs.
fn sums(case: &Case<'_>, measure: &str) -> (f64, f64) {
    let row = case.row(measure, Figure::Share, &[]);
    row.map_or((0.0, 0.0), Row::sums)
}

/// Returns what recording a wake-up costs over the runs, as gates judge it: as a share of the
/// interval and in ns.
fn recording(case: &Case<'_>) -> (f64, f64) {
    let of = |figure| case.value("recording", figure).unwrap_or(0.0);
    (of(Figure::Share), of(Figure::Value))
}

/// Returns the case where it costs most.
fn costliest<'s, 'a>(cases: &'s [Case<'a>]) -> Option<&'s Case<'a>> {
    let share = |case: &Case<'_>| recording(case).0;
    cases.iter().max_by(|a, b| share(a).total_cmp(&share(b)))
}
