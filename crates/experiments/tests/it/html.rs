//! The page: whole, self-contained, small, and with every maximum.

use tare_experiments::catalogue;
use tare_host::{Finding, Severity};
use tare_pages::{Report, RunData, analyse_with, page};
use tare_results::model::{Bin, Count, Event, Outcome, SetHead};
use tare_results::{CellState, MachineRecord};
use tare_testkit::assert_contains;

use crate::synthetic::services::Asked;
use crate::synthetic::wakeups::{self, Schedule};
use crate::synthetic::{
    Fold, Folded, HZ, Run, analyse, gaps_like, linux_like, measured, plain, record, spin, timed,
    unknown_machine,
};

/// Makes a run in which everything is: several targets, workloads and runs, failures, a full list.
pub fn everything() -> RunData {
    let mut random = fastrand::Rng::with_seed(1);
    let mut run = Run::new(26);
    for block in 1..=2 {
        for (target, noise) in [("process", 1.0), ("unikernel,irq=off", 0.0)] {
            run.emulated = noise == 0.0;
            for size in [22, 26, 30] {
                let durations = linux_like(20_000, 12 * size * size, 26, noise, &mut random);
                let folded = timed(&durations, Fold::default());
                run.done(block, target, "prime", Some(size), folded);
            }
            let spinning = Fold {
                capacity: 200,
                ..Fold::above(1_300)
            };
            let gaps = gaps_like(0.5 * noise, 700.0, &mut random);
            run.gap(block, target, spin(60_000_000, 25, &gaps, spinning));
            let copied = timed(&[500; 100], Fold::default());
            run.done(block, target, "copy", Some(100), copied);
        }
    }
    let reason = "ended with \"signal\" <11>; see `dmesg`: `ret == 0' failed";
    run.failed(1, "docker & <podman>", "prime", reason);
    run.missing(2, "process", "prime");
    let mut data = run.data();
    data.machine = Some(MachineRecord::new(unknown_machine(), Vec::new()));
    data
}

#[test]
fn what_bears_on_belief_stands_above_every_figure() {
    let mut data = everything();
    let machine = data.machine.take().unwrap().machine;
    let busy = Finding {
        id: "cpu".into(),
        title: "CPU 1".into(),
        state: "100 % busy, with stress".to_owned(),
        severity: Severity::Problem,
        why: String::new(),
        remedy: None,
    };
    data.machine = Some(MachineRecord::new(machine, vec![busy]));
    let page = page::render(&analyse(data));
    let at = |part: &str| page.find(part).unwrap();
    assert!(at("CPU 1: 100\u{a0}% busy") < at("<figure"));
}

#[test]
fn a_page_groups_thousands_in_one_way() {
    let mut offered = Run::new(1);
    let asked = Asked {
        labels: &[("rate", "64000")],
        ..Asked::default()
    };
    offered.asked(1, "process", asked);
    let pages = [everything(), offered.data()].map(|data| plain(&page::render(&analyse(data))));
    assert_contains(&pages[0], &["2 000–6 000"]);
    assert_contains(&pages[1], &["process at 64 000/s</text>"]);
    assert!(!pages[0].contains("2,000–6,000") && !pages[1].contains("64,000/s</text>"));
}

#[test]
fn a_long_run_is_a_map_of_lengths_over_time_and_has_no_period() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut run = Run::new(26);
    for block in 1..=7 {
        let gaps = gaps_like(0.5, 700.0, &mut random);
        let cell = run.gap(
            block,
            "process",
            spin(60_000_000, 25, &gaps, Fold::above(1_300)),
        );
        cell.started_at += std::time::Duration::from_secs(300 * u64::from(block));
    }
    let short = run.data();
    let mut long = short.clone();
    for (cell, samples) in &mut long.cells {
        let CellState::Done(cell) = cell else {
            panic!("all are done");
        };
        let Outcome::Done { record, .. } = &mut cell.outcome else {
            panic!("all are done");
        };
        record.sets[0].listed = Some(0);
        samples.sets[0].events.clear();
    }
    let (short, long) = (analyse(short), analyse(long));
    let page = page::render(&long);
    assert_whole(&page);
    assert_contains(
        &page,
        &[
            "Gaps over time · process",
            "25 min by ",
            "Each column is one cell",
        ],
    );
    assert!(!page.contains("From gap to gap") && !page.contains("Interruptions over time"));
    // All other figures are the same.
    let own = |analysis: &Report| -> Vec<String> {
        let rows = analysis.rows().0.iter();
        let own = rows.filter(|row| !row.measure.id.starts_with("period"));
        own.map(|row| format!("{} {:?} {:?}", row.name(), row.labels, row.over))
            .collect()
    };
    assert_eq!(own(&long), own(&short));
    assert!(long.rows().0.len() < short.rows().0.len());
}

