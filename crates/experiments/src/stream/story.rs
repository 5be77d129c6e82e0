//! How bandwidths are shown: by target and kernel, with what a target differs by from the first.

use maud::{Markup, html};
use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::compare;
use tare_figures::notices::{Notice, Severity};
use tare_figures::rows::{Better, CellData, Figure, Measure, Row, Sample, Samples, written};
use tare_figures::verdict::Verdict;
use tare_pages::html::Detail;
use tare_pages::html::overview::overview;
use tare_pages::kit::checks::{about, labels};
use tare_pages::kit::sentence::{MANY, certainty, few_or_ends};
use tare_pages::kit::series::native_first;
use tare_pages::tables::{Column, Line, Tabled};
use tare_pages::{Story, View};
use tare_results::target::Kernel;
use tare_stats::welch;

use super::{CACHES, NAME, Stream};

/// The kernel of the verdict.
const TRIAD: [(&str, &str); 1] = [("kernel", "triad")];

const MEASURES: &[Measure] = &[
    Measure::time(
        "bandwidth",
        "bandwidth of memory",
        &[Figure::MEDIAN, Figure::Max, Figure::Min, Figure::Mean],
        |data| data.bandwidths("pass"),
    )
    .unit("bytes/s")
    .better(Better::More),
    Measure::count(
        "halves",
        "p-value of Welch's test between the halves of a data set",
        &[Figure::Value],
        halves,
    )
    .better(Better::Neither),
    Measure::count(
        "attempts",
        "data sets until two halves agreed",
        &[Figure::Value],
        |data| data.valued("attempts"),
    )
    .better(Better::Less),
];

const TABLE: &[Column] = &[
    Column::new("p50", "bandwidth", Figure::MEDIAN),
    Column::new("95 % interval", "bandwidth", Figure::MEDIAN).interval(),
    Column::new("best", "bandwidth", Figure::Max).highest(),
    Column::new("least", "bandwidth", Figure::Min),
    Column::new("mean", "bandwidth", Figure::Mean),
    Column::new("p between\nhalves", "halves", Figure::Value),
];

impl View for Stream {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn measures(&self) -> &'static [Measure] {
        MEASURES
    }

    fn begin(&self) -> Box<dyn Story> {
        Box::new(Streams)
    }
}

/// The story: everything is made of rows.
#[derive(Debug)]
struct Streams;

impl Story for Streams {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn tables(&self, _run: &Run) -> Vec<Tabled> {
        vec![Tabled {
            title: "Bandwidth of memory".to_owned(),
            read: "What is read and what is written is counted, as in STREAM. p50 and least are medians over the runs, mean and p are \
                   means of the runs, and best is the highest of all."
                .to_owned(),
            columns: TABLE.to_vec(),
        }]
    }

    fn name(&self, _run: &Run, line: &Line<'_>) -> (Option<String>, String) {
        let kernel = line.of.labels.get("kernel").unwrap_or_default();
        (Some(place(line.of)), kernel.to_owned())
    }

    fn notices(&self, run: &Run) -> Vec<Notice> {
        let cases = Case::all(run, NAME);
        let differ = labels(&cases, |case| {
            let row = case.row("halves", Figure::Value, &TRIAD);
            let each = row.into_iter().flat_map(|row| &row.each);
            let mut each = each.filter_map(|each| each.figure.value());
            each.any(|p| p <= 0.1)
        });
        let cached = labels(&cases, is_cached);
        let notices = [
            about((Severity::Warning, "halves-differ"), &differ, |names| {
                format!(
                    "The two halves of a data set of {names} differ for Triad (Welch's test, p ≤ 0.1), and so did those of all \
                     attempts before: something else used the memory, or the clock of the CPU changed."
                )
            }),
            about((Severity::Warning, "array-cached"), &cached, |names| {
                format!(
                    "The arrays of {names} are smaller than {CACHES} times the largest cache, so part of what is shown is the \
                     cache's. Make them larger (--array)."
                )
            }),
        ];
        notices.into_iter().flatten().collect()
    }

