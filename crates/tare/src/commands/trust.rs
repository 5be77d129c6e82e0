//! What others wrote may name programs to run: whoever wrote a study, or a run that is to be
//! continued, can have anything done with these. So it is a program itself, and is run only if the
//! user says so.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::geteuid;
use tare_figures::words;
use tare_host::visible_in_line;
use tare_results::model::Plan;

use crate::cli::measure::RunOptions;
use crate::error::CommandError;

/// Refuses a plan that names programs, unless they are trusted; `what` it is.
pub fn programs(plan: &Plan, what: &str, options: &RunOptions) -> Result<(), CommandError> {
    /// How many are named.
    const NAMED: usize = 4;
    let all = plan.programs();
    if options.trust || all.is_empty() {
        return Ok(());
    }
    let named = words::first_of(&all, NAMED);
    let named = visible_in_line(&named);
    Err(CommandError::Usage(format!(
        "{what} names programs to run: {named}. If they are to run, add --trust"
    )))
}

/// Refuses the study in a file that another user owns, or that names programs, unless it is
/// trusted.
pub fn study(path: &Path, plan: &Plan, options: &RunOptions) -> Result<(), CommandError> {
    let what = format!("the study {}", path.display());
    programs(plan, &what, options)?;
    let owner = path.metadata().map(|file| file.uid()).ok();
    let own = geteuid().as_raw();
    let sudo = std::env::var("SUDO_UID").ok().filter(|_| own == 0);
    let sudo: Option<u32> = sudo.and_then(|user| user.parse().ok());
    match owner.filter(|owner| *owner != own && Some(*owner) != sudo && *owner != 0) {
        Some(owner) if !options.trust => Err(CommandError::Usage(format!(
            "{what} belongs to user {owner}: read it, and add --trust if it is to be run"
        ))),
        _ => Ok(()),
    }
}