#[test]
fn the_pages_are_well_formed() {
    let woken = woken(2, 2, &["idle", "command:dd '&' '<du>'"]);
    for (name, data) in [("noise", everything()), ("wake-ups", woken)] {
        let page = page::render(&analyse(data));
        assert_whole(&page);
        let headings = page.split("<h").skip(1).filter_map(|rest| {
            let (level, rest) = rest.split_once('>')?;
            let (text, _) = rest.split_once("</h")?;
            let level: usize = level.get(..1)?.parse().ok()?;
            Some(format!("{}{text}", "  ".repeat(level - 1)))
        });
        insta::assert_snapshot!(name, headings.collect::<Vec<_>>().join("\n"));
        if name == "noise" {
            let reason = "see <code>dmesg</code>: `ret == 0' failed";
            assert_contains(
                &page,
                &["docker &amp; &lt;podman&gt;", "cycles, mean</td>", reason],
            );
        } else {
            // The longest of every run stands beside its ring.
            let rings = ["1.10", "1.20"].map(|ms| format!("<title>{ms}\u{a0}ms</title>"));
            assert_contains(&page, &["dd '&amp;' '&lt;du&gt;'", &rings[0], &rings[1]]);
            // The loads ran one after the other.
            assert_contains(&page, &["The ten worst of each target: when after"]);
        }
    }
}

#[test]
fn the_page_needs_no_network_and_no_script() {
    let page = page::render(&analyse(everything()));
    for foreign in [
        "http:", "https:", "src=", "url(", "@import", "<script", "<link", "<iframe",
    ] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    let anchors: Vec<&str> = after_each(&page, "href=\"").collect();
    assert!(!anchors.is_empty());
    for anchor in anchors {
        let id = anchor
            .strip_prefix('#')
            .expect("links lead to parts of the page");
        assert_contains(&page, &[&format!("id=\"{id}\"")]);
    }
}

#[test]
fn the_longest_of_every_run_is_in_picture_and_table() {
    let mut run = Run::new(1);
    let longest = [61_234, 47_111, 83_007];
    for (block, longest) in (1..).zip(longest) {
        let mut durations = vec![1_000; 50_000];
        for (n, duration) in durations.iter_mut().step_by(10).enumerate() {
            *duration += 500 + n as u64;
        }
        durations[40_000] = longest;
        run.prime(block, "process", &durations);
    }
    let page = page::render(&run.analyse());
    for longest in longest {
        let text = format!("{}\u{202f}{:03}", longest / 1_000, longest % 1_000);
        assert_contains(
            &page,
            &[
                &format!("<td>{text}</td>"),
                "<title>process, run",
                &format!(": {text}\u{a0}cycles"),
            ],
        );
    }
}

#[test]
fn two_hundred_cells_of_a_hundred_thousand_different_delays_stay_below_the_limit() {
    let combinations = [(40, 5, 100_000), (200, 1, 10_000), (1, 200, 10_000)];
    for (sizes, runs, delays) in combinations {
        let page = page::render(&dense(sizes, runs, delays));
        assert!(page.len() < page::LIMIT, "{sizes} × {runs}: {}", page.len());
        assert_whole(&page);
    }
}

/// Derives a run of `sizes` times `runs` cells, each with as many delays, no two of them equal.
fn dense(sizes: u64, runs: u32, delays: u64) -> Report {
    let mut run = Run::new(1);
    for block in 1..=runs {
        for size in 0..sizes {
            let size = Some(10 + size);
            run.done(block, "process", "prime", size, Folded::default());
        }
    }
    let data = run.data();
    let mut states = data.cells.into_iter();
    analyse_with(data.plan, None, catalogue(), |_| {
        let (mut state, mut samples) = states.next().unwrap();
        let folded = all_different(delays);
        if let CellState::Done(cell) = &mut state {
            record(cell).values = folded.values();
            record(cell).sets = vec![folded.head];
        }
        samples.sets = vec![folded.samples];
        Ok((state, samples))
    })
    .unwrap()
}

