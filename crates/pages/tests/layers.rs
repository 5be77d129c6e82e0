//! Rules of the house that the compiler does not know, read from the tokens of the sources.
//!
//! The modules of `tare-figures` and of `tare-pages` form layers: imports go to lower layers only.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

const FIGURES: &str = "error format group interval | places words | rows notices | modes run mark \
                       | cases claims | verdict | analysis | gates json | compare";

const PAGES: &str = "words svg table | text html | tables | view | kit | plain grouped report \
                     | shared | page terminal | write";

#[test]
fn no_module_imports_one_of_its_layer_or_above() {
    for (name, layers) in [("figures", FIGURES), ("pages", PAGES)] {
        let layers = layers.split('|');
        let layer = |module: &str| layers.clone().position(|layer| has(layer, module));
        let folder = format!("crates/{name}/src/");
        for source in PRODUCT
            .iter()
            .filter(|source| source.file.starts_with(&folder))
        {
            let Some(module) = source.module.first() else {
                continue;
            };
            let own = layer(module).unwrap_or_else(|| panic!("{name}: no layer has `{module}`"));
            let imports = source.paths.iter();
            for imported in imports.filter_map(|path| path.strip_prefix("crate::")) {
                let imported = imported.split("::").next().unwrap();
                let is_below = layer(imported).is_some_and(|layer| layer < own);
                assert!(
                    is_below || imported == module,
                    "{}: `crate::{imported}` is not below `{module}`",
                    source.file
                );
            }
        }
    }
}

/// The groups of targets, whose differences are fields of `Capabilities`.
const GROUPS: &str = "Process Container LinuxGuest DebianGuest Unikernel Remote Foreign Imported *";

fn names_a_group(source: &Source) -> bool {
    let names = |path: &String| {
        let after = path.split("::").skip_while(|name| *name != "Group").nth(1);
        after.is_some_and(|name| has(GROUPS, name))
    };
    source.paths.iter().any(names)
}

#[test]
fn nothing_matches_the_kind_of_a_target_but_targets() {
    let found = breaking("crates/targets/ crates/results/", names_a_group);
    assert_eq!(found, [""; 0]);
}

#[test]
fn nothing_compares_with_the_text_of_no_load() {
    // The policy SCHED_IDLE has the same name.
    let found = breaking("crates/cyclictest/src/settings.rs", |source| {
        source.compares_with_idle
    });
    assert_eq!(found, [""; 0]);
}

#[test]
fn only_programs_and_what_measures_know_an_experiment() {
    let knowing = "crates/experiments/ crates/cyclictest/ crates/tare/ measured/experiments/ \
                   measured/agent/ measured/images/";
    let experiments = std::fs::read_dir(root().join("crates/experiments/src")).unwrap();
    let experiments = experiments.map(|entry| entry.unwrap().path());
    let experiments: Vec<String> = experiments
        .filter(|folder| folder.join("story").exists() || folder.join("story.rs").exists())
        .map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert!(experiments.len() >= 4, "{experiments:?}");
    let found = breaking(knowing, |source| {
        source.paths.iter().any(|path| {
            let inside = ["tare_experiments::", "tare_measured::"];
            let module = inside.iter().find_map(|of| path.strip_prefix(of));
            let module = module.and_then(|path| path.split("::").next());
            module.is_some_and(|module| experiments.iter().any(|one| one == module))
        })
    });
    assert_eq!(found, [""; 0]);

    let of_measured = "agent experiments images measured";
    let of_laboratory = "acceptance cyclictest experiments measured studies tare";
    for (folder, package, allowed) in [
        (".", "tare-experiments", of_laboratory),
        (".", "tare-measured", of_laboratory),
        ("measured", "tare-measured", of_measured),
    ] {
        let mut cargo = Command::new(env!("CARGO"));
        let words = "tree --offline --locked --workspace --edges=normal --prefix=none --format={p}";
        cargo.args(words.split(' ')).args(["--invert", package]);
        let tree = cargo.current_dir(root().join(folder)).output().unwrap();
        let tree = String::from_utf8(tree.stdout).unwrap();
        let packages = tree.lines().filter_map(|line| line.split(' ').next());
        let named: BTreeSet<_> = packages
            .filter_map(|name| name.strip_prefix("tare-"))
            .collect();
        assert!(named.len() > 1, "{tree}");
        for name in named {
            assert!(has(allowed, name), "{name} depends on {package}");
        }
    }
}

