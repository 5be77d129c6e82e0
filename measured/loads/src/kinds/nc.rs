//! `nc`: a pair of netcats over the loopback device for each CPU, fed by `dd`, as in the study's
//! NET phase.

use std::io;
use std::net::TcpListener;

use rustix::process::{Pid, Signal};

use super::dd::copied;
use super::{DD_TOOL, Kind, PLAIN, Setup};
use crate::error::DriverError;
use crate::processes;
use crate::task::{Ended, Meter, Output, Task, Uncounted};
use crate::tools::Tool;

pub(super) const NC: Kind = Kind {
    name: "nc",
    usage: "nc",
    summary: "a pair of nc over 127.0.0.1 for each CPU, fed by dd in blocks of 10 MB",
    tools: &[DD_TOOL, Tool::new("nc", "netcat-openbsd")],
    deviations: &["OpenBSD's nc; the study does not say which it used, nor whether dd ended"],
    loopback: true,
    tasks,
    ..PLAIN
};

fn tasks(setup: &mut Setup, _words: &[String]) -> Result<Vec<Task>, DriverError> {
    let mut tasks = Vec::new();
    for _ in setup.cpus.iter() {
        let failed = |source| DriverError::system("prepare a pair of nc", source);
        let port = free_port().map_err(failed)?;
        let (reader, writer) = io::pipe().map_err(failed)?;
        let nc = || Task {
            stop: Signal::TERM,
            ..Task::endless("nc", setup.cpus, Uncounted)
        };
        let number = port.to_string();
        tasks.push(Task {
            listens: Some(port),
            ..nc().args(["-l", "127.0.0.1", &number])
        });
        tasks.push(Task {
            input: Some(reader.into()),
            ..nc().args(["-N", "127.0.0.1", &number])
        });
        tasks.push(Task {
            output: Output::Pipe(writer.into()),
            ..Task::endless("dd", setup.cpus, FeedMeter::default()).args(["if=/dev/zero", "bs=10M"])
        });
    }
    Ok(tasks)
}

/// Returns an unused port. If another program takes it before nc does, nc reports that.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A meter that uses the kernel's I/O accounting of the `dd` that feeds a pair. The summary of `dd`
/// is the second choice: it has whole blocks only, and is missing if nc ends first.
#[derive(Debug, Default)]
struct FeedMeter {
    bytes: u64,
}

impl Meter for FeedMeter {
    fn works(&self, pid: Pid) -> bool {
        processes::io(pid).is_none_or(|io| io.written > 0)
    }

    fn last_look(&mut self, pid: Pid) {
        self.bytes = processes::io(pid).unwrap_or_default().written;
    }

    fn ended(&mut self, ended: &Ended) -> Result<(), String> {
        if self.bytes == 0 {
            self.bytes = copied(&ended.said).unwrap_or_default();
        }
        Ok(())
    }

    fn totals(&self) -> Vec<(String, u64)> {
        vec![("bytes sent".to_owned(), self.bytes)]
    }
}
