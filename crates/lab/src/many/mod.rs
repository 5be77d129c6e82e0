//! Many instances of a target in one cell, started at absolute times.
//!
//! | thread | task |
//! |---|---|
//! | the pacer | waits for the time of each arrival, the last 50 µs of it spinning, and hands it on or refuses it |
//! | launchers | start instances, so that the pacer never waits for one |
//! | the listener | reads what instances write, stamps it, and reaps them |
//! | the caller | looks after memory, CPU time, limits, the user's wishes and the progress display |
//!
//! The first three come before ordinary threads where the kernel allows it (SCHED_FIFO); what they
//! start is ordinary. Engines are called by the launchers, which then listen themselves.
//!
//! Arrivals don't wait for each other: latencies counted from the planned time hold what a target
//! that falls behind makes those wait that come next (no coordinated omission). The rule by which a
//! cell is saturated is in [`verdict`].

mod files;
mod launch;
mod listen;
mod pace;
mod records;
mod shared;
mod verdict;
mod watch;

use std::thread::{self, Scope};
use std::time::Duration;

use tare_guard::{Guard, Interrupt, MountNamespace};
use tare_results::model::{Arrivals, Arrived, Instance, MOST_INSTANCES, Value};
use tare_targets::Launch;
use tare_targets::instance::Finish;
use tare_targets::launch::Start;

pub(crate) use self::verdict::NOTHING;

use self::files::Files;
use self::shared::Shared;
use crate::stage::Unfinished;

/// How many threads start programs. Each stands still until its program is executed, and so waits
/// for a CPU with it.
const LAUNCHERS: u32 = 64;

/// The most threads that call an engine, and so the most of its instances that may be alive.
const MOST_CALLERS: u32 = 512;

/// The result of a cell's arrivals.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Each arrival, in the order of their times.
    pub(crate) instances: Vec<Instance>,
    pub(crate) arrived: Arrived,
    pub(crate) values: Vec<Value>,
    pub(crate) notices: Vec<String>,
    /// Why none that counts did its work, if so.
    pub(crate) why_none: Option<String>,
    /// How long was measured, if the user asked to end before all was.
    pub(crate) cut_short: Option<Duration>,
}

/// Is called at short intervals, and with the effect of a request to finish.
pub(crate) type Notify<'a> = &'a mut dyn FnMut(Option<Finish>);

/// Starts instances as `arrivals` says, and waits for their end.
///
/// `hz` is the frequency of the TSC, by which a guest's times become this machine's.
///
/// # Errors
///
/// Returns why nothing could be started, or that the user asked to stop at once.
pub(crate) fn run(
    arrivals: &Arrivals,
    launch: &Launch,
    hz: Option<f64>,
    limit: Duration,
    guard: &Guard,
    interrupt: &Interrupt,
    notify: Notify<'_>,
) -> Result<Ran, Unfinished> {
    let children = guard.children(launch.name);
    let children = children.map_err(|error| Unfinished::Failed(error.to_string()))?;
    let namespace = match &*launch.mounts {
        [] => None,
        mounts => {
            let made = MountNamespace::new(mounts);
            let unmade = |error| format!("cannot create a mount namespace: {error}");
            Some(made.map_err(unmade).map_err(Unfinished::Failed)?)
        }
    };
    let (launchers, most_live) = match launch.start {
        Start::Program(_) => (LAUNCHERS, arrivals.most_live),
        // Each is called as long as its instance lives.
        Start::Calls(_) => [arrivals.most_live.min(MOST_CALLERS); 2].into(),
    };
    let _files = Files::for_instances(most_live);
    let shared = Shared::new(arrivals, most_live, launch, &children, hz);
    let shared = shared.map_err(Unfinished::Failed)?;
    let watched = thread::scope(|scope| {
        let shared = &shared;
        let namespace = namespace.as_ref();
        // Whatever happens here: the scope waits for all threads.
        let _ending = Ending(shared);
        let started = (0..launchers)
            .try_for_each(|_| begin(scope, move || launch::serve(shared, namespace)))
            .and_then(|()| begin(scope, || listen::listen(shared)))
            .and_then(|()| begin(scope, || pace::pace(shared, MOST_INSTANCES)));
        if started.is_err() {
            shared.all_have_arrived();
        }
        started.map(|()| watch::watch(shared, limit, interrupt, notify))
    });
    let watched = watched.map_err(Unfinished::Failed)?;
    Ok(shared.ran(watched.ok_or(Unfinished::Stopped)?))
}

/// Lets all threads end when it is dropped.
struct Ending<'a>(&'a Shared<'a>);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn begin<'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() + Send + 'scope,
) -> Result<(), String> {
    let begun = thread::Builder::new().spawn_scoped(scope, work);
    begun.map(drop).map_err(|error| {
        format!(
            "a thread can't be started: {error}; see `ulimit -u`, and pids.max of the control group"
        )
    })
}

#[cfg(test)]
mod tests;
