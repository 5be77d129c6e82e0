//! The documentation says what the code does.

use std::fs;
use std::path::Path;

use tare_experiments::experiments;
use tare_lab::parameter::{Parameter, Takes};
use tare_studies::{Study, Variant, keys};

const PAGE: &str = include_str!("../../../../docs/studies.md");

#[test]
fn every_key_is_described() {
    for key in [keys::STUDY, keys::EXPERIMENT, keys::EXCLUDE].concat() {
        let name = key.name;
        let forms = [
            format!("`{name}`"),
            format!("`[{name}]`"),
            format!("`[[{name}]]`"),
        ];
        assert!(forms.iter().any(|form| PAGE.contains(form)), "{name}");
    }
    for experiment in experiments() {
        assert!(PAGE.contains(&format!("`{}`", experiment.name())));
    }
}

#[test]
fn the_page_of_each_experiment_lists_its_parameters() {
    const BEGIN: &str =
        "<!-- parameters: written anew by UPDATE_DOCS=1 cargo test -p tare-studies -->\n";
    const END: &str = "<!-- end of parameters -->\n";
    for experiment in experiments() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let path = folder.join(format!("{}.md", experiment.name()));
        let page = fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once(BEGIN).expect("the beginning is marked");
        let (listed, after) = rest.split_once(END).expect("the end is marked");
        let mut wanted = "\n| option | takes | default | meaning |\n|---|---|---|---|\n".to_owned();
        wanted.extend(experiment.parameters().iter().map(row));
        wanted.push('\n');
        if listed != wanted && std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
        } else {
            assert_eq!(listed, wanted, "UPDATE_DOCS=1 writes it anew");
        }
    }
}

/// Writes a parameter as a line of a table.
fn row(parameter: &Parameter) -> String {
    let short = parameter.short.map(|short| format!("`-{short}`"));
    let long = [parameter.name].into_iter();
    let long = long.chain(parameter.aliases.iter().copied());
    let options: Vec<String> = short
        .into_iter()
        .chain(long.map(|name| format!("`--{name}`")))
        .collect();
    let takes = match parameter.takes {
        Takes::Flag => "nothing".to_owned(),
        takes => takes.to_string(),
    };
    let several = if parameter.many { "; several" } else { "" };
    let not_in_studies = parameter
        .command_only
        .map(|why| format!(". Not in a study: {why}"));
    format!(
        "| {} | {takes}{several} | {} | {}{} |\n",
        options.join(", "),
        parameter.default,
        parameter.meaning,
        not_in_studies.unwrap_or_default()
    )
}

#[test]
fn the_first_study_has_as_many_cells_as_it_says() {
    let start = PAGE.find("```toml\n").unwrap() + "```toml\n".len();
    let end = PAGE[start..].find("```").unwrap();
    let study = Study::parse("first.toml", &PAGE[start..start + end], Variant::Full).unwrap();
    let cells = study.cells(0).unwrap();
    assert_eq!(cells.iter().map(|cell| cell.runs).sum::<u32>(), 70);
    assert!(PAGE.contains("70 cells"));
}
