//! What the monitors of guests share: the last lines of a console, and what QEMU's end means.

use std::collections::VecDeque;

/// The last lines of a guest's console.
#[derive(Debug, Default)]
pub(crate) struct Console(VecDeque<String>);

impl Console {
    /// Keep the printable part of a line.
    pub(crate) fn keep(&mut self, text: &str) {
        const LINES: usize = 4;
        const LENGTH: usize = 200;
        let printable = text.chars().filter(|c| !c.is_control());
        let printable: String = printable.take(LENGTH).collect();
        if printable.trim().is_empty() {
            return;
        }
        if self.0.len() == LINES {
            self.0.pop_front();
        }
        self.0.push_back(printable);
    }

    /// Add the last lines to a sentence, or `silence` if there are none.
    pub(crate) fn added_to(&self, what: &str, silence: &str) -> String {
        if self.0.is_empty() {
            return format!("{what}{silence}");
        }
        let lines: Vec<&str> = self.0.iter().map(String::as_str).collect();
        format!("{what}; the last on its console: {}", lines.join(" / "))
    }
}

/// Say why a QEMU ended with status 0. What a reset and a power-off mean depends on the guest.
pub(crate) fn why_ended(reason: Option<&str>, reset: &str, power_off: &str) -> String {
    match reason {
        Some("guest-reset") => reset.to_owned(),
        Some("guest-shutdown") => power_off.to_owned(),
        Some("host-signal") => "QEMU was ended by a signal from somebody".to_owned(),
        Some(other) => format!("QEMU ended for the reason '{other}'"),
        None => "QEMU ended without a reason".to_owned(),
    }
}
