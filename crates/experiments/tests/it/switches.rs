//! What the switches of `--isolate` and `--screen` change.

use tare_pages::Report;
use tare_results::CellState;
use tare_results::model::{Cell, SettingPlan, SwitchPlan, Unswitched};
use tare_stats::design;
use tare_testkit::assert_contains;

use crate::synthetic::{Run, alarm, analyse, evenly, ids, shown, verdict};

/// Makes the switches of these names, of two settings each.
fn switches(names: &[&str]) -> Vec<SwitchPlan> {
    let setting = |name: &str, file: u32| SettingPlan {
        path: format!("/proc/{name}/{file}"),
        value: "0".to_owned(),
    };
    let all = names.iter().map(|name| SwitchPlan {
        name: (*name).to_owned(),
        settings: vec![setting(name, 1), setting(name, 2)],
    });
    all.collect()
}

/// Reports a setting that was refused, or did not stay changed.
fn unswitched(cell: &mut Cell, switch: &str, file: u32, refused: bool) {
    cell.unswitched.push(Unswitched {
        switch: switch.to_owned(),
        path: format!("/proc/{switch}/{file}"),
        refused,
        why: format!("setting {file} of {switch} is another program's"),
    });
}

/// Ends a run; `on` returns the value of the cells' label for its number, and which of some switches
/// are on.
fn analysed(
    run: Run,
    label: &str,
    names: &[&str],
    on: impl Fn(u64) -> (String, Vec<bool>),
    also: impl Fn(&mut Cell),
) -> Report {
    let mut data = run.data();
    for (plan, (state, _)) in data.plan.cells.iter_mut().zip(&mut data.cells) {
        let (value, on) = on(plan.labels.number(label).unwrap());
        plan.labels = plan.labels.clone().with(label, value);
        // The work is the same.
        plan.work.words.clear();
        let all = switches(names).into_iter().zip(on);
        plan.switches = all.filter(|(_, on)| *on).map(|(one, _)| one).collect();
        if let CellState::Done(cell) = state {
            cell.plan = plan.clone();
            also(cell);
        }
    }
    analyse(data)
}

/// Gaps of 20,000 cycles in a second; each takes a part in 130,000.
fn gaps(run: &mut Run, block: u32, count: u32) {
    run.gap(block, "process", evenly(2_600_000_000, count.into(), 1_300));
}

fn isolated(with: impl Fn(u32) -> u32, also: impl Fn(&mut Cell)) -> Report {
    let mut run = Run::new(26);
    for block in 1..=4 {
        run.further = Some(("isolate", 0));
        gaps(&mut run, block, 1_560 + 10 * block);
        run.further = Some(("isolate", 1));
        gaps(&mut run, block, with(block));
    }
    let names = ["irq-affinity", "watchdog", "governor"];
    let on = |value| {
        (
            ["no", "yes"][value as usize].to_owned(),
            vec![value == 1; 3],
        )
    };
    analysed(run, "isolate", &names, on, also)
}

#[test]
fn the_first_line_says_what_isolation_gained() {
    let report = isolated(
        |block| 520 + 5 * block,
        |cell| {
            if cell.plan.switches.is_empty() {
                return;
            }
            unswitched(cell, "governor", 1, true);
            unswitched(cell, "governor", 2, true);
            // One file of several: the switch is changed as far as it goes.
            unswitched(cell, "irq-affinity", 2, true);
            if cell.plan.block == 3 {
                unswitched(cell, "watchdog", 1, false);
            }
        },
    );
    assert_eq!(
        verdict(&report),
        [
            "gap on CPU 1, isolated: 0.41 % of the time lost instead of 1.22 % (−0.81 pp, 95 % interval −0.82 to −0.80 pp; 2 of 3 \
             switches changed)."
        ]
    );
    assert_eq!(
        alarm(&report, "switched-back"),
        "Did not stay as planned in cell 6: setting 1 of watchdog is another program's."
    );
    let refused = alarm(&report, "not-switched");
    assert_eq!(
        refused,
        "Not changed in cells 2, 4, 6, 8: setting 1 of governor is another program's."
    );
    let (terminal, page) = shown(&report);
    let named = "the switches irq-affinity, watchdog and governor for cells 2, 4, 6, 8";
    assert_contains(&page, &["Kernel settings changed for the run", named]);
    for shown in [terminal, page] {
        assert_contains(&shown, &["What the switches change"]);
        assert_contains(&shown, &["isolate=yes"]);
        assert_contains(&shown, &["helps"]);
    }
}

