//! What one instance writes: its records, and when it is ready.

use std::process::ExitStatus;

use tare_docker::Stream;
use tare_results::model::{Instance, Labels, Value};
use tare_results::receive::{Incomplete, Receiver, StartedUp};
use tare_targets::launch::Ready;
use tare_targets::output::InstanceOutput;

use super::shared::Shared;

/// The records received from one instance.
#[derive(Debug)]
pub(super) struct InstanceRecords {
    output: InstanceOutput,
    receiver: Receiver,
}

impl Default for InstanceRecords {
    fn default() -> Self {
        Self {
            output: InstanceOutput::default(),
            receiver: Receiver::of_started(),
        }
    }
}

impl InstanceRecords {
    /// Takes what it has written.
    pub(super) fn take(&mut self, stream: Stream, bytes: &[u8], at_ns: u64, ready: &Ready) {
        let receiver = &mut self.receiver;
        self.output.take(stream, bytes, at_ns, ready, |line, _| {
            if let (Ready::Record, Stream::Output) = (ready, stream) {
                receiver.line(line);
            }
        });
    }

    /// Takes the end of its standard output.
    pub(super) fn close(&mut self, at_ns: u64) {
        self.output.close(at_ns);
    }

    /// Returns whether it is ready.
    pub(super) fn is_ready(&self) -> bool {
        self.output.ready_ns() > 0
    }

    /// Decides what became of an instance that has ended, and fills in what it reported.
    ///
    /// # Errors
    ///
    /// Returns why it failed.
    pub(super) fn judge(
        mut self,
        instance: &mut Instance,
        status: ExitStatus,
        reason: Option<&str>,
        shared: &Shared<'_>,
    ) -> Result<(), String> {
        instance.ready_ns = self.output.ready_ns();
        let judged = shared
            .launch
            .judge(status, &mut self.output, reason, instance.exited_ns);
        if !matches!(shared.launch.ready, Ready::Record) {
            return judged;
        }
        match (judged, self.receiver.started()) {
            (Ok(()), Ok(started)) => {
                fill(instance, &started, shared);
                Ok(())
            }
            // The measured code knows best why it gave up.
            (_, Err(Incomplete::Failed { text })) => Err(text),
            (Err(why), _) => Err(why),
            (Ok(()), Err(incomplete)) => Err(incomplete.to_string()),
        }
    }
}

/// Fills in what an instance reported of itself.
fn fill(instance: &mut Instance, told: &StartedUp, shared: &Shared<'_>) {
    let none = Labels::default();
    let value = |measure: &str, unit: &str| {
        let mut values = told.values.iter();
        let is_asked =
            |value: &&Value| value.measure == measure && value.unit == unit && value.labels == none;
        values.find(is_asked).map(|value| value.value as u64)
    };
    instance.own_ns = value("cpu", "ns").unwrap_or(0);
    if !shared.launch.waits_for_own {
        instance.user_ns += instance.own_ns;
    }
    let own = value("peak", "bytes").unwrap_or(0);
    instance.peak_bytes = instance.peak_bytes.max(own);
    let clock_ns = value("main", "ns");
    if shared.launch.shares_clock {
        instance.main_ns = clock_ns.unwrap_or(0);
        return;
    }
    // A guest's TSC runs as this machine's: what lies between two of its readings is known.
    let Some(hz) = shared.hz.filter(|hz| *hz > 0.0) else {
        return;
    };
    let before_ready = |tsc: u64| {
        let cycles = told.ready_tsc.saturating_sub(tsc);
        let ns = (cycles as f64 / hz * 1e9) as u64;
        instance.ready_ns.checked_sub(ns)
    };
    let own = |done: u64, entry: u64| (done.saturating_sub(entry) as f64 / hz * 1e9) as u64;
    // An instance without its own CPU time had the CPU from its entry on, if no other one may have
    // had it.
    if let (0, None, Some(done), Some(entry)) = (
        instance.own_ns,
        shared.arrivals.interval_ns,
        value("done", "cycles"),
        value("entry", "cycles"),
    ) {
        instance.own_ns = own(done, entry);
    }
    let is_since_start = |at: &u64| *at >= instance.started_ns;
    let main = value("main", "cycles").and_then(before_ready);
    let entry = value("entry", "cycles").and_then(before_ready);
    let kernel = entry.or_else(|| main?.checked_sub(clock_ns?));
    // Where its TSC counts from the reset on. If not, that lies before the start.
    let reset = before_ready(0);
    instance.main_ns = main.filter(is_since_start).unwrap_or(0);
    instance.kernel_ns = kernel.filter(is_since_start).unwrap_or(0);
    instance.reset_ns = reset.filter(is_since_start).unwrap_or(0);
}
