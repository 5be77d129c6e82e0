//! What goes to the user: results to standard output, everything else to standard error.
//!
//! Nothing else in the laboratory writes to either (clippy.toml refuses it), and nothing is written
//! here but [`Text`], whose escape sequences are those of its styles. So names from outside can't
//! do more to a terminal than be read.

use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal, Stderr, Stdout, Write};
use std::os::fd::AsFd;
use std::process::Stdio;

use anstyle::{AnsiColor, Style};
use clap::ColorChoice;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use tare_host::visible_in_line;
use tare_pages::text::{Page, Text, broken};

use crate::error::CommandError;

/// The width of tables where there is no terminal to ask.
const DEFAULT_WIDTH: u16 = 100;

/// The least width of tables.
const LEAST_WIDTH: u16 = 40;

/// The indentation of further lines of a message, so that none looks like a separate message.
const BELOW: &str = "  ";

/// Writes to the user.
#[derive(Debug)]
pub struct Terminal {
    colour: ColorChoice,
    is_quiet: Cell<bool>,
    /// The line of progress, while there is one.
    line: RefCell<Option<ProgressBar>>,
}

/// A line of progress on standard error. It makes room for whatever else is written, and nothing of
/// it is left when it is dropped.
#[derive(Debug)]
pub struct Line<'a> {
    terminal: &'a Terminal,
    bar: ProgressBar,
    /// The width in which it was drawn last.
    drawn: Cell<u16>,
}

impl Terminal {
    /// Makes a writer that uses colours as asked.
    pub fn new(colour: ColorChoice) -> Self {
        Self {
            colour,
            is_quiet: Cell::new(false),
            line: RefCell::new(None),
        }
    }

    /// Keeps remarks and progress back from now on.
    pub fn be_quiet(&self) {
        self.is_quiet.set(true);
    }

    /// Writes a result.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if standard output can't be written.
    pub fn print(&self, text: &str) -> Result<(), CommandError> {
        self.write_out("", &text.into())
    }

    /// Writes a result that has styles.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if standard output can't be written.
    pub fn print_text(&self, text: &Text) -> Result<(), CommandError> {
        self.write_out("", text)
    }

    /// Writes a result that is one sentence.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if standard output can't be written.
    pub fn print_sentence(&self, text: &str) -> Result<(), CommandError> {
        self.print_lines(&visible_in_line(text))
    }

    /// Writes a result in lines of prose, broken between words where the width is known.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if standard output can't be written.
    pub fn print_lines(&self, text: &str) -> Result<(), CommandError> {
        let Some(width) = width_of_results() else {
            return self.print(text);
        };
        let mut page = Page::new(width.into());
        page.lines(text);
        self.print_text(&page.finish())
    }

    /// Writes a result over the last `lines` lines, once they were printed.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if standard output can't be written.
    pub fn print_over(&self, lines: usize, text: &str) -> Result<(), CommandError> {
        let up = match lines {
            0 => String::new(),
            lines => format!("\x1b[{lines}A"),
        };
        self.write_out(&up, &text.into())
    }

    /// Writes a result on a cleared screen, its first lines if it has more than `most`.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if standard output can't be written.
    pub fn print_screen(&self, most: usize, text: &str) -> Result<(), CommandError> {
        let lines: Vec<&str> = text.lines().take(most).collect();
        self.write_out("\x1b[H\x1b[J", &lines.join("\n").as_str().into())
    }

    fn write_out(&self, before: &str, text: &Text) -> Result<(), CommandError> {
        let text = text.render(self.colours_results());
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        let write = || {
            let mut out = stdout().lock();
            write!(out, "{before}{text}{newline}").and_then(|()| out.flush())
        };
        match self.beside_line(write) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                Err(CommandError::NobodyReads)
            }
            Err(error) => Err(CommandError::Output(error)),
        }
    }

    /// Writes a value as JSON.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if standard output can't be written.
    pub fn print_json(&self, value: &impl Serialize) -> Result<(), CommandError> {
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| CommandError::Output(error.into()))?;
        self.print(&text)
    }

    /// Remarks something about the run, unless it is to be quiet.
    pub fn note(&self, text: &str) {
        if !self.is_quiet.get() {
            self.tell(text);
        }
    }

    /// Remarks something that is to be known even if it is to be quiet.
    pub fn tell(&self, text: &str) {
        self.say("", Style::new(), text);
    }

    /// Warns of something that bears on the results.
    pub fn warn(&self, text: &str) {
        self.say("warning: ", AnsiColor::Yellow.on_default().bold(), text);
    }

    /// Says why the command failed.
    pub fn error(&self, text: &str) {
        self.say("error: ", AnsiColor::Red.on_default().bold(), text);
    }

    /// Returns the width for tables, in columns.
    pub fn width(&self) -> usize {
        let width = width_of_results().filter(|width| *width >= LEAST_WIDTH);
        width.unwrap_or(DEFAULT_WIDTH).into()
    }

    /// Returns the number of lines of the screen on which results are drawn, if there is one.
    pub fn height(&self) -> Option<usize> {
        let size = tcgetwinsize(stdout()).ok().filter(|_| !is_dumb())?;
        (size.ws_row > 1).then_some(size.ws_row.into())
    }

    /// Starts a line of progress, if somebody sees it.
    pub fn progress(&self, length: u64, template: &str) -> Option<Line<'_>> {
        if self.is_quiet.get() || !self.is_watched() {
            return None;
        }
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(template);
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.line.replace(Some(bar.clone()));
        let drawn = Cell::new(0);
        Some(Line {
            terminal: self,
            bar,
            drawn,
        })
    }

    /// Returns whether somebody watches.
    pub fn is_watched(&self) -> bool {
        stderr().is_terminal() && !is_dumb()
    }

    /// Returns where a command that the user asked for may write.
    pub fn for_command(&self) -> Stdio {
        let output = stderr().as_fd().try_clone_to_owned();
        output.map_or_else(|_| Stdio::null(), Stdio::from)
    }

    /// Returns whether results are coloured.
    fn colours_results(&self) -> bool {
        self.colours(stdout().is_terminal())
    }

    fn say(&self, prefix: &str, style: Style, text: &str) {
        let mut said = Text::default();
        said.styled(style, prefix);
        for (number, line) in lines(prefix, text, width_of(stderr())).iter().enumerate() {
            if number > 0 {
                said.push("\n");
            }
            said.push(line);
        }
        said.push("\n");
        let said = said.render(self.colours(stderr().is_terminal()));
        // An error of standard error cannot be reported.
        let _ = self.beside_line(|| stderr().lock().write_all(said.as_bytes()));
    }

    /// Writes something where the line of progress may stand.
    fn beside_line<R>(&self, write: impl FnOnce() -> R) -> R {
        match &*self.line.borrow() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    fn colours(&self, is_terminal: bool) -> bool {
        match self.colour {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                is_terminal && !is_dumb() && !refused
            }
        }
    }
}

