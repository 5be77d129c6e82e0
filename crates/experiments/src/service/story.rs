//! How services are shown: what a request costs and how long it takes, by target; and over the
//! offered rate, if there are several.

use maud::{Markup, html};
use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::compare;
use tare_figures::group::grouped;
use tare_figures::notices::{Notice, Severity, name_some};
use tare_figures::rows::{Figure, Measure, Row, behind, written};
use tare_figures::verdict::Verdict;
use tare_figures::words;
use tare_measured::service::{self as measured, Plan, Protocol};
use tare_pages::html::overview::overview_of;
use tare_pages::html::parts::N;
use tare_pages::html::{Detail, Section};
use tare_pages::kit::checks::about;
use tare_pages::kit::curve::{Curve, Dimension, Line as CurveLine, Point};
use tare_pages::kit::sentence::{MANY, few_or_ends};
use tare_pages::kit::series::{Series, native_first};
use tare_pages::tables::{Column, Line, Tabled};
use tare_pages::{Story, View};
use tare_results::model::Labels;

use super::measures::{ALL, MEASURES, PLACE};
use super::parameters::{OWN, command};
use super::{CLIENT, HIGHEST, NAME, RATE, SERVER, SERVICE, Service};

/// The label of a start: until the server's line, or its first answer.
const UNTIL: &str = "until";

/// The labels that names leave out: those of one part of a case, and those that are named otherwise.
const ELSEWHERE: [&str; 4] = [PLACE, UNTIL, SERVER, CLIENT];

/// The share of requests that the client sent late from which on its latencies are doubtful, and
/// that of its CPU's time from which on it may be the bottleneck.
const BEHIND: f64 = 0.01;
const BUSY: f64 = 0.9;
/// The time of a measurement over the planned one from which on its client was late.
const LONGER: f64 = 1.05;
/// The share of requests that is answered at the highest rate.
const HELD: f64 = 0.9999;

const COSTS: &[Column] = &[
    Column::new("CPU per\nrequest", "cpu", Figure::Mean)
        .of(PLACE, "all")
        .with_interval()
        .read(
            "CPU per request is the CPU time of all threads of this machine that belong to the server, for each answered request, \
             idle times included, as a mean of the runs.",
        ),
    Column::new("inside", "cpu", Figure::Mean)
        .of(PLACE, "inside")
        .read("Inside is where the server's own code runs: a guest's CPUs, a container's process."),
    Column::new("outside", "cpu", Figure::Mean)
        .of(PLACE, "outside")
        .read("Outside is the hypervisor or the runtime."),
    Column::new("answered", "answered", Figure::Share)
        .read("Answers are those of all runs together."),
    Column::new("answers/s", "answers", Figure::Rate),
    Column::new("per CPU\nsecond", "per-cpu-second", Figure::Rate)
        .read("Per CPU second are answers for a second of that CPU time."),
    Column::new("highest\nrate", HIGHEST, Figure::Rate).read(
        "The highest rate is that of the answers where 99.99 % were in time; the rest of its line is of a further try at it.",
    ),
];

const EVENTS: &[Column] = &[
    Column::new("wake-ups\ninside", "wake-ups", Figure::Mean).of(PLACE, "inside"),
    Column::new("outside", "wake-ups", Figure::Mean).of(PLACE, "outside"),
    Column::new("page faults\ninside", "faults", Figure::Mean).of(PLACE, "inside"),
    Column::new("outside", "faults", Figure::Mean).of(PLACE, "outside"),
    Column::new("exits of\nthe guest", "exits", Figure::Mean).of("reason", "all"),
];

