//! What the operating system adds: known answers, and every reason for not giving one.

use serde_json::{Value, json};
use tare_pages::{Report, page, terminal};
use tare_testkit::assert_contains;

use crate::synthetic::{self, HZ, Run, evenly, measured, shown};

const KVM: Option<&str> = Some("KVM of QEMU 9.0");

/// Makes a second of spinning with gaps of 20,021 cycles in even distances, of which 20,000 are
/// lost.
fn gaps(per_second: u64) -> synthetic::Folded {
    evenly(HZ as u64, per_second, 1_300)
}

/// Measures `process` and the unikernel with these gaps per second in each block.
fn pair(blocks: &[(u64, u64)]) -> Run {
    let mut run = Run::new(1);
    for (block, (process, unikernel)) in (1..).zip(blocks) {
        run.gap(block, "process", gaps(*process));
        guest(&mut run, block, "unikernel,irq=off", *unikernel);
    }
    run
}

/// Measures a guest that KVM executes.
fn guest(run: &mut Run, block: u32, target: &str, rate: u64) {
    run.accelerator = KVM;
    run.gap(block, target, gaps(rate));
    run.accelerator = None;
}

/// Returns the split as `summary.json` has it, and the caution or the table that shows it.
fn attribution(run: Run) -> (Value, String) {
    told(&run.analyse())
}

fn told(analysis: &Report) -> (Value, String) {
    let summary = analysis.summary();
    let mut refused = summary.alarms.iter().filter(|alarm| alarm.id == "no-split");
    let refused = refused.next().map(|alarm| alarm.text.clone());
    let text = terminal::render(analysis, 120, false);
    let table = text.split_once("What the operating system adds\n");
    let said = refused.or(table.map(|(_, table)| table.to_owned()));
    (summary.stories["noise"].clone(), said.unwrap_or_default())
}

fn only(attribution: &Value) -> &Value {
    assert_eq!(attribution["refused"], json!([]));
    assert_eq!(attribution["splits"].as_array().unwrap().len(), 1);
    &attribution["splits"][0]
}

/// Returns the part that divides a figure.
fn part<'a>(split: &'a Value, measure: &str, labels: &Value) -> &'a Value {
    let mut parts = split["parts"].as_array().unwrap().iter();
    let found = parts.find(|part| part["measure"] == measure && part["labels"] == *labels);
    found.unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn near(given: f64, expected: f64) {
    assert!(
        (given - expected).abs() < 1e-6 * expected.abs().max(1e-6),
        "{given} instead of {expected}"
    );
}

#[test]
fn the_parts_add_up_and_the_interval_is_that_of_the_paired_differences() {
    // Differences of 1,000, 1,010 and 1,020 gaps, although each target varies by far more.
    let (found, said) = attribution(pair(&[(1_100, 100), (1_610, 600), (1_320, 300)]));
    let split = only(&found);
    assert_eq!(split["blocks"], json!([1, 2, 3]));
    let rate = part(split, "gaps", &json!({}));
    let difference = &rate["difference"];
    near(number(&rate["all"]), (1_100.0 + 1_610.0 + 1_320.0) / 3.0);
    near(number(&rate["below"]), 1_000.0 / 3.0);
    near(number(&difference["estimate"]), 1_010.0);
    // Student's t at 97.5 % with 2 degrees of freedom is 4.302653; s is 10.
    near(
        (number(&difference["high"]) - number(&difference["low"])) / 2.0,
        4.302_652_729_696_144 * 10.0 / 3_f64.sqrt(),
    );
    assert_eq!(rate["finding"], "added");
    let lost = &split["parts"][0];
    assert_eq!(
        (&lost["measure"], &lost["figure"]),
        (&json!("lost"), &json!("share"))
    );
    near(number(&lost["below"]), 20_000.0 * 1_000.0 / 3.0 / HZ);
    near(
        number(&lost["difference"]["estimate"]),
        20_000.0 * 1_010.0 / HZ,
    );
    // All gaps are longer than 6,000 cycles.
    let class = part(split, "gap-class", &json!({"class": "D"}));
    near(number(&class["difference"]["estimate"]), 1_010.0);
    let heading =
        "process against unikernel,irq=off, gap (3 blocks): at most lost below, at least added";
    assert_contains(&said, &[heading, "1.03 %", "0.26 %", "0.758 to 0.796 %"]);
}

