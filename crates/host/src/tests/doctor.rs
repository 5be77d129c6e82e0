//! What the doctor says of machines with known faults.

use std::collections::BTreeSet;

use super::fixtures::{Tree, container, guest, laptop, rt_group, telecom};
use crate::doctor::{Finding, Severity, doctor, load_of_all_cpus, summary};
use crate::machine::Machine;
use crate::sample::Sample;
use crate::source::Source;
use tare_wire::files::{CHANGING, LASTING, LATER, REFUSED};

fn render(findings: &[Finding]) -> String {
    let mut text = summary(findings);
    for finding in findings {
        text += &format!(
            "\n\n[{}] {}: {}\n    id:  {}\n    why: {}",
            finding.severity, finding.title, finding.state, finding.id, finding.why
        );
        if let Some(remedy) = &finding.remedy {
            text += &format!("\n    do:  {remedy}");
        }
    }
    text
}

fn examine(tree: &Tree) -> Vec<Finding> {
    examine_cpu(&tree.source(), None)
}

fn examine_cpu(source: &Source, cpu: Option<u32>) -> Vec<Finding> {
    doctor(
        source,
        &Machine::collect(source),
        &Sample::take(source),
        cpu,
    )
}

fn find(tree: &Tree, id: &str) -> Finding {
    examine(tree)
        .into_iter()
        .find(|finding| finding.id == id)
        .unwrap()
}

fn severity(tree: &Tree, id: &str) -> Severity {
    find(tree, id).severity
}

#[test]
fn a_laptop_as_it_comes() {
    insta::assert_snapshot!(render(&examine(&laptop())));
}

#[test]
fn a_tuned_telecom_host() {
    insta::assert_snapshot!(render(&examine(&telecom())));
}

#[test]
fn a_guest_of_a_microvm_monitor() {
    insta::assert_snapshot!(render(&examine(&guest())));
}

#[test]
fn a_container_with_half_a_cpu() {
    insta::assert_snapshot!(render(&examine(&container())));
}

#[test]
fn a_machine_that_shows_nothing() {
    let findings = examine(&Tree::new());
    insta::assert_snapshot!(render(&findings));
    assert!(
        findings
            .iter()
            .all(|finding| finding.severity >= Severity::Unknown)
    );
}

#[test]
fn a_tuned_host_gives_no_alarm() {
    let findings = examine(&telecom());
    let alarms: Vec<_> = findings
        .iter()
        .filter(|finding| finding.severity >= Severity::Unknown)
        .map(|finding| (&finding.id, &finding.state))
        .collect();
    assert!(alarms.is_empty(), "{alarms:?}");
}

#[test]
fn a_group_without_budget_gets_exact_commands() {
    let finding = find(&rt_group(), "rt-group");
    assert_eq!(finding.severity, Severity::Warning);
    insta::assert_snapshot!(format!("{}\n{}", finding.state, finding.remedy.unwrap()));
}

#[test]
fn each_check_that_can_fail_says_which_command_or_parameter_helps() {
    let switched = [
        ("/sys/kernel/mm/ksm/run", "1"),
        ("/sys/kernel/rcu_normal", "0"),
        (
            "/sys/devices/system/machinecheck/machinecheck6/check_interval",
            "300",
        ),
        ("/sys/devices/virtual/workqueue/cpumask", "ff"),
        ("/proc/sys/kernel/watchdog_cpumask", "0-7"),
        ("/proc/sys/vm/compaction_proactiveness", "20"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "[always]"),
        ("/proc/irq/60/smp_affinity_list", "6\n"),
        ("/sys/class/tty/console/active", "ttyS0\n"),
        ("/proc/sys/kernel/printk", "7\t4\t1\t7\n"),
        ("/proc/cmdline", "isolcpus=2-7 irqaffinity=0-3"),
        ("/proc/sys/kernel/numa_balancing", "1\n"),
        ("/sys/devices/system/node/node1/cpulist", "4-7\n"),
        ("/sys/devices/system/cpu/cpu6/power/energy_perf_bias", "6\n"),
        ("/sys/devices/cpu_atom/cpus", "6-7\n"),
        ("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu tsc\n"),
        ("/proc/lockdep_stats", " lock-classes: 1\n"),
    ];
    let switched = telecom().files(&switched).memory_module(4_400, 4_800);
    let machines = [
        laptop(),
        telecom(),
        guest(),
        container(),
        rt_group(),
        switched.process(900, "tuned", 0, 0),
    ];
    let findings = machines.iter().map(examine);
    let findings = Vec::from_iter(findings.chain([examine_cpu(&laptop().source(), Some(99))]));
    let mut never = BTreeSet::from_iter(findings[0].iter().map(|finding| &*finding.id));
    for finding in findings.iter().flatten() {
        let is_whole = !finding.state.is_empty() && !finding.why.is_empty();
        let is_exact = finding.remedy.as_ref().map(|remedy| remedy.contains('`'));
        let is_told = is_exact.unwrap_or(finding.severity < Severity::Warning);
        assert!(is_whole && is_told, "{finding:?}");
        never = match is_exact {
            Some(_) => &never - &BTreeSet::from([&*finding.id]),
            None => never,
        };
    }
    // Nothing is to be done about these.
    assert_eq!(Vec::from_iter(never), ["container", "mitigations"]);
}

