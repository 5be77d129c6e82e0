//! What can keep a measurement from being made, in the user's words: what happened, why, what to do.

use std::io;

use crate::moved::Moved;
use crate::platform::WriteError;
use crate::session::Stop;
use rustix::io::Errno;
use tare_wire::cpus::Cpus;
use thiserror::Error;

use super::refusal::Refusal;

/// Says why there is no result.
#[derive(Debug, Error)]
pub enum ThreadsError {
    /// A reason that every measurement can have.
    #[error(transparent)]
    Stop(#[from] Stop),
    /// The kernel gives no descriptor or thread.
    #[error("the kernel gives no {what}: {source}")]
    System {
        /// What was asked for.
        what: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
    /// A thread can't be pinned.
    #[error("{}", unpinned(cpus, *errno))]
    Pin {
        /// The CPUs it was to run on.
        cpus: Box<Cpus>,
        /// What the kernel says.
        errno: Errno,
    },
    /// A thread may not be scheduled as it should.
    #[error("{0}")]
    Scheduling(Box<Refusal>),
    /// A thread did not come to run.
    #[error(
        "thread {thread} did not come to run in {seconds} s: {} is taken by something of higher or equal \
         priority (`ps -eLo psr,cls,rtprio,pcpu,comm --sort=-pcpu` shows it). End that, or choose \
         another CPU or a higher priority",
        on(*cpu)
    )]
    NotStarted {
        /// Its number.
        thread: u32,
        /// Its CPU.
        cpu: Option<u32>,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The interval can't be held. The least that is proposed leaves half of the CPU.
    #[error(
        "an interval of {} µs can't be held here: setting a timer and being woken up by it takes \
         at least {} µs, and recording {} µs more. Choose an interval of {} µs or more",
        micros(*interval_ns),
        micros(*sleep_ns),
        micros(*recording_ns),
        (2 * (sleep_ns + recording_ns)).div_ceil(1_000)
    )]
    TooShort {
        /// The interval.
        interval_ns: u64,
        /// The least that a sleep and its end cost.
        sleep_ns: u64,
        /// What recording costs.
        recording_ns: u64,
    },
    /// The watching thread is to run only where real-time threads measure, and need not.
    #[error(
        "the thread that starts and watches the measurement is to run on CPU {main}, where real-time threads \
         measure: they would keep it from running. Choose another CPU, with main={free} for \
         example, or leave main= out"
    )]
    OnMeasuredCpus {
        /// The CPUs asked for.
        main: Box<Cpus>,
        /// Others that it could have.
        free: Box<Cpus>,
    },
    /// The watching thread would hardly run.
    #[error(
        "the thread that starts and watches the measurement can only run on CPU {main}, of which real-time \
         threads at this interval take at least {percent} %: it would hardly run. Choose a longer \
         interval, or leave a CPU free of them (cpu=, main=)"
    )]
    Starved {
        /// Its CPUs.
        main: Box<Cpus>,
        /// The share of these that measuring takes, in percent.
        percent: u64,
    },
    /// A thread does not come to its end.
    #[error(
        "thread {thread} has not run for {seconds} s although it was due to end: {} is taken by something \
         of higher priority (`ps -eLo psr,cls,rtprio,pcpu,comm --sort=-pcpu` shows it). What it measured is \
         lost; end that, or measure with a higher priority",
        on(*cpu)
    )]
    Stuck {
        /// Its number.
        thread: u32,
        /// Its CPU.
        cpu: Option<u32>,
        /// How long it has not run.
        seconds: u64,
    },
}

impl From<Moved> for ThreadsError {
    fn from(moved: Moved) -> Self {
        Self::Stop(moved.into())
    }
}

impl From<WriteError> for ThreadsError {
    fn from(error: WriteError) -> Self {
        Self::Stop(error.into())
    }
}

fn on(cpu: Option<u32>) -> String {
    cpu.map_or("every CPU".to_owned(), |cpu| format!("CPU {cpu}"))
}

fn unpinned(cpus: &Cpus, errno: Errno) -> String {
    match errno {
        Errno::INVAL => format!(
            "CPU {cpus} is offline or outside of this process's cpuset: choose among \
             /sys/devices/system/cpu/online and the cpuset ({})",
            allowed()
        ),
        _ => format!("the kernel refuses to pin a thread to CPU {cpus}: {errno}"),
    }
}

/// Returns the CPUs that this process may run on, as the kernel lists them.
fn allowed() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    match list {
        Some(list) => format!("this process starts on CPU {}", list.trim()),
        None => "see cpuset(7)".to_owned(),
    }
}

fn micros(ns: u64) -> String {
    format!("{}.{}", ns / 1_000, ns % 1_000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_fits_into_a_record_and_names_its_figures() {
        let cpus = || Box::new(Cpus::parse("0-1").unwrap());
        for (error, words) in [
            (
                ThreadsError::TooShort {
                    interval_ns: 2_000,
                    sleep_ns: 4_230,
                    recording_ns: 40,
                },
                "2.0 µs can't be held here: setting a timer and being woken up by it takes at least 4.2 µs, and \
                 recording 0.0 µs more. Choose an interval of 9 µs",
            ),
            (
                ThreadsError::OnMeasuredCpus {
                    main: cpus(),
                    free: Box::new(Cpus::one(2)),
                },
                "CPU 0-1, where real-time threads measure",
            ),
            (
                ThreadsError::Starved {
                    main: cpus(),
                    percent: 70,
                },
                "at least 70 %",
            ),
            (
                ThreadsError::Stuck {
                    thread: 1,
                    cpu: Some(3),
                    seconds: 10,
                },
                "CPU 3 is taken",
            ),
            (
                ThreadsError::Pin {
                    cpus: cpus(),
                    errno: Errno::INVAL,
                },
                "CPU 0-1 is offline or outside",
            ),
        ] {
            let text = error.to_string();
            assert!(text.contains(words), "{text}");
            assert!(text.len() < 1_000, "{text}");
        }
    }
}
