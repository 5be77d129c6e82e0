//! How durations and kernel settings are written, on the command line and in studies.

use std::fmt::Display;
use std::time::Duration;

/// The units of time, with their length in ns.
const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Reads a duration above 0 with its unit: `500ms`, `90s`, `5m`, `2h`.
///
/// # Errors
///
/// Returns what would be right.
pub fn duration(text: &str) -> Result<Duration, String> {
    match nanoseconds(text, None)? {
        0 => Err("want a duration above 0".to_owned()),
        ns => Ok(Duration::from_nanos(ns)),
    }
}

/// Reads a time of nanoseconds to days, as the options and parameters of a latency measurement are
/// written: `500ns`, `100us`, `2.5ms`, `25s`, `2m`, `1h`, `1d`. A bare number counts as `bare`, if
/// that is a unit.
///
/// # Errors
///
/// Returns what would be right.
pub fn nanoseconds(text: &str, bare: Option<&str>) -> Result<u64, String> {
    let wanted = || match bare {
        Some(unit) => format!("want a number, of {unit} or with a unit: ns, us, ms, s, m, h or d"),
        None => "want a number with a unit: ns, us, ms, s, m, h or d".to_owned(),
    };
    let is_digit = |c: char| c.is_ascii_digit();
    // Of 1e6s, the first letter belongs to the number.
    let is_of_number =
        |at: usize, c| is_digit(c) || c == '.' || c == 'e' && text[at + 1..].starts_with(is_digit);
    let mut letters = text.char_indices();
    let unit_at = letters.find_map(|(at, c)| (!is_of_number(at, c)).then_some(at));
    let (number, unit) = match unit_at {
        Some(at) => text.split_at(at),
        None => (text, bare.ok_or_else(wanted)?),
    };
    // With the sign for micro, or the letter mu.
    let unit = if matches!(unit, "µs" | "\u{3bc}s") {
        "us"
    } else {
        unit
    };
    let known = UNITS.iter().find(|(name, _)| *name == unit);
    let (_, factor) = *known.ok_or_else(wanted)?;
    let too_long = || "want a time that a clock can hold".to_owned();
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(too_long);
    }
    let number: f64 = number.parse().map_err(|_| wanted())?;
    let ns = (number * factor as f64).round();
    // Beyond 2^53 a fraction is none any more.
    if ns < 9e15 {
        Ok(ns as u64)
    } else {
        Err(too_long())
    }
}

/// Reads a whole number: `1000000`, `1e6`, `2.5e3`.
pub fn whole(text: &str) -> Option<u64> {
    // Beyond 2^53 not every whole number is one of floating point.
    let exact = |number: &f64| number.fract() == 0.0 && (0.0..9e15).contains(number);
    let number = || Some(text.parse::<f64>().ok().filter(exact)? as u64);
    text.parse().ok().or_else(number)
}

/// Writes a time exactly, in the largest unit of which it is a whole number: `100 µs`, `1500 ns`,
/// `25 s`.
pub fn exact(ns: u64) -> String {
    let (number, unit) = in_largest_unit(ns);
    let unit = if unit == "us" { "µs" } else { unit };
    format!("{number} {unit}")
}

/// Writes a time exactly as one word that [`nanoseconds`] reads: `100us`, `1500ns`, `25s`.
pub fn exact_word(ns: u64) -> String {
    let (number, unit) = in_largest_unit(ns);
    format!("{number}{unit}")
}

/// Finds the largest unit up to seconds of which a time is a whole number.
fn in_largest_unit(ns: u64) -> (u64, &'static str) {
    let mut units = UNITS[..4].iter().rev();
    let fitting = units.find(|(_, factor)| ns >= *factor && ns.is_multiple_of(*factor));
    fitting.map_or((ns, "ns"), |(unit, factor)| (ns / factor, unit))
}

