//! How durations and kernel settings are written, on the command line and in studies.

use std::time::Duration;

/// Reads a duration of milliseconds, seconds, minutes or hours: `500ms`, `90s`, `5m`, `2h`.
///
/// # Errors
///
/// Returns what would be right.
pub fn duration(text: &str) -> Result<Duration, String> {
    const WANTED: &str = "want a number and a unit, ms, s, m or h: 90s";
    let unit_at = text
        .find(|c: char| c != '.' && !c.is_ascii_digit())
        .ok_or(WANTED)?;
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.parse().map_err(|_| WANTED)?;
    let seconds = match unit {
        "ms" => number / 1e3,
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3_600.0,
        _ => return Err(WANTED.to_owned()),
    };
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("want a duration above 0 that a clock can hold".to_owned()),
    }
}

/// Writes a duration as people say it: `8 s`, `3 min 20 s`, `2 h 5 min`.
#[must_use]
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

/// Returns the file of a kernel setting, which is given as that or, as for sysctl, by its path below
/// /proc/sys with dots.
#[must_use]
pub fn setting_file(name: &str) -> String {
    if name.starts_with('/') {
        name.to_owned()
    } else {
        format!("/proc/sys/{}", name.replace('.', "/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit_and_a_positive_number() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "90", "s", "-1s", "0s", "1d", "1e400s", "..s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
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
}
