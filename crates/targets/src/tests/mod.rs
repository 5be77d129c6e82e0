//! What tests look at in the records of an instance.

use tare_results::model::{Agent, Instance, Labels, Record};
use tare_results::receive::Received;

/// Takes the records as they were reported.
pub fn record(received: Received) -> Record {
    let (record, ..) = received.into_record(Agent::default(), Instance::default(), &[]);
    record
}

/// Returns what the work of a batch yielded, and the steps of one repetition.
pub fn work(record: &Record) -> (Option<f64>, Option<f64>) {
    let value = |measure| record.value(measure, &Labels::default());
    (value("result"), value("work"))
}

/// Returns the activations of each thread that measured its wake-ups, woken and missed, and a fact of it.
pub fn activations<'a>(record: &'a Record, fact: &str) -> Vec<(u64, Option<&'a str>)> {
    let sets = record.sets.iter();
    let threads = sets.map(|head| {
        let missed = record.value("missed", &head.labels).unwrap() as u64;
        let told = record.programs[0].fact_of(fact, &head.labels);
        (head.n + missed, told)
    });
    threads.collect()
}
