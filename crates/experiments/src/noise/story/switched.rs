//! What the switches of `--isolate` and `--screen` change: each has its own effect on the share of
//! time lost, with an interval over the blocks, of which each holds every combination of switches.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::compare::{SIGNIFICANCE, signed};
use tare_figures::format::Numbers;
use tare_figures::group::distinct;
use tare_figures::interval::Interval;
use tare_figures::notices::{Notice, name_cells};
use tare_figures::rows::{Figure, Row, RunFigure};
use tare_figures::verdict::Verdict;
use tare_figures::words::{self, NONE};
use tare_pages::Titled;
use tare_pages::kit::series::Series;
use tare_pages::table::Table;
use tare_results::model::CellPlan;
use tare_stats::{Effect, STUDENT_RUNS, effects, linearised};

use super::super::only_reads_clock;
use super::super::switched::{ISOLATE, SCREEN};
use super::panels::{rank, title};
use super::{ABOVE, ABOVE_WORDS, NAME};

const N: Numbers = Numbers::PLAIN;

/// What stands above the table.
const TITLE: &str = "What the switches change";

/// The effects of switches on one workload, target and load.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct Switched {
    /// The label whose values are the combinations of switches: `isolate` or `screen`.
    label: &'static str,
    /// The workload with its size and load.
    workload: String,
    /// The target.
    target: String,
    /// Whether the share is that of time in delays; else of time lost.
    of_delays: bool,
    /// The blocks that hold a figure of every combination.
    blocks: Vec<u32>,
    /// The shares without and with all switches, over those blocks; null of a screening.
    #[schemars(with = "Option<[f64; 2]>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    shares: Option<[f64; 2]>,
    /// The switches: of `--isolate` all together as one.
    switches: Vec<SwitchEffect>,
}

/// The effect of one switch.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
struct SwitchEffect {
    /// Its name.
    name: String,
    /// The share over all blocks with it less the share without it, with its interval at 95 % by
    /// itself; null with too few blocks, if all agree, or if the switch could not be changed.
    effect: Option<Interval>,
    /// Probability of as large an effect of any switch, if none has one (Holm); likewise.
    adjusted_p_value: Option<f64>,
    /// Whether that probability is at most 0.05.
    is_shown: bool,
    /// Whether it could be changed in every cell that asked for it.
    is_changed: bool,
}

impl Switched {
    /// Returns the effects that a run has measured, the most important workload first.
    pub(super) fn all(run: &Run) -> Vec<Self> {
        let refused = Refused::of(run);
        let mut all = Vec::new();
        for label in [ISOLATE, SCREEN] {
            let cases = Case::all(run, NAME).into_iter();
            let cases = cases.filter(|case| case.plan.labels.get(label).is_some());
            let place = |case: &Case<'_>| case.plan.labels.get(label).map(str::to_owned);
            let mut series = Series::along(cases.collect(), label, place);
            series.sort_by_cached_key(|one| {
                let plan = one.cases[0].plan;
                (
                    rank(&plan.work.id),
                    !plan.load.is_idle(),
                    plan.labels.number("size"),
                )
            });
            all.extend(series.iter().filter_map(|one| Self::of(one, &refused)));
        }
        all
    }

