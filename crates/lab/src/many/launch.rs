//! Launchers: they start instances, so that the pacer never waits for one.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use rustix::event::epoll::{self, EventData, EventFlags};
use tare_docker::Stream;
use tare_guard::MountNamespace;
use tare_results::model::Instance;
use tare_targets::instance::{now_ns, set_nonblocking};
use tare_targets::starter::{Calls, Heard, Program, Start};

use super::ears::Ears;
use super::field::{Alive, Arrival, Field, lock};
use super::listen::Source;

/// Starts what arrives, until there will be no more.
pub(super) fn serve(field: &Field<'_>, namespace: Option<&MountNamespace>) {
    let entered = namespace.map_or(Ok(()), MountNamespace::enter);
    field.hurry(1);
    while let Some(arrival) = field.next() {
        let mut instance = Instance {
            planned_ns: arrival.planned_ns,
            counts: arrival.counts.into(),
            ..Instance::default()
        };
        if field.is_over.load(Ordering::Relaxed) {
            field.ended(arrival.slot, instance, Err("it was not started".to_owned()));
            continue;
        }
        instance.started_ns = now_ns();
        match (&entered, &field.starter.start) {
            (Err(error), _) => {
                let why = format!("mounts of its own can't be had: {error}");
                instance.exited_ns = now_ns();
                field.ended(arrival.slot, instance, Err(why));
            }
            (Ok(()), Start::Program(program)) => {
                let program = program(arrival.slot);
                // What is prepared for each is not part of its start.
                instance.started_ns = now_ns();
                if let Err(error) =
                    program.and_then(|program| start(field, arrival, instance, program))
                {
                    instance.exited_ns = now_ns();
                    let why = format!("it can't be started: {error}");
                    field.ended(arrival.slot, instance, Err(why));
                }
            }
            (Ok(()), Start::Calls(calls)) => call(field, arrival, instance, calls.as_ref()),
        }
    }
}

fn start(
    field: &Field<'_>,
    arrival: Arrival,
    instance: Instance,
    program: Program,
) -> io::Result<()> {
    let started = field.children.start(&program.exec)?;
    set_nonblocking(started.stdout.as_fd())?;
    set_nonblocking(started.stderr.as_fd())?;
    // It must be there before the listener hears of it.
    let mut slot = lock(&field.slots[arrival.slot as usize]);
    let alive = slot.insert(Alive {
        instance,
        started,
        aside: program.aside,
        ears: Ears::default(),
        peak_bytes: 0,
    });
    let add = |source: Source| {
        let data = EventData::new_u64(source.key(arrival.slot));
        epoll::add(
            &field.epoll,
            source.of(&alive.started),
            data,
            EventFlags::IN,
        )
    };
    let added = Source::ALL.into_iter().try_for_each(add);
    if added.is_err() {
        alive.leave(field);
        // Dropping it kills it.
        *slot = None;
    }
    Ok(added?)
}

/// Calls an engine as long as the instance lives.
fn call(field: &Field<'_>, arrival: Arrival, mut instance: Instance, calls: &dyn Calls) {
    let mut ears = Ears::default();
    let mut ended = None;
    let mut hear = |heard: Heard<'_>| {
        let at_ns = now_ns();
        match heard {
            Heard::Output(Stream::Output, bytes) => {
                ears.output(bytes, at_ns, &field.starter.ready);
            }
            Heard::Output(Stream::Error, bytes) => ears.error(bytes),
            Heard::Ended(status) => ended = Some((status, at_ns)),
        }
    };
    let ran = calls.run(&mut hear, &field.is_over);
    let how = match (ran, ended) {
        (Ok(()), Some((status, at_ns))) => {
            instance.exited_ns = at_ns;
            ears.judge(&mut instance, status, "", field)
        }
        (Ok(()), None) => Err("the engine did not tell its end".to_owned()),
        (Err(why), _) => Err(why),
    };
    if instance.exited_ns == 0 {
        instance.exited_ns = now_ns();
    }
    field.ended(arrival.slot, instance, how);
}
