//! What can be wrong with a load, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tare_wire::phases::MAX_PHASES;

use crate::tools::Tool;

/// Says why a text names no load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecError {
    /// No load has this name.
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The load takes no words.
    TakesNothing {
        /// Its name.
        name: &'static str,
    },
    /// The load needs words.
    NeedsWords {
        /// Its name.
        name: &'static str,
        /// An example.
        example: &'static str,
    },
    /// One of its words can't be used.
    BadWord {
        /// Name of the load.
        name: &'static str,
        /// The word.
        word: String,
        /// Why not, and what to do.
        why: &'static str,
    },
    /// A load stands twice.
    Twice {
        /// The load.
        part: String,
    },
    /// `idle` is joined to another load.
    IdleJoined,
    /// The CPUs are no list.
    BadCpus {
        /// What was given.
        text: String,
    },
    /// The phases have no possible length.
    PhaseLength {
        /// What was given.
        text: String,
    },
    /// There are too many phases, or none.
    PhaseNumber {
        /// How many.
        number: usize,
    },
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name } => {
                let known: Vec<&str> = crate::kinds::KINDS.iter().map(|k| k.usage).collect();
                write!(
                    f,
                    "there is no load '{name}'; known: {}; several are joined by +",
                    known.join(", ")
                )
            }
            Self::TakesNothing { name } => {
                write!(f, "the load '{name}' takes no words after a colon")
            }
            Self::NeedsWords { name, example } => {
                write!(
                    f,
                    "the load '{name}' needs words after a colon, such as {example}"
                )
            }
            Self::BadWord { name, word, why } => {
                write!(f, "the load '{name}' can't have the word '{word}': {why}")
            }
            Self::Twice { part } => write!(f, "the load '{part}' stands twice"),
            Self::IdleJoined => write!(f, "'idle' is no load, so it can't be joined to one"),
            Self::BadCpus { text } => write!(
                f,
                "'{text}' are no CPUs for a load: want all, others (all but the measured one) or a \
                 list such as 0-2,5"
            ),
            Self::PhaseLength { text } => write!(
                f,
                "'{text}' is no length of a phase: want 1ms to 31 days of all phases together, as a whole \
                 number with the unit ns, us, ms or s"
            ),
            Self::PhaseNumber { number } => write!(
                f,
                "{number} phases are too {}: want 1 to {MAX_PHASES}",
                if *number == 0 { "few" } else { "many" }
            ),
        }
    }
}

impl std::error::Error for SpecError {}

/// Says why a load can't run, or could not go on.
#[derive(Debug)]
pub enum Trouble {
    /// The driver's own words make no sense.
    Usage(String),
    /// A tool is in no folder of `PATH`.
    MissingTool(Tool),
    /// The load takes root.
    NeedsRoot {
        /// Name of the load.
        load: &'static str,
        /// What takes root.
        why: &'static str,
    },
    /// The loopback device is down.
    NoLoopback {
        /// Name of the load.
        load: &'static str,
    },
    /// None of the CPUs can be used.
    NoCpu {
        /// Those that were asked for.
        asked: String,
        /// Those that this process may use.
        allowed: String,
    },
    /// The scratch folder is too small.
    NoRoom {
        /// The folder.
        dir: PathBuf,
        /// What it may hold, in bytes.
        room: u64,
        /// What the load needs, in bytes.
        need: u64,
    },
    /// A tool wrote more than it may.
    OverLimit {
        /// The folder.
        dir: PathBuf,
        /// What is in it, in bytes.
        found: u64,
        /// What it may hold, in bytes.
        limit: u64,
    },
    /// A tool ended that should not have, or as it should not have.
    Ended {
        /// The tool.
        tool: String,
        /// How, and what it said.
        how: String,
    },
    /// Nobody told when the phases begin.
    NeverBegun,
    /// The system refuses something.
    System {
        /// What was tried, as in "can't …".
        what: String,
        /// Why not.
        source: io::Error,
    },
}

impl Trouble {
    /// Wraps an error of the system.
    pub(crate) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let (what, source) = (what.into(), source.into());
        Self::System { what, source }
    }

    /// Wraps an error at a file or folder.
    pub(crate) fn at(what: &str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::system(format!("{what} {}", path.display()), source)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) => f.write_str(text),
            Self::MissingTool(tool) => write!(
                f,
                "the load needs {}, which is in no folder of PATH; Debian's package {} has it",
                tool.program, tool.package
            ),
            Self::NeedsRoot { load, why } => {
                write!(f, "the load '{load}' takes root: {why}")
            }
            Self::NoLoopback { load } => write!(
                f,
                "the load '{load}' speaks to 127.0.0.1, and the loopback device is down: `ip link \
                 set lo up`"
            ),
            Self::NoCpu { asked, allowed } => write!(
                f,
                "the load can't run on CPU {asked}: this process may use {allowed} (its cpuset)"
            ),
            Self::NoRoom { dir, room, need } => write!(
                f,
                "the load's scratch folder {} may hold {} MiB and the load needs {} MiB: make room \
                 there, raise the limit, or choose another place by TMPDIR",
                dir.display(),
                room >> 20,
                need.div_ceil(1 << 20)
            ),
            Self::OverLimit { dir, found, limit } => write!(
                f,
                "the load has put {} MiB into its scratch folder {}, which may hold {} MiB: let it \
                 write less",
                found >> 20,
                dir.display(),
                limit >> 20
            ),
            Self::Ended { tool, how } => write!(f, "the load's {tool} {how}"),
            Self::NeverBegun => f.write_str(
                "the load was not told when its first phase begins: the measurement did not get that far",
            ),
            Self::System { what, source } => write!(f, "the load can't {what}: {source}"),
        }
    }
}

impl std::error::Error for Trouble {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { source, .. } => Some(source),
            _ => None,
        }
    }
}
