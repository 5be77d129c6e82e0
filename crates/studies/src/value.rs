//! From values of the file to values of their type. Problems are noted with their place, and
//! reading goes on, so that one look at a file tells everything.

use std::collections::HashSet;
use std::hash::Hash;
use std::ops::Range;

use tare_host::visible_in_line;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::MOST_NOTED;
use crate::problem::{Problem, Source};

/// A value with its place.
pub(crate) type Item<'a> = Spanned<DeValue<'a>>;

/// A table, with another one before it whose keys come first: that of the shorter variant.
#[derive(Clone, Copy)]
pub(crate) struct Layers<'a> {
    pub over: Option<&'a DeTable<'a>>,
    pub base: &'a DeTable<'a>,
}

impl<'a> Layers<'a> {
    /// Returns what stands under a key.
    pub fn get(&self, key: &str) -> Option<&'a Item<'a>> {
        let over = self.over.and_then(|over| over.get(key));
        over.or_else(|| self.base.get(key))
    }
}

/// Reads values and collects what is wrong with them.
pub(crate) struct Reader<'a> {
    source: Source<'a>,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    pub fn new(source: Source<'a>) -> Self {
        Self {
            source,
            problems: Vec::new(),
        }
    }

    /// Returns what was wrong, in the order of the file and each thing once.
    pub fn problems(mut self) -> Vec<Problem> {
        self.problems
            .sort_by_key(|problem| (problem.line, problem.column));
        self.problems.dedup();
        self.problems
    }

    /// Returns whether something was wrong.
    pub fn failed(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Returns the name of the file.
    pub fn file(&self) -> &'a str {
        self.source.file
    }

    /// Returns the file's text.
    pub fn whole_text(&self) -> &'a str {
        self.source.text
    }

    /// Notes something wrong at a place.
    pub fn wrong(&mut self, place: Range<usize>, text: impl Into<String>) {
        if self.problems.len() < MOST_NOTED {
            let problem = self.source.problem(place, text);
            self.problems.push(problem);
        }
    }

    /// Reads a whole number within bounds.
    pub fn number(&mut self, item: &Item<'_>, least: u64, most: u64) -> Option<u64> {
        let wanted = format!("a whole number from {least} to {most}");
        let DeValue::Integer(integer) = item.get_ref() else {
            self.mistyped(item, &wanted);
            return None;
        };
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.wrong(item.span(), format!("want {wanted}, not {integer}"));
        }
        number
    }

    /// Reads a text, which is one line: reports, errors and other tools' files quote it.
    pub fn text(&mut self, item: &'a Item<'a>, wanted: &str) -> Option<&'a str> {
        match item.get_ref() {
            DeValue::String(text) if visible_in_line(text) == *text => Some(text),
            DeValue::String(_) => {
                self.wrong(
                    item.span(),
                    "want a text of one line without control characters",
                );
                None
            }
            _ => {
                self.mistyped(item, wanted);
                None
            }
        }
    }

    /// Reads a table.
    pub fn table(&mut self, item: &'a Item<'a>, wanted: &str) -> Option<&'a DeTable<'a>> {
        match item.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => {
                self.mistyped(item, wanted);
                None
            }
        }
    }

    /// Reads a list of tables, each with its place.
    pub fn tables(
        &mut self,
        item: &'a Item<'a>,
        wanted: &str,
    ) -> Vec<(Range<usize>, &'a DeTable<'a>)> {
        let DeValue::Array(items) = item.get_ref() else {
            self.mistyped(item, wanted);
            return Vec::new();
        };
        let tables = items.iter();
        tables
            .filter_map(|item| Some((item.span(), self.table(item, wanted)?)))
            .collect()
    }

    /// Reads a list of different values, of which a single one is a list of one. Returns None if
    /// any of them is wrong.
    pub fn list<T: Clone + Eq + Hash>(
        &mut self,
        item: &'a Item<'a>,
        read: impl FnMut(&mut Self, &'a Item<'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let (values, again) = self.sequence(item, read)?;
        self.refuse_again(again.clone());
        again.is_none().then_some(values)
    }

    /// Notes that a value stands in a list for the second time, if one does.
    pub fn refuse_again(&mut self, again: Option<Range<usize>>) {
        const TWICE: &str = "this is given twice; use 'runs' for repetitions";
        if let Some(place) = again {
            self.wrong(place, TWICE);
        }
    }

    /// Reads a list of values, of which a single one is a list of one, and says where one stands
    /// for the second time. Returns None if any of them is wrong.
    pub fn sequence<T: Clone + Eq + Hash>(
        &mut self,
        item: &'a Item<'a>,
        mut read: impl FnMut(&mut Self, &'a Item<'a>) -> Option<T>,
    ) -> Option<(Vec<T>, Option<Range<usize>>)> {
        let items: Vec<&'a Item<'a>> = match item.get_ref() {
            DeValue::Array(items) => items.iter().collect(),
            _ => vec![item],
        };
        if items.is_empty() {
            self.wrong(item.span(), "this list is empty: nothing would run");
            return None;
        }
        let mut values = Vec::new();
        let mut seen = HashSet::new();
        let (mut all_right, mut again) = (true, None);
        for item in items {
            let Some(value) = read(self, item) else {
                all_right = false;
                continue;
            };
            if !seen.insert(value.clone()) {
                again.get_or_insert(item.span());
            }
            values.push(value);
        }
        all_right.then_some((values, again))
    }

    /// Notes that a value has another type than it should.
    pub fn mistyped(&mut self, item: &Item<'_>, wanted: &str) {
        let found = match item.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(float) => float.as_str(),
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.wrong(item.span(), format!("want {wanted}, not {found}"));
    }
}
