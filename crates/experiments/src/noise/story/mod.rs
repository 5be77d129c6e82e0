//! How noise is shown.
//!
//! It is the largest story, because three things are noise's alone: the split of a guest's noise
//! into the host's part and its own ([`split`]), with the reasons why it is refused; the published
//! figures of kot-2019, each claim with its own rule ([`kot_2019`]); and panels of distributions
//! over times in cycles. The rest is data for the kit.

mod checks;
mod collect;
mod csv;
mod kot_2019;
mod measures;
mod page;
mod panels;
mod quanta;
mod split;
mod switched;
mod tables;
mod takers;
mod verdict;

use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tare_figures::Run;
use tare_figures::claims::Published;
use tare_figures::format::Numbers;
use tare_figures::notices::Notice;
use tare_figures::rows::{self, CellData, Figure, Measure, Row};
use tare_figures::verdict::Verdict;
use tare_measured::noise::{Workload, workloads};
use tare_pages::html::{Detail, Section};
use tare_pages::tables::{Line, Tabled};
use tare_pages::{Story, Titled, View};
use tare_results::model::{CellPlan, Plan};

use super::switched::SCREEN;
use super::{NAME, Noise, of_kind, plan_of};
use collect::Pictures;
pub use measures::run_of;
use panels::{Panel, PerCpu};

/// Returns the JSON schema of what it puts into `summary.json` beside rows: its part of `stories`.
#[must_use]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Found)
}

/// The part of `summary.json` that is not in rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
struct Found {
    /// How the lost time divides.
    #[serde(flatten)]
    split: split::Attribution,
    /// The effects of the switches of `--isolate` and `--screen`, by workload, load and target.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    switched: Vec<switched::Switched>,
    /// Who took time in delays, by case and CPU, the largest share first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    takers: Vec<takers::TakerRow>,
}

/// The label of the limit whose share of time in delays stands for a timed workload, and its words.
const ABOVE: (&str, &str) = ("above", "400cycles");
const ABOVE_WORDS: &str = "delays above 400 cycles";

impl View for Noise {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn measures(&self) -> &'static [Measure] {
        measures::MEASURES
    }

    fn samples(&self, cell: &CellPlan, measure: &str) -> Option<u64> {
        let plan = plan_of(cell).filter(|_| measure == "duration")?;
        Some(plan.repetitions)
    }

    fn elsewhere(&self, cell: &CellPlan, label: &str) -> Option<&'static str> {
        let other = match label {
            "size" => "workloads that have a size",
            "timing" => "runs with the time stamps of a published study",
            _ => return None,
        };
        cell.labels.get(label).is_none().then_some(other)
    }

    fn begin(&self) -> Box<dyn Story> {
        Box::new(Shown::default())
    }

    fn live(&self, data: &CellData<'_>) -> Result<String, String> {
        live(data)
    }

    fn studies(&self) -> &'static [&'static Published] {
        &[&kot_2019::STUDY]
    }
}

/// Everything that a run shows of noise besides rows.
#[derive(Debug, Default)]
struct Shown {
    pictures: PerCpu<Pictures>,
    files: csv::Files,
    found: Found,
    who: PerCpu<takers::Takers>,
}

impl Story for Shown {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn take(&mut self, run: &Plan, data: &CellData<'_>) -> Result<(), String> {
        data.parts().iter().try_for_each(|data| {
            Pictures::take(&mut self.pictures, run, data)?;
            takers::Takers::take(&mut self.who, data);
            self.files.add(data)
        })
    }

    fn complete(&mut self, run: &Run) {
        self.found.split = split::Attribution::of(run);
        self.found.switched = switched::Switched::all(run);
        self.found.takers = takers::TakerRow::all(run, &self.who);
    }

    fn tables(&self, run: &Run) -> Vec<Tabled> {
        tables::all(run)
    }

    fn name(&self, run: &Run, line: &Line<'_>) -> (Option<String>, String) {
        tables::name(run, line)
    }

    fn arrange(&self, _run: &Run, _tabled: &Tabled, lines: &mut Vec<Line<'_>>) {
        // What never happened is left to the files.
        let happened = |row: &Row| row.each.iter().any(|run| run.figure.value() != Some(0.0));
        let counted = [rows::INTERRUPTS.id, rows::CONTEXT_SWITCHES.id];
        lines.retain(|line| !counted.contains(&line.of.measure.id) || happened(line.of));
        lines.sort_by_cached_key(tables::rank);
    }

    fn json(&self) -> Value {
        serde_json::to_value(&self.found).unwrap_or_default()
    }

    fn notices(&self, run: &Run) -> Vec<Notice> {
        let mut notices = checks::find(run);
        notices.extend(self.found.split.refused());
        notices.extend(switched::Refused::of(run).notices());
        notices.extend(takers::missed(run, &self.who));
        notices
    }

    fn more(&self, run: &Run) -> Vec<Titled> {
        let panels = self.pictured(run);
        vec![
            switched::titled(&self.found.switched),
            self.found.split.titled(),
            takers::titled(&panels, &self.who),
            quanta::cpus_over_time(&panels),
        ]
    }

    fn verdict(&self, run: &Run) -> Option<Verdict> {
        let panels = self.pictured(run);
        let Some(mut switched) = switched::verdict(run, &self.found.switched) else {
            return verdict::of(run, &panels, &self.who);
        };
        let culprits = verdict::culprits(panels.iter(), &self.who);
        switched.details.extend(culprits);
        Some(switched)
    }

    fn first_picture(&self, run: &Run, detail: &Detail) -> Option<Markup> {
        page::first(&self.pictured(run), *detail)
    }