    fn of(series: &Series<'_>, refused: &Refused) -> Option<Self> {
        let cases = &series.cases;
        let first = cases[0].plan;
        let of_delays = !only_reads_clock(&first.work.id);
        let rows = cases.iter().map(|case| match of_delays {
            false => case.row("lost", Figure::Share, &[]),
            true => case.row("delayed", Figure::Share, &[ABOVE]),
        });
        let rows: Vec<&Row> = rows.collect::<Option<_>>()?;
        // With a row for each combination that was planned; else the design is not whole.
        let without = |plan: &CellPlan| plan.labels.clone().without(series.label);
        let planned = cases[0].run.plan.cells.iter().filter(|cell| {
            cell.target == first.target
                && cell.load == first.load
                && without(cell) == without(first)
        });
        let planned = distinct(planned.map(|cell| &cell.labels));
        let is_whole = planned.len() == cases.len();
        let most = cases.iter().max_by_key(|case| case.plan.switches.len())?;
        let all = most.plan.switches.iter().map(|switch| &*switch.name);
        let all = Vec::from_iter(all);
        let is_isolated = series.label == ISOLATE;
        let names = if is_isolated {
            vec![ISOLATE]
        } else {
            all.clone()
        };
        let is_on = |case: &Case<'_>, name: &str| {
            let mut on = case.plan.switches.iter();
            on.any(|switch| is_isolated || switch.name == name)
        };
        let row = |case: &Case<'_>| names.iter().map(|name| is_on(case, name)).collect();
        let design: Vec<Vec<bool>> = cases.iter().map(row).collect();
        let mut blocks: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
        for each in rows.iter().flat_map(|row| &row.each) {
            if let RunFigure::Value { sums, .. } = each.figure {
                blocks.entry(each.block).or_default().extend(sums);
            }
        }
        blocks.retain(|_, shares| is_whole && shares.len() == rows.len());
        let figures = linearised(&Vec::from_iter(blocks.values().cloned()));
        let found = effects(&design, &figures).ok();
        let effect = |place: usize| found.as_ref().map(|found| found[place]);
        let switches = names.iter().enumerate().map(|(place, name)| {
            let is_changed = match is_isolated {
                true => all.iter().any(|one| !refused.has(one)),
                false => !refused.has(name),
            };
            let effect = effect(place).filter(|_| is_changed);
            SwitchEffect::of((*name).to_owned(), effect, is_changed)
        });
        let switches = switches.collect();
        Some(Self {
            label: series.label,
            workload: title(&CellPlan {
                labels: without(first),
                ..first.clone()
            }),
            target: cases[0].target(),
            of_delays,
            shares: (is_isolated && rows.len() == 2 && !figures.is_empty()).then(|| {
                let all = |row: usize| figures.iter().map(|block| block[row]).sum::<f64>();
                [0, 1].map(|row| all(row) / figures.len() as f64)
            }),
            blocks: blocks.into_keys().collect(),
            switches,
        })
    }

    /// Names the share.
    fn what(&self) -> String {
        match self.of_delays {
            false => "of the time lost".to_owned(),
            true => format!("of the time in {ABOVE_WORDS}"),
        }
    }

    /// Says what the switches changed; `refused` says how many could be.
    fn sentence(&self, cpu: u32, several: bool, refused: &Refused) -> String {
        let place = match several {
            false => format!("{} on CPU {cpu}", self.workload),
            true => format!("{} on {}, CPU {cpu}", self.workload, self.target),
        };
        let few = (self.blocks.len() as u64) < STUDENT_RUNS;
        let inconclusive = format!(
            "inconclusive: {} of every combination, {STUDENT_RUNS} are needed",
            words::counted(N, self.blocks.len() as u64, "block", "blocks")
        );
        if self.label == ISOLATE {
            let effect = &self.switches[0];
            let shares = self.shares.map_or_else(String::new, |[without, with]| {
                format!(
                    "{} {} instead of {}",
                    N.percent(with),
                    self.what(),
                    N.percent(without)
                )
            });
            let changed = refused.counted();
            let end = match (effect.effect, effect.is_changed) {
                (_, false) => "no switch could be changed".to_owned(),
                _ if few => format!("{inconclusive}; {changed}"),
                (Some(interval), _) => {
                    let shown = if effect.is_shown {
                        ""
                    } else {
                        "no effect shown, "
                    };
                    format!("{shown}{}; {changed}", in_words(&interval))
                }
                (None, _) => format!("all blocks agree; {changed}"),
            };
            return format!("{place}, isolated: {shares} ({end}).");
        }
        let tried: Vec<&SwitchEffect> = self.switches.iter().filter(|one| one.is_changed).collect();
        let number = words::counted(N, tried.len() as u64, "switch", "switches");
        if few {
            return format!("{place}, {number} screened: {inconclusive}.");
        }
        let listed = |is_of: fn(f64) -> bool| {
            let own = tried.iter().filter(|one| one.is_shown);
            let mut own: Vec<_> = own
                .filter_map(|one| Some((one, one.effect.filter(|effect| is_of(effect.estimate))?)))
                .collect();
            own.sort_by(|a, b| b.1.estimate.abs().total_cmp(&a.1.estimate.abs()));
            let own = own
                .iter()
                .map(|(one, effect)| format!("{} ({})", one.name, in_words(effect)));
            own.collect::<Vec<_>>()
        };
        let (help, hurt) = (listed(|effect| effect < 0.0), listed(|effect| effect > 0.0));
        let mut parts = Vec::new();
        if let Some((most, others)) = help.split_first() {
            parts.push(format!("measured to help most: {most}"));
            if !others.is_empty() {
                parts.push(format!("also helps: {}", words::list(others)));
            }
        }
        if !hurt.is_empty() {
            parts.push(format!("hurts: {}", words::list(&hurt)));
        }
        let rest = tried.len() - help.len() - hurt.len();
        if rest > 0 {
            let others = if rest < tried.len() { "other " } else { "" };
            let rest = words::counted(N, rest as u64, "switch", "switches");
            parts.push(format!(
                "no effect shown of {}",
                rest.replacen(' ', &format!(" {others}"), 1)
            ));
        }
        format!(
            "{place}, {number} screened, share {}: {}.",
            self.what(),
            parts.join("; ")
        )
    }
}

/// Writes an effect: `−0.8 pp, 95 % interval −0.9 to −0.7 pp`.
fn in_words(effect: &Interval) -> String {
    let estimate = signed(effect.estimate, "1");
    format!("{estimate}, 95 % interval {}", range(effect))
}

