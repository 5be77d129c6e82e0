//! The daemon that containers of Docker need: found where one runs, or started for a while.
//!
//! A running daemon disturbs every other target. So a daemon that was started here is stopped
//! after the cells that need it, and each cell records which daemons were running.
//!
//! A private engine has its images in a scratch folder, its sockets and states in file systems in
//! memory that only its mount namespace has, and its processes and their containers in control
//! groups of the guard. So nothing of it is left when it was stopped, nor, after a `kill -9`, when
//! the next command has swept. It makes no bridge and changes no firewall rule.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use tare_docker::{Docker, DockerError};
use tare_guard::{Guard, OwnedCgroup, OwnedChild, Patience, ScratchDir, private_mounts};

use crate::container::{hide, unwritable};
use crate::error::TargetError;
use crate::{Availability, Engine, programs};

/// The socket of a private engine, in its folder.
const OWN_SOCKET: &str = "docker.sock";

/// The longest name that the folder of a private engine may have.
const LONGEST_FOLDER: &str = "tare-engine-ffffffff-4194304-ffffffffffffffff-999";

/// The default socket of Docker's engine, without DOCKER_HOST.
const SOCKET: &str = "/var/run/docker.sock";

/// How long an engine may take to start. Most take less than a second.
const START_LIMIT: Duration = Duration::from_secs(60);

/// How long it may take to stop before it is killed.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// The daemons that disturb measurements on the same machine.
const DAEMONS: &[&str] = &[
    "containerd",
    "cri-dockerd",
    "crio",
    "dockerd",
    "k3s-server",
    "kubelet",
    "libvirtd",
    "lxd",
    "rke2",
    "virtqemud",
];

/// Finds Docker's engine. Whether it answers is another question.
pub(crate) fn find() -> Result<Docker, TargetError> {
    let socket = socket(env::var_os("DOCKER_HOST"))?;
    if socket.exists() {
        return Ok(Docker::at(&socket));
    }
    let why = match programs::find("dockerd") {
        Some(_) => format!(
            "Docker's engine does not run: there is no {}",
            socket.display()
        ),
        None => "Docker's engine is not installed".to_owned(),
    };
    Err(TargetError::unusable(why, start_remedy()))
}

/// Returns the command that makes a failing engine usable.
pub(crate) fn remedy(error: &DockerError) -> String {
    match error {
        DockerError::Unreachable { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            "sudo usermod -aG docker $USER && newgrp docker".to_owned()
        }
        // The socket exists and nothing listens on it.
        _ => start_remedy(),
    }
}

/// Returns whether a private engine can be started, and if not, the remedy.
pub fn startable(engine: Engine) -> Availability {
    Availability::of(program(engine))
}

/// Returns the program of an engine, if one can be started.
fn program(engine: Engine) -> Result<PathBuf, TargetError> {
    let Engine::Docker = engine;
    let program = programs::require("dockerd", "docker.io")?;
    programs::require("containerd", "containerd")?;
    programs::require_root("starting an engine requires root")?;
    check_length(&env::temp_dir().join(LONGEST_FOLDER).join(OWN_SOCKET))?;
    Ok(program)
}

/// Returns whether an engine that targets find by themselves runs and answers.
pub fn runs(engine: Engine) -> bool {
    let Engine::Docker = engine;
    find().is_ok_and(|docker| docker.version().is_ok())
}

/// Lists the daemons that run on this machine now and may disturb, each once, by name.
pub fn daemons() -> Vec<String> {
    let mut found: Vec<String> = processes().filter_map(daemon).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the CPU time in ns that daemons have used so far, including the children that they
/// waited for. The shims of containers and the runtimes that these execute are not included: they
/// are no daemon's children.
pub fn daemons_cpu_ns() -> u64 {
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let ticks = |pid: u32| -> Option<u64> {
        daemon(pid)?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        // proc(5): utime, stime, cutime and cstime are fields 14 to 17; the first one here is 3.
        let times = fields.split(' ').skip(11).take(4);
        Some(times.filter_map(|field| field.parse::<u64>().ok()).sum())
    };
    processes().filter_map(ticks).sum::<u64>() * tick_ns
}

/// A private engine. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    child: OwnedChild,
    /// Its processes, with those of its containers below.
    groups: [OwnedCgroup; 2],
    docker: Docker,
    folder: ScratchDir,
}

impl Running {
    /// Starts a private engine and waits until it answers.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if it does not start; nothing of it runs then.
    pub fn start(engine: Engine, guard: &Guard) -> Result<Self, TargetError> {
        let dockerd = program(engine)?;
        let folder = guard.scratch("engine")?;
        let socket = folder.path().join(OWN_SOCKET);
        check_length(&socket)?;
        let log = folder.path().join("log");
        let log = fs::File::create(&log).map_err(|error| unwritable(&log, &error))?;
        let own = guard.cgroup("engine", &[])?;
        let containers = guard.reserve_cgroup("engine-containers")?;
        let mut command = Command::new(dockerd);
        command
            .arg(format!("--host=unix://{}", socket.display()))
            .arg(format!(
                "--data-root={}",
                folder.path().join("data").display()
            ))
            .arg(format!("--cgroup-parent=/{}", containers.name()))
            .args(["--bridge=none", "--iptables=false", "--ip-forward=false"])
            .args(["--exec-opt=native.cgroupdriver=cgroupfs"])
            .env("PATH", path_with_daemons())
            .stdin(Stdio::null())
            .stdout(
                log.try_clone()
                    .map_err(|source| TargetError::Output { source })?,
            )
            .stderr(log);
        let places = ["/run", "/opt", "/etc/docker", "/var/lib"];
        private_mounts(&mut command, &hide(&places, folder.path()));
        own.enter(&mut command)?;
        let child = guard.spawn(&mut command)?;
        let mut running = Self {
            child,
            groups: [own, containers],
            docker: Docker::at(&socket),
            folder,
        };
        running.wait_until_ready()?;
        Ok(running)
    }

