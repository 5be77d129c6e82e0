//! Container images of the user, started by both engines. These tests stand in a separate module so
//! that they do not wait for the other ones that start an engine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tare_results::model::{Instance, InstanceOutcome};

use crate::common::{self, Bench, is_root, skip};
use crate::start::{assert_nothing_is_left, cells, instances, run_of};

/// Writes an image as `docker save` does: one layer with the agent, which is started by it. None if
/// that is not built.
fn saved_image(bench: &Bench) -> Option<PathBuf> {
    let agent = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../measured/target/x86_64-unknown-linux-gnu/release/tare-agent");
    let folder = bench.work().join("image");
    fs::create_dir(&folder).unwrap();
    if fs::copy(agent, folder.join("own")).is_err() {
        skip("agent", "it is not built");
        return None;
    }
    let sh = |script: &str| {
        let output = Command::new("sh")
            .args(["-ec", script])
            .current_dir(&folder)
            .output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let sum = sh("tar -cf layer.tar own; sha256sum layer.tar");
    let config = serde_json::json!({
        "architecture": "amd64",
        "os": "linux",
        "config": { "Entrypoint": ["/own"], "Cmd": ["workload=start"] },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", &sum[..64])] },
    });
    let manifest = serde_json::json!([{
        "Config": "config.json",
        "RepoTags": ["tare-own-image:1"],
        "Layers": ["layer.tar"],
    }]);
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    sh("tar -cf ../own.tar manifest.json config.json layer.tar");
    Some(bench.work().join("own.tar"))
}

#[test]
fn saved_images_are_started_by_both_engines() {
    let _engine = common::engine();
    if !is_root() {
        return skip("containers", "a private engine requires root");
    }
    let bench = Bench::new();
    let Some(image) = saved_image(&bench) else {
        return;
    };
    let image = image.display();
    let words = format!(
        "--target docker,image={image} --target podman,image={image} --start-engine --interval alone --warmup 0 --measure 1 \
         --runs 1"
    );
    let ran = bench.run(&format!("start {words} --output run"));
    if ran.code == Some(5) {
        return skip("an engine", &ran.err);
    }
    ran.expect(0, &["Ready", "boot alone"]);
    for cell in cells(&bench) {
        let all = instances(&bench, &cell);
        let is_fine = |one: &Instance| {
            one.outcome() == InstanceOutcome::Done && one.ready_ns > one.started_ns
        };
        assert!(!all.is_empty() && all.iter().all(is_fine), "{all:?}");
    }
    assert_nothing_is_left(&bench);
    // With a command of one's own.
    fs::remove_dir_all(run_of(&bench)).unwrap();
    let mut command = bench.command(&format!("start {words} --output run --work"));
    let output = command
        .arg("command:workload=start work=thumbnail")
        .output();
    common::Ran::of(output.unwrap()).expect(0, &["work=command:workload=start work=thumbnail"]);
    for dry in ["", "--dry-run"] {
        bench
            .run(&format!(
                "start --target docker,image=alpine --start-engine {dry}"
            ))
            .expect(
                5,
                &[
                    "a private engine has no images",
                    "docker save alpine -o FILE.tar",
                ],
            );
    }
    bench
        .run(&format!(
            "noise --target docker,image={image} --start-engine"
        ))
        .expect(2, &["runs no plans"]);
    bench
        .run("start --target podman,image=alpine")
        .expect(2, &["podman save"]);
    bench
        .run("start --target docker,image=/nowhere.tar --start-engine")
        .expect(2, &["image=/nowhere.tar", "that is there"]);
}
