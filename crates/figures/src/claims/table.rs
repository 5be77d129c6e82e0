//! A published table, as it lies in the repository.

use schemars::JsonSchema;
use serde::Serialize;

/// A table as published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PublishedTable {
    /// Its title.
    pub title: String,
    /// Where and how it was measured, with units.
    pub note: String,
    /// Names of the columns.
    pub head: Vec<String>,
    /// Rows, as wide as the head.
    pub rows: Vec<Vec<String>>,
}

impl PublishedTable {
    /// Reads CSV without quotes: comments begin with `#`, the first other line is the head.
    pub fn parse(title: &str, csv: &str) -> Self {
        let comment = |line: &&str| line.starts_with('#');
        let notes = csv.lines().filter(comment);
        let notes: Vec<&str> = notes
            .map(|line| line.trim_start_matches('#').trim())
            .collect();
        let mut rows = csv
            .lines()
            .filter(|line| !comment(line) && !line.is_empty())
            .map(|line| line.split(',').map(str::to_owned).collect());
        Self {
            title: title.to_owned(),
            note: notes.join(" "),
            head: rows.next().unwrap_or_default(),
            rows: rows.collect(),
        }
    }

    /// Returns a field by the name of its column; an empty one if there is none.
    pub fn field<'a>(&self, row: &'a [String], column: &str) -> &'a str {
        let place = self.head.iter().position(|name| name == column);
        place
            .and_then(|place| row.get(place))
            .map_or("", String::as_str)
    }
}
