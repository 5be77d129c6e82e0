//! What a run folder promises: whole cells, nothing written over, damage found, clear refusals.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{create, done, failed, machine, plan};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use sha2::{Digest, Sha256};
use tare_results::model::{
    Bin, Cell, CellPlan, Count, Counter, Exceeded, Labels, OLDEST_SCHEMA, Outcome, Record, SCHEMA,
    Samples, SetHead, Trace, TraceEvent, TraceKind,
};
use tare_results::{CellState, ResultsError, RunFolder, create_folder, write_file};
use tare_testkit::skip;
use tempfile::TempDir;

fn scratch() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs").join("first");
    (folder, path)
}

/// Writes a cell that is done and returns its record.
fn fill(run: &RunFolder, id: u32) -> Cell {
    let (cell, samples) = done(&run.plan().cells[id as usize - 1], u64::from(id));
    run.write_cell(&cell, Some(&samples)).unwrap();
    cell
}

fn missing(run: &RunFolder) -> Vec<u32> {
    run.missing().iter().map(|cell| cell.id).collect()
}

/// Lists the names in a folder, hidden ones too.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn refusal(path: &Path) -> String {
    RunFolder::open(path).unwrap_err().to_string()
}

#[test]
fn what_is_written_is_read() {
    let (_guard, path) = scratch();
    let written = create(&path, 4);
    let cells = [fill(&written, 1), fill(&written, 2)];
    let failure = failed(&written.plan().cells[2], "it hung; see docs");
    written.write_cell(&failure, None).unwrap();

    let run = RunFolder::open(&path).unwrap();
    assert_eq!(run.path(), path);
    assert_eq!(*run.plan(), plan(4));
    assert_eq!(*run.machine(), machine());
    for cell in cells {
        let id = cell.plan.id;
        assert_eq!(run.samples(id).unwrap(), done(&cell.plan, u64::from(id)).1);
        assert_eq!(run.state(id), CellState::Done(Box::new(cell)));
    }
    assert_eq!(run.state(3), CellState::Failed(Box::new(failure)));
    assert_eq!(run.state(4), CellState::Missing);
    assert_eq!(missing(&run), [3, 4]);
    assert_eq!(run.state(5), CellState::Missing);
    assert_eq!(run.state(0), CellState::Missing);
}

#[test]
fn a_cell_that_was_cut_short_is_measured_again_and_set_aside() {
    let (_guard, path) = scratch();
    let run = create(&path, 2);
    let (mut cell, samples) = done(&run.plan().cells[0], 1);
    let Outcome::Done { cut_short, .. } = &mut cell.outcome else {
        panic!("{cell:?}");
    };
    *cut_short = Some("interrupted after 2.0 s".to_owned());
    run.write_cell(&cell, Some(&samples)).unwrap();
    assert_eq!(run.state(1), CellState::Done(Box::new(cell)));
    assert_eq!(run.samples(1).unwrap(), samples);
    assert_eq!(missing(&run), [1, 2]);

    // An attempt that fails has less to show.
    run.write_cell(&failed(&run.plan().cells[0], "no"), None)
        .unwrap();
    assert_eq!(run.samples(1).unwrap(), samples);
    assert_eq!(missing(&run), [1, 2]);

    let whole = fill(&run, 1);
    assert_eq!(run.state(1), CellState::Done(Box::new(whole)));
    assert_eq!(missing(&run), [2]);
    let all = ["0001", "0001.cut-short-1", "0001.failed-1"];
    assert_eq!(names(&path.join("cells")), all);
}

