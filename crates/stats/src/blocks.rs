//! Blocks: the parts of one run that stand for repetitions when there is only one.
//!
//! Neighbouring samples depend on each other, long stretches hardly do. The means of a few dozen long
//! blocks in time order are near enough to independent to make an interval of, as long as a block is
//! much longer than any disturbance. Several runs are better still: they also differ in what does
//! not change within one (memory layout, placement, temperature).

use crate::error::StatsError;
use crate::tally::Tally;

/// Groups rows in time order into `blocks` consecutive blocks of nearly equal count.
///
/// A row is one bin of a run's envelope over time, with number and sum of its samples. Rows are not
/// divided: each block ends at the row whose end is nearest to its even share, as far as enough rows
/// are left for the others. Every sample is in exactly one block and every block has samples. Use
/// [`Tally::mean`] for the block means.
///
/// # Errors
///
/// [`StatsError::TooFew`] if fewer rows than blocks have samples, or no blocks are asked for.
/// [`StatsError::CountOverflow`] if there are more than 2^64 − 1 samples.
pub fn blocks(rows: &[Tally], blocks: usize) -> Result<Vec<Tally>, StatsError> {
    let rows: Vec<Tally> = rows.iter().copied().filter(|row| row.count > 0).collect();
    if blocks == 0 || rows.len() < blocks {
        return Err(StatsError::TooFew {
            method: "dividing a run into blocks",
            unit: "rows with samples",
            needed: blocks.max(1) as u64,
            got: if blocks == 0 { 0 } else { rows.len() as u64 },
        });
    }
    let ends = cumulated(&rows)?;
    let total = ends.last().copied().unwrap_or(0);
    let mut made = Vec::with_capacity(blocks);
    let mut from = 0;
    for block in 1..=blocks {
        let least = from + 1;
        let most = rows.len() - (blocks - block);
        let to = if block == blocks {
            most
        } else {
            let share = u128::from(total) * block as u128 / blocks as u128;
            nearest_end(&ends, share as u64).clamp(least, most)
        };
        let rows = &rows[from..to];
        made.push(Tally {
            count: rows.iter().map(|row| row.count).sum(),
            sum: rows.iter().map(|row| row.sum).sum(),
        });
        from = to;
    }
    Ok(made)
}

/// Returns for each row the number of samples up to its end.
fn cumulated(rows: &[Tally]) -> Result<Vec<u64>, StatsError> {
    let mut total = 0_u64;
    rows.iter()
        .map(|row| {
            let sum = total.checked_add(row.count);
            total = sum.ok_or(StatsError::CountOverflow { value: row.count })?;
            Ok(total)
        })
        .collect()
}

/// Returns how many rows end nearest to `share` samples.
fn nearest_end(ends: &[u64], share: u64) -> usize {
    let after = ends.partition_point(|&end| end < share);
    let distance = |rows: usize| {
        let end = rows.checked_sub(1).and_then(|row| ends.get(row)).copied();
        end.unwrap_or(0).abs_diff(share)
    };
    if distance(after) <= distance(after + 1) {
        after
    } else {
        after + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(count: u64, value: u64) -> Tally {
        Tally {
            count,
            sum: u128::from(count) * u128::from(value),
        }
    }

    fn sizes(rows: &[Tally], wanted: usize) -> Vec<u64> {
        blocks(rows, wanted)
            .unwrap()
            .iter()
            .map(|block| block.count)
            .collect()
    }

    #[test]
    fn equal_rows_make_equal_blocks_with_their_means() {
        let rows: Vec<Tally> = (0..100).map(|i| row(1_000, 900 + i / 25)).collect();
        let made = blocks(&rows, 4).unwrap();
        let means: Vec<_> = made.iter().map(|block| block.mean().unwrap()).collect();
        assert_eq!(means, [900.0, 901.0, 902.0, 903.0]);
        assert!(made.iter().all(|block| block.count == 25_000));
    }

    #[test]
    fn uneven_rows_are_divided_as_evenly_as_they_allow() {
        let rows = [10, 10, 10, 1, 0, 9, 10, 10].map(|count| row(count, 5));
        assert_eq!(sizes(&rows, 3), [20, 20, 20]);
        assert_eq!(sizes(&rows, 1), [60]);
        assert_eq!(
            sizes(&[100, 1, 1].map(|count| row(count, 5)), 3),
            [100, 1, 1]
        );
        assert_eq!(
            sizes(&[1, 1, 100].map(|count| row(count, 5)), 3),
            [1, 1, 100]
        );
    }

    #[test]
    fn rows_without_samples_are_no_blocks() {
        let rows = [0, 5, 0, 0, 5, 0].map(|count| row(count, 5));
        assert_eq!(sizes(&rows, 2), [5, 5]);
        assert!(matches!(
            blocks(&rows, 3),
            Err(StatsError::TooFew {
                needed: 3,
                got: 2,
                ..
            })
        ));
        assert!(blocks(&[], 1).is_err());
        assert!(blocks(&rows, 0).is_err());
    }

    #[test]
    fn too_many_samples_are_refused() {
        let rows = [row(u64::MAX, 1), row(1, 1)];
        assert!(matches!(
            blocks(&rows, 1),
            Err(StatsError::CountOverflow { .. })
        ));
    }
}
