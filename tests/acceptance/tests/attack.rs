//! A short attack; `make attack` lasts ten minutes.

use std::process::Command;

#[test]
fn tare_withstands_half_a_minute_of_attacks() {
    let attacked = Command::new(env!("CARGO_BIN_EXE_tare-acceptance"))
        .args(["attack", "30"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&attacked.stdout);
    let errors = String::from_utf8_lossy(&attacked.stderr);
    assert!(attacked.status.success(), "{said}\n{errors}");
    for kind in [
        "damage",
        "kill",
        "interrupt",
        "stop",
        "move",
        "fill",
        "limit file size",
    ] {
        assert!(said.contains(&format!("holds  {kind}: ")), "{said}");
        assert!(!said.contains(&format!("{kind}: 0 rounds")), "{said}");
    }
}
