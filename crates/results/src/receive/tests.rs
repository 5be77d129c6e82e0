use proptest::collection::vec;
use proptest::prelude::*;
use tare_testkit::records::{Lists, Room, instance};
use tare_wire::line::Encoder;
use tare_wire::packed::Packer;
use tare_wire::record::{Failure, List, Notice, Set, Trace};
use tare_wire::trace::{Kind, zigzag};

use super::*;
use crate::model::{Agent, Count, Event, Instance, SetHead, Unit};
use crate::samples;

/// Three samples without phases, one of them a delay.
fn delayed() -> Lists {
    let set = Set {
        measure: "duration",
        first: 1_000,
        threshold: 3_000,
        bin: 8,
        ..Set::default()
    };
    let samples = [(0, 0, 100), (1, 120, 5_000), (2, 6_000, 100)];
    Lists::fold(set, &[], samples, Room::ENOUGH)
}

/// Returns the lines of a small measurement: 10 of them.
fn lines() -> Vec<Vec<u8>> {
    instance(&[delayed()], &[Record::Notice(Notice { text: "cold" })])
}

/// Writes a record as the one of such a number.
fn line(number: usize, record: Record<'_>) -> Vec<u8> {
    let mut encoder = Encoder::default();
    for _ in 0..number {
        let before = Record::Notice(Notice { text: "" });
        encoder.encode(&before).unwrap();
    }
    encoder.encode(&record).unwrap().to_vec()
}

fn receive(lines: &[Vec<u8>]) -> Result<Received, Incomplete> {
    let mut receiver = Receiver::default();
    for line in lines {
        receiver.line(line);
    }
    receiver.finish()
}

