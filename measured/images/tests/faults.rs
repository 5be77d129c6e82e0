//! Every fault is detected, and reported with its name, the active functions and a status.

mod common;

use common::{CRASHED, Guest, backtrace};

const FAULTS: &str = env!("CARGO_BIN_EXE_faults");

#[test]
fn every_fault_is_reported_with_the_functions_under_way() {
    // Word, message, and functions that the backtrace must name, innermost first.
    for (fault, message, functions) in [
        (
            "panic",
            "the len is 3 but the index is 3",
            &["index_out_of_bounds", "main"][..],
        ),
        ("divide", "#DE divide error", &["divide", "main"]),
        (
            "null",
            "#PF page fault: an access through a null pointer",
            &["faults4read", "main"],
        ),
        (
            "unmapped",
            "#PF page fault: a read from where nothing is mapped",
            &["faults4read", "main"],
        ),
        (
            "double",
            "#DF double fault",
            &["faults4read", "double_fault", "main"],
        ),
        (
            "overflow",
            "#PF page fault: a stack overflow",
            &["deeper", "deeper", "deeper"],
        ),
        (
            "write-code",
            "#PF page fault: a write to code",
            &["faults5write", "main"],
        ),
        (
            "write-constant",
            "#PF page fault: a write to a constant",
            &["faults5write", "main"],
        ),
        (
            "execute-data",
            "#PF page fault: execution of data",
            &["execute_data", "main"],
        ),
        ("invalid", "#UD invalid opcode", &["invalid_opcode", "main"]),
    ] {
        let Some(ended) = Guest::new(FAULTS, &format!("fault={fault}")).boot() else {
            return;
        };
        assert_eq!(ended.status, CRASHED, "{fault}: {}", ended.text);
        assert!(ended.text.contains(message), "{fault}: {}", ended.text);
        let names = backtrace(FAULTS, &ended.text);
        let mut rest = names.iter();
        for function in functions {
            assert!(
                rest.any(|name| name.contains(function)),
                "{fault}: {function} is not in {names:?}"
            );
        }
    }
}

#[test]
fn the_stacks_of_other_cpus_have_guard_pages_too() {
    let guest = Guest {
        cpus: 2,
        machine: "q35",
        ..Guest::new(FAULTS, "fault=other-cpu")
    };
    let Some(ended) = guest.boot() else { return };
    assert_eq!(ended.status, CRASHED);
    assert!(ended.text.contains("a stack overflow"), "{}", ended.text);
    assert!(
        ended.text.contains("unikernel: cpu 0x0000000000000001 "),
        "{}",
        ended.text
    );
}
