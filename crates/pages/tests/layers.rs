//! Rules of the house that the compiler does not know, read from the sources.
//!
//! The modules of `tare-figures` and of `tare-pages` form layers: imports go to lower layers only.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const FIGURES: &[&[&str]] = &[
    &["error", "format", "group", "interval"],
    &["places", "words"],
    &["rows", "notices"],
    &["run", "mark"],
    &["cases", "claims"],
    &["verdict"],
    &["analysis"],
    &["gates", "json"],
    &["compare"],
];

const PAGES: &[&[&str]] = &[
    &["words", "svg", "table"],
    &["text", "html"],
    &["tables"],
    &["view"],
    &["kit"],
    &["plain", "grouped", "report"],
    &["shared"],
    &["page", "terminal"],
    &["write"],
];

#[test]
fn no_module_imports_one_of_its_layer_or_above() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (name, layers) in [("figures", FIGURES), ("pages", PAGES)] {
        let layer = |module: &str| layers.iter().position(|layer| layer.contains(&module));
        let source = crates.join(name).join("src");
        for file in files(&source) {
            let below = file.strip_prefix(&source).unwrap();
            let module = below.iter().next().unwrap().to_str().unwrap();
            let module = module.trim_end_matches(".rs");
            if module == "lib" {
                continue;
            }
            let own = layer(module).unwrap_or_else(|| panic!("{name}: no layer has `{module}`"));
            for imported in imports(&std::fs::read_to_string(&file).unwrap(), "crate::") {
                let is_below = layer(&imported).is_some_and(|layer| layer < own);
                assert!(
                    is_below || imported == module,
                    "{}: `crate::{imported}` is not below `{module}`",
                    file.display()
                );
            }
        }
    }
}

/// The groups of targets, whose differences are fields of `Capabilities`.
const GROUPS: [&str; 7] = [
    "Process",
    "Container",
    "LinuxGuest",
    "DebianGuest",
    "Unikernel",
    "Remote",
    "Foreign",
];

/// Names that say nothing of what they name.
const COINAGES: &[&str] = &[
    "Ears",
    "hear",
    "deaf",
    "hurry",
    "Heard",
    "Nursery",
    "Hold",
    "Told",
    "Asked",
    "Said",
    "Taken",
    "Given",
    "Kept",
    "Carried",
    "Sure",
    "Untold",
    "Fate",
    "Surroundings",
    "Began",
    "Spent",
    "Twin",
    "Ways",
];

#[test]
fn nothing_matches_the_kind_of_a_target_but_targets() {
    let matches = |path: &str, code: &str| {
        let mut words = words(code).into_iter().peekable();
        let mut groups = std::iter::from_fn(|| {
            let word = words.next()?;
            Some(word == "Group" && words.peek().is_some_and(|next| GROUPS.contains(next)))
        });
        let is_there = path.starts_with("crates/targets") || path.starts_with("crates/results");
        !is_there && groups.any(|found| found)
    };
    assert_eq!(product(matches), Vec::<String>::new());
}

#[test]
fn nothing_compares_with_the_text_of_no_load() {
    let compares = |path: &str, code: &str| {
        // The policy SCHED_IDLE has the same name.
        let is_policy = path.starts_with("crates/cyclictest/src/settings.rs");
        let forms = ["== \"idle\"", "!= \"idle\"", "\"idle\" =>", "\"idle\" if"];
        !is_policy && forms.iter().any(|form| code.contains(form))
    };
    assert_eq!(product(compares), Vec::<String>::new());
}

#[test]
fn only_programs_and_what_measures_know_an_experiment() {
    const KNOWING: [&str; 6] = [
        "crates/experiments/",
        "crates/cyclictest/",
        "crates/tare/",
        "measured/experiments/",
        "measured/agent/",
        "measured/images/",
    ];
    const EXPERIMENTS: [&str; 4] = ["noise", "wakeup", "start", "primitives"];
    let imports = |path: &str, code: &str| {
        let mut all = ["tare_experiments::", "tare_measured::"].into_iter();
        let is_named = all.any(|name| {
            let named = imports(code, name);
            EXPERIMENTS.iter().any(|module| named.contains(*module))
        });
        is_named && !KNOWING.iter().any(|known| path.starts_with(known))
    };
    assert_eq!(product(imports), Vec::<String>::new());
}

#[test]
fn names_are_plain_words() {
    let coined = |_: &str, code: &str| words(code).iter().any(|word| COINAGES.contains(word));
    assert_eq!(product(coined), Vec::<String>::new());
}

/// Returns the files of the product whose code, without comments and unit tests, breaks a rule.
fn product(breaks: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let all = ["crates", "measured"].map(|side| files(&root.join(side)));
    let broken = all.concat().into_iter().filter_map(|file| {
        let path = file.strip_prefix(&root).unwrap().to_str().unwrap();
        let is_test = path.ends_with("tests.rs") || path.contains("/tests/");
        if !path.contains("/src/") || is_test {
            return None;
        }
        let code = std::fs::read_to_string(&file).unwrap();
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = code.lines().map(|line| line.split("//").next().unwrap());
        let code: Vec<&str> = lines.collect();
        breaks(path, &code.join("\n")).then(|| path.to_owned())
    });
    broken.collect()
}

fn words(code: &str) -> Vec<&str> {
    let is_between = |c: char| !c.is_alphanumeric() && c != '_';
    code.split(is_between)
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns the files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let files = paths.flat_map(|path| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    });
    let is_code = |path: &PathBuf| path.extension().is_some_and(|end| end == "rs");
    files.filter(is_code).collect()
}

/// Returns the modules that code names as `crate::module`, or in `crate::{…}`; comments don't
/// count.
fn imports(code: &str, of: &str) -> BTreeSet<String> {
    let code = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code: String = code.flat_map(|line| [line, "\n"]).collect();
    let after = code.split(of).skip(1);
    let each = after.flat_map(|after| match after.strip_prefix('{') {
        Some(several) => several.split('}').next().unwrap().split(',').collect(),
        None => vec![after],
    });
    let word = |text: &str| {
        let text = text.trim_start().chars();
        let word: String = text
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        Some(word).filter(|word| !word.is_empty())
    };
    each.filter_map(word).collect()
}
