//! Many places in one report: groups, loads, daemons, counters, CPUs, facts, page sizes.

use tare_pages::{Report, page, terminal};
use tare_results::CellState;
use tare_results::model::{Achieved, Counter, Fact, Labels, Load, LoadPlace};
use tare_results::target::Group;
use tare_testkit::assert_contains;

use crate::synthetic::{
    self, Fold, HZ, Run, alarm, analyse, evenly, ids, measured, record, row, shown, timed, verdict,
};

const KVM: Option<&str> = Some("KVM of QEMU 9.0");

/// Makes a tenth of a second of spinning with this many gaps of 20,021 cycles.
fn gaps(count: u64) -> synthetic::Folded {
    evenly(HZ as u64 / 10, count, 1_300)
}

#[test]
fn what_the_unikernel_counted_stands_beside_the_gaps() {
    let mut run = Run::new(1);
    for block in 1..=2 {
        let ticks = 20 + 10 * u64::from(block);
        let cell = run.gap(block, "unikernel", gaps(50));
        // A second program of the cell counts the rest.
        let counter = |count| Counter {
            name: "timer interrupts".to_owned(),
            count,
            ..Counter::default()
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
    let (terminal, page) = shown(&analysis);
    let name = "gap · unikernel · timer interrupts";
    assert_contains(&terminal, &[&format!("{name} 70 350")]);
    assert_contains(&page, &[&format!("{name}</th><td>70</td><td>350</td>")]);
}

#[test]
fn a_guest_s_cpu_is_told_apart_from_the_host_s() {
    let mut run = Run::new(1);
    run.gap(1, "process", gaps(5));
    run.accelerator = KVM;
    let cell = run.gap(1, "unikernel", gaps(5));
    measured(cell).preparation.cpu = Some(0);
    run.accelerator = None;
    let cell = run.gap(1, "ssh,host=lab", gaps(5));
    measured(cell).preparation.cpu = Some(7);
    let analysis = run.analyse();
    let (_, page) = shown(&analysis);
    let guest = "pinned to host CPU 1; the guest's CPU 0";
    assert_contains(&page, &[guest, "pinned to CPU 7 of that machine"]);
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
    assert_eq!(
        alarm(&analysis, "page-sizes").split(':').next().unwrap(),
        "The buffers of unikernel lie on pages of 2 MiB, those of process on pages of 4 KiB unless \
         their kernel gave huge ones"
    );
    for (workload, targets) in [
        ("prime", &["process", "unikernel"][..]),
        ("copy", &["process", "docker"]),
        ("copy", &["unikernel"]),
    ] {
        assert!(!ids(&alarms(workload, targets)).contains(&"page-sizes"));
    }
}

fn wrote(amount: u64, place: LoadPlace) -> Option<Load> {
    let achieved = |what: &str, amount, ns| Achieved {
        what: what.to_owned(),
        amount,
        ns,
    };
    Some(Load {
        place,
        phases: Vec::new(),
        left: Vec::new(),
        achieved: vec![
            achieved("bytes written", amount, 500_000_000),
            achieved("files", 0, 0),
        ],
        notices: vec!["conv=fsync is added".to_owned()],
    })
}

#[test]
fn what_a_load_did_is_summed_by_block_and_its_deviations_are_listed() {
    let mut run = Run::new(1);
    run.load = "dd";
    for (block, amounts) in [(1, [100, 300]), (2, [50, 50])] {
        let cell = run.gap(block, "process", gaps(5));
        cell.load = wrote(amounts[0] * 1_000_000, LoadPlace::Beside);
        let cell = run.prime(block, "process", &[500; 100]);
        cell.load = wrote(amounts[1] * 1_000_000, LoadPlace::Beside);
    }
    let cell = run.gap(1, "linux,kernel=debian", gaps(5));
    cell.load = wrote(10_000_000, LoadPlace::Inside);
    let analysis = run.analyse();
    let [process, linux] = analysis.summary().loads.as_slice() else {
        panic!("{:?}", analysis.summary().loads);
    };
    let places = (process.place, linux.place);
    assert_eq!(places, (LoadPlace::Beside, LoadPlace::Inside));
    // 400 MB and 100 MB in a second each; what took no time has no rate.
    assert_eq!(process.rates.len(), 1);
    let rate = &process.rates[0];
    assert_eq!(rate.blocks, [1, 2]);
    let rate = &rate.per_second;
    let rates = (rate.figure, rate.lowest, rate.highest);
    assert_eq!(rates, (250e6, 100e6, 400e6));
    insta::assert_snapshot!(terminal::render(&analysis, 120, false));
    let (_, page) = shown(&analysis);
    let notice = "conv=fsync is added<span class=\"note\"> (dd; cells 1–5)</span>";
    assert_contains(
        &page,
        &[notice, "<span>linux,kernel=debian, loads inside</span>"],
    );
}

#[test]
fn daemons_and_loads_are_those_of_the_cells_that_were_measured() {
    let mut run = Run::new(1);
    for block in 1..=3 {
        let cell = run.gap(block, "docker", gaps(5));
        cell.daemons = vec!["dockerd".to_owned()];
    }
    run.gap(4, "process", gaps(5));
    run.failed(5, "docker", "gap", "it ended");
    let mut data = run.data();
    if let Some((CellState::Failed(cell), _)) = data.cells.last_mut() {
        cell.daemons = vec!["dockerd".to_owned()];
    }
    let analysis = analyse(data);
    assert_eq!(analysis.summary().daemons[0].blocks, [1, 2, 3]);
    let (terminal, page) = shown(&analysis);
    let running = "aemons that were running: dockerd (cells 1–3)";
    assert_contains(&terminal, &[running]);
    assert_contains(&page, &[running]);
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
        let cell = run.gap(block, "linux,kernel=debian-rt", gaps(5));
        let clock = if block == 2 { "hpet" } else { "tsc" };
        measured(cell).facts = vec![
            fact("kernel release", "6.1.0-49-rt-amd64"),
            fact("clock source", clock),
        ];
        let cell = run.gap(block, "process", gaps(5));
        measured(cell).facts = vec![fact("kernel release", "6.18.0")];
    }
    let analysis = run.analyse();
    let places = &analysis.summary().places;
    assert_eq!(places[0].target, "process");
    assert_eq!(places[1].group, Group::LinuxGuest);
    assert_eq!(places[1].facts[0].values.len(), 1);
    assert_eq!(places[1].facts[1].values[1].cells, [3]);
    let (_, page) = shown(&analysis);
    let changed = "changed: tsc (cells 1, 5); hpet (cell 3)";
    assert_contains(&page, &["The targets, from inside</h2>", changed]);
    assert_contains(&page, &["A target was not the same in all cells"]);
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
                run.gap(block, target, gaps(count));
                let mut durations = vec![1_000; 2_000];
                durations[700] += 500 * place * factor;
                run.prime(block, target, &durations);
            }
        }
    }
    run.analyse()
}

