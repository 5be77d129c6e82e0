//! The arguments of `tare compare`.

use std::path::PathBuf;

use clap::Args;

/// Holds the arguments of `tare compare`.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// Folder of the run to compare with: the baseline
    #[arg(value_name = "RUN_A")]
    pub first: PathBuf,
    /// Folder of the run that is compared
    #[arg(value_name = "RUN_B")]
    pub second: PathBuf,
    /// End with exit code 3 if RUN_B is worse in a figure, and with 1 if there are too few runs to tell
    #[arg(long)]
    pub fail_on_regression: bool,
    /// Print the comparison as JSON
    #[arg(long)]
    pub json: bool,
}
