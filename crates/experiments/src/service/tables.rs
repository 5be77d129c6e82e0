//! The tables of a service: what a request costs, how long it takes, and what the service takes up.

use tare_figures::rows::Figure;
use tare_measured::service::{GOODPUT, RESPONSE, SERVICE, TIMES};
use tare_pages::tables::{Column, Tabled};

use super::measures::PLACE;
use super::{HIGHEST, UNTIL};

/// Returns all of them, with the wrong answers if there are some.
pub(super) fn all(has_wrong: bool) -> Vec<Tabled> {
    let wrong: &[Column] = if has_wrong { &[WRONG] } else { &[] };
    vec![
        Tabled::new("What a request costs", "", &[COSTS, wrong].concat()),
        Tabled::new(
            "What happens for a request",
            "How often a thread of the server is woken up, and has a page fault, for each answered request. Means of the runs.",
            EVENTS,
        ),
        Tabled::new(
            "How long a request takes",
            "A request without a right answer counts as longer than --timeout. Percentiles are medians over the runs; longest and \
             shares are of all runs together.",
            LATENCIES,
        ),
        Tabled::new(
            "How long until it answers",
            "Time from the start of the process, the container's runtime or QEMU, with Docker from the call that makes the \
             container. Means of the runs.",
            STARTS,
        ),
        Tabled::new(
            "What it takes up",
            "Resident memory when the client is done; what processes share counts in each of them. Means of the runs.",
            FOOTPRINT,
        ),
    ]
}

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
    Column::new("answers/s\nat 3 times", GOODPUT, Figure::Rate)
        .of("times", TIMES[TIMES.len() - 1].0)
        .read("At 3 times are the right answers in time where three times the highest rate is offered."),
];

const WRONG: Column = Column::new("wrong\nanswers", "wrong", Figure::Value)
    .read("Wrong answers are a mean of the runs; they count as lost.");

const EVENTS: &[Column] = &[
    Column::new("wake-ups\ninside", "wake-ups", Figure::Mean).of(PLACE, "inside"),
    Column::new("outside", "wake-ups", Figure::Mean).of(PLACE, "outside"),
    Column::new("page faults\ninside", "faults", Figure::Mean).of(PLACE, "inside"),
    Column::new("outside", "faults", Figure::Mean).of(PLACE, "outside"),
    Column::new("exits of\nthe guest", "exits", Figure::Mean).of("reason", "all"),
];

const LATENCIES: &[Column] = &[
    Column::new("service\np50", SERVICE, Figure::MEDIAN).read(SENT),
    Column::new("service\np99", SERVICE, Figure::P99).read(SENT),
    Column::new("service\nlongest", SERVICE, Figure::Max).read(SENT),
    Column::new("response\np50", RESPONSE, Figure::MEDIAN).read(PLANNED),
    Column::new("response\np99", RESPONSE, Figure::P99).read(PLANNED),
    Column::new("response\nlongest", RESPONSE, Figure::Max).read(PLANNED),
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
