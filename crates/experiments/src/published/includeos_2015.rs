//! includeos-2015: what does a service cost on a unikernel, against the same service on Linux?
//!
//! A claim is judged by intervals, for each unikernel against each Linux guest of the run that was
//! measured alike. The study's guests ran in KVM, so an emulator's figures answer no claim: they
//! are named with it. Its CPU time is in ticks of 10 ms; ours in ns, of the same threads.

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::claims::{
    Answer, Answered, Claim, Comparison, Finding, Inconclusive, Published, ratio, within,
};
use tare_figures::format::Numbers;
use tare_figures::rows::{Figure, Row, written};
use tare_pages::kit::claim_table::{NOT_MEASURED, PublishedRow, rows};
use tare_results::target::Kernel;
use tare_stats::{NoInterval, OverRuns};

use crate::{service, start, stream};

/// The study.
pub(super) const STUDY: Published = Published {
    name: "includeos-2015",
    question: "What does a service cost on a unikernel, against the same service on Linux?",
    claims: &[
        Claim::new(
            "The DNS service takes 5.5 to 20 % less CPU in total (taken as at least 5.5 %).",
            |run| changed(run, &[(TOTAL, [-1.0, -0.055])]),
        ),
        Claim::new(
            "It takes 66 to 70 % less CPU inside the guest (taken as at least 66 %), but more outside it.",
            |run| changed(run, &[(INSIDE, [-1.0, -0.66]), (OUTSIDE, MORE)]),
        ),
        Claim::new(
            "Its image with everything in it has 158 kB, with IPv4 and UDP only.",
            |run| judged(alone(run, IMAGE), IMAGE, [0.0, 158e3]),
        ),
        Claim::new(
            "The minimal image boots in about 0.3 s (taken as at most 0.45 s).",
            |run| judged(alone(run, BOOT), BOOT, [0.0, 0.45e9]),
        ),
        Claim::new(
            "Ping goes unanswered while a request computes for seconds (taken as 10 times as long as under Linux).",
            |run| changed(run, &[(PING, [9.0, f64::INFINITY])]),
        ),
        Claim::new("There are fewer VM exits.", |run| {
            changed(run, &[(EXITS, [-1.0, 0.0])])
        }),
        Claim::new("STREAM's bandwidth differs by less than 0.5 %.", |run| {
            changed(run, &[(TRIAD, [-0.005, 0.005])])
        }),
    ],
    tables: &[(
        "Memory, boot, bandwidth and CPU time",
        include_str!("../../../../studies/published/includeos-2015.csv"),
    )],
    note: "The study compares its unikernel with the same service on Ubuntu 14.04 in KVM, on an AMD and an Intel machine: changes \
           against Linux can be compared, absolute figures are of another machine. A change has its interval from the ends of those of \
           both figures at 95 %. Memory is that of a whole QEMU.",
    compare: |run, tables| rows(tables).flat_map(|row| compared(run, row)).collect(),
};

/// A figure that the study has of its unikernel: what it is, its experiment, its measure, and the
/// labels of its row besides those of the plan.
type Quantity = (
    &'static str,
    &'static str,
    (&'static str, Figure),
    &'static [(&'static str, &'static str)],
);

const CPU: (&str, Figure) = ("cpu", Figure::Mean);
const DNS: (&str, &str) = ("service", "dns");
const TOTAL: Quantity = (
    "CPU time in total",
    service::NAME,
    CPU,
    &[("place", "all"), DNS],
);
const INSIDE: Quantity = ("inside", service::NAME, CPU, &[("place", "inside"), DNS]);
const OUTSIDE: Quantity = ("outside", service::NAME, CPU, &[("place", "outside"), DNS]);
const EXITS: Quantity = (
    "VM exits, which only KVM counts",
    service::NAME,
    ("exits", Figure::Mean),
    &[("reason", "all"), DNS],
);
const PING: Quantity = (
    "median of a ping",
    service::NAME,
    ("service", Figure::MEDIAN),
    &[("service", "ping")],
);
const IMAGE: Quantity = ("image", service::NAME, ("image", Figure::Value), &[DNS]);
const TRIAD: Quantity = (
    "Triad",
    stream::NAME,
    ("bandwidth", Figure::Mean),
    &[("kernel", "triad")],
);
const BOOT: Quantity = (
    "mean until its first line",
    start::NAME,
    ("ready", Figure::Mean),
    &[],
);
const MEMORY: Quantity = ("memory", start::NAME, ("memory", Figure::Mean), &[]);

/// Every change to more.
const MORE: [f64; 2] = [0.0, f64::INFINITY];
/// The doubts about a figure that answers no claim.
const EMULATED: &str = "emulated";
const EMULATED_IN_USER_NETWORK: &str = "emulated, over QEMU's user-mode network";
const USER_NETWORK: &str = "over QEMU's user-mode network";
const MORE_FEATURES: &str = "with more features than IPv4 and UDP";

/// A figure of a case without a load.
struct Known<'a> {
    kernel: Kernel,
    row: &'a Row,
    over: &'a OverRuns,
    /// Why it answers no claim; empty if it does.
    doubt: &'static str,
}

