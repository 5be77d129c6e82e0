//! The parameters of `service`.

use tare_lab::ExperimentError;
use tare_lab::parameter::{Parameter, Takes, Values};
use tare_measured::service::{HIGHEST_NS, LIMIT_NS, Program, Protocol, REQUESTS, SOCKETS};
use tare_results::work::Work;
use tare_wire::guest::COMPUTES;

use super::contradiction;

/// The number of sockets at a rate: answers are spread over them.
pub(super) const SOCKETS_OF_A_RATE: u64 = 16;
/// dnsperf's own default.
pub(super) const SOCKETS_OF_DNSPERF: u64 = 100;
/// The bounds of a rate, in requests per second.
pub(super) const RATES: [u64; 2] = [1, 1_000_000];

/// The names of our server, and of that with the unikernel's network stack.
pub(super) const OWN: &str = "own";
pub(super) const STACK: &str = "stack";
/// Those that have a name.
const NAMED: [&str; 5] = [OWN, STACK, "nsd", "knot", "nginx"];

/// How requests follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Each socket sends when its last request was answered.
    Closed,
    /// At planned times, this many per second.
    Rate(u64),
    /// The same, at the highest rate of which enough is answered.
    Highest,
}

const BASE: Parameter = Parameter {
    heading: "Service",
    ..Parameter::NEW
};

const KIND: Parameter = Parameter {
    name: "service",
    value: "SERVICE",
    positional: true,
    takes: Takes::Word(&["dns", "echo", "http", "ping"]),
    many: true,
    default: "dns",
    meaning: "The service that is asked: by UDP dns, which answers look-ups in a zone of 10,000 names, and echo, which returns what it \
              gets; http, a page over TCP; ping, which the system answers while its service computes",
    ..BASE
};

const CLIENT: Parameter = Parameter {
    name: "client",
    value: "CLIENT",
    takes: Takes::text(
        "own, nslookup, dnsperf or command:WORDS of at most about 180 characters",
        |text| Program::named(text).is_some(),
    ),
    default: "own",
    meaning: "The program that asks: own checks every answer and is fast; for dns there are nslookup, a process for each request as in \
              includeos-2015, and dnsperf; command:WORDS is your own, a process for each request, with {name}, {address} and {port} in its \
              words: it has to exit with 0, and to print the address of a name",
    ..BASE
};

const SERVER: Parameter = Parameter {
    name: "server",
    value: "SERVER",
    takes: Takes::text("own, stack, nsd, knot, nginx or command:WORDS", |text| {
        NAMED.contains(&text) || is_command(text)
    }),
    many: true,
    default: OWN,
    meaning: "The program that answers: own is the same code on every target; stack is that as a process with the unikernel's network stack, \
              on a TAP device; nsd and knot, with the same zone, and nginx, with the same page, are Debian's, as a process and in containers; \
              command:WORDS is your own, as a process",
    ..BASE
};

pub(super) const REQUEST: Parameter = Parameter {
    name: "requests",
    takes: Takes::number(REQUESTS),
    default: "1000",
    meaning: "Requests of a round, each socket's one after the other (closed loop)",
    ..BASE
};

const OFFERED: Parameter = Parameter {
    name: "rate",
    value: "RATE",
    takes: Takes::text(
        "requests per second such as 1000, or a range such as 1000..64000",
        |text| rates(text).is_some(),
    ),
    many: true,
    default: "none: closed loop",
    meaning: "Requests per second at planned times (open loop), instead of --requests: a number, or a range FIRST..LAST that doubles \
              each step",
    ..BASE
};

const MAX: Parameter = Parameter {
    name: "max",
    meaning: "Search the highest rate of which 99.99 % is answered within --timeout, by bisection, offer 0.25 to 3 times that rate, and measure at it",
    ..BASE
};

pub(super) const LEAST_MEMORY: Parameter = Parameter {
    name: "least-memory",
    meaning: "Find the least memory of each guest with which its service still answers, in whole MiB, by bisection, and measure with that",
    ..BASE
};

pub(super) const DURATION: Parameter = Parameter {
    name: "duration",
    value: "TIME",
    takes: Takes::time("s", [100_000_000, 3_600_000_000_000]),
    default: "2s",
    meaning: "How long a rate is offered",
    applies: |_, values| values.has(OFFERED.name) || values.has(MAX.name),
    ..BASE
};

pub(super) const SOCKET: Parameter = Parameter {
    name: "sockets",
    takes: Takes::number(SOCKETS),
    default: "1; 16 with --rate or --max, 100 with --rate and dnsperf",
    meaning: "The client's sockets: in a closed loop and by TCP, as many requests are on their way; with dnsperf, its -q",
    ..BASE
};

pub(super) const TIMEOUT: Parameter = Parameter {
    name: "timeout",
    value: "TIME",
    takes: Takes::time("ms", LIMIT_NS),
    default: "250ms; 5s with --client nslookup or a command",
    meaning: "Time after which a request without a right answer is lost: it counts in every percentile, as longer than that",
    ..BASE
};

const COMPUTE: Parameter = Parameter {
    name: "compute",
    value: "TIME",
    takes: Takes::time("ms", [MS, 60_000 * MS]),
    default: "200ms",
    meaning: "How long the service computes at a time while it is pinged, in whole ms, with pauses of 10 ms",
    applies: |_, values| protocols(values).contains(&Protocol::Ping),
    ..BASE
};
const MS: u64 = 1_000_000;

