//! `tare noise top`: who interrupts which CPU now.
//!
//! The kernel's events are read each second. Nothing is measured and nothing on the host is changed.
//! Where events can't be recorded, the kernel's counts take their place.

mod view;

use std::time::Duration;

use rustix::process::getpgrp;
use rustix::stdio::stdin;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};
use tare_guard::Interrupt;
use tare_host::Source;
use tare_host::sample::Reading;
use tare_measured::linux::flight::live::Live;
use tare_results::receive::traces;
use tare_wire::cpus::Cpus;
use tare_wire::packed::Malformed;

use self::view::{View, own_ns};
use super::clean_up;
use crate::cli::top::TopArguments;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// The time between two readings.
const TURN: Duration = Duration::from_secs(1);

/// Shows who interrupts which CPU until it is to end.
pub fn run(arguments: &TopArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    clean_up(terminal);
    let interrupt = Interrupt::install()?;
    let source = Source::system();
    let online = source.text("/sys/devices/system/cpu/online");
    let online = online.known().and_then(|text| Cpus::parse(text.trim()));
    let online = online.unwrap_or_default();
    let cpus = arguments.cpu.unwrap_or(online);
    if let Some(cpu) = cpus.without(&online).first() {
        let why = format!("--cpu: CPU {cpu} is not online");
        return Err(CommandError::Usage(why));
    }
    let mut live = Live::open(&cpus).map_err(|why| why.to_string());
    let keys = Keys::open();
    let forever = terminal.height().map_or(1, |_| u64::MAX);
    let (mut reading, mut own_ns) = (Reading::take(&source), own_ns());
    for turn in 0..arguments.count.unwrap_or(forever) {
        if keys.end(&interrupt)? {
            break;
        }
        let before = std::mem::replace(&mut reading, Reading::take(&source));
        let counts = before.until(reading.clone());
        let view = match &mut live {
            Ok(live) => {
                let (trace, recorded) = live.turn();
                let traces = traces(|put| trace.records(0, put).map(drop));
                let why = "the kernel's events contradict each other";
                let traces = traces.map_err(|Malformed| failed(why))?;
                View::of_events(&recorded, &traces, &mut own_ns, &counts, &source)
            }
            Err(why) => View::of_counts(&counts, &cpus, why),
        };
        // The cursor stands below the last line.
        let lines = terminal.height().map(|height| height - 1);
        let text = view.text(terminal.width(), lines);
        match lines {
            Some(lines) => terminal.print_screen(lines, &text)?,
            None if turn == 0 => terminal.print(&text)?,
            None => terminal.print(&format!("\n{text}"))?,
        }
    }
    Ok(exit::DONE)
}

fn failed(why: impl ToString) -> CommandError {
    CommandError::Measurement(why.to_string())
}

/// A terminal whose keys come at once and are not shown, until this is dropped.
struct Keys(Option<Termios>);

impl Keys {
    /// Takes the keys, if this process is in the foreground of a terminal.
    fn open() -> Self {
        let is_ours = tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp());
        let before = tcgetattr(stdin()).ok().filter(|_| is_ours);
        if let Some(before) = &before {
            let mut now = before.clone();
            now.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            now.special_codes[SpecialCodeIndex::VMIN] = 0;
            now.special_codes[SpecialCodeIndex::VTIME] = 0;
            let _ = tcsetattr(stdin(), OptionalActions::Now, &now);
        }
        Self(before)
    }

    /// Waits for a turn, a key or Ctrl-C. Returns whether it is to end.
    fn end(&self, interrupt: &Interrupt) -> Result<bool, CommandError> {
        let (others, has_keys) = ([stdin()], self.0.is_some());
        let waited = interrupt.wait(&others[..usize::from(has_keys)], TURN);
        waited.map_err(failed)?;
        let mut keys = [0; 64];
        let has_read = has_keys && rustix::io::read(stdin(), &mut keys).map_err(failed)? > 0;
        Ok(interrupt.finish_requested() || has_read && keys.contains(&b'q'))
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(stdin(), OptionalActions::Now, before);
        }
    }
}
