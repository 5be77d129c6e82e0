//! What the journal says about things that a guard owns: enough for somebody else to undo it later.

use serde::{Deserialize, Serialize};

/// The journal's entry for an owned thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Record {
    Child(ChildRecord),
    Scratch(ScratchRecord),
    Setting(SettingRecord),
    Cgroup(CgroupRecord),
    /// One for threads of others, which are moved back.
    CgroupOfOthers(CgroupRecord),
    Engine(EngineRecord),
}

/// The journal's entry for a child. The program's name is for people: the child is known by
/// its mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChildRecord {
    pub(crate) program: String,
}

/// The journal's entry for a scratch folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ScratchRecord {
    pub(crate) path: String,
}

/// The journal's entry for a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettingRecord {
    pub(crate) path: String,
    pub(crate) before: String,
    pub(crate) wanted: String,
    /// The value that was read back after writing; `None` if the owner died before it was recorded.
    pub(crate) after: Option<String>,
}

/// The journal's entry for a control group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CgroupRecord {
    pub(crate) name: String,
    /// The folders in one or several of which it may have been made.
    pub(crate) parents: Vec<String>,
}

/// The journal's entry for an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EngineRecord {
    pub(crate) socket: String,
}

impl Record {
    /// Returns whether the thing runs by itself.
    ///
    /// Such things are ended first, whatever the order in which they were made: a process that
    /// still writes would refill the folder that is being removed.
    pub(crate) fn runs(&self) -> bool {
        match self {
            Record::Child(_) | Record::Cgroup(_) | Record::Engine(_) => true,
            Record::Scratch(_) | Record::Setting(_) | Record::CgroupOfOthers(_) => false,
        }
    }

    /// Returns whether the thing is still there after the machine was restarted.
    pub(crate) fn survives_restart(&self) -> bool {
        match self {
            Record::Scratch(_) | Record::Engine(_) => true,
            Record::Child(_)
            | Record::Cgroup(_)
            | Record::CgroupOfOthers(_)
            | Record::Setting(_) => false,
        }
    }
}

/// Puts things into the order in which they are undone: first what runs, then the rest, each in
/// the reverse of the order in which it was made.
pub(crate) fn undoing_order<T>(things: &mut [T], runs: impl Fn(&T) -> bool) {
    things.reverse();
    things.sort_by_key(|thing| !runs(thing));
}
