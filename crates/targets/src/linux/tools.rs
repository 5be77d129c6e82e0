//! The programs of this machine that a load executes inside of a guest.

use std::path::PathBuf;

use tare_results::model::Schedule;

use crate::error::TargetError;
use crate::programs::{find, install};

/// Returns the paths of those that a load needs, or any of several that run one after the other.
/// The guest's PATH has the same folders.
///
/// # Errors
///
/// Returns [`TargetError::Unusable`] for a program that is not here.
pub(super) fn programs(load: &Schedule) -> Result<Vec<PathBuf>, TargetError> {
    let tools = load.tools();
    let named = tools.iter().map(|tool| (tool.program, Some(tool.package)));
    let all = named.chain(load.commands().into_iter().map(|program| (program, None)));
    all.map(|(program, package)| {
        find(program).ok_or_else(|| {
            let other = || "give the path of a program that is here".to_owned();
            let remedy = package.map_or_else(other, install);
            let why = format!("the load's program {program} is not found: {remedy}");
            TargetError::unusable(why, remedy)
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_its_package() {
        let programs = |load| programs(&Schedule::parse(load).unwrap());
        assert_eq!(programs("idle").unwrap(), Vec::<PathBuf>::new());
        let error = programs("command:/no/such/program").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("/no/such/program is not found"), "{text}");
    }
}
