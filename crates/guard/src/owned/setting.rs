//! Settings: values that the kernel shows as files of one line, changed for the time of a run.
//!
//! Three things make them delicate. The kernel may write a value its own way (`3` into a CPU mask
//! reads `00000003`), so what is remembered as ours is what was read back. Somebody else may change
//! the same setting in between; then it is no longer ours to put back. And two runs that change the
//! same setting would each put back what the other one had set; so only one at a time may hold it,
//! and one that died with it is cleaned up first. Runs with the same state folder see each other's
//! journals; to be kept apart from all others, each locks the setting's own file.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::GuardError;
use crate::journal;
use crate::owned::dead::{JournalState, sweep_journal};
use crate::owned::guarded::{Guarded, Inner};
use crate::owned::{Context, Live};
use crate::owner::{OwnerId, Relation};
use crate::record::{Record, SettingRecord};
use crate::report::{UndoReport, Undone};
use crate::state_dir::Locked;

/// A changed setting. When this is dropped, the old value is put back, unless somebody else has
/// changed it since.
#[must_use = "the setting is put back when this is dropped"]
#[derive(Debug)]
pub struct Setting {
    path: PathBuf,
    before: String,
    value: String,
    guarded: Guarded,
}

impl Setting {
    pub(crate) fn change(
        inner: &Arc<Inner>,
        path: &Path,
        value: &str,
    ) -> Result<Setting, GuardError> {
        let path = allowed(path, &inner.options.setting_roots)?;
        let refused = |why| GuardError::SettingRefused {
            path: path.clone(),
            why,
        };
        let text = path
            .to_str()
            .ok_or_else(|| refused("its path is not UTF-8"))?;
        if value.trim() != value || value.is_empty() || value.contains(['\n', '\0']) {
            return Err(refused(
                "the value must be one line without spaces around it",
            ));
        }
        let (claim, file_lock) = claim(inner, &path, text)?;
        let before = read(&path)?;
        let mut record = SettingRecord {
            path: text.to_owned(),
            before: before.clone(),
            wanted: value.to_owned(),
            after: None,
        };
        let guarded = inner.announce(|_| Record::Setting(record.clone()))?;
        guarded.set_live(Arc::new(file_lock));
        let outcome = write(&path, value)
            .and_then(|()| read(&path))
            .and_then(|after| {
                if after == before && !reads_like(&after, value) {
                    let (wanted, found) = (value.to_owned(), after);
                    return Err(GuardError::SettingNoEffect {
                        path: path.clone(),
                        wanted,
                        found,
                    });
                }
                record.after = Some(after.clone());
                guarded.update(Record::Setting(record.clone()))?;
                Ok(after)
            });
        // Returned before an error drops the handle, which puts the setting back.
        drop(claim);
        outcome.map(|value| Setting {
            path,
            before,
            value,
            guarded,
        })
    }

    /// Gives the path of the file, with links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the value that the setting had before.
    pub fn before(&self) -> &str {
        &self.before
    }

    /// Gives the value that it has now, as the kernel writes it: compare it with the one that was
    /// asked for if the kernel may have limited that.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns the value that another program has given it since; `None` if it still has ours.
    ///
    /// # Errors
    ///
    /// [`GuardError::Io`] if it can't be read: it may no longer exist.
    pub fn overwritten(&self) -> Result<Option<String>, GuardError> {
        let found = read(&self.path)?;
        Ok((found != self.value).then_some(found))
    }

    /// Puts the old value back now.
    ///
    /// # Errors
    ///
    /// [`GuardError::Io`] or [`GuardError::SettingNotRestored`]; the guard tries again when
    /// it is closed.
    pub fn restore(self) -> Result<(), GuardError> {
        self.guarded.undo()
    }

    /// Keeps the value until the guard is closed.
    pub fn leave_to_guard(mut self) {
        self.guarded.leave_to_guard();
    }
}

impl SettingRecord {
    pub(crate) fn undo(
        &self,
        context: Context<'_>,
        done: &mut Vec<Undone>,
    ) -> Result<(), GuardError> {
        let path = match allowed(Path::new(&self.path), &context.options.setting_roots) {
            Err(GuardError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                done.push(Undone::SettingGone {
                    path: PathBuf::from(&self.path),
                });
                return Ok(());
            }
            path => path?,
        };
        let _lock = context.state.lock_settings()?;
        // A run with another state folder may have taken over our value as that to put back. When
        // it has done so, the next sweep does the rest.
        let _file_lock = match context.by_owner {
            true => None,
            false => Some(lock_file(&path)?.ok_or_else(|| locked(&path))?),
        };
        let found = read(&path)?;
        if found == self.before {
            return Ok(());
        }
        let before = self.before.clone();
        let ours = match &self.after {
            Some(after) => found == *after,
            None => reads_like(&found, &self.wanted),
        };
        if !ours {
            done.push(Undone::SettingLeftAlone {
                path,
                found,
                before,
            });
            return Ok(());
        }
        write(&path, &before)?;
        let found = read(&path)?;
        if found != before {
            return Err(GuardError::SettingNotRestored {
                path,
                before,
                found,
            });
        }
        done.push(Undone::SettingRestored {
            path,
            value: before,
        });
        Ok(())
    }
}