#[test]
fn isolation_that_shows_no_effect_or_was_refused_is_no_gain() {
    let report = isolated(|block| 1_570 + 13 * (block % 2), |_| {});
    assert_contains(&verdict(&report)[0], &["(no effect shown, "]);
    assert_contains(&verdict(&report)[0], &["; 3 switches changed)"]);
    assert!(!ids(&report).contains(&"not-switched"));

    let report = isolated(
        |_| 400,
        |cell| {
            let names: Vec<String> = cell
                .plan
                .switches
                .iter()
                .map(|one| one.name.clone())
                .collect();
            for (name, file) in names.iter().flat_map(|name| [(name, 1), (name, 2)]) {
                unswitched(cell, name, file, true);
            }
        },
    );
    assert_contains(&verdict(&report)[0], &["(no switch could be changed)"]);
}

/// Screens switches of which the first helps, the second hurts, and the last could not be changed.
fn screened(blocks: u32) -> Report {
    let rows = design(5).unwrap();
    let names = [
        "irq-affinity",
        "huge-pages",
        "watchdog",
        "rcu-normal",
        "governor",
    ];
    let mut run = Run::new(26);
    for block in 1..=blocks {
        for (number, row) in rows.iter().enumerate() {
            run.further = Some(("screen", number as u64));
            let [helps, hurts] = [row[0], row[1]].map(u32::from);
            // What nothing explains, without a pattern in the design.
            let noise = (7 * number as u32 + 5 * block) % 11 * 3;
            gaps(&mut run, block, 1_300 - 650 * helps + 260 * hurts + noise);
        }
    }
    let on = |number| (format!("{:02}", number + 1), rows[number as usize].clone());
    analysed(run, "screen", &names, on, |cell| {
        if cell.plan.switches.iter().any(|one| one.name == "governor") {
            unswitched(cell, "governor", 1, true);
            unswitched(cell, "governor", 2, true);
        }
    })
}

#[test]
fn a_screening_names_what_helps_most_and_what_hurts() {
    let report = screened(6);
    let [headline] = &verdict(&report)[..] else {
        panic!("{:#?}", verdict(&report));
    };
    for words in [
        "gap on CPU 1, 4 switches screened, share of the time lost: measured to help most: irq-affinity (−0.50 pp, 95 % interval −0.50 to −0.50 pp)",
        "; hurts: huge-pages (+0.20 pp, ",
        "; no effect shown of 2 other switches.",
    ] {
        assert_contains(headline, &[words]);
    }
    assert!(
        !headline.contains("governor") && !headline.contains("also helps"),
        "{headline}"
    );
    let (terminal, page) = shown(&report);
    for shown in [terminal, page] {
        for words in [
            "What the switches change",
            "rcu-normal",
            "could not be changed",
        ] {
            assert_contains(&shown, &[words]);
        }
    }
    let json = serde_json::to_value(report.stories().next().unwrap().json()).unwrap();
    let effect = &json["switched"][0]["switches"][0];
    assert_eq!(
        (&effect["name"], &effect["is_shown"]),
        (&"irq-affinity".into(), &true.into())
    );

    let few = screened(2);
    assert_contains(
        &verdict(&few)[0],
        &["4 switches screened: inconclusive: 2 blocks of every combination, 3 are needed"],
    );
}
