//! docs/targets.md shows the tables of options as they are.

use tare_targets::options::Description;
use tare_targets::spec::KINDS;

/// Returns an option's row of a table.
fn row(option: &Description) -> String {
    let default = match option.default {
        None => "must be given".to_owned(),
        Some(value) if option.is_value => format!("`{value}`"),
        Some(words) => words.to_owned(),
    };
    format!("| `{}=` | {default} | {} |", option.key, option.meaning)
}

#[test]
fn the_page_has_the_form_and_the_options_of_each_kind_and_no_others() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/targets.md");
    let page = std::fs::read_to_string(path).unwrap();
    let mut rows = Vec::new();
    for kind in KINDS {
        assert!(
            page.contains(&format!("`{}`", kind.form())),
            "{}",
            kind.form()
        );
        rows.extend(kind.options.iter().map(|option| row(&option.description())));
    }
    for row in &rows {
        assert!(page.lines().any(|line| line == row), "{row}");
    }
    let is_option = |line: &&str| line.starts_with("| `") && line.contains("=` | ");
    for line in page.lines().filter(is_option) {
        assert!(rows.iter().any(|row| row == line), "{line}");
    }
}
