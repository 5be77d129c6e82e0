//! What was undone, told in a way that a program can count and a person can read.

use std::fmt;
use std::path::PathBuf;

use crate::error::GuardError;

/// One thing that was undone, or found to need no undoing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Undone {
    /// A process of ours was still running and was killed.
    ProcessKilled {
        /// Its process id.
        pid: i32,
        /// The name of its program.
        name: String,
    },
    /// A scratch folder was removed with all that was in it.
    ScratchRemoved {
        /// The folder.
        path: PathBuf,
    },
    /// A control group was removed.
    CgroupRemoved {
        /// Its name.
        name: String,
    },
    /// A container was removed.
    ContainerRemoved {
        /// Its id.
        id: String,
    },
    /// An image of containers was removed.
    ImageRemoved {
        /// Its id.
        id: String,
    },
    /// A setting was put back.
    SettingRestored {
        /// The file.
        path: PathBuf,
        /// The value that it has again.
        value: String,
    },
    /// A setting was changed by somebody else after us, so it was left alone.
    SettingLeftAlone {
        /// The file.
        path: PathBuf,
        /// The value that it has now.
        found: String,
        /// The value that it had before the run.
        before: String,
    },
    /// A setting no longer exists: a module was unloaded, a CPU taken away.
    SettingGone {
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Display for Undone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undone::ProcessKilled { pid, name } => write!(f, "killed process {pid} ({name})"),
            Undone::ScratchRemoved { path } => {
                write!(f, "removed the scratch folder {}", path.display())
            }
            Undone::CgroupRemoved { name } => write!(f, "removed the control group {name}"),
            Undone::ContainerRemoved { id } => write!(f, "removed the container {id}"),
            Undone::ImageRemoved { id } => write!(f, "removed the image {id}"),
            Undone::SettingRestored { path, value } => {
                write!(f, "put {} back to {value:?}", path.display())
            }
            Undone::SettingLeftAlone {
                path,
                found,
                before,
            } => write!(
                f,
                "{} was changed to {found:?} by somebody else since; left alone (it was {before:?} \
                 before the run)",
                path.display()
            ),
            Undone::SettingGone { path } => {
                write!(
                    f,
                    "{} no longer exists, so it was not put back",
                    path.display()
                )
            }
        }
    }
}

/// The things that a guard undid, in that order, and those that it could not undo.
#[derive(Debug, Default)]
pub struct UndoReport {
    /// The things that were undone.
    pub undone: Vec<Undone>,
    /// What could not be undone. It stays in the journal, and each [`sweep`](crate::sweep) tries
    /// again.
    pub problems: Vec<GuardError>,
}

impl UndoReport {
    /// Returns whether all could be undone.
    pub fn is_complete(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns whether there was nothing to undo and nothing went wrong.
    pub fn is_empty(&self) -> bool {
        self.undone.is_empty() && self.problems.is_empty()
    }

    /// Describes it to a person: one sentence per thing undone, then one per problem.
    pub fn sentences(&self) -> Vec<String> {
        let problems = self.problems.iter().map(ToString::to_string);
        let undone = self.undone.iter().map(ToString::to_string);
        undone.chain(problems).collect()
    }
}

/// The result of a sweep.
#[derive(Debug, Default)]
pub struct SweepReport {
    /// Runs that had ended without cleaning up, and whose things are now all undone.
    pub cleaned: usize,
    /// Runs that are going on; nothing of theirs was touched.
    pub live: usize,
    /// Runs that ended without cleaning up and of which something is left: see the problems.
    pub kept: usize,
    /// The things that were undone, and those that could not be.
    pub undo: UndoReport,
    /// The things that could again not be undone, and that a person has seen before.
    pub told: Vec<GuardError>,
}

impl SweepReport {
    /// Returns whether a person needs to hear of it.
    pub fn is_quiet(&self) -> bool {
        self.cleaned == 0 && self.kept == 0 && self.undo.is_empty()
    }

    /// Describes it to a person: a summary, one sentence per thing undone, one per problem; nothing
    /// if there is nothing to tell.
    pub fn sentences(&self) -> Vec<String> {
        if self.is_quiet() {
            return Vec::new();
        }
        let runs = |count: usize| match count {
            1 => "1 run".to_owned(),
            _ => format!("{count} runs"),
        };
        let mut summary = format!("cleaned up after {} that ended early", runs(self.cleaned));
        if self.kept > 0 {
            summary += &format!(
                "; {} could not be undone completely; `tare clean` retries and lists them",
                runs(self.kept)
            );
        }
        std::iter::once(summary)
            .chain(self.undo.sentences())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_with_nothing_to_do_says_nothing() {
        assert!(
            SweepReport {
                live: 2,
                ..SweepReport::default()
            }
            .sentences()
            .is_empty()
        );
    }

    #[test]
    fn a_sweep_tells_what_it_did_and_what_is_left() {
        let undone = vec![
            Undone::ProcessKilled {
                pid: 7,
                name: "sleep".into(),
            },
            Undone::SettingLeftAlone {
                path: "/proc/sys/vm/stat_interval".into(),
                found: "9".into(),
                before: "1".into(),
            },
        ];
        let problems = vec![GuardError::ProcessesRemain { pids: vec![8, 9] }];
        let undo = UndoReport { undone, problems };
        assert!(!undo.is_complete());
        let report = SweepReport {
            cleaned: 1,
            live: 0,
            kept: 2,
            undo,
            told: Vec::new(),
        };
        let told = report.sentences();
        assert_eq!(told.len(), 4);
        assert_eq!(
            told[0],
            "cleaned up after 1 run that ended early; 2 runs could not be undone completely; `tare clean` \
             retries and lists them"
        );
        assert_eq!(told[1], "killed process 7 (sleep)");
        assert!(told[3].contains("-p 8,9"));
    }
}
