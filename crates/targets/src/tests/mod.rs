//! What tests of several targets share: plans of the real agent, and what comes of an instance.

mod work;

use std::fs;
use std::ops::Range;
use std::time::{Duration, Instant};

use tare_guard::{Guard, Interrupt};
use tare_results::model::{Agent, Instance as Launched, Labels, Record};
use tare_results::receive::{Incomplete, Received, Receiver, Seen as Line};

use tare_wire::phases::LEAD_NS;

use crate::instance::{Ended, Ending, Finish, Instance, OutputEvent, Watcher};
use crate::{Job, Target};

pub(crate) use work::work;

/// A batch of calls with a known result.
pub(crate) const BATCH: &str = "workload=prime limit=22";
/// A short one.
pub(crate) const SHORT: &str = "workload=prime limit=22 repetitions=1000 bins=10 window=10";
/// Takes hours.
pub(crate) const LONG: &str = "workload=gap repetitions=100000000000";
/// Threads that sleep on timers.
pub(crate) const TIMERS: &str = "workload=wakeup bins=10";

/// The outcome of an instance.
pub(crate) struct Seen {
    pub(crate) ended: Ended,
    pub(crate) received: Result<Received, Incomplete>,
    /// Its output.
    pub(crate) text: String,
}

impl Seen {
    /// Returns why it failed.
    #[track_caller]
    pub(crate) fn why(&self) -> &str {
        match &self.ended.how {
            Ending::Failed { why } => why,
            other => panic!("{other:?}: {}", self.text),
        }
    }

    /// Returns the records of an instance that did what it was to do.
    #[track_caller]
    pub(crate) fn record(self) -> Record {
        assert_eq!(self.ended.how, Ending::Done, "{}", self.text);
        record(self.received.unwrap())
    }
}

#[derive(Default)]
struct Records {
    receiver: Receiver,
    text: String,
}

impl Records {
    fn take(&mut self, event: OutputEvent<'_>) -> Line {
        let OutputEvent::Line(line, _) = event else {
            return Line::Other;
        };
        self.text.push_str(&String::from_utf8_lossy(line));
        self.text.push('\n');
        self.receiver.line(line)
    }
}

/// Watches an instance to its end, and makes sure that no QEMU is left.
pub(crate) fn watch(instance: Instance, limit: Duration) -> Seen {
    let pid = instance.pid();
    let mut records = Records::default();
    let interrupt = Interrupt::detached().unwrap();
    let mut take = |event: OutputEvent<'_>| {
        records.take(event);
    };
    let ended = instance.watch(limit, &interrupt, &mut take).unwrap();
    // One that has ended already has none.
    if let Some(pid) = pid {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        assert!(!name.starts_with("qemu"), "QEMU {pid} is left");
    }
    Seen {
        ended,
        received: records.receiver.finish(),
        text: records.text,
    }
}

/// Asks for the end of an instance a moment after its measurement has begun.
struct Impatient {
    records: Records,
    begun: Option<Instant>,
    interrupt: Interrupt,
}

impl Watcher for Impatient {
    fn on_event(&mut self, event: OutputEvent<'_>) {
        if let Line::Begins { .. } = self.records.take(event) {
            self.begun = Some(Instant::now());
        }
    }

    fn finishing(&mut self) -> Finish {
        Finish::Early
    }

    fn tick(&mut self) -> Option<Duration> {
        const MOMENT: Duration = Duration::from_nanos(LEAD_NS + 400_000_000);
        if self.begun.is_some_and(|begun| begun.elapsed() > MOMENT) {
            self.interrupt.request_finish();
        }
        Some(Duration::from_millis(50))
    }
}

/// Launches timers that would take a minute, asks them to end, and makes sure that they report what
/// they saw until then.
#[track_caller]
pub(crate) fn cut_short(target: &dyn Target, words: &str, guard: &Guard) {
    let words = format!("interval=2ms duration=60s {words}");
    cut_short_of(target, &words, 10..20_000, guard);
}

/// The same with another interval and number of activations.
#[track_caller]
pub(crate) fn cut_short_of(
    target: &dyn Target,
    words: &str,
    activations: Range<u64>,
    guard: &Guard,
) {
    let work = work(&format!("{TIMERS} policy=other {words}"));
    let instance = target.start(&Job::idle(&work), guard).unwrap();
    let interrupt = Interrupt::detached().unwrap();
    let mut watcher = Impatient {
        records: Records::default(),
        begun: None,
        interrupt: interrupt.clone(),
    };
    let ended = instance
        .watch(Duration::from_secs(120), &interrupt, &mut watcher)
        .unwrap();
    let Records { receiver, text } = watcher.records;
    let name = target.spec().text;
    assert_eq!(ended.how, Ending::Done, "{name}: {text}");
    let took = watcher.begun.unwrap().elapsed();
    assert!(took < Duration::from_secs(30), "{name}: {took:?}");
    let received = receiver.finish().unwrap();
    assert!(received.cut_short, "{name}");
    let record = record(received);
    let [(seen, _)] = timers(&record, "CPU")[..] else {
        panic!("{name}: {record:?}");
    };
    assert!(activations.contains(&seen), "{name}: {seen}");
}

/// Takes the records as they were reported.
pub(crate) fn record(received: Received) -> Record {
    let (record, ..) = received.into_record(Agent::default(), Launched::default(), &[]);
    record
}

/// Returns what the work of a batch yielded, and the steps of one repetition.
pub(crate) fn result(record: &Record) -> (Option<f64>, Option<f64>) {
    let value = |measure| record.value(measure, &Labels::default());
    (value("result"), value("work"))
}

/// Returns how many timers each thread had, seen and missed, and a fact of the thread.
pub(crate) fn timers<'a>(record: &'a Record, fact: &str) -> Vec<(u64, Option<&'a str>)> {
    let sets = record.sets.iter();
    let threads = sets.map(|head| {
        let missed = record.value("missed", &head.labels).unwrap() as u64;
        let told = record.programs[0].fact_of(fact, &head.labels);
        (head.n + missed, told)
    });
    threads.collect()
}
