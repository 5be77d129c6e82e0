//! How fast a load worked: what it achieved, by the time that it took.

use std::fmt;

use crate::model::Achieved;

/// An amount by time.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// The figure, in `unit`.
    pub value: f64,
    /// Its unit: `MB/s written`, `messages/s`, `CPUs`.
    pub unit: String,
}

impl Achieved {
    /// Returns the rate: bytes in MB/s (10⁶ bytes), CPU time as the number of CPUs that it kept
    /// busy, all else by the second. None if no time passed.
    pub fn rate(&self) -> Option<Rate> {
        let seconds = self.ns as f64 / 1e9;
        if seconds == 0.0 {
            return None;
        }
        let per_second = self.amount as f64 / seconds;
        let rate = |value, unit: String| Some(Rate { value, unit });
        if let Some(how) = self.what.strip_prefix("bytes") {
            rate(per_second / 1e6, format!("MB/s{how}"))
        } else if self.what == "ns of CPU time" {
            rate(per_second / 1e9, "CPUs".to_owned())
        } else {
            let unit = match self.what.split_once(' ') {
                Some((what, how)) if !how.contains(' ') => format!("{what}/s {how}"),
                _ => format!("{}/s", self.what),
            };
            rate(per_second, unit)
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Three digits that say something, and no decimals that don't.
        let decimals = match self.value {
            value if value < 10.0 => 2,
            value if value < 100.0 => 1,
            _ => 0,
        };
        write!(f, "{:.decimals$} {}", self.value, self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_as_people_say_them() {
        let rate = |what: &str, amount, ns| {
            let what = what.to_owned();
            Achieved { what, amount, ns }
                .rate()
                .map(|rate| rate.to_string())
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            rate("bytes written", 500_000_000, 2_000_000_000),
            text("250 MB/s written")
        );
        assert_eq!(rate("messages", 5, 2_000_000_000), text("2.50 messages/s"));
        assert_eq!(
            rate("ns of CPU time", 3_800_000_000, 2_000_000_000),
            text("1.90 CPUs")
        );
        assert_eq!(
            rate("packets sent", 123_456, 1_000_000_000),
            text("123456 packets/s sent")
        );
        assert_eq!(
            rate("bogo ops of cpu", 70, 1_000_000_000),
            text("70.0 bogo ops of cpu/s")
        );
        assert_eq!(rate("files", 1, 0), None);
    }
}
