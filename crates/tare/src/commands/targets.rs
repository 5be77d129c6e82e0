//! `tare targets`: lists the targets, and what would make each usable.

use std::fmt::Write;

use serde::Serialize;
use tare_targets::Availability;
use tare_targets::options::{Description, Opt};
use tare_targets::spec::kinds;

use super::clean_up;
use crate::cli::ListArguments;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// A target in the list.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    summary: &'static str,
    /// Its form, if its name alone is not enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<String>,
    options: Vec<Description>,
    #[serde(flatten)]
    availability: Availability,
}

/// Lists the targets.
pub fn run(arguments: &ListArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    clean_up(terminal);
    let mut rows = Vec::new();
    for kind in kinds() {
        rows.push(Row {
            name: kind.name,
            summary: kind.summary,
            form: kind.here.map(|_| kind.form()),
            options: kind.options.iter().map(Opt::description).collect(),
            availability: kind.availability()?,
        });
    }
    if arguments.json {
        terminal.print_json(&rows)?;
        return Ok(exit::DONE);
    }
    terminal.print_lines(&table(&rows))?;
    Ok(exit::DONE)
}

fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let state = match row.availability {
            Availability::Usable => "usable",
            Availability::Unusable { .. } => "not usable",
        };
        // A String takes everything.
        let _ = writeln!(text, "{:<12} {:<11} {}", row.name, state, row.summary);
        if let Some(form) = &row.form {
            let _ = writeln!(text, "{:12} written: {form}", "");
        }
        if let Availability::Unusable { why, remedy } = &row.availability {
            let _ = writeln!(text, "{:12} why: {why}", "");
            let _ = writeln!(text, "{:12} to make it usable: {remedy}", "");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unusable_target_has_its_remedy() {
        let row = |availability| Row {
            name: "process",
            summary: "a process on this machine",
            form: None,
            options: Vec::new(),
            availability,
        };
        insta::assert_snapshot!(table(&[
            row(Availability::Usable),
            row(Availability::Unusable {
                why: "the agent is not found".to_owned(),
                remedy: "make build".to_owned(),
            }),
            Row {
                form: Some("process,on=MACHINE".to_owned()),
                ..row(Availability::Usable)
            },
        ]));
    }
}
