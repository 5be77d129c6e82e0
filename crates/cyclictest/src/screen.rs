//! The status lines, redrawn in place while the threads measure.

use std::fs;

use tare_wire::cpus::Cpus;
use tare_wire::record::Live;

use crate::format::{State, cpus, first_lines, height, intervals, policy, status};
use crate::settings::Settings;
use crate::summary::Summary;

/// The state of the status lines.
pub struct Screen<'a> {
    settings: &'a Settings<'a>,
    threads: Vec<State>,
    /// Whether the state has changed since it was drawn.
    has_news: bool,
    has_drawn: bool,
    /// The greatest latency that was drawn.
    drawn_max_ns: u64,
}

impl<'a> Screen<'a> {
    /// Prepares the lines of all threads.
    pub fn new(settings: &'a Settings<'a>) -> Self {
        let plan = &settings.plan;
        let state = |number| State {
            number,
            priority: plan.priority_of(number),
            interval_ns: plan.interval_of(number),
            ..State::default()
        };
        Self {
            settings,
            threads: (0..plan.threads).map(state).collect(),
            has_news: false,
            has_drawn: false,
            drawn_max_ns: 0,
        }
    }

    /// Returns the text before the first wake-up.
    pub fn begin(&mut self, latency_held: bool) -> String {
        self.has_news = true;
        let is_verbose = self.settings.arguments.output.verbose;
        if self.settings.is_json_only() {
            return String::new();
        }
        let mut head = String::new();
        if is_verbose {
            head += &cpus(count("present"), count("online"));
        }
        if latency_held {
            head += first_lines();
        }
        if is_verbose {
            head += &intervals(&self.threads);
        }
        head
    }

    /// Updates the state of a thread.
    pub fn update(&mut self, live: &Live) {
        let place = usize::try_from(live.set).unwrap_or(usize::MAX);
        let Some(state) = self.threads.get_mut(place) else {
            return;
        };
        *state = State {
            tid: live.tid,
            woken: live.n,
            min_ns: live.min,
            last_ns: live.last,
            mean_ns: live.sum.checked_div(live.n).unwrap_or(0),
            max_ns: live.max,
            ..*state
        };
        self.has_news |=
            !self.settings.arguments.output.refresh_on_max || self.max_ns() > self.drawn_max_ns;
    }

    /// Returns the status lines if they have changed, and the number of lines that they replace.
    pub fn draw(&mut self) -> Option<(usize, String)> {
        if self.settings.is_quiet() || !std::mem::take(&mut self.has_news) {
            return None;
        }
        self.drawn_max_ns = self.max_ns();
        let unit = self.settings.unit;
        let lines = self.threads.iter().map(|state| status(state, unit));
        Some(self.over(lines.collect()))
    }

    /// Returns the final status lines, and the number of lines that they replace.
    pub fn last(&mut self, summary: &Summary<'_>) -> Option<(usize, String)> {
        (!self.settings.is_quiet()).then(|| self.over(summary.status_lines(self)))
    }

    /// Returns the latency that a thread reported last.
    pub(crate) fn last_ns(&self, number: u32) -> u64 {
        let state = self.threads.iter().find(|state| state.number == number);
        state.map_or(0, |state| state.last_ns)
    }

    fn max_ns(&self) -> u64 {
        let all = self.threads.iter().map(|state| state.max_ns);
        all.max().unwrap_or(0)
    }

    fn over(&mut self, lines: String) -> (usize, String) {
        let loadavg = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let policy = policy(self.settings.plan.policy.name(), &loadavg);
        let replaced = match std::mem::replace(&mut self.has_drawn, true) {
            true => height(self.threads.len()),
            false => 0,
        };
        (replaced, policy + &lines)
    }
}

/// Returns how many CPUs are present, or online; 1 if the kernel does not show it.
fn count(which: &str) -> u32 {
    let list = fs::read_to_string(format!("/sys/devices/system/cpu/{which}"));
    let cpus = list.ok().and_then(|list| Cpus::parse(list.trim()));
    cpus.map_or(1, |cpus| cpus.count())
}
