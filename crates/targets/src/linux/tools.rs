//! The programs of this machine that a load executes inside of a guest.

use std::env;
use std::path::{Path, PathBuf};

use tare_load_driver::Schedule;

use crate::error::TargetError;

/// Returns the paths of those that a load needs, or any of several that run one after the other.
///
/// # Errors
///
/// Returns [`TargetError::Load`] for a text that is no load, [`TargetError::MissingTool`] for a
/// program that is not here.
pub(super) fn programs(load: &str) -> Result<Vec<PathBuf>, TargetError> {
    let load = Schedule::parse(load).map_err(|error| TargetError::Load {
        problem: error.to_string(),
    })?;
    let tools = load.tools();
    let named = tools.iter().map(|tool| (tool.program, Some(tool.package)));
    let all = named.chain(load.commands().into_iter().map(|program| (program, None)));
    all.map(|(program, package)| {
        find(program).ok_or_else(|| TargetError::MissingTool {
            program: program.to_owned(),
            remedy: match package {
                Some(package) => format!(
                    "apt-get update && apt-get install -y --no-install-recommends {package}"
                ),
                None => "give the path of a program that is here".to_owned(),
            },
        })
    })
    .collect()
}

/// Finds a program, also where ordinary users don't look. The guest's PATH has the same folders.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(|folder| Path::new(folder).to_owned()))
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_its_package() {
        assert_eq!(programs("idle").unwrap(), Vec::<PathBuf>::new());
        let error = programs("command:/no/such/program").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("/no/such/program is not found"), "{text}");
        assert!(programs("waltz").is_err());
    }
}
