//! In what the loads of two sides differ: where they ran, and how much they did.
//!
//! A load that did more next to one side disturbed it more, so that part of a difference may be the
//! load's.

use super::SideDifference;
use super::context::of_one_side;
use super::pair::median;
use super::sides::{Side, loads};
use crate::analysis::{LoadFigure, LoadRate};
use crate::format::Numbers;
use crate::group::{distinct, grouped};
use crate::words::{self, NONE};

/// The factor between rates from which on they differ.
const DIFFERENT: f64 = 1.1;

/// Finds in what loads differ that both sides had, or those of sides with one each, and says what
/// one did more on one side.
pub(super) fn differences(base: &Side, new: &Side) -> (Vec<SideDifference>, Vec<String>) {
    let both = [base, new];
    let is_one_target = both.iter().all(|side| side.targets().len() == 1);
    let is_other = both.iter().all(|side| loads(side).len() == 1) && loads(base) != loads(new);
    let is_paired = base.is_of_same_runs(new);
    let sides = both.map(|side| {
        let own = loads(side);
        let all = side.runs.iter().flat_map(|run| &run.loads);
        Vec::from_iter(all.filter(|load| own.contains(load.load.as_str())))
    });
    let name = |load: &LoadFigure| {
        let name = if is_other { "the load" } else { &load.load };
        match is_one_target {
            true => name.to_owned(),
            false => format!("{name} on {}", load.target),
        }
    };
    let mut found = Vec::new();
    let (mut more, mut remarks) = (Vec::new(), Vec::new());
    let mut add = |what: String, sides: [Option<String>; 2]| {
        let is_there = is_other || sides.iter().all(Option::is_some);
        let [base, new] = sides.map(|text| text.unwrap_or_else(|| NONE.to_owned()));
        if is_there && base != new {
            found.push(SideDifference { what, base, new });
        }
    };
    for of in distinct(sides.iter().flatten().map(|load| name(load))) {
        let own = sides.each_ref().map(|side| {
            let own = side.iter().copied().filter(|load| name(load) == of);
            Vec::from_iter(own)
        });
        let places = own.each_ref().map(|own| {
            let places = distinct(own.iter().map(|load| load.place()));
            (!places.is_empty()).then(|| places.join(" and "))
        });
        add(format!("place of {of}"), places);
        if !is_other {
            let notices = own
                .each_ref()
                .map(|own| own.iter().flat_map(|load| &load.notices));
            let notices = notices.map(|notices| notices.map(|notice| &notice.text));
            remarks.extend(of_one_side(&format!("notice on {of}"), notices));
        }
        let rates = own.map(|own| Vec::from_iter(own.into_iter().flat_map(|load| &load.rates)));
        for what in distinct(rates.iter().flatten().map(|rate| &rate.what)) {
            let same = rates.each_ref().map(|rates| {
                let same = rates.iter().copied().filter(|rate| rate.what == *what);
                Vec::from_iter(same)
            });
            let Some(rate) = same.iter().flatten().next() else {
                continue;
            };
            let factor = factor(&same, is_paired);
            if let Some(factor) = factor.filter(|_| !is_other) {
                let side = usize::from(factor > 1.0);
                let times = Numbers::PLAIN.short(factor.max(1.0 / factor));
                let times = format!("{times} times the {}", rate.name());
                more.push(((of.clone(), side), times));
            }
            let is_listed = factor.is_some() || same.iter().any(Vec::is_empty);
            let ends = same.each_ref().map(|rates| {
                let rates = rates.iter().map(|of| &of.per_second);
                let ends = rates.map(|of| (of.lowest, of.highest));
                let ends = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
                let (low, high) = ends.filter(|_| is_listed)?;
                let ends = [low, high].map(|end| rate.written(Numbers::PLAIN, end));
                Some(distinct(ends).join(" to "))
            });
            add(format!("{} of {of}", rate.name()), ends);
        }
    }
    let which = if is_paired { " in each run" } else { "" };
    let more = grouped(more).into_iter().map(|((of, side), times)| {
        let [most, least] = [both[side], both[1 - side]].map(|side| &side.name);
        let times = words::list(&times);
        format!(
            "On {most}, {of} did more than on {least}{which}: {times}, by the median of the ratios."
        )
    });
    let mut more = Vec::from_iter(more);
    if !more.is_empty() {
        more.push("Part of the differences under it may come from that.".to_owned());
    }
    found.extend(remarks);
    (distinct(found), more)
}

/// Returns how many times as much a load did on NEW as on BASE, if it differs: by the blocks that
/// have both, if all say the same; of different runs, if their rates lie apart.
fn factor(sides: &[Vec<&LoadRate>; 2], is_paired: bool) -> Option<f64> {
    let each = sides.each_ref().map(|side| {
        let rates = side.iter();
        let rates = rates.flat_map(|rate| rate.blocks.iter().zip(&rate.each));
        // What did nothing has no ratio.
        Vec::from_iter(rates.map(|(block, rate)| (*block, rate.max(1.0))))
    });
    let ratios = |of: &(u32, f64)| {
        let same = each[0].iter().filter(|base| !is_paired || base.0 == of.0);
        Vec::from_iter(same.map(|base| of.1 / base.1))
    };
    let ratios: Vec<f64> = each[1].iter().flat_map(ratios).collect();
    let factor = median(&ratios)?;
    let least = if is_paired { 1.0 } else { DIFFERENT };
    let is_apart =
        ratios.iter().all(|ratio| *ratio > least) || ratios.iter().all(|ratio| ratio * least < 1.0);
    (is_apart && factor.max(1.0 / factor) >= DIFFERENT).then_some(factor)
}
