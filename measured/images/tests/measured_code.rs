//! The measured code is identical, byte for byte, in the agent and in the image.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::symbol;
use tare_workloads::symbols;

#[test]
fn every_measured_symbol_is_the_same_in_agent_and_image() {
    let image = Path::new(env!("CARGO_BIN_EXE_bench"));
    let agent = built_agent(image);
    for name in symbols() {
        let in_agent = symbol(&agent, name);
        let in_image = symbol(image, name);
        assert!(in_agent.is_some(), "{name} is not in the agent");
        assert!(
            in_agent == in_image,
            "{name} is other code in the image than in the agent: {in_agent:x?} {in_image:x?}"
        );
    }
}

/// Builds the agent as users do, in the profile of the image, and returns its path.
fn built_agent(image: &Path) -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--package", "tare-agent", "--target-dir"]);
    // The image is in TARGET_DIR/TRIPLE/PROFILE.
    let profile_dir = image.parent().unwrap();
    cargo.arg(profile_dir.ancestors().nth(2).unwrap());
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    assert!(cargo.status().unwrap().success());
    profile_dir.join("tare-agent")
}
