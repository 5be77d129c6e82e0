//! Published studies: their figures, their claims, and which of them a run reproduces.
//!
//! A claim is a result of a study, put as a question that figures can answer. It is *reproduced*,
//! *not reproduced*, or *inconclusive*, each with its figures: a run on an emulator, or without one
//! of the compared systems, answers nothing, and says so. Claims are derived from the run folder,
//! which holds the study's text, so `tare report` regenerates them.
//!
//! Each study is a file. One whose experiment tare does not have yet lists its claims all the same.

mod table;

use schemars::JsonSchema;
use serde::Serialize;

pub use table::PublishedTable;

use crate::group::grouped;
use crate::mark::Mark;
use crate::run::Run;
use tare_stats::OverRuns;

/// What published figures are put under that the run has nothing for.
const NO_TARGET: &str = "no target of this run";

/// Describes a published study.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// Its short name.
    pub name: &'static str,
    /// Its question.
    pub question: &'static str,
    /// Its findings.
    pub claims: &'static [Claim],
    /// Its figures: title, and CSV with a comment as its first line.
    pub tables: &'static [(&'static str, &'static str)],
    /// How to read its figures next to those of a run; empty if there are none.
    pub note: &'static str,
    /// Compares its figures with those of a run.
    pub compare: fn(&Run, &[PublishedTable]) -> Vec<Comparison>,
}

/// A finding of a study.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The claim, in the study's sense.
    pub text: &'static str,
    /// Answers it from a run.
    pub tell: fn(&Run) -> Answered,
}

impl Claim {
    /// Makes a claim.
    #[must_use]
    pub const fn new(text: &'static str, tell: fn(&Run) -> Answered) -> Self {
        Self { text, tell }
    }
}

/// The answer to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The run shows what the study found.
    Reproduced,
    /// The run shows otherwise.
    NotReproduced,
    /// The run can't show it either way.
    CannotBeTold,
}

/// The answer to a claim, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// The answer.
    pub answer: Answer,
    /// The figures that it follows from, or why there is none.
    pub why: String,
    /// Whether it is inconclusive because an emulator executed the measured code: KVM would change
    /// that.
    pub needs_kvm: bool,
}

/// A claim's finding in a run, or the reason why it is inconclusive there; a [`Finding`] is made of
/// both.
pub type Answered = Result<Finding, Inconclusive>;

/// The reason why a claim is inconclusive.
#[derive(Clone, Debug)]
pub struct Inconclusive {
    why: String,
    needs_kvm: bool,
}

impl Inconclusive {
    /// Says that an emulator executed what KVM or a machine has to.
    #[must_use]
    pub fn emulated(why: String) -> Self {
        Self {
            why,
            needs_kvm: true,
        }
    }

    /// Puts a text before the reason.
    #[must_use]
    pub fn after(mut self, text: &str) -> Self {
        self.why.insert_str(0, text);
        self
    }
}

impl From<String> for Inconclusive {
    fn from(why: String) -> Self {
        Self {
            why,
            needs_kvm: false,
        }
    }
}

impl From<&str> for Inconclusive {
    fn from(why: &str) -> Self {
        why.to_owned().into()
    }
}

/// A published study, as a run answers it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Reproduction {
    /// The study's short name.
    pub study: String,
    /// Its question.
    pub question: String,
    /// Whether the shorter variant ran, whose intervals are wider.
    pub quick: bool,
    /// Its claims with what came of them.
    pub claims: Vec<ClaimFigure>,
    /// Published figures next to those of the run.
    pub comparisons: Vec<Comparison>,
    /// How to read published figures next to those of the run; empty if there are none.
    pub note: String,
    /// Its figures as published.
    pub tables: Vec<PublishedTable>,
}

/// A claim with its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ClaimFigure {
    /// The claim, in the study's sense.
    pub claim: String,
    /// The answer.
    #[serde(flatten)]
    pub finding: Finding,
}

/// A published figure next to one of the run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// The quantity.
    pub what: String,
    /// As published.
    pub published: String,
    /// The target that was measured here, or both that are compared; null if there is none.
    pub target: Option<String>,
    /// The figure measured here, or why there is none.
    pub here: String,
    /// The same as it is drawn.
    #[serde(skip)]
    pub drawn: Vec<Drawn>,
}

/// A published figure next to that of a target, in one of the pictures of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The title of the picture: `Mean duration`.
    pub picture: &'static str,
    /// The title of its axis, with the unit: `duration, cycles`.
    pub across: &'static str,
    /// The attributes that its row shares with others; empty if there are none.
    pub group: String,
    /// The name of its row.
    pub name: String,
    /// The published figure, and how it is written.
    pub published: (f64, String),
    /// The figure of the target.
    pub here: Mark,
}

