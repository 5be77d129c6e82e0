//! The end of a long run before its last cell: by a gate that fails, or by an action of `--on`.

use tare_experiments::{catalogue, find};
use tare_figures::gates::Gate;
use tare_guard::Interrupt;
use tare_pages::analyse;
use tare_results::RunFolder;
use tare_results::model::{Cell, CellPlan};

use crate::terminal::Terminal;

/// Decides after each cell whether the run ends.
pub struct Ending<'a> {
    folder: &'a RunFolder,
    gates: &'a [Gate],
    interrupt: &'a Interrupt,
    /// Whether an action asks for the end.
    is_asked: bool,
    /// Whether this has ended the run.
    pub has_ended: bool,
}

impl<'a> Ending<'a> {
    /// Prepares to judge a run by its gates.
    pub fn new(folder: &'a RunFolder, gates: &'a [Gate], interrupt: &'a Interrupt) -> Self {
        Self {
            folder,
            gates,
            interrupt,
            is_asked: false,
            has_ended: false,
        }
    }

    /// Ends the run after this cell, if it is one of a long run.
    pub fn ask(&mut self, cell: &CellPlan) {
        self.is_asked |= is_long(cell);
    }

    /// Ends the run if an action asked for that, or a gate has failed: by all cells so far, as at
    /// the end.
    pub fn look(&mut self, cell: &Cell, terminal: &Terminal) {
        if self.interrupt.finish_requested() || !is_long(&cell.plan) {
            return;
        }
        let has_failed = || {
            let analysis = analyse(self.folder, catalogue()).ok()?;
            let mut judged = self.gates.iter();
            judged.find_map(|gate| {
                let judgement = gate.judge(&analysis, catalogue()).ok()?;
                judgement.is_beyond.then_some(judgement.sentence)
            })
        };
        let why = match (self.is_asked, self.gates) {
            (true, _) => "an action of --on ends the run".to_owned(),
            (false, []) => return,
            (false, _) => match has_failed() {
                Some(sentence) => format!("{sentence} This ends the run."),
                None => return,
            },
        };
        terminal.note(&why);
        self.has_ended = true;
        self.interrupt.request_finish();
    }
}

fn is_long(cell: &CellPlan) -> bool {
    find(&cell.experiment).is_some_and(|experiment| experiment.is_long(cell))
}
