//! What goes to the user: results to standard output, everything else to standard error.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use clap::ColorChoice;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::termios::tcgetwinsize;
use serde::Serialize;

use crate::error::CommandError;

/// The width of tables where there is no terminal to ask.
const DEFAULT_WIDTH: u16 = 100;

/// Writes to the user.
#[derive(Debug)]
pub struct Terminal {
    colour: ColorChoice,
}

impl Terminal {
    /// Makes a writer that uses colours as asked.
    pub fn new(colour: ColorChoice) -> Self {
        Self { colour }
    }

    /// Writes a result.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if standard output can't be written.
    pub fn print(&self, text: &str) -> Result<(), CommandError> {
        let mut out = io::stdout().lock();
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        match write!(out, "{text}{newline}").and_then(|()| out.flush()) {
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

    /// Remarks something about the run.
    pub fn note(&self, text: &str) {
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

    /// Returns whether results are to be coloured.
    pub fn colours_results(&self) -> bool {
        self.colours(io::stdout().is_terminal())
    }

    /// Returns the width for tables, in columns.
    pub fn width(&self) -> u16 {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col >= 40 => size.ws_col,
            _ => DEFAULT_WIDTH,
        }
    }

    fn say(&self, prefix: &str, style: Style, text: &str) {
        let mut error = io::stderr().lock();
        // Nobody is left to be told if standard error can't be written.
        let _ = if self.colours(io::stderr().is_terminal()) {
            writeln!(error, "{style}{prefix}{style:#}{text}")
        } else {
            writeln!(error, "{prefix}{text}")
        };
    }

    fn colours(&self, is_terminal: bool) -> bool {
        match self.colour {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        }
    }
}

/// Makes a line that shows progress on standard error, if that is a terminal.
pub fn progress_bar(length: u64, template: &str) -> Option<ProgressBar> {
    io::stderr().is_terminal().then(|| {
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(template);
        bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    })
}
