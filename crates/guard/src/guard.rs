//! The type that a run holds and that owns all it starts or changes.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::claim::{Claim, CpuClaim, Registry};
use crate::error::GuardError;
use crate::options::Options;
use crate::owned::cgroup::OwnedCgroup;
use crate::owned::child::OwnedChild;
use crate::owned::children::OwnedChildren;
use crate::owned::engine::OwnedAtEngine;
use crate::owned::guarded::Inner;
use crate::owned::scratch::ScratchDir;
use crate::owned::setting::Setting;
use crate::owner::OwnerId;
use crate::record::Record;
use crate::report::UndoReport;

/// Owns what a run starts or changes, and undoes it.
///
/// Each thing has a handle, and is undone when the handle is dropped. Everything else is undone by
/// [`close`](Guard::close), or when the guard is dropped, on a return as well as in a panic: first
/// children, then the rest, each in the reverse of the order in which it was made. A handle that
/// outlives the guard does nothing any more.
///
/// If the process is killed before, [`sweep`](crate::sweep) does the same from the journal.
#[derive(Debug)]
pub struct Guard {
    inner: Arc<Inner>,
}

impl Guard {
    /// Opens a guard whose journal is in a state folder, usually
    /// [`default_state_dir`](crate::default_state_dir).
    ///
    /// # Errors
    ///
    /// If the folder cannot be made, is not this user's alone, or cannot be locked (some network
    /// file systems).
    pub fn open(state_dir: &Path) -> Result<Guard, GuardError> {
        Guard::open_with(state_dir, Options::default())
    }

    /// Opens a guard that acts in other places than the usual ones.
    ///
    /// # Errors
    ///
    /// As [`open`](Guard::open).
    pub fn open_with(state_dir: &Path, options: Options) -> Result<Guard, GuardError> {
        let inner = Inner::open(state_dir, options)?;
        Ok(Guard {
            inner: Arc::new(inner),
        })
    }

    /// Gives the id that all that is owned carries.
    pub fn owner(&self) -> &OwnerId {
        &self.inner.owner
    }

    /// Starts a child in its own process group.
    ///
    /// The child and its descendants find [`OWNER_VARIABLE`](crate::OWNER_VARIABLE) in their
    /// environment. The kernel kills the child when this process dies; descendants are found by
    /// the variable. The command can be used again afterwards.
    ///
    /// A child does not get the terminal's Ctrl-C, since it is not in the terminal's foreground
    /// group; for the same reason it stops if it reads from the terminal, so give it another
    /// standard input. It inherits CPU affinity and scheduling policy from the thread that started
    /// the guard's first child.
    ///
    /// # Errors
    ///
    /// [`GuardError::Spawn`] if the program cannot be executed, [`GuardError::Io`] if it
    /// cannot be announced; nothing is left running then.
    pub fn spawn(&self, command: &mut Command) -> Result<OwnedChild, GuardError> {
        OwnedChild::spawn(&self.inner, command)
    }

    /// Announces children that will be started in great numbers, from any thread. They are owned as
    /// one that [`spawn`](Guard::spawn) starts, but share one mark.
    ///
    /// # Errors
    ///
    /// [`GuardError::Io`] if they can't be announced.
    pub fn children(&self, program: &str) -> Result<OwnedChildren, GuardError> {
        OwnedChildren::announce(&self.inner, program)
    }

    /// Makes an empty scratch folder for this user only.
    ///
    /// It is named `tare-<prefix>-<owner's id>-<number>`.
    ///
    /// # Errors
    ///
    /// [`GuardError::ScratchPrefix`] or [`GuardError::Io`].
    pub fn scratch(&self, prefix: &str) -> Result<ScratchDir, GuardError> {
        ScratchDir::create(&self.inner, prefix)
    }

    /// Makes a control group with the given controllers; with none it only keeps processes
    /// together.
    ///
    /// It is named `tare-<prefix>-<owner's id>-<number>` and stands at the top of each controller's
    /// hierarchy, or in the group of this process where only that is allowed. Its files are those
    /// of version 1 or 2, see [`OwnedCgroup::folder`].
    ///
    /// # Errors
    ///
    /// [`GuardError::NoController`] if this machine lacks one, [`GuardError::Io`] if the
    /// kernel refuses (usually, only root may), [`GuardError::ScratchPrefix`].
    pub fn cgroup(&self, prefix: &str, controllers: &[&str]) -> Result<OwnedCgroup, GuardError> {
        OwnedCgroup::create(&self.inner, prefix, controllers, Record::Cgroup)
    }