/// A figure of a unikernel, or by how much it differs from that of a Linux guest.
struct Found {
    /// The target, or both.
    target: String,
    /// The figure or the change, with its interval if there is one.
    short: String,
    /// The same with what it is, and what a change follows from.
    figures: String,
    ends: Result<[f64; 2], String>,
    doubt: &'static str,
}

impl Found {
    /// Answers whether it lies within a range.
    fn judge(self, range: [f64; 2]) -> Answered {
        let figures = self.figures;
        match (self.doubt, self.ends) {
            ("", Ok(ends)) => within(ends, range, figures),
            ("", Err(why)) => Err(format!("{figures}; {why}").into()),
            (doubt, _) if doubt.starts_with(EMULATED) => {
                Err(Inconclusive::emulated(format!("{figures}, {doubt}")))
            }
            (doubt, _) => Err(format!("{figures}, {doubt}").into()),
        }
    }
}

/// Returns a figure of each case without a load, where it is known.
fn known(run: &Run, (_, experiment, (measure, figure), labels): Quantity) -> Vec<Known<'_>> {
    let cases = Case::all(run, experiment).into_iter();
    let idle = cases.filter(|case| case.plan.load.is_idle());
    let each = idle.filter_map(|case| {
        let row = case.row(measure, figure, labels)?;
        Some(Known {
            kernel: case.plan.target.kernel(),
            row,
            over: row.over.as_ref().ok()?,
            doubt: match (measure, row.emulated, case.plan.has_user_network()) {
                ("image", ..) => MORE_FEATURES,
                (_, true, true) => EMULATED_IN_USER_NETWORK,
                (_, true, false) => EMULATED,
                (_, false, true) => USER_NETWORK,
                (_, false, false) => "",
            },
        })
    });
    each.collect()
}

/// Returns a figure of each unikernel.
fn alone(run: &Run, quantity: Quantity) -> Vec<Found> {
    let all = known(run, quantity).into_iter();
    let own = all.filter(|one| one.kernel == Kernel::None);
    let found = own.map(|one| {
        let Known { row, over, .. } = one;
        let ends = over.interval.map(|interval| [interval.low, interval.high]);
        let ends = ends.map_err(|why: NoInterval| why.to_string());
        let short = with_ends(over.estimate, &ends, |value| written(value, row.unit));
        Found {
            target: row.target.clone(),
            figures: format!("{} {short} on {}", quantity.0, row.target),
            short,
            ends,
            doubt: one.doubt,
        }
    });
    found.collect()
}

/// Returns by which share of Linux's a figure of each unikernel differs from that of each Linux
/// guest with the same plan; only those that can answer a claim, if there are such.
fn changes(run: &Run, quantity: Quantity) -> Vec<Found> {
    let all = known(run, quantity);
    let of = |kernel| all.iter().filter(move |one| one.kernel == kernel);
    let pairs = of(Kernel::None).flat_map(|own| of(Kernel::Guest).map(move |other| (own, other)));
    let alike = pairs.filter(|(own, other)| own.row.plan == other.row.plan);
    let changes = alike.map(|(own, other)| {
        let ends = ratio(own.over, other.over).map(|ends| ends.map(|times| times - 1.0));
        let change = own.over.estimate / other.over.estimate - 1.0;
        let short = with_ends(change, &ends, percent);
        let [unikernel, linux] = [own, other].map(|Known { row, over, .. }| {
            format!("{} on {}", written(over.estimate, row.unit), row.target)
        });
        Found {
            target: format!("{} against {}", own.row.target, other.row.target),
            figures: format!("{} {unikernel}, {linux}: {short}", quantity.0),
            short,
            ends,
            doubt: own.doubt.max(other.doubt),
        }
    });
    let mut changes = Vec::from_iter(changes);
    if changes.iter().any(|change| change.doubt.is_empty()) {
        changes.retain(|change| change.doubt.is_empty());
    }
    changes
}

