//! Tables of a run that terminal and page share.

use tare_figures::analysis::{LoadFigure, LoadRate};
use tare_figures::claims::{PublishedTable, Reproduction};
use tare_figures::format::Numbers;
use tare_figures::group::distinct;
use tare_figures::words::NONE;
use tare_results::model::{LoadCpus, Schedule};

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

/// How to read the work of loads in several places.
const PLACES: &str = "A load inside a target runs on its kernel and its CPUs, one next to it on those of this machine: compare \
                      what a load did in one place with nothing in another.";

/// Returns what the loads did, by target: medians over the blocks with the range. A page also names
/// the number of blocks, and loads that nothing was counted of.
pub(crate) fn loads(loads: &[LoadFigure], medium: Medium) -> Titled {
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
    let places = distinct(loads.iter().map(|load| load.place()));
    let places = (places.len() > 1).then(|| PLACES.to_owned());
    let shared = distinct(loads.iter().filter_map(shared_cpu)).into_iter();
    Titled {
        title: "Loads, as achieved".to_owned(),
        read: Vec::from_iter(places.into_iter().chain(shared)).join(" "),
        table,
    }
}

/// Says which CPU the processes of a command have in common, if it has but one.
fn shared_cpu(load: &LoadFigure) -> Option<String> {
    let schedule = Schedule::parse(&load.load).ok()?;
    let mut commands = schedule
        .loads()
        .iter()
        .filter(|one| one.command().is_some());
    let cpu = commands.find_map(|command| match command.cpus() {
        LoadCpus::These(cpus) if cpus.count() == 1 => Some(cpus),
        _ => None,
    })?;
    Some(format!(
        "All that the command on CPU {cpu} starts shares that CPU: a server and its client, too."
    ))
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
    let emulated = if load.emulated { " (emulated)" } else { "" };
    format!("{}{emulated}, loads {}", load.target, load.place())
}

/// Writes what a load did of one thing: what, median, range.
fn rate_cells(rate: &LoadRate, numbers: Numbers) -> [String; 3] {
    let spread = &rate.per_second;
    let [median, lowest, highest] = [spread.figure, spread.lowest, spread.highest]
        .map(|per_second| rate.written(numbers, per_second));
    // A single block has no range.
    let range = match rate.blocks.len() {
        0 | 1 => NONE.to_owned(),
        _ => format!("{lowest} to {highest}"),
    };
    [rate.name().to_owned(), median, range]
}
