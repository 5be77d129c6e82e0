//! How bandwidths are shown: by target and kernel, with what a target differs by from the first.

use maud::{Markup, html};
use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::compare;
use tare_figures::group::sort_in_groups;
use tare_figures::notices::{Notice, Severity};
use tare_figures::rows::{
    Better, CellData, Figure, Measure, Row, Sample, Samples, behind, written,
};
use tare_figures::verdict::Verdict;
use tare_measured::stream::KERNELS;
use tare_pages::html::Detail;
use tare_pages::html::overview::overview;
use tare_pages::kit::checks::{Check, of_cases};
use tare_pages::kit::sentence::{MANY, few_or_ends, figure_or_modes, name_before};
use tare_pages::kit::series::native_first;
use tare_pages::tables::{Column, Line, Tabled};
use tare_pages::{Story, View};
use tare_results::model::Labels;
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
        &[Figure::Min],
        halves,
    )
    .better(Better::Neither),
    Measure::value("attempts", "data sets measured").figures(&[Figure::Max]),
];

const TABLE: &[Column] = &[
    Column::new("p50", "bandwidth", Figure::MEDIAN).read("p50 is the median of the runs' medians."),
    Column::new("95 % interval", "bandwidth", Figure::MEDIAN).interval(),
    Column::new("best", "bandwidth", Figure::Max).read("Best is the highest of all runs."),
    Column::new("least", "bandwidth", Figure::Min).read("Least is the lowest of all runs."),
    Column::new("mean", "bandwidth", Figure::Mean).read("Mean is that of the runs' means."),
    Column::new("p between\nhalves", "halves", Figure::Min)
        .read("p is the lowest of Welch's test between the halves of a run's data set."),
];

const CHECKS: &[Check] = &[
    Check {
        of: (Severity::Warning, "halves-differ"),
        holds: differs,
        text: "On {}, the halves of a data set differ for Triad (Welch's test, p ≤ 0.1) in every attempt of a run: a load or other \
               work used the memory, the CPU's clock changed, or it is chance, as in one of ten attempts on a steady machine.",
    },
    Check {
        of: (Severity::Warning, "array-cached"),
        holds: is_cached,
        text: "Arrays are smaller than 4 times the largest cache on {}, so part of what is shown there is the cache's. Make them \
               larger (--array).",
    },
];

impl View for Stream {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn measures(&self) -> &'static [Measure] {
        MEASURES
    }

    fn begin(&self) -> Box<dyn Story> {
        Box::new(*self)
    }
}

impl Story for Stream {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn tables(&self, _run: &Run) -> Vec<Tabled> {
        let read = "What is read and what is written is counted, as in STREAM.";
        vec![Tabled::new("Bandwidth of memory", read, TABLE)]
    }

    fn arrange(&self, _run: &Run, _tabled: &Tabled, lines: &mut Vec<Line<'_>>) {
        in_order(lines, |line| line.of);
    }

    fn name(&self, _run: &Run, line: &Line<'_>) -> (Option<String>, String) {
        (Some(place(line.of)), kernel(line.of).to_owned())
    }

    fn notices(&self, run: &Run) -> Vec<Notice> {
        of_cases(&Case::all(run, NAME), place, CHECKS)
    }

    fn verdict(&self, run: &Run) -> Option<Verdict> {
        let cases = Case::all(run, NAME);
        let figure = figure(run);
        let rows = cases
            .iter()
            .filter_map(|case| case.row("bandwidth", figure, &TRIAD));
        let rows: Vec<&Row> = rows.filter(|row| row.estimate().is_some()).collect();
        // Sentences of one verdict name a figure alike.
        let has_modes = rows.iter().any(|row| row.is_between_modes());
        let of = name_before(figure, has_modes);
        let (told, _) = native_first(rows, |row| row.emulated);
        // The arrays that all have in common come once.
        let common = arrays(told.first()?);
        let is_common = told.iter().all(|row| arrays(row) == common);
        let each = told.iter().filter_map(|row| {
            let value = row.estimate()?;
            let written = figure_or_modes(row, written(value, row.unit), has_modes);
            let own = if is_common {
                String::new()
            } else {
                arrays(row)
            };
            let (target, under) = (row.marked_target(), row.load.under());
            Some((value, format!("{written} on {target}{under}{own}")))
        });
        let each = few_or_ends(&each.collect::<Vec<_>>());
        let common = if is_common { common } else { String::new() };
        let comparisons = compare::targets(run, MANY).into_iter();
        let compared = comparisons.filter_map(|comparison| {
            let own = told.iter().filter(|row| row.target == comparison.names[1]);
            let own = own.map(|row| {
                let name = comparison.under(row) + &arrays(row);
                (name.trim_start_matches([',', ' ']).to_owned(), *row)
            });
            comparison.about(&[("bandwidth of Triad", own.collect())])
        });
        Some(Verdict {
            headline: format!("Triad moves {of}{each}{common}."),
            details: compared.collect(),
            ..Verdict::default()
        })
    }

