//! The verdict: what the run says, in a few plain sentences.
//!
//! It says what was seen and how sure that is, and never a cause that was not observed: that gaps
//! come as often as the kernel's tick is an observation, that they are the tick is not.

mod comparison;
mod many;
mod reference;

use tare_figures::Run;
use tare_figures::analysis::had_other_work;
use tare_figures::cases::Case;
use tare_figures::format::Numbers;
use tare_figures::interval::Time;
use tare_figures::rows::{Figure, Row};
use tare_figures::verdict::Verdict;
use tare_figures::words;
use tare_pages::kit::sentence::{MANY, alongside, aside, emulated_left_out, sure};
use tare_results::MachineRecord;

use super::ABOVE_WORDS;
use super::measures::PERIOD_GAPS;
use super::panels::{Member, Panel, of_verdict, series};
use super::split::Attribution;
use comparison::comparisons;
use many::{about_range, by_group, told};

const N: Numbers = Numbers::PLAIN;

/// Writes the verdict; `None` if nothing was measured.
pub(super) fn of(run: &Run, panels: &[Panel<'_>], split: &Attribution) -> Option<Verdict> {
    let (panels, emulated) = of_verdict(panels);
    let main = panels.first()?;
    let mut sentences = Vec::new();
    for (place, sizes) in series(&panels).into_iter().enumerate() {
        sentences.push(about(sizes, run));
        if let [panel] = sizes
            && panel.members.len() > MANY
        {
            sentences.extend(by_group(panel).filter(|_| place == 0));
        }
    }
    let headline = sentences.remove(0);
    sentences.splice(0..0, reference::sentence(&panels, run));
    sentences.extend(comparisons(run, &panels));
    sentences.extend(emulated_left_out(&emulated));
    sentences.extend(switched(&panels));
    sentences.extend(split.sentences());
    if let [only] = &main.members[..]
        && only.only_reads_clock()
        && let Some(clock) = Clock::of(&only.case)
    {
        sentences.push(clock.told(only, run.machine.as_ref()));
    }
    let several = main.members.len() > 1;
    let is_idle = |panel: &Panel<'_>| panel.plan().load.is_idle();
    let under = match is_idle(main) && !panels.iter().all(is_idle) {
        true => " without a load".to_owned(),
        false => main.plan().load.under(),
    };
    let certainty = told(main).into_iter().filter_map(|member| {
        let (row, _) = member.share()?;
        let mut what = match member.only_reads_clock() {
            true => "Share of time lost".to_owned(),
            false => format!("Share of time in {ABOVE_WORDS}"),
        };
        if several {
            what.push_str(&format!(" on {}", member.case.target()));
        }
        what.push_str(&under);
        Some(sure(&what, row))
    });
    Some(Verdict {
        headline,
        details: sentences,
        certainty: certainty.collect(),
        ..Verdict::default()
    })
}

/// Says how often the measured thread lost its CPU to another task where a load ran.
fn switched(panels: &[Panel<'_>]) -> Option<String> {
    let loaded = panels.iter().filter(|panel| !panel.plan().load.is_idle());
    let members = loaded.flat_map(|panel| panel.members.iter().map(move |of| (panel, of)));
    let mut rates: Vec<(f64, String)> = members
        .filter_map(|(panel, member)| {
            let kind = [("kind", "involuntary")];
            let (_, rate) = member.known("context-switches", Figure::Rate, &kind)?;
            let name = format!("{} on {}", panel.title(), member.case.target());
            Some((rate.estimate, name))
        })
        .collect();
    rates.sort_by(|a, b| b.0.total_cmp(&a.0));
    let each = rates.iter().take(MANY);
    let each: Vec<String> = each
        .map(|(rate, name)| format!("{} ({name})", N.rate(*rate)))
        .collect();
    let fewer = match rates.len().saturating_sub(MANY) {
        0 => String::new(),
        more => format!("; fewer in {more} more"),
    };
    (!each.is_empty()).then(|| {
        let each = words::list(&each);
        format!("Involuntary context switches of the measured thread under a load: {each}{fewer}.")
    })
}

/// Says what one workload says, over all its sizes and targets.
fn about(sizes: &[Panel<'_>], run: &Run) -> String {
    // Series have at least one panel, and panels at least one member.
    let panel = &sizes[0];
    match panel.members.as_slice() {
        members if sizes.len() > 1 || members.len() > MANY => about_range(sizes, run.plan.cpu),
        [only] if only.only_reads_clock() => about_gap(only, run),
        members if panel.only_reads_clock() => {
            let mut explained = false;
            let each = members.iter().enumerate();
            let each: Vec<String> = each
                .map(|(place, member)| about_gap_in_short(member, place == 0, &mut explained))
                .collect();
            let under = panel.plan().load.under();
            format!("CPU {} lost{under} {}.", run.plan.cpu, words::list(&each))
        }
        members => {
            let each = members.iter().map(|member| match members.len() {
                1 => format!(
                    "{}{}{}",
                    about_timed(member),
                    place_of(member),
                    alongside(&member.case)
                ),
                _ => format!(
                    "on {} {}{}",
                    member.case.target(),
                    about_timed(member),
                    alongside(&member.case)
                ),
            });
            let each: Vec<String> = each.collect();
            format!("{}: {}.", panel.title(), each.join("; "))
        }
    }
}

fn about_gap(member: &Member<'_>, run: &Run) -> String {
    let cpu = run.plan.cpu;
    let under = member.case.plan.load.under();
    let place = format!("{}{under}{}", place_of(member), alongside(&member.case));
    let lost = member.share().map_or(0.0, |(_, share)| share.estimate);
    let Some((row, longest)) = member.longest() else {
        let least = member.known("threshold", Figure::Max, &[]);
        let least = least.map_or_else(String::new, |(row, over)| row.in_time(N, over.highest));
        let wall = words::time(N, Time::new(member.wall(), member.case.hz()), None);
        return format!(
            "CPU {cpu} was not interrupted for {least} or longer in {wall} of spinning{place}."
        );
    };
    let interruptions = match member.known("gaps", Figure::Rate, &[]) {
        Some((_, rate)) => format!("{} interruptions per second", N.short(rate.estimate)),
        None => {
            let gaps = member.case.row("gaps", Figure::Total, &[]);
            let each = gaps.into_iter().flat_map(|row| &row.each);
            let all: f64 = each.filter_map(|run| run.figure.value()).sum();
            words::counted(N, all as u64, "interruption", "interruptions")
        }
    };
    format!(
        "CPU {cpu} lost {} of its time to {interruptions}{place}; the longest took {}.",
        N.percent(lost),
        row.in_time(N, longest.highest),
    )
}

/// Says what one of several targets shows; words that are the same for all come once.
fn about_gap_in_short(member: &Member<'_>, is_first: bool, explained: &mut bool) -> String {
    let lost = member.share().map_or(0.0, |(_, share)| share.estimate);
    let of = if is_first { " of its time" } else { "" };
    let longest = member.longest().map(|(row, over)| {
        let what = match std::mem::replace(explained, true) {
            true => "",
            false => "longest interruption ",
        };
        format!("{what}{}", row.in_time(N, over.highest))
    });
    let work = alongside(&member.case).trim_start().to_owned();
    let aside = aside(longest.into_iter().chain([work]));
    let target = member.case.target();
    format!("{}{of} on {target}{aside}", N.percent(lost))
}

fn about_timed(member: &Member<'_>) -> String {
    let mut parts = Vec::new();
    if let Some((row, median)) = member.known("duration", Figure::MEDIAN, &[]) {
        parts.push(format!("{} in the median", row.both(N, median.estimate)));
    }
    if let Some((row, longest)) = member.longest() {
        parts.push(format!("{} at worst", row.in_time(N, longest.highest)));
    }
    if let Some((_, share)) = member.share() {
        let share = N.percent(share.estimate);
        parts.push(format!("{share} of the time in {ABOVE_WORDS}"));
    }
    parts.join(", ")
}

/// Names the target unless it is the usual one.
fn place_of(member: &Member<'_>) -> String {
    let is_usual = member.group().capabilities().is_direct && !member.case.is_emulated();
    match is_usual {
        true => String::new(),
        false => format!(" on {}", member.case.target()),
    }
}

/// A clock among the gaps that at least half of the runs show, and no run another one.
pub(in super::super) struct Clock {
    /// Time from tick to tick, with its unit.
    pub every: String,
    ns: Option<f64>,
    /// Share of the gaps looked at that come at its ticks, of the runs that show it.
    pub share: f64,
    /// Gaps per second of the same runs; `None` if nothing tells the length of a cycle.
    rate: Option<f64>,
    /// Whether one of them has more gaps than were looked at.
    is_of_first: bool,
    /// How many runs show it.
    pub runs: usize,
}

/// The number of interruptions at each tick from which on they are more than one.
const SEVERAL: f64 = 1.2;

impl Clock {
    /// Takes the clock of a case that only reads the clock.
    pub fn of(case: &Case<'_>) -> Option<Self> {
        let row = case.row("period", Figure::MEDIAN, &[])?;
        let over = row.over.as_ref().ok()?;
        let is_same = |value: f64| (value / over.estimate - 1.0).abs() <= 0.01;
        let mut found = row.each.iter().filter_map(|run| run.figure.value());
        if row.each.len() * 2 < case.cells.len() || !found.all(is_same) {
            return None;
        }
        let share = case.over("periodic", Figure::Share, &[])?;
        let of_runs = |gaps: &Row| gaps.of_cells(|cell| row.of_cell(cell).is_some());
        let gaps = of_runs(case.row("gaps", Figure::Total, &[])?).ok()?;
        let rate = case.row("gaps", Figure::Rate, &[]).map(of_runs);
        Some(Self {
            is_of_first: gaps.highest > PERIOD_GAPS as f64,
            rate: rate.and_then(|rate| Some(rate.ok()?.estimate)),
            every: row.in_time(N, over.estimate),
            ns: row.time(over.estimate).ns,
            share: share.estimate,
            runs: row.each.len(),
        })
    }

    fn told(&self, member: &Member<'_>, machine: Option<&MachineRecord>) -> String {
        let share = N.fixed(self.share * 100.0, 0);
        let them = match self.is_of_first {
            true => format!("the first {} interruptions", N.count(PERIOD_GAPS as u64)),
            false => "the interruptions".to_owned(),
        };
        let mut text = format!(
            "{share} % of {them} begin with the ticks of a clock, every {}",
            self.every
        );
        if self.runs < member.runs() {
            text.push_str(&format!(" (in {} of {} runs)", self.runs, member.runs()));
        }
        // Of another kernel than this machine's nothing is known.
        let machine = machine.filter(|_| member.case.plan.target.kernel().is_host());
        let machine = machine.map(|record| &record.machine);
        let tick_hz = machine.and_then(|machine| machine.kernel.tick_hz.known().copied());
        let hypervisor = machine.and_then(|machine| {
            let known = machine.virtualisation.hypervisor.known();
            known.map(Option::is_some)
        });
        let beneath = match member.case.cells.iter().any(|cell| had_other_work(cell)) {
            true => Beneath::OtherWork,
            false if hypervisor == Some(true) => Beneath::Hypervisor,
            false => Beneath::Machine,
        };
        let each = self.rate.zip(self.ns);
        let each = each.map(|(rate, ns)| rate * self.share * ns / 1e9);
        if let Some(each) = each.filter(|each| *each > SEVERAL) {
            text.push_str(&format!(", {} at each tick", N.fixed(each, 1)));
        }
        if let Some(tick) = self.ns.and_then(|ns| as_often_as(ns, tick_hz, beneath)) {
            text.push_str(&format!(", as often as {tick}"));
        }
        text.push('.');
        text
    }
}

/// What may be behind gaps that do not come with the kernel's tick.
#[derive(Clone, Copy)]
enum Beneath {
    /// It was seen on the CPU, and takes turns with what is measured.
    OtherWork,
    Hypervisor,
    Machine,
}

/// Names a tick of the same frequency. If it is not that of the kernel beneath, says what that
/// means.
fn as_often_as(period_ns: f64, tick_hz: Option<u32>, beneath: Beneath) -> Option<String> {
    let is = |hz: &u32| (period_ns * f64::from(*hz) / 1e9 - 1.0).abs() < 0.005;
    if let Some(hz) = tick_hz.filter(is) {
        return Some(format!("the tick of this machine's kernel ({hz} Hz)"));
    }
    // What Linux can be built with.
    let hz = [100, 250, 300, 1000].into_iter().find(is)?;
    let Some(own) = tick_hz else {
        return Some(format!("a {hz} Hz tick"));
    };
    let who = match beneath {
        Beneath::OtherWork => {
            "these gaps do not come from that tick, but perhaps from the turns of the other work on this CPU"
        }
        Beneath::Hypervisor => {
            "these gaps do not come from that tick, but perhaps from that of the hypervisor's host or of another guest"
        }
        Beneath::Machine => {
            "these gaps do not come from that tick, but from a timer of something else"
        }
    };
    Some(format!(
        "a {hz} Hz tick, though this machine's kernel ticks at {own} Hz: {who}"
    ))
}

#[cfg(test)]
mod tests {
    use super::{Beneath, as_often_as};

    #[test]
    fn a_tick_that_is_not_this_kernel_s_is_told_from_its_own() {
        let said = |ns, own, beneath| as_often_as(ns, own, beneath).unwrap_or_default();
        assert_eq!(
            said(4e6, Some(250), Beneath::Hypervisor),
            "the tick of this machine's kernel (250 Hz)"
        );
        assert_eq!(said(1e6, None, Beneath::Machine), "a 1000 Hz tick");
        assert_eq!(
            said(1e6, Some(250), Beneath::Hypervisor),
            "a 1000 Hz tick, though this machine's kernel ticks at 250 Hz: these gaps do not come from that tick, but \
             perhaps from that of the hypervisor's host or of another guest"
        );
        assert!(said(1e6, Some(250), Beneath::Machine).ends_with("a timer of something else"));
        assert!(said(1e6, Some(250), Beneath::OtherWork).ends_with("the other work on this CPU"));
        assert_eq!(said(3e6, Some(250), Beneath::Hypervisor), "");
    }
}