/// Resolves a path and checks that it is one of the kernel's settings.
fn allowed(path: &Path, roots: &[PathBuf]) -> Result<PathBuf, GuardError> {
    let resolved = fs::canonicalize(path).map_err(|source| failed("find", path, source))?;
    let refused = |why| {
        Err(GuardError::SettingRefused {
            path: path.to_owned(),
            why,
        })
    };
    let mut roots = roots.iter().filter_map(|root| fs::canonicalize(root).ok());
    if !roots.any(|root| resolved.starts_with(root)) {
        return refused("it is not a setting of the kernel, under /proc/sys, /proc/irq or /sys");
    }
    if !resolved.is_file() {
        return refused("it is not a file");
    }
    Ok(resolved)
}

/// Takes the permission to change settings, and this one in particular, with nobody else holding
/// it.
fn claim(inner: &Arc<Inner>, path: &Path, text: &str) -> Result<(Locked, Locked), GuardError> {
    // A holder that is just being cleaned up looks alive for as long as that takes.
    let give_up = Instant::now() + Duration::from_millis(500);
    loop {
        let settings = inner.state.lock_settings()?;
        let problem = match holder_of(inner, text)? {
            None => match lock_file(path)? {
                Some(file) => return Ok((settings, file)),
                None => locked(path),
            },
            Some((name, owner)) => {
                drop(settings);
                let (state, ours) = (clean_up(inner, &name, &owner), owner == inner.owner);
                let path = path.to_owned();
                let problem = GuardError::SettingInUse { path, owner };
                match state {
                    JournalState::Cleaned | JournalState::Gone => continue,
                    JournalState::Live if !ours => problem,
                    JournalState::Live | JournalState::Stored => return Err(problem),
                }
            }
        };
        if Instant::now() > give_up {
            return Err(problem);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Cleans up after an owner if it is dead; what that does goes into our report.
fn clean_up(inner: &Inner, name: &str, owner: &OwnerId) -> JournalState {
    if *owner == inner.owner {
        return JournalState::Live;
    }
    let mut report = UndoReport::default();
    let state = sweep_journal(&inner.state, name, &inner.options, &inner.here, &mut report);
    inner.report(report);
    state
}

/// Locks the file of a setting; `None` if somebody else has.
fn lock_file(path: &Path) -> Result<Option<Locked>, GuardError> {
    let file = fs::File::open(path).map_err(|source| failed("read", path, source))?;
    let outcome = Locked::take(file).map_err(|errno| failed("lock", path, errno.into()))?;
    Ok(outcome.ok())
}

fn locked(path: &Path) -> GuardError {
    let path = path.to_owned();
    GuardError::SettingLocked { path }
}

/// The lock of a setting's file, held as long as the setting is changed.
impl Live for Locked {}

/// Finds the journal in which a setting is in force, and its owner.
fn holder_of(inner: &Inner, path: &str) -> Result<Option<(String, OwnerId)>, GuardError> {
    for name in inner.state.names()? {
        let Some((owner, _)) = journal::owner_of(&name) else {
            continue;
        };
        // A journal that has gone, or can't be read, shows nothing that it holds.
        let Ok(mut file) = inner.state.open_file(&name) else {
            continue;
        };
        let Ok(contents) = journal::read(&mut file) else {
            continue;
        };
        let in_force = contents.header.place.seen_from(&inner.here) != Relation::EarlierBoot
            && contents.in_force.iter().any(
                |(_, record)| matches!(record, Record::Setting(setting) if setting.path == path),
            );
        if in_force {
            return Ok(Some((name, owner)));
        }
    }
    Ok(None)
}

/// Reads the value of a setting: its line, or of several choices the one in brackets.
fn read(path: &Path) -> Result<String, GuardError> {
    let text = fs::read_to_string(path).map_err(|source| failed("read", path, source))?;
    let line = text.trim();
    if line.contains(['\n', '\0']) {
        let why = "it is not one line of text, so it could not be put back";
        return Err(GuardError::SettingRefused {
            path: path.to_owned(),
            why,
        });
    }
    Ok(chosen(line).unwrap_or(line).to_owned())
}

/// Finds the one word in brackets.
fn chosen(line: &str) -> Option<&str> {
    let mut words = line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    words.next().filter(|_| words.next().is_none())
}

/// Writes a value as `echo` does: at once, with the end of the line.
fn write(path: &Path, value: &str) -> Result<(), GuardError> {
    let attempt = || -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)?;
        let line = format!("{value}\n");
        // In one call, because each call is a new value to the kernel.
        if file.write(line.as_bytes())? != line.len() {
            return Err(io::Error::new(
                io::ErrorKind::WriteZero,
                "only a part was accepted",
            ));
        }
        // Means nothing to the kernel's files. A regular file must not keep a longer value's end,
        // and must at no time be empty, as it would be if it were truncated first.
        let _ = file.set_len(line.len() as u64);
        Ok(())
    };
    attempt().map_err(|source| failed(&format!("write {value:?} to"), path, source))
}

/// Returns whether a file that reads `found` may have been written `wanted`, in the kernel's way of
/// writing numbers, masks and truth values.
///
/// Only used where it is not known what was read back: if the owner died just between writing and
/// reading, or to tell a value that was there already from one that was not accepted.
fn reads_like(found: &str, wanted: &str) -> bool {
    let plain = |text: &str| -> Vec<String> {
        let plain = |word: &str| {
            let word = word.replace(',', "").to_ascii_lowercase();
            match word
                .strip_prefix("0x")
                .unwrap_or(&word)
                .trim_start_matches('0')
            {
                "y" => "1".to_owned(),
                "n" => String::new(),
                other => other.to_owned(),
            }
        };
        text.split_whitespace().map(plain).collect()
    };
    plain(found) == plain(wanted)
}

fn failed(action: &str, path: &Path, source: io::Error) -> GuardError {
    let advice = match source.raw_os_error().map(Errno::from_raw_os_error) {
        // Linux 6.9 and later return EPERM, earlier ones EIO.
        Some(Errno::IO | Errno::PERM) if is_affinity(path) => {
            "; its driver manages this interrupt, so the kernel does not let it be moved: boot with \
             isolcpus=managed_irq,domain,CPUS to keep it away from CPUS"
        }
        Some(Errno::NOSPC) if is_affinity(path) => {
            "; no interrupt vector is left on the other CPUs: let fewer interrupts be moved there, \
             or give the devices fewer queues"
        }
        Some(Errno::ROFS) => {
            "; it is mounted read-only, as in a container: change it on the machine itself"
        }
        Some(Errno::NODEV | Errno::NXIO) => "; its device is gone",
        _ => return GuardError::kernel(format!("{action} {}", path.display()), source),
    };
    GuardError::io(format!("{action} {}", path.display()), source, advice)
}

/// Returns whether a file says to which CPUs an interrupt goes.
fn is_affinity(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with("smp_affinity"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_word_stands_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("[none]"), Some("none"));
        assert_eq!(chosen("one two"), None);
        assert_eq!(chosen("[a] [b]"), None);
        assert_eq!(chosen("a[b] [c"), None);
    }

    #[test]
    fn each_refusal_of_the_kernel_has_its_remedy() {
        let told =
            |errno: Errno, path: &str| failed("write", Path::new(path), errno.into()).to_string();
        let irq = "/proc/irq/24/smp_affinity_list";
        for (errno, path, words) in [
            (Errno::IO, irq, "manages this interrupt"),
            (Errno::PERM, irq, "isolcpus=managed_irq"),
            (Errno::NOSPC, irq, "no interrupt vector is left"),
            (Errno::ROFS, irq, "mounted read-only"),
            (Errno::ACCESS, irq, "run as root"),
            (Errno::NOENT, irq, "does not have it"),
            (Errno::NODEV, irq, "its device is gone"),
            (Errno::PERM, "/proc/sys/vm/stat_interval", "run as root"),
            (
                Errno::INVAL,
                "/proc/sys/vm/stat_interval",
                "does not know that value",
            ),
        ] {
            let told = told(errno, path);
            assert!(told.contains(words), "{errno:?}: {told}");
        }
        let told = told(Errno::IO, "/sys/kernel/mm/ksm/run");
        assert!(!told.contains("interrupt"), "{told}");
    }

    #[test]
    fn the_kernels_ways_of_writing_are_recognised() {
        assert!(reads_like("00000000,00000003", "3"));
        assert!(reads_like("4\t4\t1\t7", "4 4 1 7"));
        assert!(reads_like("Y", "1") && reads_like("N", "0"));
        assert!(reads_like("0", "00"));
        assert!(reads_like("0xff", "FF"));
        assert!(!reads_like("10", "1") && !reads_like("never", "always"));
    }
}
