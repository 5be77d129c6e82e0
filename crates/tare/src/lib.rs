//! `tare`: weighs what an operating system costs the work it carries.
//!
//! The command is a library with a `main`, so that programs with other experiments can be built on
//! it. It is thin: it reads arguments (`cli`), calls the crates that do the work (`commands`), shows
//! progress (`progress`) and returns the exit code (`exit`; of errors, `error`).
#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod actions;
mod cli;
mod commands;
mod ending;
mod error;
mod exit;
mod progress;
mod terminal;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::error::ErrorKind;
use clap::{ColorChoice, Parser};
use signal_hook::consts::SIGXFSZ;
use tare_host::visible_in_line;

use crate::cli::{Cli, Command, ImageCommand};
use crate::error::CommandError;
use crate::terminal::Terminal;

/// Prints help, the version, or what is wrong with the arguments.
fn other_than_a_command(mut error: clap::Error) -> ExitCode {
    // The same on one line: it quotes words.
    let words = std::env::args_os();
    let visible = words.map(|word| visible_in_line(&word.to_string_lossy()).into_owned());
    if let Some(shown) = Cli::try_parse_from(visible).err()
        && shown.kind() == error.kind()
    {
        error = shown;
    }
    // Three options of cyclictest in one word, the last of which takes the next word.
    let is_given = |asked: &str| std::env::args().any(|word| word == asked);
    if is_given("cyclictest") && is_given("-smp") {
        let why = "'-smp' is -s -m -p: write -S -m -p 80 for a thread on each CPU, with memory locked, at priority 80\n";
        error = clap::Error::raw(ErrorKind::InvalidValue, why);
    }
    match error.print() {
        Ok(()) => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(exit::FAILED)),
        // Nobody reads on.
        Err(broken) if broken.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(exit::DONE),
        Err(unwritten) => {
            let why = format!("can't write to standard output: {unwritten}");
            Terminal::new(ColorChoice::Auto).error(&why);
            ExitCode::from(exit::FAILED)
        }
    }
}

/// Does what the command line asks for.
#[must_use]
pub fn main() -> ExitCode {
    if tare_guard::stdout_was_closed() {
        let why = "standard output is closed: let it go to a file, or to /dev/null";
        Terminal::new(ColorChoice::Auto).error(why);
        return ExitCode::from(exit::FAILED);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return other_than_a_command(error),
    };
    let terminal = Terminal::new(cli.color);
    // Beyond `ulimit -f`, the kernel kills whoever does nothing about this signal; else the write
    // fails. With a handler in place of ignoring it, children have what they would have without. If
    // it can't be set, death stays what it was.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let outcome = match &cli.command {
        Command::Quick(arguments) => commands::quick::run(arguments, &terminal),
        Command::Measure(asked) => match &asked.top {
            Some(arguments) => commands::top::run(arguments, &terminal),
            None => commands::experiment::run(asked, &terminal),
        },
        Command::Run(arguments) => commands::run_study::run(arguments, &terminal),
        Command::Study(arguments) => commands::study::run(arguments, &terminal),
        Command::Reproduce(arguments) => commands::reproduce::run(arguments, &terminal),
        Command::Cyclictest(arguments) => commands::cyclictest::run(arguments, &terminal),
        Command::Export(arguments) => commands::export::run(arguments, &terminal),
        Command::Import(arguments) => commands::import::run(arguments, &terminal),
        Command::Compare(arguments) => commands::compare::run(arguments, &terminal),
        Command::Scale(arguments) => commands::scale::run(arguments, &terminal),
        Command::Report(arguments) => commands::report::run(arguments, &terminal),
        Command::Targets(arguments) => commands::targets::run(arguments, &terminal),
        Command::Kernel(arguments) => commands::kernel::run(arguments, &terminal),
        Command::Doctor(arguments) => commands::doctor::run(arguments, &terminal),
        Command::Image(ImageCommand::Run(arguments)) => commands::image::run(arguments, &terminal),
        Command::Share(arguments) => commands::share::run(arguments),
        Command::Clean => commands::clean::run(&terminal),
    };
    let code = outcome.unwrap_or_else(|error| {
        if !matches!(error, CommandError::NobodyReads) {
            terminal.error(&error.to_string());
        }
        error.exit_code()
    });
    ExitCode::from(code)
}
