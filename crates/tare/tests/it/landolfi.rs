//! Repeats landolfi-2018 with short phases: with the machine's clock, and in guests that count instructions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::common::{self, Bench, files, is_root, skip};
use serde_json::Value;

const PHASES: [&str; 7] = ["idle", "ping", "idle", "dd+hackbench", "du", "tar", "nc"];
const MODELS: [&str; 4] = ["none", "voluntary", "full", "rt"];

fn summary(run: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(run.join("summary.json")).unwrap()).unwrap()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a Vec<Value> {
    value[name].as_array().unwrap()
}

/// Says whether this machine has what the study takes: kernels, QEMU, and the right to SCHED_FIFO.
fn can_measure(bench: &Bench, words: &str) -> bool {
    if !is_root() {
        skip("landolfi-2018", "the loads of the study need root");
        return false;
    }
    let ran = bench.run(&format!("reproduce landolfi-2018 {words} --dry-run"));
    if ran.code == Some(5) {
        skip("landolfi-2018", ran.err.trim());
        return false;
    }
    ran.expect(0, &[]);
    true
}

/// Returns the figures over all runs of some measures of all threads together.
fn rows<'a>(
    summary: &'a Value,
    measures: &'a [&str],
    figure: &'a str,
) -> impl Iterator<Item = &'a Value> {
    let rows = list(summary, "figures").iter();
    rows.filter(move |row| {
        let measure = row["measure"].as_str().unwrap();
        row["figure"] == figure && measures.contains(&measure) && row["labels"]["thread"].is_null()
    })
}

fn targets(summary: &Value) -> BTreeSet<&str> {
    let rows = rows(summary, &["latency"], "max");
    rows.map(|row| row["target"].as_str().unwrap()).collect()
}

/// Returns the preemption model of the kernel of each target that tells it.
fn models(summary: &Value, group: &str) -> BTreeMap<String, String> {
    let places = list(summary, "places").iter();
    let of_group = places.filter(|place| place["group"] == group);
    let models = of_group.filter_map(|place| {
        let mut facts = list(place, "facts").iter();
        let fact = facts.find(|fact| fact["name"] == "preemption model")?;
        let model = fact["values"][0]["value"].as_str()?;
        Some((place["target"].as_str()?.to_owned(), model.to_owned()))
    });
    models.collect()
}

/// Asserts that each target has figures of each phase, and that every activation is accounted for.
fn assert_complete(summary: &Value, loads: &[&str], number: usize, activations: u64) {
    assert_eq!(targets(summary).len(), number);
    for target in targets(summary) {
        let own = |measures, figure| {
            let rows = rows(summary, measures, figure);
            rows.filter(|row| row["target"] == target)
        };
        let phases: BTreeMap<u64, &str> = own(&["wake-ups", "absent"], "total")
            .map(|row| {
                let phase = row["labels"]["phase"].as_str().unwrap();
                (phase.parse().unwrap(), row["load"].as_str().unwrap())
            })
            .collect();
        assert!(phases.into_values().eq(loads.iter().copied()), "{target}");
        // What falls between two phases, where a load took long to end, is counted apart.
        const COUNTED: [&str; 4] = ["wake-ups", "missed", "between", "missed between"];
        let due = own(&COUNTED, "total").map(|row| row["value"].as_f64().unwrap() as u64);
        let due: u64 = due.sum();
        // A late wake-up at the very end answers for what would have been due until it ran: up to 10,000 here.
        let allowed = activations..activations + 10_000;
        assert!(allowed.contains(&due), "{due}: {target}");
    }
    let reproduction = &summary["reproduction"];
    assert_eq!(reproduction["study"], "landolfi-2018");
    assert_eq!(list(reproduction, "claims").len(), 4);
    assert_eq!(list(&reproduction["tables"][0], "rows").len(), 28);
}

#[test]
fn the_study_runs_from_one_command_on_four_kernels_and_this_one() {
    let _alone = common::alone();
    let bench = Bench::new();
    if !can_measure(&bench, "--quick --phase 1") {
        return;
    }
    // An emulator beside neighbours holds no interval of 100 µs: setting a timer in it may take as long.
    let study = include_str!("../../../../studies/landolfi-2018.toml");
    let slower = study
        .replace("interval = \"100us\"", "interval = \"1ms\"")
        .replace("phase = \"3s\"", "phase = \"1s\"");
    std::fs::write(bench.work().join("study.toml"), slower).unwrap();
    bench
        .run("run study.toml --quick --output run")
        .expect(0, &["Claims of landolfi-2018", "interval"]);
    let summary = summary(&bench.work().join("run"));
    assert_complete(&summary, &PHASES, 5, 7_000);
    let models = models(&summary, "linux_guest").into_values();
    assert_eq!(
        models.collect::<BTreeSet<_>>(),
        MODELS.map(String::from).into()
    );
}