    /// Returns the socket at which it listens.
    pub fn socket(&self) -> &Path {
        self.docker.socket()
    }

    /// Returns whether its process still runs.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::Guard`] if the kernel can't tell.
    pub fn runs(&mut self) -> Result<bool, TargetError> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Stops it, and removes all that it has.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::Guard`] if something could not be ended or removed; the guard tries
    /// again when it is closed.
    pub fn stop(mut self) -> Result<(), TargetError> {
        self.child.stop_group(STOP_LIMIT)?;
        // Processes of containers first: their runtime's groups are below the other one.
        let [own, containers] = self.groups;
        own.remove()?;
        containers.remove()?;
        drop(self.child);
        self.folder.remove()?;
        Ok(())
    }

    fn wait_until_ready(&mut self) -> Result<(), TargetError> {
        let patience = Patience::new(START_LIMIT);
        loop {
            if self.docker.socket().exists() && self.docker.version().is_ok() {
                return Ok(());
            }
            let ended = self.child.try_wait()?.is_some();
            if ended || patience.left().is_zero() {
                let what = match ended {
                    true => "ended again",
                    false => "does not answer",
                };
                let log = self.last_words();
                return Err(TargetError::Failed(format!(
                    "the private Docker engine {what}; its log: {log}"
                )));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn last_words(&self) -> String {
        const KEPT: usize = 3;
        let log = fs::read(self.folder.path().join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let mut lines: Vec<&str> = log.lines().rev().take(KEPT).collect();
        lines.reverse();
        lines.join(" / ")
    }
}

/// Returns the path of a socket from the value of DOCKER_HOST.
fn socket(docker_host: Option<OsString>) -> Result<PathBuf, TargetError> {
    let Some(host) = docker_host.filter(|host| !host.is_empty()) else {
        return Ok(SOCKET.into());
    };
    let text = host.to_string_lossy().into_owned();
    match text.strip_prefix("unix://") {
        Some(path) => Ok(path.into()),
        None => Err(TargetError::unusable(
            format!("DOCKER_HOST={text} is not on this machine, which is the one to measure"),
            "unset DOCKER_HOST",
        )),
    }
}

/// Refuses a path that the kernel can't take as a socket's.
fn check_length(socket: &Path) -> Result<(), TargetError> {
    const MOST: usize = 107;
    if socket.as_os_str().len() <= MOST {
        return Ok(());
    }
    let length = socket.as_os_str().len();
    let why = format!(
        "the path of its socket would have {length} bytes of {MOST} at most: {}",
        socket.display()
    );
    Err(TargetError::unusable(why, "set TMPDIR to a shorter path"))
}

/// Returns PATH with the folders in which Debian has containerd's and Docker's helpers.
fn path_with_daemons() -> OsString {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/usr/bin"].map(PathBuf::from));
    env::join_paths(folders).unwrap_or(path)
}

/// Says how an engine comes to run, after installing one if there is none: first for a run's own
/// cells, which disturbs no other.
fn start_remedy() -> String {
    // Where systemd runs, it has this folder (sd_booted(3)).
    let start = match Path::new("/run/systemd/system").is_dir() {
        true => "systemctl start docker",
        false => "(setsid dockerd >/dev/null 2>&1 &)",
    };
    let engine = format!(
        "measure with --start-engine as root, which runs a private engine for its cells only; or \
         start one for all: {start}"
    );
    match programs::find("dockerd") {
        Some(_) => engine,
        None => format!("{}; then {engine}", programs::install("docker.io")),
    }
}

/// Returns the name under which a process is a daemon that disturbs.
fn daemon(pid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    let name = name.trim();
    if name == "podman" {
        let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let serves = words.windows(15).any(|part| part == b"system\0service\0");
        return serves.then(|| "podman system service".to_owned());
    }
    let runs = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned());
        state.is_some_and(|rest| !rest.starts_with(['Z', 'X']))
    };
    (DAEMONS.contains(&name) && runs()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_engines_of_this_machine_are_taken() {
        let path = |host: &str| socket(Some(host.into())).map_err(|error| error.to_string());
        assert_eq!(path(""), Ok(SOCKET.into()));
        assert_eq!(
            path("unix:///run/user/7/docker.sock"),
            Ok("/run/user/7/docker.sock".into())
        );
        assert_eq!(
            path("tcp://10.0.0.7:2375").unwrap_err(),
            "DOCKER_HOST=tcp://10.0.0.7:2375 is not on this machine, which is the one to measure"
        );
    }

    #[test]
    fn a_socket_without_permission_is_told_from_one_without_engine() {
        let unreachable = |kind: ErrorKind| DockerError::Unreachable {
            socket: SOCKET.into(),
            source: kind.into(),
        };
        assert!(remedy(&unreachable(ErrorKind::PermissionDenied)).contains("usermod -aG docker"));
        assert!(!remedy(&unreachable(ErrorKind::ConnectionRefused)).contains("usermod"));
    }
}
