//! What a run starts or changes on the host, and how it is undone.
//!
//! A measurement leaves its mark on the machine: it starts processes, fills scratch folders, turns
//! off a frequency governor. Whatever of that stays behind disturbs the *next* measurement, without
//! anybody noticing. So nothing is started or changed except through a [`Guard`], which undoes it
//! on success, on an error, during a panic and after Ctrl-C; and which writes down beforehand what
//! it is about to do, so that [`sweep()`], called first by every command, can clean up after a
//! `kill -9` or a crash.
//!
//! # What is ours
//!
//! Undoing must never touch what somebody else started or set. Every guard therefore has an
//! [`OwnerId`], unique over processes and boots, and acts only on proof:
//!
//! * a **process** is ours if it is a child that the guard has not reaped yet, is in the process
//!   group of such a child, or carries the id in [`OWNER_VARIABLE`] in its environment (children
//!   hand it down to all their descendants);
//! * a **folder** is ours if its name ends with the id and it belongs to our user;
//! * a **control group** is ours if its name ends with the id; what runs in it is ours with it;
//! * a **container** or **image** is ours if its label [`OWNER_LABEL`] is the id;
//! * a **setting** is ours as long as it still has the value that we wrote.
//!
//! Whether the owner of a journal is alive is decided by a lock that the kernel drops when the
//! owner dies, never by a process id, which may have been given to somebody else.
//!
//! # A tour
//!
//! `guard` is the type that a run holds, `owned` has one file for each kind of owned thing,
//! `record` is what `journal`, the file format, says of them, `sweep` the clean-up after an owner
//! that died, `processes` finds and ends processes by their mark, `remove_tree` removes folders
//! without leaving them, `claim` tells other runs which CPUs are measured, `hierarchies` finds
//! where control groups can be made, `mounts` gives a command mounts that end with it, `spawner` is
//! the one thread that forks, `exec` starts programs from any thread at the least cost, [`signals`]
//! turns Ctrl-C into questions that a run loop can ask, and bounds all waits, `streams` knows whether
//! there was a standard output.
//!
//! Needs Linux 5.3 or later, for pidfds.
//!
//! # What it cannot see
//!
//! After a `kill -9`, a grandchild that has left nothing by which to know it is not found: one that
//! was started with a cleared environment, that overwrote its environment area (some servers do,
//! to show a title in `ps`), or that runs under another user through a set-user-ID program, unless
//! it was started in a control group. While the guard lives such a process still ends with its
//! process group.

mod claim;
mod error;
mod exec;
mod guard;
mod hierarchies;
mod journal;
mod lines;
mod mounts;
mod options;
mod owned;
mod owner;
mod processes;
mod record;
mod remove_tree;
mod report;
pub mod signals;
mod spawner;
mod state_dir;
mod streams;
mod sweep;
mod threads;

pub use claim::{Claim, CpuClaim, claims};
pub use error::GuardError;
pub use exec::{Exec, ResourceUsage, Started};
pub use guard::Guard;
pub use lines::Lines;
pub use mounts::{MountNamespace, PrivateMount, private_mounts};
pub use options::Options;
pub use owned::cgroup::{CgroupEntry, OwnedCgroup};
pub use owned::child::OwnedChild;
pub use owned::children::OwnedChildren;
pub use owned::engine::{OWNER_LABEL, OwnedAtEngine};
pub use owned::scratch::ScratchDir;
pub use owned::setting::Setting;
pub use owner::{OWNER_VARIABLE, OwnerId};
pub use report::{SweepReport, UndoReport, Undone};
pub use signals::{Interrupt, Patience};
pub use state_dir::default_state_dir;
pub use streams::stdout_was_closed;
pub use sweep::{sweep, sweep_with};
pub use tare_host::CgroupVersion;
pub use threads::raise_priority;
