//! A regular grid: fitting it, weighing it, and telling a clock from an accident.

use super::arrivals::Arrivals;
use super::candidates::densest;
use super::{MIN_PRESENT, MIN_SHARE, TOLERANCE};

/// The least share of the grid's ticks that must be present in each quarter of the trace.
const MIN_PRESENT_IN_QUARTER: f64 = 0.4;

/// The tolerance shrinks to P/1024 at least, 4 µs for a tick of 4 ms.
const MAX_HALVINGS: u32 = 6;

/// ln 10^9: one false period in 10^9 traces of unrelated arrivals.
const CONFIDENCE: f64 = 20.7;

/// A regular grid and what speaks for it.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    /// Time of tick number 0, in cycles.
    phase: f64,
    /// Time from tick to tick, in cycles.
    pub period: f64,
    /// How often the widest tolerance was halved.
    pub halvings: u32,
    /// Distance at which a gap is still on the grid, in cycles.
    pub tolerance: f64,
    /// Ticks with a gap over all gaps.
    pub share: f64,
    /// Ticks with a gap over all ticks that can be seen.
    pub present: f64,
    /// Logarithm of the odds against chance, less what is required: enough above 0.
    pub evidence: f64,
}

/// A tick of the grid with the gap that is on it.
pub(super) struct Tick {
    /// Number of the tick, a whole number.
    number: f64,
    /// Index of the gap.
    pub gap: usize,
    /// How much later than the tick the gap starts, in cycles.
    residual: f64,
}

impl Grid {
    /// Fits the grid of about this period, if there is anything to fit.
    ///
    /// Other gaps in a wide window shift and tilt the line, those in a narrow one may be all there
    /// is to see of it. So the window is halved around where most ticks are, again and again, and
    /// the fit with the strongest evidence is taken.
    pub fn fit(arrivals: &Arrivals, period: f64) -> Option<Self> {
        let mut grid = Self {
            phase: fullest_phase(&arrivals.starts, period),
            period,
            halvings: 0,
            tolerance: TOLERANCE * period,
            share: 0.0,
            present: 0.0,
            evidence: f64::NEG_INFINITY,
        };
        let mut best: Option<Self> = None;
        while grid.halvings <= MAX_HALVINGS && grid.fit_line(&grid.ticks(arrivals)).is_some() {
            let ticks = grid.ticks(arrivals);
            grid.weigh(arrivals, ticks.len() as f64);
            if best.is_none_or(|best| best.evidence <= grid.evidence) {
                best = Some(grid);
            }
            let residuals: Vec<f64> = ticks.iter().map(|tick| tick.residual).collect();
            let Some((_, centre)) = densest(&residuals, grid.tolerance) else {
                break;
            };
            grid.phase += centre;
            grid.tolerance /= 2.0;
            grid.halvings += 1;
        }
        best
    }

    /// Sets the tolerance so that it holds late ticks too, but no more than chance brings in
    /// besides.
    ///
    /// With a share p of the ticks present, chance fills a share h of the others:
    /// hits / ticks = p + (1 − p)·h. The tolerance is the narrowest with 95 % of the largest p.
    pub fn widened(self, arrivals: &Arrivals) -> Self {
        let widths: Vec<(Self, f64)> = (1..=MAX_HALVINGS)
            .rev()
            .map(|halvings| {
                let tolerance = TOLERANCE * self.period / f64::from(1 << halvings);
                let mut grid = Self {
                    halvings,
                    tolerance,
                    ..self
                };
                grid.weigh(arrivals, grid.ticks(arrivals).len() as f64);
                let by_chance = grid.by_chance(arrivals).min(0.99);
                (grid, (grid.present - by_chance) / (1.0 - by_chance))
            })
            .collect();
        let most = widths
            .iter()
            .map(|&(_, present)| present)
            .fold(0.0, f64::max);
        let enough = widths.iter().find(|&&(_, present)| present >= 0.95 * most);
        enough.map_or(self, |&(grid, _)| grid)
    }

    /// Returns the strongest among the grid's multiples and fractions.
    pub fn fundamental(self, arrivals: &Arrivals) -> Self {
        let mut best = self;
        // Evidence rises from round to round, so this ends anyway; the limit bounds the work.
        for _ in 0..8 {
            let stronger = [2.0, 3.0, 1.0 / 2.0, 1.0 / 3.0]
                .into_iter()
                .filter_map(|factor| Self::fit(arrivals, best.period * factor))
                .filter(|grid| grid.evidence > best.evidence)
                .max_by(|a, b| a.evidence.total_cmp(&b.evidence));
            match stronger {
                Some(grid) => best = grid,
                None => break,
            }
        }
        best
    }

    /// Returns whether the grid is a clock: in a fair share, and always there.
    pub fn is_clock(&self, arrivals: &Arrivals) -> bool {
        let quarter_of = |time: f64| ((time / arrivals.span * 4.0) as usize).min(3);
        let mut hits = [0.0; 4];
        for tick in self.ticks(arrivals) {
            hits[quarter_of(arrivals.starts[tick.gap])] += 1.0;
        }
        let mut visible = [arrivals.span / self.period / 4.0; 4];
        for number in self.hidden_ticks(arrivals) {
            visible[quarter_of(self.phase + number * self.period)] -= 1.0;
        }
        let never_stops = hits
            .iter()
            .zip(visible)
            .all(|(&hits, visible)| hits >= (MIN_PRESENT_IN_QUARTER * visible).floor());
        never_stops && self.share >= MIN_SHARE && self.present >= MIN_PRESENT
    }