#[test]
fn a_unikernel_on_the_bare_machine_gives_more_than_a_bound() {
    let mut run = Run::new(1);
    for (block, rate) in [(1, 1_000), (2, 1_010), (3, 1_030)] {
        run.gap(block, "process", gaps(rate));
        run.gap(block, "unikernel,irq=off", gaps(10));
    }
    let (found, said) = attribution(run);
    assert_eq!(only(&found)["is_bound"], false);
    assert!(!said.contains("at most") && !said.contains("at least"));
}

#[test]
fn overlapping_and_negative_differences_are_not_findings() {
    for blocks in [
        [(1_000, 900), (900, 1_000), (1_100, 1_000)],
        [(100, 1_000), (110, 1_010), (120, 1_000)],
        [(500, 500), (500, 500), (500, 500)],
    ] {
        let (found, said) = attribution(pair(&blocks));
        let split = only(&found);
        for part in split["parts"].as_array().unwrap() {
            assert_eq!(part["finding"], "not_distinguishable", "{part}");
        }
        assert_contains(&said, &["distinguishable"]);
        let page = page::render(&pair(&blocks).analyse());
        assert_contains(&page, &["not\ndistinguishable"]);
    }
}

#[test]
fn one_or_two_blocks_cannot_say() {
    for blocks in [&[(1_000, 10)][..], &[(1_000, 10), (1_010, 12)]] {
        let (found, said) = attribution(pair(blocks));
        assert_eq!(only(&found)["parts"][0]["finding"], "too_few_blocks");
        assert_contains(&said, &["too few"]);
    }
}

#[test]
fn under_an_emulator_it_says_that_it_cannot() {
    let mut run = Run::new(1);
    for block in 1..=3 {
        run.emulated = false;
        run.gap(block, "process", gaps(1_000));
        run.emulated = true;
        run.accelerator = Some("TCG of QEMU 9.0");
        run.gap(block, "unikernel,irq=off", gaps(10));
        run.accelerator = None;
    }
    let analysis = run.analyse();
    let (found, sentences) = told(&analysis);
    assert_eq!(found["splits"], json!([]));
    assert_eq!(found["refused"][0]["id"], "emulated");
    let said = "this run can't split what is lost below any operating system (firmware, hypervisor) from \
                what the operating system adds: QEMU's TCG executed unikernel,irq=off, and the emulator's own \
                delays are in its figures.";
    assert_contains(&sentences, &[said]);
    let (text, page) = shown(&analysis);
    assert_contains(&text, &[said]);
    assert_contains(&page, &["QEMU's TCG executed unikernel,irq=off"]);
    assert!(!page.contains("What the operating system adds</h2>"));
}

#[test]
fn another_cpu_is_no_reference() {
    for (cpu, said_of_it) in [
        (Some(0), "process ran on CPU 0 instead of CPU 1"),
        (None, "process was not pinned"),
    ] {
        let mut run = Run::new(1);
        for block in 1..=3 {
            let cell = run.gap(block, "process", gaps(1_000));
            measured(cell).preparation.cpu = cpu;
            guest(&mut run, block, "unikernel,irq=off", 10);
        }
        let (found, said) = attribution(run);
        assert_eq!(found["splits"], json!([]));
        assert_contains(&said, &[said_of_it]);
    }
}

#[test]
fn a_guest_s_own_cpu_number_is_not_the_machine_s() {
    let mut run = Run::new(1);
    for (block, rate) in [(1, 1_000), (2, 1_010)] {
        run.gap(block, "process", gaps(rate));
        run.accelerator = KVM;
        let cell = run.gap(block, "unikernel,irq=off", gaps(10));
        measured(cell).preparation.cpu = Some(0);
        run.accelerator = None;
    }
    only(&attribution(run).0);
}

