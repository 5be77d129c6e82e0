//! `tare image run`: boots an image by itself, for people who work on it.

use std::time::Duration;

use tare_guard::{Guard, Interrupt, default_state_dir};
use tare_targets::instance::{Ending, Watcher};
use tare_targets::unikernel::Image;

use super::{clean_up, close};
use crate::cli::ImageRunArguments;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// How long an image may run: a year. A deadline beyond what the clock holds would overflow.
const LIMIT: Duration = Duration::from_secs(366 * 24 * 3600);

/// Boots an image with its console on standard output.
pub fn run(arguments: &ImageRunArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    let interrupt = Interrupt::install()?;
    clean_up(terminal);
    let guard = Guard::open(&default_state_dir()?)?;
    let image = Image::parse(&arguments.image)?;
    let path = image.path()?.to_owned();
    let words = arguments.words.join(" ");
    let buffer_bytes = tare_experiments::work(&words).map(|work| work.buffer_bytes);
    let instance = image.boot(&words, buffer_bytes, arguments.gdb, &guard)?;
    if let Some(port) = arguments.gdb {
        terminal.note(&format!(
            "waiting for: gdb -ex 'target remote 127.0.0.1:{port}' {}",
            path.display()
        ));
    }
    let mut console = Console {
        terminal,
        interrupt: &interrupt,
        failed: None,
    };
    let ended = instance.watch(LIMIT, &interrupt, &mut console)?;
    let failed = console.failed;
    close(guard, terminal);
    match (failed, ended.how) {
        (Some(error), _) => Err(error),
        (None, Ending::Done) => Ok(exit::DONE),
        (None, Ending::Stopped) => Ok(exit::INTERRUPTED),
        (None, Ending::Failed { why }) => Err(CommandError::Image {
            image: arguments.image.clone(),
            why,
        }),
        (None, Ending::TimedOut { doing }) => Err(CommandError::Image {
            image: arguments.image.clone(),
            why: doing.unwrap_or_else(|| "it ran for a year".to_owned()),
        }),
    }
}

/// Prints the lines of the image.
struct Console<'a> {
    terminal: &'a Terminal,
    interrupt: &'a Interrupt,
    /// Why printing ended, if it did.
    failed: Option<CommandError>,
}

impl Watcher for Console<'_> {
    fn line(&mut self, line: &[u8], _at_ns: u64) {
        let text = String::from_utf8_lossy(line);
        if self.failed.is_none()
            && let Err(error) = self.terminal.print(text.trim_end_matches('\r'))
        {
            self.failed = Some(error);
            self.interrupt.request_stop();
        }
    }

    fn tick(&mut self) -> Option<Duration> {
        // There is no cell to be finished: the first Ctrl-C ends it. The signal itself wakes up who
        // watches, so no time has to be given.
        if self.interrupt.finish_requested() {
            self.interrupt.request_stop();
        }
        None
    }
}
