//! Tables of a run that terminal and page share.

use tare_figures::analysis::{LoadFigure, LoadRate};
use tare_figures::claims::{PublishedTable, Reproduction};
use tare_figures::format::Numbers;
use tare_figures::words::NONE;
use tare_results::model::LoadPlace;

use crate::table::{Medium, Table, Titled};

/// Returns the published figures of a study next to those of the run, by target.
pub(crate) fn comparisons(reproduction: &Reproduction) -> Table {
    let mut table = Table::new(["figure", "published", "here"]).of_prose();
    for (target, comparisons) in reproduction.by_target() {
        table.heading(target);
        for of in comparisons {
            table.row([&of.what, &of.published, &of.here].map(String::clone));
        }
    }
    table
}

/// Returns a table of a study, as published.
pub(crate) fn published(of: &PublishedTable) -> Titled {
    let mut table = Table::new(&of.head);
    table.rows.clone_from(&of.rows);
    Titled {
        title: of.title.clone(),
        read: of.note.clone(),
        table,
    }
}

/// Returns what the loads did, by target: medians over the blocks with the range. A page also names
/// the number of blocks, and loads that nothing was counted of.
pub(crate) fn loads(loads: &[LoadFigure], medium: Medium) -> Table {
    let is_page = medium == Medium::Page;
    let mut head = vec!["load", "what", "median", "range"];
    head.extend(is_page.then_some("blocks"));
    let mut table = Table::new(head).left(&[1]);
    // A schedule has its figures load by load.
    let is_shown = |load: &LoadFigure| !load.rates.is_empty() || (is_page && !load.is_schedule);
    let mut place = String::new();
    for load in by_place(loads).into_iter().filter(|load| is_shown(load)) {
        let own = place_of(load);
        if own != place {
            table.heading(&own);
            place = own;
        }
        for (number, rate) in load.rates.iter().enumerate() {
            let name = if number == 0 { load.load.as_str() } else { "" };
            let mut row = vec![name.to_owned()];
            row.extend(rate_cells(rate, medium.numbers()));
            let blocks = medium.numbers().count(rate.blocks.len() as u64);
            row.extend(is_page.then_some(blocks));
            table.row(row);
        }
        if load.rates.is_empty() {
            let nothing = [&load.load, "nothing was counted", NONE, NONE, NONE];
            table.row(nothing.map(str::to_owned));
        }
    }
    table
}

/// Puts the loads of one place together, places in the order in which they come.
fn by_place(loads: &[LoadFigure]) -> Vec<&LoadFigure> {
    let places: Vec<String> = loads.iter().map(place_of).collect();
    let mut sorted: Vec<&LoadFigure> = loads.iter().collect();
    sorted.sort_by_key(|load| places.iter().position(|place| *place == place_of(load)));
    sorted
}

/// Names where a load ran, as seen from the measured code.
fn place_of(load: &LoadFigure) -> String {
    let place = match load.place {
        LoadPlace::Beside => "next to it",
        LoadPlace::Inside => "inside",
    };
    format!("{}, loads {place}", load.target)
}

/// Writes what a load did of one thing: what, median, range.
fn rate_cells(rate: &LoadRate, numbers: Numbers) -> [String; 3] {
    let spread = &rate.per_second;
    let [median, lowest, highest] = [spread.figure, spread.lowest, spread.highest]
        .map(|per_second| load_rate(numbers, &rate.what, per_second));
    let what = rate.what.trim_start_matches("ns of ").to_owned();
    // A single block has no range.
    let range = match rate.blocks.len() {
        0 | 1 => NONE.to_owned(),
        _ => format!("{lowest} to {highest}"),
    };
    [what, median, range]
}

/// Writes how much a load did per second: `412 MB/s`, `1,203/s`; of CPU time how many CPUs that is.
fn load_rate(numbers: Numbers, what: &str, per_second: f64) -> String {
    if what == "ns of CPU time" {
        return numbers.with_unit(&numbers.short(per_second / 1e9), "CPUs");
    }
    if !what.starts_with("bytes") {
        return numbers.rate(per_second);
    }
    let (value, unit) = match per_second {
        v if v < 999.5 => (v, "B/s"),
        v if v < 999.5e3 => (v / 1e3, "kB/s"),
        v if v < 999.5e6 => (v / 1e6, "MB/s"),
        v => (v / 1e9, "GB/s"),
    };
    numbers.with_unit(&numbers.short(value), unit)
}
