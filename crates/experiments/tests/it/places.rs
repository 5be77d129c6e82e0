//! Many places in one report: groups, loads, daemons, counters, CPUs, facts, page sizes.

use tare_figures::json;
use tare_pages::{Report, page, terminal};
use tare_results::model::{Achieved, Counter, Fact, Labels, Load, LoadPlace};
use tare_results::target::Group;

use crate::synthetic::{self, Fold, HZ, Run, analyse, measured, plain, record, row, spin, timed};

const KVM: Option<&str> = Some("KVM of QEMU 9.0");

/// Makes a tenth of a second of spinning with this many gaps of 20,021 cycles.
fn gaps(count: u64) -> synthetic::Folded {
    let wall = HZ as u64 / 10;
    let distance = wall / count.max(1);
    let gaps: Vec<(u64, u64)> = (0..count).map(|n| (n * distance + 1_000, 20_021)).collect();
    let fold = Fold {
        threshold: 1_300,
        ..Fold::default()
    };
    spin((wall - count * 20_000) / 21, 20, &gaps, fold)
}

fn said(analysis: &Report) -> (String, String, String) {
    (
        plain(&terminal::render(analysis, 120, false)),
        plain(&page::render(analysis)),
        json::render(analysis.summary()).unwrap(),
    )
}

#[test]
fn what_the_unikernel_counted_stands_beside_the_gaps() {
    let mut run = Run::new(1);
    for block in 1..=2 {
        let ticks = 20 + 10 * u64::from(block);
        let cell = run.done(block, "unikernel", "gap", None, gaps(50));
        // A second program of the cell counts the rest.
        let counter = |count| Counter {
            name: "timer interrupts".to_owned(),
            count,
        };
        let mut second = measured(cell).clone();
        measured(cell).counters = vec![counter(ticks - 7)];
        second.counters = vec![counter(7)];
        record(cell).programs.push(second);
    }
    let analysis = run.analyse();
    // 30 and 40 in a tenth of a second.
    let rate = row(&analysis, "interrupts.rate").unwrap();
    let rate = rate.over.as_ref().unwrap().estimate;
    assert!((rate - 350.0).abs() < 0.01);
    let (terminal, page, json) = said(&analysis);
    let name = "gap · unikernel · timer interrupts";
    assert!(terminal.contains(&format!("{name} 70 350")), "{terminal}");
    assert!(page.contains(&format!("{name}</th><td>70</td><td>350</td>")));
    assert!(json.contains("\"counter\": \"timer interrupts\""));
}

#[test]
fn a_guest_s_cpu_is_told_apart_from_the_host_s() {
    let mut run = Run::new(1);
    run.done(1, "process", "gap", None, gaps(5));
    run.accelerator = KVM;
    let cell = run.done(1, "unikernel", "gap", None, gaps(5));
    measured(cell).preparation.cpu = Some(0);
    run.accelerator = None;
    let cell = run.done(1, "ssh,host=lab", "gap", None, gaps(5));
    measured(cell).preparation.cpu = Some(7);
    let analysis = run.analyse();
    let (terminal, page, _) = said(&analysis);
    let guest = "pinned to host CPU 1; the guest's CPU 0";
    assert!(
        terminal.contains(&format!("unikernel: {guest}")),
        "{terminal}"
    );
    assert!(page.contains(guest));
    assert!(page.contains("pinned to CPU 7 of that machine"));
    assert!(!page.contains("pinned to CPU 0"));
}

#[test]
fn copy_is_said_to_meet_pages_of_different_sizes() {
    let alarms = |workload: &str, targets: &[&str]| {
        let mut run = Run::new(1);
        for target in targets {
            let folded = timed(&[500; 100], Fold::default());
            run.done(1, target, workload, Some(100), folded);
        }
        run.analyse()
    };
    let analysis = alarms("copy", &["process", "unikernel"]);
    let (terminal, page, json) = said(&analysis);
    let difference =
        "The buffers of unikernel lie on pages of 2 MiB, those of process on pages of 4 KiB";
    assert!(terminal.contains(difference), "{terminal}");
    assert!(page.contains(difference));
    assert!(json.contains("\"page-sizes\""));
    for analysis in [
        alarms("prime", &["process", "unikernel"]),
        alarms("copy", &["process", "docker"]),
        alarms("copy", &["unikernel"]),
    ] {
        assert!(
            analysis
                .summary()
                .alarms
                .iter()
                .all(|alarm| alarm.id != "page-sizes")
        );
    }
}

fn wrote(amount: u64, place: LoadPlace) -> Option<Load> {
    Some(Load {
        place,
        phases: Vec::new(),
        left: Vec::new(),
        achieved: vec![
            Achieved {
                what: "bytes written".to_owned(),
                amount,
                ns: 500_000_000,
            },
            Achieved {
                what: "files".to_owned(),
                amount: 0,
                ns: 0,
            },
        ],
        notices: vec!["conv=fsync is added".to_owned()],
    })
}

