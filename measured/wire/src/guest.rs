//! The protocol between the laboratory and the agent as `/init` of a Linux guest.
//!
//! *In* goes the kernel command line: the plan's words behind `--`, as Linux passes arguments to
//! init, and a load in [`LOAD`]. *Out* come records over a virtio port named [`PORT`], or over the
//! console if there is none, and messages of init ([`Message`]). The last message ends the guest,
//! because the host has read everything before it.
//!
//! While the plan runs, a byte that the host writes to the port asks the measured process to end
//! and to report its results so far.

use core::fmt::{self, Write};

/// The name of the virtio port that carries the records.
pub const PORT: &str = "tare";

/// The kernel parameter with the text of a load, as [`Encoded`] writes it.
pub const LOAD: &str = "tare.load";

/// The kernel parameter with the size of a RAM disk on [`SCRATCH`], in the form of tmpfs. Without
/// it, init looks for a disk.
pub const RAM_SCRATCH: &str = "tare.ram";

/// The kernel parameter that makes init continue into the root file system on a disk, and its
/// value.
pub const ROOT: (&str, &str) = ("tare.root", "debian");

/// The kernel parameter that makes init execute the plan itself, on the console, and end the guest
/// by a reset: the shortest way.
pub const DIRECT: &str = "tare.direct";

/// The kernel parameter that lets the activations of a measurement begin at a fixed phase of the
/// guest's clock, and so of its tick.
pub const FIXED_PHASE: &str = "tare.phase=fixed";

/// The kernel parameter with the time limit, in s, for a guest to become idle after its boot.
pub const IDLE_LIMIT: &str = "tare.idle";

/// The serial number by which the disk with the root file system is found.
pub const ROOT_SERIAL: &str = "tare-root";

/// The agent's argument to execute the plan of the kernel command line in a system that has booted
/// by itself.
pub const IN_SYSTEM: &str = "guest";

/// The variable with the descriptor over which a measuring process reports to the load in its guest
/// when the first sample is due.
pub const BEGIN_FD: &str = "TARE_BEGIN_FD";

/// The fact of how long other work was watched in a guest, in ns.
pub const WATCHED: &str = "other work watched";

/// The fact of a task that ran in a guest besides the measurement:
/// `CPU PID KERNEL NS NAME`, with 1 for a thread of the kernel.
pub const OTHER_TASK: &str = "other task";

/// The kernel parameter with the address and prefix of the guest's card. It makes the guest a
/// server: of the plan's words, `workload=` names the service that [`SERVICES`] then runs, and
/// [`COMPUTES`] is passed on to it.
pub const ADDRESS: &str = "tare.address";

/// The word for how many ms the service `ping` computes at a time.
pub const COMPUTES: &str = "compute=";

/// The program of the network services.
pub const SERVICES: &str = "/tare-service";

/// The file that lists the modules to load, in order, one file name per line.
pub const MODULES: &str = "/modules/order";

/// The folder on which the scratch disk is mounted.
pub const SCRATCH: &str = "/scratch";

/// The tree of files on the scratch disk that loads read.
pub const TREE: &str = "/scratch/tree";

/// The serial number by which the scratch disk is found.
pub const SCRATCH_SERIAL: &str = "tare-scratch";

const MARKER: &str = "tare-init: ";

/// A message of init.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// The process that executed the plan ended with this status. The last message.
    Ended(u8),
    /// The plan could not be executed. The last message.
    Failed(&'a str),
}

impl<'a> Message<'a> {
    /// Finds a message in a line, behind any other text.
    pub fn parse(line: &'a str) -> Option<Self> {
        let (_, said) = line.rsplit_once(MARKER)?;
        match said.trim_end().split_once(' ')? {
            ("ended", status) => status.parse().ok().map(Self::Ended),
            ("failed", why) => Some(Self::Failed(why)),
            _ => None,
        }
    }
}

impl fmt::Display for Message<'_> {
    /// Writes the line that [`Message::parse`] reads, without newline.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(status) => write!(f, "{MARKER}ended {status}"),
            // One line, whatever the text.
            Self::Failed(why) => {
                write!(f, "{MARKER}failed ")?;
                why.chars()
                    .map(|c| if c.is_control() { ' ' } else { c })
                    .try_for_each(|c| f.write_char(c))
            }
        }
    }
}

/// A text written as one word without white space or quotes: bytes other than letters, digits and
/// `-._~:,=/+` become `%` and two hexadecimal digits.
#[derive(Clone, Copy, Debug)]
pub struct Encoded<'a>(pub &'a str);

impl fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~:,=/+".contains(&byte) {
                f.write_char(byte.into())?;
            } else {
                write!(f, "%{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Iterates over the bytes of a text that [`Encoded`] wrote. A `%` without two digits is kept.
pub fn decoded(word: &str) -> impl Iterator<Item = u8> {
    let mut rest = word.as_bytes();
    core::iter::from_fn(move || {
        let (&first, tail) = rest.split_first()?;
        if first == b'%'
            && let Some((digits, tail)) = tail.split_at_checked(2)
            && let Some(byte) = hexadecimal(digits)
        {
            rest = tail;
            return Some(byte);
        }
        rest = tail;
        Some(first)
    })
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let text = core::str::from_utf8(digits).ok()?;
    // `from_str_radix` would accept a sign.
    text.bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then(|| u8::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::{String, ToString};
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_is_found_behind_a_boot_message() {
        for says in [
            Message::Ended(0),
            Message::Ended(255),
            Message::Failed("no disk: ENOENT"),
        ] {
            let line = std::format!("[    1.2] {says}\r");
            assert_eq!(Message::parse(&line), Some(says));
        }
        for line in [
            "",
            "tare-init: ",
            "tare-init: ended 256",
            "tare-init: sang a song",
        ] {
            assert_eq!(Message::parse(line), None, "{line}");
        }
        assert_eq!(Message::Failed("a\nb").to_string(), "tare-init: failed a b");
    }

    #[test]
    fn an_encoded_text_is_readable_where_it_can_be() {
        let text = "stress-ng:--cpu 1 --x=\"50%\"";
        let encoded = Encoded(text).to_string();
        assert_eq!(encoded, "stress-ng:--cpu%201%20--x=%2250%25%22");
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in any::<String>()) {
            let encoded = Encoded(&text).to_string();
            prop_assert!(!encoded.contains(char::is_whitespace));
            let back: Vec<u8> = decoded(&encoded).collect();
            prop_assert_eq!(back, text.into_bytes());
        }

        #[test]
        fn any_word_ends_without_panic(word in any::<String>()) {
            let _ = decoded(&word).count();
        }
    }
}
