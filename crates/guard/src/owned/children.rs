//! Children that are started in great numbers, from any thread.
//!
//! They have one line in the journal and one mark, so that starting one costs no more than the
//! kernel takes. Otherwise they are owned as any child is.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::error::GuardError;
use crate::exec::{Exec, Started, environment};
use crate::owned::guarded::{Guarded, Inner};
use crate::owner::OWNER_VARIABLE;
use crate::record::{ChildRecord, Record};

/// Children that share one mark. When it is dropped, all that carries the mark is killed.
#[must_use = "the children are killed when this is dropped"]
#[derive(Debug)]
pub struct OwnedChildren {
    /// The environment of this process with the mark.
    environment: Vec<CString>,
    null: OwnedFd,
    _guarded: Guarded,
}

impl OwnedChildren {
    pub(crate) fn announce(inner: &Arc<Inner>, program: &str) -> Result<Self, GuardError> {
        let program = program.to_owned();
        let failed = |source| GuardError::Spawn {
            program: program.clone(),
            source,
        };
        let null = File::open("/dev/null").map_err(failed)?;
        let record = ChildRecord {
            program: program.clone(),
        };
        let guarded = inner.announce(|_| Record::Child(record))?;
        let mark = format!("{OWNER_VARIABLE}={}/{}", inner.owner, guarded.number());
        Ok(Self {
            environment: environment(CString::new(mark).expect("an owner's id has no NUL")),
            null: null.into(),
            _guarded: guarded,
        })
    }

    /// Starts one. The kernel kills it when the calling thread ends.
    ///
    /// # Errors
    ///
    /// If it can't be started, or its program can't be executed; then nothing runs.
    pub fn start(&self, exec: &Exec) -> io::Result<Started> {
        exec.start(&self.null, &self.environment)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::io::Read;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use crate::exec::{Exec, ResourceUsage, Started};
    use crate::{Guard, OWNER_VARIABLE};

    fn shell(script: &str) -> Exec {
        let words = ["-c", script].map(OsStr::new);
        Exec::new(Path::new("/bin/sh"), words).unwrap()
    }

    fn ended(started: &mut Started) -> ResourceUsage {
        let begun = Instant::now();
        loop {
            if let Some(spent) = started.try_reap().unwrap() {
                return spent;
            }
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn it_runs_marked_in_its_folder_and_tells_what_it_took() {
        let state = tempfile::tempdir().unwrap();
        let guard = Guard::open(state.path()).unwrap();
        let children = guard.children("sh").unwrap();
        let mut exec = shell("echo $TARE_OWNER; pwd; echo $A >&2; kill -0 -$$; exit 7");
        exec.variable("A", OsStr::new("b")).unwrap();
        exec.in_folder(state.path()).unwrap();
        let mut started = children.start(&exec).unwrap();
        let spent = ended(&mut started);
        let (mut output, mut error) = (String::new(), String::new());
        started.stdout.read_to_string(&mut output).unwrap();
        started.stderr.read_to_string(&mut error).unwrap();
        let folder = state.path().canonicalize().unwrap();
        let mark = format!("{}/", guard.owner());
        assert!(output.starts_with(&mark), "{OWNER_VARIABLE}: {output}");
        assert_eq!(output.lines().nth(1), folder.to_str());
        assert_eq!(error, "b\n");
        assert_eq!(spent.status.code(), Some(7));
        assert!(spent.user_ns + spent.system_ns > 0);
    }

    #[test]
    fn what_can_not_be_executed_is_told() {
        let state = tempfile::tempdir().unwrap();
        let guard = Guard::open(state.path()).unwrap();
        let children = guard.children("nothing").unwrap();
        let exec = Exec::new(Path::new("/nowhere/nothing"), []).unwrap();
        let error = children.start(&exec).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    }

    #[test]
    fn all_are_ended_with_their_descendants() {
        let state = tempfile::tempdir().unwrap();
        let guard = Guard::open(state.path()).unwrap();
        let children = guard.children("sh").unwrap();
        let pids = std::thread::scope(|scope| {
            let start = || {
                let exec = shell("setsid sleep 1000 & echo $!; sleep 1000");
                let mut started = children.start(&exec).unwrap();
                let mut line = [0; 16];
                let n = started.stdout.read(&mut line).unwrap();
                let text = String::from_utf8_lossy(&line[..n]).trim().to_owned();
                drop(started);
                text.parse::<u32>().unwrap()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
            let pids = threads.into_iter().map(|thread| thread.join().unwrap());
            pids.collect::<Vec<u32>>()
        });
        drop(children);
        for pid in pids {
            assert!(!crate::processes::is_running(pid), "{pid}");
        }
        assert!(guard.close().problems.is_empty());
    }

    #[test]
    fn they_die_with_the_thread_that_started_them() {
        let state = tempfile::tempdir().unwrap();
        let guard = Guard::open(state.path()).unwrap();
        let children = guard.children("sleep").unwrap();
        let start = || children.start(&shell("exec sleep 1000")).unwrap();
        let mut started = std::thread::scope(|scope| scope.spawn(start).join().unwrap());
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(ended(&mut started).status.signal(), Some(libc::SIGKILL));
    }
}
