//! Compares the properties that the guest reports with the requested ones.
//!
//! A kernel silently ignores a parameter that it does not know or that its build does not use. The
//! figures would then be those of another place.

use tare_wire::cpus::Cpus;

use super::settings::Settings;
use crate::Facts;
use crate::options::Word;

/// Checks the guest's properties.
///
/// # Errors
///
/// Returns the first thing that is otherwise.
pub(super) fn verify(settings: &Settings, release: &str, facts: Facts<'_>) -> Result<(), String> {
    let told = |name: &str| {
        facts(name).ok_or_else(|| {
            format!("the guest does not tell its {name}, so that it can't be checked")
        })
    };
    let found = told("kernel release")?;
    if found != release {
        return Err(format!("the guest runs the kernel {found}, not {release}"));
    }
    if let Some(preempt) = settings.preempt {
        let found = told("preemption model")?;
        if found != preempt.word() {
            return Err(format!(
                "the guest's preemption model is {found}, not {}: its kernel does not know \
                 preempt={0}, or takes no preempt= at all",
                preempt.word()
            ));
        }
    }
    let all: Cpus = (0..settings.cpus).collect();
    for (name, wanted, option) in [
        ("CPUs online", &all, "cpus"),
        ("isolated CPUs", &settings.isolate, "isolate"),
        ("nohz_full CPUs", &settings.nohz_full, "nohz_full"),
    ] {
        let is_asked_for = option == "cpus" || !wanted.is_empty();
        if is_asked_for && told(name)?.parse::<Cpus>().ok().as_ref() != Some(wanted) {
            return Err(format!(
                "the guest's {name} are {}, not {wanted} as {option}= asks for",
                told(name)?
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec;

    fn check(options: &str, facts: &[(&str, &str)]) -> Result<(), String> {
        let settings = Settings::read(&spec::options("linux", options)).unwrap();
        verify(&settings, "6.1", &|name| {
            let fact = facts.iter().find(|fact| fact.0 == name)?;
            Some(fact.1)
        })
    }

    const PLAIN: [(&str, &str); 2] = [("kernel release", "6.1"), ("CPUs online", "0")];

    #[test]
    fn what_was_not_asked_for_is_not_checked() {
        assert_eq!(check("", &PLAIN), Ok(()));
        let more = [
            ("kernel release", "6.1"),
            ("CPUs online", "0-1"),
            ("preemption model", "full"),
            ("isolated CPUs", "1"),
            ("nohz_full CPUs", "1"),
        ];
        assert_eq!(check("cpus=2", &more), Ok(()));
        assert_eq!(
            check("cpus=2,isolate=1,nohz_full=1,preempt=full", &more),
            Ok(())
        );
    }

    #[test]
    fn what_is_otherwise_is_told() {
        let with = |name, value| [PLAIN[0], PLAIN[1], (name, value)];
        for (options, facts, message) in [
            (
                "",
                &[("kernel release", "6.2")][..],
                "the guest runs the kernel 6.2, not 6.1",
            ),
            (
                "preempt=lazy",
                &with("preemption model", "voluntary"),
                "the guest's preemption model is voluntary, not lazy: its kernel does not know \
                 preempt=lazy, or takes no preempt= at all",
            ),
            (
                "preempt=full",
                &PLAIN,
                "the guest does not tell its preemption model, so that it can't be checked",
            ),
            (
                "cpus=2",
                &PLAIN,
                "the guest's CPUs online are 0, not 0-1 as cpus= asks for",
            ),
            (
                "cpus=2,nohz_full=1",
                &[
                    ("kernel release", "6.1"),
                    ("CPUs online", "0-1"),
                    ("nohz_full CPUs", "none"),
                ],
                "the guest's nohz_full CPUs are none, not 1 as nohz_full= asks for",
            ),
        ] {
            assert_eq!(check(options, facts), Err(message.to_owned()));
        }
    }
}
