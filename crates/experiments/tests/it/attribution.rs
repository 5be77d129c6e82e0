//! What the operating system adds: known answers, and every reason for not giving one.

use serde_json::{Value, json};
use tare_pages::{Report, page, terminal};

use crate::synthetic::{self, Fold, HZ, Run, measured, plain, spin, timed};

/// Makes a second of spinning with gaps of 20,021 cycles in even distances, of which 20,000 are
/// lost.
fn gaps(per_second: u64) -> synthetic::Folded {
    gaps_from(1_300, per_second)
}

fn gaps_from(threshold: u64, per_second: u64) -> synthetic::Folded {
    let distance = HZ as u64 / per_second.max(1);
    let gaps: Vec<(u64, u64)> = (0..per_second)
        .map(|n| (n * distance + 1_000, 20_021))
        .collect();
    // An undisturbed iteration takes 21 cycles in the mean.
    let reads = (HZ as u64 - per_second * 20_000) / 21;
    let fold = Fold {
        threshold,
        ..Fold::default()
    };
    spin(reads, 20, &gaps, fold)
}

/// Measures `process` and the unikernel with so many gaps per second in each block.
fn pair(blocks: &[(u64, u64)]) -> Run {
    let mut run = Run::new(1);
    for (block, (process, unikernel)) in (1..).zip(blocks) {
        add(&mut run, block, "process", *process, None);
        let kvm = Some("KVM of QEMU 9.0");
        add(&mut run, block, "unikernel,irq=off", *unikernel, kvm);
    }
    run
}

fn add(run: &mut Run, block: u32, target: &str, rate: u64, accelerator: Option<&'static str>) {
    run.accelerator = accelerator;
    run.done(block, target, "gap", None, gaps(rate));
    run.accelerator = None;
}

/// Returns the split as `summary.json` has it, and what the verdict says of it.
fn attribution(run: Run) -> (Value, Vec<String>) {
    told(&run.analyse())
}

fn told(analysis: &Report) -> (Value, Vec<String>) {
    let summary = analysis.summary();
    let is_of = |detail: &&String| detail.starts_with("Split") || detail.starts_with("To separate");
    let said = summary.verdict.details.iter().filter(is_of).cloned();
    (summary.stories["noise"].clone(), said.collect())
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
    assert_eq!(
        said,
        [
            "Split: of the 1.03 % of its time that process loses, at most 0.26 % is lost below any operating \
             system (firmware, hypervisor: what unikernel,irq=off loses here as a guest, which this machine's \
             kernel can still interrupt); the operating system adds at least 0.758–0.796 % (95 % CI, 3 \
             blocks, paired)."
        ]
    );
}

#[test]
fn a_unikernel_on_the_bare_machine_gives_more_than_a_bound() {
    let mut run = Run::new(1);
    for (block, rate) in [(1, 1_000), (2, 1_010), (3, 1_030)] {
        add(&mut run, block, "process", rate, None);
        add(&mut run, block, "unikernel,irq=off", 10, None);
    }
    let (found, said) = attribution(run);
    assert_eq!(only(&found)["is_bound"], false);
    assert!(!said[0].contains("at most") && !said[0].contains("at least"));
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
        assert!(said[0].contains("not distinguishable"), "{}", said[0]);
        assert!(!said[0].contains("system adds at"), "{}", said[0]);
        let page = page::render(&pair(&blocks).analyse());
        assert!(page.contains("not\ndistinguishable"));
    }
}

#[test]
fn one_or_two_blocks_cannot_say() {
    for blocks in [&[(1_000, 10)][..], &[(1_000, 10), (1_010, 12)]] {
        let (found, said) = attribution(pair(blocks));
        assert_eq!(only(&found)["parts"][0]["finding"], "too_few_blocks");
        assert!(said[0].contains("that takes 3 blocks"), "{}", said[0]);
        assert!(said[0].contains("--runs"), "{}", said[0]);
    }
}

#[test]
fn under_an_emulator_it_says_that_it_cannot() {
    let mut run = Run::new(1);
    for block in 1..=3 {
        run.emulated = false;
        add(&mut run, block, "process", 1_000, None);
        run.emulated = true;
        add(
            &mut run,
            block,
            "unikernel,irq=off",
            10,
            Some("TCG of QEMU 9.0"),
        );
    }
    let analysis = run.analyse();
    let (found, sentences) = told(&analysis);
    assert_eq!(found["splits"], json!([]));
    assert_eq!(found["refused"][0]["id"], "emulated");
    let said = "this run can't split what is lost below any operating system (firmware, hypervisor) from \
                what the operating system adds: QEMU's TCG executed unikernel,irq=off, and the emulator's own \
                delays are in its figures.";
    assert!(sentences[0].contains(said));
    assert!(plain(&terminal::render(&analysis, 100, false)).contains(said));
    let page = page::render(&analysis);
    assert!(page.contains("QEMU's TCG executed unikernel,irq=off"));
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
            let cell = run.done(block, "process", "gap", None, gaps(1_000));
            measured(cell).preparation.cpu = cpu;
            add(
                &mut run,
                block,
                "unikernel,irq=off",
                10,
                Some("KVM of QEMU 9.0"),
            );
        }
        let (found, said) = attribution(run);
        assert_eq!(found["splits"], json!([]));
        assert!(said[0].contains(said_of_it), "{}", said[0]);
    }
}