#[test]
fn what_a_load_did_is_summed_by_block_and_its_deviations_are_listed() {
    let mut run = Run::new(1);
    run.load = "dd";
    for (block, amounts) in [
        (1, [100_000_000, 300_000_000]),
        (2, [50_000_000, 50_000_000]),
    ] {
        for (amount, workload) in amounts.into_iter().zip(["gap", "prime"]) {
            let folded = if workload == "gap" {
                gaps(5)
            } else {
                timed(&[500; 100], Fold::default())
            };
            let cell = run.done(block, "process", workload, None, folded);
            cell.load = wrote(amount, LoadPlace::Beside);
        }
    }
    let cell = run.done(1, "linux,kernel=debian", "gap", None, gaps(5));
    cell.load = wrote(10_000_000, LoadPlace::Inside);
    let analysis = run.analyse();
    let [process, linux] = analysis.summary().loads.as_slice() else {
        panic!("{:?}", analysis.summary().loads);
    };
    assert_eq!(
        (process.place, linux.place),
        (LoadPlace::Beside, LoadPlace::Inside)
    );
    // 400 MB and 100 MB in a second each; what took no time has no rate.
    assert_eq!(process.rates.len(), 1);
    let rate = &process.rates[0];
    assert_eq!(rate.blocks, [1, 2]);
    assert_eq!(
        (
            rate.per_second.figure,
            rate.per_second.lowest,
            rate.per_second.highest
        ),
        (250e6, 100e6, 400e6)
    );
    let (terminal, page, _) = said(&analysis);
    assert!(
        terminal
            .contains("process, loads next to it dd bytes written 250 MB/s 100 MB/s to 400 MB/s"),
        "{terminal}"
    );
    assert!(terminal.contains("CPU 1 lost") && terminal.contains("under dd"));
    assert!(page.contains("<td>250 MB/s</td><td>100 MB/s to 400 MB/s</td>"));
    assert!(page.contains("conv=fsync is added<span class=\"note\"> (dd; cells 1–5)</span>"));
    assert!(page.contains("<span>linux,kernel=debian, loads inside</span>"));
}

#[test]
fn daemons_are_named_with_their_blocks_also_those_beside_failed_cells() {
    let mut run = Run::new(1);
    for block in 1..=3 {
        let cell = run.done(block, "docker", "gap", None, gaps(5));
        cell.daemons = vec!["dockerd".to_owned()];
    }
    run.done(4, "process", "gap", None, gaps(5));
    let mut data = run.data();
    let mut failed = Run::new(1);
    failed.failed(1, "docker", "gap", "it ended");
    let (state, samples) = failed.data().cells.remove(0);
    if let tare_results::CellState::Failed(mut cell) = state {
        cell.plan.id = 9;
        cell.plan.block = 5;
        cell.daemons = vec!["dockerd".to_owned()];
        data.plan.cells.push(cell.plan.clone());
        data.cells
            .push((tare_results::CellState::Failed(cell), samples));
    }
    let analysis = analyse(data);
    assert_eq!(analysis.summary().daemons[0].blocks, [1, 2, 3, 5]);
    let (terminal, page, _) = said(&analysis);
    let running = "aemons that were running: dockerd (blocks 1–3, 5)";
    assert!(terminal.contains(running), "{terminal}");
    assert!(page.contains(running));
}

#[test]
fn places_are_shown_from_inside_and_a_changed_one_is_flagged() {
    let mut run = Run::new(1);
    let fact = |name: &str, value: &str| Fact {
        name: name.to_owned(),
        labels: Labels::default(),
        value: value.to_owned(),
    };
    for block in 1..=3 {
        let cell = run.done(block, "linux,kernel=debian-rt", "gap", None, gaps(5));
        let clock = if block == 2 { "hpet" } else { "tsc" };
        measured(cell).facts = vec![
            fact("kernel release", "6.1.0-49-rt-amd64"),
            fact("clock source", clock),
        ];
        let cell = run.done(block, "process", "gap", None, gaps(5));
        measured(cell).facts = vec![fact("kernel release", "6.18.0")];
    }
    let analysis = run.analyse();
    let places = &analysis.summary().places;
    assert_eq!(places[0].target, "process");
    assert_eq!(places[1].group, Group::LinuxGuest);
    assert_eq!(places[1].facts[0].values.len(), 1);
    assert_eq!(places[1].facts[1].values[1].cells, [3]);
    let (_, page, _) = said(&analysis);
    assert!(page.contains("The targets, from inside</h2>"));
    assert!(page.contains("<td>6.1.0-49-rt-amd64</td>"));
    assert!(page.contains("changed: tsc (cells 1, 5); hpet (cell 3)"));
    assert!(page.contains("A target was not the same in all cells"));
}

