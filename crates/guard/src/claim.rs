//! Which run measures on which CPU, so that no two disturb each other unawares.
//!
//! Each run that measures has a file in one folder for all users
//! ([`Options::claims_root`](crate::Options)), which says what others should know of it. It holds
//! the file's lock as long as it lives; the kernel drops that lock however the run ends, so a file
//! whose lock can be had says nothing any more. A CPU is claimed under the lock of the folder
//! itself: of two runs that start at once, one gets it.
//!
//! Other users can write there what they like. So nobody else can open a file before it is locked,
//! the user behind a claim is shown, only a limited part of other claims is read, and a folder that
//! somebody keeps locked is waited for only to claim a CPU, and not long.
//!
//! # What it can't see
//!
//! Runs whose folder is another one: in another container, in a guest or its host, on a machine
//! that this one reaches by ssh, or with another `TARE_STATE_DIR`.

use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::error::GuardError;
use crate::options::Options;
use crate::owner::OwnerId;
use crate::state_dir::Locked;

/// The beginning of the name of a claim's file; the owner's id follows.
const PREFIX: &str = "tare-cpus-";

/// The end of its name until it is locked and written.
const UNFINISHED: &str = ".new";

/// The longest file that is read: it may be anybody's.
const MOST_BYTES: u64 = 8 << 10;

/// The greatest number of files that are read, and of other users' claims that are shown.
const MOST_FILES: usize = 1_000;
const MOST_FOREIGN: usize = 20;

/// How long another run may keep the folder locked, which takes it less than a millisecond.
const PATIENCE: Duration = Duration::from_secs(2);

/// A run as it describes itself to others. Everything in it is outside data: any user can write
/// such a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The user whose file it is; of what it says, the only thing that is sure.
    pub uid: u32,
    /// Its process.
    pub pid: u32,
    /// The CPUs that it measures on.
    pub cpus: Vec<u32>,
    /// The run: its folder.
    pub run: String,
    /// How long it still takes by its estimate; zero once it takes longer.
    pub left: Duration,
}

impl Claim {
    /// Names the run in a line: `/runs/a (process 7)`, with the user if that is another one than
    /// this process's.
    pub fn name(&self) -> String {
        let user = match self.uid == rustix::process::geteuid().as_raw() {
            true => String::new(),
            false => format!(" of user {}", self.uid),
        };
        // No content of the claim is obeyed or begins a line, whoever wrote it.
        let run = tare_host::visible_in_line(&self.run);
        format!("{run} (process {}{user})", self.pid)
    }
}

/// The part of a claim that does not change.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    pid: u32,
    cpus: Vec<u32>,
    run: String,
}

/// CPUs that a run measures on, until this is dropped.
#[derive(Debug)]
pub struct CpuClaim {
    registry: Registry,
    name: String,
    file: Locked,
}

impl CpuClaim {
    /// Says how long the run still takes.
    pub fn expect(&mut self, left: Duration) {
        // If it fails, others see an old estimate.
        let _ = self.file.file().write_all_at(ends(left).as_bytes(), 0);
    }
}

impl Drop for CpuClaim {
    fn drop(&mut self) {
        // A sweep removes what is left.
        let _ = self.registry.unlink(&self.name);
    }
}

/// Writes when a run will have ended, in a fixed number of digits: it is overwritten in place.
fn ends(left: Duration) -> String {
    let left_ns = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
    format!("{:020}\n", now_ns().saturating_add(left_ns))
}

/// Reads a clock that all processes of this machine share and that nobody sets.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// The folder in which all runs say what they measure on.
#[derive(Debug)]
pub(crate) struct Registry {
    folder: OwnedFd,
    path: PathBuf,
}

impl Registry {
    /// Opens the folder, and makes it if it is missing.
    pub(crate) fn create(path: &Path) -> Result<Self, GuardError> {
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(path);
        made.map_err(|source| failed("make the folder", path, source))?;
        Self::open(path).map_err(|errno| failed("open the folder", path, errno.into()))
    }

