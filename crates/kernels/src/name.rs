//! The names of the distribution's kernels: `debian-cloud`, `debian-rt-6.12`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A way in which the distribution builds its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flavour {
    /// For any PC.
    Plain,
    /// For virtual machines: smaller, more drivers built in.
    Cloud,
    /// With PREEMPT_RT.
    Rt,
}

impl Flavour {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Cloud, Self::Rt];

    /// The flavour's own word, its kernels' name, and how the names of its packages end.
    fn words(self) -> [&'static str; 3] {
        match self {
            Self::Plain => ["plain", "debian", "amd64"],
            Self::Cloud => ["cloud", "debian-cloud", "cloud-amd64"],
            Self::Rt => ["rt", "debian-rt", "rt-amd64"],
        }
    }

    /// Returns the flavour's own word.
    pub fn word(self) -> &'static str {
        self.words()[0]
    }

    /// Returns the name by which kernels of this flavour are asked for.
    pub fn name(self) -> &'static str {
        self.words()[1]
    }

    /// Returns how the names of its packages end.
    pub(crate) fn package_suffix(self) -> &'static str {
        self.words()[2]
    }
}

/// A series of kernels: the first two numbers of the version, as in `6.12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Series {
    major: u16,
    minor: u16,
}

impl Series {
    /// The series that Debian 12 offers.
    pub const OFFERED: [Self; 2] = [Self::new(6, 1), Self::new(6, 12)];

    const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// Reads `6.12`; None if it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        let number = |text: &str| {
            let plain = text.bytes().all(|byte| byte.is_ascii_digit())
                && (text == "0" || !text.starts_with('0'));
            plain.then(|| text.parse().ok()).flatten()
        };
        Some(Self::new(number(major)?, number(minor)?))
    }

    /// Reads the series of a release or a version: `6.12` of `6.12.117+deb12-amd64`.
    pub fn of(release: &str) -> Option<Self> {
        let mut numbers = release.splitn(3, |c: char| !c.is_ascii_digit());
        Self::parse(&format!("{}.{}", numbers.next()?, numbers.next()?))
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A kernel of the distribution, as it is asked for: a flavour, and perhaps a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wanted {
    /// The flavour.
    pub flavour: Flavour,
    /// The series; None for the distribution's default.
    pub series: Option<Series>,
}

impl Wanted {
    /// Returns the kernels that Debian 12 offers: each flavour of each series.
    pub fn all() -> Vec<Self> {
        let of = |series| {
            Flavour::ALL.map(|flavour| Self {
                flavour,
                series: Some(series),
            })
        };
        Series::OFFERED.into_iter().flat_map(of).collect()
    }

    /// Reads `debian`, `debian-rt`, `debian-6.1`, `debian-cloud-6.12`; None if it is no such name.
    pub fn parse(text: &str) -> Option<Self> {
        // The longest name first: every name begins with `debian`.
        [Flavour::Cloud, Flavour::Rt, Flavour::Plain]
            .into_iter()
            .find_map(|flavour| {
                let rest = text.strip_prefix(flavour.name())?;
                let series = match rest.strip_prefix('-') {
                    None if rest.is_empty() => None,
                    series => Some(Series::parse(series?)?),
                };
                Some(Self { flavour, series })
            })
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.flavour.name())?;
        match self.series {
            Some(series) => write!(f, "-{series}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in [
            "debian",
            "debian-cloud",
            "debian-rt",
            "debian-6.1",
            "debian-cloud-6.12",
            "debian-rt-6.1",
        ] {
            assert_eq!(Wanted::parse(text).unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "debian-",
            "debian-6",
            "debian-6.1.2",
            "debian-06.1",
            "debian-6.",
            "debian-+6.1",
            "debian-rt-",
            "debian-rtx",
            "debian-cloud-6.1.192-2",
            "debian-6.99999999",
            "ubuntu",
            "Debian",
        ] {
            assert_eq!(Wanted::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_series_is_the_beginning_of_a_release() {
        let of = |release| Series::of(release).map(|series| series.to_string());
        assert_eq!(of("6.12.117+deb12-amd64").as_deref(), Some("6.12"));
        assert_eq!(of("6.1.0-56-amd64").as_deref(), Some("6.1"));
        assert_eq!(of("6.18-rc3").as_deref(), Some("6.18"));
        assert_eq!(of("linux"), None);
        assert_eq!(of("6"), None);
    }

    #[test]
    fn six_kernels_are_offered() {
        assert_eq!(Wanted::all().len(), 6);
    }
}
