//! Something wrong at one place of a file, shown with that place.

use std::fmt;
use std::ops::Range;

use tare_host::visible_in_line;

/// How many characters of a line are shown around a problem.
const WIDTH: usize = 90;

/// Something that is wrong at one place of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The problem, and the valid values.
    pub text: String,
    /// The part of the line that is shown.
    excerpt: String,
    /// Characters of the excerpt before the place, and at it.
    mark: (usize, usize),
}

/// A study's text with the name of its file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// Makes a problem of the place with these bytes. Its text is one line, whatever it quotes.
    pub fn problem(&self, place: Range<usize>, text: impl Into<String>) -> Problem {
        let start = self.boundary(place.start);
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = self.text[line_start..].lines().next().unwrap_or_default();
        let column = self.text[line_start..start].chars().count();
        // A place that goes on in the next line is marked to the end of this one.
        let end = self
            .boundary(place.end)
            .clamp(start, line_start + line.len().max(start - line_start));
        let length = self.text[start..end].chars().count().max(1);

        let characters: Vec<char> = line.chars().map(plain).collect();
        let from = match column.checked_sub(WIDTH * 2 / 3) {
            Some(from) if characters.len() > WIDTH => from,
            _ => 0,
        };
        let to = characters.len().min(from + WIDTH);
        let mut excerpt: String = characters[from.min(to)..to].iter().collect();
        let mut indent = column - from.min(column);
        if from > 0 {
            excerpt.insert(0, '…');
            indent += 1;
        }
        if to < characters.len() {
            excerpt.push('…');
        }
        Problem {
            file: visible_in_line(self.file).into_owned(),
            line: before.matches('\n').count() + 1,
            column: column + 1,
            text: visible_in_line(&text.into()).into_owned(),
            excerpt,
            mark: (indent, length.min(WIDTH - WIDTH * 2 / 3)),
        }
    }

    /// Returns the nearest place at or before a byte at which a character begins.
    fn boundary(&self, byte: usize) -> usize {
        let mut place = byte.min(self.text.len());
        while !self.text.is_char_boundary(place) {
            place -= 1;
        }
        place
    }
}

/// Keeps an excerpt on one line in its order, whatever stands in the file.
fn plain(character: char) -> char {
    let mut bytes = [0; 4];
    let text: &str = character.encode_utf8(&mut bytes);
    match visible_in_line(text) == text && character != '\t' {
        true => character,
        false => ' ',
    }
}

impl fmt::Display for Problem {
    /// Writes `FILE:LINE:COLUMN: what is wrong`, and the line with the place marked below it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            column,
            text,
            excerpt,
            mark: (indent, length),
        } = self;
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(f, "{file}:{line}:{column}: {text}")?;
        writeln!(f, "  {number} | {excerpt}")?;
        let (indent, caret) = (" ".repeat(*indent), "^".repeat(*length));
        write!(f, "  {margin} | {indent}{caret}")
    }
}

/// Ends a sentence with the known word that is nearest to a wrong one: `; did you mean 'limit'?`.
/// Without a near one, lists what is known.
pub(crate) fn suggestion<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    // A long word is compared in a time of the square of its length.
    let near = known
        .iter()
        .filter(|_| wrong.len() < 100)
        .map(|word| (strsim::damerau_levenshtein(wrong, word), *word))
        .min()
        .filter(|(distance, word)| *distance <= 1 + word.len() / 3);
    match near {
        Some((_, word)) => format!("; did you mean '{word}'?"),
        None => format!("; known: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_place_is_marked_below_its_line() {
        let text = "a = 1\n\tkäse = \"x\"\n";
        let source = Source {
            file: "s.toml",
            text,
        };
        let place = text.find("\"x\"").unwrap();
        let problem = source.problem(place..place + 3, "want a number");
        assert_eq!(
            problem.to_string(),
            "s.toml:2:9: want a number\n  2 |  käse = \"x\"\n    |         ^^^"
        );
    }

    #[test]
    fn what_a_file_holds_adds_no_line_and_turns_none() {
        let text = "x = '\u{202e}\u{2028}\u{9b}y'\n";
        let source = Source {
            file: "s\n.toml",
            text,
        };
        let problem = source.problem(4..6, "no 'a\n\r\u{1b}[31m\u{202e}\u{2028}'");
        assert_eq!(
            problem.to_string(),
            "s\\n.toml:1:5: no 'a\\n\\u000d\\u001b[31m\\u202e\\u2028'\n  1 | x = '   y'\n    |     ^"
        );
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("list = [{}", "123456, ".repeat(200));
        let source = Source {
            file: "s.toml",
            text: &text,
        };
        let problem = source.problem(808..814, "no");
        let shown = problem.to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[1].chars().count() < WIDTH + 10, "{shown}");
        let at = lines[2].find('^').unwrap();
        let marked: String = lines[1].chars().skip(at).take(6).collect();
        assert_eq!(marked, "123456", "{shown}");
    }

    #[test]
    fn the_nearest_word_is_suggested_or_all_are_listed() {
        assert_eq!(
            suggestion("limt", ["limit", "size"]),
            "; did you mean 'limit'?"
        );
        assert_eq!(
            suggestion("colour", ["limit", "size"]),
            "; known: limit, size"
        );
        assert_eq!(suggestion(&"x".repeat(1_000_000), ["a"]), "; known: a");
    }

    proptest! {
        #[test]
        fn any_place_of_any_text_is_shown(text in "(.|\n){0,300}", start in 0_usize..1300, length in 0_usize..400) {
            let source = Source { file: "s.toml", text: &text };
            let shown = source.problem(start..start + length, "wrong").to_string();
            prop_assert_eq!(shown.lines().count(), 3);
        }
    }
}