/// Divides the sets of an instance by the phases of its load.
fn divided(
    sets: &[Lists],
    more: &[Record<'_>],
    phases: &[Phase],
) -> (model::Record, model::Samples) {
    let received = receive(&instance(sets, more)).unwrap();
    let (record, samples, _) = received.into_record(Agent::default(), Instance::default(), phases);
    assert_eq!(samples::check(&record, &samples), Ok(()));
    (record, samples)
}

#[test]
fn whole_records_become_the_facts_of_a_cell() {
    let received = receive(&lines()).unwrap();
    assert_eq!(received.notices, ["cold"]);
    let (record, samples) = divided(&[delayed()], &[], &[]);
    let head = SetHead {
        measure: "duration".to_owned(),
        n: 3,
        sum: 5_200,
        min: 100,
        max: 5_000,
        first: 1_000,
        last: 7_100,
        threshold: 3_000,
        seen: 1,
        kept: 1,
        bin: 8,
        raw: 3,
        ..SetHead::default()
    };
    assert_eq!(record.sets, [head]);
    let program = &record.programs[0];
    assert_eq!(program.agent.version, "1.2.3");
    assert_eq!(program.preparation.buffer_bytes, 48_000);
    assert_eq!(program.calibration.step_cycles, 26);
    let (index, at, value) = (1, 1_120, 5_000);
    assert_eq!(samples.sets[0].events, [Event { index, at, value }]);
    assert_eq!(samples.sets[0].counts[1], Count { value, count: 1 });
}

#[test]
fn readiness_and_the_end_are_seen_as_they_come() {
    let mut receiver = Receiver::default();
    let seen: Vec<Seen> = lines().iter().map(|line| receiver.line(line)).collect();
    assert_eq!((seen[1], seen[9]), (Seen::Ready, Seen::Last));
    assert_eq!(receiver.line(b"Linux version 6.1"), Seen::Other);
}

#[test]
fn chatter_between_records_is_skipped() {
    let mut lines = lines();
    lines.insert(3, b"[    1.234] random: crng init done\r\n".to_vec());
    lines.insert(0, b"SeaBIOS\n".to_vec());
    assert!(receive(&lines).is_ok());
}

#[test]
fn lost_repeated_and_damaged_lines_are_noticed() {
    for number in 0..lines().len() {
        let mut fewer = lines();
        fewer.remove(number);
        assert!(receive(&fewer).is_err(), "line {number}");
        let mut damaged = lines();
        damaged[number][10] ^= 1;
        let what = "its checksum does not match";
        let number = number as u64;
        assert_eq!(receive(&damaged), Err(Incomplete::Damaged { number, what }));
    }
    let mut repeated = lines();
    repeated.insert(4, repeated[3].clone());
    let (expected, got) = (4, 3);
    let incomplete = Incomplete::OutOfOrder { expected, got };
    assert_eq!(receive(&repeated), Err(incomplete));
}

#[test]
fn a_failure_is_passed_on_as_it_was_said() {
    let mut lines = lines();
    lines.truncate(2);
    let text = "limit must be from 3 to 65536, not 0";
    lines.push(line(2, Record::Failure(Failure { text })));
    assert_eq!(receive(&lines).unwrap_err().to_string(), text);
}

#[test]
fn silence_is_told_with_the_last_words() {
    assert_eq!(receive(&[]).unwrap_err().to_string(), "received no record");
    let panic = b"Kernel panic - not syncing\x1b[0m\n".to_vec();
    assert_eq!(
        receive(&[panic]).unwrap_err().to_string(),
        "received no record; last output: Kernel panic - not syncing[0m"
    );
}

#[test]
fn heads_that_do_not_match_their_lists_are_a_contradiction() {
    type Change = fn(&mut Set<'_>);
    let changes: [(Change, &str); 4] = [
        (|set| set.n = 4, "4 samples were to be counted, 3 are"),
        (|set| set.uncounted = 4, "-1 samples were to be counted"),
        (|set| set.kept = 2, "2 samples were to be listed, 1 are"),
        (|set| set.parts = 2, "not in ascending order"),
    ];
    for (change, expected) in changes {
        let mut lists = delayed();
        change(&mut lists.set);
        let error = receive(&instance(&[lists], &[])).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let stray = Record::Exceeded(Exceeded {
        set: 1,
        index: 0,
        value: 0,
    });
    let error = receive(&instance(&[delayed()], &[stray])).unwrap_err();
    assert!(error.to_string().contains("no set 1"), "{error}");
}

const PERIOD: u64 = 100;
const PART: u64 = 1_000;

/// Folds samples of (index, value) as measured code does that counts in parts of ten samples.
fn folded(number: u32, rows: &[(u64, u64)], parts: u64, room: Room) -> Lists {
    let set = Set {
        number,
        measure: "lag",
        labels: "thread=0",
        unit: Unit::Ns,
        first: 7_000,
        period: PERIOD,
        threshold: 500,
        bin: 333,
        ..Set::default()
    };
    let begins: Vec<u64> = (0..parts).map(|part| part * PART).collect();
    let samples = rows
        .iter()
        .map(|&(index, value)| (index, index * PERIOD, value));
    Lists::fold(set, &begins, samples, Room { raw: 5, ..room })
}

fn phase(due: u64, began: u64) -> Phase {
    Phase { due, began }
}

fn labels_of(record: &model::Record) -> Vec<String> {
    let sets = record.sets.iter();
    sets.map(|head| head.labels.to_string()).collect()
}

/// Makes rows for rising indices without some, and phases of whole parts that begin some parts
/// late.
fn measured() -> impl Strategy<Value = (Vec<(u64, u64)>, u64, Vec<Phase>)> {
    let rows = vec((1_u64..4, 0_u64..2_000), 1..200);
    let phases = vec((1_u64..5, 0_u64..5), 1..6);
    (rows, phases).prop_map(|(rows, lengths)| {
        let mut next = 0;
        let rows = rows.into_iter().map(|(step, value)| {
            next += step;
            (next - 1, value)
        });
        let rows: Vec<(u64, u64)> = rows.collect();
        let mut due = 0;
        let phases = lengths.into_iter().map(|(parts, late)| {
            let found = phase(due, due + late.min(parts) * PART);
            due += parts * PART;
            found
        });
        (rows, next * PERIOD / PART + 2, phases.collect())
    })
}

proptest! {
    #[test]
    fn what_is_divided_adds_up_to_the_whole(
        (rows, parts, phases) in measured(),
        values in prop_oneof![Just(usize::MAX), 0_usize..50],
        events in 0_usize..20,
    ) {
        let room = Room { values, events, ..Room::ENOUGH };
        let set = folded(0, &rows, parts, room);
        let (whole, of_whole) = divided(std::slice::from_ref(&set), &[], &[]);
        let (record, samples) = divided(&[set], &[], &phases);
        let all: [fn(&SetHead) -> u64; 8] = [
            |h| h.n,
            |h| h.sum,
            |h| h.seen,
            |h| h.kept,
            |h| h.unkept_sum,
            |h| h.uncounted,
            |h| h.uncounted_sum,
            |h| h.raw,
        ];
        for (place, of) in all.into_iter().enumerate() {
            let sum: u64 = record.sets.iter().map(of).sum();
            prop_assert_eq!(sum, of(&whole.sets[0]), "figure {}", place);
        }
        let longest = record.sets.iter().map(|head| head.max).max();
        prop_assert_eq!(longest, Some(whole.sets[0].max));
        let mut events: Vec<Event> = samples.sets.iter().flat_map(|set| set.events.clone()).collect();
        events.sort_by_key(|event| event.index);
        prop_assert_eq!(&events, &of_whole.sets[0].events);
        let bins: u64 = samples.sets.iter().flat_map(|set| &set.envelope).map(|bin| bin.n).sum();
        prop_assert_eq!(bins, whole.sets[0].n);
    }

    #[test]
    fn every_sample_is_in_the_phase_in_which_it_was_due((rows, parts, phases) in measured()) {
        let (record, samples) = divided(&[folded(0, &rows, parts, Room::ENOUGH)], &[], &phases);
        for (head, set) in record.sets.iter().zip(&samples.sets) {
            let number = head.labels.number("phase").unwrap() as usize;
            let own = phases[number];
            let end = phases.get(number + 1).map_or(u64::MAX, |next| next.due);
            let (from, to) = match head.labels.get("between") {
                Some(_) => (own.due, own.began),
                None => (own.began, end),
            };
            let inside = |index: u64| (from..to).contains(&(index * PERIOD));
            let due: Vec<u64> = rows.iter().filter(|row| inside(row.0)).map(|row| row.1).collect();
            prop_assert_eq!(head.n, due.len() as u64);
            prop_assert_eq!(head.sum, due.iter().sum::<u64>());
            prop_assert_eq!(head.min, due.iter().copied().min().unwrap_or(0));
            prop_assert_eq!(head.max, due.iter().copied().max().unwrap_or(0));
            prop_assert!(set.events.iter().chain(&set.raw).all(|event| inside(event.index)));
            prop_assert_eq!((head.unkept_max, head.unkept_sum), (0, 0));
        }
    }
}

#[test]
fn a_phase_whose_load_began_late_has_what_was_before_apart() {
    let rows: Vec<(u64, u64)> = (0..40).map(|index| (index, index)).collect();
    let phases = [phase(0, 0), phase(2_000, 3_000)];
    let (record, _) = divided(&[folded(0, &rows, 4, Room::ENOUGH)], &[], &phases);
    let expected = [
        "phase=0 thread=0",
        "phase=1 thread=0",
        "between=yes phase=1 thread=0",
    ];
    assert_eq!(labels_of(&record), expected);
    let n: Vec<u64> = record.sets.iter().map(|head| head.n).collect();
    assert_eq!(n, [20, 10, 10]);
    assert_eq!((record.sets[1].min, record.sets[2].max), (30, 29));
}

#[test]
fn sets_stay_whole_without_parts_or_phases() {
    let rows = [(0, 5), (12, 5)];
    for (parts, phases) in [(2, &[][..]), (0, &[phase(0, 0), phase(500, 500)])] {
        let (record, samples) = divided(&[folded(0, &rows, parts, Room::ENOUGH)], &[], phases);
        assert_eq!(labels_of(&record), ["thread=0"]);
        assert_eq!(samples.sets[0].counts, [Count { value: 5, count: 2 }]);
    }
}

#[test]
fn figures_that_no_measurement_has_are_refused() {
    let refused = |set: Lists, more: &[Record<'_>]| match receive(&instance(&[set], more)) {
        Err(Incomplete::OutOfBounds { what }) => what,
        other => panic!("{other:?}"),
    };
    let frequency = |hz| {
        Record::Frequency(record::Frequency {
            source: record::FrequencySource::KernelClock,
            hz,
            uncertainty_ppm: None,
            detail: "",
        })
    };
    for hz in [0.0, 5e-324, -1e9, 1e300] {
        let what = refused(delayed(), &[frequency(hz)]);
        assert!(what.contains("a frequency in Hz"), "{what}");
    }
    let long = Set {
        measure: "duration",
        threshold: 3_000,
        ..Set::default()
    };
    let long = Lists::fold(long, &[], [(0, 0, 1 << 63)], Room::ENOUGH);
    assert!(refused(long, &[]).contains("value of 9223372036854775808"));
    let trace = |value, events| {
        Record::Trace(Trace {
            place: 0,
            set: 0,
            index: 1,
            value,
            greatest: value,
            samples: 1,
            tid: 1,
            events,
            complete: true,
        })
    };
    assert!(refused(delayed(), &[trace(u64::MAX, 0)]).contains("a value of"));
    let mut packer = Packer::default();
    for at in [7, 5] {
        assert!(packer.push([0, zigzag(at), Kind::TimerEntry.number(), 236, 0]));
    }
    let rows = packer.packed();
    let events = Record::TraceEvents(List { rows });
    let what = refused(delayed(), &[trace(5_000, 2), events]);
    assert!(what.contains("around sample 1 are out of order"), "{what}");
}

#[test]
fn what_exceeded_the_limit_or_was_traced_goes_with_its_sample() {
    let rows: Vec<(u64, u64)> = (0..20).map(|index| (index, 600 + index)).collect();
    // The later half of the second set is not counted.
    let room = Room {
        values: 10,
        events: 0,
        ..Room::ENOUGH
    };
    let sets = [folded(0, &rows, 2, Room::ENOUGH), folded(1, &rows, 2, room)];
    let samples = [(0, 3), (0, 13), (1, 3), (1, 13)];
    let more = (0..).zip(samples).flat_map(|(place, (set, index))| {
        let value = 600 + index;
        let trace = Trace {
            place,
            set,
            index,
            value,
            greatest: value,
            samples: 1,
            tid: 1,
            events: 0,
            complete: true,
        };
        [
            Record::Exceeded(Exceeded { set, index, value }),
            Record::Trace(trace),
        ]
    });
    // The load of the second phase never began.
    let phases = [phase(0, 0), phase(1_000, 2_000)];
    let (record, _) = divided(&sets, &more.collect::<Vec<_>>(), &phases);
    let expected = [
        "phase=0 thread=0",
        "phase=1 thread=0",
        "between=yes phase=1 thread=0",
        "phase=0 thread=0",
        "phase=1 thread=0",
        "between=yes phase=1 thread=0",
        "phase=unknown thread=0",
    ];
    assert_eq!(labels_of(&record), expected);
    let exceeded: Vec<u32> = record.exceeded.iter().map(|found| found.set).collect();
    let traced: Vec<u32> = record.traces.iter().map(|trace| trace.set).collect();
    assert_eq!(exceeded, traced);
    assert_eq!(exceeded, [0, 2, 3, 5]);
    let lost = &record.sets[6];
    let expected = (10, 619, 10, 619);
    assert_eq!((lost.n, lost.max, lost.seen, lost.unkept_max), expected);
}

#[test]
fn nothing_that_an_instance_says_begins_a_line_or_is_obeyed() {
    let text = "cold\nerror: all is lost\u{1b}[2J";
    let shown = "cold\\nerror: all is lost\\u001b[2J";
    let received = receive(&instance(&[], &[Record::Notice(Notice { text })])).unwrap();
    assert_eq!(received.notices, [shown]);
    let lines = instance(&[], &[Record::Failure(Failure { text })]);
    assert_eq!(receive(&lines).unwrap_err().to_string(), shown);
}

/// Sends records of one kind until the receiver has enough; says what it says then, and how much
/// was sent.
fn flood(mut record: impl FnMut(u64, &mut dyn FnMut(&Record<'_>))) -> (String, usize) {
    let mut encoder = Encoder::default();
    let mut receiver = Receiver::default();
    let mut sent = 0;
    let hello = instance(&[], &[]).swap_remove(0);
    receiver.line(&hello);
    encoder
        .encode(&Record::Notice(Notice { text: "" }))
        .unwrap();
    for number in 0..2_000_000 {
        record(number, &mut |record| {
            let line = encoder.encode(record).unwrap();
            sent += line.len();
            receiver.line(line);
        });
        if let Some(why) = receiver.too_much() {
            assert!(receiver.notices.is_empty() && receiver.sets.0.is_empty());
            assert_eq!(receiver.finish().unwrap_err().to_string(), why);
            return (why, sent);
        }
    }
    panic!("{sent} bytes were taken");
}

#[test]
fn no_more_sets_are_divided_than_a_cell_can_have() {
    let rows: Vec<(u64, u64)> = vec![(0, 600), (15, 600)];
    let sets: Vec<Lists> = (0..1_000)
        .map(|thread| folded(thread, &rows, 2, Room::ENOUGH))
        .collect();
    let phases: Vec<Phase> = (0..100).map(|number| phase(number, number)).collect();
    let received = receive(&instance(&sets, &[])).unwrap();
    let (record, ..) = received.into_record(Agent::default(), Instance::default(), &phases);
    let most = bounds::MOST_SETS;
    assert!(record.sets.len() > most && record.sets.len() <= most + 2 * phases.len());
}

#[test]
fn no_more_is_kept_than_a_plan_can_have() {
    let long = "x".repeat(2_000);
    let most = 50 << 20;
    // Without a limit nothing is above it, and no exit code says so.
    let exceeded = Exceeded {
        set: 0,
        index: 1,
        value: 2,
    };
    let mut receiver = Receiver::of(&Work::default());
    for line in instance(&[], &[Record::Exceeded(exceeded)]) {
        assert_ne!(receiver.line(&line), Seen::Exceeded(exceeded));
    }
    assert_eq!(
        receiver.finish().unwrap_err().to_string(),
        "it sent more than its plan can have: no limit that a value is above"
    );
    // With one, the first are kept: that there were more is no fault.
    let mut receiver = Receiver::of(&Work {
        above: Some(1),
        ..Work::default()
    });
    let head = Set {
        measure: "latency",
        ..Set::default()
    };
    let mut records = vec![Record::Exceeded(exceeded); 20_000];
    records.push(Record::Set(head));
    for line in instance(&[], &records) {
        receiver.line(&line);
    }
    let kept = receiver.finish().unwrap().record.exceeded.len();
    assert_eq!(kept, bounds::MOST_EXCEEDED);
    let (why, _) = flood(|_, send| send(&Record::Notice(Notice { text: "cold" })));
    assert_eq!(why, "it sent more than its plan can have: 1000 remarks");
    let fact = record::Fact {
        name: &long,
        labels: "",
        value: "1",
    };
    let (why, sent) = flood(|_, send| send(&Record::Fact(fact)));
    assert!(
        why.ends_with(": 10000 facts") && sent < most,
        "{why} {sent}"
    );
    let (why, _) = flood(|count, send| {
        send(&Record::Counter(record::Counter {
            name: "a",
            count,
            labels: "",
        }))
    });
    assert!(why.ends_with(": 1000 counters"), "{why}");
    let value = record::Value {
        measure: "live",
        labels: "",
        unit: "1",
        value: 1.0,
    };
    let (why, _) = flood(|_, send| send(&Record::Value(value)));
    assert!(why.ends_with(": 2000 values"), "{why}");
    let set = |number: u64| Set {
        number: number as u32,
        measure: "duration",
        ..Set::default()
    };
    let (why, sent) = flood(|number, send| send(&Record::Set(set(number))));
    assert!(why.ends_with(": 8192 sets") && sent < most, "{why} {sent}");
    let trace = Trace {
        place: 0,
        set: 0,
        index: 0,
        value: 1,
        greatest: 1,
        samples: 1,
        tid: 1,
        events: 0,
        complete: true,
    };
    let (why, _) = flood(|_, send| send(&Record::Trace(trace)));
    assert!(why.ends_with(": 10000 traced samples"), "{why}");
    let (_, sent) = flood(|number, send| {
        if number == 0 {
            send(&Record::Set(set(0)));
        }
        let mut rows = Packer::default();
        while rows.push([0, 0, 1, 1]) {}
        let rows = rows.packed();
        send(&Record::Counts(List { rows }));
    });
    assert!(sent < most);
}
