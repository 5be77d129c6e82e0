//! Lists whose order is that of first appearance.

use std::hash::Hash;

use indexmap::{IndexMap, IndexSet};

/// Returns the entry of a list that fits, after adding it if there is none.
pub fn entry<T>(all: &mut Vec<T>, fits: impl FnMut(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    let at = all.iter().position(fits).unwrap_or_else(|| {
        all.push(new());
        all.len() - 1
    });
    &mut all[at]
}

/// Puts the values of each key together.
pub fn grouped<K: Hash + Eq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: IndexMap<K, Vec<V>> = IndexMap::new();
    for (key, value) in pairs {
        groups.entry(key).or_default().push(value);
    }
    groups.into_iter().collect()
}

/// Returns each value once.
pub fn distinct<T: Hash + Eq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let all: IndexSet<T> = values.into_iter().collect();
    all.into_iter().collect()
}

/// Sorts values by a key within their groups, which keep the order in which they come first.
pub fn sort_in_groups<T, G: Hash + Eq, K: Ord>(
    all: &mut [T],
    group: impl Fn(&T) -> G,
    key: impl Fn(&T) -> K,
) {
    let groups: IndexSet<G> = all.iter().map(&group).collect();
    all.sort_by_cached_key(|one| (groups.get_index_of(&group(one)), key(one)));
}
