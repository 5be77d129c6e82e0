//! What a run of services tells.

use tare_experiments::catalogue;
use tare_host::Fact;
use tare_pages::terminal;
use tare_results::MachineRecord;
use tare_results::model::{Cpus, Labels, Samples, SetSamples, Value};
use tare_testkit::assert_contains;

use crate::compare::between;
use crate::synthetic::services::Asked;
use crate::synthetic::{
    NO, Run, UNKNOWN, YES, alarm, analyse, figure, ids, plain, record, reproduction, shown,
    unknown_machine, verdict,
};

#[test]
fn a_comparison_of_several_servers_or_rates_names_them() {
    let mut run = Run::new(1);
    for block in 1..=6 {
        for (target, cpu_ns) in [("process", 20e3), ("runc", 30e3)] {
            for (labels, words) in [
                (&[("rate", "500")], "interval=2000000ns"),
                (&[("rate", "1000")], "interval=1000000ns"),
            ] {
                let cpu_ns = cpu_ns + f64::from(block);
                let asked = Asked {
                    labels,
                    words,
                    cpu_ns,
                    ..Asked::default()
                };
                run.asked(block, target, asked);
            }
        }
    }
    let said = &verdict(&run.analyse())[1];
    assert_contains(
        said,
        &["worse at 500/s (median ", " and at 1,000/s (median "],
    );
    let mut run = Run::new(1);
    for block in 1..=6 {
        for (target, factor) in [("process", 1.0), ("runc", 1.5)] {
            for (server, labels, cpu_ns) in
                [("dns", &[][..], 20e3), ("nsd", &[("server", "nsd")], 30e3)]
            {
                let cpu_ns = cpu_ns * factor + f64::from(block);
                let asked = Asked {
                    server,
                    labels,
                    cpu_ns,
                    ..Asked::default()
                };
                run.asked(block, target, asked);
            }
        }
    }
    let said = &verdict(&run.analyse())[1];
    let of_both = "worse (nsd) (median difference +15.0 µs (+50.0 %), adjusted p ";
    assert_contains(
        said,
        &[
            of_both,
            " and (own) (median difference +10.0 µs (+50.0 %), ",
        ],
    );
}

#[test]
fn a_comparison_names_the_figure_that_its_table_shows_to_differ_most() {
    let side = |each: [(f64, f64); 6]| {
        let each = each.map(|(cpu_ns, answered)| {
            let mut run = Run::new(1);
            let asked = Asked {
                cpu_ns,
                answered,
                ..Asked::default()
            };
            run.asked(1, "process", asked);
            run.analyse()
        });
        Vec::from(each)
    };
    let base = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0].map(|us| (us * 1e3, 1_350.0 + us));
    // The medians grow by less than the median of the differences.
    let new = [16.0, 16.1, 16.2, 16.3, 30.0, 31.0].map(|us| (us * 1e3, 1_000.0 + us));
    let compared = between(&side(base), &side(new)).unwrap();
    let shift = |measure: &str| {
        let mut rows = compared.rows.iter();
        rows.find(|row| row.measure == measure).unwrap().relative
    };
    let [cpu, answers] = ["per-cpu-second", "answers"].map(shift);
    assert!(cpu < answers, "{cpu:?} {answers:?}");
    assert_contains(&compared.verdict[0], &["most in per-cpu-second.rate of "]);
}

#[test]
fn a_client_that_does_not_say_that_it_is_late_is_known_by_its_time() {
    let offered = Asked {
        labels: &[("client", "dnsperf"), ("rate", "1000")],
        words: "client=dnsperf interval=1000000ns",
        ..Asked::default()
    };
    let late = |window_ns: f64| {
        let mut run = Run::new(1);
        run.asked(
            1,
            "process",
            Asked {
                window_ns,
                ..offered
            },
        );
        ids(&run.analyse()).contains(&"client-behind")
    };
    // Its last requests may have been lost.
    assert!(!late(1.25e9));
    assert!(late(1.72e9));
}