/// Makes a run of a dozen targets under two loads; the unikernel with interrupts is emulated, and
/// loses the least by far.
fn dozen() -> Report {
    let targets = [
        "unikernel",
        "unikernel,irq=off",
        "linux,root=debian",
        "linux,kernel=debian",
        "linux,kernel=debian-cloud",
        "linux,kernel=debian-rt,preempt=full",
        "linux,kernel=debian,cpus=2,isolate=1,nohz_full=1",
        "docker",
        "podman",
        "runc",
        "crun",
        "process",
    ];
    let mut run = Run::new(26);
    for block in 1..=3 {
        for (load, factor) in [("idle", 1), ("dd", 3)] {
            run.load = load;
            for (place, target) in (1..).zip(targets) {
                run.emulated = target == "unikernel";
                run.accelerator = if place <= 7 { KVM } else { None };
                let count = (10 + 10 * place + u64::from(block)) * factor;
                let count = if run.emulated { 1 } else { count };
                run.done(block, target, "gap", None, gaps(count));
                let mut durations = vec![1_000; 2_000];
                durations[700] += 500 * place * factor;
                let folded = timed(&durations, Fold::default());
                run.done(block, target, "prime", Some(22), folded);
            }
        }
    }
    run.analyse()
}

#[test]
fn a_dozen_targets_stand_by_group_and_the_emulated_one_is_not_ranked() {
    let analysis = dozen();
    let verdict = &analysis.summary().verdict;
    assert!(
        verdict.headline.starts_with("CPU 1 lost from ")
            && verdict
                .headline
                .contains("on unikernel,irq=off to 1.02 % on process, of 11 targets"),
        "{}",
        verdict.headline
    );
    let groups = &verdict.details[0];
    for part in [
        "process 1.02 %;",
        "containers ",
        " (4);",
        "Linux guests with an initramfs ",
        "Linux guests with a whole Debian ",
        "One emulated target is not ranked.",
    ] {
        assert!(groups.contains(part), "{part}: {groups}");
    }
    let everything = [
        vec![verdict.headline.clone()],
        verdict.details.clone(),
        verdict.certainty.clone(),
    ];
    for sentence in everything.iter().flatten() {
        assert!(!sentence.contains("(emulated)"), "{sentence}");
    }
    let under_dd = verdict
        .details
        .iter()
        .find(|d| d.starts_with("CPU 1 lost under dd"));
    assert!(under_dd.is_some(), "{:?}", verdict.details);
}

#[test]
fn a_dozen_targets_are_overlaid_by_six_at_most() {
    let page = page::render(&dozen());
    assert!(page.len() < page::LIMIT);
    for heading in [
        "gap under dd · Containers",
        "gap · Linux guests, whole Debian",
    ] {
        assert!(
            page.contains(&format!("scope=\"rowgroup\"><span>{heading}</span></th>")),
            "{heading}"
        );
    }
    let mut legends = 0;
    for legend in page.split("<ul class=\"legend").skip(1) {
        let legend = legend.split("</ul>").next().unwrap();
        let series = legend.matches("<li class=\"s").count();
        assert!(series <= 6, "{legend}");
        legends += usize::from(series > 0);
    }
    assert!(legends > 4);
    // The overview names every target, and marks what was emulated by a hollow mark.
    let (_, overview) = page.split_once("gap by target").unwrap();
    let overview = overview.split("</figure>").next().unwrap();
    assert!(overview.contains("unikernel (emulated)"));
    assert_eq!(overview.matches("class=\"mark hollow s").count(), 2);
    assert_eq!(overview.matches("class=\"mark s").count(), 22);
}

#[test]
fn a_dozen_targets_fit_on_a_terminal_with_whole_names() {
    for width in [60, 80, 120] {
        let text = terminal::render(&dozen(), width, false);
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        assert!(!text.contains('§') && !text.contains('\u{200b}'));
        assert!(text.contains("\ngap under dd · Containers\n"));
        assert!(text.contains("\nprime 22 · Linux guests, initramfs only\n"));
        let unlimited = terminal::render(&dozen(), 10_000, false);
        let whole = synthetic::has_whole_words(&text, &unlimited);
        assert!(width < 80 || whole.is_ok(), "{whole:?}");
    }
}

#[test]
fn a_sweep_ranks_what_a_machine_executed() {
    let mut run = Run::new(1);
    for size in [10, 22, 46] {
        for (target, longest) in [
            ("process", 9_000),
            ("docker", 9_500),
            ("unikernel", 900_000),
        ] {
            run.emulated = target == "unikernel";
            let mut durations = vec![1_000 + size; 500];
            durations[100] = longest;
            run.done(
                1,
                target,
                "prime",
                Some(size),
                timed(&durations, Fold::default()),
            );
        }
    }
    let headline = run.analyse().summary().verdict.headline.clone();
    assert!(!headline.contains("unikernel"), "{headline}");
    assert!(headline.contains("docker"), "{headline}");
}
