//! The same work as a process and on the unikernel, in one run.

use std::fs;

use crate::common::{self, Bench, skip};
use tare_results::model::Cell;

/// Says whether the unikernel can be booted here.
pub fn is_usable(bench: &Bench) -> bool {
    let targets = bench.run("targets --json");
    let list: serde_json::Value = serde_json::from_str(&targets.out).unwrap();
    let mut rows = list.as_array().unwrap().iter();
    let unikernel = rows.find(|row| row["name"] == "unikernel").unwrap();
    let is_usable = unikernel["state"] == "usable";
    if !is_usable {
        skip("unikernel", &unikernel["why"].to_string());
    }
    is_usable
}

#[test]
fn an_image_of_one_s_own_is_measured_and_named_in_the_result() {
    let bench = Bench::new();
    if !is_usable(&bench) {
        return;
    }
    let built = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../measured/target/x86_64-unknown-linux-gnu/release"
    );
    let mut image = fs::read(format!("{built}/bench")).unwrap();
    // Another file than the one that comes with tare.
    image.push(0);
    let path = bench.work().join("my-image");
    fs::write(&path, &image).unwrap();
    bench
        .run(
            "noise --workload prime --limit 22 --repetitions 20000 --runs 1 --output run \
             --target unikernel --target unikernel,irq=off,image=my-image",
        )
        .expect(0, &["image="]);
    let cells = [1, 2].map(|id| -> Cell {
        let file = bench.work().join(format!("run/cells/{id:04}/cell.json"));
        serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
    });
    let agents = cells.map(|cell| {
        let record = cell.outcome.record().unwrap();
        let sha256 = record.programs[0].agent.sha256.clone();
        (cell.plan.target.option("image").map(str::to_owned), sha256)
    });
    let own = agents.iter().find(|(image, _)| image.is_some()).unwrap();
    assert_eq!(own.0.as_deref(), path.to_str());
    assert_ne!(agents[0].1, agents[1].1);

    // An image that can't be measured is reported before anything runs.
    fs::copy(format!("{built}/hello"), bench.work().join("hello")).unwrap();
    fs::write(bench.work().join("text"), "no image").unwrap();
    for (image, why) in [
        ("hello", "does not say that it prints records"),
        ("text", "is not an ELF file for x86-64"),
        ("no-such", "is not found"),
    ] {
        for dry_run in ["", "--dry-run"] {
            let words = format!("noise --target unikernel,image={image} --output other {dry_run}");
            bench.run(&words).expect(5, &[why]);
        }
    }
    assert!(!bench.work().join("other").exists());
}

#[test]
fn what_a_target_needed_to_start_is_remembered_for_the_next_plan() {
    let bench = Bench::new();
    if !is_usable(&bench) {
        return;
    }
    let words = "noise --workload prime --repetitions 1000 --runs 1 --target unikernel";
    bench.run(&format!("{words} --output run")).expect(0, &[]);
    let file = bench.state().join("starts.json");
    let text = fs::read_to_string(&file).unwrap();
    let starts: serde_json::Value = serde_json::from_str(&text).unwrap();
    let starts = starts.as_object().unwrap();
    let (key, seconds) = starts.iter().next().unwrap();
    assert!(key == "unikernel; tcg" || key == "unikernel; kvm", "{text}");
    assert!(seconds.as_f64().unwrap() > 0.0);
    // As on a machine that needs two minutes.
    fs::write(&file, format!("{{\"{key}\": 120.0}}")).unwrap();
    let limit = |run: &str| {
        let plan = common::json(&bench.work().join(run).join("plan.json"));
        plan["cells"][0]["limit_seconds"].as_f64().unwrap()
    };
    bench.run(&format!("{words} --output slow")).expect(0, &[]);
    assert!(limit("slow") > limit("run") + 1_000.0);
    fs::write(&file, format!("{{\"{key}\": 120.0}}")).unwrap();
    let planned = bench.run(&format!("{words} --dry-run"));
    planned.expect(0, &["2 min 1 s"]);
    fs::remove_file(&file).unwrap();
    let planned = bench.run(&format!("{words} --dry-run"));
    planned.expect(0, &[" 1 s in all"]);
}

#[test]
fn options_that_make_no_sense_are_usage_errors() {
    let bench = Bench::new();
    for (words, said) in [
        ("noise --target unikernel,irq=maybe", "irq"),
        ("noise --target unikernel,machine=vax", "machine"),
        ("noise --target unikernel,irq=on,irq=off", "irq"),
        ("noise --target unikernel,clock=instructions,cpus=2", "cpus"),
    ] {
        bench.run(words).expect(2, &[said]);
    }
}
