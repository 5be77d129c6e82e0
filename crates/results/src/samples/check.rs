//! Whether samples fit to the sums of their batch.
//!
//! The sums and the samples come by different records, and the sums were made by another pass over
//! the stamps. Where they must agree and do not, one of them is wrong, and nobody can tell which.

use crate::model::{Batch, CellPlan, Count, Delay, EnvelopeBin, Samples};

/// Is the workload whose short iterations are not counted per value.
const GAP: &str = "gap";

/// Says what of the samples contradicts the batch, or itself: the file and the reason.
pub(crate) fn check(
    plan: &CellPlan,
    batch: &Batch,
    samples: &Samples,
) -> Result<(), (&'static str, String)> {
    let [counts, delays, envelope, window] = super::FILES;
    let is_gap = plan.workload == GAP;
    let counted = check_counts(&samples.counts).map_err(|reason| (counts, reason))?;
    if is_gap {
        check_gap_sums(batch, counted).map_err(|reason| (counts, reason))?;
    } else {
        check_sums(batch, counted).map_err(|reason| (counts, reason))?;
    }
    check_delays(batch, &samples.delays, is_gap).map_err(|reason| (delays, reason))?;
    check_envelope(&samples.envelope, counted).map_err(|reason| (envelope, reason))?;
    check_order(batch, &samples.window).map_err(|reason| (window, reason))?;
    if is_gap && !samples.window.is_empty() {
        let reason = "has samples, although the workload gap keeps none in sequence";
        return Err((window, reason.to_owned()));
    }
    Ok(())
}

/// Holds number and sum of the samples that are counted per value.
#[derive(Clone, Copy)]
struct Counted {
    samples: u128,
    cycles: u128,
}

fn check_counts(counts: &[Count]) -> Result<Counted, String> {
    let mut counted = Counted {
        samples: 0,
        cycles: 0,
    };
    let mut before = None;
    for Count { cycles, count } in counts {
        if before >= Some(cycles) {
            return Err(format!(
                "is damaged: the value {cycles} does not rise above the one before"
            ));
        }
        if *count == 0 {
            return Err(format!("is damaged: the value {cycles} has a count of 0"));
        }
        before = Some(cycles);
        counted.samples += u128::from(*count);
        counted.cycles = counted
            .cycles
            .checked_add(u128::from(*cycles) * u128::from(*count))
            .ok_or("is damaged: its sum does not fit into 128 bits")?;
    }
    Ok(counted)
}

/// Every repetition of a batch is either counted or ran backwards.
fn check_sums(batch: &Batch, counted: Counted) -> Result<(), String> {
    let Batch {
        repetitions,
        backwards,
        sum_cycles,
        ..
    } = *batch;
    let Counted { samples, cycles } = counted;
    if samples + u128::from(backwards) != u128::from(repetitions) {
        return Err(format!(
            "does not fit to cell.json: it counts {samples} samples, with {backwards} that ran \
             backwards, of {repetitions} repetitions"
        ));
    }
    if cycles != u128::from(sum_cycles) {
        return Err(format!(
            "does not fit to cell.json: its samples last {cycles} cycles, the batch {sum_cycles}"
        ));
    }
    Ok(())
}

/// Of `gap`, only the listed gaps are counted; the rest of the batch lies between them.
fn check_gap_sums(batch: &Batch, counted: Counted) -> Result<(), String> {
    let Counted { samples, cycles } = counted;
    let kept = batch.delays_kept;
    if samples != u128::from(kept) {
        return Err(format!(
            "does not fit to cell.json: it counts {samples} gaps of {kept} listed"
        ));
    }
    let (sum, unkept) = (batch.sum_cycles, batch.unkept_cycles);
    if cycles + u128::from(unkept) > u128::from(sum) {
        return Err(format!(
            "does not fit to cell.json: the gaps last {cycles} cycles and those not listed \
             {unkept}, the batch only {sum}"
        ));
    }
    Ok(())
}

fn check_delays(batch: &Batch, delays: &[Delay], is_gap: bool) -> Result<(), String> {
    check_order(batch, delays)?;
    let (kept, seen) = (batch.delays_kept, batch.delays_seen);
    if delays.len() as u64 != kept || kept > seen {
        let listed = delays.len();
        return Err(format!(
            "does not fit to cell.json: it lists {listed} delays of {kept} kept and {seen} seen"
        ));
    }
    let threshold = batch.threshold_cycles;
    match delays
        .iter()
        .find(|delay| is_gap && delay.cycles < threshold)
    {
        Some(Delay { index, cycles, .. }) => Err(format!(
            "does not fit to cell.json: gap {index} of {cycles} cycles is below the threshold of \
             {threshold}"
        )),
        None => Ok(()),
    }
}

/// Samples come in the order of their repetitions.
fn check_order(batch: &Batch, samples: &[Delay]) -> Result<(), String> {
    let mut before = None;
    for Delay { index, .. } in samples {
        if before >= Some(index) {
            return Err(format!(
                "is damaged: index {index} does not rise above the one before"
            ));
        }
        before = Some(index);
    }
    let repetitions = batch.repetitions;
    match before {
        Some(index) if *index >= repetitions => Err(format!(
            "does not fit to cell.json: it has repetition {index}, counted from 0, of {repetitions}"
        )),
        _ => Ok(()),
    }
}

fn check_envelope(envelope: &[EnvelopeBin], counted: Counted) -> Result<(), String> {
    let mut before = None;
    let (mut samples, mut cycles) = (0_u128, 0_u128);
    for row in envelope {
        let bin = row.bin;
        if before >= Some(bin) {
            return Err(format!(
                "is damaged: bin {bin} does not rise above the one before"
            ));
        }
        before = Some(bin);
        let times = |cycles: u64| u128::from(cycles) * u128::from(row.count);
        let sum = u128::from(row.sum_cycles);
        if row.count == 0 || sum < times(row.min_cycles) || sum > times(row.max_cycles) {
            return Err(format!(
                "is damaged: count, sum, minimum and maximum of bin {bin} contradict each other"
            ));
        }
        samples += u128::from(row.count);
        cycles += sum;
    }
    if samples == counted.samples && cycles == counted.cycles {
        return Ok(());
    }
    Err(format!(
        "does not fit to counts.parquet: it holds {samples} samples of {cycles} cycles in all, \
         there are {} of {}",
        counted.samples, counted.cycles
    ))
}
