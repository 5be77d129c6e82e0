//! The report as one page: no network, no script, light and dark, readable when printed.
//!
//! The verdict and one picture come first; then the tables and sections of each story; then
//! everything that is needed to judge them.
//!
//! The page stays below [`LIMIT`] bytes whatever the number of samples and cells: stories follow a
//! [`Detail`], and a page that would be larger is drawn more coarsely. It shows every maximum at
//! any size: samples are reduced to pixel columns cell by cell, and the longest delay of each
//! column keeps its position.

mod calibration;
mod claims;
mod machine;
mod method;
mod places;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use tare_host::visible;

use crate::grouped;
use crate::html::parts::{N, sentence};
use crate::html::{Detail, Section};
use crate::report::Report;
use crate::table::{Medium, Table, Titled};
use crate::view::Story;
use tare_figures::analysis::Summary;
use tare_figures::notices::{Notice, Severity};
use tare_results::model::CellPlan;

/// The greatest size of the page, in bytes.
pub const LIMIT: usize = 2_000_000;

/// The number of rows from which a table is folded away.
const FOLDED: usize = 40;

const STYLE: &str = include_str!("style.css");

/// Renders the report of a run.
///
/// The page is smaller than [`LIMIT`]; a run with too many cells for that is drawn
/// coarser. Tables have every cell up to some thousands.
#[must_use]
pub fn render(report: &Report) -> String {
    let coarser = [
        Detail::FULL,
        Detail {
            bytes: 300_000,
            pictures: 6,
            rows: 2_000,
        },
        Detail {
            bytes: 90_000,
            pictures: 2,
            rows: 1_000,
        },
        Detail {
            bytes: 30_000,
            pictures: 0,
            rows: 200,
        },
    ];
    let mut text = String::new();
    for detail in coarser {
        text = Page { report, detail }.render().into_string();
        if text.len() < LIMIT {
            break;
        }
    }
    // Names come from outside.
    visible(&text).into_owned()
}

/// Renders a page without a report: sentences, of which the first is the answer, and sections.
#[must_use]
pub fn of_sections(title: &str, sentences: &[String], sections: &[Section]) -> String {
    let headline = sentences.first().map_or("", String::as_str);
    let body = html! {
        header { h1 { (title) } }
        main {
            @for (place, text) in sentences.iter().enumerate() {
                p.headline[place == 0] { (sentence(text)) }
            }
            (rendered(sections))
        }
    };
    visible(&document(title, headline, &body).into_string()).into_owned()
}

fn document(title: &str, headline: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) ": " (headline) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    }
}

fn rendered(sections: &[Section]) -> Markup {
    html! {
        @for section in sections {
            section aria-labelledby=(section.id) {
                h2 id=(section.id) { (section.name) }
                (section.content)
            }
        }
    }
}

struct Page<'a> {
    report: &'a Report,
    detail: Detail,
}

