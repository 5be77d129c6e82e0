//! How primitives are shown: what each should cost, what it costs, and what the machine turns out
//! to be.
//!
//! Above the kit it has what only primitives can say: a model of the machine from what they cost
//! ([`machine`]), the checks of one primitive against another ([`checks`]), and the published table
//! of cse221-2022. [`measures`] is large because each kind of primitive has its own measures.

mod checks;
mod cse221_2022;
mod csv;
mod machine;
mod measures;
mod pictures;
mod tables;
mod verdict;

use maud::{Markup, html};
use tare_figures::Run;
use tare_figures::claims::Published;
use tare_figures::format::Numbers;
use tare_figures::notices::Notice;
use tare_figures::rows::{CellData, Figure, Measure, Row};
use tare_figures::verdict::Verdict;
use tare_figures::words;
use tare_pages::html::{Detail, Section};
use tare_pages::table::Table;
use tare_pages::tables::{Line, Tabled};
use tare_pages::{Story, Titled, View};
use tare_results::model::Plan;

use super::{NAME, Primitives};
use checks::Flags;

/// How numbers are written in sentences and on terminals.
const N: Numbers = Numbers::PLAIN;

/// The titles of the tables besides those of figures.
const CLAIMED: &str = "Claimed and effective";
const ABSENT: &str = "Primitives not measured, or not to the end";

impl View for Primitives {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn measures(&self) -> &'static [Measure] {
        measures::MEASURES
    }

    fn studies(&self) -> &'static [&'static Published] {
        &[&cse221_2022::STUDY]
    }

    fn begin(&self) -> Box<dyn Story> {
        Box::new(Flags::default())
    }

    fn live(&self, data: &CellData<'_>) -> Result<String, String> {
        verdict::live(data)
    }
}

impl Story for Flags {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn take(&mut self, _run: &Plan, data: &CellData<'_>) -> Result<(), String> {
        checks::failed(data)?;
        self.look_at(data)
    }

    fn tables(&self, _run: &Run) -> Vec<Tabled> {
        tables::tables()
    }

    fn arrange(&self, _run: &Run, _tabled: &Tabled, lines: &mut Vec<Line<'_>>) {
        tables::arrange(lines);
    }

    fn name(&self, run: &Run, line: &Line<'_>) -> (Option<String>, String) {
        tables::name(run, line)
    }

    fn notices(&self, run: &Run) -> Vec<Notice> {
        checks::find(self, run)
    }

    fn verdict(&self, run: &Run) -> Option<Verdict> {
        verdict::of(run)
    }

    fn more(&self, run: &Run) -> Vec<Titled> {
        let mut claimed = Table::new(["", "claimed", "effective"]);
        claimed
            .rows
            .extend(machine::claimed(run).into_iter().map(Vec::from));
        let mut absent = Table::new(["", "why"]).of_prose();
        absent.ends_in_prose = true;
        absent.rows.extend(
            checks::absent(run)
                .into_iter()
                .map(|of| vec![of.name, of.why]),
        );
        absent.rows.extend(self.dropped());
        let needing = checks::needing_a_system(run).into_iter();
        absent.rows.extend(needing.map(|(target, number)| {
            let number = words::counted(N, number, "primitive", "primitives");
            let why = "an operating system is needed: not in the plan";
            vec![format!("{number} on {target}"), why.to_owned()]
        }));
        let lacking = checks::lacking_a_cpu(run).into_iter();
        absent.rows.extend(lacking.map(|name| {
            let why = "its counterpart there is measured on one CPU";
            vec![name, why.to_owned()]
        }));
        let tables = [(CLAIMED, claimed), (ABSENT, absent)];
        let mut titled = tables.map(|(title, table)| Titled {
            title: title.to_owned(),
            read: String::new(),
            table,
        });
        titled[0].read = machine::measured_on(run).unwrap_or_default();
        titled.into()
    }

    fn first_picture(&self, run: &Run, _detail: &Detail) -> Option<Markup> {
        pictures::expected(
            run,
            "What key primitives should cost, and what they cost",
            verdict::is_key,
        )
    }

