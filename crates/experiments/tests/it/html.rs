//! The page: whole, self-contained, small, and with every maximum.

use tare_experiments::catalogue;
use tare_host::{Finding, Machine, Severity, Source};
use tare_pages::{Report, RunData, analyse_with, page};
use tare_results::model::{Bin, Count, Event, SetHead};
use tare_results::{CellState, MachineRecord};

use crate::synthetic::wakeups::{self, Schedule};
use crate::synthetic::{
    Fold, Folded, HZ, Run, analyse, gaps_like, linux_like, measured, record, spin, timed,
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
                run.done(
                    block,
                    target,
                    "prime",
                    Some(size),
                    timed(&durations, Fold::default()),
                );
            }
            let spinning = Fold {
                threshold: 1_300,
                capacity: 200,
                ..Fold::default()
            };
            let gaps = gaps_like(0.5 * noise, 700.0, &mut random);
            run.done(
                block,
                target,
                "gap",
                None,
                spin(60_000_000, 25, &gaps, spinning),
            );
            run.done(
                block,
                target,
                "copy",
                Some(100),
                timed(&[500; 100], Fold::default()),
            );
        }
    }
    run.failed(
        1,
        "docker & <podman>",
        "prime",
        "ended with \"signal\" <11>; see `dmesg`",
    );
    run.missing(2, "process", "prime");
    let mut data = run.data();
    let nowhere = tempfile::tempdir().unwrap();
    let machine = Machine::collect(&Source::at(nowhere.path()));
    data.machine = Some(MachineRecord::new(machine, Vec::new()));
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
fn the_page_is_well_formed() {
    let page = page::render(&analyse(everything()));
    assert_balanced(&page);
    assert!(page.starts_with("<!DOCTYPE html>"));
    for heading in [
        "Results",
        "Every run",
        "Calibration",
        "Machine",
        "Method",
        "Provenance",
    ] {
        assert!(page.contains(&format!(">{heading}</h2>")), "{heading}");
    }
    assert!(page.contains("What was not measured, and why"));
    assert!(page.contains("in all\n") && page.contains("cycles, mean</td>"));
    assert!(page.contains("docker &amp; &lt;podman&gt;"));
    assert!(page.contains("unikernel,irq=off (emulated)"));
    // Figures that do not exist must not slip into pictures or tables.
    for wrong in ["NaN", "inf,", ">inf", ">None<", "Some("] {
        assert!(!page.contains(wrong), "{wrong}");
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
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
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
        run.done(
            block,
            "process",
            "prime",
            Some(22),
            timed(&durations, Fold::default()),
        );
    }
    let page = page::render(&run.analyse());
    for longest in longest {
        let text = format!("{}\u{202f}{:03}", longest / 1_000, longest % 1_000);
        assert!(
            page.contains(&format!("<td>{text}</td>")),
            "{text} in the table"
        );
        assert!(page.contains("<title>process, run"), "{text}");
        assert!(
            page.contains(&format!(": {text}\u{a0}cycles")),
            "{text} in the picture"
        );
    }
}

#[test]
fn two_hundred_cells_of_a_hundred_thousand_different_delays_stay_below_the_limit() {
    let combinations = [(40, 5, 100_000), (200, 1, 10_000), (1, 200, 10_000)];
    for (sizes, runs, delays) in combinations {
        let page = page::render(&dense(sizes, runs, delays));
        assert!(page.len() < page::LIMIT, "{sizes} × {runs}: {}", page.len());
        assert_balanced(&page);
    }
}