    fn first_picture(&self, run: &Run, _detail: &Detail) -> Option<Markup> {
        let figure = figure(run);
        let rows = run.rows.of(NAME, "bandwidth");
        let mut rows: Vec<&Row> = rows.filter(|row| row.figure == figure).collect();
        // As in the table; the loads of a kernel are marks of one line.
        in_order(&mut rows, |row| row);
        let title = format!("Bandwidth of memory ({figure})");
        overview(&rows, title, "bandwidth")
    }

    fn method(&self) -> Markup {
        html! {
            p {
                b { "stream" } " runs the four kernels of STREAM in turn over three arrays: Copy " code { "c = a" } ", Scale "
                code { "b = s·c" } ", Add " code { "c = a + b" } ", Triad " code { "a = b + s·c" } ". Each pass is timed by the \
                 TSC between fenced stamps; the first one is dropped. The bytes are those that the kernel reads and writes, \
                 without the lines that the CPU fetches before a write. The arrays are checked at the end. The kernels are the same machine code on every \
                 target: 16 bytes at a time, without stores that go around the caches."
            }
            p {
                "A data set is kept if its two halves agree for Triad by Welch's t-test (p > 0.1), as in includeos-2015; if not, \
                 another one is measured. Repeated until it passes, the test is a filter, not a proof: halves that differ a \
                 little in every data set pass sooner or later. So the number of attempts is a figure, and intervals are over \
                 runs, never over passes."
            }
        }
    }

    fn limits(&self) -> Vec<String> {
        vec!["One CPU uses the memory; several would reach more.".to_owned()]
    }
}

/// Returns the figure that all have for Triad: the median, or the mean if one has too few passes.
fn figure(run: &Run) -> Figure {
    let count = |figure| {
        let rows = run.rows.of(NAME, "bandwidth");
        let of_triad = rows.filter(|row| row.figure == figure && row.has(TRIAD[0].0, TRIAD[0].1));
        of_triad.filter(|row| row.over.is_ok()).count()
    };
    match count(Figure::MEDIAN) < count(Figure::Mean) {
        true => Figure::Mean,
        false => Figure::MEDIAN,
    }
}

/// Names the target, load and size of a row.
fn place(row: &Row) -> String {
    row.marked_target() + &row.load.under() + &arrays(row)
}

/// Names the size of a row's arrays, if the plan gives it: `, arrays of 16 MiB`.
fn arrays(row: &Row) -> String {
    behind(&row.labels, &["kernel"])
}

/// Puts the kernels of each place in the order of STREAM.
fn in_order<'a, T>(all: &mut [T], row: impl Fn(&T) -> &'a Row) {
    sort_in_groups(all, |one| place(row(one)), |one| order(row(one)));
}

/// Returns the kernel of a row.
fn kernel(row: &Row) -> &str {
    row.labels.get("kernel").unwrap_or_default()
}

/// Returns the place of a row's kernel in a pass.
fn order(row: &Row) -> Option<usize> {
    let own = kernel(row);
    KERNELS.iter().position(|(name, _)| *name == own)
}

/// Returns whether the halves of a kept data set of a case differ.
fn differs(case: &Case<'_>) -> bool {
    let row = case.row("halves", Figure::Min, &TRIAD);
    let each = row.into_iter().flat_map(|row| &row.each);
    let mut each = each.filter_map(|each| each.figure.value());
    each.any(|p| p <= 0.1)
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
        .filter_map(|record| record.value("bytes", &Labels::of([("kernel", "copy")])));
    is_here && bytes.any(|bytes| bytes / 2.0 < (largest * CACHES) as f64)
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
