//! Whether a load can run, told before anything starts.

use rustix::process::geteuid;
use tare_load_driver::{Load, Tool, tools};
use tare_results::model::LoadPlace;

/// Why a load can't run here, and what would have to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// Why not.
    pub why: String,
    /// The command that makes it usable, or what else to do.
    pub remedy: String,
}

/// Checks that the tools of a load are here: to be executed next to the measured code, or to be
/// packed for a guest.
///
/// # Errors
///
/// Returns [`Unavailable`] with all that is missing.
pub fn availability(load: &Load, place: LoadPlace) -> Result<(), Unavailable> {
    let missing: Vec<Tool> = load
        .tools()
        .into_iter()
        .filter(|tool| tool.find().is_none())
        .collect();
    if !missing.is_empty() {
        return Err(lacking(&missing));
    }
    if let Some(program) = load.command()
        && !tools::is_found(program)
    {
        return Err(Unavailable {
            why: format!("the program '{program}' is in no folder of PATH"),
            remedy: "install it, or write its path".to_owned(),
        });
    }
    // In a guest it is root that runs it.
    if let Some((name, why)) = load.needs_root()
        && place == LoadPlace::Beside
        && !geteuid().is_root()
    {
        return Err(Unavailable {
            why: format!("'{name}' requires root: {why}"),
            remedy: "run tare as root".to_owned(),
        });
    }
    Ok(())
}

fn lacking(missing: &[Tool]) -> Unavailable {
    let programs: Vec<&str> = missing.iter().map(|tool| tool.program).collect();
    let mut packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    packages.sort_unstable();
    packages.dedup();
    let verb = if programs.len() == 1 { "is" } else { "are" };
    Unavailable {
        why: format!("{} {verb} in no folder of PATH", programs.join(", ")),
        remedy: format!(
            "apt-get update && apt-get install -y --no-install-recommends {}",
            packages.join(" ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_missing_is_told_at_once_with_the_command() {
        let tool = |program, package| Tool { program, package };
        let missing = [
            tool("dd", "coreutils"),
            tool("hackbench", "rt-tests"),
            tool("du", "coreutils"),
        ];
        let told = lacking(&missing);
        assert_eq!(told.why, "dd, hackbench, du are in no folder of PATH");
        assert_eq!(
            told.remedy,
            "apt-get update && apt-get install -y --no-install-recommends coreutils rt-tests"
        );
    }

    #[test]
    fn a_command_is_looked_for() {
        let check = |text| availability(&Load::parse(text).unwrap(), LoadPlace::Beside);
        assert_eq!(check("command:true"), Ok(()));
        assert_eq!(check("idle"), Ok(()));
        let told = check("command:no-such-program -x").unwrap_err();
        assert_eq!(
            told.why,
            "the program 'no-such-program' is in no folder of PATH"
        );
    }
}