    /// Iterates over the ticks inside of gaps, where they cannot be seen.
    fn hidden_ticks(&self, arrivals: &Arrivals) -> impl Iterator<Item = f64> {
        let number = |time: f64| ((time - self.phase) / self.period).floor();
        let inside = arrivals
            .starts
            .iter()
            .zip(&arrivals.ends)
            .flat_map(move |(start, end)| {
                let from = number(start + self.tolerance) as i64;
                let to = number(end.min(arrivals.span)) as i64;
                from + 1..to + 1
            });
        inside.map(|number| number as f64)
    }

    /// Returns the nearest gap for each tick that has one within the tolerance.
    pub fn ticks(&self, arrivals: &Arrivals) -> Vec<Tick> {
        let mut ticks: Vec<Tick> = Vec::new();
        for (gap, start) in arrivals.starts.iter().enumerate() {
            let number = nearest_whole((start - self.phase) / self.period);
            let residual = start - self.phase - number * self.period;
            if residual.abs() > self.tolerance {
                continue;
            }
            match ticks.last_mut().filter(|last| last.number == number) {
                Some(last) if residual.abs() < last.residual.abs() => {
                    *last = Tick {
                        number,
                        gap,
                        residual,
                    };
                }
                Some(_) => {}
                None => ticks.push(Tick {
                    number,
                    gap,
                    residual,
                }),
            }
        }
        ticks
    }

    /// Fits phase and period to the ticks by least squares.
    fn fit_line(&mut self, ticks: &[Tick]) -> Option<()> {
        let count = ticks.len() as f64;
        let mean_number = ticks.iter().map(|tick| tick.number).sum::<f64>() / count;
        let mean_residual = ticks.iter().map(|tick| tick.residual).sum::<f64>() / count;
        let (mut covariance, mut variance) = (0.0, 0.0);
        for tick in ticks {
            let offset = tick.number - mean_number;
            covariance += offset * (tick.residual - mean_residual);
            variance += offset * offset;
        }
        if variance <= 0.0 {
            return None;
        }
        let slope = covariance / variance;
        self.phase += mean_residual - slope * mean_number;
        self.period += slope;
        (self.period > 0.0).then_some(())
    }

    /// Computes shares and evidence from the number of ticks that have a gap within the tolerance.
    fn weigh(&mut self, arrivals: &Arrivals, hits: f64) {
        let expected = (arrivals.span / self.period).round() + 1.0;
        // A tick at the end of one gap may start the next, and is then not hidden.
        let visible = (expected - self.hidden_ticks(arrivals).count() as f64)
            .max(hits)
            .max(1.0);
        self.share = hits / arrivals.count();
        self.present = hits / visible;
        let by_chance = self.by_chance(arrivals);
        if self.present <= by_chance {
            self.evidence = f64::NEG_INFINITY;
            return;
        }
        // Two grids are distinct if they part by a tolerance within the trace.
        let per_tolerance = self.period / self.tolerance;
        let tolerances = f64::from(MAX_HALVINGS + 1);
        let tried = 4.0 * tolerances * expected * per_tolerance * per_tolerance;
        self.evidence = visible * divergence(self.present, by_chance) - tried.ln() - CONFIDENCE;
    }

    /// Returns an upper bound of the probability that arrivals without a clock hit a tick.
    fn by_chance(&self, arrivals: &Arrivals) -> f64 {
        (arrivals.count() * 2.0 * self.tolerance / arrivals.visible).min(1.0)
    }
}

/// Returns the phase at which most ticks of this period are present, in cycles.
fn fullest_phase(starts: &[f64], period: f64) -> f64 {
    const BINS: usize = 64;
    const WINDOW: usize = 4;
    let mut ticks = [0_u64; BINS];
    // A burst within one tick counts once: starts rise, so the last tick seen per bin is enough.
    let mut last_number = [f64::NEG_INFINITY; BINS];
    for start in starts {
        let turns = start / period;
        let number = (turns as i64) as f64;
        let bin = (((turns - number) * BINS as f64) as usize).min(BINS - 1);
        if last_number[bin] < number {
            last_number[bin] = number;
            ticks[bin] += 1;
        }
    }
    let in_window = |from: usize| {
        (from..from + WINDOW)
            .map(|bin| ticks[bin % BINS])
            .sum::<u64>()
    };
    let from = (0..BINS).max_by_key(|&from| in_window(from)).unwrap_or(0);
    // Ticks that straddle two bins put their weight unevenly into the window.
    let weight = in_window(from).max(1) as f64;
    let centre: f64 = (from..from + WINDOW)
        .map(|bin| (bin as f64 + 0.5) * ticks[bin % BINS] as f64 / weight)
        .sum();
    centre * period / BINS as f64
}

/// Rounds a number above −1.5, by a conversion: `round` is a function call on plain x86-64.
fn nearest_whole(number: f64) -> f64 {
    ((number + 1.5) as i64 - 1) as f64
}

/// Returns the divergence KL(p ‖ q) of two coins in nats, for 0 < q ≤ 1.
fn divergence(p: f64, q: f64) -> f64 {
    let term = |p: f64, q: f64| if p > 0.0 { p * (p / q).ln() } else { 0.0 };
    term(p, q) + term(1.0 - p, 1.0 - q)
}
