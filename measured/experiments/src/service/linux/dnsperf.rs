//! A client that has `dnsperf` ask, one process for all requests.
//!
//! Its latencies are those that it prints of each answer (`-v`), from when it sent the request.
//! It compares an answer's number and question with the request, and reads its RCODE.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::process::{Command, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};

use super::client::{Client, Counted};
use crate::service::Plan;

/// The program, of Debian's package of that name.
pub const PROGRAM: &str = "dnsperf";

const SECOND_NS: f64 = 1e9;

/// Writes the requests of a plan into a file in memory.
///
/// # Errors
///
/// Returns the kernel's error.
pub fn requests(plan: &Plan) -> io::Result<File> {
    let mut file = BufWriter::new(in_memory()?);
    for index in 0..plan.requests {
        writeln!(file, "host{}.example A", index % plan.hosts)?;
    }
    let mut file = file.into_inner()?;
    file.rewind()?;
    Ok(file)
}

fn in_memory() -> io::Result<File> {
    Ok(memfd_create(PROGRAM, MemfdFlags::CLOEXEC)?.into())
}

impl Client<'_> {
    /// Sends all requests of a file.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error if the program can't be started, or an error if it fails.
    pub fn run_dnsperf(&mut self, requests: File) -> io::Result<Counted> {
        let plan = self.plan;
        // Reading a pipe would take time on its CPU while it measures.
        let mut printed = in_memory()?;
        let mut command = Command::new(PROGRAM);
        command
            .args(["-v", "-n", "1", "-s", &plan.address.to_string()])
            .args(["-p", &plan.port.to_string()])
            .args(["-q", &plan.sockets.to_string()])
            .args(["-t", &(plan.limit_ns as f64 / SECOND_NS).to_string()])
            .stdin(requests)
            .stdout(printed.try_clone()?)
            .stderr(Stdio::null());
        if let Some(interval) = plan.interval_ns {
            let rate = (SECOND_NS / interval as f64).round();
            command.args(["-Q", &rate.to_string()]);
        }
        let status = command.status()?;
        if !status.success() {
            return Err(io::Error::other(format!("it failed with {status}")));
        }
        let mut text = String::new();
        printed.rewind()?;
        printed.read_to_string(&mut text)?;
        Ok(self.take_printed(&text))
    }

    /// Takes what the program printed: a line for each answer, and totals.
    fn take_printed(&mut self, text: &str) -> Counted {
        let mut counted = Counted::default();
        for line in text.lines() {
            if let Some(answer) = line.strip_prefix("> NOERROR ") {
                let ns = answer.rsplit(' ').next().and_then(nanoseconds);
                let Some(ns) = ns.filter(|_| counted.answered < self.plan.requests) else {
                    continue;
                };
                // When it was sent is not known, only how long it took.
                self.set(counted.answered, 1, Some(1 + ns));
                counted.answered += 1;
            } else if let Some(other) = line.strip_prefix("> ") {
                // T is what was lost.
                counted.wrong += u64::from(!other.starts_with("T "));
            } else if let Some(time) = line.trim().strip_prefix("Run time (s):") {
                counted.window_ns = nanoseconds(time.trim()).unwrap_or_default();
            }
        }
        counted
    }
}

fn nanoseconds(seconds: &str) -> Option<u64> {
    let seconds: f64 = seconds.parse().ok()?;
    Some((seconds * SECOND_NS).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_those_of_its_lines_and_others_are_lost() {
        let plan = Plan {
            requests: 5,
            ..Plan::default()
        };
        let [sent, answered] = [(); 2].map(|()| vec![0; 5].leak());
        let mut client = Client::new(&plan, sent, answered).unwrap();
        let printed = "[Status] Sending queries (to 192.0.2.2:53)\n\
                       > NOERROR host0.example A 0.000136\n\
                       > T host1.example A\n\
                       > SERVFAIL host2.example A 0.000114\n\
                       > NOERROR host3.example A 1.000002\n\
                       \n  Queries sent:         5\n  Run time (s):         2.000001\n";
        let counted = client.take_printed(printed);
        let wanted = Counted {
            answered: 2,
            wrong: 1,
            window_ns: 2_000_001_000,
            ..Counted::default()
        };
        assert_eq!(counted, wanted);
        let latencies: Vec<_> = (0..5).map(|index| client.latency(index, false)).collect();
        let wanted = [Some(136_000), Some(1_000_002_000), None, None, None];
        assert_eq!(latencies, wanted);
    }

    #[test]
    fn each_request_is_a_line() {
        let plan = Plan {
            requests: 3,
            hosts: 2,
            ..Plan::default()
        };
        let mut text = String::new();
        requests(&plan).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "host0.example A\nhost1.example A\nhost0.example A\n");
    }
}