impl Page<'_> {
    fn summary(&self) -> &Summary {
        self.report.summary()
    }

    fn render(&self) -> Markup {
        let summary = self.summary();
        let name = match &summary.reproduction {
            Some(of) => format!("reproduce {}", of.study),
            None => summary.experiment.clone(),
        };
        let plan = &self.report.run().plan;
        let cells = plan.cells.iter().filter(|cell| cell.has_its_cpus());
        let cpus = cells.map(CellPlan::measured_cpus);
        let title = match (plan.measured_cpu(), cpus.max_by_key(|cpus| cpus.count())) {
            (Some(_), Some(cpus)) if cpus.count() > 1 => format!("tare {name} on CPUs {cpus}"),
            (Some(cpu), _) => format!("tare {name} on CPU {cpu}"),
            (None, _) => format!("tare {name}"),
        };
        let sections = self.sections();
        let body = html! {
            header {
                h1 { (title) }
                p { (self.machine_in_short()) }
                p { (summary.created.strftime("%-d %B %Y, %H:%M UTC").to_string()) }
            }
            main {
                (self.verdict())
                nav aria-label="Contents" {
                    ul { @for section in &sections { li { a href={ "#" (section.id) } { (section.name) } } } }
                }
                (rendered(&sections))
            }
            footer {
                p {
                    "Made by tare " (summary.tare_version) ". The figures of this page and of every run are in \
                     figures.csv and figures.parquet, its texts in summary.json, samples and exact counts in the \
                     other Parquet files of the run folder."
                }
            }
        };
        document(&title, &summary.verdict.headline, &body)
    }

    fn machine_in_short(&self) -> String {
        let Some(record) = &self.report.run().machine else {
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

    fn verdict(&self) -> Markup {
        let verdict = &self.summary().verdict;
        let serious: Vec<&Notice> = (self.summary().alarms.iter())
            .filter(|notice| notice.severity >= Severity::Warning)
            .collect();
        // Notices are shown as such, and not again as a sentence.
        let others = verdict.cautions.iter().skip(serious.len());
        let run = self.report.run();
        let mut stories = self.report.stories();
        let picture = stories.find_map(|story| story.first_picture(run, &self.detail));
        html! {
            @for notice in serious.iter().filter(|notice| notice.severity == Severity::Error) {
                (caution(notice))
            }
            p.headline { (sentence(&verdict.headline)) }
            @if let Some(reproduction) = &self.summary().reproduction { (claims::answers(reproduction)) }
            @for detail in &verdict.details { p { (sentence(detail)) } }
            @for notice in serious.iter().filter(|notice| notice.severity < Severity::Error) {
                (caution(notice))
            }
            @for text in others { p.caution { (sentence(text)) } }
            @if let Some(picture) = picture { (picture) }
        }
    }

    /// Returns the sections of the page.
    fn sections(&self) -> Vec<Section> {
        let (summary, run) = (self.summary(), self.report.run());
        let mut sections = Vec::new();
        let mut add = |id: &str, name: &str, content: Option<Markup>| {
            sections.extend(content.map(|content| Section::new(id, name, content)));
        };
        if let Some(reproduction) = &summary.reproduction {
            let name = format!("Against {}", reproduction.study);
            add("claims", &name, Some(claims::published(reproduction)));
        }
        let results = self.each_story(|story| grouped::all(story, run, Medium::Page));
        // That of the first story stands next to the verdict.
        let pictures = self.report.stories();
        let pictures = pictures.filter_map(|story| story.first_picture(run, &self.detail));
        let results = results.map(|tables| {
            html! { @for picture in pictures.skip(1) { (picture) } (tables) }
        });
        add("results", "Results", results);
        let own = self
            .report
            .stories()
            .flat_map(|story| story.sections(run, &self.detail));
        // Where nothing was measured, some have nothing to show.
        for section in own.filter(|section| !section.content.0.is_empty()) {
            add(&section.id, &section.name, Some(section.content));
        }
        let name = match summary.loads.is_empty() {
            true => "Daemons",
            false => "Loads",
        };
        add("loads", name, places::loads(summary));
        let every_run = self.each_story(|story| grouped::every_run(story, run));
        add("runs", "Every run", every_run);
        let own = Some(run).filter(|run| !run.is_imported());
        add(
            "calibration",
            "Calibration",
            own.and_then(calibration::calibration),
        );
        add(
            "places",
            "The targets, from inside",
            places::places(&summary.places),
        );
        let not_measured = method::not_measured(self.report);
        add(
            "not-measured",
            "What was not measured, and why",
            Some(not_measured),
        );
        if let Some(record) = run.machine.as_ref().filter(|_| !run.is_imported()) {
            let findings = machine::findings(&record.findings, run.plan.measured_cpu());
            add("findings", "What disturbs measuring here", Some(findings));
            add(
                "machine",
                "Machine",
                Some(machine::machine(record, run.plan.cpu)),
            );
        }
        add("method", "Method", Some(method::method(self.report)));
        add(
            "provenance",
            "Provenance",
            Some(method::provenance(self.report)),
        );
        sections
    }

    /// Renders the tables of all stories; `None` if there are none. Tables without information are
    /// folded away.
    fn each_story(&self, tables: impl Fn(&dyn Story) -> Vec<Titled>) -> Option<Markup> {
        let tables: Vec<Titled> = self.report.stories().flat_map(tables).collect();
        let content = |read: &str, table| {
            html! {
                @if !read.is_empty() { p.read { (sentence(read)) } }
                (self.table(table))
            }
        };
        (!tables.is_empty()).then(|| {
            html! {
                @for titled in tables {
                    @let read = titled.caption(|_| true);
                    @if let Some(nothing) = titled.table.nothing {
                        details.nothing { summary { (titled.title) ": " (nothing) } (content(&read, titled.table)) }
                    } @else {
                        h3 { (titled.title) }
                        (content(&read, titled.table))
                    }
                }
            }
        })
    }

    /// Renders a table; one with many rows is folded away, and cut if there is no room for all of
    /// them.
    fn table(&self, mut table: Table) -> Markup {
        let all = table.lines();
        table.rows.truncate(self.detail.rows);
        let left_out = all - table.lines();
        let shown = html! {
            (table.render())
            @if left_out > 0 { p.note { (N.count(left_out as u64)) " more are in figures.csv." } }
        };
        if table.rows.len() <= FOLDED {
            return shown;
        }
        html! { details { summary { (N.count(table.lines() as u64)) " rows" } (shown) } }
    }
}

fn caution(notice: &Notice) -> Markup {
    let (class, word) = match notice.severity {
        Severity::Error => ("caution error", "Beware. "),
        Severity::Warning | Severity::Note => ("caution", "Caution. "),
    };
    html! { p class=(class) role="note" { b { (word) } (sentence(&notice.text)) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How linear red, green and blue are seen: with all cones, and without one of the three
    /// kinds (Machado, Oliveira and Fernandes, 2009).
    const VISION: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152, 1.053, -0.205],
            [0.115, 0.786, 0.099],
            [-0.004, -0.048, 1.052],
        ],
        [
            [0.367, 0.861, -0.228],
            [0.280, 0.673, 0.047],
            [-0.012, 0.043, 0.969],
        ],
        [
            [1.256, -0.077, -0.179],
            [-0.078, 0.931, 0.148],
            [0.005, 0.691, 0.304],
        ],
    ];

    type Colour = [f64; 3];

    fn times(rows: [[f64; 3]; 3], colour: Colour) -> Colour {
        rows.map(|row| row.iter().zip(colour).map(|(a, b)| a * b).sum())
    }

    /// Returns the linear red, green and blue of a colour of a theme.
    fn colour(theme: &str, name: &str) -> Colour {
        let (_, text) = theme.split_once(&format!("--{name}: #")).unwrap();
        let text = &text[..text.find(';').unwrap()];
        let digits = text.len() / 3;
        [0, 1, 2].map(|at| {
            let part = text[at * digits..][..digits].repeat(3 - digits);
            let value = f64::from(u8::from_str_radix(&part, 16).unwrap()) / 255.0;
            match value <= 0.04045 {
                true => value / 12.92,
                false => ((value + 0.055) / 1.055).powf(2.4),
            }
        })
    }

    /// Returns how different two colours look (Oklab).
    fn distance(vision: [[f64; 3]; 3], one: Colour, other: Colour) -> f64 {
        const CONES: [[f64; 3]; 3] = [
            [0.4122, 0.5363, 0.0514],
            [0.2119, 0.6807, 0.1074],
            [0.0883, 0.2817, 0.6300],
        ];
        const LAB: [[f64; 3]; 3] = [
            [0.2105, 0.7936, -0.0041],
            [1.9780, -2.4286, 0.4506],
            [0.0259, 0.7828, -0.8087],
        ];
        let [one, other] = [one, other].map(|colour| {
            let seen = times(vision, colour).map(|part| part.clamp(0.0, 1.0));
            times(LAB, times(CONES, seen).map(f64::cbrt))
        });
        let squares = one.iter().zip(other).map(|(a, b)| (a - b).powi(2));
        squares.sum::<f64>().sqrt()
    }

    #[test]
    fn colours_of_series_differ_with_any_vision_and_from_the_page() {
        let themes: Vec<&str> = STYLE.split(":root {").skip(1).collect();
        assert_eq!(themes.len(), 3);
        for theme in themes {
            let of = |at: usize| colour(theme, &format!("s{at}"));
            let light = |colour: Colour| {
                let parts = colour.iter().zip([0.2126, 0.7152, 0.0722]);
                parts.map(|(part, weight)| part * weight).sum::<f64>() + 0.05
            };
            let page = light(colour(theme, "page"));
            for one in 0..crate::svg::COLOURS {
                let own = light(of(one));
                assert!(own.max(page) / own.min(page) >= 3.0, "s{one}");
                for (other, vision) in (0..one).flat_map(|other| VISION.map(|all| (other, all))) {
                    let apart = distance(vision, of(one), of(other));
                    assert!(apart > 0.11, "s{one} and s{other}: {apart}");
                }
            }
        }
    }
}
