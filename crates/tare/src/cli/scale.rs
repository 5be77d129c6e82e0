//! The arguments of `tare scale`.

use std::path::PathBuf;

use clap::Args;
use tare_lab::units::nanoseconds;

/// The arguments of `tare scale`.
#[derive(Debug, Args)]
pub struct ScaleArguments {
    /// Folders of runs with the workload gap of `tare noise` [default: the newest in tare-runs]
    #[arg(value_name = "RUN")]
    pub runs: Vec<PathBuf>,

    /// Numbers of nodes
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "1,10,100,1000,10000,100000,1000000",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000),
        help_heading = "Program"
    )]
    pub nodes: Vec<u64>,
    /// Time that a node computes in a step, or a server for a request: 100us, 1ms
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = step, help_heading = "Program")]
    pub step: u64,
    /// Share of steps in which all nodes have the same delay: 20%
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = share, help_heading = "Program")]
    pub correlated: f64,
    /// Share of nodes with the noise of another run: 1%=RUN
    #[arg(long, value_name = "SHARE=RUN", value_parser = bad_nodes, help_heading = "Program")]
    pub bad: Option<(f64, PathBuf)>,

    /// Folder for the page, scale.html; must be new or empty [default: the first run's folder]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Reads nodes with other noise: `1%=RUN`.
fn bad_nodes(text: &str) -> Result<(f64, PathBuf), String> {
    let (of, run) = text
        .split_once('=')
        .ok_or("want a share and a run: 1%=RUN")?;
    Ok((share(of)?, run.into()))
}

/// Reads a share: `5%` or `0.05`.
fn share(text: &str) -> Result<f64, String> {
    let (number, whole) = match text.strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    let share = number.trim().parse().map(|share: f64| share / whole).ok();
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "want a share from 0 to 100%: 5% or 0.05".to_owned())
}

/// Reads the time of a step, at least 1 µs: shorter ones are like a gap's threshold.
fn step(text: &str) -> Result<u64, String> {
    match nanoseconds(text, None)? {
        ..1_000 => Err("want at least 1us".to_owned()),
        ns => Ok(ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_nodes_are_a_share_with_a_run() {
        assert_eq!(bad_nodes("1%=xen"), Ok((0.01, "xen".into())));
        assert_eq!(bad_nodes("0.5=a=b"), Ok((0.5, "a=b".into())));
        assert!(bad_nodes("200%=xen").is_err() && bad_nodes("1%").is_err());
    }
}