#[test]
fn identifiers_are_unique_and_the_worst_come_first() {
    let findings = examine(&laptop());
    let mut ids: Vec<_> = findings.iter().map(|finding| finding.id.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), findings.len());
    assert!(findings.is_sorted_by(|a, b| a.severity >= b.severity));
}

#[test]
fn a_request_that_cannot_be_met_is_a_problem() {
    let findings = examine_cpu(&laptop().source(), Some(99));
    assert_eq!(findings[0].id, "cpu");
    assert_eq!(findings[0].severity, Severity::Problem);
    assert!(findings[0].state.contains("CPU 99 is not online"));
}

#[test]
fn the_requested_cpu_is_the_one_that_is_examined() {
    let findings = examine_cpu(&laptop().source(), Some(7));
    let load = findings
        .iter()
        .find(|finding| finding.id == "load")
        .unwrap();
    assert_eq!(load.severity, Severity::Problem);
    assert!(
        load.remedy
            .as_ref()
            .unwrap()
            .contains("taskset -acp 0-6 4242"),
        "{load:?}"
    );
}

#[test]
fn parameters_that_do_not_do_what_was_meant_are_told() {
    let booted = |words: &str| telecom().file("/proc/cmdline", words);
    let aimed = booted("isolcpus=2-7 irqaffinity=0-3");
    let aimed = find(&aimed, "parameters");
    assert_eq!(aimed.severity, Severity::Warning);
    assert_eq!(
        aimed.state,
        "irqaffinity= sends device interrupts to isolated CPUs: 2-3"
    );
    let severity_of = |words: &str| severity(&booted(words), "parameters");
    assert_eq!(severity_of("isolcpus=2-7 irqaffinity=0-1"), Severity::Good);
    assert_eq!(severity_of("isolcpus=2-7 irqaffinity="), Severity::Warning);
    let [kept, cut] = [2_046, 2_047].map(|length| severity_of(&"x".repeat(length)));
    assert_eq!((kept, cut), (Severity::Good, Severity::Warning));
    let nothing = booted("isolcpus=").file("/sys/devices/system/cpu/isolated", "\n");
    let nothing = find(&nothing, "isolation");
    assert_eq!(nothing.severity, Severity::Warning);
    assert!(
        nothing.state.ends_with("booted with `isolcpus=`"),
        "{nothing:?}"
    );
    let tick = |release: &str| telecom().file("/proc/sys/kernel/osrelease", release);
    assert_eq!(severity(&tick("6.11.0\n"), "tick"), Severity::Good);
    assert_eq!(severity(&tick("6.12.0\n"), "tick"), Severity::Note);
    let off = ("/sys/kernel/debug/sched/fair_server/cpu6/runtime", "0\n");
    assert_eq!(
        severity(&tick("6.12.0\n").files(&[off]), "tick"),
        Severity::Good
    );
    // A kernel without NO_HZ_FULL shows no CPU there.
    let ticks = booted("nohz-full=2-7").file("/sys/devices/system/cpu/nohz_full", "(null)\n");
    let ticks = find(&ticks, "tick");
    assert_eq!(ticks.severity, Severity::Warning, "{ticks:?}");
    assert!(ticks.state.contains("`nohz_full=2-7`"), "{ticks:?}");
}

#[test]
fn settings_of_switches_have_their_value_and_the_command_that_changes_it() {
    let set = |path: &str, value: &str| telecom().file(path, value);
    let polled = "/sys/devices/system/machinecheck/machinecheck6/check_interval";
    for (id, path, value, command) in [
        ("page-merging", "/sys/kernel/mm/ksm/run", "1", "0"),
        ("rcu-normal", "/sys/kernel/rcu_normal", "0", "1"),
        ("machine-check", polled, "300", "0"),
        (
            "workqueues",
            "/sys/devices/virtual/workqueue/cpumask",
            "ff",
            "bf",
        ),
        (
            "watchdog",
            "/proc/sys/kernel/watchdog_cpumask",
            "0-7",
            "0-5,7",
        ),
        (
            "compaction",
            "/proc/sys/vm/compaction_proactiveness",
            "20",
            "0",
        ),
    ] {
        let found = find(&set(path, value), id);
        assert_eq!(found.severity, Severity::Note, "{found:?}");
        assert!(
            found.state.starts_with(&format!("{path} is {value}")),
            "{found:?}"
        );
        let command = format!("`echo {command} | sudo tee {path}`");
        assert_eq!(found.remedy, Some(command));
        assert_eq!(severity(&telecom(), id), Severity::Good);
    }
}

