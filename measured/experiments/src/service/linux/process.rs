//! A client that starts a process for each request, as includeos-2015 did with `nslookup`.
//!
//! What is measured is then mostly the process: its latency is from its start to its end. Its answer
//! is right if it exits with status 0 and, asked for a name, has printed the address.

use std::io::{self, ErrorKind, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::client::{Client, Counted};
use super::message;
use crate::linux::clock::now_ns;
use crate::service::{Plan, Protocol};

/// The most that is kept of what a process prints, in bytes.
const KEPT: usize = 1 << 16;

impl Client<'_> {
    /// Sends all requests one after the other, the first one at once, each by a process of these
    /// words.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error if the program can't be started.
    pub fn run_processes(&mut self, words: &[String], origin_ns: u64) -> io::Result<Counted> {
        let mut counted = Counted::default();
        for index in 0..self.plan.requests {
            let host = index % self.plan.hosts;
            let mut command = command(self.plan, words, host);
            let begin_ns = now_ns();
            let mut child = command.spawn()?;
            let ended = wait(&mut child, begin_ns + self.plan.limit_ns)?;
            let end_ns = now_ns();
            let is_right = ended.map(|printed| {
                let status = child.wait()?;
                Ok::<_, io::Error>(status.success() && is_right(self.plan.protocol, host, &printed))
            });
            let is_right = is_right.transpose()?;
            counted.wrong += u64::from(is_right == Some(false));
            counted.late += u64::from(is_right.is_none());
            let is_answered = is_right == Some(true);
            counted.answered += u64::from(is_answered);
            counted.window_ns = end_ns - origin_ns;
            self.set(index, begin_ns, is_answered.then_some(end_ns));
        }
        Ok(counted)
    }
}

/// Asks once, and waits for the answer as long as for the server's first one, or a later one.
///
/// # Errors
///
/// Returns an error that says what became of the process if its answer is not right.
pub fn try_once(plan: &Plan, words: &[String]) -> io::Result<()> {
    let patience_ns = plan.patience_ns.max(plan.limit_ns);
    let mut child = command(plan, words, 0).spawn()?;
    let Some(printed) = wait(&mut child, now_ns() + patience_ns)? else {
        return Err(io::Error::other(format!(
            "it had not ended after {} s",
            patience_ns / 1_000_000_000
        )));
    };
    let status = child.wait()?;
    match status.success() {
        true if is_right(plan.protocol, 0, &printed) => Ok(()),
        true => Err(io::Error::other(format!(
            "it did not print {}, the address of its first name",
            message::address(0)
        ))),
        false => Err(io::Error::other(format!("it ended with {status}"))),
    }
}

