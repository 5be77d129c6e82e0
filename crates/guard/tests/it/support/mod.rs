//! Shared parts of the tests: a separate place to act in, and programs to act on.
//!
//! Whether something was left behind is not asked of the crate under test: processes are found by a
//! second mark, which a test gives to the processes that it starts.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tare_guard::{Guard, Options, SweepReport, UndoReport, Undone, sweep_with};

/// The variable by which a process of a test is known to that test.
const TAG: &str = "TARE_TEST_TAG";

/// The variable that tells a test binary which folder to act in when it plays a part.
const STAGE: &str = "TARE_TEST_STAGE";

/// Counts what was undone, by kind.
pub trait Counts {
    fn count(&self, which: impl Fn(&Undone) -> bool) -> usize;

    fn processes_killed(&self) -> usize {
        self.count(|thing| matches!(thing, Undone::ProcessKilled { .. }))
    }

    fn scratch_removed(&self) -> usize {
        self.count(|thing| matches!(thing, Undone::ScratchRemoved { .. }))
    }

    fn settings_restored(&self) -> usize {
        self.count(|thing| matches!(thing, Undone::SettingRestored { .. }))
    }

    fn settings_left_alone(&self) -> usize {
        self.count(|thing| matches!(thing, Undone::SettingLeftAlone { .. }))
    }
}

impl Counts for UndoReport {
    fn count(&self, which: impl Fn(&Undone) -> bool) -> usize {
        self.undone.iter().filter(|thing| which(thing)).count()
    }
}

/// A folder with a state folder, a scratch root and a tree of files that stand for settings.
pub struct Stage {
    root: PathBuf,
    _owned: Option<tempfile::TempDir>,
}

impl Stage {
    pub fn new() -> Stage {
        let owned = tempfile::tempdir().unwrap();
        let stage = Stage {
            root: owned.path().to_owned(),
            _owned: Some(owned),
        };
        fs::create_dir(stage.scratch_root()).unwrap();
        fs::create_dir(stage.settings_root()).unwrap();
        for name in ["a", "b", "c"] {
            fs::write(stage.setting(name), "1\n").unwrap();
        }
        stage
    }

    /// Gives the stage on which this process plays a part, if it was started for that.
    pub fn given() -> Option<Stage> {
        let root = std::env::var_os(STAGE)?.into();
        Some(Stage { root, _owned: None })
    }

    /// Starts this test binary once more, with one of its tests playing a part on this stage.
    pub fn play(&self, part: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([part, "--exact", "--nocapture", "--test-threads=1"])
            .env(STAGE, &self.root)
            .env(TAG, &self.root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command
    }

    pub fn guard(&self) -> Guard {
        Guard::open_with(&self.state(), self.options()).unwrap()
    }

    pub fn sweep(&self) -> SweepReport {
        sweep_with(&self.state(), &self.options())
    }

    pub fn options(&self) -> Options {
        let mut options = Options {
            scratch_root: self.scratch_root(),
            ..Options::default()
        };
        options.setting_roots.push(self.settings_root());
        options
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    pub fn scratch_root(&self) -> PathBuf {
        self.root.join("scratch")
    }

    pub fn settings_root(&self) -> PathBuf {
        self.root.join("settings")
    }

    pub fn setting(&self, name: &str) -> PathBuf {
        self.settings_root().join(name)
    }

    pub fn value(&self, name: &str) -> String {
        fs::read_to_string(self.setting(name))
            .unwrap()
            .trim()
            .to_owned()
    }

    /// Lists the journals, with the endings of their names.
    pub fn journals(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state().join("journal")).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.file_name().unwrap() != "settings.lock");
        paths
    }

    pub fn scratch_folders(&self) -> Vec<PathBuf> {
        fs::read_dir(self.scratch_root())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect()
    }

    /// Makes a command whose process is known to [`Stage::processes`].
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env(TAG, &self.root)
            .stdin(Stdio::null());
        command
    }

    /// Makes a command for a shell, with a pipe to read what it prints.
    pub fn shell(&self, script: &str) -> Command {
        let mut command = self.command("sh", &["-c", script]);
        command.stdout(Stdio::piped());
        command
    }

    /// Finds the living processes that were started on this stage, however deep.
    pub fn processes(&self) -> Vec<u32> {
        let wanted = format!("{TAG}={}", self.root.display());
        let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            let tagged = environment
                .split(|byte| *byte == 0)
                .any(|one| one == wanted.as_bytes());
            (tagged && pid != std::process::id()).then_some(pid)
        });
        pids.collect()
    }

    /// Fails if anything that a guard owned is still there.
    #[track_caller]
    pub fn assert_clean(&self) {
        assert_eq!(self.processes(), [0_u32; 0], "processes are left");
        assert_eq!(
            self.scratch_folders(),
            [""; 0].map(PathBuf::from),
            "scratch is left"
        );
        assert_eq!(
            self.journals(),
            [""; 0].map(PathBuf::from),
            "journals are left"
        );
        for name in ["a", "b", "c"] {
            assert_eq!(self.value(name), "1", "setting {name} is left changed");
        }
    }
}

/// A process of a test, ended with it.
pub struct Ended(pub Child);

impl Ended {
    /// Sends SIGKILL and reaps.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Waits for a line that contains a word, and gives what stands behind it.
    pub fn read_past(&mut self, word: &str) -> String {
        let mut lines = BufReader::new(self.0.stdout.as_mut().unwrap()).lines();
        lines
            .find_map(|line| {
                line.unwrap()
                    .split_once(word)
                    .map(|(_, rest)| rest.trim().to_owned())
            })
            .expect("the process said it before it ended")
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads the first line that a process prints, which is a process id.
pub fn read_pid(stdout: impl std::io::Read) -> u32 {
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    line.trim().parse().unwrap()
}

/// Returns whether a process exists and is not a zombie.
pub fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit_once(')')
            .unwrap()
            .1
            .trim()
            .starts_with(['Z', 'X'])
    })
}

/// A real setting of the kernel that does no harm, if this user may change it.
pub fn real_sysctl() -> Option<PathBuf> {
    let path = PathBuf::from("/proc/sys/fs/lease-break-time");
    let writable = fs::OpenOptions::new().write(true).open(&path).is_ok();
    writable.then_some(path)
}

/// A turn at the real setting, which is there only once: two test runs at the same time would each
/// find the other's value. Its value is put back whatever becomes of the test.
pub struct Turn {
    pub path: PathBuf,
    pub original: String,
    _lock: fs::File,
}

impl Turn {
    /// Waits for a turn; without the right to change the setting it says what is skipped.
    pub fn wait_for() -> Option<Turn> {
        let Some(path) = real_sysctl() else {
            tare_testkit::skip("sysctl", "needs root and a writable /proc/sys");
            return None;
        };
        // The folder's lock, since the guard locks the file.
        let lock = fs::File::open(path.parent().unwrap()).unwrap();
        lock.lock().unwrap();
        let original = fs::read_to_string(&path).unwrap();
        Some(Turn {
            path,
            original,
            _lock: lock,
        })
    }

    #[track_caller]
    pub fn assert_restored(&self) {
        assert_eq!(fs::read_to_string(&self.path).unwrap(), self.original);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = fs::write(&self.path, &self.original);
    }
}
