//! The arguments of `tare noise top`.

use clap::Args;
use tare_wire::cpus::Cpus;

/// Show who interrupts which CPU now
///
/// Shows each second what the time of each CPU went into, and the interrupts, softirqs and threads that
/// took most of it. On a terminal it goes on until `q` or Ctrl-C. Nothing is measured, and nothing on the
/// host is changed. docs/noise.md explains.
#[derive(Debug, Args)]
pub struct TopArguments {
    /// CPUs to watch, such as 0-3,8 [default: all]
    #[arg(long, value_name = "CPUS")]
    pub cpu: Option<Cpus>,
    /// Updates after which it ends [default: on a terminal never, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
}
