//! Counters and gauges as text for Prometheus (exposition format 0.0.4).

use core::fmt::{self, Write};

/// The media type of the format.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A figure with its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric<'a> {
    /// The name, which ends with the unit. Figures of one name must follow each other.
    pub name: &'a str,
    /// The description, one sentence.
    pub help: &'a str,
    /// The kind.
    pub kind: Kind,
    /// A label and its value, where several figures have one name.
    pub label: Option<(&'a str, &'a str)>,
    /// The value.
    pub value: Value,
}

/// A kind of figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A figure that only grows.
    Counter,
    /// A figure that goes up and down.
    Gauge,
}

/// A value, without floating point, which an image would have to link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number of something.
    Count(u64),
    /// A time in ns, written in seconds, the unit of Prometheus.
    Nanoseconds(u64),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Nanoseconds(ns) => write!(f, "{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000),
        }
    }
}

impl Metric<'_> {
    /// Writes the description of all figures of this name.
    ///
    /// # Errors
    ///
    /// Fails if `to` does.
    pub fn describe(&self, to: &mut impl Write) -> fmt::Result {
        let (name, text) = (self.name, self.help);
        let help = Escaped {
            text,
            quotes: false,
        };
        let kind = match self.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        writeln!(to, "# HELP {name} {help}\n# TYPE {name} {kind}")
    }
}

impl fmt::Display for Metric<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if let Some((label, text)) = self.label {
            let value = Escaped { text, quotes: true };
            write!(f, "{{{label}=\"{value}\"}}")?;
        }
        writeln!(f, " {}", self.value)
    }
}

/// Text with escaped line ends, and with escaped quotes for the value of a label.
struct Escaped<'a> {
    text: &'a str,
    quotes: bool,
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.chars().try_for_each(|letter| match letter {
            '\\' => f.write_str("\\\\"),
            '\n' => f.write_str("\\n"),
            '"' if self.quotes => f.write_str("\\\""),
            letter => f.write_char(letter),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};

    #[test]
    fn a_metric_is_described_and_written_as_prometheus_reads_it() {
        let metric = Metric {
            name: "boot_seconds",
            help: "When \"each\" part\\of the boot had ended.",
            kind: Kind::Gauge,
            label: Some(("part", "a \"b\"\n")),
            value: Value::Nanoseconds(1_020_000_003),
        };
        let mut text = String::new();
        metric.describe(&mut text).unwrap();
        assert_eq!(
            text + &metric.to_string(),
            "# HELP boot_seconds When \"each\" part\\\\of the boot had ended.\n\
             # TYPE boot_seconds gauge\n\
             boot_seconds{part=\"a \\\"b\\\"\\n\"} 1.020000003\n"
        );
    }

    #[test]
    fn a_metric_without_a_label_has_no_braces() {
        let metric = Metric {
            name: "packets_total",
            help: "",
            kind: Kind::Counter,
            label: None,
            value: Value::Count(u64::MAX),
        };
        assert_eq!(metric.to_string(), "packets_total 18446744073709551615\n");
    }
}