impl Reproduction {
    /// Says how many claims are reproduced:
    /// `kot-2019: 1 claim reproduced, 1 not, 5 inconclusive without KVM.`
    #[must_use]
    pub(crate) fn in_short(&self) -> String {
        let count = |of: &dyn Fn(&ClaimFigure) -> bool| {
            let claims = self.claims.iter().filter(|claim| of(claim));
            claims.count()
        };
        let answered = |answer| count(&|claim| claim.finding.answer == answer);
        let reproduced = match answered(Answer::Reproduced) {
            0 => "no claim reproduced".to_owned(),
            1 => "1 claim reproduced".to_owned(),
            many => format!("{many} claims reproduced"),
        };
        let needs_kvm = count(&|claim| claim.finding.needs_kvm);
        let parts = [
            (answered(Answer::NotReproduced), "not"),
            (needs_kvm, "inconclusive without KVM"),
            (answered(Answer::CannotBeTold) - needs_kvm, "inconclusive"),
        ];
        let others = parts.iter().filter(|(number, _)| *number > 0);
        let others: String = others
            .map(|(number, words)| format!(", {number} {words}"))
            .collect();
        format!("{}: {reproduced}{others}.", self.study)
    }

    /// Puts the comparisons of one target together, targets in the order in which they come.
    #[must_use]
    pub fn by_target(&self) -> Vec<(&str, Vec<&Comparison>)> {
        let comparisons = self.comparisons.iter();
        grouped(comparisons.map(|of| (of.target.as_deref().unwrap_or(NO_TARGET), of)))
    }
}

impl Published {
    /// Returns its figures.
    #[must_use]
    pub fn parsed(&self) -> Vec<PublishedTable> {
        let tables = self.tables.iter();
        tables
            .map(|(title, csv)| PublishedTable::parse(title, csv))
            .collect()
    }

    /// Answers its claims from a run.
    pub(crate) fn of(&self, run: &Run) -> Reproduction {
        let claims = self.claims.iter().map(|claim| ClaimFigure {
            claim: claim.text.to_owned(),
            finding: (claim.tell)(run).into(),
        });
        Reproduction {
            study: self.name.to_owned(),
            question: self.question.to_owned(),
            quick: run.plan.study.as_ref().is_some_and(|study| study.quick),
            claims: claims.collect(),
            comparisons: (self.compare)(run, &self.parsed()),
            note: self.note.to_owned(),
            tables: self.parsed(),
        }
    }
}

impl Answer {
    /// Says it as reports do.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::NotReproduced => "not reproduced",
            Self::CannotBeTold => "inconclusive",
        }
    }
}

impl From<Answered> for Finding {
    fn from(answered: Answered) -> Self {
        answered.unwrap_or_else(cannot)
    }
}

/// Answers a claim by whether it holds, with the figures that the answer follows from.
///
/// # Errors
///
/// None: the result is that of a claim, which others may leave open.
pub fn answer(holds: bool, why: impl Into<String>) -> Answered {
    let answer = match holds {
        true => Answer::Reproduced,
        false => Answer::NotReproduced,
    };
    Ok(answered(answer, why.into().into()))
}

/// Answers whether a figure with an interval lies within a range. With a part of the interval on
/// either side of a limit, the claim is inconclusive.
///
/// # Errors
///
/// Returns the figures, of which that is to be said.
pub fn within([low, high]: [f64; 2], range: [f64; 2], figures: String) -> Answered {
    let holds = range[0] <= low && high <= range[1];
    match holds || high < range[0] || range[1] < low {
        true => answer(holds, figures),
        false => Err(format!("{figures}: the interval holds both answers").into()),
    }
}

/// Returns the least and the greatest ratio of two figures, by the ends of their intervals.
///
/// # Errors
///
/// Returns why one of them has no interval, or one that says nothing of a ratio.
pub fn ratio(part: &OverRuns, whole: &OverRuns) -> Result<[f64; 2], String> {
    let [part, whole] = [part, whole].map(|of| of.interval.map_err(|why| why.to_string()));
    let (part, whole) = (part?, whole?);
    match part.low > 0.0 && whole.low > 0.0 {
        true => Ok([part.low / whole.high, part.high / whole.low]),
        false => Err("the runs differ too much for a ratio: measure more or longer ones".into()),
    }
}

/// Answers that a claim is inconclusive here, and why.
#[must_use]
pub fn cannot(why: impl Into<Inconclusive>) -> Finding {
    answered(Answer::CannotBeTold, why.into())
}

fn answered(answer: Answer, Inconclusive { why, needs_kvm }: Inconclusive) -> Finding {
    Finding {
        answer,
        why,
        needs_kvm,
    }
}

/// Compares nothing, for studies without figures.
#[must_use]
pub fn nothing_to_compare(_: &Run, _: &[PublishedTable]) -> Vec<Comparison> {
    Vec::new()
}