/// Freezes itself 3 s beyond the time that its killing is waited for at most, which SIGKILL can't shorten in a freezer of
/// version 1: 1 s of phase, 1 s to end when asked, 1 s to be gone when killed.
const FROZEN: &str = "\
group=$1
mkdir $group || exit 1
setsid sh -c \"sleep 6; echo THAWED >$group/freezer.state; until rmdir $group; do sleep 0.1; done\" &
echo $$ >$group/cgroup.procs
echo FROZEN >$group/freezer.state
sleep 1000
";

/// Writes into a pipe that nobody reads, whatever it is asked, for 10 s at least.
const BLOCKED: &str = "\
trap '' TERM INT HUP
mkfifo pipe
exec 3<>pipe
dd if=/dev/zero bs=1M count=1 >&3
";

#[test]
fn the_study_goes_on_beside_tools_that_can_t_be_ended() {
    let bench = Bench::new();
    if !is_root() {
        skip("landolfi-2018", "the loads of the study need root");
        return;
    }
    let group = format!("/sys/fs/cgroup/freezer/tare-test-{}", std::process::id());
    if !Path::new("/sys/fs/cgroup/freezer").is_dir() {
        skip(
            "frozen",
            "there is no freezer of version 1, in which nothing can be killed",
        );
        return;
    }
    for (name, script) in [("frozen.sh", FROZEN), ("blocked.sh", BLOCKED)] {
        std::fs::write(bench.work().join(name), script).unwrap();
    }
    let work = bench.work();
    let frozen = format!("command:sh {}/frozen.sh {group}", work.display());
    let blocked = format!("command:sh {}/blocked.sh", work.display());
    let mut loads = PHASES.to_vec();
    loads.splice(
        3..3,
        [
            frozen.as_str(),
            "idle",
            "idle",
            "idle",
            blocked.as_str(),
            "idle",
            "idle",
        ],
    );
    let study = format!(
        "reproduces = \"landolfi-2018\"\ntargets = [\"process\"]\nloads = {loads:?}\nruns = 1\n\
         [[experiment]]\nkind = \"wakeup\"\ninterval = \"100us\"\npolicy = \"fifo\"\npriority = 95\nphase = \"1s\"\n"
    );
    std::fs::write(work.join("study.toml"), study).unwrap();
    bench.run("run study.toml --output run").expect(
        0,
        &[
            "Claims of landolfi-2018",
            "of phase 3 in cell 1 ran on beside phase",
            "ended before the cell did",
            "Loads were skipped",
            // Which one held the next one up longest is a matter of what else runs here.
            " of the load before (",
            "idle (3), absent",
        ],
    );
    let summary = summary(&work.join("run"));
    let phases = rows(&summary, &["wake-ups", "absent"], "total");
    assert_eq!(phases.count(), loads.len());
    let between = rows(&summary, &["between"], "total");
    let between: f64 = between.map(|row| row["value"].as_f64().unwrap()).sum();
    assert!(between >= 10_000.0, "{between}");
    assert!(!Path::new(&group).exists());
    assert_eq!(files(&bench.scratch()), Vec::<String>::new());
    assert_eq!(files(&bench.state().join("runs")), Vec::<String>::new());
}

#[test]
fn where_instructions_are_time_only_the_real_time_kernel_bounds_the_maximum() {
    let bench = Bench::new();
    if !can_measure(&bench, "--deterministic --phase 0.1") {
        return;
    }
    bench
        .run("reproduce landolfi-2018 --deterministic --phase 0.1 --output run")
        .expect(0, &["+ Only the real-time kernel bounds the maximum."]);
    let summary = summary(&bench.work().join("run"));
    assert_complete(&summary, &PHASES, 4, 7_000);
    let models = models(&summary, "linux_guest");
    let mut maxima: BTreeMap<&str, f64> = BTreeMap::new();
    // In phases as short as these, hackbench may take that long to end that the next one is absent.
    for row in rows(&summary, &["latency"], "max").filter(|row| row["load"] != "idle") {
        let model = models[row["target"].as_str().unwrap()].as_str();
        let longest_ns = maxima.entry(model).or_default();
        *longest_ns = longest_ns.max(row["value"].as_f64().unwrap());
    }
    assert!(
        maxima
            .keys()
            .copied()
            .eq(["full", "none", "rt", "voluntary"])
    );
    for (model, longest_ns) in &maxima {
        assert!(*model == "rt" || maxima["rt"] < *longest_ns, "{maxima:?}");
    }
}