#[test]
fn a_client_that_is_a_bottleneck_says_how() {
    let told = |each: &[&[(&str, f64)]], answered: f64| {
        let mut run = Run::new(1);
        for (target, values) in ["process", "crun", "runc"].into_iter().zip(each) {
            let window_ns = if answered > 0.0 { 1e9 } else { 0.0 };
            let asked = Asked {
                answered,
                window_ns,
                ..Asked::default()
            };
            let cell = run.asked(1, target, asked);
            let values = values.iter().copied().map(valued);
            record(cell).values.extend(values);
        }
        let analysis = run.analyse();
        let is_told = ids(&analysis).contains(&"client-behind");
        let text = plain(&terminal::render(&analysis, 100, false));
        let marks = ["crun (client late)", "process (limited by the client)"];
        let marks = marks.map(|mark| text.contains(mark));
        assert_eq!(marks, [is_told && each.len() > 1, is_told], "{text}");
        is_told.then(|| alarm(&analysis, "client-behind").to_owned())
    };
    let busy = [("client_cpu", 0.95e9), ("behind", 5.0)];
    let late = [("client_cpu", 0.5e9), ("behind", 20.0)];
    let some = told(&[&busy, &late, &busy], 1_000.0).unwrap();
    let each = "for process (and 1 more): in a run it used more than 90 % of its CPU; for crun: in a run it sent more than 1 % of its \
                requests a millisecond or more late. ";
    assert_contains(&some, &[each]);
    let both = told(&[&[("limited", 1.0), ("behind", 20.0)]], 1_000.0).unwrap();
    let how = "it sent more than 1 % of its requests a millisecond or more late and ended the search for the highest rate. ";
    assert_contains(&both, &[how]);
    // Of no answer, there is no time that it took.
    assert_eq!(told(&[&[("client_cpu", 0.5e9)]], 0.0), None);
}

#[test]
fn a_cost_that_was_not_read_is_unknown_and_in_no_mean() {
    // The runs' CPU time of an answer, and what the first sentence and the notice are to say.
    for (each, said, cost, of) in [
        ([0.0, 60e3, 20e3], "40.0 µs on process", Some(40e3), true),
        ([20e3; 3], "20.0 µs on process", Some(20e3), false),
        (
            [0.0; 3],
            "The CPU time of a request is unknown on process.",
            None,
            true,
        ),
    ] {
        let mut run = Run::new(1);
        for (block, cpu_ns) in (1..).zip(each) {
            let asked = Asked {
                cpu_ns,
                ..Asked::default()
            };
            run.asked(block, "process", asked);
        }
        let analysis = run.analyse();
        assert_contains(&verdict(&analysis)[0], &[said]);
        assert_eq!(figure(&analysis, "cpu.mean{place=all}"), cost);
        let per_second = figure(&analysis, "per-cpu-second.rate");
        assert_eq!(per_second, cost.map(|ns| 1e9 / ns));
        assert_eq!(ids(&analysis).contains(&"cost-unknown"), of);
    }
}

#[test]
fn wrong_answers_are_counted_in_a_caution_and_a_table() {
    for wrong in [0.0, 40.0] {
        let mut run = Run::new(1);
        for block in [1, 2] {
            let cell = run.asked(block, "process", Asked::default());
            record(cell).values.push(valued(("wrong", wrong)));
        }
        let analysis = run.analyse();
        let text = plain(&terminal::render(&analysis, 100, false));
        let is_told = ids(&analysis).contains(&"wrong-answers");
        assert_eq!(is_told, wrong > 0.0, "{text}");
        assert_eq!(text.contains("Wrong answers are"), is_told, "{text}");
        if is_told {
            let count = "wrong answers, which count as lost: 80 for 2,000 requests on process.";
            assert_contains(alarm(&analysis, "wrong-answers"), &[count]);
        }
    }
}

#[test]
fn a_round_is_the_whole_of_the_clients_share() {
    let mut run = Run::new(1);
    let asked = Asked {
        answered: 48.0,
        window_ns: 5.5e6,
        ..Asked::default()
    };
    let cell = run.asked(1, "process", asked);
    let own = [("client_cpu", 18e6), ("round", 3e9)].map(valued);
    record(cell).values.extend(own);
    let analysis = run.analyse();
    assert!(!ids(&analysis).contains(&"client-behind"));
}

#[test]
fn the_size_of_an_image_with_more_features_answers_no_claim() {
    let mut run = Run::new(1);
    run.reproduces = Some("includeos-2015");
    for (target, bytes) in [("unikernel", 386e3), ("linux", 20e6)] {
        let cell = run.asked(1, target, Asked::default());
        record(cell).values.push(valued(("image", bytes)));
    }
    let claim = &reproduction(run).claims[2];
    assert_eq!(claim.finding.answer, UNKNOWN);
    let why = ["377 KiB on unikernel", "more features than IPv4 and UDP"];
    assert_contains(&claim.finding.why, &why);
}

