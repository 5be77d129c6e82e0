//! Files that hold nonsense are never more than unknown values.

use proptest::prelude::*;

use super::fixtures::{Tree, container, guest, laptop, rt_group, telecom};
use crate::choose::choose_cpu;
use crate::doctor::{doctor, summary};
use crate::machine::Machine;
use crate::sample::Sample;

/// Possible contents of a file: bytes, numbers at the edges, words of the right kind in the wrong
/// place.
fn contents() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "",
        "\n",
        "0",
        "-1",
        "18446744073709551615",
        "9223372036854775807",
        "-9223372036854775808",
        "4294967295",
        "65535",
        "0-65535",
        "5-2",
        "max 0",
        "1 0",
        "0 0",
        "NaN",
        "inf 1e400 -1",
        "[",
        "]",
        "[]",
        "(",
        ") R 1",
        "=",
        ":",
        "::",
        "0::/../..",
        "cpu",
        "cpu0",
        "cpu4294967296 1 1 1 1",
        "cpu0 18446744073709551615 1 1 18446744073709551615",
        "1 (a",
        "1 (a) R",
        " - cgroup2 x rw",
        "1 1 1 / /sys/fs/cgroup - cgroup2 x rw",
        "CPU0 CPU4294967295\n1: 2 x y",
        "\u{2028}µ\0",
        "all",
        "N",
        "K",
        "99999999999999999999K",
        "kB",
        "MemTotal: 18446744073709551615 kB",
    ]);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..64),
        words.prop_map(|word| word.as_bytes().to_vec()),
        "[a-z0-9 ,:/()\\-\n]{0,40}".prop_map(String::into_bytes),
    ]
}

fn tree(kind: usize) -> Tree {
    match kind {
        0 => laptop(),
        1 => telecom(),
        2 => guest(),
        3 => container(),
        _ => rt_group(),
    }
}

fn examine(tree: &Tree) {
    let source = tree.source();
    let machine = Machine::collect(&source);
    let text = serde_json::to_string(&machine).unwrap();
    serde_json::from_str::<Machine>(&text).unwrap();
    let sample = Sample::take(&source);
    let _ = choose_cpu(&machine, &sample, Some(3));
    let findings = doctor(&source, &machine, &sample, None);
    assert!(
        findings.iter().all(|finding| !finding.state.is_empty()),
        "{findings:?}"
    );
    assert!(!summary(&findings).is_empty());
}

proptest! {
    // Each case builds a machine of some 200 files, so there are fewer cases than usual.
    #![proptest_config(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn one_damaged_file_in_a_sound_machine(
        kind in 0_usize..5,
        which in any::<prop::sample::Index>(),
        text in contents(),
    ) {
        let tree = tree(kind);
        let path = which.get(&tree.paths()).clone();
        examine(&tree.bytes(&path, &text));
    }

    #[test]
    fn every_file_damaged(
        kind in 0_usize..5,
        texts in prop::collection::vec(contents(), 1..40),
    ) {
        let mut tree = tree(kind);
        for (index, path) in tree.paths().into_iter().enumerate() {
            tree = tree.bytes(&path, &texts[index % texts.len()]);
        }
        examine(&tree);
    }
}