    fn verdict(&self, run: &Run) -> Option<Verdict> {
        let cases = Case::all(run, NAME);
        let of = |figure| {
            let rows = cases
                .iter()
                .filter_map(move |case| case.row("bandwidth", figure, &TRIAD));
            rows.filter(|row| row.estimate().is_some())
                .collect::<Vec<&Row>>()
        };
        // Few passes have no median.
        let (medians, means) = (of(Figure::MEDIAN), of(Figure::Mean));
        let (rows, a) = match medians.len() < means.len() {
            true => (means, "a mean"),
            false => (medians, "a median"),
        };
        let (told, emulated) = native_first(rows, |row| row.emulated);
        told.first()?;
        let each = |rows: &[&Row]| {
            let each = rows.iter().filter_map(|row| {
                let value = row.estimate()?;
                Some((
                    value,
                    format!("{} on {}", written(value, row.unit), place(row)),
                ))
            });
            few_or_ends(&each.collect::<Vec<_>>())
        };
        let comparisons = compare::targets(run, MANY).into_iter();
        let compared = comparisons.filter_map(|comparison| {
            let own = told.iter().filter(|row| row.target == comparison.names[1]);
            let own = own.map(|row| {
                (
                    further(row).trim_start_matches(',').trim_start().to_owned(),
                    *row,
                )
            });
            comparison.about("bandwidth of Triad", &own.collect::<Vec<_>>())
        });
        let apart = (!emulated.is_empty()).then(|| {
            format!(
                "Executed by an emulator: Triad moves {a} of {}.",
                each(&emulated)
            )
        });
        Some(Verdict {
            headline: format!("Triad moves {a} of {}.", each(&told)),
            details: compared.chain(apart).collect(),
            certainty: certainty(
                told.iter()
                    .map(|row| (format!("Triad on {}", place(row)), *row)),
            ),
            ..Verdict::default()
        })
    }

    fn first_picture(&self, run: &Run, _detail: &Detail) -> Option<Markup> {
        let rows = run.rows.of(NAME, "bandwidth");
        let rows = rows.filter(|row| row.figure == Figure::MEDIAN);
        let rows: Vec<&Row> = rows.collect();
        overview(&rows, "Bandwidth of memory (p50)".to_owned(), "bandwidth")
    }

    fn method(&self) -> Markup {
        html! {
            p {
                b { "stream" } " runs the four kernels of STREAM in turn over three arrays: Copy " code { "c = a" } ", Scale "
                code { "b = s·c" } ", Add " code { "c = a + b" } ", Triad " code { "a = b + s·c" } ". Each pass is timed by the \
                 TSC between fenced stamps; the first one is dropped. What is read and what is written is counted, lines that are \
                 fetched before a write are not. The arrays are checked at the end. The kernels are the same machine code on every \
                 target: 16 bytes at a time, without stores that go around the caches."
            }
            p {
                "A data set is kept if its two halves agree for Triad by Welch's t-test (p > 0.1), as in includeos-2015; if not, \
                 the next one is measured. The test holds its level for a single data set: one in ten of a steady machine is \
                 rejected by chance. Repeating until one passes accepts nearly every steady machine, and an unsteady one by chance \
                 in one of ten attempts or more, so the number of attempts is a figure, and which intervals count is decided by \
                 runs, not by passes."
            }
        }
    }

    fn limits(&self) -> Vec<String> {
        vec!["One CPU uses the memory; several would reach more.".to_owned()]
    }
}

/// Names the target, load and size of a row.
fn place(row: &Row) -> String {
    format!("{}{}", row.marked_target(), further(row))
}

/// Names load and size of a row: ` under dd, 16 MiB`.
fn further(row: &Row) -> String {
    let size = row.labels.number("size");
    let size = size.map_or_else(String::new, |bytes| {
        format!(", {}", written(bytes as f64, "bytes"))
    });
    format!("{}{size}", row.load.under())
}

/// Returns whether the arrays of a case are smaller than the caches of its machine want them.
fn is_cached(case: &Case<'_>) -> bool {
    let machine = case.run.machine.as_ref();
    let is_here = !matches!(case.plan.target.kernel(), Kernel::Unknown)
        && !case.plan.target.kernel().is_remote();
    let caches = machine
        .into_iter()
        .flat_map(|one| &one.machine.topology.caches);
    let largest = caches.map(|cache| cache.size_bytes).max().unwrap_or(0);
    let mut bytes = case
        .records()
        .filter_map(|record| record.value("bytes", &kernel("copy")));
    is_here && bytes.any(|bytes| bytes / 2.0 < (largest * CACHES) as f64)
}

fn kernel(name: &str) -> tare_results::model::Labels {
    tare_results::model::Labels::of([("kernel", name)])
}

/// Returns the p-value between the two halves of each kernel's passes.
fn halves(data: &CellData<'_>) -> Samples {
    let sets = data.sets("pass").filter_map(|(head, set)| {
        let times: Vec<f64> = set.raw.iter().map(|pass| pass.value as f64).collect();
        let (first, second) = times.split_at(times.len() / 2);
        Some((head.labels.clone(), Sample::Number(welch(first, second)?)))
    });
    Ok(sets.collect())
}
