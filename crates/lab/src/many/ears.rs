//! What one instance says: its output, its records, when it is ready.

use std::process::ExitStatus;

use tare_results::model::{Instance, Labels, Value};
use tare_results::receive::{Receiver, Seen, StartedUp};
use tare_targets::instance::{Lines, Tail};
use tare_targets::starter::{Ended, Ready};

use super::field::Field;

/// What has been heard of one instance.
#[derive(Debug, Default)]
pub(super) struct Ears {
    ready_ns: u64,
    lines: Lines,
    receiver: Receiver,
    output: Tail,
    error: Tail,
}

impl Ears {
    /// Takes what it has written to standard output.
    pub(super) fn output(&mut self, bytes: &[u8], at_ns: u64, ready: &Ready) {
        self.output.take(bytes);
        if let Ready::Output = ready {
            self.is_ready(at_ns);
            return;
        }
        let mut is_ready = false;
        let receiver = &mut self.receiver;
        let matches = |line: &[u8]| match ready {
            Ready::Line(wanted) => {
                wanted.is_match(String::from_utf8_lossy(line).trim_end_matches('\r'))
            }
            Ready::Record | Ready::Output => false,
        };
        self.lines.take(bytes, |line| match ready {
            Ready::Record => is_ready |= receiver.line(line) != Seen::Other,
            Ready::Line(_) | Ready::Output => is_ready |= matches(line),
        });
        // A prompt is no whole line.
        is_ready |= matches(self.lines.begun());
        if is_ready {
            self.is_ready(at_ns);
        }
    }

    /// Takes what it has written to standard error.
    pub(super) fn error(&mut self, bytes: &[u8]) {
        self.error.take(bytes);
    }

    /// Says whether it has got ready.
    pub(super) fn has_got_ready(&self) -> bool {
        self.ready_ns > 0
    }

    fn is_ready(&mut self, at_ns: u64) {
        if self.ready_ns == 0 {
            self.ready_ns = at_ns;
        }
    }

    /// Decides what became of an instance that has ended, and fills in what it told.
    ///
    /// # Errors
    ///
    /// Returns why it failed.
    pub(super) fn judge(
        self,
        instance: &mut Instance,
        status: ExitStatus,
        aside: &str,
        field: &Field<'_>,
    ) -> Result<(), String> {
        let starter = field.starter;
        instance.ready_ns = self.ready_ns;
        (starter.judge)(&Ended {
            status,
            output: &self.output.text(),
            error: &self.error.text(),
            aside,
        })?;
        match &starter.ready {
            Ready::Record => {
                let told = self.receiver.started().map_err(|error| error.to_string())?;
                fill(instance, &told, field);
                Ok(())
            }
            Ready::Line(wanted) if self.ready_ns == 0 => {
                Err(format!("no line of its console matched ready={wanted}"))
            }
            Ready::Line(_) | Ready::Output => Ok(()),
        }
    }
}

/// Fills in what an instance told of itself.
fn fill(instance: &mut Instance, told: &StartedUp, field: &Field<'_>) {
    let none = Labels::default();
    let value = |measure: &str, unit: &str| {
        let mut values = told.values.iter();
        let is_it =
            |value: &&Value| value.measure == measure && value.unit == unit && value.labels == none;
        values.find(is_it).map(|value| value.value as u64)
    };
    instance.own_ns = value("cpu", "ns").unwrap_or(0);
    if !field.starter.waits_for_own {
        instance.user_ns += instance.own_ns;
    }
    let own = value("peak", "bytes").unwrap_or(0);
    instance.peak_bytes = instance.peak_bytes.max(own);
    let clock_ns = value("main", "ns");
    if field.starter.shares_clock {
        instance.main_ns = clock_ns.unwrap_or(0);
        return;
    }
    // A guest's TSC runs as this machine's: what lies between two of its readings is known.
    let Some(hz) = field.hz.filter(|hz| *hz > 0.0) else {
        return;
    };
    let before_ready = |tsc: u64| {
        let cycles = told.ready_tsc.saturating_sub(tsc);
        let ns = (cycles as f64 / hz * 1e9) as u64;
        instance.ready_ns.checked_sub(ns)
    };
    let own = |done: u64, entry: u64| (done.saturating_sub(entry) as f64 / hz * 1e9) as u64;
    // What has no CPU time of its own has all from its entry on, if no other one may have had the CPU.
    if let (0, None, Some(done), Some(entry)) = (
        instance.own_ns,
        field.arrivals.interval_ns,
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
