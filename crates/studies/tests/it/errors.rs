//! Problems of a study are reported with file, line, column and remedy.

use std::fs;

use tare_studies::{Study, StudyError, Variant};

fn error(text: &str) -> String {
    Study::parse("bad.toml", text, Variant::Full)
        .expect_err("it is wrong")
        .to_string()
}

/// Puts lines before one experiment that is in order.
fn study(lines: &str) -> String {
    format!("{lines}\n[[experiment]]\nkind = \"noise\"\n")
}

/// Puts lines into one experiment.
fn noise(lines: &str) -> String {
    format!("[[experiment]]\nkind = \"noise\"\n{lines}\n")
}

fn wakeup(lines: &str) -> String {
    format!("[[experiment]]\nkind = \"wakeup\"\n{lines}\n")
}

#[test]
fn what_is_no_toml() {
    let texts = [
        "targets = [\"process\"",
        "runs = 5\nruns = 6",
        "a = \u{7}1",
        "= 3",
        "runs = 5 5",
        "title = \"open",
        "[experiment\nkind = 1",
    ];
    insta::assert_snapshot!(texts.map(error).join("\n\n"));
}

#[test]
fn keys_that_do_not_exist() {
    let texts = [
        study("target = [\"process\"]"),
        study("colour = \"blue\""),
        noise("limt = [22]"),
        noise("[experiment.quick]\nkind = \"noise\""),
        study("[quick]\nname = \"x\""),
        format!("{}[[exclude]]\ntargets = [\"process\"]", study("")),
    ];
    insta::assert_snapshot!(texts.map(|text| error(&text)).join("\n\n"));
}

#[test]
fn values_of_another_type_unit_or_size() {
    let texts = [
        study("runs = \"5\""),
        study("runs = 0"),
        study("runs = 99999999999999999999"),
        study("seed = -1"),
        study("cpu = 1.5"),
        study("cell-limit = 90"),
        study("cell-limit = \"90parsecs\""),
        study("order = \"random\""),
        study("settings = { \"vm.stat_interval\" = 120 }"),
        study("name = \"../etc\""),
        study("reproduces = \"kot-2091\""),
        study("quick = 3"),
        noise("repetitions = 1e6"),
        noise("repetitions = [1, 2]"),
        noise("limit = [22, 2, 70_000]"),
        noise("limit = []"),
        noise("limit = [22, 22]"),
        noise("workload = [\"prim\"]"),
        noise("timing = \"fence\""),
        noise("threshold = \"5parsecs\""),
        noise("threshold = 0x10"),
        wakeup("interval = \"100parsecs\""),
        wakeup("interval = \"500ns\""),
        wakeup("duration = 4"),
        wakeup("affinity = \"0-1\""),
    ];
    insta::assert_snapshot!(texts.map(|text| error(&text)).join("\n\n"));
}

#[test]
fn places_and_experiments_that_do_not_exist() {
    let texts = [
        study("targets = [\"process\", \"unikernle\"]"),
        study("targets = [\"vax\"]"),
        study("targets = [\"unikernel,irq=maybe\"]"),
        study("targets = [\"unikernel\", \"unikernel,irq=on\"]"),
        study("targets = \"\""),
        study("loads = [\"idle\", \"bonfire\"]"),
        "[[experiment]]\nkind = \"nosie\"".to_owned(),
        "[[experiment]]\nlimit = [22]".to_owned(),
        "experiment = 3".to_owned(),
        String::new(),
    ];
    insta::assert_snapshot!(texts.map(|text| error(&text)).join("\n\n"));
}

#[test]
fn a_matrix_that_can_not_be() {
    let texts = [
        noise("workload = [\"gap\"]\nlimit = [22]"),
        noise("threshold = \"99999999cycles\"\nworkload = [\"gap\"]"),
        noise("repetitions = 1_000_000_000"),
        noise("runs = 50_000"),
        format!(
            "{}[[exclude]]\nworkload = \"prime\"\nsize = 23",
            noise("limit = [22]")
        ),
        format!("{}[[exclude]]\ntarget = \"process\"", noise("")),
        format!("{}[[exclude]]", noise("")),
        format!(
            "{}{}",
            noise("limit = [10, 22]"),
            noise("workload = \"prime\"")
        ),
    ];
    insta::assert_snapshot!(texts.map(|text| error(&text)).join("\n\n"));
}

#[test]
fn everything_that_is_wrong_is_told_at_once_and_once() {
    let text =
        "runs = 0\ntargest = 1\n[quick]\nruns = 0\n[[experiment]]\nkind = \"noise\"\nlimit = [1]\n";
    let error = error(text);
    assert_eq!(error.matches("bad.toml:").count(), 4, "{error}");
    for (number, more) in [(90, "and 71 more"), (60_000, "and many more")] {
        let keys: String = (0..number).map(|n| format!("zz{n} = 1\n")).collect();
        let error = Study::parse("bad.toml", &keys, Variant::Full).unwrap_err();
        assert!(error.to_string().ends_with(more), "{error}");
    }
}

#[test]
fn a_condition_that_no_experiment_of_the_study_takes_is_refused() {
    let start = "[[experiment]]\nkind = \"start\"\n";
    let error = error(&format!("cpu = 1\n{start}"));
    assert!(
        error.contains("start does not take 'cpu': its instances run on any CPU"),
        "{error}"
    );
    let mixed = format!("{}{start}", study("cpu = 1"));
    assert!(Study::parse("good.toml", &mixed, Variant::Full).is_ok());
}

#[test]
fn a_variant_that_is_not_there_is_told() {
    let error = Study::parse("a.toml", &noise(""), Variant::Quick).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the study a has no shorter variant: there is no [quick] table in it"
    );
}

#[test]
fn files_that_are_no_studies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("study.toml");
    let told = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        Study::read(&path, Variant::Full).unwrap_err()
    };
    let huge = told(&vec![b'#'; 3 << 20]);
    assert!(matches!(huge, StudyError::TooLarge { .. }), "{huge}");
    let binary = told(b"runs = 5\n\x7fELF\xff\xfe");
    assert!(
        matches!(binary, StudyError::NotText { at: 13, .. }),
        "{binary}"
    );
    for nested in [
        "[".repeat(500_000),
        format!("a = {}", "[".repeat(500_000)),
        "a.".repeat(500_000),
    ] {
        assert!(matches!(told(nested.as_bytes()), StudyError::Wrong(_)));
    }
    let missing = Study::read(&folder.path().join("none.toml"), Variant::Full).unwrap_err();
    assert!(missing.to_string().contains("none.toml"), "{missing}");
    let a_folder = Study::read(folder.path(), Variant::Full).unwrap_err();
    assert!(
        matches!(a_folder, StudyError::Unreadable { .. }),
        "{a_folder}"
    );
    // More combinations than any run can have, in a file that is small enough.
    let limits: Vec<String> = (3..60_000).map(|limit: u32| limit.to_string()).collect();
    let list = limits.join(",");
    let text = noise(&format!("limit = [{list}]"));
    let error = told(text.as_bytes()).to_string();
    assert!(error.contains("cells are too many"), "{error}");
}
