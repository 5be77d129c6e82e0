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
    // Each round is one of seven kinds; the first are drawn within seconds.
    assert!(said.contains("holds  damage: "), "{said}");
}
