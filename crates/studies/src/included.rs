//! The studies that come with tare, compiled into it.
//!
//! They lie in the repository's `studies/` folder, so that they can be read, copied and changed.

/// Lists the study files, by the name under which `tare reproduce` runs them.
pub const STUDIES: &[Included] = &[
    Included {
        name: "kot-2019",
        file: "studies/kot-2019.toml",
        text: include_str!("../../../studies/kot-2019.toml"),
    },
    Included {
        name: "landolfi-2018",
        file: "studies/landolfi-2018.toml",
        text: include_str!("../../../studies/landolfi-2018.toml"),
    },
    Included {
        name: "landolfi-2018-deterministic",
        file: "studies/landolfi-2018-deterministic.toml",
        text: include_str!("../../../studies/landolfi-2018-deterministic.toml"),
    },
    Included {
        name: "calder-2020",
        file: "studies/calder-2020.toml",
        text: include_str!("../../../studies/calder-2020.toml"),
    },
    Included {
        name: "cse221-2022",
        file: "studies/cse221-2022.toml",
        text: include_str!("../../../studies/cse221-2022.toml"),
    },
];

/// The study of `tare quick`.
pub const QUICK: Included = Included {
    name: "quick",
    file: "studies/quick.toml",
    text: include_str!("../../../studies/quick.toml"),
};

/// A study file that comes with tare.
#[derive(Clone, Copy, Debug)]
pub struct Included {
    /// Its name.
    pub name: &'static str,
    /// Where it is in the repository.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
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
