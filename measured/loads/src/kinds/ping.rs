//! `ping`: a flood over the loopback device for each CPU, as in the study's PING phase.

use super::{Kind, PLAIN, Setup};
use crate::error::DriverError;
use crate::task::{Ended, Meter, Output, Task};
use crate::tools::Tool;

/// The number of bytes stored from the output of `ping`: its summary has some 200.
const KEPT: usize = 2_000;

pub(super) const PING: Kind = Kind {
    name: "ping",
    usage: "ping",
    summary: "a flood ping of 127.0.0.1 for each CPU, 10 bytes, preload 65,536",
    tools: &[Tool::new("ping", "iputils-ping")],
    deviations: &[
        "`-l 65536`, today's largest preload, instead of 100,000; the socket's buffer is smaller still, so that \
         more than half of the packets are lost",
        "one for each CPU; the study ran some more and does not say how many",
    ],
    root: Some("ping floods without pause and with a preload only for root"),
    loopback: true,
    tasks,
    ..PLAIN
};

fn tasks(setup: &mut Setup, _words: &[String]) -> Result<Vec<Task>, DriverError> {
    let task = |_: u32| Task {
        output: Output::Meter,
        ..Task::endless("ping", setup.cpus, PingMeter::default())
            .args("-f -q -n -s 10 -l 65536 127.0.0.1".split(' '))
    };
    Ok(setup.cpus.iter().map(task).collect())
}

/// A meter that reads the summary that `ping` prints at its end.
#[derive(Debug, Default)]
struct PingMeter {
    printed: Vec<u8>,
    sent: u64,
    answered: u64,
}

impl Meter for PingMeter {
    fn on_output(&mut self, bytes: &[u8]) {
        self.printed.extend(bytes);
        let surplus = self.printed.len().saturating_sub(KEPT);
        self.printed.drain(..surplus);
    }

    fn ended(&mut self, _ended: &Ended) -> Result<(), String> {
        let text = String::from_utf8_lossy(&self.printed);
        // None if it is interrupted before its first packet.
        if let Some((sent, answered)) = summary(&text) {
            self.sent += sent;
            self.answered += answered;
        }
        self.printed.clear();
        Ok(())
    }

    fn totals(&self) -> Vec<(String, u64)> {
        vec![
            ("packets sent".to_owned(), self.sent),
            ("packets answered".to_owned(), self.answered),
        ]
    }
}

/// Finds the two numbers in
/// `93239 packets transmitted, 37785 received, 59% packet loss, time 1003ms`.
fn summary(text: &str) -> Option<(u64, u64)> {
    let mut lines = text.lines();
    let line = lines.find(|line| line.contains(" packets transmitted,"))?;
    let mut parts = line.split(", ");
    let mut number = || parts.next()?.split(' ').next()?.parse().ok();
    Some((number()?, number()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_ping_is_found() {
        let text = "PING 127.0.0.1 (127.0.0.1) 10(38) bytes of data.\n\n--- 127.0.0.1 ping statistics ---\n\
                    93239 packets transmitted, 37785 received, 59.4751% packet loss, time 1003ms\npipe 10082";
        assert_eq!(summary(text), Some((93_239, 37_785)));
        assert_eq!(summary("PING"), None);
    }
}
