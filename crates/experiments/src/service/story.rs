//! How services are shown: what a request costs and how long it takes, by target; and over the
//! offered rate, if there are several.

use maud::{Markup, html};
use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::compare;
use tare_figures::group::sort_in_groups;
use tare_figures::mark::AT_LEAST;
use tare_figures::notices::{Notice, name_some};
use tare_figures::rows::{Figure, Measure, Row, behind, written};
use tare_figures::verdict::Verdict;
use tare_measured::service::{self as measured, GOODPUT, OFFERED, Protocol, TIMES};
use tare_pages::html::overview::overview_of;
use tare_pages::html::parts::N;
use tare_pages::html::{Detail, Section};
use tare_pages::kit::curve::{Curve, Dimension, Line as CurveLine, Point};
use tare_pages::kit::sentence::{MANY, few_or_ends};
use tare_pages::kit::series::{Series, native_first};
use tare_pages::tables::{Line, Tabled};
use tare_pages::{Story, View};
use tare_results::model::{Labels, Record};

use super::checks::{self, has_wrong, is_late, is_limited, is_not_held};
use super::measures::{ALL, MEASURES, PLACE, is_ping, lacks_cpu};
use super::parameters::{OWN, command};
use super::{CLIENT, HIGHEST, NAME, RATE, SERVER, SERVICE, Service, UNTIL, tables};

/// The labels that names leave out: those of one part of a case, and those that are named otherwise.
const ELSEWHERE: [&str; 4] = [PLACE, UNTIL, SERVER, CLIENT];

/// The figures of the headline and the first picture.
struct Subject {
    headline: &'static str,
    what: &'static str,
    of: (
        &'static str,
        Figure,
        &'static [(&'static str, &'static str)],
    ),
}

/// Where all were searched.
const SEARCHED: Subject = Subject {
    headline: "The highest rate of which 99.99 % is answered in time{} is",
    what: "highest rate",
    of: (HIGHEST, Figure::Rate, &[]),
};
/// Where all are pings, which take the service nothing.
const PINGS: Subject = Subject {
    headline: "A ping while the service computes takes a median of",
    what: "service latency",
    of: (measured::SERVICE, Figure::MEDIAN, &[]),
};
const COSTS: Subject = Subject {
    headline: "Each request answered{} takes a mean CPU time of",
    what: "CPU time per answered request",
    of: ("cpu", Figure::Mean, &ALL),
};

impl View for Service {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn measures(&self) -> &'static [Measure] {
        MEASURES
    }

    fn begin(&self) -> Box<dyn Story> {
        Box::new(*self)
    }
}

impl Story for Service {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn tables(&self, run: &Run) -> Vec<Tabled> {
        let mut cases = Case::all(run, NAME).into_iter();
        tables::all(cases.any(|case| has_wrong(&case)))
    }

