//! The words that only an image takes: they say how the unikernel beneath the service behaves.
//!
//! They stand on the kernel command line among the words of the service, for example
//! `service=bench irq=on timer-hz=250 workload=ID key=value`. Words with a dot in their
//! key belong to devices: QEMU puts `virtio_mmio.device=…` there by itself.

use core::fmt;

use crate::PROTOCOL;
use crate::words::PlanError;

/// The name of the ELF note by which an image says which protocol its records are of, so that this is known before
/// it boots.
pub const NOTE_NAME: [u8; 4] = *b"tare";

/// The type of that note.
pub const NOTE_TYPE: u32 = 1;

/// The note of an image that speaks [`PROTOCOL`], for its section `.note.tare`: length of the name with its final
/// zero, length of the content, type, name, content.
pub const NOTE: [u32; 6] = [
    5,
    4,
    NOTE_TYPE,
    u32::from_le_bytes(NOTE_NAME),
    0,
    PROTOCOL as u32,
];

/// Says how the unikernel behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings<'a> {
    /// Which service the command line is for; an image refuses those of others.
    pub service: Option<&'a str>,
    /// Ticks a second, or None if interrupts are kept out.
    pub timer_hz: Option<u32>,
    /// How many CPUs are brought up, the first included.
    pub cpus: u32,
}

/// The rate of the tick unless the words say otherwise: Debian's kernels have the same.
pub const DEFAULT_TIMER_HZ: u32 = 250;

/// The greatest rate of the tick.
pub const MAX_TIMER_HZ: u32 = 100_000;

/// The greatest number of CPUs.
pub const MAX_CPUS: u32 = 255;

impl Default for Settings<'_> {
    fn default() -> Self {
        Self {
            service: None,
            timer_hz: None,
            cpus: 1,
        }
    }
}

impl<'a> Settings<'a> {
    /// Reads the settings among the words of a command line; leaves out all others.
    ///
    /// # Errors
    ///
    /// Returns [`PlanError`] for a value that the key does not take, and for a key that stands
    /// twice.
    pub fn parse(words: impl IntoIterator<Item = &'a str>) -> Result<Self, PlanError<'a>> {
        let (mut service, mut irq, mut timer_hz, mut cpus) = (None, None, None, None);
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
        })
    }

    /// Tells whether a word is the service's: neither a setting nor a device's.
    #[must_use]
    pub fn is_for_service(word: &str) -> bool {
        let key = word.split_once('=').map_or(word, |(key, _)| key);
        !matches!(key, "service" | "irq" | "timer-hz" | "cpus") && !key.contains('.')
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
        write!(f, " cpus={}", self.cpus)
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
                    virtio_mmio.device=512@0xfeb00e00:12";
        let settings = Settings {
            service: Some("bench"),
            timer_hz: Some(1_000),
            cpus: 2,
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
        for timer_hz in [None, Some(1), Some(MAX_TIMER_HZ)] {
            for service in [None, Some("dns")] {
                let settings = Settings {
                    service,
                    timer_hz,
                    cpus: 7,
                };
                assert_eq!(parse(&settings.to_string()), Ok(settings));
            }
        }
    }

    #[test]
    fn wrong_values_are_refused() {
        for line in [
            "irq=maybe",
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
