//! The name server compared with another reader of zones and messages, on the queries of `corpus`
//! and random changes of them.
//!
//! The corpus has one query in each file, named for its content: valid ones of all kinds, and
//! malformed ones. `measured/fuzz` starts from the same.

use std::fs;
use std::path::Path;

mod oracle;

use oracle::Oracle;

const CASES: u32 = 100_000;

/// A reproducible random number generator (SplitMix64).
struct Chance(u64);

impl Chance {
    /// Returns a number below another.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ bits >> 31) % end.max(1) as u64) as usize
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }
}

/// Generates a valid query: for a name, perhaps with an additional label or in other case, with
/// EDNS or without.
fn make(chance: &mut Chance, names: &[&[u8]]) -> Vec<u8> {
    let edns = chance.below(2);
    let mut query = vec![
        chance.byte(),
        chance.byte(),
        1,
        0,
        0,
        1,
        0,
        0,
        0,
        0,
        0,
        edns as u8,
    ];
    let name = chance.of(names);
    match chance.below(4) {
        0 if name.len() < 250 => query.extend([1, chance.byte()]),
        1 => query.extend([3, b'W', b'w', b'W']),
        _ => {}
    }
    let start = query.len();
    // Also names above it.
    let above = if chance.below(4) == 0 {
        1 + usize::from(name[0])
    } else {
        0
    };
    query.extend(
        name.get(above..)
            .filter(|rest| !rest.is_empty())
            .unwrap_or(&[0]),
    );
    let letter = start + chance.below(query.len() - start);
    if query[letter].is_ascii_lowercase() {
        query[letter] -= 32;
    }
    let kind = *chance.of(&[
        1_u16, 2, 5, 6, 12, 15, 16, 28, 251, 252, 255, 65280, 65281, 65282,
    ]);
    query.extend(kind.to_be_bytes());
    query.extend([0, *chance.of(&[1, 1, 1, 1, 1, 3, 255])]);
    if edns == 1 {
        query.extend([
            0,
            0,
            41,
            chance.below(6) as u8,
            chance.byte(),
            0,
            u8::from(chance.below(8) == 0),
            (chance.below(2) << 7) as u8,
            0,
            0,
            0,
        ]);
    }
    query
}

/// Changes some bytes of a query, or what follows them.
fn change(chance: &mut Chance, query: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    for _ in 0..=chance.below(4) {
        let place = chance.below(query.len());
        let end = query.len().min(place + chance.below(9));
        match chance.below(6) {
            0 if place < query.len() => query[place] ^= 1 << chance.below(8),
            1 if place < query.len() => query[place] = chance.byte(),
            2 => query.insert(place, *chance.of(&[0, 1, 0x3f, 0x40, 0xc0, 0xff])),
            3 => drop(query.drain(place..end)),
            4 => query.extend_from_within(place..end),
            _ => {
                let other = chance.of(corpus);
                query.truncate(place);
                query.extend(other.get(place..).unwrap_or_default());
            }
        }
    }
}

#[test]
fn what_is_answered_is_what_has_to_be() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    let corpus: Vec<_> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    assert!(corpus.len() >= 30);
    let oracle = Oracle::new();
    let names: Vec<_> = oracle.names().collect();
    corpus.iter().for_each(|query| oracle.check(query));
    let mut chance = Chance(1);
    for case in 0..CASES {
        let mut query = match case % 2 {
            0 => make(&mut chance, &names),
            _ => chance.of(&corpus).clone(),
        };
        if case % 4 > 0 {
            change(&mut chance, &mut query, &corpus);
        }
        if std::panic::catch_unwind(|| oracle.check(&query)).is_err() {
            panic!("case {case}: {query:x?}");
        }
    }
}