#[test]
fn a_dozen_targets_stand_by_group_and_the_emulated_one_is_not_ranked() {
    let analysis = dozen();
    insta::assert_snapshot!(verdict(&analysis).join("\n"));
}

#[test]
fn a_dozen_targets_are_overlaid_by_six_at_most() {
    let page = page::render(&dozen());
    assert!(page.len() < page::LIMIT);
    for heading in [
        "gap under dd · Containers",
        "gap · Linux guests, whole Debian",
    ] {
        let row = format!("scope=\"rowgroup\"><span>{heading}</span></th>");
        assert_contains(&page, &[&row]);
    }
    let mut legends = 0;
    for legend in page.split("<ul class=\"legend").skip(1) {
        let legend = legend.split("</ul>").next().unwrap();
        let series = legend.matches("<li class=\"s").count();
        assert!(series <= 6, "{legend}");
        legends += usize::from(series > 0);
    }
    assert!(legends > 4);
    // The overview names every target, and marks what was emulated by a hollow mark; for wide
    // and for narrow screens.
    let (_, overview) = page.split_once("gap by target").unwrap();
    let overview = overview.split("</figure>").next().unwrap();
    assert_contains(overview, &["unikernel (emulated)"]);
    assert_eq!(overview.matches("class=\"mark hollow s").count(), 4);
    assert_eq!(overview.matches("class=\"mark s").count(), 44);
}

#[test]
fn a_dozen_targets_fit_on_a_terminal_with_whole_names() {
    let analysis = dozen();
    for width in [60, 80, 120] {
        synthetic::assert_fits(&analysis, width);
        let text = terminal::render(&analysis, width, false);
        assert!(!text.contains('§') && !text.contains('\u{200b}'));
        assert_contains(&text, &["\ngap under dd · Containers\n"]);
        assert_contains(&text, &["\nprime 22 · Linux guests, initramfs only\n"]);
    }
}

#[test]
fn a_sweep_ranks_what_a_machine_executed() {
    let mut run = Run::new(1);
    for size in [10, 22, 46] {
        for (target, longest) in [("process", 90), ("docker", 95), ("unikernel", 9_000)] {
            run.emulated = target == "unikernel";
            let mut durations = vec![1_000 + size; 500];
            durations[100] = longest * 100;
            let folded = timed(&durations, Fold::default());
            run.done(1, target, "prime", Some(size), folded);
        }
    }
    let headline = run.analyse().summary().verdict.headline.clone();
    assert!(!headline.contains("unikernel"), "{headline}");
    assert_contains(&headline, &["docker"]);
}
