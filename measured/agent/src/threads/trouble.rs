//! What can keep a measurement from being made, in the user's words: what happened, why, what to do.

use std::fmt;
use std::io;

use rustix::io::Errno;
use tare_services::platform::WriteError;
use tare_services::session::Stop;
use tare_wire::cpus::Cpus;

use super::refusal::Refusal;

/// Says why there is no result.
#[derive(Debug)]
pub enum Trouble {
    /// A reason that every measurement can have.
    Stop(Stop),
    /// The kernel gives no descriptor or thread.
    System {
        /// What was asked for.
        what: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
    /// A thread can't be pinned.
    Pin {
        /// The CPUs it was to run on.
        cpus: Box<Cpus>,
        /// What the kernel says.
        errno: Errno,
    },
    /// A thread may not be scheduled as it should.
    Scheduling(Box<Refusal>),
    /// A thread did not come to run.
    NotStarted {
        /// Its number.
        thread: u32,
        /// Its CPU.
        cpu: Option<u32>,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The interval can't be held.
    TooShort {
        /// The interval.
        interval_ns: u64,
        /// The least that a sleep and its end cost.
        sleep_ns: u64,
        /// What recording costs.
        recording_ns: u64,
    },
    /// The watching thread is to run only where real-time threads measure, and need not.
    OnMeasuredCpus {
        /// The CPUs asked for.
        main: Box<Cpus>,
        /// Others that it could have.
        free: Box<Cpus>,
    },
    /// The watching thread would hardly run.
    Starved {
        /// Its CPUs.
        main: Box<Cpus>,
        /// The share of these that measuring takes, in percent.
        percent: u64,
    },
    /// A thread does not come to its end.
    Stuck {
        /// Its number.
        thread: u32,
        /// Its CPU.
        cpu: Option<u32>,
        /// How long it has not run.
        seconds: u64,
    },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = |cpu: &Option<u32>| match cpu {
            Some(cpu) => format!("CPU {cpu}"),
            None => "every CPU".to_owned(),
        };
        match self {
            Self::Stop(stop) => write!(f, "{stop}"),
            Self::System { what, source } => write!(f, "the kernel gives no {what}: {source}"),
            Self::Pin { cpus, errno } if *errno == Errno::INVAL => write!(
                f,
                "CPU {cpus} is offline or outside of this process's cpuset: choose among \
                 /sys/devices/system/cpu/online and the cpuset ({})",
                allowed()
            ),
            Self::Pin { cpus, errno } => {
                write!(
                    f,
                    "the kernel refuses to pin a thread to CPU {cpus}: {errno}"
                )
            }
            Self::Scheduling(refusal) => write!(f, "{refusal}"),
            Self::NotStarted {
                thread,
                cpu,
                seconds,
            } => write!(
                f,
                "thread {thread} did not come to run in {seconds} s: {} is taken by something of higher or equal \
                 priority (`ps -eLo psr,cls,rtprio,pcpu,comm --sort=-pcpu` shows it). End that, or choose \
                 another CPU or a higher priority",
                on(cpu)
            ),
            Self::TooShort {
                interval_ns,
                sleep_ns,
                recording_ns,
            } => write!(
                f,
                "an interval of {} µs can't be held here: setting a timer and being woken up by it takes \
                 at least {} µs, and recording {} µs more. Choose an interval of {} µs or more",
                micros(*interval_ns),
                micros(*sleep_ns),
                micros(*recording_ns),
                // So that half of the CPU is left.
                (2 * (sleep_ns + recording_ns)).div_ceil(1_000)
            ),
            Self::OnMeasuredCpus { main, free } => write!(
                f,
                "the thread that starts and watches the measurement is to run on CPU {main}, where real-time threads \
                 measure: they would keep it from running. Choose another CPU, with main={free} for \
                 example, or leave main= out"
            ),
            Self::Starved { main, percent } => write!(
                f,
                "the thread that starts and watches the measurement can only run on CPU {main}, of which real-time \
                 threads at this interval take at least {percent} %: it would hardly run. Choose a longer \
                 interval, or leave a CPU free of them (cpu=, main=)"
            ),
            Self::Stuck {
                thread,
                cpu,
                seconds,
            } => write!(
                f,
                "thread {thread} has not run for {seconds} s although it was due to end: {} is taken by something \
                 of higher priority (`ps -eLo psr,cls,rtprio,pcpu,comm --sort=-pcpu` shows it). What it measured is \
                 lost; end that, or measure with a higher priority",
                on(cpu)
            ),
        }
    }
}

impl From<Stop> for Trouble {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl From<WriteError> for Trouble {
    fn from(error: WriteError) -> Self {
        Self::Stop(error.into())
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
        for (trouble, words) in [
            (
                Trouble::TooShort {
                    interval_ns: 2_000,
                    sleep_ns: 4_230,
                    recording_ns: 40,
                },
                "2.0 µs can't be held here: setting a timer and being woken up by it takes at least 4.2 µs, and \
                 recording 0.0 µs more. Choose an interval of 9 µs",
            ),
            (
                Trouble::OnMeasuredCpus {
                    main: cpus(),
                    free: Box::new(Cpus::one(2)),
                },
                "CPU 0-1, where real-time threads measure",
            ),
            (
                Trouble::Starved {
                    main: cpus(),
                    percent: 70,
                },
                "at least 70 %",
            ),
            (
                Trouble::Stuck {
                    thread: 1,
                    cpu: Some(3),
                    seconds: 10,
                },
                "CPU 3 is taken",
            ),
            (
                Trouble::Pin {
                    cpus: cpus(),
                    errno: Errno::INVAL,
                },
                "CPU 0-1 is offline or outside",
            ),
        ] {
            let text = trouble.to_string();
            assert!(text.contains(words), "{text}");
            assert!(text.len() < 1_000, "{text}");
        }
    }
}
