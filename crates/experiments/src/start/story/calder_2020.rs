//! calder-2020: how long do instances take to start, as processes, containers, Linux guests and
//! unikernels, and which rate is kept up?
//!
//! The study's kinds differ in what executes them: its unikernel and one of its two Linux guests
//! ran in QEMU without KVM, so an emulator's figures answer for these two, and for them alone. Its
//! Linux guest boots a whole Debian; a kernel with nothing but a static program is another kind,
//! and is compared with nothing. Absolute times are those of the study's machine, with 72 logical
//! CPUs: what can be compared is the order of the kinds, and how each changes as the interval gets
//! shorter.

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::claims::{Answered, Claim, Inconclusive, Published, answer};
use tare_figures::rows::Figure;
use tare_figures::words;
use tare_pages::kit::claim_table::{Compared, Drawing, PublishedRow, Quantity, Subject, compare};
use tare_pages::kit::series::Series;

use super::ladder::{self, N, Sustained, interval, interval_ns, open, time};

/// The study.
pub(super) const STUDY: Published = Published {
    name: "calder-2020",
    question: "How long do instances take to start, as processes, containers, Linux guests and unikernels, and which rate do they sustain?",
    claims: &[
        Claim::new(
            "Without contention a process starts in some ms, a unikernel in about 0.25 s, a container in just under 1 s, Linux in about 4 s with KVM and 16 s without.",
            order,
        ),
        Claim::new(
            "The unikernel's latency does not rise under load down to the smallest interval.",
            unikernel_does_not_rise,
        ),
        Claim::new(
            "Docker's latency rises sharply between intervals of 0.5 and 0.25 s, and its throughput falls to almost zero between 1/8 and 1/16 s.",
            docker_collapses,
        ),
        Claim::new("Linux with KVM holds until an interval of 1/8 s.", |run| {
            ends_within(run, KVM, (7.9, 8.1), 16.0)
        }),
        Claim::new("Linux without KVM hangs at an interval of 0.5 s.", |run| {
            ends_within(run, TCG, (0.9, 1.9), 2.0)
        }),
        Claim::new(
            "The unikernel without KVM carries a load 64 times heavier than Linux with KVM.",
            unikernel_carries_more,
        ),
    ],
    tables: &[(
        "Start latency and throughput by interval",
        include_str!("../../../../../studies/published/calder-2020.csv"),
    )],
    note: "Latencies are means, as the study has them: until the line of a process or Linux guest came, and until a container or \
           unikernel had ended. The study's machine had 72 logical CPUs, and its shell stretched intervals near 1 ms: what can be \
           compared is the order of the kinds, and at which interval each gives up.",
    compare: |run, tables| compare(tables, |row| compared(run, row)),
};

/// The kinds of the study, in the order of its latencies without contention.
const PROCESS: &str = "process";
const UNIKERNEL: &str = "unikernel";
const DOCKER: &str = "docker";
const KVM: &str = "linux-kvm";
const TCG: &str = "linux-tcg";
const LINUX: &str = "linux";
const KINDS: [&str; 5] = [PROCESS, UNIKERNEL, DOCKER, KVM, TCG];

/// A second, in ns.
const SECOND: f64 = 1e9;
/// By how much a latency may grow and still counts as not rising.
const LEVEL: f64 = 1.5;
/// By how much it grows where it rises sharply.
const SHARP: f64 = 3.0;
/// The share of the planned rate below which a throughput is almost zero.
const ALMOST_ZERO: f64 = 0.2;
/// The ratio of loads that the last claim is about.
const HEAVIER: f64 = 64.0;

/// Returns the kind of the study that a case is of, if it is of one.
pub(super) fn kind(case: &Case<'_>) -> Option<&'static str> {
    let plan = case.plan;
    if plan.beside_engine || !plan.load.is_idle() {
        return None;
    }
    match plan.target.capabilities().study_kind {
        Some(LINUX) if case.is_emulated() => Some(TCG),
        Some(LINUX) => Some(KVM),
        kind => kind,
    }
}

/// Returns the measure that is the study's latency of a target.
pub(super) fn latency(case: &Case<'_>) -> &'static str {
    case.plan.target.capabilities().study_latency
}

/// Returns the ladders of a kind.
fn of_kind<'a>(run: &'a Run, wanted: &str) -> Vec<Series<'a>> {
    let mut all = ladder::all(run);
    all.retain(|ladder| kind(ladder.first()) == Some(wanted));
    all
}