#[test]
fn interrupts_programs_and_consoles_that_disturb_are_named() {
    let tree = telecom()
        .files(&[
            ("/proc/irq/60/smp_affinity_list", "6\n"),
            ("/sys/class/tty/console/active", "tty0 ttyS0\n"),
            ("/proc/sys/kernel/printk", "7\t4\t1\t7\n"),
        ])
        .process(900, "tuned", 0, 0);
    let state = |id| find(&tree, id).state;
    assert_eq!(
        state("bound-irqs"),
        "1 are for CPU 6 alone (60 eno1-TxRx-0)"
    );
    assert_eq!(state("tuners"), "running: tuned");
    assert_eq!(state("console"), "ttyS0 gets messages of levels below 7");
    let slow = find(&telecom().memory_module(4_400, 4_800), "memory-speed");
    assert_eq!(slow.severity, Severity::Warning);
    assert!(
        slow.state.starts_with("4400 MT/s, of 4800 MT/s"),
        "{slow:?}"
    );
    assert_eq!(severity(&telecom(), "skew-tick"), Severity::Good);
    assert_eq!(severity(&laptop(), "skew-tick"), Severity::Note);
}

/// Returns whether a path has the form of one of the files that an agent sends.
fn is_sent(path: &str) -> bool {
    let mut patterns = CHANGING.split(' ').chain(LASTING.split(' '));
    patterns.any(|pattern| {
        let mut pairs = pattern.split('/').zip(path.split('/'));
        let is_as_long = pattern.split('/').count() == path.split('/').count();
        is_as_long
            && pairs.all(|(wanted, name)| match wanted.split_once('*') {
                Some((start, end)) => name.starts_with(start) && name.ends_with(end),
                None => wanted == name,
            })
    })
}

#[test]
fn files_that_an_agent_sends_suffice_for_all_checks() {
    for tree in [laptop(), telecom(), guest(), rt_group()] {
        let source = tree.source();
        let parts = tree.paths().into_iter().filter(|path| is_sent(path));
        let parts = parts.flat_map(|path| {
            let read = |source: &Source| source.link(&path).or_else(|| source.text(&path));
            let (now, later) = (read(&source), read(&source.later()));
            let later = later
                .into_known()
                .map(|text| (format!("{LATER}{path}"), text));
            [now.into_known().map(|text| (path.clone(), text)), later]
        });
        let parts: Vec<_> = parts.flatten().collect();
        let parts = parts.iter().map(|(name, text)| (&**name, &**text));
        let sent = examine_cpu(&Source::sent(parts), None);
        // Neither CPUID nor the firmware's tables are sent.
        let states = |all: &[Finding]| {
            let known = ["tsc", "hypervisor", "memory-speed"];
            let all = all.iter().filter(|finding| !known.contains(&&*finding.id));
            all.map(|finding| format!("{}: {}", finding.id, finding.state))
                .collect::<Vec<_>>()
        };
        assert_eq!(states(&sent), states(&examine(&tree)));
    }
    let refused = format!("{REFUSED}/proc/cmdline");
    let source = Source::sent([(&*refused, "")].into_iter());
    let refused = source.line("/proc/cmdline");
    assert_eq!(
        refused.because(),
        Some("permission denied on /proc/cmdline")
    );
}

#[test]
fn measurements_on_any_cpu_have_no_busy_cpu_of_their_own() {
    let tree = guest().with_affinity("0-1").busy(&[(0, 20, 0), (1, 19, 0)]);
    assert_eq!(severity(&tree, "load"), Severity::Problem);
    let source = tree.source();
    let (machine, sample) = (Machine::collect(&source), Sample::take(&source));
    let load = load_of_all_cpus(&source, &machine, &sample).unwrap();
    assert_eq!(load.severity, Severity::Warning);
    assert!(load.state.starts_with("the CPUs are "), "{load:?}");
}

#[test]
fn steal_is_graded() {
    let stolen = |ticks| {
        guest()
            .with_affinity("0-1")
            .busy(&[(0, 0, 0), (1, 0, ticks)])
    };
    assert_eq!(severity(&stolen(3), "steal"), Severity::Problem);
    assert_eq!(severity(&stolen(1), "steal"), Severity::Warning);
    assert_eq!(severity(&stolen(0), "steal"), Severity::Note);
    assert_eq!(severity(&laptop(), "steal"), Severity::Good);
}