    fn open(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            folder: rustix::fs::open(path, flags, Mode::empty())?,
            path: path.to_owned(),
        })
    }

    /// Claims CPUs for an owner, unless other runs measure there and they are not to be shared.
    pub(crate) fn claim(
        self,
        owner: &OwnerId,
        cpus: &[u32],
        run: &str,
        left: Duration,
        share: bool,
    ) -> Result<CpuClaim, GuardError> {
        let locked = self.lock(PATIENCE);
        if locked.is_some() {
            self.remove_stale();
        }
        if !share && let Some(claim) = self.claims_on(cpus, owner).into_iter().next() {
            return Err(GuardError::CpuInUse(Box::new(claim)));
        }
        let name = format!("{PREFIX}{owner}");
        let record = Record {
            pid: std::process::id(),
            cpus: cpus.to_vec(),
            run: run.to_owned(),
        };
        let file = self
            .write(&name, &record, left)
            .map_err(|source| failed("write in", &self.path, source))?;
        Ok(CpuClaim {
            registry: self,
            name,
            file,
        })
    }

    fn write(&self, name: &str, record: &Record, left: Duration) -> std::io::Result<Locked> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (owner, others) = (Mode::RUSR | Mode::WUSR, Mode::RGRP | Mode::ROTH);
        let unfinished = format!("{name}{UNFINISHED}");
        // One guard has one claim; what it left behind is its own.
        let _ = self.unlink(&unfinished);
        let file = rustix::fs::openat(&self.folder, &*unfinished, flags, owner)?;
        let mut locked = Locked::take(file.into())?.map_err(|_| Errno::WOULDBLOCK)?;
        let text = ends(left) + &serde_json::to_string(record)?;
        locked.file().write_all(text.as_bytes())?;
        // Others read it and ask for its lock, whatever this user's umask is.
        rustix::fs::fchmod(locked.file(), owner | others)?;
        rustix::fs::renameat(&self.folder, &*unfinished, &self.folder, name)?;
        Ok(locked)
    }

    /// Returns what other owners that live say of these CPUs, the one first that ends last.
    pub(crate) fn claims_on(&self, cpus: &[u32], owner: &OwnerId) -> Vec<Claim> {
        let claims = self.claims(Some(owner)).into_iter();
        let mut claims: Vec<Claim> = claims
            .filter(|claim| claim.cpus.iter().any(|cpu| cpus.contains(cpu)))
            .collect();
        claims.sort_by_key(|claim| std::cmp::Reverse(claim.left));
        claims
    }

    /// Returns what owners that live say, but for one. Of other users' there may be any number; a
    /// few are taken.
    pub(crate) fn claims(&self, except: Option<&OwnerId>) -> Vec<Claim> {
        let own = rustix::process::geteuid().as_raw();
        let mut foreign = 0;
        let mut claims = Vec::new();
        for (name, owner) in self.names() {
            let is_finished = !name.ends_with(UNFINISHED);
            if is_finished
                && Some(&owner) != except
                && let Some(claim) = self.read(&name)
            {
                foreign += usize::from(claim.uid != own);
                if claim.uid == own || foreign <= MOST_FOREIGN {
                    claims.push(claim);
                }
            }
        }
        claims
    }

    /// Reads a claim from its file; `None` if its owner has died, or it is invalid.
    fn read(&self, name: &str) -> Option<Claim> {
        let file = self.open_file(name).ok()?;
        if is_stale(&file) {
            return None;
        }
        let uid = rustix::fs::fstat(&file).ok()?.st_uid;
        let mut text = String::new();
        file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
        let (ends_ns, record) = text.split_once('\n')?;
        let ends_ns: u64 = ends_ns.parse().ok()?;
        let Record { pid, cpus, run } = serde_json::from_str(record).ok()?;
        let left = Duration::from_nanos(ends_ns.saturating_sub(now_ns()));
        Some(Claim {
            uid,
            pid,
            cpus,
            run,
            left,
        })
    }

    /// Removes the files of this user's owners that have died. Only under the folder's lock: a file
    /// that is just being made is not locked yet.
    fn remove_stale(&self) {
        let user = rustix::process::geteuid();
        for (name, _) in self.names() {
            let Ok(file) = self.open_file(&name) else {
                continue;
            };
            let is_ours = rustix::fs::fstat(&file)
                .is_ok_and(|status| user.is_root() || status.st_uid == user.as_raw());
            if is_ours && is_stale(&file) {
                let _ = self.unlink(&name);
            }
        }
    }

    /// Lists the files of claims with their owners, unfinished ones as well.
    fn names(&self) -> Vec<(String, OwnerId)> {
        let entries = Dir::read_from(&self.folder).into_iter().flatten();
        let named = entries.filter_map(|entry| {
            let name = entry.ok()?.file_name().to_str().ok()?.to_owned();
            let owner = name.strip_prefix(PREFIX)?;
            let owner = OwnerId::parse(owner.strip_suffix(UNFINISHED).unwrap_or(owner))?;
            Some((name, owner))
        });
        named.take(MOST_FILES).collect()
    }

    /// Opens a file to read it. It may be anybody's, but not a link or a device.
    fn open_file(&self, name: &str) -> Result<File, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, name, flags, Mode::empty())?;
        let status = rustix::fs::fstat(&file)?;
        match FileType::from_raw_mode(status.st_mode).is_file() {
            true => Ok(file.into()),
            false => Err(Errno::PERM),
        }
    }

    fn unlink(&self, name: &str) -> Result<(), Errno> {
        rustix::fs::unlinkat(&self.folder, name, AtFlags::empty())
    }

    /// Locks the folder; `None` if another process does not release it in time: then two runs
    /// that start at the same moment can miss each other, which is better than to wait forever.
    fn lock(&self, patience: Duration) -> Option<Locked> {
        let give_up = Instant::now() + patience;
        let mut folder = File::from(Self::open(&self.path).ok()?.folder);
        loop {
            match Locked::take(folder).ok()? {
                Ok(locked) => return Some(locked),
                Err(_) if Instant::now() >= give_up => return None,
                Err(same) => folder = same,
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Returns what runs that can be seen say of the CPUs that they measure on, this process's among
/// them. Writes nothing.
pub fn claims() -> Vec<Claim> {
    let registry = Registry::open(&Options::default().claims_root);
    registry.map_or_else(|_| Vec::new(), |registry| registry.claims(None))
}

/// Removes what runs of this user that died have left in a folder, unless it is locked: the next
/// sweep does it then.
pub(crate) fn sweep(path: &Path) {
    if let Ok(registry) = Registry::open(path)
        && let Some(_locked) = registry.lock(Duration::ZERO)
    {
        registry.remove_stale();
    }
}

/// Returns whether the lock of a file can be had: then its owner has died. Several may ask at once.
fn is_stale(file: &File) -> bool {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockShared).is_ok()
}

fn failed(action: &str, path: &Path, source: std::io::Error) -> GuardError {
    let advice = "; other runs can't see that this one measures";
    GuardError::io(format!("{action} {}", path.display()), source, advice)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{chown, symlink};

    use super::*;
    use crate::owner::Place;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn owner() -> OwnerId {
        OwnerId::new(&Place::here().unwrap()).unwrap()
    }

    fn claim(path: &Path, cpus: &[u32], share: bool) -> Result<CpuClaim, GuardError> {
        let registry = Registry::create(path).unwrap();
        registry.claim(&owner(), cpus, "runs/first", HOUR, share)
    }

    #[test]
    fn a_cpu_is_measured_by_one_run_unless_it_is_shared() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("cpus");
        let mut first = claim(&path, &[1, 2], false).unwrap();
        let GuardError::CpuInUse(other) = claim(&path, &[2, 3], false).unwrap_err() else {
            panic!("another error");
        };
        assert_eq!((other.pid, &*other.run), (std::process::id(), "runs/first"));
        assert_eq!(other.cpus, [1, 2]);
        assert!(other.left <= HOUR && other.left > HOUR / 2);

        let elsewhere = claim(&path, &[3], false).unwrap();
        let shared = claim(&path, &[2], true).unwrap();
        let registry = Registry::create(&path).unwrap();
        let on = |cpu| registry.claims_on(&[cpu], &owner()).len();
        assert_eq!([0, 1, 2, 3].map(on), [0, 1, 2, 1]);

        first.expect(Duration::from_secs(10));
        drop(shared);
        let [other] = &registry.claims_on(&[2], &owner())[..] else {
            panic!("one claim");
        };
        assert!(other.left <= Duration::from_secs(10));
        first.expect(Duration::ZERO);
        let other = &registry.claims_on(&[2], &owner())[0];
        assert_eq!(other.left, Duration::ZERO);

        drop((first, elsewhere));
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        drop(claim(&path, &[1, 2], false).unwrap());
    }

    #[test]
    fn nothing_that_a_claim_says_begins_a_line_or_is_obeyed() {
        let claim = Claim {
            uid: rustix::process::geteuid().as_raw(),
            pid: 7,
            cpus: vec![1],
            run: "x\nerror: all is lost\u{1b}[2J".to_owned(),
            left: HOUR,
        };
        assert_eq!(claim.name(), "x\\nerror: all is lost\\u001b[2J (process 7)");
    }

    #[test]
    fn what_no_living_run_wrote_is_no_claim() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path();
        let name = || path.join(format!("{PREFIX}{}", owner()));
        let text = ends(HOUR) + r#"{"pid":1,"cpus":[1],"run":"x"}"#;
        let dead = name();
        fs::write(&dead, &text).unwrap();
        symlink("/dev/zero", name()).unwrap();
        let nonsense = name();
        fs::write(&nonsense, "not a claim").unwrap();
        let nonsense = Locked::take(File::open(&nonsense).unwrap()).unwrap();
        let _held = nonsense.unwrap();
        fs::write(path.join("somebody-else's"), &text).unwrap();
        let unfinished = format!("{}{UNFINISHED}", name().display());
        fs::write(&unfinished, "").unwrap();
        drop(claim(path, &[1], false).unwrap());
        assert!(!dead.exists(), "a dead run's file is removed");
        assert!(!Path::new(&unfinished).exists());
        assert_eq!(fs::read_dir(path).unwrap().count(), 3);
    }

    #[test]
    fn a_folder_that_somebody_keeps_locked_holds_up_no_sweep() {
        let root = tempfile::tempdir().unwrap();
        let dead = root.path().join(format!("{PREFIX}{}", owner()));
        fs::write(&dead, "").unwrap();
        let locked = Locked::take(File::open(root.path()).unwrap()).unwrap();
        let begun = Instant::now();
        sweep(root.path());
        assert!(begun.elapsed() < PATIENCE && dead.exists());
        drop(locked);
        sweep(root.path());
        assert!(!dead.exists());
    }

    #[test]
    fn few_of_the_claims_that_another_user_makes_up_are_told_and_all_own_ones() {
        let root = tempfile::tempdir().unwrap();
        if !rustix::process::geteuid().is_root() {
            return tare_testkit::skip("claims of another user", "it requires root");
        }
        let claimed = |_| claim(root.path(), &[1], true).unwrap();
        let _own: Vec<_> = (0..30).map(claimed).collect();
        let forged: Vec<_> = (0..MOST_FOREIGN + 5).map(claimed).collect();
        for claim in &forged {
            chown(root.path().join(&claim.name), Some(65_534), None).unwrap();
        }
        let registry = Registry::create(root.path()).unwrap();
        let told = registry.claims_on(&[1], &owner());
        assert_eq!(told.len(), 30 + MOST_FOREIGN);
        let of_user = |claim: &&Claim| claim.name().ends_with(" of user 65534)");
        assert_eq!(told.iter().filter(of_user).count(), MOST_FOREIGN);
    }

    #[test]
    fn of_many_that_start_at_once_one_gets_the_cpu() {
        let root = tempfile::tempdir().unwrap();
        let claims: Vec<_> = thread::scope(|scope| {
            let runs: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| claim(root.path(), &[1], false)))
                .collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        assert_eq!(claims.iter().filter(|claim| claim.is_ok()).count(), 1);
    }
}