const LATENCIES: &[Column] = &[
    Column::new("service\np50", measured::SERVICE, Figure::MEDIAN).read(SENT),
    Column::new("service\np99", measured::SERVICE, Figure::P99).read(SENT),
    Column::new("service\nlongest", measured::SERVICE, Figure::Max).read(SENT),
    Column::new("response\np50", measured::RESPONSE, Figure::MEDIAN).read(PLANNED),
    Column::new("response\np99", measured::RESPONSE, Figure::P99).read(PLANNED),
    Column::new("response\nlongest", measured::RESPONSE, Figure::Max).read(PLANNED),
    Column::new("client\nCPU", "client", Figure::Share)
        .read("Client CPU is the share of its CPU's time that the client used."),
    Column::new("sent late", "behind", Figure::Share).read(
        "Sent late is the share of requests that the client sent a millisecond or more late though a socket was free; only our own \
         client says it.",
    ),
];
const SENT: &str =
    "Service latency counts from when a request was sent; one that was never sent has none.";
const PLANNED: &str = "Response latency counts from when a request was planned.";

const STARTS: &[Column] = &[
    Column::new("until it says\nthat it answers", "ready", Figure::Value)
        .of(UNTIL, "line")
        .read("It says that it answers by a line on its output."),
    Column::new("until its\nfirst answer", "ready", Figure::Value)
        .of(UNTIL, "answer")
        .with_interval()
        .read("Its first answer is a right one; it is asked from that line on."),
];

const FOOTPRINT: &[Column] = &[
    Column::new("memory\ninside", "memory", Figure::Value)
        .of(PLACE, "inside")
        .read("Inside is the part of its memory that a guest has touched, or the server's processes."),
    Column::new("outside", "memory", Figure::Value)
        .of(PLACE, "outside")
        .read("Outside is what else the hypervisor or the runtime has."),
    Column::new("least that\nworks", "least-memory", Figure::Value)
        .read("The least that works is a guest's memory in whole MiB, with which the rest is measured."),
    Column::new("image", "image", Figure::Value).read(
        "The image is the size of the files from which it starts: of its program without libraries, of its kernel with the first \
         file system.",
    ),
];

impl View for Service {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn measures(&self) -> &'static [Measure] {
        MEASURES
    }

    fn begin(&self) -> Box<dyn Story> {
        Box::new(Served)
    }
}

/// The story: everything is made of rows.
#[derive(Debug)]
struct Served;

impl Story for Served {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn tables(&self, _run: &Run) -> Vec<Tabled> {
        vec![
            Tabled {
                title: "What a request costs".to_owned(),
                read: String::new(),
                columns: COSTS.to_vec(),
            },
            Tabled {
                title: "What happens for a request".to_owned(),
                read: "How often a thread of the server is woken up, and has a page fault, for each answered request. Means of the runs."
                    .to_owned(),
                columns: EVENTS.to_vec(),
            },
            Tabled {
                title: "How long a request takes".to_owned(),
                read: "A request without a right answer counts as longer than --timeout. Percentiles are medians over the \
                       runs; longest and shares are of all runs together."
                    .to_owned(),
                columns: LATENCIES.to_vec(),
            },
            Tabled {
                title: "How long until it answers".to_owned(),
                read: "Time from the start of the process, the container's runtime or QEMU, with Docker from the call that makes the \
                       container. Means of the runs."
                    .to_owned(),
                columns: STARTS.to_vec(),
            },
            Tabled {
                title: "What it takes up".to_owned(),
                read: "Resident memory when the client is done; what processes share counts in each of them. Means of the runs.".to_owned(),
                columns: FOOTPRINT.to_vec(),
            },
        ]
    }

