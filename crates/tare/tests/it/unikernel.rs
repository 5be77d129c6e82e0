//! The same work as a process and on the unikernel, in one run.

use std::fs;

use crate::common::{self, Bench, skip};
use tare_results::model::Cell;

/// The folder of the images that come with tare.
const BUILT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../measured/target/x86_64-unknown-linux-gnu/release"
);

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
    let mut image = fs::read(format!("{BUILT}/bench")).unwrap();
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
}

#[test]
fn an_image_that_could_not_run_is_refused_before_anything_is_measured() {
    let bench = Bench::new();
    if !is_usable(&bench) {
        return;
    }
    let built = |name: &str| fs::read(format!("{BUILT}/{name}")).unwrap();
    let changed = |at: usize, bytes: &[u8]| {
        let mut image = built("bench");
        image[at..at + bytes.len()].copy_from_slice(bytes);
        image
    };
    let image = built("bench");
    // The note by which QEMU finds where an image begins: an address behind its name of 4 bytes.
    let note = [4_u32, 8, 18].map(u32::to_le_bytes).concat();
    let note = image.windows(12).position(|bytes| bytes == note).unwrap();
    // The header of a kernel of which no more is there.
    let mut kernel = vec![0; 2_600];
    for (at, bytes) in [
        (0x1f1, &[4, 0, 0, 10][..]),
        (0x1fe, &[0x55, 0xaa]),
        (0x202, b"HdrS\x0f\x02"),
        (0x211, &[1]),
        (0x236, &[1]),
    ] {
        kernel[at..at + bytes.len()].copy_from_slice(bytes);
    }
    let half = image[..image.len() / 2].to_vec();
    let files: [(&str, &str, Vec<u8>, &str); 9] = [
        (
            "noise",
            "unikernel,image=",
            built("hello"),
            "does not say that it prints records",
        ),
        (
            "noise",
            "unikernel,image=",
            b"no image".to_vec(),
            "is not an ELF file for x86-64",
        ),
        (
            "noise",
            "unikernel,image=",
            half.clone(),
            "is cut short: it has ",
        ),
        // The flags of the first segment: 4 bytes after its type, behind the header of 64 bytes.
        (
            "noise",
            "unikernel,image=",
            changed(68, &7_u32.to_le_bytes()),
            "writable and executable",
        ),
        (
            "wakeup",
            "unikernel,image=",
            changed(note + 16, &0x10_u32.to_le_bytes()),
            "begins at 0x10, where it has no code",
        ),
        (
            "start",
            "unikernel,image=",
            changed(68, &7_u32.to_le_bytes()),
            "writable and executable",
        ),
        (
            "start",
            "guest,ready=x,success=33,image=",
            half,
            "is cut short: it has ",
        ),
        ("noise", "linux,kernel=", kernel, "it is cut off: 2600 of "),
        (
            "noise",
            "linux,kernel=",
            b"no kernel".to_vec(),
            "it has only 9 bytes",
        ),
    ];
    for (experiment, option, image, why) in files {
        fs::write(bench.work().join("damaged"), image).unwrap();
        for dry_run in ["", "--dry-run"] {
            let words = format!("{experiment} --target {option}./damaged --output run {dry_run}");
            bench.run(&words).expect(5, &[why]);
            assert!(!bench.work().join("run").exists(), "{words}");
        }
    }
    bench
        .run("noise --target unikernel,image=no-such")
        .expect(5, &["is not found"]);
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