#[test]
fn device_interrupts_are_graded_by_how_many_arrive() {
    let arriving = |count| guest().interrupts(2, &[(36, "virtio1-req.0", 1, count)]);
    assert_eq!(severity(&arriving(4), "irq-affinity"), Severity::Warning);
    assert_eq!(severity(&arriving(1), "irq-affinity"), Severity::Note);
    assert_eq!(severity(&arriving(0), "irq-affinity"), Severity::Note);
    let elsewhere = guest().interrupts(
        2,
        &[(36, "virtio1-req.0", 0, 9), (38, "virtio2-input.0", 0, 0)],
    );
    assert_eq!(severity(&elsewhere, "irq-affinity"), Severity::Good);
}

#[test]
fn a_quota_is_graded_by_what_it_leaves() {
    let quota = |text: &str| container().file("/sys/fs/cgroup/cpu.max", text);
    assert_eq!(
        severity(&quota("50000 100000\n"), "cpu-quota"),
        Severity::Problem
    );
    assert_eq!(
        severity(&quota("150000 100000\n"), "cpu-quota"),
        Severity::Warning
    );
    assert_eq!(
        severity(&quota("300000 100000\n"), "cpu-quota"),
        Severity::Note
    );
    assert_eq!(
        severity(&quota("400000 100000\n"), "cpu-quota"),
        Severity::Good
    );
    assert_eq!(
        severity(&quota("max 100000\n"), "cpu-quota"),
        Severity::Good
    );
}

#[test]
fn clock_sources_are_told_apart() {
    let clock = |current: &str, available: &str| {
        let folder = "/sys/devices/system/clocksource/clocksource0";
        guest()
            .file(&format!("{folder}/current_clocksource"), current)
            .file(&format!("{folder}/available_clocksource"), available)
    };
    assert_eq!(
        severity(&clock("tsc\n", "tsc\n"), "clocksource"),
        Severity::Good
    );
    assert_eq!(
        severity(&clock("kvm-clock\n", "kvm-clock tsc\n"), "clocksource"),
        Severity::Note
    );
    assert_eq!(
        severity(&clock("hpet\n", "tsc hpet\n"), "clocksource"),
        Severity::Warning
    );
    assert_eq!(
        severity(&clock("hpet\n", "hpet\n"), "clocksource"),
        Severity::Problem
    );
}

#[test]
fn throttling_matters_to_those_who_may_use_real_time() {
    // An ordinary user may not.
    assert_eq!(severity(&laptop(), "rt-throttling"), Severity::Note);
    // Root on a kernel that throttles groups may.
    assert_eq!(severity(&guest(), "rt-throttling"), Severity::Warning);
    // Linux 6.12 and later without groups has the fair server instead.
    let fair = guest()
        .without("/sys/fs/cgroup/cpu/cpu.rt_runtime_us")
        .file("/sys/fs/cgroup/cpu/cpu.shares", "1024\n");
    assert_eq!(severity(&fair, "rt-throttling"), Severity::Note);
    assert!(find(&fair, "rt-throttling").state.contains("fair server"));
}

#[test]
fn a_debugging_kernel_is_recognised_by_its_options_or_by_lockdep() {
    let by_options = laptop().file(
        "/boot/config-6.8.0-45-generic",
        "CONFIG_HZ=250\nCONFIG_KASAN=y\n",
    );
    assert_eq!(severity(&by_options, "debug-kernel"), Severity::Warning);
    let by_file = laptop()
        .without("/boot/config-6.8.0-45-generic")
        .file("/proc/lockdep_stats", " lock-classes: 1\n");
    assert_eq!(severity(&by_file, "debug-kernel"), Severity::Warning);
}

#[test]
fn a_shared_core_is_worse_when_the_sibling_works() {
    assert_eq!(severity(&laptop(), "smt"), Severity::Note);
    let findings = examine_cpu(&laptop().source(), Some(3));
    let smt = findings.iter().find(|finding| finding.id == "smt").unwrap();
    assert_eq!(smt.severity, Severity::Warning);
}

#[test]
fn findings_survive_json() {
    let findings = examine(&container());
    let text = serde_json::to_string(&findings).unwrap();
    assert_eq!(
        serde_json::from_str::<Vec<Finding>>(&text).unwrap(),
        findings
    );
}

#[test]
fn the_summary_of_nothing_bad_says_so() {
    let text = summary(&examine(&telecom()));
    assert!(text.contains("0 problems, 0 warnings"), "{text}");
    assert!(text.contains("None of the checks"), "{text}");
}

#[test]
fn this_machine_can_be_examined() {
    let findings = examine_cpu(&Source::system(), None);
    assert!(findings.iter().all(|finding| !finding.state.is_empty()));
}
