//! The kernel's events as a witness of a batch's delays.

use std::mem;

use tare_workloads::gap::Gap;

use super::witness::Witness;
use super::{Plan, find, run, together};
use crate::linux::arrivals::Arrivals;
use crate::linux::flight::FlightError;
use crate::linux::flight::recording::Recording;
use crate::output::{self, Output};
use crate::platform::{Platform, WriteError};
use crate::session::Stop;
use crate::table::{Failure, Measurement, Threads};
use crate::wakeup::linux::Signals;

/// Returns the experiment on Linux.
pub fn on<P: Platform>() -> Measurement<P>
where
    P::Error: From<Stop>,
{
    Measurement {
        has: |id| find(id).is_some(),
        threads: |words| Ok(Threads::of(&Plan::parse(words)?)),
        run: |words, platform| {
            let plan = Plan::parse(words).map_err(Failure::Plan)?;
            let ran = match plan.threads() {
                1 => run(&plan, platform, Events::of(&plan, plan.first_cpu())),
                _ => together::run(&plan, platform),
            };
            ran.map_err(|stop| Failure::Measurement(stop.into()))
        },
    }
}

/// The kernel's events during a batch.
pub(super) struct Events {
    cpu: Option<u32>,
    /// The labels of the set; empty where there is only one.
    pub(super) labels: String,
    /// The number of CPUs, which share the room for groups of delays.
    cpus: u32,
    /// The number of groups that were written before.
    pub(super) written: u32,
    /// Delays from this time on are explained, in ns; None for none.
    above_ns: Option<u64>,
    recording: Option<Result<Recording, FlightError>>,
    /// Counts of what has no events, or where they can't be recorded.
    arrivals: Option<Arrivals>,
    /// Whether the batch is a spin of a given time, which may be asked to end.
    is_long: bool,
    signals: Option<Signals>,
}

impl Events {
    /// Returns the events of a CPU, before they are recorded.
    pub(super) fn of(plan: &Plan, cpu: Option<u32>) -> Self {
        Self {
            cpu,
            labels: match (plan.threads(), cpu) {
                (2.., Some(cpu)) => format!("cpu={cpu}"),
                _ => String::new(),
            },
            cpus: plan.threads().max(1),
            written: 0,
            above_ns: plan.explain_ns,
            recording: None,
            arrivals: None,
            is_long: plan.duration_ns.is_some(),
            signals: None,
        }
    }
}

impl Witness for Events {
    fn begin(&mut self) {
        let cpu = self.cpu.ok_or(FlightError::Unpinned);
        let open = |cpu| {
            let mut recording = Recording::open(cpu, self.is_long)?;
            for most in &mut recording.most_written {
                *most = (*most / self.cpus as usize).max(1);
            }
            Ok(recording)
        };
        self.recording = self.above_ns.map(|_| cpu.and_then(open));
        if self.above_ns.is_some() {
            let of_kernel = matches!(self.recording, Some(Err(_)));
            let begin = |cpu| Arrivals::begin(cpu, &self.labels, of_kernel);
            self.arrivals = self.cpu.map(begin);
        }
        if self.is_long {
            // Without a descriptor, a signal ends the process as usual.
            self.signals = Signals::take_over().ok();
        }
    }

    fn is_asked_to_end(&mut self) -> bool {
        self.signals.as_ref().is_some_and(Signals::came)
    }

    fn end(&mut self) {
        if let Some(Ok(recording)) = &mut self.recording {
            recording.stop();
        }
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.end();
        }
    }

    fn tell(
        &mut self,
        set: u32,
        (least, delays): (u64, &[Gap]),
        output: &mut Output<'_, impl Platform>,
    ) -> Result<(), WriteError> {
        let arrivals = self.arrivals.take();
        arrivals.map_or(Ok(()), |arrivals| arrivals.write(output))?;
        match (self.recording.take(), self.above_ns) {
            (Some(Ok(recording)), Some(above_ns)) => {
                let above = (above_ns, least);
                let explained = recording.explain(set, above, delays);
                let values = [
                    ("explained", "ns", above_ns),
                    ("events", "", explained.events),
                    ("recording", "ns", explained.recording_ns),
                    ("recorded", "ns", explained.recorded_ns),
                    ("switches", "", explained.switches),
                ];
                output.values(&self.labels, &values)?;
                let written = explained
                    .trace
                    .records(self.written, |record| output.put(record));
                // The end of the process ends it, too, and takes no time from what follows.
                mem::forget(recording);
                self.written = written?;
                Ok(())
            }
            (Some(Err(why)), _) if set == 0 => {
                let text = format!("delays are not joined with the kernel's events: {why}");
                output.notice(&output::text(&text))
            }
            _ => Ok(()),
        }
    }
}
