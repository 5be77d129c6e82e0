//! Blocks, and the random order within each.
//!
//! A machine drifts: it warms up, another guest wakes, the page cache fills. If all runs of one
//! combination came first and then all of the next, the drift would be taken for a difference
//! between them. So every block holds each combination once, in an order drawn anew for each
//! block from a recorded seed.

/// Returns the order of `combinations` items in each of `blocks` blocks, as indices.
#[must_use]
pub fn interleaved(combinations: usize, blocks: u32, seed: u64) -> Vec<Vec<usize>> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..blocks)
        .map(|_| {
            let mut block: Vec<usize> = (0..combinations).collect();
            random.shuffle(&mut block);
            block
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_block_holds_everything_once(n in 0_usize..20, blocks in 0_u32..10, seed: u64) {
            for mut block in interleaved(n, blocks, seed) {
                block.sort_unstable();
                prop_assert_eq!(block, (0..n).collect::<Vec<_>>());
            }
        }

        #[test]
        fn the_same_seed_gives_the_same_order(n in 0_usize..20, seed: u64) {
            prop_assert_eq!(interleaved(n, 5, seed), interleaved(n, 5, seed));
        }
    }

    #[test]
    fn blocks_differ() {
        let blocks = interleaved(8, 8, 1);
        assert!(blocks.iter().any(|block| *block != blocks[0]));
    }
}
