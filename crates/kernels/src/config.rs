//! What a kernel was built with.

use std::fmt;

/// The state of an option in a kernel's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigOption {
    /// Built in: `y`.
    Yes,
    /// Built as a module: `m`.
    Module,
    /// Not set, or unknown to this kernel.
    No,
    /// A number or a text, without its quotes.
    Value(String),
}

impl ConfigOption {
    /// Looks an option up in the text of a configuration; `name` is without `CONFIG_`.
    pub(crate) fn find(config: &str, name: &str) -> Self {
        let value = config.lines().find_map(|line| {
            let (key, value) = line.strip_prefix("CONFIG_")?.split_once('=')?;
            (key == name).then_some(value)
        });
        match value {
            None | Some("n") => Self::No,
            Some("y") => Self::Yes,
            Some("m") => Self::Module,
            Some(value) => Self::Value(value.trim_matches('"').to_owned()),
        }
    }

    /// Returns whether the option is built in.
    pub fn is_yes(&self) -> bool {
        *self == Self::Yes
    }
}

impl fmt::Display for ConfigOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Yes => "y",
            Self::Module => "m",
            Self::No => "n",
            Self::Value(value) => value,
        })
    }
}

/// Names how a kernel preempts itself, from the text of its configuration: `PREEMPT_RT`,
/// `dynamic, voluntary` (the choice can be changed by `preempt=` at boot), `full`…
pub(crate) fn preemption(config: &str) -> String {
    let is = |name| ConfigOption::find(config, name).is_yes();
    if is("PREEMPT_RT") {
        return "PREEMPT_RT".to_owned();
    }
    // With PREEMPT_DYNAMIC the built kernel is a fully preemptible one, and CONFIG_PREEMPT_BUILD is
    // set in addition to the model that it boots with.
    let models = [
        ("PREEMPT_LAZY", "lazy"),
        ("PREEMPT", "full"),
        ("PREEMPT_VOLUNTARY", "voluntary"),
    ];
    let begins = models.into_iter().find(|(option, _)| is(option));
    let begins = begins.map_or("none", |(_, model)| model);
    match is("PREEMPT_DYNAMIC") {
        true => format!("dynamic, {begins}"),
        false => begins.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "\
# CONFIG_PREEMPT_RT is not set
CONFIG_PREEMPT_VOLUNTARY=y
CONFIG_PREEMPT_DYNAMIC=y
CONFIG_EXT4_FS=m
CONFIG_HZ=250
CONFIG_DEFAULT_HOSTNAME=\"(none)\"
";

    #[test]
    fn options_are_found_by_their_whole_name() {
        let find = |name| ConfigOption::find(CONFIG, name);
        assert_eq!(find("PREEMPT_RT"), ConfigOption::No);
        assert_eq!(find("PREEMPT"), ConfigOption::No);
        assert_eq!(find("PREEMPT_DYNAMIC"), ConfigOption::Yes);
        assert_eq!(find("EXT4_FS"), ConfigOption::Module);
        assert_eq!(find("HZ").to_string(), "250");
        assert_eq!(find("DEFAULT_HOSTNAME").to_string(), "(none)");
    }

    #[test]
    fn preemption_is_named_as_it_begins() {
        assert_eq!(preemption(CONFIG), "dynamic, voluntary");
        assert_eq!(
            preemption("CONFIG_PREEMPT_RT=y\nCONFIG_PREEMPT=y\n"),
            "PREEMPT_RT"
        );
        assert_eq!(preemption("CONFIG_PREEMPT_NONE=y\n"), "none");
        assert_eq!(preemption("CONFIG_PREEMPT=y\n"), "full");
    }
}
