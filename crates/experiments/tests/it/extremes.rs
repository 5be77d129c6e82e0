//! Run folders in which one figure is as no measurement has it, with a checksum that fits: each is
//! refused or shown.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tare_experiments::catalogue;
use tare_figures::json;
use tare_pages::{RunData, analyse, page, terminal};
use tare_results::model::{Event, Samples, SetSamples, Trace, TraceKind};
use tare_results::{CellState, RunFolder};

use crate::folder::{create, write};
use crate::synthetic::wakeups::{Schedule, event};
use crate::synthetic::{Fold, Run, record, spin};

/// Returns what each figure gets: one of the two that break the most, and one of the others. With
/// all of them the test takes minutes.
fn extremes(random: &mut fastrand::Rng) -> [Value; 2] {
    let others = [
        json!(0),
        json!(1),
        json!(-1),
        json!(u32::MAX),
        json!(1_u64 << 63),
        json!(5e-324),
        json!(1e-3),
        json!(1e300),
        json!(-1e300),
    ];
    let other = others[random.usize(..others.len())].clone();
    let most = [json!(i64::MAX), json!(u64::MAX)][random.usize(..2)].clone();
    [most, other]
}

/// Writes two runs of `prime`, `gap`, and wake-ups in two phases, of which one is traced.
fn made() -> RunData {
    let mut run = Run::new(1);
    let mut durations = vec![1_000; 200];
    durations[50] = 9_000;
    let gaps = [(5_000, 4_000), (90_000, 5_000)];
    let schedule = Schedule {
        late_ns: &[0, 1_500_000],
        activations: 40,
        traced: true,
        ..Schedule::under(&["idle", "dd"])
    };
    for block in 1..=2 {
        run.prime(block, "process", &durations);
        run.gap(
            block,
            "process",
            spin(10_000, 20, &gaps, Fold::above(1_300)),
        );
        let cell = run.woken(block, schedule, |_, _, index| 2_000 + 7_000 * (index % 40));
        let name = || "local timer".to_owned();
        let thread = || "dd/7".to_owned();
        let switch = TraceKind::Switch {
            from: thread(),
            from_priority: 120,
            to: "tare-agent/9".to_owned(),
            to_priority: 4,
            ours: true,
        };
        let running = TraceKind::Running {
            thread: thread(),
            ours: false,
        };
        let mut events = vec![
            event(-900, running),
            event(100_000, TraceKind::InterruptEntry { name: name() }),
            event(103_000, TraceKind::InterruptExit { name: name() }),
            event(260_000, switch),
        ];
        for event in &mut events {
            event.stack = vec!["schedule".to_owned()];
        }
        record(cell).traces.push(Trace {
            set: 0,
            index: 39,
            value: 275_000,
            greatest: 275_000,
            samples: 1,
            complete: true,
            events,
            processes: [].into(),
        });
    }
    run.data()
}

/// Lists where the numbers of a JSON document are.
fn numbers(value: &Value, path: String, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(path),
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                numbers(item, format!("{path}/{place}"), found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                numbers(member, format!("{path}/{name}"), found);
            }
        }
        _ => {}
    }
}

/// Writes a file of a folder, with its checksum.
fn put(folder: &Path, name: &str, content: &[u8]) {
    fs::write(folder.join(name), content).unwrap();
    tare_testkit::repair_sums(folder);
}

/// Shows a run in every way, or says why it is refused.
fn show(path: &Path) -> Result<(), String> {
    let run = RunFolder::open(path).map_err(|error| error.to_string())?;
    let analysis = analyse(&run, catalogue()).map_err(|error| error.to_string())?;
    drop(page::render(&analysis));
    drop(terminal::render(&analysis, 80, false));
    json::render(analysis.summary()).map_err(|error| error.to_string())?;
    Ok(())
}

