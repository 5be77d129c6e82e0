//! The report as one page: no network, no script, light and dark, readable when printed.
//!
//! The verdict and one picture come first; then each workload with its pictures, the figures behind
//! each of them folded away; then everything that is needed to judge them.
//!
//! The page stays below [`LIMIT`] bytes whatever the number of samples and cells: pictures share a
//! budget, and of a long sweep only some sizes get pictures of their own.

mod attribution;
mod axes;
mod calibration;
mod claims;
mod gaps;
mod histogram;
mod machine;
mod method;
mod overview;
mod parts;
mod places;
mod results;
mod runs;
mod strips;
mod sweep;
mod time;
mod wakeup;
mod window;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::analysis::{Alarm, Analysis, Severity, Summary};
use crate::panels::{MANY, Panel, panels, series, under};
use crate::words::typeset;
use parts::{N, View, with_code};
use wakeup::Shown;

/// Is what the page may have at most, in bytes.
pub const LIMIT: usize = 2_000_000;

/// Is what all plots of delays over time may have together at first, in bytes.
const BUDGET: usize = 900_000;

/// Is the number of sizes of a sweep that get pictures of their own.
const SIZES: usize = 12;

/// Is the number of rows from which a table of single runs is folded away.
const ROWS: usize = 40;

const STYLE: &str = include_str!("style.css");

/// Renders the report of a run.
///
/// The page is smaller than [`LIMIT`]; if a run has so many cells that it would not be, it is drawn
/// coarser, and at last without the pictures of single sizes. Tables have every cell up to some
/// thousands.
#[must_use]
pub fn render(analysis: &Analysis) -> String {
    let full = Page {
        analysis,
        budget: BUDGET,
        sizes: SIZES,
        rows: 2_000,
    };
    let coarser = [
        (BUDGET / 3, SIZES / 2, 2_000),
        (BUDGET / 10, 2, 1_000),
        (BUDGET / 30, 0, 200),
    ];
    let mut text = full.render().into_string();
    for (budget, sizes, rows) in coarser {
        if text.len() < LIMIT {
            break;
        }
        let page = Page {
            analysis,
            budget,
            sizes,
            rows,
        };
        text = page.render().into_string();
    }
    text
}

struct Page<'a> {
    analysis: &'a Analysis,
    /// For the delays of all plots over time, in bytes.
    budget: usize,
    /// How many sizes of a sweep get pictures of their own.
    sizes: usize,
    /// How many rows the tables of single cells have at most.
    rows: usize,
}

