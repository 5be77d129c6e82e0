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
#[cfg(test)]
mod flight;
mod init;
mod linux;

use std::process::ExitCode;

use tare_load_driver::driver;
use tare_services::bench;
use tare_wire::plan::Plan;

const USAGE: &str = "\
Runs one batch of a measured workload and prints wire records. Started by tare.

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
";

fn main() -> ExitCode {
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
    let plan = match Plan::parse(words.iter().map(String::as_str)) {
        Ok(plan) => plan,
        Err(error) => return misused(&error.to_string()),
    };
    match bench::run(&plan, &mut linux::Linux::new()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(stop) => {
            eprintln!("tare-agent: {stop}");
            ExitCode::FAILURE
        }
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
