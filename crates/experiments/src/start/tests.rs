use tare_lab::parameter::Value::{Number, Text};
use tare_lab::parameter::Values;
use tare_results::model::Schedule;
use tare_results::target::{Group, TargetOption};
use tare_targets::spec;

use super::*;

fn conditions(targets: &[&str]) -> Conditions {
    let targets = targets.iter().map(|text| spec::parse(text).unwrap().spec());
    Conditions {
        targets: targets.collect(),
        loads: vec![Schedule::idle()],
        cpu: 1,
        cpus: None,
        cell_limit: None,
        is_watched: false,
    }
}

/// Reads values as the command line does.
fn given(given: &[(&'static str, &str)]) -> Values {
    let mut values = Values::default();
    for (name, text) in given {
        let mut all = parameters::ALL.iter();
        let parameter = all.find(|parameter| parameter.name == *name).unwrap();
        let value = match *text {
            "" => Number(1),
            text => parameter
                .read(text)
                .unwrap_or_else(|why| panic!("{text}: {why}")),
        };
        let all = [values.of(name), &[value]].concat();
        values.give(name, all);
    }
    values
}

fn cells(targets: &[&str], values: &[(&'static str, &str)]) -> Vec<CellPlan> {
    combinations(&conditions(targets), &given(values)).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(conditions: &Conditions, values: &[(&'static str, &str)]) -> String {
    combinations(conditions, &given(values))
        .unwrap_err()
        .to_string()
}

#[test]
fn without_words_processes_are_started_alone_and_up_a_ladder() {
    let cells = cells(&["process"], &[]);
    assert_eq!(cells.len(), 12);
    let labels: Vec<&str> = cells
        .iter()
        .filter_map(|cell| cell.labels.get("interval"))
        .collect();
    assert_eq!(labels[..3], ["alone", "1s", "1/2s"]);
    assert_eq!(labels.last(), Some(&"1/1024s"));
    for (step, cell) in (0..).zip(&cells) {
        let arrivals = cell.arrivals.as_ref().unwrap();
        assert_eq!(
            (arrivals.warmup_ns, arrivals.measure_ns),
            (1_000_000_000, 5_000_000_000)
        );
        assert_eq!((arrivals.most_live, arrivals.most_bytes), (256, None));
        assert_eq!(
            arrivals.report.as_ref().unwrap().words,
            "work=hello report=yes"
        );
        let rung = cell.rung.as_ref().unwrap();
        let named = match labels[step as usize].strip_prefix("1/") {
            Some("1024s") => "hello at 1,024/s".to_owned(),
            Some(part) => format!("hello at {}", part.replace('s', "/s")),
            None if step == 0 => "hello alone".to_owned(),
            None => "hello at 1/s".to_owned(),
        };
        assert_eq!(
            (rung.step, &rung.ladder),
            (step, &cells[0].rung.as_ref().unwrap().ladder)
        );
        assert_eq!(
            (cell.name.as_str(), cell.work.to_string().as_str()),
            (named.as_str(), "workload=start work=hello")
        );
        assert_eq!((cell.work.cpus, cell.beside_engine), (None, false));
        // A whole number of intervals, which are a whole number of ns.
        let beyond = cell.estimate_seconds - 7.0;
        assert!((0.0..1e-5).contains(&beyond), "{beyond}");
    }
    assert_eq!(cells[0].arrivals.as_ref().unwrap().interval_ns, None);
    assert_eq!(
        cells[7].arrivals.as_ref().unwrap().interval_ns,
        Some(15_625_000)
    );
}

#[test]
fn every_target_work_and_engine_has_a_ladder_of_its_own() {
    let all = cells(
        &["process", "docker", "linux"],
        &[
            ("rate", "1..4"),
            ("work", "prime:1000"),
            ("beside-engine", ""),
        ],
    );
    assert_eq!(all.len(), 3 * 5);
    let mut ladders: Vec<&str> = all
        .iter()
        .map(|cell| cell.rung.as_ref().unwrap().ladder.as_str())
        .collect();
    ladders.dedup();
    assert_eq!(ladders.len(), 5, "{ladders:?}");
    for cell in &all {
        assert_eq!(cell.labels.get("work"), Some("prime:1000"));
        assert_eq!(
            cell.labels.get("beside"),
            cell.beside_engine.then_some("dockerd")
        );
        assert!(!cell.beside_engine || cell.target.kind != "docker");
        // The lowest rate is the foot of the ladder.
        let is_lowest = cell.labels.get("interval") == Some("1s");
        assert_eq!(cell.rung.as_ref().unwrap().step == 0, is_lowest);
    }
    let texts: Vec<&str> = all[..3]
        .iter()
        .filter_map(|cell| cell.labels.get("interval"))
        .collect();
    assert_eq!(texts, ["1s", "1/2s", "1/4s"]);
}

#[test]
fn a_foreign_guest_boots_whatever_the_work_is() {
    let guest = TargetSpec::new("guest", Vec::new(), Group::Foreign);
    let conditions = Conditions {
        targets: vec![guest],
        ..conditions(&[])
    };
    let cells = combinations(
        &conditions,
        &given(&[
            ("work", "command:ls"),
            ("work", "hello"),
            ("interval", "alone"),
        ]),
    )
    .unwrap();
    assert_eq!(cells.len(), 1);
    let arrivals = cells[0].arrivals.as_ref().unwrap();
    assert_eq!(
        (cells[0].name.as_str(), &cells[0].work),
        ("boot alone", &Work::default())
    );
    assert_eq!((&arrivals.report, &arrivals.command), (&None, &None));
    assert_eq!(cells[0].labels.to_string(), "interval=alone");
}

#[test]
fn a_command_takes_the_place_of_the_measured_code() {
    let values = [
        ("work", "command:sh -c 'echo ready'"),
        ("work", "hello"),
        ("work", "hello"),
        ("interval", "alone"),
    ];
    let cells = cells(&["process"], &values);
    let names: Vec<&str> = cells.iter().map(|cell| &*cell.name).collect();
    assert_eq!(names, ["command sh -c 'echo ready' alone", "hello alone"]);
    let arrivals = cells[0].arrivals.as_ref().unwrap();
    assert_eq!(
        arrivals.command.as_deref().unwrap(),
        ["sh", "-c", "echo ready"]
    );
    assert_eq!(arrivals.report, None);
    for (target, remedy) in [
        ("crun", "docker,image=NAME"),
        ("linux", "on process, or in an image"),
        ("unikernel", "on process"),
    ] {
        let why = refused(&conditions(&[target]), &values);
        assert!(why.contains(remedy), "{why}");
    }
    let image = TargetOption {
        key: "image".to_owned(),
        value: "alpine".to_owned(),
    };
    let with_image = Conditions {
        targets: vec![TargetSpec::new("docker", vec![image], Group::Foreign)],
        ..conditions(&[])
    };
    assert!(combinations(&with_image, &given(&values)).is_ok());
}

#[test]
fn what_contradicts_itself_is_refused_with_a_remedy() {
    let here = conditions(&["process"]);
    for (values, remedy) in [
        (
            &[("interval", "1s"), ("rate", "1")][..],
            "1s is given twice",
        ),
        (&[("interval", "1s..1/3s")], "a power of two"),
        (&[("rate", "1..3")], "a power of two"),
        (&[("interval", "1s,1s..1/4s")], "1s is given twice"),
        (&[("interval", "alone,1/4s,250ms")], "1/4s is given twice"),
        (&[("interval", "4s"), ("measure", "1")], "raise measure"),
        (&[("rate", "100000"), ("measure", "1h")], "lower measure"),
    ] {
        let why = refused(&here, values);
        assert!(why.contains(remedy), "{why}");
    }
    let why = refused(&conditions(&["process", "ssh,host=lab"]), &[]);
    assert!(why.contains("run tare start on that machine"), "{why}");
    let mut twice = Values::default();
    let texts = ["1s", "2s..1/2s"].map(|text| Text(text.to_owned()));
    twice.give("interval", texts.into());
    assert!(combinations(&here, &twice).is_err());
}

#[test]
fn starts_one_after_the_other_and_at_rates_are_measured_together() {
    let values = [("interval", "alone"), ("rate", "1..4")];
    let mut paces: Vec<String> = cells(&["process"], &values)
        .iter()
        .filter_map(|cell| cell.labels.get("interval").map(str::to_owned))
        .collect();
    paces.sort();
    assert_eq!(paces, ["1/2s", "1/4s", "1s", "alone"]);
}

#[test]
fn warm_up_and_window_are_whole_numbers_of_intervals() {
    let cells = cells(&["process"], &[("interval", "4s")]);
    assert_eq!(cells[0].estimate_seconds, 4.0 + 8.0 + AROUND_SECONDS);
}

#[test]
fn what_is_going_to_happen_is_said() {
    let cells = cells(&["process"], &[("interval", "alone,1/64s")]);
    let said = |cell: &CellPlan| Start.announces(cell).unwrap();
    assert_eq!(
        said(&cells[0]),
        "one instance at a time: 1 s of warm-up, then 5 s measured"
    );
    assert_eq!(
        said(&cells[1]),
        "one instance per interval: 1 s of warm-up, or twice the first instance's time if that is longer, then 5 s measured; at most 256 alive at once"
    );
}

#[test]
fn a_plan_may_have_as_many_cells_as_a_run() {
    let mut here = conditions(&["process"]);
    here.loads = vec![Schedule::idle(); 60_000];
    let values = given(&[("interval", "1s")]);
    assert_eq!(combinations(&here, &values).unwrap().len(), 60_000);
    let wakeup = crate::wakeup::Wakeup.combinations(&here, &Values::default());
    assert_eq!(wakeup.unwrap().len(), 60_000);
    here.loads.resize(100_001, Schedule::idle());
    let why = combinations(&here, &values).unwrap_err().to_string();
    assert!(why.contains("100000"), "{why}");
}
