//! What stands on a terminal: lines of whole words, and nothing of the line of progress.

use std::fs::File;

use serde_json::Value;

use crate::common::{Bench, Ran};
use crate::unikernel;

/// Runs `tare` on a pseudo-terminal of 24 lines of this width. Returns all that was written to it.
fn shown(bench: &Bench, words: &str, columns: u32) -> String {
    let tare = env!("CARGO_BIN_EXE_tare");
    let words = format!("stty cols {columns} rows 24; exec {tare} {words}");
    let mut script = bench.command_of("script".as_ref(), &["-qec", &words, "/dev/null"]);
    let ran = Ran::of(script.env("TERM", "xterm").output().unwrap());
    ran.expect(0, &[]).out.clone()
}

/// Returns what is left of a line, each redrawing of which begins with its removal.
fn left_of(line: &str) -> &str {
    line.rsplit("\x1b[2K").next().unwrap_or_default()
}

/// A place where output goes: whether it is a pseudo-terminal, its variables, and the escape
/// sequences that it may get.
type Place = (bool, &'static [(&'static str, &'static str)], Escapes);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escapes {
    All,
    NoColours,
    None,
}

const PLACES: [Place; 6] = [
    (false, &[("TERM", "xterm")], Escapes::None),
    (
        false,
        &[("TERM", "xterm"), ("CLICOLOR_FORCE", "1")],
        Escapes::None,
    ),
    (false, &[("LC_ALL", "C")], Escapes::None),
    (true, &[("TERM", "xterm")], Escapes::All),
    (
        true,
        &[("TERM", "xterm"), ("NO_COLOR", "1")],
        Escapes::NoColours,
    ),
    (true, &[("TERM", "dumb")], Escapes::None),
];

#[test]
fn lines_fit_and_escapes_go_only_where_they_are_understood() {
    let bench = Bench::new();
    let tare = env!("CARGO_BIN_EXE_tare");
    let noise = "noise --workload gap --repetitions 1000000 --runs 2 --output";
    bench.run(&format!("{noise} run")).expect(0, &[]);
    for (number, (is_terminal, variables, allowed)) in PLACES.into_iter().enumerate() {
        for columns in [40, 80, 120] {
            let run = format!("{noise} {number}-{columns}");
            for words in [
                "doctor --all",
                "targets",
                "report run",
                "scale run --step 100us",
                &run,
            ] {
                let script = format!("stty cols {columns} rows 24; exec {tare} {words}");
                let mut command = match is_terminal {
                    true => bench.command_of("script".as_ref(), &["-qec", &script, "/dev/null"]),
                    false => bench.command(words),
                };
                if !is_terminal {
                    command.env("COLUMNS", columns.to_string());
                }
                command
                    .env_remove("NO_COLOR")
                    .envs(variables.iter().copied());
                let ran = Ran::of(command.output().unwrap());
                let shown = &ran.expect(0, &[]).out;
                let place = format!("{words}, {variables:?}, {columns}: {shown}");
                let plain = uncoloured(shown);
                let is_coloured = plain != *shown;
                assert!(!is_coloured || allowed == Escapes::All, "{place}");
                let is_doctor = words.starts_with("doctor");
                assert!(
                    is_coloured || !is_doctor || allowed != Escapes::All,
                    "{place}"
                );
                assert!(
                    allowed != Escapes::None || !shown.contains('\x1b'),
                    "{place}"
                );
                let mut lines = plain.lines().map(left_of);
                let long = lines.find(|line| line.chars().count() > columns);
                assert_eq!(long, None, "{place}");
            }
        }
    }
}

/// Returns a text without the sequences that colour it.
fn uncoloured(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |all, piece| {
        let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        match rest.strip_prefix('m') {
            Some(rest) => all + rest,
            None => all + "\x1b[" + piece,
        }
    })
}

#[test]
fn no_output_is_an_error() {
    let bench = Bench::new();
    let tare = env!("CARGO_BIN_EXE_tare");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut version = bench.command("--version");
    let ran = Ran::of(version.stdout(full).output().unwrap());
    ran.expect(1, &["can't write to standard output: No space left"]);
    let closed = format!("exec {tare} --version >&-");
    let closed = bench.command_of("sh".as_ref(), &["-c", &closed]).output();
    Ran::of(closed.unwrap()).expect(1, &["standard output is closed"]);
}

