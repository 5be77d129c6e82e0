//! The rows of every figure: what they say of resumed runs, and that other engines read them.

use std::path::Path;
use std::process::Command;

use crate::common::{Bench, json, skip};
use serde_json::Value;

/// The pages whose queries are executed.
const FIGURES: &str = include_str!("../../../../docs/figures.md");
const RUN_FOLDER: &str = include_str!("../../../../docs/run-folder.md");

/// Returns the queries of a page.
fn queries(page: &str) -> Vec<&str> {
    let blocks = page.split("```sql\n").skip(1);
    blocks.map(|rest| rest.split(';').next().unwrap()).collect()
}

/// Returns the rows of a run over all blocks.
fn rows(bench: &Bench, run: &str) -> Vec<Value> {
    let summary = json(&bench.work().join(run).join("summary.json"));
    summary["figures"].as_array().unwrap().clone()
}

fn row<'a>(rows: &'a [Value], measure: &str, figure: &str) -> &'a Value {
    rows.iter()
        .find(|row| row["measure"] == measure && row["figure"] == figure)
        .unwrap()
}

#[test]
fn runs_are_added_to_a_finished_run() {
    let bench = Bench::new();
    let words = "wakeup -i 1000 -l 200 --policy other -a 0";
    let few = "with 2 runs, no intervals for ";
    bench
        .run(&format!("{words} --runs 2 --output run"))
        .expect(0, &[few]);
    let before = rows(&bench, "run");
    let median = row(&before, "latency", "p50");
    assert_eq!(
        (&median["runs"], &median["method"]),
        (&2.into(), &Value::Null)
    );
    let refused = median["refused"].as_str().unwrap();
    assert!(refused.contains("needs 6 runs and has 2"), "{refused}");

    let plan = bench.work().join("run/plan.json");
    let planned = std::fs::read(&plan).unwrap();
    let dry = bench.run("wakeup --resume run --runs 4 --dry-run");
    dry.expect(0, &["block 3-6", "4 cells would be added to run"]);
    assert!(!dry.out.contains("no intervals"), "{dry:?}");
    assert_eq!(std::fs::read(&plan).unwrap(), planned);
    bench
        .run("wakeup --resume run --runs 0")
        .expect(2, &["number of runs"]);

    let ran = bench.run("wakeup --resume run --runs 4");
    ran.expect(0, &["4 cells"]);
    let after = rows(&bench, "run");
    let median = row(&after, "latency", "p50");
    assert_eq!(
        (&median["runs"], &median["refused"]),
        (&6.into(), &Value::Null)
    );
    assert!(median["low"].is_f64() && median["method"].is_string());
    // Other tests may have a run wake up in two modes, whose share is a row.
    let all = |rows: &[Value]| rows.iter().filter(|row| row["figure"] != "slow").count();
    assert_eq!(all(&after), all(&before));
    let cell = |id: u32| json(&bench.work().join(format!("run/cells/{id:04}/cell.json")));
    let invocations = (1..=6).map(|id| cell(id)["invocation"].as_str().unwrap().to_owned());
    let invocations: Vec<String> = invocations.collect();
    assert!(invocations[0] == invocations[1] && invocations[1] != invocations[2]);
    assert!(invocations[2..].iter().all(|at| *at == invocations[2]));
    let blocks: Vec<u64> = (1..=6)
        .map(|id| cell(id)["plan"]["block"].as_u64().unwrap())
        .collect();
    assert_eq!(blocks, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_run_is_added_to_each_combination_and_a_traced_one_beside() {
    let bench = Bench::new();
    // Where the kernel can't be traced, that cell fails; the plan is the same.
    bench.run("wakeup -i 1000 -l 50 --policy other -a 0 --trace 1 --runs 2 --output run");
    bench
        .run("wakeup --resume run --runs 1 --dry-run")
        .expect(0, &["2 cells would be added to run"]);
}

#[test]
fn duckdb_reads_runs_by_the_queries_of_the_pages() {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    if !python.exists() {
        return skip("DuckDB's Python package", "scripts/setup test installs it");
    }
    let bench = Bench::new();
    let gap = "noise --workload gap --repetitions 200000 --cpu 0";
    let woken = "wakeup -i 1000 --policy other -a 0 --load idle --load dd --phase 0.3";
    for (words, name) in [
        (format!("{gap} --runs 3"), "gap-1"),
        (format!("{gap} --runs 2"), "gap-2"),
        (format!("{woken} --runs 2"), "woken"),
    ] {
        bench
            .run(&format!("{words} --output tare-runs/{name}"))
            .expect(0, &[]);
    }
    bench
        .run("noise --resume tare-runs/gap-2 --runs 2")
        .expect(0, &[]);
    let query_in = |folder: &Path, sql: &str| -> Vec<Value> {
        let script = "import duckdb, sys\n\
                      rows = duckdb.sql(f'SELECT to_json(q)::VARCHAR FROM ({sys.argv[1]}) q')\n\
                      for row, in rows.fetchall(): print(row)";
        let mut command = Command::new(&python);
        command.args(["-c", script, sql]).current_dir(folder);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}\n{said}");
        let lines = String::from_utf8(output.stdout).unwrap();
        lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let query = |sql: &str| query_in(&bench.work(), sql);
    let [lost, phases, invocations] = queries(FIGURES)[..] else {
        panic!("{FIGURES}");
    };
    let found = query(lost);
    let told: Vec<_> = found
        .iter()
        .map(|row| (&row["run"], &row["target"], &row["load"], &row["blocks"]))
        .map(|(run, target, load, blocks)| serde_json::json!([run, target, load, blocks]))
        .collect();
    let expected = |run: &str, blocks: u32| serde_json::json!([run, "process", "idle", blocks]);
    assert_eq!(told, [expected("gap-1", 3), expected("gap-2", 4)]);
    let figures = ["lost_percent", "worst_percent"];
    let all_there = |row: &Value| figures.iter().all(|figure| row[figure].is_f64());
    assert!(found.iter().all(all_there), "{found:?}");
    let found = query(phases);
    let loads: Vec<(&str, &str)> = found
        .iter()
        .map(|row| {
            (
                row["phase"].as_str().unwrap(),
                row["load"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(loads, [("0", "idle"), ("1", "dd")]);
    assert!(found.iter().all(|row| row["p50_us"].is_f64()), "{found:?}");
    let found = query(invocations);
    let runs: Vec<&Value> = found.iter().map(|row| &row["runs"]).collect();
    assert_eq!(runs, [3, 2, 2]);
    // The same rows as text.
    let of = |name: &str| {
        format!("SELECT count(*) AS n, sum(value) AS s FROM 'tare-runs/*/figures.{name}'")
    };
    let same = format!(
        "SELECT a.n = b.n AND abs(a.s - b.s) <= 1e-9 * abs(b.s) AS same FROM ({}) a, ({}) b",
        of("parquet"),
        of("csv")
    );
    assert_eq!(query(&same)[0]["same"], true);
    // The samples of one run.
    let [sets, longest, metadata] = queries(RUN_FOLDER)[..] else {
        panic!("{RUN_FOLDER}");
    };
    bench
        .run("noise --workload prime --repetitions 1000 --threshold 1 --runs 3 --output samples")
        .expect(0, &[]);
    let of_run = |sql| query_in(&bench.work().join("samples"), sql);
    let found = of_run(sets);
    let cells: Vec<&Value> = found.iter().map(|row| &row["cell"]).collect();
    assert_eq!(cells, [1, 2, 3]);
    assert!(found.iter().all(|row| row["mean"].is_f64()), "{found:?}");
    let found = of_run(longest);
    let all_there = |row: &Value| row["name"] == "prime 22" && row["lasted_us"].is_f64();
    assert!(
        !found.is_empty() && found.iter().all(all_there),
        "{found:?}"
    );
    assert_eq!(of_run(metadata).len(), 3);
}
