//! Launchers: they start instances, so that the pacer never waits for one.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use rustix::event::epoll::{self, EventData, EventFlags};
use tare_guard::MountNamespace;
use tare_results::model::Instance;
use tare_targets::instance::{attend, now_ns, set_nonblocking};
use tare_targets::launch::{Calls, Program, Start};

use super::listen::Source;
use super::records::InstanceRecords;
use super::shared::{Alive, Arrival, Shared, lock};

/// Starts what arrives, until there will be no more.
pub(super) fn serve(shared: &Shared<'_>, namespace: Option<&MountNamespace>) {
    let entered = namespace.map_or(Ok(()), MountNamespace::enter);
    shared.raise_priority(1);
    while let Some(arrival) = shared.next() {
        let mut instance = Instance {
            planned_ns: arrival.planned_ns,
            counts: arrival.counts.into(),
            ..Instance::default()
        };
        if shared.is_over.load(Ordering::Relaxed) {
            shared.ended(arrival.slot, instance, Err("it was not started".to_owned()));
            continue;
        }
        instance.started_ns = now_ns();
        match (&entered, &shared.launch.start) {
            (Err(error), _) => {
                let why = format!("cannot enter its mount namespace: {error}");
                instance.exited_ns = now_ns();
                shared.ended(arrival.slot, instance, Err(why));
            }
            (Ok(()), Start::Program(program)) => {
                let program = program(arrival.slot);
                // The preparation of each program is not part of its start.
                instance.started_ns = now_ns();
                if let Err(error) =
                    program.and_then(|program| start(shared, arrival, instance, program))
                {
                    instance.exited_ns = now_ns();
                    let why = format!("it can't be started: {error}");
                    shared.ended(arrival.slot, instance, Err(why));
                }
            }
            (Ok(()), Start::Calls(calls)) => {
                attend_to(shared, arrival, instance, calls.as_ref());
            }
        }
    }
}

fn start(
    shared: &Shared<'_>,
    arrival: Arrival,
    instance: Instance,
    program: Program,
) -> io::Result<()> {
    let started = shared.children.start(&program.exec)?;
    set_nonblocking(started.stdout.as_fd())?;
    set_nonblocking(started.stderr.as_fd())?;
    // It must be there before the listener hears of it.
    let mut slot = lock(&shared.slots[arrival.slot as usize]);
    let alive = slot.insert(Alive {
        instance,
        started,
        channels: program.channels,
        records: InstanceRecords::default(),
        peak_bytes: 0,
    });
    let add = |source: Source| {
        let data = EventData::new_u64(source.key(arrival.slot));
        epoll::add(
            &shared.epoll,
            source.of(&alive.started),
            data,
            EventFlags::IN,
        )
    };
    let added = Source::ALL.into_iter().try_for_each(add);
    if added.is_err() {
        alive.leave(shared);
        // Dropping it kills it.
        *slot = None;
    }
    Ok(added?)
}

/// Attends to an instance of an engine as long as it lives.
fn attend_to(shared: &Shared<'_>, arrival: Arrival, mut instance: Instance, calls: &dyn Calls) {
    let mut records = InstanceRecords::default();
    let ready = &shared.launch.ready;
    let mut notices = Vec::new();
    let ended = calls.start(&mut notices).and_then(|mut body| {
        let mut take = |stream, bytes: &[u8]| records.take(stream, bytes, now_ns(), ready);
        let ended = attend(body.as_mut(), shared.alarm.as_fd(), &mut take)?;
        Ok((ended, body))
    });
    let judged = match ended {
        Ok(((status, at_ns), mut body)) => {
            instance.exited_ns = at_ns;
            let reason = body.reason();
            records.judge(&mut instance, status, reason.as_deref(), shared)
        }
        Err(error) => {
            instance.exited_ns = now_ns();
            Err(error.to_string())
        }
    };
    notices.into_iter().for_each(|notice| shared.notice(notice));
    shared.ended(arrival.slot, instance, judged);
}
