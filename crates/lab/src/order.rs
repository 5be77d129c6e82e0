//! Blocks, and the random order within each.
//!
//! A machine drifts: it warms up, another guest wakes, the page cache fills. If all runs of one
//! combination came first and then all of the next, the drift would look like a difference
//! between them. So every block holds each combination once, in its own random order,
//! from a recorded seed. Items that run less often than the rest are spread evenly over the
//! blocks, for the same reason.
//!
//! A daemon that some targets need disturbs all others, so their cells stand together, at the end
//! of every odd block and at the beginning of every even one: two blocks share one start of the
//! daemon, and no other cell runs at the same time.

/// Returns which items run in each block and in which order, as indices: item `n` runs `runs[n]`
/// times, at most once in a block. There are as many blocks as the item with the most runs needs.
pub fn interleaved(runs: &[u32], seed: u64) -> Vec<Vec<usize>> {
    let blocks = runs.iter().copied().max().unwrap_or_default();
    let mut order = vec![Vec::new(); blocks as usize];
    for (item, &runs) in runs.iter().enumerate() {
        for run in 0..runs {
            order[block_of(run, runs, blocks)].push(item);
        }
    }
    let mut random = fastrand::Rng::with_seed(seed);
    for block in &mut order {
        random.shuffle(block);
    }
    order
}

/// Returns the block of a run, counted from 0: the middle of its part if all blocks are divided
/// into as many equal parts as there are runs.
fn block_of(run: u32, runs: u32, blocks: u32) -> usize {
    let middle = (2 * u64::from(run) + 1) * u64::from(blocks) / (2 * u64::from(runs));
    // It is less than the number of blocks, which is in memory.
    middle as usize
}

/// Moves items that need a daemon to one end of each block: to the end of the first one, to the
/// beginning of the second one, and so on. The order within each part is kept. `daemon` returns the
/// one that the item of an index needs.
pub fn group_by_daemon<D: Ord>(blocks: &mut [Vec<usize>], daemon: impl Fn(usize) -> Option<D>) {
    for (number, block) in blocks.iter_mut().enumerate() {
        // None comes before all others.
        block.sort_by_key(|index| daemon(*index));
        if number % 2 == 1 {
            let others = block.partition_point(|index| daemon(*index).is_none());
            block.rotate_left(others);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_block_holds_everything_once(n in 1_usize..20, blocks in 0_u32..10, seed: u64) {
            let order = interleaved(&vec![blocks; n], seed);
            prop_assert_eq!(order.len(), blocks as usize);
            for mut block in order {
                block.sort_unstable();
                prop_assert_eq!(block, (0..n).collect::<Vec<_>>());
            }
        }

        #[test]
        fn fewer_runs_are_spread_over_different_blocks(
            runs in proptest::collection::vec(0_u32..40, 0..6),
            seed: u64,
        ) {
            let order = interleaved(&runs, seed);
            let most = runs.iter().copied().max().unwrap_or_default();
            for (item, &runs) in runs.iter().enumerate() {
                let blocks: Vec<usize> = (0..order.len())
                    .filter(|block| order[*block].contains(&item))
                    .collect();
                prop_assert_eq!(blocks.len(), runs as usize);
                // No two neighbours lie further apart than twice the even distance.
                for pair in blocks.windows(2) {
                    prop_assert!(pair[1] - pair[0] <= 2 * most.div_ceil(runs) as usize);
                }
            }
            for mut items in order {
                items.sort_unstable();
                prop_assert!(items.windows(2).all(|pair| pair[0] != pair[1]));
            }
        }

        #[test]
        fn the_same_seed_gives_the_same_order(n in 0_usize..20, seed: u64) {
            prop_assert_eq!(interleaved(&vec![5; n], seed), interleaved(&vec![5; n], seed));
        }
    }

    #[test]
    fn what_needs_a_daemon_stands_together_at_the_ends_that_meet() {
        let mut blocks = vec![vec![3, 0, 2, 1], vec![1, 2, 3, 0], vec![0, 1, 2, 3]];
        group_by_daemon(&mut blocks, |index| (index >= 2).then_some("dockerd"));
        assert_eq!(blocks, [[0, 1, 3, 2], [2, 3, 1, 0], [0, 1, 2, 3]]);
    }

    #[test]
    fn blocks_differ() {
        let blocks = interleaved(&[8; 8], 1);
        assert!(blocks.iter().any(|block| *block != blocks[0]));
    }

    #[test]
    fn a_single_run_stands_in_the_middle() {
        let blocks = interleaved(&[5, 1], 1);
        let with_it: Vec<usize> = (0..5).filter(|n| blocks[*n].contains(&1)).collect();
        assert_eq!(with_it, [2]);
    }
}