/// All of them.
pub(super) const ALL: &[Parameter] = &[
    KIND,
    SERVER,
    CLIENT,
    REQUEST,
    OFFERED,
    MAX,
    DURATION,
    SOCKET,
    TIMEOUT,
    COMPUTE,
    LEAST_MEMORY,
];

/// Returns the services that are asked.
pub(super) fn protocols(values: &Values) -> Vec<Protocol> {
    let named = KIND.texts(values);
    let all = Protocol::ALL.into_iter();
    all.filter(|one| named.contains(&one.name())).collect()
}

/// Returns the words of a service of ours.
pub(super) fn words(protocol: Protocol, values: &Values) -> String {
    match protocol {
        Protocol::Ping => format!("{COMPUTES}{}", COMPUTE.number(values) / MS),
        _ => String::new(),
    }
}

/// Returns the programs that answer, ours first.
pub(super) fn servers(values: &Values) -> Vec<&str> {
    let mut given = SERVER.texts(values);
    let place = |name: &str| NAMED.iter().position(|one| *one == name);
    given.sort_by_key(|name| (place(name).unwrap_or(NAMED.len()), *name));
    given.dedup();
    given
}

/// Returns the words of a server that is a command.
pub(super) fn command(server: &str) -> Option<&str> {
    let (kind, words) = server.split_once(':')?;
    (kind == Work::COMMAND).then_some(words)
}

fn is_command(text: &str) -> bool {
    let words = command(text).and_then(shlex::split).unwrap_or_default();
    words.first().is_some_and(|first| !first.is_empty())
}

/// Returns the program that asks.
///
/// # Errors
///
/// Returns [`ExperimentError`] if it can't ask as it should.
pub(super) fn client(values: &Values) -> Result<Program, ExperimentError> {
    let named = CLIENT.texts(values);
    let client = Program::named(named[0]).unwrap_or_default();
    let has = |parameters: &[Parameter]| parameters.iter().any(|one| values.has(one.name));
    let refused = match client {
        Program::Own => None,
        Program::Nslookup | Program::Dnsperf if protocols(values) != [Protocol::Dns] => {
            Some("nslookup and dnsperf ask a name server only: tare service dns")
        }
        _ if has(&[MAX]) => Some("only our own client searches the highest rate: leave --max out"),
        Program::Nslookup | Program::Command(_) if has(&[OFFERED, SOCKET]) => Some(
            "--client nslookup and a command ask one request after the other: leave --rate and --sockets out",
        ),
        _ => None,
    };
    match refused {
        Some(why) => Err(contradiction(why.to_owned())),
        None => Ok(client),
    }
}

/// Returns how requests follow each other, in each of the cells.
///
/// # Errors
///
/// Returns [`ExperimentError`] if requests and rates are given, or a rate has too many of them.
pub(super) fn paces(values: &Values) -> Result<Vec<Pace>, ExperimentError> {
    let given = values.texts(OFFERED.name);
    let is_highest = values.has(MAX.name);
    if protocols(values).contains(&Protocol::Ping) && (given.is_empty() || is_highest) {
        let why = "a ping that is sent when the last one was answered meets the pause after a computation: give --rate, such as 20, and \
                   neither --max nor --requests";
        return Err(contradiction(why.to_owned()));
    }
    if given.is_empty() && !is_highest {
        return Ok(vec![Pace::Closed]);
    }
    if values.has(REQUEST.name) {
        let why =
            "--requests is for a closed loop: at a rate, --duration decides how many there are";
        return Err(contradiction(why.to_owned()));
    }
    if is_highest && DURATION.number(values) > HIGHEST_NS[1] {
        let why = "--max takes a --duration of 600 s at most: it offers many rates, each for that";
        return Err(contradiction(why.to_owned()));
    }
    let mut all: Vec<u64> = given.into_iter().filter_map(rates).flatten().collect();
    all.sort_unstable();
    all.dedup();
    let seconds = DURATION.number(values) as f64 / 1e9;
    let most = all.last().copied().unwrap_or_default();
    if most as f64 * seconds > REQUESTS[1] as f64 {
        return Err(contradiction(format!(
            "{most} requests per second for {seconds} s are more than the {} of a round: lower --rate or --duration",
            REQUESTS[1]
        )));
    }
    let highest = is_highest.then_some(Pace::Highest);
    Ok(all.into_iter().map(Pace::Rate).chain(highest).collect())
}

/// Reads a rate or a range of rates; `None` if one is out of bounds.
fn rates(text: &str) -> Option<Vec<u64>> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let one = |text| {
        let rate = tare_lab::units::whole(text)?;
        (RATES[0]..=RATES[1]).contains(&rate).then_some(rate)
    };
    let (first, last) = (one(first)?, one(last)?);
    let steps = std::iter::successors(Some(first), |rate| rate.checked_mul(2));
    let steps: Vec<u64> = steps.take_while(|rate| *rate <= last).collect();
    (steps.last() == Some(&last)).then_some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_rates_doubles_each_step() {
        assert_eq!(rates("1000"), Some(vec![1_000]));
        assert_eq!(rates("1000..4000"), Some(vec![1_000, 2_000, 4_000]));
        for text in ["0", "1000..3000", "4000..1000", "1000001", "1..", "fast"] {
            assert_eq!(rates(text), None, "{text}");
        }
    }
}