/// Names that do not describe what they name.
const COINAGES: &str = "Ears hear deaf hurry Heard Nursery Hold Told Asked Said Taken Given Kept \
                        Carried Sure Untold Fate Surroundings Began Spent Twin Ways";

#[test]
fn names_are_plain_words() {
    let found = breaking("", |source| {
        source.words.iter().any(|word| has(COINAGES, word))
    });
    assert_eq!(found, [""; 0]);
}

#[test]
fn each_rule_finds_what_breaks_it() {
    let read = |code: &str| Source::read("crates/a/src/b/c.rs", code);
    let paths = |code: &str| Vec::from_iter(read(code).paths);
    assert_eq!(
        paths("use crate::{d::{E, f}, g::*};"),
        ["crate::d::E", "crate::d::f", "crate::g::*"]
    );
    assert_eq!(paths("use super::super::d;"), ["crate::d"]);
    assert_eq!(paths("use super::d;"), ["crate::b::d"]);
    assert_eq!(
        paths("mod i { use super::d; }").last().unwrap(),
        "crate::b::c::d"
    );
    assert_eq!(paths("format!(\"{}\", crate::d::e());")[0], "crate::d::e");
    assert_eq!(
        paths("#[cfg(test)]\nmod tests { use crate::d::E; }"),
        [""; 0]
    );
    assert_eq!(paths("#[cfg(test)] use crate::d::E; // crate::f"), [""; 0]);

    for code in ["use x::Group::*;", "matches!(x, y::Group::Remote { .. })"] {
        assert!(names_a_group(&read(code)), "{code}");
    }
    assert!(!names_a_group(&read("let x = Group::of(Remote);")));

    for code in [
        "x == \"idle\"",
        "\"idle\" != x",
        "match x { \"idle\" => 1 }",
        "match x { \"dd\" | \"idle\" if y => 1 }",
        "matches!(x, \"idle\")",
    ] {
        assert!(read(code).compares_with_idle, "{code}");
    }
    assert!(!read("check(\"idle\"); // == \"idle\"").compares_with_idle);
}

/// A file of the product, without comments and unit tests.
#[derive(Default)]
struct Source {
    /// The path from the root of the repository.
    file: String,
    /// The modules that hold its items, from the crate's root.
    module: Vec<String>,
    /// Each path of two names or more; those into the same crate begin with `crate`.
    paths: BTreeSet<String>,
    /// Each identifier.
    words: BTreeSet<String>,
    compares_with_idle: bool,
}

impl Source {
    fn read(file: &str, code: &str) -> Self {
        let below = file.split_once("/src/").unwrap().1.trim_end_matches(".rs");
        let module = below
            .split('/')
            .filter(|name| !["lib", "main", "mod"].contains(name));
        let mut source = Self {
            file: file.to_owned(),
            module: module.map(str::to_owned).collect(),
            ..Self::default()
        };
        source.add(code.parse().unwrap(), &source.module.clone(), "");
        source
    }