    fn arrange(&self, run: &Run, _tabled: &Tabled, lines: &mut Vec<Line<'_>>) {
        let cases = Case::all(run, NAME);
        for line in &mut *lines {
            line.at_least = is_least(&cases, line.of).then_some(HIGHEST);
        }
        let place = |line: &Line<'_>| match line.of.has(RATE, HIGHEST) {
            true => u64::MAX,
            false => line.of.labels.number(RATE).unwrap_or(0),
        };
        sort_in_groups(lines, |line| heading(line.of), place);
    }

    fn name(&self, run: &Run, line: &Line<'_>) -> (Option<String>, String) {
        let pace = behind(&line.of.labels, &[&ELSEWHERE[..], &[SERVICE]].concat());
        let mut cases = Case::all(run, NAME).into_iter();
        let own = cases.find(|case| case.has(line.of));
        let limit = own.as_ref().map_or("", checks::mark);
        (Some(heading(line.of)), server(line.of) + &pace + limit)
    }

    fn notices(&self, run: &Run) -> Vec<Notice> {
        let cases = Case::all(run, NAME);
        checks::find(&cases, places(told(&cases)))
    }

    fn verdict(&self, run: &Run) -> Option<Verdict> {
        let cases = Case::all(run, NAME);
        let (Subject { headline, what, .. }, rows) = subject(&cases);
        let is_searched = *what == SEARCHED.what;
        let told = Vec::from_iter(told(&cases).into_iter().chain(is_searched.then_some(RATE)));
        let place = places(told.clone());
        let known = rows.into_iter().filter(|row| row.estimate().is_some());
        let known = known.collect();
        let (known, _) = native_first(known, |row: &&Row| row.emulated);
        let silent = unanswered(&cases, &place);
        let Some(first) = known.first() else {
            return silent.map(|headline| Verdict {
                headline,
                ..Verdict::default()
            });
        };
        let each = known.iter().filter_map(|row| {
            let value = row.estimate()?;
            let mut own = cases.iter().filter(|case| is_searched && case.has(row));
            let (least, held) = match own.next() {
                Some(case) if is_not_held(case) => ("", " (not held when offered once more)"),
                Some(_) if is_least(&cases, row) => (AT_LEAST, ""),
                _ => ("", ""),
            };
            let (rate, place) = (written(value, row.unit), place(row));
            Some((value, format!("{least}{rate} on {place}{held}")))
        });
        let each = few_or_ends(&Vec::from_iter(each));
        let service = match first.labels.get(SERVICE) {
            Some(service) if has_one(&cases, SERVICE) => format!(" by {service}"),
            _ => String::new(),
        };
        let headline = headline.replace("{}", &service);
        let mut details = Vec::from_iter(silent);
        for comparison in compare::targets(run, MANY) {
            let own = known.iter().filter(|row| row.target == comparison.names[1]);
            let named = |row: &Row| {
                let server = match has_one(&cases, SERVER) {
                    true => String::new(),
                    false => format!("({})", program(row.labels.get(SERVER).unwrap_or(OWN))),
                };
                let name = server + &behind(&row.labels, &told) + &comparison.under(row);
                name.trim().to_owned()
            };
            let own: Vec<_> = own.map(|row| (named(row), *row)).collect();
            details.extend(comparison.about(&[(*what, own)]));
        }
        Some(Verdict {
            headline: format!("{headline} {each}."),
            details,
            ..Verdict::default()
        })
    }

    fn first_picture(&self, run: &Run, _detail: &Detail) -> Option<Markup> {
        let cases = Case::all(run, NAME);
        let (Subject { what, of, .. }, rows) = subject(&cases);
        let title = format!("{what} ({})", of.1);
        let is_least = |row: &Row| row.measure.id == HIGHEST && is_least(&cases, row);
        overview_of(&rows, places(told(&cases)), is_least, (title, what))
    }

    fn sections(&self, run: &Run, _detail: &Detail) -> Vec<Section> {
        let cases = Case::all(run, NAME);
        let all = Series::along(cases, RATE, |case| case.plan.labels.number(RATE));
        let across = || Dimension::rate("offered per s");
        let answers = lines(&all, |case| {
            let point = point(case, "answers", Figure::Rate);
            point.into_iter().chain(multiples(case))
        });
        let answers = Curve {
            title: "Answers against offered requests",
            read: "Right answers per second, against the requests that were planned. On the broken red line every one is answered. A \
                   ring marks a point at which the client was late, or had no CPU time left.",
            has_ideal: true,
            ..Curve::new(answers, across(), Dimension::rate("answered per s"))
        };
        let response = lines(&all, |case| point(case, measured::RESPONSE, Figure::P99));
        let times =
            Dimension::logarithmic("response (p99)", |ns| N.ns_tick(ns), |ns| written(ns, "ns"));
        let response = Curve {
            title: "Response latency against offered requests (p99)",
            read: "The 99th percentile of the time from when a request was planned to its answer. A line lacks the rates at which \
                   it is unknown: with too few requests for it, or more than one in a hundred lost.",
            ..Curve::new(response, across(), times)
        };
        let pictures = [answers.render(), response.render()].into_iter().flatten();
        let pictures = Vec::from_iter(pictures);
        let content = html! { @for picture in &pictures { (picture) } };
        let section = Section::new("rates", "Offered rates", content);
        pictures.first().map(|_| section).into_iter().collect()
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

/// Returns whether the highest rate of a row's case is at least what the client could search.
fn is_least(cases: &[Case<'_>], row: &Row) -> bool {
    let mut own = cases.iter().filter(|case| case.has(row));
    own.any(|case| is_limited(case) && !is_not_held(case))
}

/// Says where no request was answered, and where what an answer costs is unknown.
fn unanswered(cases: &[Case<'_>], place: &impl Fn(&Row) -> String) -> Option<String> {
    let row = |case: &Case<'_>| case.row("answered", Figure::Share, &[]).map(place);
    let is_silent = |case: &Case<'_>| case.value("answered", Figure::Share) == Some(0.0);
    let is_unknown =
        |case: &Case<'_>| !is_ping(case.plan) && !case.records().any(|one| !lacks_cpu(one));
    let silent = cases.iter().filter(|case| is_silent(case));
    let unknown = cases.iter().filter(|case| is_unknown(case));
    let [silent, unknown] = [
        Vec::from_iter(silent.filter_map(row)),
        Vec::from_iter(unknown.filter_map(row)),
    ];
    let said = [
        ("No request was answered", silent),
        ("The CPU time of a request is unknown", unknown),
    ];
    let said = said.into_iter().filter(|(_, places)| !places.is_empty());
    let said = said.map(|(what, places)| format!("{what} on {}.", name_some(&places)));
    Some(said.collect::<Vec<_>>().join(" ")).filter(|said| !said.is_empty())
}

/// Returns what the headline and the first picture are about, and its rows.
fn subject<'r>(cases: &[Case<'r>]) -> (&'static Subject, Vec<&'r Row>) {
    let all = |label, value| {
        let mut cases = cases.iter();
        cases.all(|case| case.plan.labels.get(label) == Some(value))
    };
    let subject = match (all(RATE, HIGHEST), all(SERVICE, Protocol::Ping.name())) {
        (true, _) => &SEARCHED,
        (_, true) => &PINGS,
        _ => &COSTS,
    };
    let (measure, figure, labels) = subject.of;
    let rows = cases.iter();
    let rows = rows.filter_map(|case| case.row(measure, figure, labels));
    (subject, rows.collect())
}

/// Returns the lines of points over the offered rate.
fn lines<'s, 'a, P: IntoIterator<Item = Point>>(
    all: &'s [Series<'a>],
    points: impl Fn(&'s Case<'a>) -> P,
) -> Vec<CurveLine> {
    CurveLine::each(all.iter().map(|one| {
        let mut own: Vec<Point> = one.cases.iter().flat_map(&points).collect();
        own.sort_by(|a, b| a.at.0.total_cmp(&b.at.0));
        (one.name(), own)
    }))
}

/// Returns the point of a case that was offered a rate.
fn point(case: &Case<'_>, measure: &str, figure: Figure) -> Option<Point> {
    let rate = case.plan.labels.number(RATE)? as f64;
    at(case.row(measure, figure, &[])?, rate, is_late(case))
}

/// Returns the points of a case that was offered multiples of its highest rate.
fn multiples(case: &Case<'_>) -> impl Iterator<Item = Point> {
    TIMES.iter().filter_map(|(times, _)| {
        let labels = [("times", *times)];
        let rate = case.row(OFFERED, Figure::Rate, &labels)?.estimate()?;
        let limited = |record: &Record| record.value("limited", &Labels::of(labels));
        let is_limited = case.records().any(|record| limited(record) == Some(1.0));
        at(case.row(GOODPUT, Figure::Rate, &labels)?, rate, is_limited)
    })
}

fn at(row: &Row, rate: f64, is_late: bool) -> Option<Point> {
    let doubt = is_late.then(|| "the client was late or had no CPU time left".to_owned());
    Point::of(row, N.rate(rate), rate, doubt)
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
