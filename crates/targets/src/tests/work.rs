//! Work written as the agent takes it.

use tare_results::work::{RealTime, Work};
use tare_wire::cpus::Cpus;
use tare_wire::scheduling::Policy;

/// Makes the work of a text of the form that [`Work`] is written in, with buffers of less than a
/// MiB.
pub(crate) fn work(text: &str) -> Work {
    let mut work = Work {
        buffer_bytes: 1,
        ..Work::new("", "")
    };
    let mut own = Vec::new();
    for word in text.split_whitespace() {
        match word.split_once('=').unwrap() {
            ("workload", id) => work.id = id.to_owned(),
            ("cpu", cpus) => work.cpus = Cpus::parse(cpus),
            ("main", cpus) => work.main = Cpus::parse(cpus),
            (key, value) => {
                match key {
                    "threads" => work.threads = value.parse().unwrap(),
                    "policy" => work.rights.real_time = real_time(value),
                    _ => {}
                }
                own.push(word);
            }
        }
    }
    work.words = own.join(" ");
    work
}

fn real_time(policy: &str) -> Option<RealTime> {
    let policy = Policy::parse(policy).unwrap();
    (policy != Policy::Other).then_some(RealTime {
        policy,
        priority: 95,
    })
}
