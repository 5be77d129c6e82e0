//! A client that has `nslookup` ask, a process for each request, as includeos-2015 did.
//!
//! What is measured is then mostly the process: its latency is from its start to its end.

use std::io;
use std::process::{Command, Stdio};

use super::client::{Client, Counted};
use super::message;
use crate::linux::clock::now_ns;

/// The program, of Debian's package bind9-dnsutils.
pub const PROGRAM: &str = "nslookup";

impl Client<'_> {
    /// Sends all requests one after the other, the first one at once.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error if the program can't be started.
    pub fn run_nslookup(&mut self, origin_ns: u64) -> io::Result<Counted> {
        let mut counted = Counted::default();
        for index in 0..self.plan.requests {
            let host = index % self.plan.hosts;
            let begin_ns = now_ns();
            let answer = Command::new(PROGRAM)
                .args(["-type=a", &format!("-port={}", self.plan.port)])
                .args([
                    &format!("host{host}.example"),
                    &self.plan.address.to_string(),
                ])
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .output()?;
            let end_ns = now_ns();
            let is_right = is_right(
                &String::from_utf8_lossy(&answer.stdout),
                &message::address(host).to_string(),
            );
            let is_late = end_ns - begin_ns > self.plan.limit_ns;
            counted.wrong += u64::from(!is_right);
            counted.late += u64::from(is_right && is_late);
            let is_answered = is_right && !is_late;
            if is_answered {
                counted.answered += 1;
                counted.window_ns = end_ns - origin_ns;
            }
            self.set(index, begin_ns, is_answered.then_some(end_ns));
        }
        Ok(counted)
    }
}

/// Returns whether the program printed an address as that of the name.
fn is_right(printed: &str, address: &str) -> bool {
    // The first address that it prints is the server's.
    let named = printed
        .lines()
        .skip_while(|line| !line.starts_with("Name:"));
    let mut found = named.filter_map(|line| line.strip_prefix("Address:"));
    found.any(|found| found.trim() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_that_of_the_name_and_not_the_server_s() {
        let printed = "Server:\t\t10.0.0.7\nAddress:\t10.0.0.7#53\n\nName:\thost7.example\nAddress: 10.0.0.7\n\n";
        assert!(is_right(printed, "10.0.0.7"));
        assert!(!is_right(printed, "10.0.0.8"));
        assert!(!is_right(
            &printed.replace("Name:", "** can't find"),
            "10.0.0.7"
        ));
    }
}
