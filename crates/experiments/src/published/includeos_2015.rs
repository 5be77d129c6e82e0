//! includeos-2015: what does a service cost on a unikernel, against the same service on Linux?
//!
//! Its guests ran in KVM, so an emulator's figures answer no claim: they are named with it. Its
//! CPU time is in ticks of 10 ms; ours in ns, of the same threads.

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::claims::{Answered, Claim, Inconclusive, Published, answer};
use tare_figures::format::Numbers;
use tare_figures::rows::{Figure, Row, written};
use tare_pages::kit::claim_table::{Compared, PublishedRow, Quantity, Subject, compare};
use tare_results::target::Kernel;

use crate::{service, start, stream};

/// The study.
pub(super) const STUDY: Published = Published {
    name: "includeos-2015",
    question: "What does a service cost on a unikernel, against the same service on Linux?",
    claims: &[
        Claim::new(
            "The DNS service takes 5.5 to 20 % less CPU in total.",
            |run| {
                let both = cpu(run, "all")?;
                both.answer(both.change <= LESS_IN_ALL, both.written.clone())
            },
        ),
        Claim::new(
            "It takes 66 to 70 % less CPU inside the guest, but more outside it.",
            |run| {
                let (inside, outside) = (cpu(run, "inside")?, cpu(run, "outside")?);
                let holds = inside.change <= LESS_INSIDE && outside.change > 0.0;
                let figures = format!("inside {}; outside {}", inside.written, outside.written);
                inside.answer(holds, figures)
            },
        ),
        Claim::new(
            "Its image with everything in it has 158 kB, with IPv4 and UDP only.",
            |run| {
                let of = ("image", Figure::Value);
                let both = Both::of(run, service::NAME, of, &[("service", "dns")])?;
                Err(Inconclusive::from(format!(
                    "{}; the image dns has more than IPv4 and UDP, and a run does not record the features of another one",
                    both.written
                )))
            },
        ),
        Claim::new("The minimal image boots in about 0.3 s.", boots),
        Claim::new(
            "Ping goes unanswered while a request computes for seconds.",
            |run| {
                let of = ("service", Figure::MEDIAN);
                let both = Both::of(run, service::NAME, of, &[("service", "ping")])?;
                let figures = format!("median of a ping: {}", both.written);
                both.answer(both.change >= WAITS - 1.0, figures)
            },
        ),
        Claim::new("There are fewer VM exits.", |run| {
            let both = dns(run, ("exits", Figure::Mean), ("reason", "all")).map_err(|_| {
                Inconclusive::from("only KVM counts VM exits: no guest of the run was in KVM")
            })?;
            both.answer(both.change < 0.0, both.written.clone())
        }),
        Claim::new("STREAM's bandwidth differs by less than 0.5 %.", |run| {
            let of = ("bandwidth", Figure::Mean);
            let both = Both::of(run, stream::NAME, of, &[("kernel", "triad")])?;
            let figures = format!("Triad: {}", both.written);
            both.answer(both.change.abs() < DIFFERENCE, figures)
        }),
    ],
    tables: &[(
        "Memory, boot, bandwidth and CPU time",
        include_str!("../../../../studies/published/includeos-2015.csv"),
    )],
    note: "The study compares its unikernel with the same service on Ubuntu 14.04 in KVM, on an AMD and an Intel machine: changes \
           against Linux can be compared, absolute figures are of another machine. Memory is that of a whole QEMU. That of a Java \
           process and of an Ubuntu guest is not compared: the study names no program of this machine (docs/start.md has a command for \
           six languages), and its Linux guests have nothing but the service.",
    compare: |run, tables| compare(tables, |row| compared(run, row)),
};

/// The least change of all CPU time, and of that inside, that the study found.
const LESS_IN_ALL: f64 = -0.055;
const LESS_INSIDE: f64 = -0.66;
/// The longest boot that is still about 0.3 s, in ns.
const ABOUT: f64 = 0.45e9;
/// How many times as long as Linux's answer one takes that waits for a computation.
const WAITS: f64 = 10.0;
/// The greatest difference of bandwidths.
const DIFFERENCE: f64 = 0.005;

/// Two figures that a claim compares, and whether an emulator measured one.
struct Both {
    /// How much the unikernel's differs, as a share of Linux's.
    change: f64,
    written: String,
    is_emulated: bool,
}

