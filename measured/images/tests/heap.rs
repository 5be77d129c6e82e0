//! The heap: on one CPU, on several at once, and when memory runs out.

mod common;

use common::{CRASHED, DONE, Guest};

const HEAP: &str = env!("CARGO_BIN_EXE_heap");

#[test]
fn values_stay_on_one_cpu_and_on_several_at_once() {
    for cpus in [1, 3] {
        let guest = Guest {
            cpus,
            machine: "q35",
            ..Guest::new(HEAP, &format!("cpus={cpus} rounds=100"))
        };
        let Some(ended) = guest.boot() else { return };
        assert_eq!(ended.status, DONE, "{}", ended.text);
    }
}

#[test]
fn without_memory_an_allocation_is_a_panic() {
    let guest = Guest {
        memory_mib: 2,
        ..Guest::new(HEAP, "cpus=1 rounds=100000 keep")
    };
    let Some(ended) = guest.boot() else { return };
    assert_eq!(ended.status, CRASHED, "{}", ended.text);
    assert!(
        ended.text.contains("memory allocation of"),
        "{}",
        ended.text
    );
}