    fn arrange(&self, _run: &Run, _tabled: &Tabled, lines: &mut Vec<Line<'_>>) {
        let place = |line: &Line<'_>| match line.of.has(RATE, HIGHEST) {
            true => u64::MAX,
            false => line.of.labels.number(RATE).unwrap_or(0),
        };
        lines.sort_by_key(place);
        let order: Vec<String> = lines.iter().map(|line| heading(line.of)).collect();
        lines.sort_by_cached_key(|line| {
            let own = heading(line.of);
            (order.iter().position(|one| *one == own), place(line))
        });
    }

    fn name(&self, run: &Run, line: &Line<'_>) -> (Option<String>, String) {
        let pace = behind(&line.of.labels, &[&ELSEWHERE[..], &[SERVICE]].concat());
        let mut cases = Case::all(run, NAME).into_iter();
        let limit = match cases.any(|case| case.has(line.of) && is_late(&case)) {
            true => " (limited by the client)",
            false => "",
        };
        (Some(heading(line.of)), server(line.of) + &pace + limit)
    }

    fn notices(&self, run: &Run) -> Vec<Notice> {
        let cases = Case::all(run, NAME);
        let place = places(told(&cases));
        let names = |holds: fn(&Case<'_>) -> bool| -> Vec<String> {
            let held = cases.iter().filter(|case| holds(case));
            held.filter_map(|case| case.rows().next().map(&place))
                .collect()
        };
        // Each case with its own reasons.
        let late = cases.iter().filter(|case| is_late(case));
        let late = late.filter_map(|case| Some((bottlenecks(case), place(case.rows().next()?))));
        let late = grouped(late).into_iter().map(|(why, names)| {
            let names = name_some(&names);
            format!("for {names}: in a run it {why}")
        });
        let late = Vec::from_iter(late);
        let behind = (!late.is_empty()).then(|| {
            let text = format!(
                "The client was a bottleneck {}. Latencies and rates there are partly its own.",
                late.join("; ")
            );
            Notice::warning("client-behind", text)
        });
        let notices = [
            behind,
            about(
                (Severity::Warning, "wrong-answers"),
                &names(has_wrong),
                |names| format!("The client found wrong answers of {names}; they count as lost."),
            ),
            about(
                (Severity::Warning, "rate-not-held"),
                &names(is_not_held),
                |names| {
                    format!(
                        "The highest rate that the search found was not held when it was offered once more for {names}: less than 99.99 % \
                         was answered within the limit. Each rate is tried once: take a longer --duration, and more runs."
                    )
                },
            ),
            about(
                (Severity::Warning, "user-network"),
                &names(|case| case.plan.has_user_network()),
                |names| {
                    format!(
                        "There was no TAP device for {names}: QEMU's user-mode network forwarded ports of 127.0.0.1. Its TCP/IP in QEMU's \
                         process is part of the CPU time outside and of each latency: run tare as root, with /dev/net/tun."
                    )
                },
            ),
            about(
                (Severity::Note, "client-shares"),
                &names(is_shared),
                |names| {
                    format!(
                        "Server and client had the same CPU for {names}: this process may use one only. Latencies include the client's \
                     own work."
                    )
                },
            ),
        ];
        notices.into_iter().flatten().collect()
    }

    fn verdict(&self, run: &Run) -> Option<Verdict> {
        let cases = Case::all(run, NAME);
        let subject = subject(&cases);
        let rate = (subject.of == About::HighestRates).then_some(RATE);
        let told = Vec::from_iter(told(&cases).into_iter().chain(rate));
        let place = places(told.clone());
        let rows = subject.rows.iter().copied();
        let known = rows.filter(|row| row.estimate().is_some()).collect();
        let (known, _) = native_first(known, |row: &&Row| row.emulated);
        let silent = unanswered(&cases, &place);
        let Some(first) = known.first() else {
            return silent.map(|headline| Verdict {
                headline,
                ..Verdict::default()
            });
        };
        let each = |rows: &[&Row]| {
            let each = rows.iter().filter_map(|row| {
                let value = row.estimate()?;
                let place = place(row);
                let mut own = cases.iter().filter(|case| case.has(row));
                let own = own.find(|_| subject.of == About::HighestRates);
                let (least, held) = match own {
                    Some(case) if is_not_held(case) => ("", " (not held when offered once more)"),
                    Some(case) if is_limited(case) => ("at least ", ""),
                    _ => ("", ""),
                };
                let rate = written(value, row.unit);
                Some((value, format!("{least}{rate} on {place}{held}")))
            });
            few_or_ends(&each.collect::<Vec<_>>())
        };
        let service = first.labels.get(SERVICE).unwrap_or_default();
        let service = match has_one(&cases, SERVICE) {
            true => format!(" by {service}"),
            false => String::new(),
        };
        let mut details = Vec::from_iter(silent);
        for comparison in compare::targets(run, MANY) {
            let own = known.iter().filter(|row| row.target == comparison.names[1]);
            let named = |row: &Row| {
                let what = behind(&row.labels, &told);
                let server = match has_one(&cases, SERVER) {
                    true => String::new(),
                    false => format!("({})", program(row.labels.get(SERVER).unwrap_or(OWN))),
                };
                format!("{server}{what}{}", comparison.under(row))
                    .trim()
                    .to_owned()
            };
            let own: Vec<_> = own.map(|row| (named(row), *row)).collect();
            details.extend(comparison.about(&[(subject.what, own)]));
        }
        let headline = match subject.of {
            About::Pings => "A ping while the service computes takes a median of",
            About::Costs => &format!("Each request answered{service} takes a mean CPU time of"),
            About::HighestRates => {
                &format!("The highest rate of which 99.99 % is answered in time{service} is")
            }
        };
        Some(Verdict {
            headline: format!("{headline} {}.", each(&known)),
            details,
            ..Verdict::default()
        })
    }

    fn first_picture(&self, run: &Run, _detail: &Detail) -> Option<Markup> {
        let cases = Case::all(run, NAME);
        let subject = subject(&cases);
        let title = format!("{} ({})", subject.what, subject.rows.first()?.figure);
        overview_of(&subject.rows, places(told(&cases)), title, subject.what)
    }

    fn sections(&self, run: &Run, _detail: &Detail) -> Vec<Section> {
        let all = Series::along(Case::all(run, NAME), RATE, |case| {
            case.plan.labels.number(RATE)
        });
        let across =
            || Dimension::logarithmic("offered per s", |rate| N.tick(rate), |rate| N.rate(rate));
        let rates =
            Dimension::logarithmic("answered per s", |rate| N.tick(rate), |rate| N.rate(rate));
        let goodput = Curve {
            title: "Answers against offered requests",
            read: "Right answers per second, against the requests that were planned. On the broken red line every one is answered. A \
                   ring marks a point at which the client was a bottleneck.",
            has_ideal: true,
            ..Curve::new(lines(&all, "answers", Figure::Rate), across(), rates)
        };
        let times =
            Dimension::logarithmic("response (p99)", |ns| N.ns_tick(ns), |ns| written(ns, "ns"));
        let response = Curve {
            title: "Response latency against offered requests (p99)",
            read: "The 99th percentile of the time from when a request was planned to its answer. A line lacks the rates at which \
                   it is unknown: with too few requests for it, or more than one in a hundred lost.",
            ..Curve::new(
                lines(&all, measured::RESPONSE, Figure::P99),
                across(),
                times,
            )
        };
        let pictures: Vec<Markup> = [goodput.render(), response.render()]
            .into_iter()
            .flatten()
            .collect();
        match pictures.is_empty() {
            true => Vec::new(),
            false => vec![Section {
                id: "rates".to_owned(),
                name: "Offered rates".to_owned(),
                content: html! { @for picture in pictures { (picture) } },
            }],
        }
    }

    fn method(&self) -> Markup {
        html! {
            p {
                b { "service" } " starts a server on the target, ours being the same code everywhere, waits until it answers, and has it \
                 asked by a client on another CPU, over a bridge between network namespaces, or a port that QEMU forwards. Our own client checks every answer as a whole: \
                 number, name and address, echo, or page. In a closed loop each of its sockets sends a request when its last one was \
                 answered; at a rate, requests have planned times, whatever became of those before."
            }
            p {
                "CPU time is read of each thread when the client begins and when it is done. It includes what the server does while it \
                 waits, which is why a request costs more at a low rate than at a high one."
            }
        }
    }

    fn limits(&self) -> Vec<String> {
        vec![
            "What the kernel does in the client's place, in interrupts or in the bridge, is nobody's CPU time here: packets are often \
             processed on the sender's account."
                .to_owned(),
        ]
    }
}

