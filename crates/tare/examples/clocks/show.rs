//! How the experiment is shown: what it measures, a picture of its own, and a claim.

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::claims::{Answered, Claim, Published, answer, nothing_to_compare};
use tare_figures::rows::{Better, Figure, Measure, written};
use tare_pages::html::Section;
use tare_pages::html::parts::{Figure as Picture, N, legend_of};
use tare_pages::plain::Plain;
use tare_pages::svg::{Axis, Path, Plot, Scale, Side};
use tare_pages::{Story, View};

use super::{Clocks, NAME};

const MEASURES: &[Measure] = &[
    Measure {
        id: "read",
        title: "cost of reading a clock",
        unit: "ns",
        better: Better::Less,
        figures: &[Figure::MEDIAN, Figure::Mean, Figure::P99, Figure::Max],
        from: |data| data.sampled("read"),
    },
    Measure {
        id: "distinct",
        title: "readings that differ from the one before",
        unit: "",
        better: Better::Neither,
        figures: &[Figure::Value],
        from: |data| data.valued("distinct"),
    },
];

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
        Box::new(Plain::new(NAME, MEASURES).with_picture(bars))
    }
}

/// Draws a bar for each clock, as long as its median.
fn bars(run: &Run) -> Option<Section> {
    const HEIGHT: f64 = 28.0;
    let cases = Case::all(run, NAME);
    let bars = cases.iter().filter_map(|case| {
        let median = case.over("read", Figure::MEDIAN, &[])?;
        Some((case.plan.label(), median.estimate))
    });
    let bars: Vec<(String, f64)> = bars.collect();
    let longest = bars.iter().map(|bar| bar.1).reduce(f64::max)?;
    let what = "cost of a read, median";
    let mut plot = Plot::rows(bars.len() as f64 * HEIGHT, 200.0, what);
    let (_, top) = plot.upwards();
    let across = Scale::linear((0.0, longest * 1.2), plot.across());
    for (place, (name, median)) in bars.iter().enumerate() {
        let y = top + (place as f64 + 0.5) * HEIGHT;
        let mut bar = Path::default();
        bar.move_to(across.at(0.0), y);
        bar.line_to(across.at(*median), y);
        plot.path("line s0", &bar);
        plot.text("row", (10.0, y + 4.0), name);
        plot.text(
            "figure",
            (across.at(*median) + 8.0, y + 4.0),
            &written(*median, "ns"),
        );
    }
    let ticks = across.ticks(6);
    plot.axis(Axis::new(Side::Bottom, across, what, ticks, |ns| {
        N.ns_tick(ns)
    }));
    let picture = Picture {
        title: "What a read costs".to_owned(),
        read: "Each bar is the median over the runs.".to_owned(),
        legend: legend_of([]),
        plot: &plot,
        table: None,
    };
    Some(Section::new(NAME, "Clocks side by side", picture.render()))
}

/// A claim, and the study that makes it.
const STUDY: Published = Published {
    name: "clocks-tutorial",
    question: "What does reading a clock cost?",
    claims: &[Claim {
        text: "Reading the monotonic clock costs more than reading the TSC.",
        experiment: NAME,
        measures: "what reading each clock costs",
        tell: Some(monotonic_costs_more),
    }],
    tables: &[],
    note: "",
    compare: nothing_to_compare,
};

fn monotonic_costs_more(run: &Run) -> Answered {
    let cases = Case::all(run, NAME);
    let median = |clock| {
        let mut own = cases
            .iter()
            .filter(|case| case.plan.labels.get("clock") == Some(clock));
        own.find_map(|case| Some(case.over("read", Figure::MEDIAN, &[])?.estimate))
    };
    let (Some(tsc), Some(monotonic)) = (median("tsc"), median("monotonic")) else {
        return Err("the run has not both clocks".into());
    };
    let why = format!(
        "tsc {}, monotonic {}",
        written(tsc, "ns"),
        written(monotonic, "ns")
    );
    answer(monotonic > tsc, why)
}