fn all_different(delays: u64) -> Folded {
    // Odd times a power of two runs through all residues: different, and in no order.
    let cycles = |n: u64| 2_000 + (n * 40_503 % (1 << 17)) * 37;
    let ordinary = delays * 1_000;
    let mut folded = Folded::default();
    let samples = &mut folded.samples;
    let mut after = 0;
    let mut sum = ordinary * 1_000;
    for n in 0..delays {
        let event = Event {
            index: n * 1_001,
            at: after,
            value: cycles(n),
        };
        samples.events.push(event);
        samples.counts.push(Count {
            value: cycles(n),
            count: 1,
        });
        after += 1_000 * 1_060 + cycles(n);
        sum += cycles(n);
    }
    samples.counts.push(Count {
        value: 1_000,
        count: ordinary,
    });
    samples.counts.sort_unstable_by_key(|count| count.value);
    samples.envelope = (0..1_000)
        .map(|bin| Bin {
            bin,
            n: delays + 100,
            sum: sum / 1_000,
            min: 1_000,
            max: 2_000,
        })
        .collect();
    folded.head = SetHead {
        n: ordinary + delays,
        last: after,
        sum,
        threshold: 1_401,
        seen: delays,
        kept: delays,
        bin: after / 1_000 + 1,
        ..SetHead::default()
    };
    (folded.threshold, folded.work) = (400, 84);
    folded
}

/// Makes wake-ups of places and phases, each block with another longest latency.
pub fn woken(places: u32, runs: u32, loads: &[&str]) -> RunData {
    let mut random = fastrand::Rng::with_seed(3);
    let mut run = Run::new(1);
    for block in 1..=runs {
        for place in 0..places {
            let target = format!("linux,kernel=k{place}");
            let schedule = Schedule {
                target: &target,
                loads,
                activations: 5_000,
                ..Schedule::default()
            };
            run.woken(block, schedule, |_, _, n| match n {
                3_000 => 1_000_000 + 1_000 * u64::from(100 * block + place),
                _ => wakeups::linux_like(4_000.0, 3_000.0, 0.0, &mut random),
            });
        }
    }
    run.data()
}

#[test]
fn many_wake_ups_stay_below_the_limit() {
    let loads = ["idle", "ping", "idle", "dd", "du", "tar", "nc"];
    for (places, runs) in [(14, 2), (2, 20)] {
        let page = page::render(&analyse(woken(places, runs, &loads)));
        assert!(
            page.len() < page::LIMIT,
            "{places} × {runs}: {}",
            page.len()
        );
        assert_whole(&page);
    }
}

#[test]
fn extremes_and_failures_are_drawn() {
    let schedule = Schedule {
        activations: 3,
        ..Schedule::default()
    };
    for latency in [0, 1, 3_600_000_000_000] {
        let mut run = Run::new(1);
        run.woken(1, schedule, |_, _, _| latency);
        assert_whole(&page::render(&run.analyse()));
    }
    let hour = (3_600.0 * HZ) as u64;
    let mut run = Run::new(1);
    run.prime(1, "process", &[0, 0, 0, 0]);
    let long = timed(&[1, hour, 1, 1], Fold::default());
    run.done(1, "process", "prime", Some(26), long);
    let one = timed(&[7], Fold::default());
    run.done(1, "process", "copy", Some(1), one);
    run.gap(1, "process", spin(10, 20, &[(50, hour)], Fold::default()));
    assert_whole(&page::render(&run.analyse()));

    let mut run = Run::new(1);
    run.failed(1, "process", "prime", "it did not start");
    let page = page::render(&run.analyse());
    assert_whole(&page);
    assert_contains(&page, &["Nothing was measured", "it did not start"]);
}

#[test]
fn a_table_of_nothing_but_zeros_is_folded() {
    let page = |longest: &[(&str, u64)]| {
        let mut run = Run::new(1);
        for block in 1..=3 {
            for (target, longest) in longest {
                let mut durations = vec![1_000; 10_000];
                durations[5_000] = *longest;
                run.prime(block, target, &durations);
            }
        }
        page::render(&run.analyse())
    };
    let title = "Delays per million repetitions, by cycles above the mean";
    let heading = format!("<h3>{title}</h3>");
    let both = page(&[("process", 9_000), ("unikernel,irq=off", 1_000)]);
    assert_contains(&both, &[&heading]);
    let quiet = page(&[("unikernel,irq=off", 1_000)]);
    assert!(!quiet.contains(&heading));
    let folded = format!("<summary>{title}: all 0</summary>");
    // In the results and among the tables of every run.
    assert_eq!(quiet.matches(&folded).count(), 2);
    assert_contains(&quiet, &["<h3>Durations</h3>"]);
}