/// Says where no request was answered.
fn unanswered(cases: &[Case<'_>], place: &impl Fn(&Row) -> String) -> Option<String> {
    let rows = cases
        .iter()
        .filter_map(|case| case.row("answered", Figure::Share, &[]));
    let silent = rows.filter(|row| row.estimate() == Some(0.0)).map(place);
    let silent = Vec::from_iter(silent);
    (!silent.is_empty()).then(|| format!("No request was answered on {}.", name_some(&silent)))
}

/// The rows of the headline and the first picture.
struct Subject<'r> {
    what: &'static str,
    rows: Vec<&'r Row>,
    of: About,
}

/// The figures that the headline is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Costs,
    HighestRates,
    Pings,
}

/// Returns the highest rates where all were searched; else the costs of requests; where all are
/// pings, which take the service nothing, their times.
fn subject<'r>(cases: &[Case<'r>]) -> Subject<'r> {
    let is_ping = |case: &&Case<'_>| case.plan.labels.get(SERVICE) == Some(Protocol::Ping.name());
    let costs = cases.iter().filter(|case| !is_ping(case));
    let costs: Vec<_> = costs
        .filter_map(|case| case.row("cpu", Figure::Mean, &ALL))
        .collect();
    let pings = cases.iter().filter(is_ping);
    let mut searched = cases.iter();
    if searched.all(|case| case.plan.labels.get(RATE) == Some(HIGHEST)) {
        let rates = cases.iter();
        return Subject {
            what: "highest rate",
            rows: rates
                .filter_map(|case| case.row(HIGHEST, Figure::Rate, &[]))
                .collect(),
            of: About::HighestRates,
        };
    }
    match costs.is_empty() {
        false => Subject {
            what: "CPU time per answered request",
            rows: costs,
            of: About::Costs,
        },
        true => Subject {
            what: "service latency",
            rows: pings
                .filter_map(|case| case.row(measured::SERVICE, Figure::MEDIAN, &[]))
                .collect(),
            of: About::Pings,
        },
    }
}

