//! The search for the highest rate that a server holds, as Lencse (2020) applies RFC 8219 to name
//! servers: by bisection, with 99.99 % answered within a limit.

use super::client::{Client, Counted};
use super::{ThreadsError, unreachable, wait_for_server};
use crate::linux::clock::now_ns;
use crate::output::{Output, text};
use crate::platform::Platform;
use crate::service::{GOODPUT, OFFERED, Plan, TIMES};
use crate::session::Stop;

/// The rate that is offered first, in requests per second.
const FIRST: u64 = 1_000;
/// The lowest one that is offered, in requests per second.
const LEAST: u64 = 10;
/// The part of a rate that is the greatest distance from the one found to one that was not held.
const STEP: u64 = 32;
/// How many requests may be lost: one in this many.
const LOST: u64 = 10_000;
/// How many requests the client may be behind with in a rate that a server can be said not to hold:
/// one in this many.
const LATE: u64 = 100;

impl Counted {
    /// Returns whether the client was the reason why requests were lost.
    fn is_limited(&self, requests: u64) -> bool {
        self.behind > requests / LATE || self.dropped > 0
    }
}

/// A rate that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Answers per second: a server may hold a higher rate for a time, with requests that wait until
    /// the limit.
    pub rate: u64,
    /// Whether it was the client that could not do more.
    pub is_client_s: bool,
}

/// Searches the highest rate of which enough is answered: it doubles the rate until one is not
/// held, and halves the distance between the two.
pub fn search(plan: &Plan, sent: &mut [u64], answered: &mut [u64]) -> Result<Found, ThreadsError> {
    let found = highest(most(plan), |rate| {
        let (plan, counted) = offer(plan, rate, sent, answered)?;
        Ok::<_, ThreadsError>((counted, plan.requests))
    })?;
    found.ok_or_else(|| Stop::Place(NOT_HELD).into())
}

/// Offers a rate some times, as far as there is room for its requests, and writes how much of each
/// was answered.
pub fn overload(
    plan: &Plan,
    found: Found,
    sent: &mut [u64],
    answered: &mut [u64],
    output: &mut Output<'_, impl Platform>,
) -> Result<(), ThreadsError> {
    for (times, [part, whole]) in TIMES {
        let rate = (found.rate * part / whole).max(1);
        if rate > most(plan) {
            break;
        }
        let (plan, counted) = offer(plan, rate, sent, answered)?;
        let planned_ns = plan.interval_ns.unwrap_or_default() * plan.requests;
        let per_second = |number: u64, ns: u64| (number as f64 * 1e9 / ns as f64) as u64;
        let labels = text(&format_args!("times={times}"));
        output.values(
            &labels,
            &[
                (OFFERED, "", per_second(plan.requests, planned_ns)),
                (
                    GOODPUT,
                    "",
                    per_second(counted.answered, counted.window_ns.max(planned_ns)),
                ),
                ("limited", "", u64::from(counted.is_limited(plan.requests))),
            ],
        )?;
    }
    Ok(())
}

/// Returns the highest rate for which a plan has room.
fn most(plan: &Plan) -> u64 {
    let seconds = plan.highest_ns.unwrap_or_default() as f64 / 1e9;
    (plan.requests as f64 / seconds) as u64
}

/// Offers a rate. Returns its plan and what was counted.
fn offer(
    plan: &Plan,
    rate: u64,
    sent: &mut [u64],
    answered: &mut [u64],
) -> Result<(Plan, Counted), ThreadsError> {
    let plan = plan.at(rate);
    // Requests that an overload left in the server would delay the next rate's.
    wait_for_server(&plan)?;
    let mut client = Client::new(&plan, sent, answered).map_err(unreachable)?;
    let counted = client.run(now_ns());
    Ok((plan, counted))
}

const NOT_HELD: &str = "the server did not answer 99.99 % of 10 requests per second";

/// Searches up to a rate. `offer` offers one, and returns what was counted of how many requests.
fn highest<E>(
    most: u64,
    mut offer: impl FnMut(u64) -> Result<(Counted, u64), E>,
) -> Result<Option<Found>, E> {
    let (mut held, mut failed, mut is_client_s) = (0, None, false);
    let mut answers = 0;
    let mut rate = FIRST.min(most);
    loop {
        let (counted, requests) = offer(rate)?;
        if requests - counted.answered <= requests / LOST {
            held = rate;
            answers = (counted.answered as f64 * 1e9 / counted.window_ns as f64) as u64;
        } else {
            failed = Some(rate);
            is_client_s = counted.is_limited(requests);
        }
        rate = match failed {
            None if held == most => most,
            None => (held * 2).min(most),
            Some(LEAST) => return Ok(None),
            Some(failed) if held == 0 => (failed / 2).max(LEAST),
            Some(failed) => held + (failed - held) / 2,
        };
        if rate == held || failed.is_some_and(|failed| failed - held <= held / STEP) {
            is_client_s |= failed.is_none();
            return Ok(Some(Found {
                rate: held.min(answers),
                is_client_s,
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches on a server that answers `capacity` requests per second, each rate offered for a
    /// second, and `queue` of those that wait at its end.
    fn search_of((capacity, queue): (u64, u64), most: u64, is_behind: bool) -> Option<Found> {
        let offer = |rate: u64| {
            let answered = rate.min(capacity + queue);
            let counted = Counted {
                answered,
                behind: if is_behind { rate } else { 0 },
                window_ns: 1_000_000_000 * answered.max(capacity) / capacity,
                ..Counted::default()
            };
            Ok::<_, ()>((counted, rate))
        };
        highest(most, offer).unwrap()
    }

    #[test]
    fn the_highest_rate_is_found_to_a_thirty_second() {
        for capacity in [11, 999, 1_000, 4_321, 65_537, 400_000] {
            for queue in [0, capacity] {
                let found = search_of((capacity, queue), 1_000_000, false).unwrap();
                let (least, most) = (capacity - capacity / STEP - 1, capacity);
                assert!(
                    (least..=most).contains(&found.rate),
                    "{capacity}: {found:?}"
                );
                assert!(!found.is_client_s);
            }
        }
        assert_eq!(search_of((9, 0), 1_000_000, false), None);
    }

    #[test]
    fn a_rate_that_the_client_did_not_offer_is_the_client_s() {
        assert!(search_of((5_000, 0), 1_000_000, true).unwrap().is_client_s);
        let all = search_of((5_000, 0), 4_000, false);
        let wanted = Found {
            rate: 4_000,
            is_client_s: true,
        };
        assert_eq!(all, Some(wanted));
    }
}
