//! `tare stream` compared with STREAM's loops in C.

use tare_measured::primitives::memory;
use tare_measured::stream::KERNELS;

use crate::primitives::{in_c, largest_cache};
use crate::verdict::Verdicts;
use crate::{Result, figure, hog, median, run as tare};

/// The number of turns: see [`crate::primitives`].
const TURNS: usize = 30;
/// The permitted difference of each kernel's best bandwidth.
const MOST: f64 = 0.03;

/// Measures both in alternation, over arrays of the same size.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let cpu = hog::last_cpu()?;
    // Not a multiple of a page, as STREAM's own is none: where all arrays have the same place in
    // their pages, loops that differ in their unrolling differ by a tenth.
    let array = (memory::most(largest_cache()) + 1024).to_string();
    let words = format!("stream --array {array} --passes 10 --attempts 1 --cpu {cpu} --runs 1");
    let ours = |turn: usize| -> Result<Vec<f64>> {
        let folder = tare(scratch.path(), &turn.to_string(), &words, &[])?;
        let best = |(kernel, _)| {
            let labels = [("kernel", kernel)];
            figure(&folder, "stream", ("bandwidth", "max"), &labels)
        };
        KERNELS.into_iter().map(best).collect()
    };
    let theirs = || -> Result<Vec<f64>> {
        let text = include_str!("peers/stream.c");
        let told = in_c(scratch.path(), (cpu, &array), "stream", text)?;
        Ok(told
            .lines()
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?)
    };
    let mut ratios = [const { Vec::new() }; KERNELS.len()];
    for turn in 0..TURNS {
        // Each begins every other turn.
        let (own, other) = match turn % 2 {
            0 => (ours(turn)?, theirs()?),
            _ => {
                let other = theirs()?;
                (ours(turn)?, other)
            }
        };
        for (all, (own, other)) in ratios.iter_mut().zip(own.iter().zip(other)) {
            all.push(own / other);
        }
    }
    for ((kernel, _), mut ratios) in KERNELS.into_iter().zip(ratios) {
        ratios.sort_by(f64::total_cmp);
        let (low, high) = (ratios[TURNS / 4], ratios[TURNS - TURNS / 4 - 1]);
        println!("       {kernel} by tare / in C: half of the ratios from {low:.3} to {high:.3}");
        let what = format!("difference of {kernel} from C");
        verdicts.at_most(&what, (median(ratios) - 1.0).abs(), MOST);
    }
    Ok(())
}