/// Writes the interval of an effect: `−0.9 to −0.7 pp`.
fn range(effect: &Interval) -> String {
    let [low, high] = [effect.low, effect.high].map(|end| signed(end, "1"));
    format!("{} to {high}", low.trim_end_matches(" pp"))
}

impl SwitchEffect {
    fn of(name: String, effect: Option<Effect>, is_changed: bool) -> Self {
        Self {
            name,
            effect: effect.and_then(|effect| Interval::of(&effect.over)),
            adjusted_p_value: effect.and_then(|effect| effect.adjusted_p_value),
            is_shown: effect.is_some_and(|effect| {
                effect.over.interval.is_ok() && effect.is_shown(SIGNIFICANCE)
            }),
            is_changed,
        }
    }

    /// Writes its row: name, effect, interval, probability, conclusion.
    fn cells(&self) -> [String; 5] {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
        let conclusion = match (self.is_changed, self.effect, self.is_shown) {
            (false, ..) => "could not\nbe changed",
            (_, None, _) => "inconclusive",
            (_, Some(_), false) => "no effect\nshown",
            (_, Some(effect), true) if effect.estimate < 0.0 => "helps",
            (_, Some(_), true) => "hurts",
        };
        [
            self.name.clone(),
            or_none(self.effect.map(|effect| signed(effect.estimate, "1"))),
            or_none(self.effect.as_ref().map(range)),
            or_none(self.adjusted_p_value.map(|p| match p < 0.001 {
                true => "< 0.001".to_owned(),
                false => N.within(p, 0.01),
            })),
            conclusion.to_owned(),
        ]
    }
}

/// The verdict of a run with switches; `None` of another.
pub(super) fn verdict(run: &Run, all: &[Switched]) -> Option<Verdict> {
    let several = distinct(all.iter().map(|one| &one.target)).len() > 1;
    let refused = Refused::of(run);
    let mut sentences = all
        .iter()
        .map(|one| one.sentence(run.plan.cpu, several, &refused));
    Some(Verdict {
        headline: sentences.next()?,
        details: sentences.collect(),
        ..Verdict::default()
    })
}

/// Returns the table of all effects.
pub(super) fn titled(all: &[Switched]) -> Titled {
    let mut table = Table::new(["", "effect", "95 % interval", "adjusted p", ""]);
    for one in all {
        let blocks = words::counted(N, one.blocks.len() as u64, "block", "blocks");
        table.heading(format!("{}, {} ({blocks})", one.workload, one.target));
        table
            .rows
            .extend(one.switches.iter().map(|one| one.cells().into()));
    }
    Titled {
        title: TITLE.to_owned(),
        read: "Share of time lost, or in delays above 400 cycles, with the switch less without it, in percentage points, over all \
               blocks. Each interval is by itself; p is adjusted over the switches of a workload, and an effect is shown if it is at \
               most 0.05."
            .to_owned(),
        table,
    }
}

/// The settings of switches that could not be changed, or did not stay so.
#[derive(Default)]
pub(super) struct Refused {
    /// All switches of the plan; whether no setting of it could be changed in some cell.
    switches: BTreeMap<String, bool>,
    /// The reasons, with the cells.
    reasons: BTreeMap<(bool, String), Vec<u32>>,
}

impl Refused {
    /// Finds them in the cells of a run.
    pub(super) fn of(run: &Run) -> Self {
        let mut found = Self::default();
        for cell in &run.cells {
            for switch in &cell.plan.switches {
                let own = cell
                    .unswitched
                    .iter()
                    .filter(|one| one.switch == switch.name);
                let refused = own.filter(|one| one.refused).count();
                *found.switches.entry(switch.name.clone()).or_default() |=
                    refused == switch.settings.len();
            }
            for one in &cell.unswitched {
                let cells = found
                    .reasons
                    .entry((one.refused, one.why.clone()))
                    .or_default();
                cells.push(cell.plan.id);
                cells.dedup();
            }
        }
        found
    }

    /// Returns whether a switch could not be changed.
    fn has(&self, switch: &str) -> bool {
        self.switches.get(switch).is_some_and(|refused| *refused)
    }

    /// Says how many could be changed: `9 of 11 switches changed`.
    fn counted(&self) -> String {
        let refused = self.switches.values().filter(|refused| **refused).count();
        let all = words::counted(N, self.switches.len() as u64, "switch", "switches");
        match refused {
            0 => format!("{all} changed"),
            _ => format!("{} of {all} changed", self.switches.len() - refused),
        }
    }

    /// Returns a notice for each reason why settings were not changed, or did not stay so.
    pub(super) fn notices(&self) -> impl Iterator<Item = Notice> {
        self.reasons
            .iter()
            .map(|((refused, why), cells)| match refused {
                true => Notice::warning(
                    "not-switched",
                    format!("Not changed in {}: {why}.", name_cells(cells)),
                ),
                false => Notice::warning(
                    "switched-back",
                    format!("Did not stay as planned in {}: {why}.", name_cells(cells)),
                ),
            })
    }
}