impl Both {
    /// Finds a figure of an experiment on the unikernel and in a Linux guest: on machines if there
    /// are both, else on the first of each.
    fn of(
        run: &Run,
        experiment: &str,
        (measure, figure): (&str, Figure),
        labels: &[(&str, &str)],
    ) -> Result<Self, Inconclusive> {
        let cases = Case::all(run, experiment).into_iter();
        let own = cases.filter(|case| case.plan.load.is_idle() && !case.plan.has_user_network());
        let rows = own.filter_map(|case| {
            let row = case.row(measure, figure, labels)?;
            Some((case.plan.target.kernel(), row, row.estimate()?))
        });
        let rows: Vec<(Kernel, &Row, f64)> = rows.collect();
        let first = |kernel: Kernel, what: &str| {
            let own = rows.iter().filter(|(of, ..)| *of == kernel);
            let row = own.min_by_key(|(_, row, _)| row.emulated);
            row.ok_or_else(|| Inconclusive::from(format!("the run has no figure of {what}")))
        };
        let (_, own, unikernel) = *first(Kernel::None, "a unikernel")?;
        let (_, other, linux) = *first(Kernel::Guest, "a Linux guest")?;
        let change = unikernel / linux - 1.0;
        let sign = if change < 0.0 { "−" } else { "+" };
        Ok(Self {
            change,
            written: format!(
                "{} on {}, {} on {}: {sign}{} %",
                written(unikernel, own.unit),
                own.target,
                written(linux, other.unit),
                other.target,
                Numbers::PLAIN.short(change.abs() * 100.0)
            ),
            is_emulated: own.emulated || other.emulated,
        })
    }

    /// Answers a claim, unless an emulator measured.
    fn answer(&self, holds: bool, figures: String) -> Answered {
        match self.is_emulated {
            true => Err(Inconclusive::emulated(format!("{figures}, emulated"))),
            false => answer(holds, figures),
        }
    }
}

fn dns(run: &Run, of: (&str, Figure), label: (&str, &str)) -> Result<Both, Inconclusive> {
    Both::of(run, service::NAME, of, &[label, ("service", "dns")])
}

fn cpu(run: &Run, place: &str) -> Result<Both, Inconclusive> {
    dns(run, ("cpu", Figure::Mean), ("place", place))
}

/// Returns the starts of unikernels.
fn starts(run: &Run) -> impl Iterator<Item = Case<'_>> {
    let cases = Case::all(run, start::NAME).into_iter();
    cases.filter(|case| case.plan.target.kernel() == Kernel::None)
}

fn boots(run: &Run) -> Answered {
    let mut rows = starts(run).filter_map(|case| case.row("ready", Figure::Mean, &[]));
    let row = rows.next().ok_or("the run has no start of a unikernel")?;
    let ns = row.estimate().ok_or("no unikernel became ready")?;
    let figures = format!("mean {} until its first line", written(ns, row.unit));
    match row.emulated {
        true => Err(Inconclusive::emulated(format!("{figures}, emulated"))),
        false => answer(ns <= ABOUT, figures),
    }
}

const MEMORY: &[Quantity] = &[Quantity {
    published: |row| format!("{} MB", row.field("value")),
    write: |row, value| written(value, row.unit),
    drawn: None,
}];

const TIME: &[Quantity] = &[Quantity {
    published: |row| format!("{} s", row.field("value")),
    ..MEMORY[0]
}];

/// Returns what a published row is compared with: the unikernel's memory and boot. Changes against
/// Linux are claims.
fn compared<'a>(run: &'a Run, row: PublishedRow<'_>) -> Option<Compared<'a>> {
    let (what, measure, quantities) = match (row.field("experiment"), row.field("subject")) {
        ("footprint", "includeos hello VM with QEMU") => {
            ("memory of the minimal VM", "memory", MEMORY)
        }
        ("boot", _) => ("boot of the minimal VM", "ready", TIME),
        _ => return None,
    };
    let subjects = starts(run).map(|case| Subject {
        target: case.plan.target.text.clone(),
        group: String::new(),
        name: case.target(),
        marks: if case.is_emulated() { "emulated" } else { "" }.to_owned(),
        rows: vec![case.row(measure, Figure::Mean, &[])],
    });
    Some(Compared {
        what: what.to_owned(),
        quantities,
        subjects: subjects.collect(),
    })
}