/// Answers whether figures change by a share within their range, on every unikernel against every
/// Linux guest.
fn changed(run: &Run, each: &[(Quantity, [f64; 2])]) -> Answered {
    let each = each.iter();
    folded(each.map(|(quantity, range)| judged(changes(run, *quantity), *quantity, *range)))
}

/// Answers whether all figures lie within a range.
fn judged(found: Vec<Found>, (what, ..): Quantity, range: [f64; 2]) -> Answered {
    match found.is_empty() {
        true => Err(format!("{what}: {NOT_MEASURED}").into()),
        false => folded(found.into_iter().map(|one| one.judge(range))),
    }
}

/// Puts answers together: a claim is reproduced if all say so, and not reproduced if one says that.
fn folded(each: impl Iterator<Item = Answered>) -> Answered {
    let each: Vec<Finding> = each.map(Finding::from).collect();
    let has = |wanted: &Answer| each.iter().any(|one| one.answer == *wanted);
    let mut others = [Answer::NotReproduced, Answer::CannotBeTold].into_iter();
    let answer = others.find(has).unwrap_or(Answer::Reproduced);
    let why: Vec<&str> = each.iter().map(|one| one.why.as_str()).collect();
    Ok(Finding {
        answer,
        why: why.join("; "),
        needs_kvm: answer == Answer::CannotBeTold && each.iter().any(|one| one.needs_kvm),
    })
}

fn with_ends<E>(value: f64, ends: &Result<[f64; 2], E>, write: impl Fn(f64) -> String) -> String {
    let ends = ends.as_ref().map(|ends| ends.map(&write));
    let ends = ends.map_or_else(
        |_| String::new(),
        |[low, high]| format!(" ({low} to {high})"),
    );
    write(value) + &ends
}

fn percent(share: f64) -> String {
    let sign = if share > 0.0 { "+" } else { "" };
    format!("{sign}{} %", Numbers::PLAIN.short(share * 100.0))
}

/// Puts a published figure next to those of the run, or the reason why there are none.
fn compared(run: &Run, row: PublishedRow<'_>) -> Vec<Comparison> {
    let [experiment, subject, value, note] =
        ["experiment", "subject", "value", "note"].map(|column| row.field(column));
    let published = match ["about", "less than"]
        .iter()
        .find(|word| note.starts_with(**word))
    {
        Some(word) => format!("{word} {value} {}", row.field("unit")),
        None if value == "+" => "more".to_owned(),
        None => format!("{} {}", value.replace('-', "−"), row.field("unit")),
    };
    let comparison = |target, here| Comparison {
        what: format!("{subject}: {}", row.field("quantity")),
        published: published.clone(),
        target,
        here,
        drawn: Vec::new(),
    };
    let found = match (experiment, subject.split(' ').next().unwrap_or_default()) {
        ("footprint", "includeos") => alone(run, MEMORY),
        ("footprint", other) => {
            let why = match other {
                "java" => "the study does not name its program",
                _ => "a whole Ubuntu; Linux guests here have one program",
            };
            return vec![comparison(None, format!("not compared: {why}"))];
        }
        ("boot", _) => alone(run, BOOT),
        ("image", _) => alone(run, IMAGE),
        ("stream", _) => changes(run, TRIAD),
        _ if subject.contains("inside") => changes(run, INSIDE),
        _ if subject.contains("outside") => changes(run, OUTSIDE),
        _ => changes(run, TOTAL),
    };
    if found.is_empty() {
        return vec![comparison(None, NOT_MEASURED.to_owned())];
    }
    let each = found.into_iter().map(|found| {
        let doubt = match found.doubt {
            "" => String::new(),
            doubt => format!(", {doubt}"),
        };
        comparison(Some(found.target), found.short + &doubt)
    });
    each.collect()
}
