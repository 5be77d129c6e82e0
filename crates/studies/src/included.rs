//! The studies that come with tare, compiled into it.
//!
//! They lie in the repository's `studies/` folder, so that they can be read, copied and changed.

use crate::{Study, StudyError, Variant};

macro_rules! included {
    ($name:literal) => {
        Included {
            name: $name,
            text: include_str!(concat!("../../../studies/", $name, ".toml")),
        }
    };
}

/// The study files, by the name under which `tare reproduce` runs them.
pub const STUDIES: &[Included] = &[
    included!("kot-2019"),
    included!("landolfi-2018"),
    included!("landolfi-2018-deterministic"),
    included!("calder-2020"),
    included!("cse221-2022"),
    included!("includeos-2015"),
];

/// The study of `tare quick`.
pub const QUICK: Included = included!("quick");

/// A study file that comes with tare.
#[derive(Clone, Copy, Debug)]
pub struct Included {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

impl Included {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// Returns [`StudyError::NoQuick`] if it has no shorter variant.
    pub fn study(&self, variant: Variant) -> Result<Study, StudyError> {
        Study::parse(&format!("studies/{}.toml", self.name), self.text, variant)
    }
}

/// Finds the variant of a published study whose guests count instructions, so that it repeats
/// exactly.
#[must_use]
pub fn deterministic(name: &str) -> Option<&'static Included> {
    find(&format!("{name}-deterministic"))
}

/// Finds a study by its name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Included> {
    let mut all = STUDIES.iter().chain([&QUICK]);
    all.find(|study| study.name == name)
}