/// Makes five minutes of a long run: 300 gaps a second of 3,000 lengths, and their causes.
fn five_minutes(plan: &CellPlan) -> (Cell, Samples) {
    let (mut cell, mut samples) = done(plan, 1);
    let mut random = fastrand::Rng::with_seed(5);
    let values = (0..3_000).map(|n| 1_050 + 2 * n + n * n / 1_000);
    let counts = values.map(|value| Count {
        value,
        count: 1 + random.u64(0..60),
    });
    let counts = Vec::from_iter(counts);
    let seen: u64 = counts.iter().map(|row| row.count).sum();
    let sum: u64 = counts.iter().map(|row| row.value * row.count).sum();
    let greatest = counts[2_999].value;
    // The second bin of each pair has as much less than the mean as the first has more.
    let bins = (0..10).flat_map(|pair| {
        let [n, of] = [random.u64(0..100), random.u64(0..900_000)];
        let bin = |bin, n, sum| Bin {
            bin,
            n,
            sum,
            min: 1_050,
            max: greatest,
        };
        let both = [
            bin(2 * pair, seen / 20 + n, sum / 20 + of),
            bin(2 * pair + 1, seen / 20 - n, sum / 20 - of),
        ];
        both.map(|bin| Bin {
            max: greatest - random.u64(0..5_000) * u64::from(bin.bin > 0),
            ..bin
        })
    });
    let mut bins = Vec::from_iter(bins);
    bins[19].n += seen % 20;
    bins[19].sum += sum % 20;
    let of = &mut samples.sets[0];
    (of.events, of.raw, of.envelope) = (Vec::new(), Vec::new(), bins);
    let Outcome::Done { record, .. } = &mut cell.outcome else {
        panic!("{cell:?}");
    };
    let head = &mut record.sets[0];
    *head = SetHead {
        measure: "gap".to_owned(),
        n: 15_000_000_000,
        sum: 630_000_000_000,
        max: greatest,
        first: 1 << 40,
        last: (1 << 40) + 630_000_000_000,
        threshold: 1_050,
        seen,
        kept: seen,
        listed: Some(0),
        squares_below: Some(1 << 50),
        bin: 31_500_000_000,
        ..SetHead::default()
    };
    of.counts = counts;
    let name =
        |number: usize| ["local timer", "36 virtio1-req.0", "reschedule"][number % 3].to_owned();
    let trace = |number: usize| Trace {
        set: 0,
        index: random.u64(0..15_000_000_000),
        value: 400_000_000 / (number as u64 + 1),
        greatest: 30_000 + random.u64(0..90_000),
        samples: 20_000 / (number as u64 + 1),
        complete: true,
        processes: [].into(),
        events: (0..6)
            .map(|event| TraceEvent {
                at_ns: event * 60_000_000 / (number as i64 + 1),
                what: match event {
                    0 => TraceKind::Running {
                        thread: "tare-agent/16622".to_owned(),
                        ours: true,
                    },
                    1 => TraceKind::InterruptEntry { name: name(number) },
                    2 | 3 => TraceKind::Work,
                    4 => TraceKind::SoftirqEntry { name: name(number) },
                    _ => TraceKind::InterruptExit { name: name(number) },
                },
                from_user: event == 1,
                sender: (event == 1).then(|| format!("kworker/u8:{number}/{}", 4_000 + number)),
                waited_ns: (event == 4).then_some(123_456_789),
                stack: match event {
                    2 | 3 => vec![format!("tick_nohz_handler_{number}")],
                    _ => Vec::new(),
                },
            })
            .collect(),
    };
    record.traces = (0..20).map(trace).collect();
    (cell, samples)
}

/// A day of them, a histogram and its causes every five minutes, takes no more than 5 MB.
#[test]
fn a_cell_of_a_long_run_takes_little_room() {
    const MOST: u64 = 5_000_000 / (24 * 60 / 5);
    let (_guard, path) = scratch();
    let run = create(&path, 2);
    let (cell, samples) = five_minutes(&run.plan().cells[0]);
    run.write_cell(&cell, Some(&samples)).unwrap();
    assert_eq!(run.state(1), CellState::Done(Box::new(cell)));
    assert_eq!(run.samples(1).unwrap(), samples);
    let folder = path.join("cells/0001");
    let sizes = names(&folder);
    let sizes = sizes.into_iter().map(|name| {
        let bytes = fs::metadata(folder.join(&name)).unwrap().len();
        (name, bytes)
    });
    let sizes = Vec::from_iter(sizes);
    let of_plan = fs::metadata(path.join("plan.json")).unwrap().len() / 2;
    let bytes = of_plan + sizes.iter().map(|(_, bytes)| bytes).sum::<u64>();
    assert!(bytes <= MOST, "{bytes}: {sizes:?}");
    let packed = folder.join("cell.json.zst");
    let mut content = fs::read(&packed).unwrap();
    content[20] ^= 1;
    fs::write(&packed, content).unwrap();
    let CellState::Damaged { path: found, .. } = run.state(1) else {
        panic!("{:?}", run.state(1));
    };
    assert_eq!(found, packed);
}

#[test]
fn the_layout_is_the_documented_one() {
    let (_guard, path) = scratch();
    let run = create(&path, 2);
    fill(&run, 2);
    run.write_cell(&failed(&run.plan().cells[0], "no"), None)
        .unwrap();
    run.derived(None)
        .unwrap()
        .write("report.html", b"<!doctype html>")
        .unwrap();
    let all = [
        "SHA256SUMS",
        "cells",
        "lock",
        "machine.json",
        "plan.json",
        "report.html",
    ];
    assert_eq!(names(&path), all);
    assert_eq!(names(&path.join("cells")), ["0001.failed-1", "0002"]);
    assert_eq!(
        names(&path.join("cells/0001.failed-1")),
        ["SHA256SUMS", "cell.json"]
    );
    let files = [
        "SHA256SUMS",
        "cell.json",
        "counts.parquet",
        "envelope.parquet",
        "events.parquet",
        "instances.parquet",
        "raw.parquet",
    ];
    assert_eq!(names(&path.join("cells/0002")), files);
    for json in ["plan.json", "machine.json", "cells/0002/cell.json"] {
        let text = fs::read_to_string(path.join(json)).unwrap();
        assert!(
            text.starts_with("{\n  \"schema\": 5,\n") && text.ends_with("\n}\n"),
            "{text}"
        );
    }
    for folder in [
        path.clone(),
        path.join("cells/0002"),
        path.join("cells/0001.failed-1"),
    ] {
        let mut check = Command::new("sha256sum");
        match check
            .args(["--check", "--strict", "SHA256SUMS"])
            .current_dir(folder)
            .output()
        {
            Ok(output) => assert!(output.status.success(), "{output:?}"),
            Err(error) => skip("sha256sum", &error.to_string()),
        }
    }
}