#[test]
fn claims_about_costs_are_judged_by_intervals_under_every_kernel() {
    const KERNELS: [&str; 2] = ["debian-cloud-6.1", "debian-cloud-6.12"];
    let [least, less, more] = [40e3, 50e3, 100e3].map(|ns| [ns, ns + 1e3, ns + 2e3]);
    let wide = [70e3, 100e3, 130e3];
    let user: &[_] = &[("network", "user-mode")];
    // The CPU time of an answer on the unikernel, and under both kernels, run by run.
    for (each, emulated, labels, answer, why) in [
        (
            [less, more, more],
            false,
            &[][..],
            YES,
            ": −49.5 % (−53.1 % to ",
        ),
        ([less, more, least], false, &[], NO, "6.12: +24.4 % ("),
        (
            [wide, more, more],
            false,
            &[],
            UNKNOWN,
            "holds both answers",
        ),
        (
            [less, wide, more],
            false,
            &[],
            UNKNOWN,
            "holds both answers",
        ),
        ([less, more, more], true, &[], UNKNOWN, "%), emulated"),
        (
            [less, more, more],
            false,
            user,
            UNKNOWN,
            "user-mode network",
        ),
    ] {
        let mut run = Run::new(1);
        run.reproduces = Some("includeos-2015");
        run.emulated = emulated;
        let guests = KERNELS.map(|kernel| format!("linux,kernel={kernel}"));
        let targets = ["unikernel", &guests[0], &guests[1]];
        for (target, runs) in targets.into_iter().zip(each) {
            for (block, cpu_ns) in (1..).zip(runs) {
                let asked = Asked {
                    labels,
                    cpu_ns,
                    ..Asked::default()
                };
                run.asked(block, target, asked);
            }
        }
        let found = reproduction(run);
        let claim = &found.claims[0].finding;
        assert_eq!(
            (claim.answer, claim.needs_kvm),
            (answer, emulated),
            "{claim:?}"
        );
        assert_contains(&claim.why, &[why, KERNELS[0], KERNELS[1]]);
        let of = |what: &str| {
            let all = found.comparisons.iter();
            Vec::from_iter(all.filter(|one| one.what.starts_with(what)))
        };
        for (what, published) in [
            ("total CPU ticks AMD", "−20 %"),
            ("total CPU ticks I", "−5.5 %"),
        ] {
            let both = of(what);
            let told = both
                .iter()
                .map(|one| (one.target.clone(), one.published.as_str()));
            let pairs = guests
                .clone()
                .map(|guest| (Some(format!("unikernel against {guest}")), published));
            assert_eq!(Vec::from_iter(told), pairs);
        }
        assert_contains(&of("ticks outside")[0].here, &["not measured"]);
        assert_contains(&of("java")[0].here, &["not compared: "]);
    }
}

#[test]
fn a_server_that_answers_nothing_is_said_first() {
    let mut run = Run::new(1);
    let silent = Asked {
        answered: 0.0,
        window_ns: 0.0,
        ..Asked::default()
    };
    run.asked(1, "process", silent);
    let mut other = Run::new(1);
    other.asked(1, "process", silent);
    other.asked(1, "runc", Asked::default());
    let analysis = run.analyse();
    assert_eq!(verdict(&analysis)[0], "No request was answered on process.");
    // No caption describes a column of CPU time, which is missing.
    let text = plain(&terminal::render(&analysis, 100, false));
    assert!(!text.contains("CPU time of all threads"), "{text}");
    let both = verdict(&other.analyse());
    assert_contains(&both[0], &["20.0 µs on runc"]);
    assert_eq!(both[1], "No request was answered on process.");
}

#[test]
fn a_cell_without_an_answer_tells_that_while_it_runs() {
    let mut run = Run::new(1);
    let silent = Asked {
        answered: 0.0,
        took_ns: Some(1_000),
        ..Asked::default()
    };
    let cell = run.asked(1, "process", silent);
    for head in &mut record(cell).sets {
        (head.uncounted, head.uncounted_min) = (head.n, 250_000_000);
        (head.uncounted_max, head.uncounted_sum) = (u64::MAX, head.sum);
    }
    let samples = Samples {
        sets: vec![SetSamples::default(); 2],
        ..Samples::default()
    };
    let said = catalogue().live(cell, &samples);
    assert!(said.ends_with(": answered requests: share 0 %"), "{said}");
}

