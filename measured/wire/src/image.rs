//! The settings of the unikernel, as words.
//!
//! They are on the kernel command line among the words of the service, for example
//! `service=bench irq=on timer-hz=250 workload=ID key=value`. Keys with a dot belong to devices:
//! QEMU adds `virtio_mmio.device=…`.

use core::fmt;

use crate::PROTOCOL;
use crate::words::PlanError;

/// The name of the ELF note that holds the protocol of an image's records, so that it is known
/// before the image boots.
pub const NOTE_NAME: [u8; 4] = *b"tare";

/// The type of the note.
pub const NOTE_TYPE: u32 = 1;

/// The note of an image with [`PROTOCOL`], for its section `.note.tare`: length of the name with
/// its final zero, length of the content, type, name, content.
pub const NOTE: [u32; 6] = [
    5,
    4,
    NOTE_TYPE,
    u32::from_le_bytes(NOTE_NAME),
    0,
    PROTOCOL as u32,
];

/// The settings of the unikernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings<'a> {
    /// The service for which the command line is meant; an image rejects those of others.
    pub service: Option<&'a str>,
    /// Ticks per second. None if interrupts are disabled.
    pub timer_hz: Option<u32>,
    /// The number of CPUs to start, with the first.
    pub cpus: u32,
    /// The pages that map the buffers; those of the first page tables if None.
    pub pages: Option<Pages>,
}

/// The size of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// 4 KiB.
    Small,
    /// 2 MiB.
    Large,
    /// 1 GiB.
    Giant,
}

impl Pages {
    /// All, each with its word.
    pub const WORDS: [(Self, &'static str); 3] = [
        (Self::Small, "4K"),
        (Self::Large, "2M"),
        (Self::Giant, "1G"),
    ];

    /// Returns its word.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize].1
    }
}

/// The default rate of the tick, that of Debian's kernels.
pub const DEFAULT_TIMER_HZ: u32 = 250;

/// Maximum rate of the tick.
pub const MAX_TIMER_HZ: u32 = 100_000;

/// Maximum number of CPUs.
pub const MAX_CPUS: u32 = 255;

impl Default for Settings<'_> {
    fn default() -> Self {
        Self {
            service: None,
            timer_hz: None,
            cpus: 1,
            pages: None,
        }
    }
}

impl<'a> Settings<'a> {
    /// Reads the settings among the words of a command line, and ignores other words.
    ///
    /// # Errors
    ///
    /// Returns [`PlanError`] for an invalid value and for a repeated key.
    pub fn parse(words: impl IntoIterator<Item = &'a str>) -> Result<Self, PlanError<'a>> {
        let (mut service, mut irq, mut timer_hz, mut cpus) = (None, None, None, None);
        let mut pages = None;
        for (key, value) in words.into_iter().filter_map(|word| word.split_once('=')) {
            let want = |wanted| PlanError::BadValue { key, value, wanted };
            let is_again = match key {
                "service" => service.replace(value).is_some(),
                "irq" => {
                    let place = ["off", "on"].iter().position(|word| *word == value);
                    let place = place.ok_or(want("on or off"))?;
                    irq.replace(place == 1).is_some()
                }
                "timer-hz" => {
                    let hz = number(value, MAX_TIMER_HZ);
                    let hz = hz.ok_or(want("a number from 1 to 100000"))?;
                    timer_hz.replace(hz).is_some()
                }
                "cpus" => {
                    let count = number(value, MAX_CPUS);
                    let count = count.ok_or(want("a number from 1 to 255"))?;
                    cpus.replace(count).is_some()
                }
                "pages" => {
                    let size = Pages::WORDS.iter().find(|(_, word)| *word == value);
                    let (size, _) = size.ok_or(want("4K, 2M or 1G"))?;
                    pages.replace(*size).is_some()
                }
                _ => false,
            };
            if is_again {
                return Err(PlanError::Twice(key));
            }
        }
        let rate = timer_hz.unwrap_or(DEFAULT_TIMER_HZ);
        Ok(Self {
            service,
            timer_hz: irq.unwrap_or(timer_hz.is_some()).then_some(rate),
            cpus: cpus.unwrap_or(1),
            pages,
        })
    }

    /// Returns whether a word is for the service: neither a setting nor a device's.
    pub fn is_for_service(word: &str) -> bool {
        let key = word.split_once('=').map_or(word, |(key, _)| key);
        !matches!(key, "service" | "irq" | "timer-hz" | "cpus" | "pages") && !key.contains('.')
    }
}

impl fmt::Display for Settings<'_> {
    /// Writes the settings in the words that [`Settings::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(service) = self.service {
            write!(f, "service={service} ")?;
        }
        match self.timer_hz {
            Some(hz) => write!(f, "irq=on timer-hz={hz}")?,
            None => f.write_str("irq=off")?,
        }
        write!(f, " cpus={}", self.cpus)?;
        self.pages
            .map_or(Ok(()), |pages| write!(f, " pages={}", pages.word()))
    }
}

fn number(value: &str, most: u32) -> Option<u32> {
    value
        .parse()
        .ok()
        .filter(|number| (1..=most).contains(number))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString;
    use std::vec::Vec;

    use super::*;

    fn parse(text: &str) -> Result<Settings<'_>, PlanError<'_>> {
        Settings::parse(text.split_whitespace())
    }

    #[test]
    fn settings_are_read_among_the_words_of_a_plan() {
        let line = "service=bench irq=on workload=gap repetitions=5 timer-hz=1000 cpus=2 \
                    pages=1G virtio_mmio.device=512@0xfeb00e00:12";
        let settings = Settings {
            service: Some("bench"),
            timer_hz: Some(1_000),
            cpus: 2,
            pages: Some(Pages::Giant),
        };
        assert_eq!(parse(line), Ok(settings));
        let words = line.split_whitespace();
        let rest: Vec<_> = words
            .filter(|word| Settings::is_for_service(word))
            .collect();
        assert_eq!(rest, ["workload=gap", "repetitions=5"]);
    }

    #[test]
    fn interrupts_are_off_unless_asked_for_and_a_rate_asks_for_them() {
        for (line, timer_hz) in [
            ("", None),
            ("irq=off", None),
            ("irq=off timer-hz=100", None),
            ("irq=on", Some(DEFAULT_TIMER_HZ)),
            ("timer-hz=100", Some(100)),
        ] {
            assert_eq!(parse(line).unwrap().timer_hz, timer_hz, "{line}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let pages = Pages::WORDS.map(|(pages, _)| Some(pages));
        for pages in pages.into_iter().chain([None]) {
            for timer_hz in [None, Some(1), Some(MAX_TIMER_HZ)] {
                for service in [None, Some("dns")] {
                    let settings = Settings {
                        service,
                        timer_hz,
                        cpus: 7,
                        pages,
                    };
                    assert_eq!(parse(&settings.to_string()), Ok(settings));
                }
            }
        }
    }

    #[test]
    fn wrong_values_are_refused() {
        for line in [
            "irq=maybe",
            "pages=4M",
            "timer-hz=0",
            "timer-hz=100001",
            "cpus=0",
            "cpus=256",
            "irq=on irq=off",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