/// Writes a duration as people say it: `8 s`, `3 min 20 s`, `2 h 5 min`.
pub fn human(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().ceil() as u64;
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, 0, _) => format!("{h} h"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

/// Writes a limit in whole seconds, or a shorter one in ms: `90 s`, `5 ms`.
pub(crate) fn limit(seconds: f64) -> String {
    match seconds < 1.0 {
        true => format!("{:.0} ms", seconds * 1e3),
        false => format!("{seconds:.0} s"),
    }
}

/// Writes a number with its noun: `1 cell`, `5 cells`.
pub fn counted<N: Display + PartialEq + From<u8>>(number: N, one: &str, many: &str) -> String {
    let noun = if number == N::from(1) { one } else { many };
    format!("{number} {noun}")
}

/// Returns the file of a kernel setting, which is given as that or, as for sysctl, by its path
/// below /proc/sys with dots.
pub fn setting_file(name: &str) -> String {
    if name.starts_with('/') {
        name.to_owned()
    } else {
        format!("/proc/sys/{}", name.replace('.', "/"))
    }
}

/// Reads a size in bytes: `512M`, `8G`, with binary units.
pub fn bytes(text: &str) -> Option<u64> {
    let (number, factor) = match text.split_at_checked(text.len().checked_sub(1)?)? {
        (number, "K") => (number, 1 << 10),
        (number, "M") => (number, 1 << 20),
        (number, "G") => (number, 1 << 30),
        _ => (text, 1),
    };
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = is_number.then(|| number.parse().ok()).flatten()?;
    number.checked_mul(factor).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit_and_a_positive_number() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "90", "s", "-1s", "0s", "1e400s", "..s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_read_with_their_unit_or_with_that_of_the_option() {
        let us = |text| nanoseconds(text, Some("us"));
        assert_eq!(us("100"), Ok(100_000));
        assert_eq!(us("0.5"), Ok(500));
        assert_eq!(us("1.5ms"), Ok(1_500_000));
        assert_eq!(us("31d"), Ok(31 * 86_400 * 1_000_000_000));
        assert_eq!(nanoseconds("25s", None), Ok(25_000_000_000));
        assert_eq!(nanoseconds("500ns", None), Ok(500));
        for wrong in [
            "",
            ".",
            "1.2.3",
            "s",
            "-1s",
            "5parsecs",
            "99999999999999d",
            "1e9s",
        ] {
            assert!(us(wrong).is_err(), "{wrong}");
        }
        assert!(nanoseconds("100", None).unwrap_err().contains("unit"));
    }

    #[test]
    fn a_whole_number_may_have_an_exponent() {
        for (text, number) in [("1000", 1_000), ("1e6", 1_000_000), ("2.5e3", 2_500)] {
            assert_eq!(whole(text), Some(number));
        }
        for text in ["", "1.5", "-1", "1e-1", "1e99", "nan", "e"] {
            assert_eq!(whole(text), None, "{text}");
        }
        assert_eq!(nanoseconds("5\u{3bc}s", None), Ok(5_000));
        assert_eq!(nanoseconds("1e3us", None), Ok(1_000_000));
        assert_eq!(nanoseconds("2.5e1", Some("s")), Ok(25_000_000_000));
    }

    #[test]
    fn times_are_written_exactly_and_read_back() {
        for (ns, text, word) in [
            (0, "0 ns", "0ns"),
            (1_500, "1500 ns", "1500ns"),
            (100_000, "100 µs", "100us"),
            (2_500_000, "2500 µs", "2500us"),
            (60_000_000_000, "60 s", "60s"),
        ] {
            assert_eq!((exact(ns).as_str(), exact_word(ns).as_str()), (text, word));
            assert_eq!(nanoseconds(word, None), Ok(ns));
        }
    }

    #[test]
    fn durations_read_as_people_say_them() {
        let of = |seconds| human(Duration::from_secs_f64(seconds));
        assert_eq!(of(0.2), "1 s");
        assert_eq!(of(59.0), "59 s");
        assert_eq!(of(60.0), "1 min");
        assert_eq!(of(200.0), "3 min 20 s");
        assert_eq!(of(7_500.0), "2 h 5 min");
    }

    #[test]
    fn sizes_have_binary_units() {
        for (text, expected) in [
            ("512M", 512 << 20),
            ("8G", 8 << 30),
            ("4096", 4096),
            ("1K", 1024),
        ] {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
        for wrong in ["", "G", "0", "-1", "+1", "1.5G", "99999999999G", "1µ"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
