//! The CPU to measure on, on machines with different ideas of what is free.

use super::fixtures::{Tree, laptop, telecom};
use crate::choose::{CpuChoice, Rule, choose_cpu, choose_cpu_beside};
use crate::error::HostError;
use crate::machine::Machine;
use crate::sample::Sample;

/// Eight CPUs, four cores, all idle; the mask and the cpuset hold all.
fn plain() -> Tree {
    laptop().busy(&(0..8).map(|cpu| (cpu, 0, 0)).collect::<Vec<_>>())
}

fn choose(tree: &Tree, requested: Option<u32>) -> Result<CpuChoice, HostError> {
    let source = tree.source();
    choose_cpu(
        &Machine::collect(&source),
        &Sample::take(&source),
        requested,
    )
}

fn isolated(list: &str) -> Tree {
    telecom()
        .file("/sys/devices/system/cpu/isolated", list)
        .file("/sys/devices/system/cpu/nohz_full", list)
}

#[test]
fn without_load_it_is_the_highest_number() {
    let choice = choose(&plain(), None).unwrap();
    assert_eq!((choice.cpu, choice.rule), (7, Rule::Quietest));
    assert!(choice.warnings.is_empty(), "{:?}", choice.warnings);
    // CPU 3 is the sibling of CPU 7.
    assert_eq!(choice.controller_cpus.to_string(), "0-2,4-6");
    insta::assert_snapshot!(choice.reason, @"CPU 7, the quietest that this process may use besides CPU 0, the highest-numbered of several (0 % busy, its SMT sibling CPU 3 0 %)");
}

#[test]
fn a_busy_sibling_rules_a_cpu_out() {
    // CPU 7 is busy, so CPU 3 is no good either.
    let choice = choose(&laptop(), None).unwrap();
    assert_eq!(choice.cpu, 6);
    let choice = choose(
        &plain().busy(&[
            (0, 0, 0),
            (1, 0, 0),
            (2, 20, 0),
            (3, 5, 0),
            (4, 0, 0),
            (5, 2, 0),
            (6, 0, 0),
            (7, 0, 0),
        ]),
        None,
    )
    .unwrap();
    // 6 and 7 have busy siblings; 1 and 5 share a core of which 5 is busy: 4 is left, sibling of 0.
    assert_eq!(choice.cpu, 4);
}

#[test]
fn a_little_own_load_is_better_than_a_busy_sibling() {
    // Every core but that of 0 and 4 has a busy thread; CPU 4 itself has one stray unit.
    let tree = plain().busy(&[
        (0, 1, 0),
        (1, 4, 0),
        (2, 4, 0),
        (3, 4, 0),
        (4, 1, 0),
        (5, 0, 0),
        (6, 0, 0),
        (7, 0, 0),
    ]);
    assert_eq!(choose(&tree, None).unwrap().cpu, 4);
}

#[test]
fn cpu_0_is_taken_last() {
    let tree = plain()
        .with_affinity("0-1")
        .busy(&[(0, 0, 0), (1, 8, 0), (5, 0, 0)]);
    let choice = choose(&tree, None).unwrap();
    assert_eq!((choice.cpu, choice.rule), (1, Rule::Quietest));
    assert!(
        choice.warnings[0].contains("40 % busy"),
        "{:?}",
        choice.warnings
    );
    assert_eq!(choice.controller_cpus.to_string(), "0");
}

#[test]
fn isolated_cpus_outside_the_inherited_mask_are_used() {
    // The mask is 0-1, as isolcpus= leaves it; CPU 7 runs somebody's packet processing.
    let tree = telecom();
    let choice = choose(&tree, None).unwrap();
    assert_eq!((choice.cpu, choice.rule), (6, Rule::Isolated));
    assert_eq!(choice.controller_cpus.to_string(), "0-1");
    insta::assert_snapshot!(choice.reason, @"CPU 6, the highest-numbered of the isolated CPUs 2-7 that is idle together with its SMT siblings (0 % busy, no SMT sibling)");
}

#[test]
fn an_isolated_cpu_needs_idle_siblings() {
    let tree = plain()
        .file("/sys/devices/system/cpu/isolated", "5-7\n")
        .with_affinity("0-4")
        .busy(&[
            (0, 0, 0),
            (1, 0, 0),
            (2, 3, 0),
            (3, 3, 0),
            (4, 0, 0),
            (5, 0, 0),
            (6, 0, 0),
            (7, 0, 0),
        ]);
    let choice = choose(&tree, None).unwrap();
    assert_eq!((choice.cpu, choice.rule), (5, Rule::Isolated));
}

