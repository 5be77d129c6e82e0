//! How the experiment is shown: its measure, a picture, and a claim.

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::claims::{Answered, Claim, Published, answer, nothing_to_compare};
use tare_figures::rows::{Better, Figure, Measure, Row, written};
use tare_pages::html::Section;
use tare_pages::html::overview::overview;
use tare_pages::plain::Plain;
use tare_pages::{Story, View};

use super::Clocks;
use super::plan::NAME;

const MEASURES: &[Measure] = &[
    Measure::recorded("read", "cost of reading a clock", FIGURES, |data, id| {
        data.sampled(id)
    })
    .unit("ns"),
    Measure::value("distinct", "readings that differ from the one before").better(Better::Neither),
];
const FIGURES: &[Figure] = &[Figure::MEDIAN, Figure::Mean, Figure::P99, Figure::Max];

impl View for Clocks {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn measures(&self) -> &'static [Measure] {
        MEASURES
    }

    fn studies(&self) -> &'static [&'static Published] {
        &[&STUDY]
    }

    fn begin(&self) -> Box<dyn Story> {
        Box::new(Plain::new(NAME, MEASURES).with_picture(slowest))
    }
}

/// Shows the slowest reads by target and clock.
fn slowest(run: &Run) -> Option<Section> {
    let rows = run.rows.of(NAME, "read");
    let rows: Vec<&Row> = rows.filter(|row| row.figure == Figure::Max).collect();
    let picture = overview(
        &rows,
        "The slowest read".to_owned(),
        "greatest cost of a read",
    )?;
    Some(Section::new(NAME, "Slowest reads", picture))
}

/// A claim, and the study that makes it.
const STUDY: Published = Published {
    name: "clocks-tutorial",
    question: "What does reading a clock cost?",
    claims: &[Claim {
        text: "Reading the monotonic clock costs more than reading the TSC.",
        tell: monotonic_costs_more,
    }],
    tables: &[],
    note: "",
    compare: nothing_to_compare,
};

fn monotonic_costs_more(run: &Run) -> Answered {
    let cases = Case::all(run, NAME);
    let median = |clock| {
        let mut own = cases.iter().filter(|case| {
            case.plan.target.kernel().is_host() && case.plan.labels.get("clock") == Some(clock)
        });
        own.find_map(|case| Some(case.over("read", Figure::MEDIAN, &[])?.estimate))
    };
    let (Some(tsc), Some(monotonic)) = (median("tsc"), median("monotonic")) else {
        return Err("the run does not have both clocks".into());
    };
    let [low, high] = [tsc, monotonic].map(|ns| written(ns, "ns"));
    answer(monotonic > tsc, format!("tsc {low}, monotonic {high}"))
}
