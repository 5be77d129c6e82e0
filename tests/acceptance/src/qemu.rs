//! Manually started guests, under TCG.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use crate::{Owned, Result};

/// The time limit for expected output of a guest.
const LIMIT: Duration = Duration::from_secs(120);

/// A QEMU whose serial line is read here.
pub struct Qemu(pub Owned);

impl Qemu {
    /// Starts a kernel; the words are separated by blanks.
    pub fn start(words: &str, kernel: &Path, command_line: &str) -> Result<Self> {
        let child = Command::new("qemu-system-x86_64")
            .args(["-nodefaults", "-no-user-config", "-display", "none"])
            .args(["-no-reboot", "-serial", "stdio"])
            .args(words.split(' '))
            .arg("-kernel")
            .arg(kernel)
            .args(["-append", command_line])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| {
                format!("qemu-system-x86_64: {error}; type `apt-get install qemu-system-x86`")
            })?;
        Ok(Self(Owned(child)))
    }

    /// Returns its process.
    pub fn id(&self) -> u32 {
        self.0.0.id()
    }

    /// Reads until the guest has written this text, and returns all that it wrote until then.
    pub fn wait_for(&mut self, text: &str) -> Result<String> {
        let output = self
            .0
            .0
            .stdout
            .as_mut()
            .ok_or("standard output is a pipe")?;
        let (start, mut said, mut byte) = (Instant::now(), Vec::new(), [0]);
        let why = loop {
            if said.ends_with(text.as_bytes()) {
                return Ok(String::from_utf8_lossy(&said).into_owned());
            }
            let left = LIMIT.saturating_sub(start.elapsed()).try_into()?;
            if poll(&mut [PollFd::new(output, PollFlags::IN)], Some(&left))? == 0 {
                break format!("has not said '{text}' within {LIMIT:?}");
            }
            if output.read(&mut byte)? == 0 {
                break format!("ended without '{text}'");
            }
            said.push(byte[0]);
        };
        let said = String::from_utf8_lossy(&said);
        Err(format!("the guest {why}; it said: {said}").into())
    }

    /// Waits for the end of a guest that ends by itself, so that the next one does not run at the
    /// same time.
    pub fn end(mut self) -> Result<()> {
        self.0.0.wait()?;
        Ok(())
    }
}