#[test]
fn a_run_is_created_only_where_nothing_is() {
    let (_guard, path) = scratch();
    // An empty folder is taken, and so is one in which a creation was cut off.
    fs::create_dir_all(path.join("cells")).unwrap();
    for name in ["lock", "machine.json", ".plan.json.partial"] {
        fs::write(path.join(name), "cut o").unwrap();
    }
    fill(&create(&path, 1), 1);
    assert!(missing(&RunFolder::open(&path).unwrap()).is_empty());

    let refused = RunFolder::create(&path, &plan(1), &machine());
    assert!(matches!(refused, Err(ResultsError::NotEmpty { .. })));
    let foreign = path.parent().unwrap();
    let refused = RunFolder::create(foreign, &plan(1), &machine()).unwrap_err();
    assert!(refused.to_string().contains("--output"), "{refused}");
    assert_eq!(names(foreign), ["first"]);
    let sums = tempfile::tempdir().unwrap();
    fs::write(sums.path().join("SHA256SUMS"), "of something else").unwrap();
    let refused = RunFolder::create(sums.path(), &plan(1), &machine());
    assert!(matches!(refused, Err(ResultsError::NotEmpty { .. })));
    let refused = RunFolder::create(&path.join("plan.json"), &plan(1), &machine());
    assert!(
        matches!(refused, Err(ResultsError::Io { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_plan_that_cannot_be_kept_is_refused() {
    let (_guard, path) = scratch();
    let mut unordered = plan(3);
    unordered.cells.swap(0, 1);
    let mut endless = plan(3);
    endless.cells[1].limit_seconds = f64::INFINITY;
    let mut newer = plan(3);
    newer.schema += 1;
    for plan in [unordered, endless, newer] {
        let refused = RunFolder::create(&path, &plan, &machine());
        assert!(matches!(refused, Err(ResultsError::Plan { .. })));
    }
    assert!(!path.exists());
}

#[test]
fn cells_are_not_written_over_and_attempts_are_kept() {
    let (_guard, path) = scratch();
    let run = create(&path, 1);
    let plan = &run.plan().cells[0];
    for reason in ["first", "second"] {
        run.write_cell(&failed(plan, reason), None).unwrap();
    }
    assert_eq!(
        run.state(1),
        CellState::Failed(Box::new(failed(plan, "second")))
    );
    let error = run.samples(1).unwrap_err().to_string();
    assert!(
        error.contains("it failed (second)") && error.contains("--resume"),
        "{error}"
    );

    let cell = fill(&run, 1);
    let (_, samples) = done(plan, 99);
    let again = [
        run.write_cell(&cell, Some(&samples)),
        run.write_cell(&failed(plan, "x"), None),
    ];
    for refused in again {
        // Other samples contradict the record, which is found first.
        assert!(
            matches!(
                refused,
                Err(ResultsError::CellExists { .. } | ResultsError::Inconsistent { .. })
            ),
            "{refused:?}"
        );
    }
    assert_eq!(run.state(1), CellState::Done(Box::new(cell)));
    let kept = ["0001", "0001.failed-1", "0001.failed-2"];
    assert_eq!(names(&path.join("cells")), kept);
}

#[test]
fn a_cell_that_was_left_out_is_there_with_its_reason() {
    let (_guard, path) = scratch();
    let run = create(&path, 2);
    let mut cell = failed(&run.plan().cells[0], "");
    let reason = "the rate before was too much already".to_owned();
    cell.outcome = Outcome::LeftOut { reason };
    let samples = Samples::default();
    let refused = run.write_cell(&cell, Some(&samples));
    assert!(matches!(refused, Err(ResultsError::Inconsistent { .. })));
    run.write_cell(&cell, None).unwrap();
    assert_eq!(run.state(1), CellState::Done(Box::new(cell.clone())));
    // A resumed run may have the right that was missing; a second attempt takes the first's place.
    assert_eq!(missing(&run), [1, 2]);
    run.write_cell(&cell, None).unwrap();
    assert_eq!(names(&path.join("cells")), ["0001", "0001.left-out-1"]);
    let error = run.samples(1).unwrap_err().to_string();
    assert!(
        error.contains("it was left out (the rate before was too much already)"),
        "{error}"
    );
}

#[test]
fn what_contradicts_itself_does_not_become_a_cell() {
    let (_guard, path) = scratch();
    let run = create(&path, 2);
    let plan = &run.plan().cells[1];
    let (cell, samples) = done(plan, 1);
    let mut lost = samples.clone();
    lost.sets[0].counts.pop();
    let mut endless = cell.clone();
    if let Outcome::Done { record, .. } = &mut endless.outcome {
        record.programs[0].frequencies[0].hz = f64::NAN;
    }
    let mut foreign = cell.clone();
    foreign.plan.work.words.push_str(" cpu=3");
    let mut old = cell.clone();
    old.schema = SCHEMA + 1;
    let attempts = [
        (&cell, Some(&lost)),
        (&cell, None),
        (&failed(plan, "no"), Some(&samples)),
        (&endless, Some(&samples)),
        (&foreign, Some(&samples)),
        (&old, Some(&samples)),
    ];
    for (cell, samples) in attempts {
        let refused = run.write_cell(cell, samples);
        assert!(
            matches!(refused, Err(ResultsError::Inconsistent { id: 2, .. })),
            "{refused:?}"
        );
    }
    let mut unknown = cell;
    unknown.plan.id = 3;
    let refused = run.write_cell(&unknown, Some(&samples));
    assert!(matches!(
        refused,
        Err(ResultsError::UnknownCell {
            id: 3,
            cells: 2,
            ..
        })
    ));
    assert!(names(&path.join("cells")).is_empty());
}

#[test]
fn damage_is_found_named_and_repaired_by_measuring_again() {
    type Spoil = fn(&Path);
    let spoil: [(&str, Spoil); 4] = [
        ("changed", |file| {
            let mut content = fs::read(file).unwrap();
            let middle = content.len() / 2;
            content[middle] ^= 1;
            fs::write(file, content).unwrap();
        }),
        ("changed", |file| {
            let content = fs::read(file).unwrap();
            fs::write(file, &content[..content.len() - 1]).unwrap();
        }),
        ("changed", |file| fs::write(file, "").unwrap()),
        ("missing", |file| fs::remove_file(file).unwrap()),
    ];
    let files = [
        "cell.json",
        "counts.parquet",
        "envelope.parquet",
        "events.parquet",
        "instances.parquet",
        "raw.parquet",
    ];
    for (reason, spoil) in spoil {
        for name in files {
            let (_guard, path) = scratch();
            let run = create(&path, 2);
            fill(&run, 1);
            let cell = fill(&run, 2);
            let file = path.join("cells/0002").join(name);
            spoil(&file);
            let CellState::Damaged {
                path: found,
                reason: why,
            } = run.state(2)
            else {
                panic!("{name} {reason}: {:?}", run.state(2));
            };
            assert_eq!(found, file);
            assert!(why.contains(reason), "{why}");
            let error = run.samples(2).unwrap_err().to_string();
            let remedy = format!("with `tare noise --resume {}`", path.display());
            assert!(
                error.starts_with(&format!("{}: ", file.display())),
                "{error}"
            );
            assert!(error.ends_with(&remedy), "{error}");
            assert_eq!(missing(&run), [2]);

            fill(&run, 2);
            assert_eq!(run.state(2), CellState::Done(Box::new(cell)));
            let kept = ["0001", "0002", "0002.damaged-1"];
            assert_eq!(names(&path.join("cells")), kept);
        }
    }
}

#[test]
fn a_cell_of_another_run_is_not_taken() {
    let (_guard, path) = scratch();
    let run = create(&path, 4);
    fill(&run, 2);
    fs::rename(path.join("cells/0002"), path.join("cells/0004")).unwrap();
    let CellState::Damaged { reason, .. } = run.state(4) else {
        panic!("{:?}", run.state(4));
    };
    assert!(reason.contains("another plan"), "{reason}");
    assert_eq!(missing(&run), [1, 2, 3, 4]);
}

#[test]
fn what_is_no_usable_run_folder_is_refused_with_a_remedy() {
    let (_guard, path) = scratch();
    assert!(refusal(&path).contains("does not exist"));
    fs::create_dir_all(&path).unwrap();
    assert!(refusal(&path).contains("has no plan.json"));
    fs::write(path.join("plan.json"), r#"{"planned_values": {}}"#).unwrap();
    assert!(refusal(&path).contains("not written by tare"));
    assert!(refusal(&path.join("plan.json")).contains("is not a folder"));
    for (schema, remedy) in [
        (SCHEMA + 1, "update tare (it was written by tare 3.1.4)"),
        (
            OLDEST_SCHEMA - 1,
            "with the version that wrote it (tare 3.1.4), or measure again",
        ),
    ] {
        let other =
            format!(r#"{{"schema": {schema}, "tare_version": "3.1.4", "cells": "elsewhere"}}"#);
        fs::write(path.join("plan.json"), other).unwrap();
        let text = refusal(&path);
        let versions = format!(
            "version {schema} of the run folder's schema, this tare reads {OLDEST_SCHEMA} to {SCHEMA}"
        );
        assert!(text.contains(&versions) && text.contains(remedy), "{text}");
    }
    fs::remove_file(path.join("plan.json")).unwrap();

    drop(create(&path, 2));
    let good = fs::read_to_string(path.join("plan.json")).unwrap();
    let spoilt = [
        good.replace("\"seed\": 42", "\"seed\": 43"),
        good.replace("\"seed\": 42", "\"seed\": \"x\""),
        good[..good.len() / 2].to_owned(),
        String::new(),
    ];
    for text in spoilt {
        fs::write(path.join("plan.json"), text).unwrap();
        assert!(matches!(
            RunFolder::open(&path),
            Err(ResultsError::Damaged { .. })
        ));
        let text = refusal(&path);
        assert!(
            text.contains("plan.json: ") && text.contains("restore it"),
            "{text}"
        );
    }
    fs::write(path.join("plan.json"), good).unwrap();
    fs::remove_file(path.join("machine.json")).unwrap();
    assert!(refusal(&path).contains("machine.json: is missing; restore it"));
}

#[test]
fn a_file_changed_on_purpose_is_taken_with_its_new_checksum() {
    let (_guard, path) = scratch();
    drop(create(&path, 1));
    let text = fs::read_to_string(path.join("plan.json")).unwrap();
    fs::write(path.join("plan.json"), text.replace("noise\"", "quiet\"")).unwrap();
    assert!(refusal(&path).contains("changed since it was written"));
    let mut sums = Command::new("sha256sum");
    match sums
        .args(["plan.json", "machine.json"])
        .current_dir(&path)
        .output()
    {
        Ok(output) => {
            fs::write(path.join("SHA256SUMS"), output.stdout).unwrap();
            let run = RunFolder::open(&path).unwrap();
            assert_eq!(run.plan().experiment, "quiet");
        }
        Err(error) => skip("sha256sum", &error.to_string()),
    }
}

#[test]
fn a_run_grows_and_keeps_what_it_has() {
    let (_guard, path) = scratch();
    let mut run = create(&path, 2);
    let first = fill(&run, 1);
    let more: Vec<_> = plan(4).cells.split_off(2);
    run.extend(more).unwrap();
    assert_eq!(missing(&run), [2, 3, 4]);
    fill(&run, 4);
    drop(run);
    let run = RunFolder::open(&path).unwrap();
    assert_eq!(run.plan().cells.len(), 4);
    assert_eq!(run.state(1), CellState::Done(Box::new(first)));
    let (state, samples) = run.read(4);
    assert!(matches!(state, CellState::Done(_)));
    assert_eq!(samples, run.samples(4).unwrap());

    let mut run = RunFolder::open_for_writing(&path).unwrap();
    let gap = plan(6).cells.split_off(5);
    let refusal = run.extend(gap).unwrap_err().to_string();
    assert!(refusal.contains("out of sequence"), "{refusal}");
    assert_eq!(run.plan().cells.len(), 4);
}

#[test]
fn a_plan_that_was_being_replaced_is_whole() {
    let (_guard, path) = scratch();
    let mut run = create(&path, 1);
    let before = fs::read(path.join("plan.json")).unwrap();
    let sums = fs::read(path.join("SHA256SUMS")).unwrap();
    run.extend(plan(2).cells.split_off(1)).unwrap();
    let after = fs::read(path.join("plan.json")).unwrap();
    let mut both = sums;
    both.extend(fs::read(path.join("SHA256SUMS")).unwrap());
    for (content, cells) in [(before, 1), (after, 2)] {
        fs::write(path.join("plan.json"), content).unwrap();
        fs::write(path.join("SHA256SUMS"), &both).unwrap();
        assert_eq!(RunFolder::open(&path).unwrap().plan().cells.len(), cells);
    }
}

#[test]
fn there_is_one_writer_and_any_number_of_readers() {
    let (_guard, path) = scratch();
    let run = create(&path, 1);
    let refused = RunFolder::open_for_writing(&path).unwrap_err().to_string();
    let holder = format!("another tare (process {}) is writing", std::process::id());
    assert!(refused.contains(&holder), "{refused}");
    let reader = RunFolder::open(&path).unwrap();
    let (cell, samples) = done(&run.plan().cells[0], 1);
    let refused = reader.write_cell(&cell, Some(&samples));
    assert!(matches!(refused, Err(ResultsError::OpenForReading { .. })));
    reader
        .derived(None)
        .unwrap()
        .write("summary.json", b"{}")
        .unwrap();
    drop(run);
    fill(&RunFolder::open_for_writing(&path).unwrap(), 1);
    assert!(missing(&reader).is_empty());
}

#[test]
fn derived_files_are_replaced_and_raw_ones_are_not() {
    let (_guard, path) = scratch();
    let run = create(&path, 1);
    for content in ["a long first version", "second"] {
        run.derived(None)
            .unwrap()
            .write("noise.csv", content.as_bytes())
            .unwrap();
        assert_eq!(fs::read_to_string(path.join("noise.csv")).unwrap(), content);
    }
    let raw = ["plan.json", "machine.json", "SHA256SUMS", "lock", "cells"];
    for name in raw
        .into_iter()
        .chain(["", ".", "..", ".hidden", "a/b", "/x", "a\0b"])
    {
        let refused = run.derived(None).unwrap().write(name, b"x");
        assert!(
            matches!(refused, Err(ResultsError::DerivedName { .. })),
            "{name}"
        );
    }
    let all = [
        "SHA256SUMS",
        "cells",
        "lock",
        "machine.json",
        "noise.csv",
        "plan.json",
    ];
    assert_eq!(names(&path), all);
}

#[test]
fn what_killed_writers_left_is_cleared_away_by_the_next() {
    let (_guard, path) = scratch();
    let run = create(&path, 2);
    let stale = path.join("cells/.0001.partial-1");
    let of_another_cell = path.join("cells/.0002.partial-1");
    for folder in [&stale, &of_another_cell] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("cell.json"), "cut o").unwrap();
    }
    assert_eq!(missing(&run), [1, 2]);
    fill(&run, 1);
    assert_eq!(names(&path.join("cells")), [".0002.partial-1", "0001"]);
    fill(&run, 2);
    assert_eq!(names(&path.join("cells")), ["0001", "0002"]);
}

#[test]
fn the_newest_run_is_found_by_its_plan() {
    let (guard, _) = scratch();
    let runs = guard.path();
    assert_eq!(RunFolder::newest(runs), None);
    assert_eq!(RunFolder::newest(&runs.join("nowhere")), None);
    for (name, created) in [
        ("b", "2026-03-02T00:00:00Z"),
        ("a", "2026-03-03T00:00:00+02:00"),
    ] {
        let mut plan = plan(1);
        plan.created = created.parse().unwrap();
        drop(RunFolder::create(&runs.join(name), &plan, &machine()).unwrap());
    }
    fs::create_dir(runs.join("no run")).unwrap();
    fs::write(runs.join("a file"), "").unwrap();
    assert_eq!(RunFolder::newest(runs), Some(runs.join("a")));
}

#[test]
fn a_place_that_takes_no_folder_is_named() {
    // Not even root may make a folder there.
    let refused = RunFolder::create(Path::new("/sys/tare-run"), &plan(1), &machine());
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("/sys/tare-run cannot be created"), "{text}");
    assert!(
        text.contains("choose another folder with --output"),
        "{text}"
    );
}

/// Replaces something in a file of a folder of raw files, and its checksum.
fn change(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{text}");
    let sum = |text: &str| -> String {
        let digest = Sha256::digest(text.as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let changed = text.replacen(from, to, 1);
    let sums = file.with_file_name("SHA256SUMS");
    let listed = fs::read_to_string(&sums).unwrap();
    fs::write(&sums, listed.replace(&sum(&text), &sum(&changed))).unwrap();
    fs::write(file, changed).unwrap();
}

#[test]
fn a_run_of_the_version_before_is_read_and_not_continued() {
    let (_guard, path) = scratch();
    fill(&create(&path, 1), 1);
    for file in ["plan.json", "machine.json", "cells/0001/cell.json"] {
        let [now, before] = [SCHEMA, OLDEST_SCHEMA].map(|of| format!("\"schema\": {of}"));
        change(&path.join(file), &now, &before);
    }
    let run = RunFolder::open(&path).unwrap();
    assert_eq!(run.plan().schema, OLDEST_SCHEMA);
    assert!(matches!(run.read(1), (CellState::Done(_), samples) if samples != Samples::default()));
    let refused = RunFolder::open_for_writing(&path).unwrap_err().to_string();
    for words in ["reads 4 to 5 and writes 5: continue it with", "(tare 0."] {
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn figures_that_no_measurement_has_are_refused() {
    let traces = |value: u64, times: [i64; 2]| {
        let times = times.map(|at| {
            format!(r#"{{"at_ns": {at}, "kind": "interrupt_entry", "name": "local timer"}}"#)
        });
        format!(
            r#""traces": [{{"set": 0, "index": 1, "value": {value}, "greatest": {value}, "samples": 1, "complete": true, "events": [{}]}}],
            "sets": ["#,
            times.join(", ")
        )
    };
    let sets = "\"sets\": [";
    let hz = "\"hz\": 2596096000.1";
    for (from, to, why) in [
        (hz, "\"hz\": 5e-324", "a frequency in Hz"),
        (
            "\"unkept_max\": 0",
            "\"unkept_max\": 9223372036854775808",
            "a greatest value",
        ),
        (sets, &traces(1 << 63, [1, 2]), "a value of 92233720368"),
        (sets, &traces(9, [2, 1]), "sample 1 are out of order"),
        (
            "\"sets\": [",
            "\"exceeded\": [{\"set\": 1, \"index\": 0, \"value\": 1}], \"sets\": [",
            "there is no set 1",
        ),
    ] {
        let (_guard, path) = scratch();
        fill(&create(&path, 1), 1);
        change(&path.join("cells/0001/cell.json"), from, to);
        let run = RunFolder::open(&path).unwrap();
        let CellState::Damaged { path, reason } = run.state(1) else {
            panic!("{why}: {:?}", run.state(1));
        };
        assert!(path.ends_with("cells/0001/cell.json"));
        assert!(reason.contains(why), "{reason}");
        assert!(matches!(run.read(1).0, CellState::Damaged { .. }));
    }
    let (_guard, path) = scratch();
    drop(create(&path, 1));
    change(
        &path.join("plan.json"),
        "\"load\": \"idle\"",
        "\"load\": \"1s:idle;dd\", \"phases\": [\"idle\", \"dd\"], \"phase_seconds\": 0.0",
    );
    let text = refusal(&path);
    assert!(text.contains("cell 1: a phase in seconds of 0"), "{text}");
    let mut timeless = plan(1);
    timeless.cells[0].phase_seconds = Some(0.0);
    let refused = RunFolder::create(&path.join("other"), &timeless, &machine());
    assert!(matches!(refused, Err(ResultsError::Plan { .. })));
}

#[test]
fn more_than_a_cell_may_hold_is_refused() {
    let (_guard, path) = scratch();
    let run = create(&path, 1);
    let (cell, samples) = done(&run.plan().cells[0], 1);
    let long = "x".repeat(20_000);
    type Change<'a> = &'a dyn Fn(&mut Record);
    let changes: [(&str, Change<'_>); 6] = [
        ("70000 sets, at most 65536", &|of| {
            of.sets.resize(70_000, of.sets[0].clone())
        }),
        ("2000 programs", &|of| {
            of.programs.resize(2_000, of.programs[0].clone())
        }),
        ("20000 values above the limit", &|of| {
            let exceeded = Exceeded {
                set: 0,
                index: 1,
                value: 9,
            };
            of.exceeded.resize(20_000, exceeded);
        }),
        ("2000 counters", &|of| {
            let counter = Counter {
                name: "faults".to_owned(),
                count: 1,
                ..Counter::default()
            };
            of.programs[0].counters.resize(2_000, counter);
        }),
        ("bytes of text that name a set", &|of| {
            of.sets[0].measure.clone_from(&long)
        }),
        ("bytes of text that name a set", &|of| {
            of.sets[0].labels = Labels::of([("thread", &long)]);
        }),
    ];
    for (why, change) in changes {
        let mut cell = cell.clone();
        if let Outcome::Done { record, .. } = &mut cell.outcome {
            change(record);
        }
        let refused = run
            .write_cell(&cell, Some(&samples))
            .unwrap_err()
            .to_string();
        assert!(refused.contains(why), "{refused}");
    }
    let mut named = plan(1);
    named.cells[0].name = long;
    let refused = RunFolder::create(&path.join("other"), &named, &machine());
    assert!(matches!(refused, Err(ResultsError::Plan { .. })));
    drop(run);
    let words = format!("\"command\": [{}", "\"\",".repeat(1 << 20));
    change(&path.join("plan.json"), "\"command\": [", &words);
    let text = refusal(&path);
    assert!(
        text.contains("more than 1048576 elements of a list"),
        "{text}"
    );
    change(&path.join("plan.json"), &words, "\"command\": [");
    let findings = format!("\"findings\": [{}", "\"\",".repeat(1 << 16));
    change(&path.join("machine.json"), "\"findings\": [", &findings);
    let text = refusal(&path);
    assert!(text.contains("more than 65536 members"), "{text}");
}

#[test]
fn no_link_leads_out_of_a_run_folder() {
    let outside = tempfile::tempdir().unwrap();
    let precious = outside.path().join("precious");
    let files = [
        "plan.json",
        "machine.json",
        "SHA256SUMS",
        "cells/0001/cell.json",
        "cells/0001/SHA256SUMS",
        "cells/0001/counts.parquet",
        "cells/0001",
        "cells",
    ];
    for name in files {
        let (_guard, path) = scratch();
        fill(&create(&path, 1), 1);
        // The file behind the link is as it should be.
        fs::rename(path.join(name), path.join("elsewhere")).unwrap();
        symlink(path.join("elsewhere"), path.join(name)).unwrap();
        let said = match RunFolder::open(&path) {
            Ok(run) => match run.state(1) {
                CellState::Damaged { reason, .. } => reason,
                state => panic!("{name}: {state:?}"),
            },
            Err(error) => error.to_string(),
        };
        assert!(said.contains("is a symbolic link"), "{name}: {said}");
    }

    let (_guard, path) = scratch();
    drop(create(&path, 1));
    fs::write(&precious, "kept").unwrap();
    fs::remove_file(path.join("lock")).unwrap();
    for name in [
        "lock",
        ".report.html.partial",
        "report.html",
        "cells/.0001.partial-1",
    ] {
        symlink(&precious, path.join(name)).unwrap();
    }
    let refused = || RunFolder::open_for_writing(&path).unwrap_err().to_string();
    assert!(refused().contains("lock cannot be locked (is a symbolic link"));
    fs::remove_file(path.join("lock")).unwrap();
    fs::hard_link(&precious, path.join("lock")).unwrap();
    assert!(refused().contains("is a hard link to another file"));
    fs::remove_file(path.join("lock")).unwrap();
    let run = RunFolder::open_for_writing(&path).unwrap();
    fill(&run, 1);
    let report = run.derived(None).unwrap().write("report.html", b"new");
    assert_eq!(fs::read(report.unwrap()).unwrap(), b"new");
    assert_eq!(fs::read(&precious).unwrap(), b"kept");
    assert_eq!(names(&path.join("cells")), ["0001"]);
}

fn fifo(path: &Path) {
    let mode = Mode::from_raw_mode(0o600);
    mknodat(CWD, path, FileType::Fifo, mode, 0).unwrap();
}

#[test]
fn what_is_no_ordinary_file_or_too_long_is_not_read() {
    let endless = |path: &Path| fs::File::create(path).unwrap().set_len(1 << 40).unwrap();
    for name in [
        "plan.json",
        "machine.json",
        "SHA256SUMS",
        "cells/0001/raw.parquet",
    ] {
        let (guard, path) = scratch();
        fill(&create(&path, 1), 1);
        for (make, why) in [
            (&fifo as &dyn Fn(&Path), "is a FIFO"),
            (&endless, "is too large: 1099511627776 bytes, at most"),
        ] {
            fs::remove_file(path.join(name)).unwrap();
            make(&path.join(name));
            let said = match RunFolder::open(&path) {
                Ok(run) => format!("{:?}", run.state(1)),
                Err(error) => error.to_string(),
            };
            assert!(said.contains(why), "{name}: {said}");
            if name == "plan.json" {
                assert_eq!(RunFolder::newest(&guard.path().join("runs")), None);
            }
        }
    }
}

#[test]
fn the_folder_of_another_user_is_read_and_not_written() {
    if !rustix::process::geteuid().is_root() {
        return skip("the folder of another user", "making one requires root");
    }
    let (guard, path) = scratch();
    fill(&create(&path, 2), 1);
    std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
    let run = RunFolder::open(&path).unwrap();
    assert_eq!(missing(&run), [2]);
    let before = names(&path);
    let refused = [
        run.derived(None).map(drop),
        RunFolder::open_for_writing(&path).map(drop),
    ];
    for (refused, remedy) in refused.into_iter().zip(["--output DIR", "of your own"]) {
        let refused = refused.unwrap_err();
        assert!(matches!(
            refused,
            ResultsError::NotYours { owner: 65_534, .. }
        ));
        assert!(refused.to_string().contains(remedy), "{refused}");
    }
    assert_eq!(names(&path), before);
    let elsewhere = guard.path().join("new/report");
    let derived = run.derived(Some(&elsewhere)).unwrap();
    derived.write("report.html", b"x").unwrap();
    assert_eq!(names(&elsewhere), ["report.html"]);
    let refused = run.derived(Some(&elsewhere)).unwrap_err().to_string();
    assert!(refused.contains("is not empty"), "{refused}");

    let empty = guard.path().join("empty");
    fs::create_dir(&empty).unwrap();
    std::os::unix::fs::chown(&empty, Some(65_534), None).unwrap();
    let refused = RunFolder::create(&empty, &plan(1), &machine()).unwrap_err();
    assert!(
        matches!(refused, ResultsError::NotYours { .. }),
        "{refused}"
    );
    assert!(names(&empty).is_empty());
}

#[test]
fn a_named_file_is_replaced_only_if_asked_for_and_never_what_was_measured() {
    let (guard, path) = scratch();
    fill(&create(&path, 1), 1);
    let file = guard.path().join("histogram");
    write_file(&file, b"first", false).unwrap();
    let refused = write_file(&file, b"second", false).unwrap_err().to_string();
    assert!(
        refused.contains("is there already") && refused.contains("--force"),
        "{refused}"
    );
    assert_eq!(fs::read(&file).unwrap(), b"first");
    write_file(&file, b"second", true).unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"second");
    write_file(&path.join("histogram"), b"beside", false).unwrap();

    let link = guard.path().join("link");
    symlink(&file, &link).unwrap();
    let pipe = guard.path().join("pipe");
    fifo(&pipe);
    for replaces in [false, true] {
        assert!(write_file(&link, b"x", replaces).is_err());
        assert!(write_file(&pipe, b"x", replaces).is_err());
    }
    assert_eq!(fs::read(&file).unwrap(), b"second");

    let aside = guard.path().join("aside");
    symlink(&path, &aside).unwrap();
    for run in [&path, &aside] {
        for name in [
            "plan.json",
            "SHA256SUMS",
            "lock",
            "cells/0001/cell.json",
            "cells/0001/new",
        ] {
            let before = fs::read(run.join(name)).ok();
            let refused = write_file(&run.join(name), b"x", true).unwrap_err();
            assert!(refused.to_string().contains("was measured"), "{refused}");
            assert_eq!(fs::read(run.join(name)).ok(), before);
        }
        assert!(create_folder(&run.join("cells/more/deep")).is_err());
    }
    assert_eq!(names(&path.join("cells")), ["0001"]);
    create_folder(&path.join("exports/deep")).unwrap();
}
