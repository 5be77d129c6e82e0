//! What events say of each other: who sent an interrupt, how long a softirq waited, where an NMI was.

use std::collections::HashMap;

use tare_wire::trace::Kind;

use super::decode::{Event, Names};

/// The vector of non-maskable interrupts on x86, and their name.
pub const NMI: (u64, &str) = (2, "NMI");

/// The most time from where an interrupt is sent until it is there, in ns: it may wait for a
/// hypervisor.
const ARRIVES_NS: u64 = 1_000_000;

/// How far the clocks of two CPUs may be apart, in ns.
const APART_NS: u64 = 500;

/// An event of [`Kind::Sender`] on any CPU, by CLOCK_MONOTONIC in ns, and the thread that ran.
pub type Sent = (u64, Option<u32>, Event);

/// Adds to the events of a CPU, which are in the order of time, what those before and those of other
/// CPUs say of them: after an interrupt from another CPU its sender, after a softirq's entry how long
/// it had waited, before the end of an NMI its beginning. `names` has those of vectors.
pub fn joined(
    cpu: u32,
    events: Vec<(u64, Event)>,
    sent: &[Sent],
    names: &Names,
) -> Vec<(u64, Event)> {
    // None if other CPUs do not send it.
    let is_call = |vector| match names.get(&("vector", vector))?.as_str() {
        "reschedule" => Some(false),
        "call function" | "call function single" => Some(true),
        _ => None,
    };
    let to_us = |(.., event): &&Sent| event.stack.contains(&cpu.into());
    let mut sent: Vec<&Sent> = sent.iter().filter(to_us).collect();
    sent.sort_by_key(|(at_ns, ..)| *at_ns);
    // Those for the scheduler, and those for a function to be called.
    let lane = |is_call| {
        sent.iter()
            .filter(move |(.., event)| (event.a == 1) == is_call)
    };
    let mut lanes = [false, true].map(|is_call| lane(is_call).peekable());
    let mut raised: HashMap<u64, u64> = HashMap::new();
    let mut all = Vec::with_capacity(events.len());
    for (time, mut event) in events {
        match event.kind {
            Kind::Waited => {
                raised.entry(event.a).or_insert(time);
            }
            Kind::SoftirqEntry => {
                let waited = raised.remove(&event.a).map(|raised| time - raised);
                all.push((time, event));
                all.extend(waited.map(|ns| (time, Event::new(Kind::Waited, ns))));
            }
            Kind::VectorEntry => {
                let lane = is_call(event.a).map(|is_call| &mut lanes[usize::from(is_call)]);
                all.push((time, event));
                // One interrupt may stand for several that were sent: the first one caused it.
                let until = time + APART_NS;
                let arrived = lane.into_iter().flat_map(|lane| {
                    std::iter::from_fn(|| lane.next_if(|(at_ns, ..)| *at_ns <= until))
                });
                let is_recent = |(at_ns, ..): &&&Sent| at_ns + ARRIVES_NS > time;
                let first =
                    arrived.fold(None, |first, sent| first.or(Some(sent).filter(is_recent)));
                let sender = first.and_then(|(_, tid, _)| *tid);
                all.extend(sender.map(|tid| (time, Event::new(Kind::Sender, tid.into()))));
            }
            Kind::VectorExit if event.a == NMI.0 => {
                let began = time.saturating_sub(std::mem::take(&mut event.b));
                all.push((began, Event::new(Kind::VectorEntry, NMI.0)));
                all.push((time, event));
            }
            _ => all.push((time, event)),
        }
    }
    all.sort_by_key(|(time, _)| *time);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: Kind, a: u64, b: u64) -> Event {
        Event {
            b,
            ..Event::new(kind, a)
        }
    }

    fn sent(at_ns: u64, tid: u32, is_call: bool, cpus: &[u64]) -> Sent {
        let event = Event {
            stack: cpus.to_vec(),
            ..Event::new(Kind::Sender, is_call.into())
        };
        (at_ns, Some(tid), event)
    }

    fn names() -> Names {
        let names = [(251, "call function"), (253, "reschedule")];
        let names = names.map(|(vector, name)| (("vector", vector), name.to_owned()));
        names.into()
    }

    #[test]
    fn senders_waits_and_beginnings_are_joined() {
        let events = vec![
            (1_000, event(Kind::Waited, 3, 0)),
            (1_500, event(Kind::Waited, 3, 0)),
            (4_000, event(Kind::SoftirqEntry, 3, 0)),
            (5_000, event(Kind::VectorEntry, 253, 0)),
            (9_000, event(Kind::VectorEntry, 251, 0)),
            (9_500, event(Kind::VectorEntry, 251, 0)),
            (9_900, event(Kind::VectorExit, NMI.0, 700)),
        ];
        let all = [
            sent(7_500, 6, true, &[1, 3]),
            sent(8_000, 7, true, &[0, 2]),
            sent(8_500, 8, true, &[2]),
            sent(4_500, 9, false, &[2]),
        ];
        let joined = joined(2, events, &all, &names()).into_iter();
        let rows = joined.map(|(time, event)| (time, event.kind, event.a, event.b));
        assert_eq!(
            rows.collect::<Vec<_>>(),
            [
                (4_000, Kind::SoftirqEntry, 3, 0),
                (4_000, Kind::Waited, 3_000, 0),
                (5_000, Kind::VectorEntry, 253, 0),
                (5_000, Kind::Sender, 9, 0),
                (9_000, Kind::VectorEntry, 251, 0),
                (9_000, Kind::Sender, 7, 0),
                // Its interrupt came with the one before.
                (9_200, Kind::VectorEntry, NMI.0, 0),
                (9_500, Kind::VectorEntry, 251, 0),
                (9_900, Kind::VectorExit, NMI.0, 0),
            ]
        );
    }

    #[test]
    fn what_was_sent_long_before_is_of_another_interrupt() {
        let events = vec![(5_000_000, event(Kind::VectorEntry, 253, 0))];
        let sent = [sent(1_000, 7, false, &[2])];
        assert_eq!(joined(2, events, &sent, &names()).len(), 1);
    }
}