/// Derives a run of `sizes` times `runs` cells, each with as many delays, no two of them equal.
fn dense(sizes: u64, runs: u32, delays: u64) -> Report {
    let mut run = Run::new(1);
    for block in 1..=runs {
        for size in 0..sizes {
            run.done(
                block,
                "process",
                "prime",
                Some(10 + size),
                Folded::default(),
            );
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
fn wake_ups_have_a_whole_page() {
    let page = page::render(&analyse(woken(2, 2, &["idle", "command:dd '&' '<du>'"])));
    assert_balanced(&page);
    for heading in [
        "Wake-up latency",
        "Wake-up latency over time",
        "How often, and how late",
        "Histogram",
        "Calibration",
        "Method",
        "Provenance",
    ] {
        assert!(page.contains(heading), "{heading}");
    }
    assert!(page.contains("dd '&amp;' '&lt;du&gt;'"));
    assert!(page.contains("All runs together"));
    // The longest of every run stands beside its ring.
    for longest in ["1.10", "1.20"] {
        assert!(
            page.contains(&format!("<title>{longest}\u{a0}ms</title>")),
            "{longest}"
        );
    }
    for wrong in ["NaN", "inf,", ">inf", ">None<", "Some("] {
        assert!(!page.contains(wrong), "{wrong}");
    }
    // Of noise there is nothing to say.
    assert!(!page.contains("kot-2019"));
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
        assert_balanced(&page);
    }
}

#[test]
fn extreme_wake_ups_are_drawn() {
    for latency in [0, 1, 3_600_000_000_000] {
        let mut run = Run::new(1);
        let schedule = Schedule {
            activations: 3,
            ..Schedule::default()
        };
        run.woken(1, schedule, |_, _, _| latency);
        let page = page::render(&run.analyse());
        assert_balanced(&page);
        assert!(!page.contains("NaN"), "{latency}");
    }
}

#[test]
fn a_run_without_any_figure_still_has_a_page() {
    let mut run = Run::new(1);
    run.failed(1, "process", "prime", "it did not start");
    let page = page::render(&run.analyse());
    assert_balanced(&page);
    assert!(page.contains("Nothing was measured"));
    assert!(page.contains("it did not start"));
}

#[test]
fn extreme_durations_are_drawn() {
    let mut run = Run::new(1);
    let hour = (3_600.0 * HZ) as u64;
    run.done(
        1,
        "process",
        "prime",
        Some(22),
        timed(&[0, 0, 0, 0], Fold::default()),
    );
    run.done(
        1,
        "process",
        "prime",
        Some(26),
        timed(&[1, hour, 1, 1], Fold::default()),
    );
    run.done(1, "process", "copy", Some(1), timed(&[7], Fold::default()));
    run.done(
        1,
        "process",
        "gap",
        None,
        spin(10, 20, &[(50, hour)], Fold::default()),
    );
    let page = page::render(&run.analyse());
    assert_balanced(&page);
    assert!(!page.contains("NaN"));
}

#[test]
fn a_table_of_nothing_but_zeros_is_folded() {
    let mut run = Run::new(1);
    for block in 1..=3 {
        for (target, longest) in [("process", 9_000), ("unikernel,irq=off", 1_000)] {
            let mut durations = vec![1_000; 10_000];
            durations[5_000] = longest;
            let folded = timed(&durations, Fold::default());
            run.done(block, target, "prime", Some(22), folded);
        }
    }
    let title = "Delays per million repetitions, by cycles above the mean";
    let both = page::render(&run.analyse());
    assert!(both.contains(&format!("<h3>{title}</h3>")));
    let mut run = Run::new(1);
    for block in 1..=3 {
        let folded = timed(&[1_000; 10_000], Fold::default());
        run.done(block, "unikernel,irq=off", "prime", Some(22), folded);
    }
    let quiet = page::render(&run.analyse());
    assert!(!quiet.contains(&format!("<h3>{title}</h3>")));
    let folded = format!("<summary>{title}: all 0</summary>");
    // In the results and among the tables of every run.
    assert_eq!(quiet.matches(&folded).count(), 2);
    assert!(quiet.contains("<h3>Durations</h3>"));
}

#[test]
fn the_longest_in_a_picture_is_that_of_the_verdict() {
    // What was due before a load began is in no figure, and the last wake-up comes long after it
    // was due.
    let mut run = Run::new(1);
    let schedule = Schedule {
        loads: &["idle", "dd"],
        activations: 5_000,
        late_ns: &[0, 100_000_000],
        ..Schedule::default()
    };
    run.woken(1, schedule, |_, _, n| match n {
        5_300 => 9_000_000,
        7_000 => 3_000_000,
        9_999 => 2_500_000,
        _ => 2_000,
    });
    let analysis = run.analyse();
    let verdict = &analysis.summary().verdict.headline;
    assert!(verdict.contains("3.00 ms"), "{verdict}");
    let page = page::render(&analysis);
    assert!(page.contains("<title>3.00\u{a0}ms</title>"));
    assert!(!page.contains("<title>9.00\u{a0}ms</title>"));
    assert!(page.contains("Grey: due before its load began"));

    // The clock of an emulator has another frequency in each run.
    let mut run = Run::new(1);
    for (block, slower, longest) in [(1, 1.0, 8_000_000), (2, 2.0, 7_000_000)] {
        for target in ["unikernel", "unikernel,irq=off"] {
            let gaps = [(1_000_000, longest), (30_000_000, 100_000)];
            let folded = spin(60_000_000, 25, &gaps, Fold::default());
            let cell = run.done(block, target, "gap", None, folded);
            for frequency in &mut measured(cell).frequencies {
                frequency.hz /= slower;
            }
        }
    }
    let analysis = run.analyse();
    let verdict = &analysis.summary().verdict.headline;
    assert!(verdict.contains("5.38 ms"), "{verdict}");
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
    assert!(page.contains(">800\u{a0}ms</text>"));
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
                run.done(block, target, "gap", None, folded);
            }
        }
        page::render(&run.analyse())
    };
    let with = page(5, &mut random);
    assert!(with.contains("95 % interval") && with.contains("(95 % CI)"));
    assert!(with.contains("line interval s0") && !with.contains("line range"));
    // Two runs have no interval: what is drawn is called a range.
    let without = page(2, &mut random);
    assert!(without.contains("range; too few runs for an interval"));
    assert!(without.contains("line range s0") && !without.contains("line interval"));
}

/// Checks that every element is closed in the right order.
fn assert_balanced(page: &str) {
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
