//! The tables of a wake-up measurement, and whether they fit to the sums of their threads.

use super::WAKEUP_FILES;
use super::table::{Column, Row, Width};
use crate::model::{LatencyBin, LatencyCount, Wakeup, WakeupSamples, WakeupThread, Wakeups};

impl Row for LatencyCount {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("thread", Width::U32, |row| u64::from(row.thread)),
        Column::new("phase", Width::U32, |row| u64::from(row.phase)),
        Column::new("between", Width::U32, |row| u64::from(row.between)),
        Column::new("latency_ns", Width::U64, |row| row.latency_ns),
        Column::new("count", Width::U64, |row| row.count),
    ];

    fn from_values(values: impl Fn(usize) -> u64) -> Self {
        Self {
            // The columns are ones of 32 bits, so nothing is cut off.
            thread: values(0) as u32,
            phase: values(1) as u32,
            between: values(2) != 0,
            latency_ns: values(3),
            count: values(4),
        }
    }
}

impl Row for Wakeup {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("thread", Width::U32, |row| u64::from(row.thread)),
        Column::new("activation", Width::U64, |row| row.activation),
        Column::new("latency_ns", Width::U64, |row| row.latency_ns),
    ];

    fn from_values(values: impl Fn(usize) -> u64) -> Self {
        Self {
            thread: values(0) as u32,
            activation: values(1),
            latency_ns: values(2),
        }
    }
}

impl Row for LatencyBin {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("thread", Width::U32, |row| u64::from(row.thread)),
        Column::new("bin", Width::U32, |row| u64::from(row.bin)),
        Column::new("count", Width::U64, |row| row.count),
        Column::new("sum_ns", Width::U64, |row| row.sum_ns),
        Column::new("min_ns", Width::U64, |row| row.min_ns),
        Column::new("max_ns", Width::U64, |row| row.max_ns),
    ];

    fn from_values(values: impl Fn(usize) -> u64) -> Self {
        Self {
            thread: values(0) as u32,
            bin: values(1) as u32,
            count: values(2),
            sum_ns: values(3),
            min_ns: values(4),
            max_ns: values(5),
        }
    }
}

/// Says what of the samples contradicts the sums of the threads, or itself: the file and the reason.
pub(crate) fn check(
    wakeups: &Wakeups,
    samples: &WakeupSamples,
) -> Result<(), (&'static str, String)> {
    let [counts, peaks, bins, raw] = WAKEUP_FILES;
    for (place, thread) in (0..).zip(&wakeups.threads) {
        if thread.number != place {
            let reason = "does not fit to cell.json: the threads are not numbered from 0";
            return Err((counts, reason.to_owned()));
        }
        check_counts(thread, &samples.counts).map_err(|reason| (counts, reason))?;
        check_bins(thread, &samples.bins).map_err(|reason| (bins, reason))?;
        let due = thread.peaks_kept;
        check_list(thread, due, &samples.peaks).map_err(|reason| (peaks, reason))?;
        let due = thread.raw_kept;
        check_list(thread, due, &samples.raw).map_err(|reason| (raw, reason))?;
    }
    let threads = wakeups.threads.len();
    let is_strange = |thread: u32| thread as usize >= threads;
    let strangers = [
        (
            counts,
            samples.counts.iter().any(|row| is_strange(row.thread)),
        ),
        (
            peaks,
            samples.peaks.iter().any(|row| is_strange(row.thread)),
        ),
        (bins, samples.bins.iter().any(|row| is_strange(row.thread))),
        (raw, samples.raw.iter().any(|row| is_strange(row.thread))),
    ];
    match strangers.into_iter().find(|(_, strange)| *strange) {
        Some((file, _)) => {
            let reason = format!("does not fit to cell.json: it has a thread beyond the {threads}");
            Err((file, reason))
        }
        None => Ok(()),
    }
}

/// Every wake-up is counted, unless there was no room for its value.
fn check_counts(thread: &WakeupThread, counts: &[LatencyCount]) -> Result<(), String> {
    let number = thread.number;
    let own = || counts.iter().filter(|row| row.thread == number);
    let key = |row: &LatencyCount| (row.phase, row.between, row.latency_ns);
    let rising = own().is_sorted_by(|a, b| key(a) < key(b));
    if !rising {
        return Err(format!(
            "is damaged: the latencies of thread {number} do not rise within their phases"
        ));
    }
    let counted: u128 = own().map(|row| u128::from(row.count)).sum();
    if counted + u128::from(thread.uncounted) != u128::from(thread.woken) {
        return Err(format!(
            "does not fit to cell.json: of thread {number} it counts {counted} wake-ups, with {} \
             uncounted, of {}",
            thread.uncounted, thread.woken
        ));
    }
    let sum: u128 = own()
        .map(|row| u128::from(row.count) * u128::from(row.latency_ns))
        .sum();
    if sum + u128::from(thread.uncounted_ns) != u128::from(thread.sum_ns) {
        return Err(format!(
            "does not fit to cell.json: the latencies of thread {number} make {sum} ns, with {} \
             uncounted, of {}",
            thread.uncounted_ns, thread.sum_ns
        ));
    }
    Ok(())
}

fn check_bins(thread: &WakeupThread, bins: &[LatencyBin]) -> Result<(), String> {
    let number = thread.number;
    let own = || bins.iter().filter(|row| row.thread == number);
    if !own().is_sorted_by(|a, b| a.bin < b.bin) {
        return Err(format!(
            "is damaged: the bins of thread {number} do not rise"
        ));
    }
    let woken: u128 = own().map(|row| u128::from(row.count)).sum();
    let sum: u128 = own().map(|row| u128::from(row.sum_ns)).sum();
    let max = own().map(|row| row.max_ns).max().unwrap_or(0);
    let due = (
        u128::from(thread.woken),
        u128::from(thread.sum_ns),
        thread.max_ns,
    );
    if (woken, sum, max) != due {
        return Err(format!(
            "does not fit to cell.json: of thread {number} it holds {woken} wake-ups of {sum} ns in all \
             and {max} ns at most, there are {} of {} and {}",
            due.0, due.1, due.2
        ));
    }
    Ok(())
}

/// Wake-ups come in the order of their activations, as many as were kept.
fn check_list(thread: &WakeupThread, due: u64, list: &[Wakeup]) -> Result<(), String> {
    let number = thread.number;
    let own = || list.iter().filter(|row| row.thread == number);
    let listed = own().count();
    if listed as u64 != due {
        return Err(format!(
            "does not fit to cell.json: it lists {listed} wake-ups of thread {number}, not {due}"
        ));
    }
    if !own().is_sorted_by(|a, b| a.activation < b.activation) {
        return Err(format!(
            "is damaged: the activations of thread {number} do not rise"
        ));
    }
    let activations = u128::from(thread.woken) + u128::from(thread.missed);
    match own().next_back() {
        Some(last) if u128::from(last.activation) >= activations => Err(format!(
            "does not fit to cell.json: it has activation {} of thread {number}, counted from 0, of \
             {activations}",
            last.activation
        )),
        _ => Ok(()),
    }
}
