//! Reasons why a measurement fails, for the user: what happened, why, and the remedy.

use std::io;

use crate::moved::Moved;
use crate::platform::WriteError;
use crate::session::Stop;
use rustix::io::Errno;
use tare_wire::cpus::Cpus;
use thiserror::Error;

use super::refusal::Refusal;

/// The reason why there is no result.
#[derive(Debug, Error)]
pub enum ThreadsError {
    /// A reason common to all measurements.
    #[error(transparent)]
    Stop(#[from] Stop),
    /// The kernel provides no descriptor or thread.
    #[error("the kernel gives no {what}: {source}")]
    System {
        /// The missing resource.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// A program that asks a service in the client's place does not get a right answer.
    #[error("the client (--client) got no right answer to a first request: {0}")]
    Client(io::Error),
    /// A thread can't be pinned.
    #[error("{}", unpinned(cpus, *errno))]
    Pin {
        /// The requested CPUs.
        cpus: Box<Cpus>,
        /// The kernel's error.
        errno: Errno,
    },
    /// A thread may not use the plan's policy.
    #[error("{0}")]
    Scheduling(Box<Refusal>),
    /// A thread did not get to run.
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
        /// The time limit.
        seconds: u64,
    },
    /// The interval is too short. The proposed minimum leaves half of the CPU.
    #[error(
        "an interval of {} µs can't be held here: setting a timer and being woken up by it takes \
         at least {} µs, and recording {} more. Choose an interval of {} µs or more",
        micros(*interval_ns),
        micros(*sleep_ns),
        short(*recording_ns),
        (2 * (sleep_ns + recording_ns)).div_ceil(1_000)
    )]
    TooShort {
        /// The interval.
        interval_ns: u64,
        /// The least cost of a sleep.
        sleep_ns: u64,
        /// The cost of recording.
        recording_ns: u64,
    },
    /// The watching thread is restricted to CPUs of real-time threads, although others are free.
    #[error(
        "the thread that starts and watches the measurement is to run on CPU {main}, where real-time threads \
         measure: they would keep it from running. Choose another CPU, with main={free} for \
         example, or leave main= out"
    )]
    OnMeasuredCpus {
        /// The requested CPUs.
        main: Box<Cpus>,
        /// The free CPUs.
        free: Box<Cpus>,
    },
    /// The watching thread would hardly ever run.
    #[error(
        "the thread that starts and watches the measurement can only run on CPU {main}, of which real-time \
         threads at this interval take at least {percent} %: it would hardly run. Choose a longer \
         interval, or leave a CPU free of them (cpu=, main=)"
    )]
    Starved {
        /// Its CPUs.
        main: Box<Cpus>,
        /// The share of these that measuring uses, in percent.
        percent: u64,
    },
    /// A thread does not end.
    #[error(
        "thread {thread} has not run for {seconds} s although it was due to end: {} is taken by something \
         of higher priority (`ps -eLo psr,cls,rtprio,pcpu,comm --sort=-pcpu` shows it). Its samples are \
         lost; end that, or measure with a higher priority",
        on(*cpu)
    )]
    Stuck {
        /// Its number.
        thread: u32,
        /// Its CPU.
        cpu: Option<u32>,
        /// The time since it last ran.
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

/// Returns the CPUs that this process may run on, in the kernel's notation.
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

/// Writes a time that may be too short for [`micros`].
fn short(ns: u64) -> String {
    match ns {
        ..100 => format!("{ns} ns"),
        _ => format!("{} µs", micros(ns)),
    }
}

pub(super) fn micros(ns: u64) -> String {
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
                 recording 40 ns more. Choose an interval of 9 µs",
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