    /// Makes a control group for threads that are not ours: when it is dropped, those in
    /// it are moved to the group above instead of being killed.
    ///
    /// # Errors
    ///
    /// As [`cgroup`](Guard::cgroup).
    pub fn cgroup_of_others(
        &self,
        prefix: &str,
        controllers: &[&str],
    ) -> Result<OwnedCgroup, GuardError> {
        OwnedCgroup::create(&self.inner, prefix, controllers, Record::CgroupOfOthers)
    }

    /// Reserves the name of a control group that somebody else makes, such as a container engine:
    /// whatever groups of that name stand at the top of a hierarchy are ours.
    ///
    /// # Errors
    ///
    /// As [`cgroup`](Guard::cgroup).
    pub fn reserve_cgroup(&self, prefix: &str) -> Result<OwnedCgroup, GuardError> {
        OwnedCgroup::reserve(&self.inner, prefix)
    }

    /// Announces that containers and images will be made at the Docker engine behind a socket. They
    /// are ours by their label [`OWNER_LABEL`](crate::OWNER_LABEL).
    ///
    /// # Errors
    ///
    /// [`GuardError::Io`], or [`GuardError::Engine`] if the path is not UTF-8.
    pub fn at_engine(&self, socket: &Path) -> Result<OwnedAtEngine, GuardError> {
        OwnedAtEngine::announce(&self.inner, socket)
    }

    /// Changes a setting of the kernel, a file of one line, until the handle is dropped.
    ///
    /// The file is read back afterwards: [`Setting::value`] is what the kernel made of the value.
    /// Of a file that shows its choices, as in `always [madvise] never`, the value is the word in
    /// brackets.
    ///
    /// # Errors
    ///
    /// [`GuardError::SettingRefused`] if the path is not under one of
    /// [`Options::setting_roots`] or the file is not one line of text that can be read;
    /// [`GuardError::SettingInUse`] or [`GuardError::SettingLocked`] if another run has changed it;
    /// [`GuardError::Io`] or
    /// [`GuardError::SettingNoEffect`] if the kernel refuses. The setting has its old value then.
    pub fn set(&self, path: &Path, value: &str) -> Result<Setting, GuardError> {
        Setting::change(&self.inner, path, value)
    }

    /// Claims the CPUs that a run is going to measure on, and shows other runs for how long.
    ///
    /// # Errors
    ///
    /// [`GuardError::CpuInUse`] if another run measures on one of them, and `share` does not allow
    /// that; [`GuardError::Io`] if the claim can't be written.
    pub fn claim_cpus(
        &self,
        cpus: &[u32],
        run: &str,
        left: Duration,
        share: bool,
    ) -> Result<CpuClaim, GuardError> {
        let registry = Registry::create(&self.inner.options.claims_root)?;
        registry.claim(&self.inner.owner, cpus, run, left, share)
    }

    /// Returns what other runs that can be seen say of the CPUs that they measure on. The module
    /// `claim` has what can't be seen.
    pub fn claims(&self) -> Vec<Claim> {
        let registry = Registry::create(&self.inner.options.claims_root);
        registry.map_or_else(|_| Vec::new(), |all| all.claims(Some(&self.inner.owner)))
    }

    /// Undoes everything that is left and returns what was undone since the guard was opened.
    ///
    /// What cannot be undone stays in the journal for the next [`sweep`](crate::sweep).
    pub fn close(self) -> UndoReport {
        self.inner.close()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        use std::io::Write;
        let report = self.inner.close();
        #[expect(clippy::disallowed_methods, reason = "there is nobody to return it to")]
        let mut stderr = std::io::stderr();
        // Not `eprintln`, which panics if it cannot write.
        for problem in report.problems {
            let problem = problem.to_string();
            let _ = writeln!(stderr, "tare: {}", tare_host::visible_in_line(&problem));
        }
    }
}
