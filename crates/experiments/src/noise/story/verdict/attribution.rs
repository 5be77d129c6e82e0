//! What is lost below any operating system, and what the operating system adds, in words.

use tare_stats::STUDENT_RUNS;

use crate::analysis::{Attribution, Finding, Part, Quantity, Refusal, Refused, Split};
use crate::words;

use super::N;

/// Says how the time lost divides, or why that cannot be told. Guests are left to the table, unless they
/// are all there is.
pub(super) fn attribution(attribution: &Attribution) -> Vec<String> {
    let process = |split: &&Split| split.target == "process";
    let mut told: Vec<String> = attribution
        .splits
        .iter()
        .filter(process)
        .enumerate()
        .filter_map(|(place, split)| sentence(split, place == 0))
        .collect();
    if told.is_empty() {
        told.extend(attribution.splits.first().and_then(|s| sentence(s, true)));
    }
    told.extend(attribution.refused.iter().map(refused));
    told
}

/// Writes one split. What is the same for all loads is explained once.
fn sentence(split: &Split, is_first: bool) -> Option<String> {
    let part = split.parts.first()?;
    let begin = begin(Some(&split.load));
    let (target, reference) = (&split.target, &split.reference);
    let (all, below) = (N.percent(part.all), N.percent(part.below));
    let what = lost(part);
    let blocks = split.blocks.len() as u64;
    let over = words::counted(N, blocks, "block", "blocks");
    Some(match (part.finding, part.difference) {
        (Finding::Added, Some(difference)) => {
            let (at_most, at_least) = if split.is_bound {
                ("at most ", "at least ")
            } else {
                ("", "")
            };
            let added = words::share_range(N, &difference);
            let why = match (is_first, split.is_bound) {
                (false, _) => String::new(),
                (true, false) => {
                    format!(" (firmware, hypervisor: what {reference} loses)")
                }
                (true, true) => format!(
                    " (firmware, hypervisor: what {reference} loses here as a guest, which this \
                     machine's kernel can still interrupt)"
                ),
            };
            format!(
                "{begin}: of the {all} of its time that {target} loses{what}, {at_most}{below} is lost \
                 below any operating system{why}; the operating system adds {at_least}{added} (the mean \
                 of {over}, paired, at 95 % confidence)."
            )
        }
        (Finding::Added | Finding::TooFewBlocks, _) => format!(
            "{begin}: {target} loses {all} of its time{what} and {reference} {below}; that takes {STUDENT_RUNS} \
             blocks to tell what of it the operating system adds. Measure more with --runs."
        ),
        (Finding::NotDistinguishable, difference) => {
            let difference = match difference {
                Some(difference) => format!(
                    "is {} (the mean of {over}, paired, at 95 % confidence)",
                    words::signed_share_range(N, &difference)
                ),
                None => format!("is the same in {over}"),
            };
            let mut text = format!(
                "{begin}: what the operating system adds is not distinguishable from what is lost below \
                 any (firmware, hypervisor): {target} loses {all} of its time{what} and {reference} \
                 {below}; the difference {difference}."
            );
            if split.is_bound && is_first {
                text.push_str(&format!(
                    " {reference} is a guest here, and this machine's kernel interrupts it too: an \
                     isolated, tickless CPU leaves less of that (isolcpus, nohz_full)."
                ));
            }
            text
        }
    })
}

fn refused(refused: &Refused) -> String {
    let begin = begin(refused.load.as_deref());
    match &refused.reason {
        Refusal::NoPair => format!(
            "{begin}: what the operating system adds to what is lost below it (firmware, hypervisor) \
             is told by `--target process --target unikernel,irq=off`, where KVM works."
        ),
        Refusal::NotMeasured => format!(
            "{begin}: no block has figures of both process and unikernel,irq=off, so what the \
             operating system adds is not told."
        ),
        Refusal::Emulated { target } => format!(
            "{begin}: this run can't split what is lost below any operating system (firmware, \
             hypervisor) from what the operating system adds: QEMU's TCG executed {target}, and the \
             emulator's own delays are in its figures. Measure where KVM works."
        ),
        Refusal::OtherCpu {
            target,
            cpu,
            expected,
        } => {
            let cpu = cpu.map_or_else(
                || "was not pinned".to_owned(),
                |cpu| format!("ran on CPU {cpu}"),
            );
            format!(
                "{begin}: what the operating system adds is not told, since {target} {cpu} instead of CPU \
                 {expected}: what is lost below differs from CPU to CPU. Measure both on one CPU."
            )
        }
        Refusal::Thresholds {
            low_cycles,
            high_cycles,
        } => format!(
            "{begin}: what the operating system adds is not told, since gaps count from {} cycles on one \
             target and from {} on the other. Give both the same with --threshold.",
            N.count(*low_cycles),
            N.count(*high_cycles)
        ),
    }
}

fn begin(load: Option<&str>) -> String {
    match load {
        Some(load) if load != "idle" => format!("Split under {load}"),
        _ => "Split".to_owned(),
    }
}

/// Says in what time is lost, where it is not gaps.
fn lost(part: &Part) -> String {
    match part.quantity {
        Quantity::TimeInDelays { above_cycles } => {
            format!(" in delays above {} cycles", N.count(above_cycles))
        }
        _ => String::new(),
    }
}