/// Makes the command of a request: its words with what they ask for.
fn command(plan: &Plan, words: &[String], host: u64) -> Command {
    let mut words = words.iter().map(|word| {
        word.replace("{name}", &format!("host{host}.example"))
            .replace("{address}", &plan.address.to_string())
            .replace("{port}", &plan.port.to_string())
    });
    let mut command = Command::new(words.next().unwrap_or_default());
    command
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// Waits until a process ends, and returns the beginning of what it has printed; `None` if it had to
/// be ended, since it went on until the deadline.
fn wait(child: &mut Child, deadline_ns: u64) -> io::Result<Option<Vec<u8>>> {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let mut printed = Vec::new();
    let mut pipe = child.stdout.take();
    if let Some(pipe) = &pipe {
        fcntl_setfl(pipe, OFlags::NONBLOCK)?;
    }
    loop {
        let left_ns = deadline_ns.saturating_sub(now_ns());
        if left_ns == 0 {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        let left = Timespec {
            tv_sec: (left_ns / 1_000_000_000).cast_signed(),
            tv_nsec: (left_ns % 1_000_000_000).cast_signed(),
        };
        let mut fds = vec![PollFd::new(&process, PollFlags::IN)];
        fds.extend(pipe.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        match poll(&mut fds, Some(&left)) {
            Err(Errno::INTR) => continue,
            others => others?,
        };
        let has_ended = !fds[0].revents().is_empty();
        if pipe.as_mut().is_some_and(|pipe| read(pipe, &mut printed)) {
            pipe = None;
        }
        if has_ended {
            return Ok(Some(printed));
        }
    }
}

/// Takes what is in a pipe, and returns whether its other end is closed.
fn read(pipe: &mut ChildStdout, printed: &mut Vec<u8>) -> bool {
    let taken = pipe.take(KEPT as u64).read_to_end(printed);
    printed.truncate(KEPT);
    taken.map_or_else(
        |error| error.kind() != ErrorKind::WouldBlock,
        |bytes| bytes < KEPT,
    )
}

/// Returns whether a process that has succeeded has printed the answer.
fn is_right(protocol: Protocol, host: u64, printed: &[u8]) -> bool {
    let printed = String::from_utf8_lossy(printed);
    // The addresses of the zone are none that a server has here.
    let wanted = message::address(host).to_string();
    protocol != Protocol::Dns || printed.split_whitespace().any(|word| word == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_whose_first_answer_is_wrong_is_told_by_its_end() {
        let tried = |script: &str| {
            let words = ["sh", "-c", script].map(str::to_owned);
            let plan = Plan {
                patience_ns: 1_000_000_000,
                ..Plan::default()
            };
            try_once(&plan, &words).map_err(|error| error.to_string())
        };
        assert_eq!(tried("echo 10.0.0.0"), Ok(()));
        let wrong = tried("echo 10.0.0.1").unwrap_err();
        assert!(wrong.starts_with("it did not print 10.0.0.0"), "{wrong}");
        let failed = tried("echo 10.0.0.0; exit 9").unwrap_err();
        assert_eq!(failed, "it ended with exit status: 9");
        let late = tried("exec sleep 600").unwrap_err();
        assert_eq!(late, "it had not ended after 1 s");
    }

    #[test]
    fn the_time_of_processes_that_are_ended_at_their_limit_counts() {
        let script = "[ {name} = host0.example ] && echo 10.0.0.0 || exec sleep 600";
        let plan = Plan {
            requests: 3,
            limit_ns: 500_000_000,
            ..Plan::default()
        };
        let [mut sent, mut answered] = [[0; 3]; 2];
        let mut client = Client::new(&plan, &mut sent, &mut answered).unwrap();
        let words = ["sh", "-c", script].map(str::to_owned);
        let counted = client.run_processes(&words, now_ns()).unwrap();
        assert_eq!(counted.answered + counted.late, 3, "{counted:?}");
        assert!(counted.window_ns >= 2 * plan.limit_ns, "{counted:?}");
    }

    /// Asks for a host by a shell, and returns its output, and whether that is right.
    fn ask(script: &str, seconds: u64) -> Option<(String, bool)> {
        let words = ["sh", "-c", script].map(str::to_owned);
        let mut child = command(&Plan::default(), &words, 7).spawn().unwrap();
        let printed = wait(&mut child, now_ns() + seconds * 1_000_000_000).unwrap()?;
        let is_right = is_right(Protocol::Dns, 7, &printed);
        Some((String::from_utf8(printed).unwrap(), is_right))
    }

    #[test]
    fn a_process_is_told_what_to_ask_for_and_its_answer_is_the_address_of_the_name() {
        let (printed, is_right) = ask("echo {name} {address} {port}; echo 10.0.0.7", 60).unwrap();
        assert_eq!(printed, "host7.example 127.0.0.1 53\n10.0.0.7\n");
        assert!(is_right);
        for other in ["10.0.0.8", "10.0.0.70", "10.0.0.7#53", ""] {
            let (_, is_right) = ask(&format!("echo {other}"), 60).unwrap();
            assert!(!is_right, "{other}");
        }
    }

    #[test]
    fn a_process_that_prints_without_end_or_goes_on_is_ended_at_its_limit() {
        assert_eq!(ask("while :; do echo 10.0.0.7; done", 1), None);
        assert_eq!(ask("exec sleep 600", 1), None);
        // A process that it leaves behind, with its output open, is not waited for.
        let (_, is_right) = ask("echo 10.0.0.7; sleep 3 & exit 0", 60).unwrap();
        assert!(is_right);
        let (printed, _) = ask("head -c 300000 /dev/zero", 60).unwrap();
        assert_eq!(printed.len(), KEPT);
    }
}