#[test]
fn different_thresholds_are_not_compared_but_rounded_ones_are() {
    for (threshold, is_compared) in [(1_301, true), (2_600, false)] {
        let mut run = Run::new(1);
        for block in 1..=3 {
            run.gap(block, "process", gaps(1_000));
            run.accelerator = KVM;
            let folded = evenly(HZ as u64, 10, threshold);
            run.gap(block, "unikernel,irq=off", folded);
            run.accelerator = None;
        }
        let (found, said) = attribution(run);
        assert_eq!(found["splits"].as_array().unwrap().len() == 1, is_compared);
        if !is_compared {
            assert_contains(&said, &["1,300 cycles", "--threshold"]);
        }
    }
}

#[test]
fn without_the_pair_nothing_is_said_of_a_split() {
    for target in ["process", "unikernel,irq=off", "unikernel"] {
        let mut run = Run::new(1);
        run.gap(1, target, gaps(100));
        let (found, said) = attribution(run);
        assert_eq!((&found["refused"], said.as_str()), (&json!([]), ""));
    }
    let mut run = Run::new(1);
    run.gap(1, "process", gaps(100));
    run.failed(1, "unikernel,irq=off", "gap", "it hung");
    let (found, said) = attribution(run);
    assert_eq!(found["refused"][0]["id"], "not-measured");
    assert_contains(&said, &["no block has figures of both"]);
}

#[test]
fn a_block_that_lacks_one_of_the_two_is_left_out() {
    let mut run = pair(&[(1_000, 10), (1_010, 10)]);
    run.gap(3, "process", gaps(90_000));
    run.failed(3, "unikernel,irq=off", "gap", "it hung");
    let (found, _) = attribution(run);
    let split = only(&found);
    assert_eq!(split["blocks"], json!([1, 2]));
    near(number(&part(split, "gaps", &json!({}))["all"]), 1_005.0);
}

#[test]
fn without_gap_the_delays_of_prime_are_divided() {
    let delayed = |delays: usize| {
        let mut durations = vec![1_000; 100_000];
        for n in 0..delays {
            durations[n * 10] = 11_000;
        }
        durations
    };
    let mut run = Run::new(1);
    for (block, delays) in [(1, 100), (2, 110), (3, 105)] {
        run.prime(block, "process", &delayed(delays));
        run.accelerator = KVM;
        run.prime(block, "unikernel,irq=off", &delayed(5));
        run.accelerator = None;
    }
    let (found, said) = attribution(run);
    let split = only(&found);
    assert_eq!(split["workload"], "prime 22");
    assert_eq!(split["parts"][0]["labels"], json!({"above": "400cycles"}));
    let class = part(split, "delays", &json!({"class": "D"}));
    near(number(&class["all"]), 1_050e-6);
    near(number(&class["below"]), 50e-6);
    near(number(&class["difference"]["estimate"]), 1_000e-6);
    assert_contains(&said, &["time in delays above 400 cycles"]);
}

#[test]
fn each_load_is_divided_and_a_guest_s_kernel_by_what_lies_below_both() {
    let mut run = pair(&[(1_000, 10), (1_010, 10)]);
    for (block, rate) in [(1, 500), (2, 510)] {
        guest(&mut run, block, "linux,kernel=debian-rt", rate);
    }
    run.load = "dd";
    for (block, rate) in [(1, 4_000), (2, 4_040), (3, 4_020)] {
        run.gap(block, "process", gaps(rate));
        guest(&mut run, block, "unikernel,irq=off", 20);
        guest(&mut run, block, "linux,kernel=debian-rt", 500);
    }
    let analysis = run.analyse();
    let (found, said) = told(&analysis);
    let splits = found["splits"].as_array().unwrap().iter();
    let splits: Vec<_> = splits
        .map(|split| json!([split["load"], split["target"], split["is_bound"]]))
        .collect();
    let guest = "linux,kernel=debian-rt";
    assert_eq!(
        splits[..2],
        [
            json!(["idle", "process", true]),
            json!(["idle", guest, false])
        ]
    );
    assert_eq!(splits[2..], [json!(["dd", "process", true])]);
    assert_contains(&said, &["gap under dd (3 blocks): at most"]);
    let page = page::render(&analysis);
    assert_contains(
        &page,
        &["process against unikernel,irq=off, gap under dd (3 blocks): at most"],
    );
}
