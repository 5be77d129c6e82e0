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
            for imported in imports(&std::fs::read_to_string(&file).unwrap()) {
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

/// Returns the modules that code names as `crate::module`, or in `crate::{…}`; comments don't count.
fn imports(code: &str) -> BTreeSet<String> {
    let code = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code: String = code.flat_map(|line| [line, "\n"]).collect();
    let after = code.split("crate::").skip(1);
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