/// Returns the first ladder of a kind; of unikernels preferably one without KVM, as the study's
/// was. Says what is missing otherwise.
fn get<'a>(run: &'a Run, wanted: &str) -> Result<Series<'a>, Inconclusive> {
    let all = of_kind(run, wanted).into_iter();
    all.min_by_key(|ladder| !ladder.is_emulated())
        .ok_or_else(|| match wanted {
            KVM => Inconclusive::emulated(
                "no whole Debian was started in KVM (target linux,root=debian where KVM works)"
                    .to_owned(),
            ),
            TCG => "no whole Debian was started without KVM (target linux,root=debian,accel=tcg)"
                .into(),
            kind => format!("the run has no {kind}").into(),
        })
}

/// Returns the mean latency of a case by the study's definition.
fn mean(case: &Case<'_>) -> Option<f64> {
    case.value(latency(case), Figure::Mean)
}

/// Returns the case of an interval, which is rounded to ns.
fn at<'s, 'a>(ladder: &'s Series<'a>, seconds: f64) -> Option<&'s Case<'a>> {
    let is_near = |ns: u64| (ns as f64 - seconds * SECOND).abs() <= 1.0;
    open(ladder).find(|case| interval_ns(case).is_some_and(is_near))
}

fn sustained<'a>(ladder: &Series<'a>) -> Result<Sustained<'a>, Inconclusive> {
    let none = || format!("{} was not started at intervals", ladder::name(ladder)).into();
    ladder::sustained(ladder).ok_or_else(none)
}

/// Asks whether the kinds have the order of the study. A missing kind leaves it open, unless the
/// others contradict it.
fn order(run: &Run) -> Answered {
    let all = KINDS.map(|kind| {
        let ns = mean(get(run, kind)?.first());
        ns.map(|ns| (kind, ns))
            .ok_or_else(|| format!("no {kind} became ready").into())
    });
    let known: Vec<(&str, f64)> = all.iter().flatten().copied().collect();
    let each = known
        .iter()
        .map(|(kind, ns)| format!("{kind} {}", time(*ns)));
    let each = words::list(&each.collect::<Vec<_>>());
    let figures = format!("mean without contention: {each}");
    if known.windows(2).any(|two| two[0].1 >= two[1].1) {
        return answer(false, figures);
    }
    match all.into_iter().find_map(Result::err) {
        None => answer(
            true,
            format!("{figures}: the study's order, on another machine"),
        ),
        Some(why) if known.len() < 2 => Err(why),
        Some(why) => Err(why.after(&format!("{figures}, in the study's order; "))),
    }
}

fn unikernel_does_not_rise(run: &Run) -> Answered {
    let unikernel = get(run, UNIKERNEL)?;
    let sustained = sustained(&unikernel)?;
    let known = open(&unikernel).filter_map(|case| Some((interval(case), mean(case)?)));
    let known: Vec<(&str, f64)> = known.collect();
    let ends = known.first().zip(known.last());
    let (first, last) = ends.ok_or("no unikernel became ready")?;
    let [from, to] = [first, last].map(|(every, ns)| format!("{} at {every}", time(*ns)));
    let why = format!("mean {from}, {to}; sustained {}", sustained.written());
    let is_level = known.iter().all(|(_, ns)| *ns <= first.1 * LEVEL) && sustained.end.is_none();
    if is_level && at(&unikernel, 1.0 / 1024.0).is_none() {
        let missing = "the study's smallest interval, 1/1024 s, was not measured";
        return Err(format!("{why}; {missing}").into());
    }
    answer(is_level, why)
}

fn docker_collapses(run: &Run) -> Answered {
    let docker = get(run, DOCKER)?;
    let sustained = format!("it sustained {}", sustained(&docker)?.written());
    let of = |seconds| mean(at(&docker, seconds)?);
    let Some((before, after)) = of(0.5).zip(of(0.25)) else {
        return Err(
            format!("docker was not measured both at 1/2 s and at 1/4 s; {sustained}").into(),
        );
    };
    let why = format!("mean {} at 1/2 s, {} at 1/4 s", time(before), time(after));
    if after < before * SHARP {
        return answer(false, format!("{why}; {sustained}"));
    }
    let done = |seconds| at(&docker, seconds)?.value("rate", Figure::Rate);
    let Some((eighth, sixteenth)) = done(0.125).zip(done(0.0625)) else {
        let missing =
            "it rises, but the ladder ended before 1/16 s, where the throughput would tell";
        return Err(format!("{why}: {missing}").into());
    };
    let (at_eighth, at_sixteenth) = (N.rate(eighth), N.rate(sixteenth));
    answer(
        sixteenth < ALMOST_ZERO * 16.0 && sixteenth < eighth,
        format!("{why}; {at_eighth} done at 1/8 s, {at_sixteenth} at 1/16 s"),
    )
}