    fn sections(&self, run: &Run, _detail: &Detail) -> Vec<Section> {
        let expected = tables::reasoning(run).map(|reasons| {
            let picture = pictures::expected(
                run,
                "What each primitive should cost, and what it costs",
                |_| true,
            );
            html! { @if let Some(picture) = picture { (picture) } (reasons) }
        });
        let more = self.more(run);
        let shown = |title| {
            let more = more
                .iter()
                .find(|more| more.title == title && !more.table.is_empty());
            more.map(|more| html! { @if !more.read.is_empty() { p { (more.read) } } (more.table.render()) })
        };
        let sections = [
            ("memory", "The memory hierarchy", pictures::memory(run)),
            ("claimed", CLAIMED, shown(CLAIMED)),
            ("expected", "What was expected, and why", expected),
            ("absent", ABSENT, shown(ABSENT)),
        ];
        let shown = sections.into_iter();
        shown
            .filter_map(|(id, title, content)| Some(Section::new(id, title, content?)))
            .collect()
    }

    fn method(&self) -> Markup {
        html! {
            p {
                b { "primitives" } " keeps two costs apart. The " b { "intrinsic" } " cost is what a primitive takes if nothing comes in \
                 between: the least time of 2n of them less the least time of n, divided by n, so that the stamps and the loop around \
                 cancel out; of what can't be done many times in a row, the least time of one. The " b { "experienced" } " cost is the \
                 distribution of single ones between two fenced stamps, less what an empty region reads as. The mean is that of many in a \
                 row, without stamps between them."
            }
            p {
                "Each primitive runs in its own process, pinned to the measured CPU; the other side of a primitive with two sides runs on \
                 the CPU that the label " code { "cpu" } " names: the same one, or another. The " b { "expected" } " cost was worked out \
                 before, from the machine's description and from a cycle of the core's clock, which was measured when the plan was made, \
                 and stands in the plan."
            }
            p {
                "Levels of the memory hierarchy are read off the latencies of one random cycle through all lines of a working set: a level's \
                 capacity is where a third of all loads miss it, on the curve of the least latencies of all runs. The TLB's reach is read off likewise, from one line of each page against as \
                 many lines side by side; the size of a line from pairs of loads of which the second no longer comes with the first."
            }
        }
    }

    fn csv(&self, run: &Run) -> Vec<(String, String)> {
        Vec::from_iter(csv::file(run).map(|text| (csv::FILE.to_owned(), text)))
    }

    fn limits(&self) -> Vec<String> {
        [
            "Costs are those of warm caches and trained predictors. The first time costs more; faults and the memory curves show how much.",
            "A time stamp has a step, which the calibration tells. Times of single ones below some steps are multiples of it; the intrinsic \
             cost is not.",
            "What a level of the memory hierarchy holds is what one core gets of it while others use it, too.",
        ]
        .map(str::to_owned)
        .into()
    }
}

/// A primitive by its id, and labels that choose one of its variants.
type Variant = (&'static str, &'static [(&'static str, &'static str)]);

/// Returns whether a row is of a variant of a primitive.
fn is(row: &Row, (id, labels): (&str, &[(&str, &str)])) -> bool {
    measures::id_of(&row.labels) == id && labels.iter().all(|(key, value)| row.has(key, value))
}

/// Returns the rows of a measure that have a figure.
fn known<'a>(
    run: &'a Run,
    measure: &'a str,
    figure: Figure,
) -> impl Iterator<Item = (&'a Row, f64)> {
    let rows = run.rows.of(NAME, measure);
    rows.filter(move |row| row.figure == figure)
        .filter_map(|row| Some((row, row.estimate()?)))
}

/// Returns whether two rows are of one primitive on one target under one load.
fn is_same(one: &Row, other: &Row) -> bool {
    one.labels == other.labels && one.target == other.target && one.load == other.load
}

/// Returns the figure of another measure of the same primitive.
fn other(run: &Run, of: &Row, measure: &str) -> Option<f64> {
    let mut rows = run.rows.of(NAME, measure);
    rows.find(|row| is_same(row, of))?.estimate()
}
