//! What the laboratory and the agent as `/init` of a Linux guest agree on.
//!
//! *In* goes the kernel command line: the plan's words stand behind `--`, as Linux passes arguments
//! to init, and a load in [`LOAD`]. *Out* come records over a virtio port that is named [`PORT`],
//! or over the console if there is none, and beside them what init itself has to say ([`Says`]):
//! the last of it ends the guest, because the host has then read all that was written before.
//!
//! While the plan runs, a byte that the host writes to the port asks the measured process to end and to report what it
//! has.

use core::fmt::{self, Write};

/// The name of the virtio port that carries the records.
pub const PORT: &str = "tare";

/// The kernel's parameter that holds the text of a load, as [`Encoded`] writes it.
pub const LOAD: &str = "tare.load";

/// The kernel's parameter that holds the size of a RAM disk on [`SCRATCH`], as tmpfs takes it. Without it a disk
/// is looked for.
pub const RAM_SCRATCH: &str = "tare.ram";

/// The kernel's parameter that asks init to go on into the root file system on a disk, and the
/// word for it.
pub const ROOT: (&str, &str) = ("tare.root", "debian");

/// The kernel's parameter that asks init to do what the plan says by itself and at once, on the console, and to end the
/// guest by a reset: the shortest way.
pub const DIRECT: &str = "tare.direct";

/// The serial number by which the disk with the root file system is found.
pub const ROOT_SERIAL: &str = "tare-root";

/// The agent's argument that asks it to execute the plan of the kernel command line in a system
/// that has booted by itself.
pub const IN_SYSTEM: &str = "guest";

/// The variable that names the descriptor by which a measuring process tells the load in its guest when the first
/// sample is due.
pub const BEGIN_FD: &str = "TARE_BEGIN_FD";

/// The file that lists the modules to load, one file name a line, in order.
pub const MODULES: &str = "/modules/order";

/// The folder on which the scratch disk is mounted.
pub const SCRATCH: &str = "/scratch";

/// The tree of files on the scratch disk that loads read.
pub const TREE: &str = "/scratch/tree";

/// The serial number by which the scratch disk is found.
pub const SCRATCH_SERIAL: &str = "tare-scratch";

const MARKER: &str = "tare-init: ";

/// What init says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says<'a> {
    /// The plan was executed by a process that ended with this status. The last line.
    Ended(u8),
    /// It could not be executed. The last line.
    Failed(&'a str),
}

impl<'a> Says<'a> {
    /// Finds what init says in a line, whatever stands before it.
    #[must_use]
    pub fn parse(line: &'a str) -> Option<Self> {
        let (_, said) = line.rsplit_once(MARKER)?;
        match said.trim_end().split_once(' ')? {
            ("ended", status) => status.parse().ok().map(Self::Ended),
            ("failed", why) => Some(Self::Failed(why)),
            _ => None,
        }
    }
}

impl fmt::Display for Says<'_> {
    /// Writes the line that [`Says::parse`] reads, without newline.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(status) => write!(f, "{MARKER}ended {status}"),
            // One line, whatever is told.
            Self::Failed(why) => {
                write!(f, "{MARKER}failed ")?;
                why.chars()
                    .map(|c| if c.is_control() { ' ' } else { c })
                    .try_for_each(|c| f.write_char(c))
            }
        }
    }
}

/// Writes a text as one word without white space or quotes: what is neither a letter, a digit nor
/// one of `-._~:,=/+` becomes `%` and two hexadecimal digits for each byte.
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

/// Iterates over the bytes of a text that [`Encoded`] wrote. A `%` without two digits stands for
/// itself.
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
    // `from_str_radix` would take a sign.
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
    fn what_init_says_is_found_behind_a_boot_message() {
        for says in [
            Says::Ended(0),
            Says::Ended(255),
            Says::Failed("no disk: ENOENT"),
        ] {
            let line = std::format!("[    1.2] {says}\r");
            assert_eq!(Says::parse(&line), Some(says));
        }
        for line in [
            "",
            "tare-init: ",
            "tare-init: ended 256",
            "tare-init: sang a song",
        ] {
            assert_eq!(Says::parse(line), None, "{line}");
        }
        assert_eq!(Says::Failed("a\nb").to_string(), "tare-init: failed a b");
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
