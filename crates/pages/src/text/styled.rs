//! Text for a terminal whose styles are typed.
//!
//! Names come from outside: of processes, of files, from run folders, from a guest's console.
//! Whoever chooses one may hide an escape sequence in it. So text is kept apart from its style
//! until it is written, and what is text can't be a sequence: there is no way from a [`Text`] to a
//! terminal but [`Text::render`], and that makes visible what a terminal would obey.

use std::fmt::{self, Write};

use anstyle::Style;
use tare_host::visible;

/// Text for a terminal: pieces with their styles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(Vec<(Style, String)>);

impl Text {
    /// Adds text without a style.
    pub fn push(&mut self, text: &str) {
        self.styled(Style::new(), text);
    }

    /// Adds text of a style.
    pub fn styled(&mut self, style: Style, text: &str) {
        match self.0.last_mut() {
            Some((last, known)) if *last == style => known.push_str(text),
            _ => self.0.push((style, text.to_owned())),
        }
    }

    /// Returns whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes it as a terminal reads it; escape sequences are those of its styles, if `colour`, and
    /// no others.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let mut all = String::new();
        for (style, text) in &self.0 {
            let text = visible(text);
            // A String takes everything.
            let _ = match colour {
                true => write!(all, "{style}{text}{style:#}"),
                false => write!(all, "{text}"),
            };
        }
        all
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        let mut all = Self::default();
        all.push(text);
        all
    }
}

#[cfg(test)]
mod tests {
    use anstyle::AnsiColor;

    use super::*;

    #[test]
    fn nothing_but_a_style_is_an_escape_sequence() {
        let mut text = Text::default();
        text.push("a \x1b[2J\r\u{7}\u{9b}31m\u{202e}b\n");
        text.styled(AnsiColor::Red.on_default(), "\x1b]0;title\u{7}ü→");
        assert_eq!(
            text.render(false),
            "a \\u001b[2J\\u000d\\u0007\\u009b31m\\u202eb\n\\u001b]0;title\\u0007ü→"
        );
        let coloured = text.render(true);
        assert_eq!(coloured.matches('\x1b').count(), 2);
        assert!(coloured.ends_with("\x1b[31m\\u001b]0;title\\u0007ü→\x1b[0m"));
    }
}