#[test]
fn a_guest_s_own_cpu_number_is_not_the_machine_s() {
    let mut run = Run::new(1);
    for (block, rate) in [(1, 1_000), (2, 1_010)] {
        add(&mut run, block, "process", rate, None);
        run.accelerator = Some("KVM of QEMU 9.0");
        let cell = run.done(block, "unikernel,irq=off", "gap", None, gaps(10));
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
            add(&mut run, block, "process", 1_000, None);
            run.accelerator = Some("KVM of QEMU 9.0");
            let folded = gaps_from(threshold, 10);
            run.done(block, "unikernel,irq=off", "gap", None, folded);
            run.accelerator = None;
        }
        let (found, said) = attribution(run);
        assert_eq!(found["splits"].as_array().unwrap().len() == 1, is_compared);
        if !is_compared {
            assert!(said[0].contains("1,300 cycles"), "{said:?}");
            assert!(said[0].contains("--threshold"), "{said:?}");
        }
    }
}

#[test]
fn without_the_pair_it_says_how_to_get_it() {
    for target in ["process", "unikernel,irq=off", "unikernel"] {
        let mut run = Run::new(1);
        add(&mut run, 1, target, 100, None);
        let (found, said) = attribution(run);
        assert_eq!(found["refused"][0]["id"], "no-pair");
        assert!(said[0].contains("`--target process --target unikernel,irq=off`"));
    }
    let mut run = Run::new(1);
    add(&mut run, 1, "process", 100, None);
    run.failed(1, "unikernel,irq=off", "gap", "it hung");
    let (found, said) = attribution(run);
    assert_eq!(found["refused"][0]["id"], "not-measured");
    assert!(said[0].contains("no block has figures of both"));
}

#[test]
fn a_block_that_lacks_one_of_the_two_is_left_out() {
    let mut run = pair(&[(1_000, 10), (1_010, 10)]);
    add(&mut run, 3, "process", 90_000, None);
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
        timed(&durations, Fold::default())
    };
    let mut run = Run::new(1);
    for (block, delays) in [(1, 100), (2, 110), (3, 105)] {
        run.done(block, "process", "prime", Some(22), delayed(delays));
        run.accelerator = Some("KVM of QEMU 9.0");
        run.done(block, "unikernel,irq=off", "prime", Some(22), delayed(5));
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
    assert!(
        said[0].contains("in delays above 400 cycles"),
        "{}",
        said[0]
    );
}

#[test]
fn each_load_is_divided_and_a_guest_s_kernel_by_what_lies_below_both() {
    let mut run = pair(&[(1_000, 10), (1_010, 10)]);
    for (block, rate) in [(1, 500), (2, 510)] {
        add(
            &mut run,
            block,
            "linux,kernel=debian-rt",
            rate,
            Some("KVM of QEMU 9.0"),
        );
    }
    run.load = "dd";
    for (block, rate) in [(1, 4_000), (2, 4_040), (3, 4_020)] {
        add(&mut run, block, "process", rate, None);
        add(
            &mut run,
            block,
            "unikernel,irq=off",
            20,
            Some("KVM of QEMU 9.0"),
        );
        add(
            &mut run,
            block,
            "linux,kernel=debian-rt",
            500,
            Some("KVM of QEMU 9.0"),
        );
    }
    let analysis = run.analyse();
    let (found, said) = told(&analysis);
    let splits = found["splits"].as_array().unwrap().iter();
    let splits: Vec<_> = splits
        .map(|split| (&split["load"], &split["target"], &split["is_bound"]))
        .collect();
    assert_eq!(
        splits,
        [
            (&json!("idle"), &json!("process"), &json!(true)),
            (
                &json!("idle"),
                &json!("linux,kernel=debian-rt"),
                &json!(false)
            ),
            (&json!("dd"), &json!("process"), &json!(true)),
        ]
    );
    assert_eq!(said.len(), 2);
    assert!(said[1].starts_with("Split under dd: of the"), "{}", said[1]);
    let page = page::render(&analysis);
    assert!(
        page.contains("process against unikernel,irq=off, gap under dd (3\u{a0}blocks): at most")
    );
}
