//! The distribution of a sum of ranks under the hypothesis that two sets of values are alike.

/// Is the number of values in both sets up to which the distribution is counted out. Beyond it the normal
/// distribution is within a thousandth of it.
pub(crate) const EXACT: usize = 40;

/// Gives each value of both sets its rank, twice as large so that the mean ranks of equal values are whole.
///
/// The ranks of the first set come first.
pub(crate) fn doubled_ranks(first: &[f64], second: &[f64]) -> Vec<u64> {
    let mut places: Vec<(f64, usize)> = first.iter().chain(second).copied().zip(0..).collect();
    places.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut ranks = vec![0; places.len()];
    let mut before = 0;
    // A negative zero equals zero.
    for equal in places.chunk_by(|a, b| a.0 == b.0) {
        // Twice the mean of before + 1 … before + n.
        let rank = 2 * before + equal.len() as u64 + 1;
        for &(_, place) in equal {
            ranks[place] = rank;
        }
        before += equal.len() as u64;
    }
    ranks
}

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
    fn equal_values_share_their_rank() {
        assert_eq!(
            doubled_ranks(&[5.0, 1.0], &[1.0, 9.0, 1.0]),
            [8, 4, 4, 10, 4]
        );
        assert_eq!(doubled_ranks(&[0.0], &[-0.0]), [3, 3]);
    }

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
