//! The agent: the measured code as one static Linux program.
//!
//! It takes the words of a plan as arguments, runs it and prints wire records on standard output:
//!
//! ```text
//! tare-agent workload=prime limit=22 repetitions=1000000 cpu=1
//! ```
//!
//! As `tare-agent load` it drives a load instead, beside the measured code (`tare_load_driver`).
//!
//! It is run by `tare` as a process, in containers, on a remote host; and as `/init` of a guest,
//! where it is the first process and takes the plan from the kernel's command line ([`init`]).
//! Exit status: 0 done, 1 failed (a `failure` record says why), 2 the plan can't be read.

mod facts;
mod flight;
mod init;
mod linux;
mod threads;

use std::process::ExitCode;

use tare_load_driver::driver;
use tare_services::table::{self, Failure, Place, Service};

pub use linux::Linux;
pub use threads::Trouble;

const USAGE: &str = "\
Runs one batch of a measured workload, or measures wake-ups, and prints wire records. Started by
tare.

Usage: tare-agent WORD...
       tare-agent load LOAD dir=DIR [WORD...]    (see tare-agent load --help)

Words:
  workload=prime limit=N    count the primes below N, in registers
  workload=copy size=N      copy and increment N elements of 8 bytes
  workload=gap              spin on the timer and record every interruption
  repetitions=N             timed repetitions (gap: timer reads)
  warmup=N                  untimed repetitions before (1000)
  timing=fenced|published   how a repetition is timed (fenced)
  threshold=auto|N[UNIT]    from which delay on samples are listed; UNIT: cycles, ns, us, ms
  capacity=N                how many delays are listed at most (1048576)
  bins=N                    bins of the envelope over time (1000)
  window=N                  raw samples kept from the middle of the batch (500)
  cpu=N                     CPU to run on

Words for wake-ups (TIME: a whole number with the unit ns, us, ms or s; CPUS: 0,2-3):
  workload=wakeup           threads sleep until absolute times and note how late they run
  interval=TIME             time between two activations
  duration=TIME             how long; or until each thread was woken up
  loops=N                   so many times
  threads=N                 measuring threads (1)
  distance=TIME             how much longer the interval of each further thread is (0ns)
  cpu=CPUS                  CPUs to which they are pinned, in turn
  main=CPUS                 CPUs of the thread that starts and watches them
  policy=fifo|rr|deadline|other   how they are scheduled (fifo)
  priority=N                real-time priority from 1 to 99 (95)
  phases=N                  phases of equal length that are counted apart (1)
  threshold=TIME            from which latency on wake-ups are listed (the interval)
  capacity=N                how many are listed for each thread at most (262144)
  raw=N                     how many are kept as they were for each thread at most (4000000)
  bins=N                    bins of the envelope over time (1000)
  above=TIME                above which latency it is told at once, and the measurement ends
  go-on=yes|no              or goes on (no)
  live=TIME                 how often the state of each thread is told meanwhile
  trace=N                   of how many of the worst wake-ups the kernel's events are kept (0)

SIGINT or SIGTERM ends the measurement of wake-ups early; what was measured is reported.
";

/// Does what the arguments ask for; `more` are functions that measure beside those of tare.
#[must_use]
pub fn main(more: &[Service<Linux>]) -> ExitCode {
    if init::is_asked_for() {
        init::run();
    }
    let words: Vec<String> = match std::env::args_os()
        .skip(1)
        .map(std::ffi::OsString::into_string)
        .collect()
    {
        Ok(words) => words,
        Err(word) => return misused(&format!("plan: {} is not UTF-8", word.display())),
    };
    match words.first().map(String::as_str) {
        None | Some("-h" | "--help") => {
            print!("{USAGE}");
            return ExitCode::from(if words.is_empty() { 2 } else { 0 });
        }
        Some("-V" | "--version") => {
            println!("tare-agent {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Some("load") => return load(&words[1..]),
        Some(_) if init::is_asked_for_in_system(&words) => init::run_in_system(),
        Some(_) => {}
    }
    run(&words, more)
}

/// Does what a plan asks for.
fn run(words: &[String], more: &[Service<Linux>]) -> ExitCode {
    let words = || words.iter().map(String::as_str);
    let service = match table::find(words(), more) {
        Ok(service) => service,
        Err(error) => return misused(&error.to_string()),
    };
    match (service.run)(&mut words(), &mut Linux::new()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Plan(error)) => misused(&error.to_string()),
        Err(Failure::Measurement(why)) => {
            eprintln!("tare-agent: {why}");
            ExitCode::FAILURE
        }
    }
}

impl Place for Linux {
    type Error = Trouble;

    fn wake(&mut self, plan: &tare_services::wakeup::Plan) -> Result<(), Self::Error> {
        threads::run(plan, self)
    }
}

/// Drives a load: background work that disturbs.
fn load(words: &[String]) -> ExitCode {
    match words.first().map(String::as_str) {
        None | Some("-h" | "--help") => {
            print!("{}", driver::USAGE);
            ExitCode::from(if words.is_empty() { 2 } else { 0 })
        }
        Some(_) => ExitCode::from(driver::run(words)),
    }
}

fn misused(message: &str) -> ExitCode {
    eprintln!("tare-agent: {message}\nTry 'tare-agent --help'.");
    ExitCode::from(2)
}