/// Asks whether the highest sustained rate of a kind is within bounds, if rates up to `beyond` were
/// measured.
fn ends_within(run: &Run, kind: &str, (low, high): (f64, f64), beyond: f64) -> Answered {
    let sustained = sustained(&get(run, kind)?)?;
    let why = format!("sustained {}", sustained.written());
    match (sustained.rate, sustained.end) {
        (Some(rate), None) if rate < beyond => {
            Err(format!("{why}: shorter intervals were not measured").into())
        }
        (rate, _) => answer(rate.is_some_and(|rate| (low..high).contains(&rate)), why),
    }
}

fn unikernel_carries_more(run: &Run) -> Answered {
    let linux = sustained(&get(run, KVM)?)?;
    let unikernel = get(run, UNIKERNEL).ok().filter(Series::is_emulated);
    let unikernel = sustained(&unikernel.ok_or(
        "the run has no unikernel without KVM, as the study's was (target unikernel,accel=tcg)",
    )?)?;
    let both = unikernel.rate.zip(linux.rate);
    let (own, other) =
        both.ok_or("at least one of the two sustained none of the measured rates")?;
    let why = format!(
        "the unikernel sustained {}, Linux with KVM {}: {} times",
        unikernel.written(),
        linux.written(),
        N.short(own / other)
    );
    match own / other >= HEAVIER {
        true if linux.at_least => Err(format!("{why}, and Linux could do more").into()),
        false if unikernel.at_least => {
            Err(format!("{why}, and the unikernel could do more").into())
        }
        holds => answer(holds, why),
    }
}

/// Latency and throughput as the study publishes them, in s and per s.
const QUANTITIES: &[Quantity] = &[
    Quantity {
        published: |row| time(row.number("latency_s").unwrap_or_default() * SECOND),
        write: |_, ns| time(ns),
        drawn: Some(Drawing {
            picture: "Mean latency by interval",
            across: "latency, ms",
            unit: "",
            published: |row| Some(row.number("latency_s")? * 1e3),
            here: |_, ns| ns / 1e6,
        }),
    },
    Quantity {
        published: |row| N.rate(row.number("throughput_per_s").unwrap_or_default()),
        write: |_, rate| N.rate(rate),
        drawn: Some(Drawing {
            picture: "Throughput by interval",
            across: "instances per second",
            unit: "",
            published: |row| row.number("throughput_per_s"),
            here: |_, rate| rate,
        }),
    },
];

/// Returns what a published row is compared with: the ladders of its kind, at its interval.
fn compared<'a>(run: &'a Run, row: PublishedRow<'_>) -> Option<Compared<'a>> {
    let (kind, seconds) = (row.field("kind"), row.number("interval_s")?);
    let ladders = of_kind(run, kind);
    let subjects = ladders.iter().filter_map(|ladder| {
        let case = at(ladder, seconds)?;
        let marks = [
            case.doubt(),
            ladder.is_emulated().then(|| "emulated".to_owned()),
        ];
        let marks: Vec<String> = marks.into_iter().flatten().collect();
        Some(Subject {
            target: ladder.plan().target.text.clone(),
            group: ladder::name(ladder),
            name: format!("every {}", interval(case)),
            marks: marks.join(", "),
            rows: vec![
                case.row(latency(case), Figure::Mean, &[]),
                case.row("rate", Figure::Rate, &[]),
            ],
        })
    });
    let every = match seconds {
        whole if whole >= 1.0 => format!("{whole} s"),
        part => format!("1/{} s", (1.0 / part).round()),
    };
    Some(Compared {
        what: format!("{kind}, every {every}: latency / throughput"),
        quantities: QUANTITIES,
        subjects: subjects.collect(),
    })
}
