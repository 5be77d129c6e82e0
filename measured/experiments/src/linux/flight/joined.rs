//! What events say of each other: who sent an interrupt, how long a softirq waited, where an NMI was.

use std::collections::HashMap;

use tare_wire::trace::Kind;

use super::decode::Event;

/// The vector of non-maskable interrupts on x86, and their name.
pub const NMI: (u64, &str) = (2, "NMI");

/// The most time from where an interrupt is sent until it is there, in ns: it may wait for a
/// hypervisor.
const ARRIVES_NS: u64 = 1_000_000;

/// How far the clocks of two CPUs may be apart, in ns.
const APART_NS: u64 = 500;

/// An interrupt that another CPU sent to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When, by CLOCK_MONOTONIC in ns.
    pub at_ns: u64,
    /// The thread that sent it.
    pub tid: u32,
    /// Whether it is for a function to be called, and not for the scheduler.
    pub is_call: bool,
}

/// Adds to the events of a CPU, which are in the order of time, what those before and those of other
/// CPUs say of them: after an interrupt from another CPU its sender, after a softirq's entry how long
/// it had waited, before the end of an NMI its beginning. `is_call` says of the number of a vector
/// whether it calls functions, or None if other CPUs do not send it.
pub fn joined(
    events: Vec<(u64, Event)>,
    mut sent: Vec<Sent>,
    is_call: impl Fn(u64) -> Option<bool>,
) -> Vec<(u64, Event)> {
    sent.sort_by_key(|sent| sent.at_ns);
    let lane = |is_call| sent.iter().filter(move |sent| sent.is_call == is_call);
    let mut lanes = [false, true].map(|is_call| lane(is_call).peekable());
    let more = |kind, a| Event {
        at_ns: 0,
        kind,
        a,
        b: 0,
        stack: Vec::new(),
    };
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
                all.extend(waited.map(|ns| (time, more(Kind::Waited, ns))));
            }
            Kind::VectorEntry => {
                let lane = is_call(event.a).map(|is_call| &mut lanes[usize::from(is_call)]);
                all.push((time, event));
                // One interrupt may stand for several that were sent: the first one caused it.
                let until = time + APART_NS;
                let arrived = lane.into_iter().flat_map(|lane| {
                    std::iter::from_fn(|| lane.next_if(|sent| sent.at_ns <= until))
                });
                let is_recent = |sent: &&Sent| sent.at_ns + ARRIVES_NS > time;
                let first =
                    arrived.fold(None, |first, sent| first.or(Some(sent).filter(is_recent)));
                all.extend(first.map(|sent| (time, more(Kind::Sender, sent.tid.into()))));
            }
            Kind::VectorExit if event.a == NMI.0 => {
                let began = time.saturating_sub(std::mem::take(&mut event.b));
                all.push((began, more(Kind::VectorEntry, NMI.0)));
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
        let stack = Vec::new();
        let at_ns = 0;
        Event {
            at_ns,
            kind,
            a,
            b,
            stack,
        }
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
        let sent = |at_ns, tid, is_call| Sent {
            at_ns,
            tid,
            is_call,
        };
        let all = [
            sent(8_000, 7, true),
            sent(8_500, 8, true),
            sent(4_500, 9, false),
        ];
        let is_call = |vector| (vector != NMI.0).then_some(vector == 251);
        let joined = joined(events, all.to_vec(), is_call).into_iter();
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
        let (at_ns, tid, is_call) = (1_000, 7, false);
        let sent = vec![Sent {
            at_ns,
            tid,
            is_call,
        }];
        assert_eq!(joined(events, sent, |_| Some(false)).len(), 1);
    }
}