    /// Adds tokens of a module; `prefix` is what stands before a group of imports.
    fn add(&mut self, tokens: TokenStream, module: &[String], prefix: &str) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let text = |at: usize| tokens.get(at).map(ToString::to_string).unwrap_or_default();
        let follows = |at: usize, what: &str| format!("{}{}", text(at), text(at + 1)) == what;
        let before = |at: usize, what: &str| at >= 2 && follows(at - 2, what);
        let mut path = prefix.to_owned();
        let mut at = 0;
        while at < tokens.len() {
            if follows(at, "#[cfg (test)]") || follows(at, "#[cfg(test)]") {
                let is_end = |token: &TokenTree| match token {
                    TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                    token => token.to_string() == ";",
                };
                at += tokens[at..]
                    .iter()
                    .take_while(|token| !is_end(token))
                    .count()
                    + 1;
                continue;
            }
            match &tokens[at] {
                TokenTree::Ident(name) => {
                    if !path.ends_with("::") {
                        self.end_path(module, &mut path);
                    }
                    path += &name.to_string();
                    self.words.insert(name.to_string());
                }
                TokenTree::Punct(_) if follows(at, "::") => {
                    path += if path.is_empty() { "" } else { "::" };
                    at += 1;
                }
                TokenTree::Punct(star) if star.as_char() == '*' && path.ends_with("::") => {
                    path.push('*');
                }
                TokenTree::Punct(comma) if comma.as_char() == ',' => {
                    self.end_path(module, &mut path);
                    path += prefix;
                }
                TokenTree::Group(group) => {
                    let inner = [module, &[text(at.max(1) - 1)]].concat();
                    let is_module = at >= 2 && text(at - 2) == "mod";
                    let inside = if is_module { &inner } else { module };
                    let prefix = if path.ends_with("::") {
                        path.as_str()
                    } else {
                        ""
                    };
                    self.add(group.stream(), inside, prefix);
                    let is_pattern = before(at, "matches!") || follows(at + 1, "=>");
                    self.compares_with_idle |= is_pattern && text(at).contains(IDLE);
                    if prefix.is_empty() {
                        self.end_path(module, &mut path);
                    } else {
                        path.clear();
                    }
                }
                TokenTree::Literal(_) if text(at) == IDLE => {
                    let after = ["=>", "==", "!="].iter().any(|what| follows(at + 1, what));
                    let is_pattern = ["|", "if"].contains(&text(at + 1).as_str());
                    let compares = before(at, "==") || before(at, "!=");
                    self.compares_with_idle |= after || is_pattern || compares;
                }
                _ => self.end_path(module, &mut path),
            }
            at += 1;
        }
        self.end_path(module, &mut path);
    }

    /// Takes a path that is complete, as seen from the crate's root.
    fn end_path(&mut self, module: &[String], path: &mut String) {
        let path = std::mem::take(path);
        let path = path.trim_end_matches("::").trim_end_matches("::self");
        let mut depth = module.len();
        let mut rest = path.strip_prefix("self::").unwrap_or(path);
        let is_relative = rest != path || path.starts_with("super::");
        while let Some(above) = rest.strip_prefix("super::") {
            depth = depth.saturating_sub(1);
            rest = above;
        }
        if is_relative {
            let names = [&["crate".to_owned()], &module[..depth], &[rest.to_owned()]].concat();
            self.paths.insert(names.join("::"));
        } else if path.contains("::") {
            self.paths.insert(path.to_owned());
        }
    }
}

const IDLE: &str = "\"idle\"";

/// Returns the files of the product that break a rule, except for those below `allowed`.
fn breaking(allowed: &str, breaks: impl Fn(&Source) -> bool) -> Vec<&str> {
    let is_allowed = |file: &str| {
        allowed
            .split_whitespace()
            .any(|path| file.starts_with(path))
    };
    let others = PRODUCT.iter().filter(|source| !is_allowed(&source.file));
    let found = others.filter(|source| breaks(source));
    found.map(|source| source.file.as_str()).collect()
}

static PRODUCT: LazyLock<Vec<Source>> = LazyLock::new(|| {
    let all = ["crates", "measured"].map(|side| files(&root().join(side)));
    let sources = all.concat().into_iter().filter_map(|file| {
        let path = file.strip_prefix(root()).unwrap().to_str().unwrap();
        let is_test = path.ends_with("tests.rs") || path.contains("/tests/");
        let is_product = path.contains("/src/") && !is_test;
        is_product.then(|| Source::read(path, &std::fs::read_to_string(&file).unwrap()))
    });
    sources.collect()
});

/// Returns whether a list of words has this one.
fn has(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the files of code below a folder, without what is built there.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| !path.ends_with("target"));
    let files = paths.flat_map(|path| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    });
    let is_code = |path: &PathBuf| path.extension().is_some_and(|end| end == "rs");
    files.filter(is_code).collect()
}
