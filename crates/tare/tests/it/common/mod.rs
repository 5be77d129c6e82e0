//! What the tests of the command share: they run the real program on the real agent.

use std::fmt;
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
pub use tare_testkit::skip;
use tempfile::TempDir;

/// A place for one test: its own state folder, its own working folder.
pub struct Bench {
    folder: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        Self { folder }
    }

    /// Returns the folder in which `tare` runs.
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Returns the folder in which `tare` keeps its journals.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Returns the folder in which scratch folders are made.
    pub fn scratch(&self) -> PathBuf {
        let path = self.folder.path().join("scratch");
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// Prepares to run `tare` with these words.
    pub fn command(&self, words: &str) -> Command {
        let words: Vec<&str> = words.split_whitespace().collect();
        self.command_of(Path::new(env!("CARGO_BIN_EXE_tare")), &words)
    }

    /// Prepares to run a program with these words, as if it were `tare`.
    pub fn command_of(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(words)
            .current_dir(self.work())
            .env("TARE_STATE_DIR", self.state())
            .env("TMPDIR", self.scratch())
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs `tare` to its end.
    pub fn run(&self, words: &str) -> Ran {
        Ran::of(self.command(words).output().unwrap())
    }

    /// Starts `tare`.
    pub fn start(&self, words: &str) -> Started {
        Started::of(&mut self.command(words))
    }
}

/// A folder of an ordinary user, with `tare` and its agent in it.
pub struct OtherUser(TempDir);

impl OtherUser {
    /// Makes it; `None` where nobody can become another user.
    pub fn new() -> Option<Self> {
        const NOBODY: u32 = 65_534;
        let is_there = Command::new("setpriv").arg("--version").output().is_ok();
        if !is_root() || !is_there {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        chown(folder.path(), Some(NOBODY), None).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_tare"), folder.path().join("tare")).unwrap();
        let agent = tare_targets::measured::MeasuredFile::agent();
        fs::copy(agent.path().unwrap(), folder.path().join("tare-agent")).unwrap();
        Some(Self(folder))
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Runs `tare` to its end.
    pub fn run(&self, words: &str) -> Ran {
        let path = self.folder();
        let output = Command::new("setpriv")
            .args(["--reuid=65534", "--clear-groups", "--inh-caps=-all"])
            // Going back from that would take a right, too.
            .args(["nice", "-n", "1"])
            .arg(path.join("tare"))
            .args(words.split_whitespace())
            .current_dir(path)
            .env("TARE_STATE_DIR", path.join("state"))
            .env("TMPDIR", path)
            .env("NO_COLOR", "1")
            .output();
        Ran::of(output.unwrap())
    }
}

/// The output of a command, and its exit code.
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl fmt::Debug for Ran {
    /// Writes it line by line, so that failures can be read in a log that cuts long lines.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, out, err } = self;
        write!(to, "exit code {code:?}\n{out}\n{err}")
    }
}

impl Ran {
    /// Takes what a command left.
    pub fn of(output: Output) -> Self {
        let ran = Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        assert!(!ran.err.contains("panicked at"), "{ran:?}");
        ran
    }

    /// Asserts the exit code and that each of `words` is in the output.
    #[track_caller]
    pub fn expect(&self, code: i32, words: &[&str]) -> &Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        for word in words {
            let said = self.out.contains(word) || self.err.contains(word);
            assert!(said, "no '{word}' in {self:#?}");
        }
        self
    }
}

/// A running `tare`; it is killed if the test ends before it does.
pub struct Started(Option<Child>);

impl Started {
    /// Starts what was prepared.
    pub fn of(command: &mut Command) -> Self {
        Self(Some(command.spawn().unwrap()))
    }

    /// Returns whether it has ended.
    pub fn has_ended(&self) -> bool {
        fs::read_to_string(format!("/proc/{}/stat", self.pid()))
            .is_ok_and(|stat| stat.contains(") Z"))
    }

    pub fn pid(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Waits for the end.
    pub fn end(mut self) -> Ran {
        Ran::of(self.0.take().unwrap().wait_with_output().unwrap())
    }

    /// Waits for the end and returns only how it ended.
    pub fn wait(mut self) -> ExitStatus {
        self.0.take().unwrap().wait().unwrap()
    }

    /// Waits until the agent runs and returns its process id.
    pub fn agent(&self) -> u32 {
        wait_for("an agent", || agents_of(self.pid()).first().copied())
    }

    /// Waits until the agent has used more CPU time than it takes to get ready.
    pub fn measures(&self) {
        let agent = self.agent();
        wait_for("half a second of CPU time", || {
            let stat = fs::read_to_string(format!("/proc/{agent}/stat")).ok()?;
            let ticks: u64 = stat.rsplit_once(')')?.1.split(' ').nth(12)?.parse().ok()?;
            (ticks > 50).then_some(())
        });
    }

    /// Waits until a measuring thread of the agent was woken more often than it takes to get ready.
    pub fn wakes(&self) {
        let agent = self.agent();
        wait_for("wake-ups", || {
            let tasks = fs::read_dir(format!("/proc/{agent}/task")).ok()?;
            let statuses =
                tasks.map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok());
            let mut statuses = statuses.flatten();
            let status = statuses.find(|status| status.starts_with("Name:\ttare-measure"))?;
            let mut lines = status.lines();
            let switches = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
            (switches.trim().parse::<u32>().unwrap() > 700).then_some(())
        });
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Sends a signal to a process that the test started, directly or through `tare`.
pub fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Returns the running agents whose parent is `parent`, without the one that only keeps the kernel's
/// events open.
pub fn agents_of(parent: u32) -> Vec<u32> {
    let is_agent = |pid: &u32| {
        let Some((name, ppid)) = name_and_parent(*pid) else {
            return false;
        };
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        name == "tare-agent" && ppid == parent && !words.ends_with(b"\0events\0")
    };
    processes().filter(is_agent).collect()
}

/// Returns the processes whose environment holds `mark`.
pub fn processes_with(mark: &str) -> Vec<u32> {
    let holds = |pid: &u32| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(mark))
    };
    processes().filter(holds).collect()
}

fn processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn name_and_parent(pid: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
    Some((name.to_owned(), parent))
}

/// Serialises tests that fill the machine or must find some of it free.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serialises tests that start an engine, which the others would see as a daemon of this machine.
pub fn engine() -> MutexGuard<'static, ()> {
    static ENGINE: Mutex<()> = Mutex::new(());
    ENGINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serialises tests that change the settings of switches, and returns these with their files: all
/// but the one that moves threads of other tests away from a CPU.
pub fn switches(cpu: u32) -> (MutexGuard<'static, ()>, Vec<&'static str>, Vec<String>) {
    static SWITCHES: Mutex<()> = Mutex::new(());
    let alone = SWITCHES.lock().unwrap_or_else(PoisonError::into_inner);
    let switches = tare_host::switches(&tare_host::Source::system(), cpu).into_iter();
    let (names, files): (Vec<_>, Vec<_>) = switches
        .filter(|switch| switch.id != "cpuset")
        .map(|switch| (switch.id, switch.files))
        .unzip();
    let files = files.into_iter().flatten();
    (alone, names, files.map(|(path, _)| path).collect())
}

/// Waits for a minute at most until `found` gives something.
#[track_caller]
pub fn wait_for<T>(what: &str, found: impl FnMut() -> Option<T>) -> T {
    wait_for_up_to(Duration::from_secs(60), what, found)
}

/// Waits for `limit` at most until `found` gives something.
#[track_caller]
pub fn wait_for_up_to<T>(limit: Duration, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(it) = found() {
            return it;
        }
        assert!(Instant::now() < deadline, "{what} did not come");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the names of all files below a folder, sorted, relative to it.
pub fn files(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap();
                names.push(name.to_str().unwrap().to_owned());
            }
        }
    }
    names.sort();
    names
}

/// Reads a JSON file.
pub fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Returns whether the tests run as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
