//! docs/studies.md says what the code does.

use tare_experiments::EXPERIMENTS;
use tare_studies::{Study, Variant, keys};

const PAGE: &str = include_str!("../../../../docs/studies.md");

#[test]
fn every_key_and_parameter_is_described() {
    let keys = [keys::STUDY, keys::EXPERIMENT, keys::EXCLUDE].concat();
    let parameters = EXPERIMENTS
        .iter()
        .flat_map(|experiment| experiment.parameters());
    let names = keys.iter().map(|key| key.name);
    for name in names.chain(parameters.map(|parameter| parameter.name)) {
        let forms = [
            format!("`{name}`"),
            format!("`[{name}]`"),
            format!("`[[{name}]]`"),
        ];
        assert!(forms.iter().any(|form| PAGE.contains(form)), "{name}");
    }
    for experiment in EXPERIMENTS {
        assert!(PAGE.contains(&format!("`{}`", experiment.name())));
        for parameter in experiment.parameters() {
            let start = format!("| `{}`", parameter.name);
            let mut rows = section(experiment.name())
                .lines()
                .filter(|line| line.starts_with(&start));
            let row = rows.next();
            let row = row.unwrap_or_else(|| panic!("no row for {}", parameter.name));
            for word in parameter.default.split(' ') {
                assert!(
                    row.contains(word.trim_end_matches([';', ':', ','])),
                    "{row}: {word}"
                );
            }
        }
    }
}

/// Returns what the page says of the parameters of an experiment.
fn section(experiment: &str) -> &'static str {
    let start = PAGE.find(&format!("Those of `{experiment}`")).unwrap();
    let rest = &PAGE[start..];
    let end = rest[1..]
        .find("Those of `")
        .map_or(rest.len(), |end| end + 1);
    &rest[..end]
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
