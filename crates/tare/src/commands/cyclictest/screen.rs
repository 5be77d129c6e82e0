//! The status lines, redrawn in place while the threads measure.

use std::fs;

use tare_exchange::export::cyclictest::{
    State, cpus, first_lines, height, intervals, policy, status, status_lines,
};
use tare_wire::cpus::Cpus;
use tare_wire::record::Live;

use super::Taken;
use super::settings::Settings;
use crate::error::CommandError;
use crate::terminal::Terminal;

/// Draws the status lines.
pub struct Screen<'a> {
    terminal: &'a Terminal,
    settings: &'a Settings<'a>,
    /// Whether /dev/cpu_dma_latency is held at 0.
    pub latency_held: bool,
    threads: Vec<State>,
    /// Whether something was told since it was drawn.
    has_news: bool,
    has_drawn: bool,
    /// The greatest latency that was drawn.
    drawn_max_ns: u64,
}

impl<'a> Screen<'a> {
    /// Prepares the lines of all threads.
    pub fn new(settings: &'a Settings<'a>, terminal: &'a Terminal) -> Self {
        let plan = &settings.plan;
        let state = |number| State {
            number,
            priority: plan.priority_of(number),
            interval_ns: plan.interval_of(number),
            ..State::default()
        };
        Self {
            terminal,
            settings,
            latency_held: false,
            threads: (0..plan.threads).map(state).collect(),
            has_news: false,
            has_drawn: false,
            drawn_max_ns: 0,
        }
    }

    /// Prints what comes before the first wake-up.
    pub fn begin(&mut self) -> Result<(), CommandError> {
        let mut head = String::new();
        if self.settings.arguments.output.verbose {
            head += &cpus(count("present"), count("online"));
        }
        if self.latency_held {
            head += first_lines();
        }
        if self.settings.arguments.output.verbose {
            head += &intervals(&self.threads);
        }
        if !head.is_empty() && !self.settings.is_json_only() {
            self.terminal.print(&head)?;
        }
        self.has_news = true;
        self.draw()
    }

    /// Takes the state of a thread.
    pub fn take(&mut self, live: &Live) {
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
        let max = self.threads.iter().map(|state| state.max_ns).max();
        self.has_news |=
            !self.settings.arguments.output.refresh_on_max || max > Some(self.drawn_max_ns);
    }

    /// Draws what was told since the last time.
    pub fn draw(&mut self) -> Result<(), CommandError> {
        if self.settings.is_quiet() || !std::mem::take(&mut self.has_news) {
            return Ok(());
        }
        let lines = self.threads.iter();
        let lines: String = lines
            .map(|state| status(state, self.settings.unit))
            .collect();
        let max = self.threads.iter().map(|state| state.max_ns).max();
        self.drawn_max_ns = max.unwrap_or(0);
        self.over(&lines)
    }

    /// Draws the final state, or prints it if nothing was drawn.
    pub fn last(&mut self, taken: &Taken) -> Result<(), CommandError> {
        match self.settings.is_quiet() {
            true => Ok(()),
            false => self.over(&self.final_lines(taken)),
        }
    }

    /// Returns the status lines of the threads after their end.
    pub fn final_lines(&self, taken: &Taken) -> String {
        let last_ns = |number: u32| {
            let mut threads = taken.threads.iter();
            let thread = threads.find(|latencies| latencies.thread.number == number);
            let last = thread.filter(|latencies| latencies.has_all_raw());
            let told = self.threads.iter().find(|state| state.number == number);
            match last.and_then(|latencies| latencies.raw.last()) {
                Some(event) => event.value,
                None => told.map_or(0, |state| state.last_ns),
            }
        };
        status_lines(&taken.threads, last_ns, self.settings.unit)
    }

    fn over(&mut self, lines: &str) -> Result<(), CommandError> {
        let loadavg = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let policy = policy(self.settings.plan.policy.name(), &loadavg);
        let text = format!("{policy}{lines}");
        match std::mem::replace(&mut self.has_drawn, true) {
            true => self.terminal.print_over(height(self.threads.len()), &text),
            false => self.terminal.print(&text),
        }
    }
}

/// Counts the CPUs that are present, or online; 1 if the kernel does not tell.
fn count(which: &str) -> u32 {
    let list = fs::read_to_string(format!("/sys/devices/system/cpu/{which}"));
    let cpus = list.ok().and_then(|list| Cpus::parse(list.trim()));
    cpus.map_or(1, |cpus| cpus.count())
}
