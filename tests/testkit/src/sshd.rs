//! A real sshd for one test, on the loopback device, with its own keys and configuration.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::skip;

/// The path in Debian's package. It must be called by its absolute path.
const PROGRAM: &str = "/usr/sbin/sshd";

/// The number of ports tried in this process.
static TRIED: AtomicU16 = AtomicU16::new(0);

/// A running sshd. It ends with the value, and its connections with it.
#[derive(Debug)]
pub struct Sshd {
    folder: PathBuf,
    port: u16,
    user: String,
    child: Child,
}

impl Sshd {
    /// Starts one with its files in `folder`; `extra` are further lines of sshd_config. None, with
    /// a message, if there is no sshd.
    ///
    /// # Panics
    ///
    /// Panics if it does not start.
    #[must_use]
    pub fn start(folder: &Path, extra: &str) -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            skip(
                "sshd",
                "it is not installed (Debian's package openssh-server)",
            );
            return None;
        }
        for key in ["host", "user", "stranger"] {
            let path = folder.join(key);
            let path = path.to_str().expect("the folder's path is UTF-8");
            run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", path]);
        }
        fs::create_dir(folder.join("base")).unwrap();
        if fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0) {
            // Created by its init script; sshd running as root confines itself there.
            let _ = fs::create_dir_all("/run/sshd");
        }
        let user = run("id", &["-un"]);
        let user = String::from_utf8(user.stdout).unwrap().trim().to_owned();
        // Not one of the kernel's ephemeral ports: a client that gets the port it connects to is
        // connected with itself, and blocks the port.
        let first = 12_000 + u16::try_from(std::process::id() % 10_000).unwrap_or_default();
        for _ in 0..100 {
            let port = first + TRIED.fetch_add(1, Ordering::Relaxed);
            if TcpListener::bind(("127.0.0.1", port)).is_err() {
                continue;
            }
            if let Some(child) = start(folder, port, extra) {
                let sshd = Self {
                    folder: folder.to_owned(),
                    port,
                    user,
                    child,
                };
                sshd.know("host.pub");
                return Some(sshd);
            }
        }
        let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
        panic!("sshd does not start: {log}");
    }

    /// Returns the options by which the target `ssh` reaches it.
    #[must_use]
    pub fn options(&self) -> String {
        format!(
            "host={}@127.0.0.1,port={},identity={},dir={},option=UserKnownHostsFile={},\
             option=GlobalKnownHostsFile=/dev/null",
            self.user,
            self.port,
            self.file("user"),
            self.file("base"),
            self.file("known_hosts")
        )
    }

    /// Returns the path of one of its files: `base` is the folder for clients' files, `user` the
    /// accepted key, `stranger` another one, `known_hosts` the client's.
    ///
    /// # Panics
    ///
    /// Panics if the path is not UTF-8.
    #[must_use]
    pub fn file(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    /// Makes the client accept this public key as the host's, and no other.
    ///
    /// # Panics
    ///
    /// Panics if the files can't be read or written.
    pub fn know(&self, key: &str) {
        let key = fs::read_to_string(self.file(key)).unwrap();
        let line = format!("[127.0.0.1]:{} {key}", self.port);
        fs::write(self.file("known_hosts"), line).unwrap();
    }

    /// Returns the processes of sshd that serve a connection, one for each.
    ///
    /// # Panics
    ///
    /// Panics if there is no /proc.
    #[must_use]
    pub fn connections(&self) -> Vec<u32> {
        sshds_below(&[self.child.id()])
    }

    /// Kills the processes that serve connections, as a crash would.
    pub fn break_connections(&self) {
        let mut pids = self.connections();
        // They have one more process below for an ordinary user's session.
        pids.extend(sshds_below(&pids));
        for pid in pids {
            // It may have ended already.
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).output();
        }
    }

    /// Returns the processes that work in the folder for clients' files.
    #[must_use]
    pub fn workers(&self) -> Vec<u32> {
        let base = self.folder.join("base");
        let works_there = |process: &Process| {
            let cwd = fs::read_link(format!("/proc/{}/cwd", process.pid));
            cwd.is_ok_and(|cwd| cwd.starts_with(&base))
        };
        let pids = processes().filter(works_there).map(|process| process.pid);
        pids.collect()
    }

    /// Returns the names of the files in the folder for clients' files.
    ///
    /// # Panics
    ///
    /// Panics if it can't be read.
    #[must_use]
    pub fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.join("base")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.collect()
    }

    /// Waits until nothing of a client is left.
    ///
    /// # Panics
    ///
    /// Panics if something remains after 20 s.
    pub fn wait_until_clean(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !self.left().is_empty() || !self.workers().is_empty() {
            let left = (self.left(), self.workers());
            assert!(Instant::now() < deadline, "left: {left:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.break_connections();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(folder: &Path, port: u16, extra: &str) -> Option<Child> {
    let path = |name: &str| folder.join(name).display().to_string();
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
         PermitRootLogin prohibit-password\nPrintMotd no\n{extra}\n",
        path("host"),
        path("user.pub"),
    );
    fs::write(path("sshd_config"), config).unwrap();
    let mut child = Command::new(PROGRAM)
        .args(["-D", "-f", &path("sshd_config"), "-E", &path("log")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline && child.try_wait().unwrap().is_none() {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Some(child);
        }
        thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

fn run(program: &str, words: &[&str]) -> Output {
    let output = Command::new(program).args(words).output().unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    output
}

fn sshds_below(parents: &[u32]) -> Vec<u32> {
    let is_one =
        |process: &Process| process.name.starts_with("sshd") && parents.contains(&process.parent);
    let found = processes().filter(is_one);
    found.map(|process| process.pid).collect()
}

struct Process {
    pid: u32,
    parent: u32,
    name: String,
}

fn processes() -> impl Iterator<Item = Process> {
    fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
        let name = name.to_owned();
        Some(Process { pid, parent, name })
    })
}
