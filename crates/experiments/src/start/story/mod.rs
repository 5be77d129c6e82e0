//! How starts are shown: how long instances take until they are ready, and which rate of starts
//! each target keeps up.
//!
//! Above the kit it has the published rates of calder-2020, the ladder of rates with its last step
//! that holds ([`ladder`]), and the parts of a start, which add up ([`parts`]).

mod calder_2020;
mod checks;
mod csv;
mod ladder;
mod measures;
pub(super) mod parts;
mod pictures;
mod tables;
mod verdict;

use maud::{Markup, html};
use tare_figures::Run;
use tare_figures::claims::Published;
use tare_figures::notices::Notice;
use tare_figures::rows::{CellData, Figure, Measure};
use tare_figures::verdict::Verdict;
use tare_pages::html::{Detail, Section};
use tare_pages::kit::series::PerCase;
use tare_pages::tables::{Line, Tabled};
use tare_pages::{Story, View};
use tare_results::model::{CellPlan, Instance, Plan};
use tare_stats::Counts;

use super::{BOOT, NAME, Start, is_foreign};
use ladder::{N, time};

impl View for Start {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn measures(&self) -> &'static [Measure] {
        measures::MEASURES
    }

    fn studies(&self) -> &'static [&'static Published] {
        &[&calder_2020::STUDY]
    }

    fn samples(&self, cell: &CellPlan, measure: &str) -> Option<u64> {
        let arrivals = cell.arrivals.as_ref()?;
        let planned = arrivals.measure_ns / arrivals.interval_ns?.max(1);
        // Of a target that keeps up, one in a hundred may fail.
        (measure == "ready").then(|| planned - planned.div_ceil(100))
    }

    fn elsewhere(&self, cell: &CellPlan, label: &str) -> Option<&'static str> {
        let is_other = label == "work" && cell.labels.get(label).is_none();
        is_other.then_some("runs of another work than the default one")
    }

    fn begin(&self) -> Box<dyn Story> {
        Box::new(Started::default())
    }

    fn live(&self, data: &CellData<'_>) -> Result<String, String> {
        live(data)
    }
}

/// The times until instances were ready, which rows can't hold.
#[derive(Debug, Default)]
struct Started(PerCase<Counts>);

/// Names what instances do: `hello`, `prime:1000`, `boot`.
fn work(plan: &CellPlan) -> &str {
    let own = if is_foreign(&plan.target) {
        BOOT
    } else {
        "hello"
    };
    plan.labels.get("work").unwrap_or(own)
}

impl Story for Started {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn take(&mut self, _run: &Plan, data: &CellData<'_>) -> Result<(), String> {
        let plan = data.plan();
        let is_backwards = |one: &Instance| one.ready_ns > 0 && one.started_ns > one.ready_ns;
        if let Some(place) = data.samples.instances.iter().position(is_backwards) {
            let (number, cell) = (place + 1, plan.label());
            return Err(format!(
                "instance {number} of '{cell}' was ready before it was started; measure it again"
            ));
        }
        let own = Counts::from_samples(measures::done(data).filter_map(measures::ready).collect());
        let kept = self.0.entry(plan);
        *kept = kept.merge(&own).map_err(|error| error.to_string())?;
        Ok(())
    }

    fn tables(&self, run: &Run) -> Vec<Tabled> {
        tables::tables(run)
    }

    fn arrange(&self, run: &Run, _tabled: &Tabled, lines: &mut Vec<Line<'_>>) {
        tables::arrange(run, lines);
    }

    fn name(&self, run: &Run, line: &Line<'_>) -> (Option<String>, String) {
        tables::name(run, line)
    }

    fn notices(&self, run: &Run) -> Vec<Notice> {
        checks::find(run)
    }

    fn verdict(&self, run: &Run) -> Option<Verdict> {
        verdict::of(run)
    }

    fn first_picture(&self, run: &Run, _detail: &Detail) -> Option<Markup> {
        pictures::calm(run)
    }

    fn sections(&self, run: &Run, detail: &Detail) -> Vec<Section> {
        let content = pictures::section(self, run, detail);
        let is_there = !content.0.is_empty();
        let section = Section::new("starts", "Starting instances", content);
        Vec::from_iter(is_there.then_some(section))
    }

    fn method(&self) -> Markup {
        html! {
            p {
                b { "start" } " plans every start at an absolute time, one interval after the one before, and makes it at that time \
                 whatever became of earlier instances: an open loop. " b { "Planned" } " is that time, " b { "ready" } " is when the \
                 line arrived here by which an instance says so, " b { "exited" } " is when its end was seen; all are read from this \
                 machine's CLOCK_MONOTONIC. Latencies begin at the planned time, so that an instance that had to wait for its start \
                 has waited: leaving that out is known as coordinated omission. Where instances are started alone, they begin when \
                 the end of the one before was seen, so that waking the thread that makes the start call is part of them."
            }
            p {
                "Intervals are halved from the longest on. A target is " b { "saturated" } " at an interval if more than 1 % of the \
                 counted arrivals failed, were rejected or did not end, if more than 1 % of the starts lagged by more than the interval, or if the number of \
                 instances alive grew over the window by more than 10 % of the arrivals, and by at least 3, to more than 3 beyond one and a half times \
                 as many as are alive if each takes as long as the first. Shorter intervals are then \
                 left out in that block. The sustained rate is the highest at which no run was saturated, nor at any lower rate. \
                 The warm-up before a window takes at least twice the time of the first instance. \
                 Instances planned during the warm-up are in no latency; the throughput is that of all that ended within the \
                 window, those planned during the warm-up among them."
            }
        }
    }

    fn limits(&self) -> Vec<String> {
        vec![
            "Generator and instances share this machine: at high rates the CPU time of starting them is part of what is \
             measured."
                .to_owned(),
            "Every instance starts from a warm page cache. The first start after boot is not measured.".to_owned(),
            "CPU time is that of the processes that were waited for; what a daemon does on an instance's behalf is shown only as \
             the daemons' share. Memory is that of the measured code, as a process and in a container, and of QEMU for a guest: \
             what a runtime takes is not in it."
                .to_owned(),
        ]
    }

    fn csv(&self, run: &Run) -> Vec<(String, String)> {
        Vec::from_iter(csv::file(run).map(|text| (csv::FILE.to_owned(), text)))
    }
}

/// Says in one short line what a cell has shown.
fn live(data: &CellData<'_>) -> Result<String, String> {
    let all = measures::counted(data).count();
    if all == 0 {
        return Err("no instance was planned after the warm-up; measure it longer".to_owned());
    }
    let ready = measures::counts(measures::done(data).filter_map(measures::ready));
    let of = |figure| Some((ready.as_ref()?.figure(figure)?.value()?, figure));
    let ready = match of(Figure::MEDIAN).or_else(|| of(Figure::Mean)) {
        Some((ns, figure)) => format!("ready after {} ({figure})", time(ns)),
        None => "none ready".to_owned(),
    };
    let done = measures::done(data).count();
    let (done, all) = (N.count(done as u64), N.count(all as u64));
    let arrived = data.record.arrived.as_ref();
    let saturated = arrived.is_some_and(|arrived| arrived.saturated.is_some());
    let end = if saturated { ", saturated" } else { "" };
    Ok(format!("{ready}, {done} of {all} ended well{end}"))
}