impl Page<'_> {
    fn summary(&self) -> &Summary {
        self.analysis.summary()
    }

    fn render(&self) -> Markup {
        let summary = self.summary();
        let panels = panels(&summary.combinations);
        let title = format!("tare {} on CPU {}", summary.experiment, summary.cpu);
        let sections = self.sections(&panels);
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (title) ": " (summary.verdict.headline) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    header {
                        h1 { (title) }
                        p { (self.machine_in_short()) }
                        p { (summary.created.strftime("%-d %B %Y, %H:%M UTC").to_string()) }
                    }
                    main {
                        (self.verdict(&panels))
                        nav aria-label="Contents" {
                            ul {
                                @for (id, name, _) in &sections { li { a href={ "#" (id) } { (name) } } }
                            }
                        }
                        @for (id, name, content) in &sections {
                            section aria-labelledby=(id) {
                                h2 id=(id) { (name) }
                                (content)
                            }
                        }
                    }
                    footer {
                        p {
                            "Made by tare " (summary.tare_version) ". The figures of this page are in summary.json, the \
                             columns of the studies in the CSV files beside, every delay and the exact counts in the Parquet \
                             files of the run folder."
                        }
                    }
                }
            }
        }
    }

    fn wakeups(&self) -> Option<Shown<'_>> {
        Shown::of(self.analysis, BUDGET / self.budget.max(1))
    }

    fn machine_in_short(&self) -> String {
        let Some(record) = self.analysis.machine() else {
            return "The machine was not described.".to_owned();
        };
        let machine = &record.machine;
        let mut parts: Vec<String> = Vec::new();
        parts.extend(machine.processor.model_name.known().cloned());
        parts.extend(
            machine
                .kernel
                .release
                .known()
                .map(|release| format!("Linux {release}")),
        );
        parts.extend(
            machine
                .virtualisation
                .guest_of()
                .map(|name| format!("guest of {name}")),
        );
        parts.join(" · ")
    }

    fn verdict(&self, panels: &[Panel<'_>]) -> Markup {
        let verdict = &self.summary().verdict;
        let alarms = self.analysis.alarms();
        let serious: Vec<&Alarm> = alarms
            .iter()
            .filter(|alarm| alarm.severity() >= Severity::Warning)
            .collect();
        // What the alarms say is shown as such, and not again as a sentence.
        let others = verdict.cautions.iter().skip(serious.len());
        html! {
            @for alarm in serious.iter().filter(|alarm| alarm.severity() == Severity::Error) {
                (caution(alarm))
            }
            p.headline { (typeset(&verdict.headline)) }
            @for detail in &verdict.details { p { (typeset(detail)) } }
            @for split in &verdict.attribution { p { (with_code(&typeset(split))) } }
            @for certainty in &verdict.certainty { p.sure { (typeset(certainty)) } }
            @if let Some(picture) = self.first_picture(panels) { (picture) }
            @for alarm in serious.iter().filter(|alarm| alarm.severity() < Severity::Error) {
                (caution(alarm))
            }
            @for text in others { p.caution { (typeset(text)) } }
        }
    }

    /// Renders the picture that goes with the verdict.
    fn first_picture(&self, panels: &[Panel<'_>]) -> Option<Markup> {
        let all = series(panels);
        let Some(main) = all.first() else {
            return self.wakeups()?.first();
        };
        match main {
            sizes if overview::is_needed(panels, sizes) => overview::overview(panels, &sizes[0]),
            [panel] => time::over_time(panel, self.analysis.pictures(), self.budget / 3),
            sizes if sizes.iter().all(Panel::is_gap) => {
                time::over_time(&sizes[0], self.analysis.pictures(), self.budget / 3)
            }
            sizes => sweep::shares(sizes),
        }
    }

    /// Returns the sections of the page: anchor, heading, content.
    fn sections(&self, panels: &[Panel<'_>]) -> Vec<(String, String, Markup)> {
        let mut sections = Vec::new();
        let mut add = |id: &str, name: &str, content: Markup| {
            sections.push((id.to_owned(), name.to_owned(), content));
        };
        if !panels.is_empty() {
            add("results", "Results", results::results(panels));
        }
        if let Some(reproduction) = &self.summary().reproduction {
            let name = format!("Against {}", reproduction.study);
            add("claims", &name, claims::claims(reproduction));
        }
        if let Some(wakeups) = self.wakeups() {
            let section = wakeups.section(self.analysis, !panels.is_empty());
            add("wakeups", "Wake-up latency", section);
        }
        if let Some(tables) = attribution::attribution(&self.summary().attribution) {
            add("attribution", "What the operating system adds", tables);
        }
        if let Some(loads) = places::loads(self.summary()) {
            add("loads", "Loads", loads);
        }
        let all = series(panels);
        let time_plots = panels.len().clamp(1, all.len().max(1) * self.sizes.max(1));
        let budget = self.budget * 2 / 3 / time_plots;
        for (place, sizes) in all.iter().enumerate() {
            let Some(first) = sizes.first() else { continue };
            let name = match sizes {
                [panel] => panel.title(),
                _ => format!("{} by size{}", first.first().workload, under(first.first())),
            };
            let id = format!("workload-{}", place + 1);
            add(&id, &name, self.series(panels, sizes, place == 0, budget));
        }
        let summary = self.summary();
        let analysis = self.analysis;
        if !summary.cells.is_empty() {
            add("runs", "Every run", self.every_run());
        }
        if analysis.measured().next().is_some() {
            add(
                "calibration",
                "Calibration",
                calibration::calibration(analysis),
            );
        }
        if let Some(table) = places::places(&summary.places) {
            add("places", "The places, from inside", table);
        }
        add(
            "not-measured",
            "What was not measured, and why",
            method::not_measured(analysis),
        );
        if let Some(record) = analysis.machine() {
            add(
                "findings",
                "What disturbs measuring here",
                machine::findings(&record.findings),
            );
            add("machine", "Machine", machine::machine(record, summary.cpu));
        }
        add("method", "Method", method::method(analysis));
        add("provenance", "Provenance", method::provenance(analysis));
        sections
    }

    /// Renders one workload: a single size in full, several sizes as a sweep with some in full.
    fn series(
        &self,
        panels: &[Panel<'_>],
        sizes: &[Panel<'_>],
        is_first: bool,
        budget: usize,
    ) -> Markup {
        if let [panel] = sizes {
            let is_needed = overview::is_needed(panels, sizes);
            // That of the first stands beside the verdict, and all loads of a workload have one in common.
            let is_new = !is_first && overview::is_first_load(panels, panel);
            return html! {
                @if is_needed && is_new {
                    @if let Some(picture) = overview::overview(panels, panel) { (picture) }
                }
                (self.panel(panel, !is_first || is_needed, budget))
            };
        }
        let shown = spread_out(sizes.len(), self.sizes);
        let left_out = sizes.len() - shown.len();
        html! {
            @if !is_first { @if let Some(shares) = sweep::shares(sizes) { (shares) } }
            @if let Some(pictures) = sweep::sweep(sizes) { (pictures) }
            h3 { "Each size" }
            @if left_out > 0 {
                p.note {
                    (N.count(left_out as u64)) " of " (N.count(sizes.len() as u64)) " sizes have no pictures of their own \
                     here, to keep the page small; their figures are in the tables."
                }
            }
            @for place in shown {
                details.size {
                    summary { (sizes[place].title()) }
                    (self.panel(&sizes[place], true, budget))
                }
            }
        }
    }

    /// Renders all pictures of the combinations that differ only in their target.
    fn panel(&self, panel: &Panel<'_>, with_time: bool, budget: usize) -> Markup {
        let pictures = self.analysis.pictures();
        let views = View::all(panel);
        let each = |picture: &dyn Fn(&View<'_>) -> Option<Markup>| {
            html! { @for view in &views { @if let Some(picture) = picture(view) { (picture) } } }
        };
        html! {
            @if with_time { @if let Some(picture) = time::over_time(panel, pictures, budget) { (picture) } }
            @if panel.is_gap() {
                (each(&|view| gaps::exceedance(view, pictures)))
                (each(&|view| gaps::inter_arrivals(view, pictures)))
            } @else {
                (each(&|view| window::window(view, pictures)))
                (each(&|view| histogram::histograms(view, pictures)))
            }
            // Of many targets the overview shows how far the runs lie apart.
            @if panel.members.len() <= MANY {
                @if let Some(picture) = runs::by_run(panel, self.summary()) { (picture) }
            }
            @if panel.is_gap() && self.has_no_gaps(panel) {
                p { "There was no gap at all, so there is nothing to draw." }
            }
        }
    }

    fn has_no_gaps(&self, panel: &Panel<'_>) -> bool {
        let pictures = self.analysis.pictures();
        panel
            .members
            .iter()
            .all(|(place, _)| pictures[*place].counts.is_empty())
    }

    fn every_run(&self) -> Markup {
        let tables = [
            ("gap", runs::gap_table(self.summary())),
            ("timed work", runs::timed_table(self.summary())),
        ];
        html! {
            p.read {
                "One row per cell. Durations are in cycles unless a unit stands with them. The interval of the mean is \
                 kot-2019's: the normal approximation at 90 %, over single samples."
            }
            @for (kind, mut table) in tables {
                @if !table.rows.is_empty() {
                    @let left_out = table.rows.len().saturating_sub(self.rows);
                    @let () = table.rows.truncate(self.rows);
                    @let shown = html! {
                        (table.render())
                        @if left_out > 0 {
                            p.note { (N.count(left_out as u64)) " more are in summary.json." }
                        }
                    };
                    @if table.rows.len() > ROWS {
                        @let rows = N.count(table.rows.len() as u64);
                        details { summary { (rows) " runs of " (kind) } (shown) }
                    } @else {
                        (shown)
                    }
                }
            }
        }
    }
}

fn caution(alarm: &Alarm) -> Markup {
    let (class, word) = match alarm.severity() {
        Severity::Error => ("caution error", "Beware. "),
        Severity::Warning | Severity::Note => ("caution", "Caution. "),
    };
    html! { p class=(class) role="note" { b { (word) } (with_code(&typeset(&alarm.to_string()))) } }
}

/// Chooses `shown` of `all` places, evenly and with both ends.
fn spread_out(all: usize, shown: usize) -> Vec<usize> {
    match shown {
        _ if all <= shown => (0..all).collect(),
        0 => Vec::new(),
        1 => vec![0],
        _ => (0..shown).map(|n| n * (all - 1) / (shown - 1)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_of_many_sizes_are_shown_with_both_ends() {
        assert_eq!(spread_out(3, 12), [0, 1, 2]);
        assert_eq!(spread_out(10, 4), [0, 3, 6, 9]);
        assert_eq!(spread_out(200, 2), [0, 199]);
        assert_eq!(spread_out(200, 0), Vec::<usize>::new());
    }
}