#[test]
fn the_longest_in_a_picture_is_that_of_the_verdict() {
    // What was due before a load began is in no figure, and the last wake-up comes long after it
    // was due.
    let mut run = Run::new(1);
    let schedule = Schedule {
        activations: 5_000,
        late_ns: &[0, 100_000_000],
        ..Schedule::under(&["idle", "dd"])
    };
    run.woken(1, schedule, |_, _, n| match n {
        5_300 => 9_000_000,
        7_000 => 3_000_000,
        9_999 => 2_500_000,
        _ => 2_000,
    });
    let analysis = run.analyse();
    let verdict = &analysis.summary().verdict.headline;
    assert_contains(verdict, &["3.00 ms"]);
    let page = page::render(&analysis);
    assert_contains(&page, &["<title>3.00\u{a0}ms</title>"]);
    assert!(!page.contains("<title>9.00\u{a0}ms</title>"));
    assert_contains(&page, &["Grey: due before its load began"]);

    // The clock of an emulator has another frequency in each run.
    let mut run = Run::new(1);
    for (block, slower, longest) in [(1, 1.0, 8_000_000), (2, 2.0, 7_000_000)] {
        for target in ["unikernel", "unikernel,irq=off"] {
            let gaps = [(1_000_000, longest), (30_000_000, 100_000)];
            let folded = spin(60_000_000, 25, &gaps, Fold::default());
            let cell = run.gap(block, target, folded);
            for frequency in &mut measured(cell).frequencies {
                frequency.hz /= slower;
            }
        }
    }
    let analysis = run.analyse();
    let verdict = &analysis.summary().verdict.headline;
    assert_contains(verdict, &["5.38 ms"]);
    let page = page::render(&analysis);
    let rings = page.matches("<title>5.38\u{a0}ms</title>").count();
    assert_eq!(rings, 2);
}

#[test]
fn the_axis_of_time_ends_where_the_last_wake_up_was_due() {
    let mut run = Run::new(1);
    run.woken(1, Schedule::default(), |_, _, n| match n {
        9_999 => 2_000_000_000,
        _ => 2_000,
    });
    let page = page::render(&run.analyse());
    assert_contains(&page, &[">800\u{a0}ms</text>"]);
    assert!(!page.contains(">1.5\u{a0}s</text>") && !page.contains(">2\u{a0}s</text>"));
}

#[test]
fn pictures_show_the_interval_that_the_verdict_tells() {
    let mut random = fastrand::Rng::with_seed(2);
    let page = |runs, random: &mut fastrand::Rng| {
        let mut run = Run::new(26);
        for block in 1..=runs {
            for target in ["process", "crun"] {
                let gaps = gaps_like(0.5, 700.0, random);
                let folded = spin(60_000_000, 25, &gaps, Fold::default());
                run.gap(block, target, folded);
            }
        }
        page::render(&run.analyse())
    };
    let with = page(5, &mut random);
    assert_contains(&with, &["95 % interval", "(95 % CI)"]);
    assert!(with.contains("line interval s0") && !with.contains("line range"));
    // Two runs have no interval: what is drawn is called a range.
    let without = page(2, &mut random);
    assert_contains(&without, &["range; too few runs for an interval"]);
    assert!(without.contains("line range s0") && !without.contains("line interval"));
}

/// Asserts that every element is closed in the right order, and that no figure that does not exist
/// slipped in.
#[track_caller]
fn assert_whole(page: &str) {
    for wrong in ["NaN", "inf,", ">inf", ">None<", "Some("] {
        assert!(!page.contains(wrong), "{wrong}");
    }
    const VOID: [&str; 5] = ["meta", "br", "!DOCTYPE", "hr", "wbr"];
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("every tag ends");
        let name = tag
            .split(|c: char| c.is_whitespace() || c == '/')
            .find(|part| !part.is_empty());
        let name = name.expect("every tag has a name");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "</{name}>");
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

fn after_each<'a>(page: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    page.split(mark)
        .skip(1)
        .filter_map(|rest| rest.split_once('"').map(|(value, _)| value))
}