#[test]
fn the_doctor_says_what_to_do_and_in_full_why() {
    let bench = Bench::new();
    let flat = |words: &str| words_of(&bench.run(words).expect(0, &[]).out).concat();
    let findings =
        || -> Vec<Value> { serde_json::from_str(&bench.run("doctor --json").out).unwrap() };
    let before = findings();
    let [short, full] = ["doctor", "doctor --all"].map(flat);
    // What depends on how busy the machine is differs from moment to moment.
    let after = findings();
    let depends = ["irq-affinity", "load", "steal"];
    let is_lasting = |finding: &&Value| {
        after.contains(finding) && !depends.iter().any(|id| finding["id"] == *id)
    };
    let both = Vec::from_iter(before.iter().filter(is_lasting));
    assert!(both.len() > 10, "{before:?}");
    for finding in both {
        let text = |key: &str| words_of(finding[key].as_str().unwrap_or_default()).concat();
        let is_shown = finding["severity"] != "good";
        let (title, why, remedy) = (text("title") + ":", text("why"), text("remedy"));
        assert_eq!(short.contains(&title), is_shown, "{finding}: {short}");
        assert!(!short.contains(&why), "{finding}: {short}");
        assert!(!is_shown || short.contains(&remedy), "{finding}: {short}");
        for part in [title, why, remedy] {
            assert!(full.contains(&part), "{finding}: {full}");
        }
    }
}

#[test]
fn the_line_of_progress_leaves_nothing_behind() {
    let bench = Bench::new();
    let words = "noise --workload gap --repetitions 20000000 --runs 3 --output run";
    let shown = shown(&bench, words, 80);
    assert!(shown.contains(" left · now process gap"), "{shown:?}");
    let left = shown.lines().map(left_of);
    let left = left.filter(|line| line.contains(" left · "));
    assert_eq!(left.count(), 0, "{shown:?}");
}

#[test]
fn a_guest_that_starts_is_said_to_boot() {
    let bench = Bench::new();
    if !unikernel::is_usable(&bench) {
        return;
    }
    let words =
        "noise --workload prime --repetitions 20000 --runs 1 --target unikernel --output run";
    let shown = shown(&bench, words, 80);
    assert!(
        shown.contains("left · booting unikernel prime 22"),
        "{shown:?}"
    );
}

#[test]
fn seconds_are_drawn_over_each_other() {
    let bench = Bench::new();
    let shown = shown(&bench, "noise top --count 2", 80);
    let screens = Vec::from_iter(shown.split("\x1b[H\x1b[J").skip(1));
    assert_eq!(screens.len(), 2, "{shown:?}");
    for screen in screens {
        let lines = Vec::from_iter(screen.lines());
        assert!(screen.contains("CPU  ") && lines.len() < 24, "{shown:?}");
        let widths = lines.iter().map(|line| line.chars().count());
        assert!(widths.max() <= Some(80), "{shown:?}");
    }
}

/// Returns the words of a text; a list without blanks may be broken behind a comma.
fn words_of(text: &str) -> Vec<&str> {
    let words = text.split_whitespace();
    words.flat_map(|word| word.split_inclusive(',')).collect()
}

#[test]
fn no_word_is_broken_at_80_columns() {
    let bench = Bench::new();
    let target = "linux,kernel=debian-rt,preempt=full,cpus=2";
    let study = format!(
        "title = \"Wake-ups and delays of this machine beside a guest's under a real-time kernel\"\n\
         runs = 3\ntargets = [\"process\", \"{target}\"]\nloads = [\"idle\", \"cpus=0:hackbench\"]\n\
         [[experiment]]\nkind = \"noise\"\nworkload = [\"gap\", \"prime\"]\nlimit = [10, 22, 34]\n\
         [[experiment]]\nkind = \"wakeup\"\n"
    );
    std::fs::write(bench.work().join("s.toml"), study).unwrap();
    for words in [
        "targets",
        "noise --dry-run --seed 1 --runs 2 --limit 22 --load idle --load dd",
        "study explain s.toml",
        "reproduce --list",
        "primitives --list",
        "clean",
        "doctor --all",
    ] {
        let piped = bench.run(words);
        let known = words_of(&piped.out);
        let shown = shown(&bench, &format!("{words} 2>/dev/null"), 80);
        for line in shown.lines() {
            assert!(line.chars().count() <= 80, "{words}: {line}");
        }
        let whole = words_of(&shown);
        let unknown = whole.iter().filter(|word| !known.contains(word)).count();
        // What depends on how busy the machine is differs from moment to moment.
        let is_whole = match ["targets", "reproduce --list", "clean"].contains(&words) {
            true => whole == known,
            false => 10 * unknown < whole.len() && 10 * whole.len() > 9 * known.len(),
        };
        assert!(is_whole, "{words}:\n{shown}\n{}", piped.out);
    }
}

#[test]
fn what_is_quiet_says_one_thing() {
    let bench = Bench::new();
    let words = "noise --workload prime --repetitions 20000 --runs 1 --output";
    for run in ["a", "b"] {
        bench.run(&format!("{words} {run}")).expect(0, &[]);
    }
    let compared = bench.run("compare a --to b --quiet");
    assert_eq!(compared.expect(0, &[]).out.lines().count(), 1);
    let again = bench.run("noise --resume a --quiet");
    let said = again.expect(0, &[]).err.matches("nothing to measure");
    assert_eq!(said.count(), 1, "{again:?}");
}
