//! The agent: the measured code as one static Linux program.
//!
//! Its arguments are the words of a plan; it runs the plan and prints wire records on standard
//! output:
//!
//! ```text
//! tare-agent workload=ID key=value cpu=1
//! ```
//!
//! As `tare-agent load` it drives a load instead, which runs alongside the measured code
//! (`tare_load_driver`).
//!
//! It is run by `tare` as a process, in containers, on a remote host; and as `/init` of a guest,
//! where it is the first process and takes the plan from the kernel's command line ([`init`]).
//! Exit status: 0 done, 1 failed (a `failure` record says why), 2 the plan can't be read.

mod facts;
mod init;
mod linux;
mod tasks;

use std::process::ExitCode;

use tare_load_driver::driver;
use tare_measured::linux::{experiments, flight};
use tare_measured::primitives::linux::{peer, stamp};
use tare_measured::table::{self, Failure, Measurement};

pub use linux::Linux;

const USAGE: &str = "\
Measures, and prints wire records. Started by tare.

Usage: tare-agent workload=ID WORD...
       tare-agent load LOAD dir=DIR [WORD...]    (see tare-agent load --help)
       tare-agent peer ADDRESS:PORT              (answers primitives of another machine)
       tare-agent events                         (keeps the kernel's events open until it is killed)
";

/// Does what the arguments ask for; `more` are experiments in addition to those of tare.
#[must_use]
pub fn main(more: &[Measurement<Linux>]) -> ExitCode {
    let began = linux::now();
    if init::is_asked_for() {
        init::run(began);
    }
    if let Some(argument) = std::env::args_os().nth(1) {
        stamp(argument.as_encoded_bytes(), began.main_tsc);
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
            let mut text = USAGE.to_owned();
            let _ = table::usage(&mut text);
            print!("{text}");
            return ExitCode::from(if words.is_empty() { 2 } else { 0 });
        }
        Some("-V" | "--version") => {
            println!("tare-agent {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Some("load") => return load(&words[1..]),
        Some("peer") => return answer(&words[1..]),
        Some("events") => return keep_events_open(),
        Some(_) if init::is_asked_for_in_system(&words) => init::run_in_system(began),
        Some(_) => {}
    }
    run(&words, more, &mut Linux::new(began))
}

/// Does what a plan asks for.
fn run(words: &[String], more: &[Measurement<Linux>], linux: &mut Linux) -> ExitCode {
    ExitCode::from(status(words, more, linux))
}

/// Does what a plan asks for. Returns the exit status.
fn status(words: &[String], more: &[Measurement<Linux>], linux: &mut Linux) -> u8 {
    let words = || words.iter().map(String::as_str);
    let measurement = match table::find(words(), experiments().chain(more.iter().copied())) {
        Ok(measurement) => measurement,
        Err(error) => return misuse(&error.to_string()),
    };
    match (measurement.run)(&mut words(), linux) {
        Ok(()) => 0,
        Err(Failure::Plan(error)) => misuse(&error.to_string()),
        Err(Failure::Measurement(why)) => {
            eprintln!("tare-agent: {why}");
            1
        }
    }
}

/// Answers on an address, for primitives between two machines.
fn answer(words: &[String]) -> ExitCode {
    let [address] = words else {
        return misused("peer: want an address with a port, such as 0.0.0.0:7000");
    };
    let Err(why) = peer::run(address);
    eprintln!("tare-agent: {why}");
    ExitCode::FAILURE
}

/// Keeps the kernel's events open for the agents of a run, until it is killed. Each of them says for
/// itself if it can't record events.
fn keep_events_open() -> ExitCode {
    match flight::keep_open() {
        Ok(()) => loop {
            std::thread::park();
        },
        Err(_) => ExitCode::FAILURE,
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
    ExitCode::from(misuse(message))
}

fn misuse(message: &str) -> u8 {
    eprintln!("tare-agent: {message}\nTry 'tare-agent --help'.");
    2
}