#[test]
fn a_search_is_answered_by_the_highest_rate() {
    let mut run = Run::new(1);
    for (target, rate, is_client_s) in [("process", 62_500.0, 1.0), ("runc", 50_000.0, 0.0)] {
        let asked = Asked {
            labels: &[("rate", "highest")],
            ..Asked::default()
        };
        let cell = run.asked(1, target, asked);
        let values = [("highest", rate), ("limited", is_client_s)];
        record(cell).values.extend(values.map(valued));
    }
    let analysis = run.analyse();
    assert_eq!(
        verdict(&analysis)[0],
        "The highest rate of which 99.99 % is answered in time by dns is at least 62,500/s on process and 50,000/s on runc."
    );
    let (text, page) = shown(&analysis);
    assert_contains(&text, &[" at least 62,500 ", " 50,000 "]);
    assert!(!text.contains("at least 50,000"), "{text}");
    assert_contains(
        &page,
        &[
            ">at least 62 500/s</text>",
            "at least: the client was the limit",
        ],
    );
    assert_eq!(page.matches("<circle class=\"mark hollow s0").count(), 2);
}

#[test]
fn a_search_shows_what_is_answered_of_up_to_three_times_its_rate() {
    let mut run = Run::new(1);
    for block in 1..=3 {
        let asked = Asked {
            labels: &[("rate", "highest")],
            ..Asked::default()
        };
        let cell = run.asked(block, "process", asked);
        for (times, offered, answered, limited) in
            [("0.5", 100.0, 100.0, 0.0), ("3", 600.0, 450.0, 1.0)]
        {
            let values = [
                ("offered", offered),
                ("goodput", answered),
                ("limited", limited),
            ];
            let labels = Labels::default().with("times", times);
            record(cell).values.extend(values.map(|value| Value {
                labels: labels.clone(),
                ..valued(value)
            }));
        }
    }
    let analysis = run.analyse();
    assert_eq!(figure(&analysis, "goodput.rate{times=3}"), Some(450.0));
    let (text, page) = shown(&analysis);
    assert_contains(&text, &["at 3 times", " 50,000 450 "]);
    let points = [
        "process (dns) at 100/s: 100/s",
        "process (dns) at 600/s, the client was late or had no CPU time left: 450/s",
    ];
    assert_contains(&page, &["Answers against offered requests"]);
    assert_contains(&page, &points);
}

/// Returns a value without labels.
fn valued((measure, value): (&str, f64)) -> Value {
    Value {
        measure: measure.to_owned(),
        labels: Labels::default(),
        unit: String::new(),
        value,
    }
}

#[test]
fn a_client_on_the_only_cpu_that_is_left_to_a_hypervisor_is_told() {
    let told = |target: &str, client: u32, online: &str| {
        let mut run = Run::new(1);
        let plan = &mut run.asked(1, target, Asked::default()).plan;
        plan.server.as_mut().unwrap().cpus = Some(Cpus::one(1));
        plan.work.cpus = Some(Cpus::one(client));
        let plan = plan.clone();
        let mut data = run.data();
        data.plan.cells = vec![plan];
        let mut machine = unknown_machine();
        machine.topology.online = Fact::Known(Cpus::parse(online).unwrap());
        data.machine = Some(MachineRecord::new(machine, Vec::new()));
        ids(&analyse(data)).contains(&"client-with-hypervisor")
    };
    for target in ["unikernel", "linux"] {
        assert!(told(target, 0, "0-1"), "{target}");
        assert!(!told(target, 0, "0-3") && !told(target, 1, "0-1"));
    }
    assert!(!told("process", 0, "0-1"));
}

#[test]
fn a_highest_rate_that_is_not_held_twice_is_told() {
    let told = |answered: f64| {
        let mut run = Run::new(1);
        let asked = Asked {
            labels: &[("rate", "highest")],
            answered,
            ..Asked::default()
        };
        let cell = run.asked(1, "process", asked);
        let values = [("highest", 62_500.0), ("limited", 1.0)];
        record(cell).values.extend(values.map(valued));
        let analysis = run.analyse();
        let is_told = ids(&analysis).contains(&"rate-not-held");
        let alarm = is_told.then(|| alarm(&analysis, "rate-not-held").to_owned());
        (verdict(&analysis)[0].clone(), alarm)
    };
    let (verdict, alarm) = told(1_000.0);
    assert_contains(&verdict, &["is at least 62,500/s on process."]);
    assert_eq!(alarm, None);
    let (verdict, alarm) = told(999.0);
    let rate = "is 62,500/s on process (not held when offered once more).";
    assert_contains(&verdict, &[rate]);
    assert_contains(&alarm.unwrap(), &["process at its highest rate"]);
}
