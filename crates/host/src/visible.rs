//! What a terminal would obey, made visible.
//!
//! Names come from outside: of processes, of files, from a guest's console. Whoever chooses one may
//! hide an escape sequence or a line feed in it, and have a terminal show what was never said.

use std::borrow::Cow;
use std::fmt::Write;

/// Makes visible what a terminal would obey instead of showing it, in the way in which JSON writes
/// it, so that JSON stays what it was: `\u001b`. Line feeds and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match is_obeyed(c) {
            // A String takes everything.
            true => {
                let _ = write!(shown, "\\u{:04x}", u32::from(c));
            }
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Makes visible what would end a line or be obeyed.
pub fn visible_in_line(text: &str) -> Cow<'_, str> {
    match visible(text) {
        text if !text.contains('\n') => text,
        text => Cow::Owned(text.replace('\n', "\\n")),
    }
}

/// Returns whether a character controls a terminal, or the direction in which what follows is read.
fn is_obeyed(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_as_json_writes_it() {
        for (text, shown) in [
            ("\u{1b}[2J\r\u{7}", "\\u001b[2J\\u000d\\u0007"),
            ("\u{9b}31m\u{202e}x\u{7f}", "\\u009b31m\\u202ex\\u007f"),
            ("a\n\tü→µ·", "a\n\tü→µ·"),
        ] {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(visible_in_line("a\nb\u{1b}"), "a\\nb\\u001b");
        assert!(matches!(visible_in_line("plain"), Cow::Borrowed(_)));
    }
}
