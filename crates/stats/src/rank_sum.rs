//! The distribution of a sum of ranks under the hypothesis that two sets of values are alike.

/// The number of values in both sets up to which the distribution is counted out. Beyond it the
/// normal distribution is within a thousandth of it.
pub(crate) const EXACT: usize = 40;

/// Counts for each sum in how many ways it is that of `chosen` of the ranks.
///
/// Of at most [`EXACT`] ranks, no count exceeds 2^38.
pub(crate) fn ways(ranks: &[u64], chosen: usize) -> Vec<u64> {
    let most: u64 = ranks.iter().sum();
    let sums = most as usize + 1;
    let mut ways = vec![vec![0_u64; sums]; chosen + 1];
    ways[0][0] = 1;
    for (taken, &rank) in ranks.iter().enumerate() {
        // From many to few, so that no rank is chosen twice.
        for number in (1..=chosen.min(taken + 1)).rev() {
            let (fewer, same) = ways.split_at_mut(number);
            let (fewer, same) = (&fewer[number - 1], &mut same[0]);
            let reached = fewer.iter().zip(same.iter_mut().skip(rank as usize));
            for (from, to) in reached {
                *to += from;
            }
        }
    }
    ways.swap_remove(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_those_of_enumeration() {
        let ranks = [2, 5, 5, 8, 10];
        let mut counted = vec![0_u64; 31];
        for a in 0..5 {
            for b in 0..a {
                counted[(ranks[a] + ranks[b]) as usize] += 1;
            }
        }
        assert_eq!(ways(&ranks, 2), counted);
        let many: Vec<u64> = (1..=EXACT as u64).map(|rank| 2 * rank).collect();
        let all: u64 = ways(&many, EXACT / 2).iter().sum();
        assert_eq!(all, 137_846_528_820);
    }
}
