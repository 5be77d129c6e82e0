//! Everything that can go wrong when things are owned and undone.

use std::io;
use std::path::PathBuf;

use crate::claim::Claim;
use crate::owner::OwnerId;

/// Says what could not be done, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// There is no folder for journals: neither of the usual variables is set.
    #[error(
        "no folder for the journal: neither XDG_STATE_HOME nor HOME is set to an absolute path; set \
         TARE_STATE_DIR to a folder on a local disk"
    )]
    NoStateDir,

    /// The system refuses something that is needed to own or to undo a thing.
    #[error("cannot {action}: {source}{advice}")]
    Io {
        /// The attempted action, and its place.
        action: String,
        /// The reason.
        source: io::Error,
        /// What to do about it, as text that starts with a semicolon, or nothing.
        advice: &'static str,
    },

    /// Somebody else could have written into the folder for journals, so it is not believed.
    #[error(
        "the journal folder {path} is not safe to use: {why}; give it to your user with mode 0700, \
         or set TARE_STATE_DIR to another folder"
    )]
    StateDirUnsafe {
        /// The folder.
        path: PathBuf,
        /// Who else could write there.
        why: String,
    },

    /// A journal of an earlier run has invalid lines. It has been put aside.
    #[error(
        "a journal is damaged at line {line} ({why}) and was kept as {path}; what it still recorded was \
         undone except settings{settings}; look at the file, undo by hand what else it names, then \
         delete it"
    )]
    JournalDamaged {
        /// Where it is now.
        path: PathBuf,
        /// The first line that could not be read, counted from 1.
        line: usize,
        /// The reason.
        why: String,
        /// Settings it names, as text that starts with a colon, or nothing.
        settings: String,
    },

    /// A journal of an earlier run was written in a later format. It is left alone.
    #[error(
        "the journal {path} was written by a newer tare (format {version}); run that version's \
         `tare clean`"
    )]
    JournalNewer {
        /// The journal.
        path: PathBuf,
        /// Its format.
        version: u32,
    },

    /// A journal belongs to another machine or container that shares this folder. It is left alone.
    #[error(
        "the journal {path} was left by a run on {host}; run `tare clean` there, or delete the file \
         if that machine or container no longer exists"
    )]
    JournalElsewhere {
        /// The journal.
        path: PathBuf,
        /// The host name that the run saw.
        host: String,
    },

    /// A program could not be started.
    #[error("cannot start {program}: {source}; check that it is installed and executable")]
    Spawn {
        /// The program as it was asked for.
        program: String,
        /// The reason.
        source: io::Error,
    },

    /// Processes of ours are still there after they were killed.
    #[error(
        "still running after SIGKILL: {}; a process that waits for a device cannot end, and one of \
         another user is not ours to kill: see `ps -o pid,user,stat,wchan,args -p {}`",
        list(pids, ", "),
        list(pids, ",")
    )]
    ProcessesRemain {
        /// Their process ids.
        pids: Vec<i32>,
    },

    /// A scratch folder's name may only have letters, digits, dots, hyphens and underscores.
    #[error(
        "{prefix:?} cannot begin a folder's name: use 1 to 64 of the letters A-Z a-z 0-9 . - _"
    )]
    ScratchPrefix {
        /// The value that was asked for.
        prefix: String,
    },

    /// A scratch folder is not what was left there, so it is not touched.
    #[error("{path} is left alone: {why}; look at it, and remove it by hand")]
    ScratchRefused {
        /// The folder or what is in it.
        path: PathBuf,
        /// The difference.
        why: &'static str,
    },

    /// No mounted hierarchy of control groups has this controller, or it was not asked for.
    #[error(
        "no control group with the controller {controller}: its hierarchy is not mounted or it was \
         not asked for (see /proc/cgroups)"
    )]
    NoController {
        /// The controller.
        controller: String,
    },

    /// A control group of a journal is not ours.
    #[error("the control group {name} is left alone: {why}")]
    CgroupRefused {
        /// Its name.
        name: String,
        /// The difference.
        why: &'static str,
    },

    /// Containers and images of ours may be left at an engine that can't be asked.
    #[error(
        "containers and images may be left at the engine behind {socket}: {why}; start it, then type \
         `tare clean`"
    )]
    Engine {
        /// Its socket.
        socket: String,
        /// Why not.
        why: String,
    },

    /// This file is not a setting, or not one that could be put back.
    #[error("{path} is not changed: {why}")]
    SettingRefused {
        /// The file.
        path: PathBuf,
        /// The rule that it breaks.
        why: &'static str,
    },

    /// Another run has changed this setting and not yet put it back.
    #[error(
        "{path} is held by another run ({owner}), and only one at a time can know what to put back; \
         wait for it to end, then try again"
    )]
    SettingInUse {
        /// The file.
        path: PathBuf,
        /// The other run.
        owner: OwnerId,
    },

    /// A run with another state folder, or another program, holds the lock of this setting's file.
    #[error(
        "{path} is locked by another program, probably a run with another TARE_STATE_DIR (see \
         `fuser -v {path}`); wait for it to end, then try again"
    )]
    SettingLocked {
        /// The file.
        path: PathBuf,
    },

    /// Another process has kept all settings locked for ten seconds, which should take it
    /// milliseconds.
    #[error(
        "settings are locked by another tare process that makes no progress ({path}); see whether one \
         is stopped (`fuser -v {path}`), continue or kill it, then try again"
    )]
    SettingsBusy {
        /// The file whose lock it holds.
        path: PathBuf,
    },

    /// Another run measures on this CPU.
    #[error("the run {} (process {}) measures there", .0.run, .0.pid)]
    CpuInUse(Box<Claim>),

    /// The kernel accepted a value and yet the setting did not change.
    #[error(
        "{path} was set to {wanted:?} and still reads {found:?}; this kernel does not let it be changed"
    )]
    SettingNoEffect {
        /// The file.
        path: PathBuf,
        /// The value that was written.
        wanted: String,
        /// The value that it kept.
        found: String,
    },

    /// A setting was put back, but reads differently.
    #[error("{path} was put back to {before:?} but reads {found:?}; set it by hand")]
    SettingNotRestored {
        /// The file.
        path: PathBuf,
        /// The value that it had before the run.
        before: String,
        /// The value that it has now.
        found: String,
    },
}

fn list(pids: &[i32], separator: &str) -> String {
    let texts: Vec<String> = pids.iter().map(ToString::to_string).collect();
    texts.join(separator)
}

impl GuardError {
    /// Says that the system refuses something.
    pub(crate) fn io(
        action: impl Into<String>,
        source: impl Into<io::Error>,
        advice: &'static str,
    ) -> GuardError {
        GuardError::Io {
            action: action.into(),
            source: source.into(),
            advice,
        }
    }

    /// Says that a fact about this host which identifies owners cannot be read.
    pub(crate) fn host(what: &str, source: impl Into<io::Error>) -> GuardError {
        let advice = "; tare needs /proc mounted to know what it owns";
        GuardError::io(format!("read {what}"), source, advice)
    }

    /// Says that the kernel refuses what is asked of one of its files.
    pub(crate) fn kernel(action: String, source: io::Error) -> GuardError {
        let advice = match source.kind() {
            io::ErrorKind::PermissionDenied => "; run as root, or do without",
            io::ErrorKind::NotFound => "; this kernel does not have it",
            io::ErrorKind::InvalidInput => "; this kernel does not know that value",
            _ => "",
        };
        GuardError::io(action, source, advice)
    }
}