#[test]
fn busy_isolated_cpus_are_left_alone() {
    let tree = isolated("6-7\n").with_affinity("0-5").busy(&[
        (0, 0, 0),
        (1, 0, 0),
        (2, 0, 0),
        (3, 0, 0),
        (4, 0, 0),
        (5, 0, 0),
        (6, 20, 0),
        (7, 20, 0),
    ]);
    let choice = choose(&tree, None).unwrap();
    assert_eq!((choice.cpu, choice.rule), (5, Rule::Quietest));
    assert!(choice.warnings[0].contains("6-7"), "{:?}", choice.warnings);
}

#[test]
fn the_cpuset_is_the_true_limit_of_isolated_cpus() {
    let tree = telecom().file("/sys/fs/cgroup/cpuset.cpus.effective", "0-4\n");
    assert_eq!(choose(&tree, None).unwrap().cpu, 4);
    let error = choose(&tree, Some(6)).unwrap_err();
    insta::assert_snapshot!(error, @"this process may not run on CPU 6 (its cpuset holds 0-4); it may use 0-4: choose one of them, or start tare in a control group whose cpuset has the CPU");
}

#[test]
fn without_knowledge_of_the_cpuset_only_the_mask_is_believed() {
    let tree = telecom().without("/sys/fs/cgroup/cpuset.cpus.effective");
    let choice = choose(&tree, None).unwrap();
    assert_eq!((choice.cpu, choice.rule), (1, Rule::Quietest));
}

#[test]
fn the_root_cpuset_is_no_limit_even_when_it_is_not_mounted() {
    let tree = telecom()
        .without("/sys/fs/cgroup/cpuset.cpus.effective")
        .file("/proc/self/cpuset", "/\n");
    assert_eq!(choose(&tree, None).unwrap().cpu, 6);
    let in_namespace = tree.link("/proc/self/ns/cgroup", "cgroup:[4026532503]");
    assert_eq!(choose(&in_namespace, None).unwrap().cpu, 1);
}

#[test]
fn a_mask_that_somebody_narrowed_is_respected_unless_a_cpu_is_named() {
    // Started with `taskset -c 0`: CPU 1 is not isolated and yet not in the mask.
    let tree = telecom().with_affinity("0");
    let choice = choose(&tree, None).unwrap();
    assert_eq!(choice.cpu, 0);
    assert!(choice.controller_shares());
    let choice = choose(&tree, Some(6)).unwrap();
    assert_eq!((choice.cpu, choice.rule), (6, Rule::Requested));
    assert_eq!(choice.controller_cpus.to_string(), "0");
}

#[test]
fn a_request_outside_the_mask_is_refused_with_the_way_out() {
    let tree = plain().with_affinity("0-2");
    let error = choose(&tree, Some(5)).unwrap_err();
    insta::assert_snapshot!(error, @"this process may not run on CPU 5 (its affinity mask holds 0-2); it may use 0-2: choose one of them, or start tare with `taskset -c 0-2,5 tare …`");
}

#[test]
fn a_request_for_an_offline_cpu_says_whether_it_exists() {
    let tree = plain().file("/sys/devices/system/cpu/online", "0-3\n");
    insta::assert_snapshot!(choose(&tree, Some(5)).unwrap_err(), @"CPU 5 is not online; online are 0-3: choose one of them, or bring it up with `echo 1 | sudo tee /sys/devices/system/cpu/cpu5/online`");
    insta::assert_snapshot!(choose(&tree, Some(64)).unwrap_err(), @"CPU 64 is not online; online are 0-3: choose one of them");
}

#[test]
fn a_requested_cpu_is_taken_with_its_faults() {
    let choice = choose(&laptop(), Some(3)).unwrap();
    assert_eq!((choice.cpu, choice.rule), (3, Rule::Requested));
    insta::assert_snapshot!(choice.warnings.join("\n"), @"CPU 7 shares a core with CPU 3 and is 60 % busy, which slows the measured code");
}