/// Returns the lines of a figure over the offered rate.
fn lines(all: &[Series<'_>], measure: &str, figure: Figure) -> Vec<CurveLine> {
    CurveLine::each(all.iter().map(|one| {
        let points = one.cases.iter().filter_map(|case| {
            let row = case.row(measure, figure, &[])?;
            let value = row.estimate().filter(|value| *value > 0.0)?;
            let rate = case.plan.labels.number(RATE)? as f64;
            Some(Point {
                name: N.rate(rate),
                at: (rate, value),
                is_marked: row.is_marked(),
                doubt: is_late(case).then(|| "the client was a bottleneck".to_owned()),
                ..Point::default()
            })
        });
        (one.name(), points.collect())
    }))
}

/// Returns the heading of a row: its service, and its load.
fn heading(row: &Row) -> String {
    let service = row.labels.get(SERVICE).unwrap_or_default();
    let by = row.labels.get(CLIENT).map(program);
    let by = by.map_or_else(String::new, |client| format!(", asked by {client}"));
    format!("{service}{by}{}", row.load.under())
}

/// Names the target of a row, and its server if that is not ours.
fn server(row: &Row) -> String {
    let other = row.labels.get(SERVER).map(program);
    let other = other.map_or_else(String::new, |other| format!(" ({other})"));
    row.marked_target() + &other
}

/// Names a program: a command without its folder, which says nothing, and takes the line.
fn program(name: &str) -> &str {
    let Some(words) = command(name) else {
        return name;
    };
    let path = words.split(' ').next().unwrap_or_default();
    &words[path.rfind('/').map_or(0, |slash| slash + 1)..]
}

/// Returns whether all cases have the same label.
fn has_one(cases: &[Case<'_>], label: &str) -> bool {
    let mut named = cases.iter().map(|case| case.plan.labels.get(label));
    let first = named.next();
    named.all(|name| Some(name) == first)
}

/// Returns the labels that names of rows leave out: the service if there is only one as well.
fn told(cases: &[Case<'_>]) -> Vec<&'static str> {
    let service = has_one(cases, SERVICE).then_some(SERVICE);
    ELSEWHERE.into_iter().chain(service).collect()
}

/// Names rows by target, server and load, and by the labels that are not told elsewhere.
fn places(told: Vec<&'static str>) -> impl Fn(&Row) -> String {
    move |row| server(row) + &row.load.under() + &behind(&row.labels, &told)
}

/// A way in which the client is a bottleneck: whether it is one of a case, and its words.
type Bottleneck = (fn(&Case<'_>) -> bool, &'static str);

const BOTTLENECKS: [Bottleneck; 5] = [
    (
        |case| greatest(case, "behind", "requests") > BEHIND,
        "sent more than 1 % of its requests a millisecond or more late",
    ),
    (took_longer, "took longer than planned"),
    (
        |case| greatest(case, "dropped", "requests") > 0.0,
        "had no time to read its answers",
    ),
    (
        |case| greatest(case, "client_cpu", "window") > BUSY,
        "used more than 90 % of its CPU",
    ),
    (is_limited, "ended the search for the highest rate"),
];

/// Returns whether the client of a case ended the search for the highest rate.
fn is_limited(case: &Case<'_>) -> bool {
    greatest(case, "limited", "requests") > 0.0
}

/// Returns whether the client of a case was a bottleneck.
fn is_late(case: &Case<'_>) -> bool {
    BOTTLENECKS.iter().any(|(holds, _)| holds(case))
}

/// Says how the client was a bottleneck of a case.
fn bottlenecks(case: &Case<'_>) -> String {
    let found = BOTTLENECKS.iter().filter(|(holds, _)| holds(case));
    words::list(&Vec::from_iter(found.map(|(_, words)| (*words).to_owned())))
}

/// Returns the greatest share of one value of a run in another; 0 where there is none of that.
fn greatest(case: &Case<'_>, part: &str, whole: &str) -> f64 {
    let none = Labels::default();
    let shares = case.records().filter_map(|record| {
        let whole = record.value(whole, &none).filter(|whole| *whole > 0.0)?;
        Some(record.value(part, &none)? / whole)
    });
    shares.fold(0.0, f64::max)
}

/// Returns whether a client that does not say whether it was late needed more time than it had,
/// apart from that until its last requests were lost.
fn took_longer(case: &Case<'_>) -> bool {
    let words = format!("workload={NAME} {}", case.plan.work.words);
    let Ok(plan) = Plan::parse(words.split_whitespace()) else {
        return false;
    };
    let planned_ns = plan.interval_ns.unwrap_or_default() * plan.requests;
    let most_ns = planned_ns as f64 * LONGER + plan.limit_ns as f64;
    let mut windows = case
        .records()
        .filter_map(|record| record.value("window", &Labels::default()));
    planned_ns > 0 && windows.any(|ns| ns > most_ns)
}

/// Returns whether a search's rate lost too much when it was offered once more.
fn is_not_held(case: &Case<'_>) -> bool {
    let share = case.value("answered", Figure::Share);
    case.plan.labels.get(RATE) == Some(HIGHEST) && share.is_some_and(|share| share < HELD)
}

/// Returns whether a case has wrong answers.
fn has_wrong(case: &Case<'_>) -> bool {
    let mut wrong = case
        .records()
        .filter_map(|record| record.value("wrong", &Labels::default()));
    wrong.any(|number| number > 0.0)
}

/// Returns whether the client of a case had its server's CPU.
fn is_shared(case: &Case<'_>) -> bool {
    let server = case.plan.server.as_ref().and_then(|server| server.cpus);
    server.is_some() && server == case.plan.work.cpus
}