/// Changes one number of a document after the other, and shows what comes of it; returns those that
/// no run survived.
fn changed(
    document: &Value,
    of: Option<&str>,
    random: &mut fastrand::Rng,
    mut put: impl FnMut(&Value),
    path: &Path,
) -> Vec<String> {
    let mut places = Vec::new();
    numbers(document, String::new(), &mut places);
    places.retain(|place| of.is_none_or(|of| place.starts_with(of)));
    assert!(!places.is_empty());
    let mut fallen = Vec::new();
    for place in places {
        for extreme in extremes(random) {
            let mut other = document.clone();
            *other.pointer_mut(&place).unwrap() = extreme.clone();
            put(&other);
            if catch_unwind(AssertUnwindSafe(|| show(path))).is_err() {
                fallen.push(format!("{place} = {extreme}"));
            }
        }
    }
    put(document);
    fallen
}

#[test]
fn a_figure_that_nothing_can_have_is_refused_or_shown() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    drop(write(&path, &made()));
    let mut random = fastrand::Rng::with_seed(6);
    let read =
        |file: &PathBuf| -> Value { serde_json::from_slice(&fs::read(file).unwrap()).unwrap() };
    let text = |value: &Value| serde_json::to_vec_pretty(value).unwrap();
    let mut fallen = Vec::new();
    for cell in ["0001", "0002", "0003"] {
        let folder = path.join("cells").join(cell);
        let document = read(&folder.join("cell.json"));
        let put = |other: &Value| put(&folder, "cell.json", &text(other));
        fallen.extend(changed(
            &document,
            Some("/outcome"),
            &mut random,
            put,
            &path,
        ));
        if document["load"].is_object() {
            fallen.extend(changed(&document, Some("/load"), &mut random, put, &path));
        }
    }
    // A cell repeats its plan.
    let plan = read(&path.join("plan.json"));
    let put_plan = |other: &Value| {
        put(&path, "plan.json", &text(other));
        for (number, plan) in (1..).zip(other["cells"].as_array().unwrap()) {
            let folder = path.join(format!("cells/{number:04}"));
            let mut cell = read(&folder.join("cell.json"));
            cell["plan"] = plan.clone();
            put(&folder, "cell.json", &text(&cell));
        }
    };
    fallen.extend(changed(&plan, None, &mut random, put_plan, &path));
    show(&path).unwrap();
    assert!(fallen.is_empty(), "{fallen:#?}");
}

/// Returns the last sample of the first set that has any.
fn last(samples: &mut Samples, of: fn(&mut SetSamples) -> &mut Vec<Event>) -> Option<&mut Event> {
    samples.sets.iter_mut().find_map(|set| of(set).last_mut())
}

#[test]
fn a_sample_that_nothing_can_have_is_refused_or_shown() {
    let places: [fn(&mut Samples) -> Option<&mut u64>; 8] = [
        |of| Some(&mut last(of, |set| &mut set.events)?.index),
        |of| Some(&mut last(of, |set| &mut set.events)?.at),
        |of| Some(&mut last(of, |set| &mut set.events)?.value),
        |of| Some(&mut last(of, |set| &mut set.raw)?.index),
        |of| Some(&mut last(of, |set| &mut set.raw)?.at),
        |of| Some(&mut last(of, |set| &mut set.raw)?.value),
        |of| Some(&mut of.instances.first_mut()?.started_ns),
        |of| Some(&mut of.instances.first_mut()?.exited_ns),
    ];
    let place = tempfile::tempdir().unwrap();
    let mut fallen = Vec::new();
    for (number, of) in (0..).zip(places) {
        for extreme in [0, 1 << 62, (1 << 63) - 1, u64::MAX] {
            let path = place.path().join(format!("{number}-{extreme}"));
            let mut data = made();
            let run = create(&path, &data);
            for (state, samples) in &mut data.cells {
                let CellState::Done(cell) = state else {
                    continue;
                };
                if let Some(figure) = of(samples) {
                    *figure = extreme;
                }
                // What contradicts itself is not kept.
                let _ = run.write_cell(cell, Some(samples));
            }
            if catch_unwind(AssertUnwindSafe(|| show(&path))).is_err() {
                fallen.push(format!("{number} = {extreme}"));
            }
        }
    }
    assert!(fallen.is_empty(), "{fallen:#?}");
}