#[test]
fn a_single_cpu_is_shared_with_the_controller() {
    let tree = plain().cpus(1, 1).with_affinity("0").busy(&[(0, 0, 0)]);
    let choice = choose(&tree, None).unwrap();
    assert_eq!((choice.cpu, choice.rule), (0, Rule::OnlyOne));
    assert!(choice.controller_shares());
    insta::assert_snapshot!(format!("{}\n{}", choice.reason, choice.warnings.join("\n")), @r"
    CPU 0, the only one of this machine (0 % busy, no SMT sibling)
    tare itself has to run on CPU 0 too, so its own work shows in the measurement
    ");
}

#[test]
fn a_single_allowed_cpu_of_many_is_named_as_such() {
    let choice = choose(&plain().with_affinity("2"), None).unwrap();
    assert_eq!((choice.cpu, choice.rule), (2, Rule::OnlyOne));
    assert!(choice.reason.contains("the only one in the affinity mask"));
}

#[test]
fn efficiency_cores_are_taken_last() {
    let mut tree = plain()
        .cpus(8, 1)
        .file("/sys/devices/cpu_atom/cpus", "4-7\n");
    let choice = choose(&tree, None).unwrap();
    assert_eq!(choice.cpu, 3);
    // The same by capacity, where the kernel has no event source of that name.
    tree = tree.without("/sys/devices/cpu_atom/cpus");
    for cpu in 0..8 {
        let capacity = if cpu < 6 { "1024\n" } else { "512\n" };
        tree = tree.file(
            &format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity"),
            capacity,
        );
    }
    assert_eq!(choose(&tree, None).unwrap().cpu, 5);
}

#[test]
fn one_stray_unit_does_not_make_a_sibling_busy_even_in_a_short_sample() {
    let before: String = (0..8).map(|cpu| format!("cpu{cpu} 0 0 0 0\n")).collect();
    // CPU 3, sibling of CPU 7, has one unit of the 19 that this sample caught.
    let after: String = (0..8)
        .map(|cpu| format!("cpu{cpu} {} 0 0 18\n", u32::from(cpu == 3)))
        .collect();
    let tree = plain()
        .file("/proc/stat", &before)
        .later_file("/proc/stat", &after);
    let choice = choose(&tree, Some(7)).unwrap();
    assert!(choice.warnings.is_empty(), "{:?}", choice.warnings);
}

#[test]
fn stolen_time_counts_as_busy() {
    let tree =
        plain()
            .cpus(4, 1)
            .with_affinity("0-3")
            .busy(&[(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 3)]);
    assert_eq!(choose(&tree, None).unwrap().cpu, 2);
}

#[test]
fn where_nothing_can_be_read_there_is_no_choice() {
    let error = choose(&Tree::new(), None).unwrap_err();
    assert!(matches!(error, HostError::NoCpuKnown { .. }));
    insta::assert_snapshot!(error, @"which CPUs this process may use cannot be read (there is no /proc/self/status); mount /proc and /sys, which every tare command needs");
}

#[test]
fn without_sysfs_proc_is_enough() {
    let tree = Tree::new()
        .file("/proc/self/status", "Cpus_allowed_list:\t0-1\n")
        .busy(&[(0, 0, 0), (1, 0, 0)]);
    let choice = choose(&tree, None).unwrap();
    assert_eq!(choice.cpu, 1);
    assert!(
        choice.reason.contains("SMT siblings unknown"),
        "{}",
        choice.reason
    );
}

#[test]
fn a_cpu_that_another_run_measures_on_is_taken_last() {
    let away_from = |taken: &[u32]| {
        let tree = plain();
        let source = tree.source();
        let taken = taken.iter().copied().collect();
        let (machine, sample) = (Machine::collect(&source), Sample::take(&source));
        choose_cpu_beside(&taken, &machine, &sample).unwrap()
    };
    assert_eq!(away_from(&[]), choose(&plain(), None).unwrap());
    let choice = away_from(&[7, 3]);
    assert_eq!(choice.cpu, 6);
    assert!(
        choice
            .reason
            .ends_with("; other runs of tare measure on CPU 3,7"),
        "{}",
        choice.reason
    );
    // Nor does the controller go there.
    assert_eq!(choice.controller_cpus.to_string(), "0-1,4-5");
    let only = away_from(&[1, 2, 3, 4, 5, 6, 7]);
    let why = "the only one that this process may use and no other run measures on";
    assert!(only.reason.contains(why), "{}", only.reason);
    let all: Vec<u32> = (0..8).collect();
    assert_eq!(away_from(&all), choose(&plain(), None).unwrap());
}