    fn sections(&self, run: &Run, detail: &Detail) -> Vec<Section> {
        let split = (!self.found.split.table().is_empty())
            .then(|| Section::new("attribution", split::TITLE, self.found.split.markup()));
        let told = |id, of: Titled| {
            (!of.table.is_empty()).then(|| {
                let content = html! { p.read { (of.read) } (of.table.render()) };
                Section::new(id, &of.title, content)
            })
        };
        let switched = told("switches", switched::titled(&self.found.switched));
        let panels = self.pictured(run);
        let who = told("who", takers::titled(&panels, &self.who));
        switched
            .into_iter()
            .chain(split)
            .chain(who)
            .chain(page::sections(&panels, *detail))
            .collect()
    }

    fn method(&self) -> Markup {
        html! {
            @for workload in workloads().filter(|workload| self.has(workload)) {
                p { b { (workload.code.id) } " " (workload.method) }
            }
            p {
                "A delay is the duration of a repetition less the mean of its run, as in kot-2019; the share of time in \
                 delays is their sum over the sum of all cycles. The classes were set for a TSC of 2.2 GHz; on another one \
                 the same number of cycles is another time."
            }
        }
    }

    fn limits(&self) -> Vec<String> {
        let mut limits = Vec::new();
        if self.has_kind(true) {
            limits.push(
                "Gaps shorter than the threshold are in no figure; they make quiet iterations longer.",
            );
            limits.push(
                "A CPU that is slowed but not taken away (a busy SMT sibling, a lower frequency, a full memory bus) \
                 lengthens iterations a little and makes no gaps.",
            );
        }
        if self.has_kind(false) {
            limits.push(
                "What happens between the end of one repetition and the start of the next is not seen; the table of \
                 durations says how long that is.",
            );
        }
        limits.push(match self.who.iter().next() {
            None => {
                "Who took the CPU is not observed: an interrupt, another task, the firmware (SMI) and a hypervisor look alike. \
                 That gaps come as often as a tick says no more than that."
            }
            Some(_) => {
                "Who took the CPU is known where the kernel's events are recorded, and as far as they tell: firmware (SMI) and a \
                 hypervisor look alike, and what they take while a handler runs counts as the handler's."
            }
        });
        limits.push(
            "Measured CPUs are awake and busy. Nothing here says how late a sleeping task is woken, or how other CPUs fare.",
        );
        limits.into_iter().map(str::to_owned).collect()
    }

    fn csv(&self, _run: &Run) -> Vec<(String, String)> {
        self.files.written()
    }
}

impl Shown {
    /// Returns the panels of which there are pictures: one of each row of a design would show nothing
    /// of the switches.
    fn pictured<'a>(&'a self, run: &'a Run) -> Vec<Panel<'a>> {
        let mut panels = Panel::all(run, &self.pictures);
        panels.retain(|panel| panel.plan().labels.get(SCREEN).is_none());
        panels
    }

    fn has(&self, workload: &Workload) -> bool {
        let mut plans = self.pictures.iter().map(|(plan, _)| plan);
        plans.any(|plan| plan.work.id == workload.code.id)
    }

    fn has_kind(&self, only_reads_clock: bool) -> bool {
        of_kind(only_reads_clock).any(|workload| self.has(workload))
    }
}

/// Says in one short line what a cell has shown.
fn live(data: &CellData<'_>) -> Result<String, String> {
    const N: Numbers = Numbers::PLAIN;
    let mut collector = rows::Collector::default();
    collector.take(measures::MEASURES, data)?;
    let rows = collector.finish();
    let of = |measure: &str, figure: Figure| -> Option<(&Row, f64)> {
        let is_of = |row: &&Row| {
            let above = row.labels.get(ABOVE.0);
            let is_shown = above.is_none_or(|limit| limit == ABOVE.1);
            row.measure.id == measure && row.figure == figure && is_shown
        };
        let each = rows.0.iter().filter(is_of);
        let each = each.filter_map(|row| Some((row, row.over.as_ref().ok()?.estimate)));
        // Of several CPUs, the one with the most.
        each.max_by(|a, b| a.1.total_cmp(&b.1))
    };
    if let Some((worst, lost)) = of("lost", Figure::Share) {
        let Some((longest, cycles)) = of("gap", Figure::Max) else {
            let least = of("threshold", Figure::Max);
            let least = least.map_or_else(String::new, |(row, least)| row.in_time(N, least));
            return Ok(format!("no gap of {least} or longer"));
        };
        let often = match (of("gaps", Figure::Rate), of("gaps", Figure::Total)) {
            (Some((_, rate)), _) => N.rate(rate),
            (None, total) => format!("{} gaps", N.short(total.map_or(0.0, |(_, gaps)| gaps))),
        };
        let by = takers::of_longest(data, longest.time(cycles));
        let by = by.map_or_else(String::new, |taker| format!(" ({taker})"));
        let (lost, longest) = (N.percent(lost), longest.in_time(N, cycles));
        let cpu = worst.labels.get(rows::CPU);
        let most = cpu.map(|cpu| format!(" on CPU {cpu}, the most; at most"));
        let most = most.as_deref().unwrap_or(",");
        return Ok(format!("{lost} lost{most} {often}, longest {longest}{by}"));
    }
    let (Some((median, typical)), Some((max, longest))) =
        (of("duration", Figure::MEDIAN), of("duration", Figure::Max))
    else {
        return Err("it measured nothing".to_owned());
    };
    let mut text = format!(
        "median {}, longest {}",
        median.both(N, typical),
        max.in_time(N, longest)
    );
    if let Some((_, share)) = of("delayed", Figure::Share) {
        text.push_str(&format!(", {} in delays > 400 cycles", N.percent(share)));
    }
    Ok(text)
}