impl Line<'_> {
    /// Says what goes on.
    pub fn say(&self, text: &str) {
        self.follow_width();
        self.bar.set_message(visible_in_line(text).into_owned());
        self.bar.tick();
    }

    /// Advances the bar by `more`.
    pub fn done(&self, more: u64) {
        self.bar.inc(more);
    }

    /// Says how much is done, of how much.
    pub fn reached(&self, done: u64, of: u64) {
        self.bar.set_length(of);
        self.bar.set_position(done);
    }

    /// Clears the bar until the next message.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
        self.bar.reset();
        self.drawn.set(0);
    }

    /// Takes away what a terminal that got narrower has made of the line, which was as wide as the
    /// terminal: several.
    fn follow_width(&self) {
        let width = width_of(stderr()).unwrap_or(0);
        let before = self.drawn.replace(width);
        if (1..before).contains(&width) {
            let above = before.div_ceil(width) - 1;
            // It is drawn anew in any case.
            let _ = write!(stderr().lock(), "\x1b[{above}A\r\x1b[J");
        }
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        self.follow_width();
        self.bar.finish_and_clear();
        self.terminal.line.replace(None);
    }
}

/// Breaks a message into lines. Without a terminal its own stay as long as they are, for those who
/// search in them. A line feed without indentation is part of a name.
fn lines(prefix: &str, text: &str, width: Option<u16>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in text.trim_end().split("\n  ") {
        // Further pieces are indented, the first one may have a prefix.
        let before = if all.is_empty() { prefix } else { BELOW };
        let before = before.len().max(BELOW.len());
        let line = &*visible_in_line(line);
        let room = width.map(|width| usize::from(width).saturating_sub(before).max(20));
        let pieces = match room.filter(|room| line.chars().count() > *room) {
            Some(room) => broken(line, room),
            None => vec![line.to_owned()],
        };
        for piece in pieces {
            all.push(match all.is_empty() {
                true => piece,
                false => format!("{BELOW}{piece}"),
            });
        }
    }
    all
}

/// Returns whether the terminal takes no escape sequences.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|name| name == "dumb")
}

/// Returns the width of results: that of `COLUMNS` (environ(7)), or of the terminal.
fn width_of_results() -> Option<u16> {
    let asked = std::env::var("COLUMNS").ok();
    let asked = asked.and_then(|columns| columns.parse().ok());
    asked
        .filter(|width| *width >= LEAST_WIDTH)
        .or_else(|| width_of(stdout()))
}

/// Returns the width of a terminal; `None` if there is none, or it does not know.
fn width_of(terminal: impl AsFd) -> Option<u16> {
    let size = tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}

#[expect(clippy::disallowed_methods, reason = "everything goes through here")]
fn stdout() -> Stdout {
    io::stdout()
}

#[expect(clippy::disallowed_methods, reason = "everything goes through here")]
fn stderr() -> Stderr {
    io::stderr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_broken_between_words_and_what_they_name_begins_no_line() {
        let text = "the target 'docker' can't be used here: no engine\nerror: all is well\u{1b}\n  4 | limt\n    | ^^^^";
        assert_eq!(
            lines("error: ", text, Some(46)),
            [
                "the target 'docker' can't be used here:",
                "  no engine\\nerror: all is well\\u001b",
                "  4 | limt",
                "    | ^^^^",
            ]
        );
        let without_prefix = lines("", text, Some(40));
        assert!(
            without_prefix.iter().all(|line| line.len() <= 40),
            "{without_prefix:?}"
        );
        assert_eq!(
            lines("error: ", text, None),
            [
                "the target 'docker' can't be used here: no engine\\nerror: all is well\\u001b",
                "  4 | limt",
                "    | ^^^^",
            ]
        );
    }
}
