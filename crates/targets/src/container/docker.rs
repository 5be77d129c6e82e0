//! `docker`: the agent in a container of Docker's engine.
//!
//! The engine is asked through its socket (`tare-docker`), not by the `docker` command, which costs
//! more than what it asks for. An instance is four calls: make the container, attach to it, start
//! it, wait for its end. It has started with the first of them, as with `docker run`; that it is
//! removed afterwards is in none of its times.

use std::cell::RefCell;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use serde_json::{Value, json};
use tare_docker::{Attached, Docker, DockerError, Exit, Stream};
use tare_guard::{
    Guard, OWNER_LABEL, OWNER_VARIABLE, OwnedAtEngine, OwnedCgroup, OwnerId, Patience,
};
use tare_host::realtime::RealTime;
use tare_networks::{Network, NetworkNamespace};
use tare_results::target::TargetSpec;
use tare_results::work::Work;

use super::monitor::killed;
use super::realtime;
use super::settings::{CAPABILITIES, Image, Resources};
use super::{Prepared, Settings, image};
use crate::engine;
use crate::error::TargetError;
use crate::instance::Body;
use crate::launch::{Calls, Exited, Launch, Start};
use crate::measured::MeasuredFile;
use crate::server::Server;
use crate::{Availability, Job, Program, Target};

/// The target's name.
pub(crate) const NAME: &str = "docker";

/// How long a killed container may take to end, and how many pieces of what it still writes are
/// kept, of 16 KiB at most each.
const KILL_LIMIT: Duration = Duration::from_secs(10);
const MOST_PIECES: usize = 64;

/// The agent in a container of Docker's engine.
#[derive(Debug)]
pub struct DockerTarget {
    settings: Settings,
    pub(super) agent: MeasuredFile,
    /// The engine that was started for it, if one was.
    private: RefCell<Option<Docker>>,
    prepared: Prepared<AtEngine>,
}

/// An engine with the image.
#[derive(Debug)]
struct AtEngine {
    docker: Docker,
    image: String,
    /// Removes image and containers.
    _owned: OwnedAtEngine,
}

impl DockerTarget {
    /// Makes the target.
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            agent: MeasuredFile::agent(),
            private: RefCell::default(),
            prepared: Prepared::nothing(),
        }
    }

    fn docker(&self) -> Result<Docker, TargetError> {
        match &*self.private.borrow() {
            Some(docker) => Ok(docker.clone()),
            None => engine::find(),
        }
    }

    /// Imports the image into the engine.
    fn prepare(&self, guard: &Guard) -> Result<AtEngine, TargetError> {
        let docker = self.docker()?;
        let owned = guard.at_engine(docker.socket())?;
        let changes = image::changes(guard.owner());
        let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
        Ok(AtEngine {
            image: match &self.settings.image {
                None => docker.import(&image::archive(&self.agent)?, &changes)?,
                Some(Image::Name(name)) => docker.image_id(name)?,
                Some(Image::Archive(path)) if self.private.borrow().is_none() => {
                    return Err(not_into_yours(path));
                }
                Some(Image::Archive(path)) => docker.load(image::read(path)?)?,
            },
            docker,
            _owned: owned,
        })
    }
}

impl Target for DockerTarget {
    fn spec(&self) -> TargetSpec {
        self.settings.spec.clone()
    }

    fn present(&self) -> Availability {
        Availability::of(self.agent.path().and_then(|_| self.docker().map(drop)))
    }

    fn availability(&self) -> Availability {
        let engine = || Ok(self.docker()?.version()?);
        let image = || match &self.settings.image {
            None => self.agent.path().map(drop),
            Some(Image::Archive(path)) => engine().and_then(|_| Err(not_into_yours(path))),
            Some(Image::Name(name)) => Ok(self.docker()?.image_id(name).map(drop)?),
        };
        Availability::of(image().and_then(|()| engine()))
    }

    fn in_private_engine(&self) -> Availability {
        Availability::of(match &self.settings.image {
            None => self.agent.path().map(drop),
            Some(Image::Archive(path)) => image::sha256(path).map(drop),
            Some(Image::Name(name)) => Err(TargetError::unusable(
                format!("a private engine has no images of yours, and so no '{name}'"),
                format!(
                    "give an archive of it: `docker save {name} -o FILE.tar` where it is, and image=./FILE.tar"
                ),
            )),
        })
    }

    fn program(&self) -> Result<Program, TargetError> {
        let image = match &self.settings.image {
            None => return Program::native(&self.agent),
            Some(image) => image,
        };
        let sha256 = match image {
            Image::Archive(path) => image::sha256(path)?,
            Image::Name(name) => {
                let id = self.docker()?.image_id(name)?;
                id.trim_start_matches("sha256:").to_owned()
            }
        };
        Ok(Program {
            sha256,
            ..Program::default()
        })
    }

    fn use_engine(&self, socket: Option<&Path>) {
        // Removes the image from the previous engine while that engine still runs.
        self.prepared.0.replace(None);
        self.private.replace(socket.map(Docker::at));
    }

    fn resources(&self, work: &Work) -> Option<String> {
        Some(self.settings.resources(work).to_string())
    }

    fn launch(&self, job: &Job<'_>, guard: &Guard) -> Result<Launch, TargetError> {
        self.settings.must_have_agent(job)?;
        let resources = self.settings.resources(job.work);
        let prepared = self.prepared.get(guard, || self.prepare(guard))?;
        let server = Server::of_job(job, guard)?;
        let words = self.settings.words(job, server.as_ref());
        let mut full = config(&prepared.image, &words, resources, guard.owner());
        let mut network = None;
        if let (Some(own), Some(server)) = (job.network, &server) {
            let holder = network.insert(hold(&prepared.docker, &full, own)?);
            full["NetworkDisabled"] = json!(false);
            full["HostConfig"]["NetworkMode"] = json!(format!("container:{}", holder.id));
            execute(&mut full, server);
        }
        let mut group = None;
        if let Some(real_time) = resources.real_time.filter(|_| job.is_alone) {
            let given = group.insert(realtime::group(real_time, NAME, guard)?);
            give_time(&mut full, real_time, given);
        }
        let less = with_less(full.clone());
        let (config, less) = match self.settings.image {
            None => (full, job.is_alone.then_some(less)),
            Some(_) => (less, None),
        };
        let containers = Containers {
            docker: prepared.docker.clone(),
            config,
            less,
        };
        Ok(Launch {
            ready: self.settings.ready(),
            judge: Box::new(judge),
            engine_bytes: SHIM_BYTES,
            ..Launch::new(NAME, Start::Calls(Box::new(containers)))
        }
        .keeping((group, network))
        .of_server(server))
    }
}

/// Says that an archive is not loaded into an engine of the user's: removing it again could remove an
/// image that was there.
fn not_into_yours(path: &Path) -> TargetError {
    TargetError::unusable(
        "tare loads no archive into a Docker engine that you run".to_owned(),
        format!(
            "`docker load -i {}`, and give the image's name",
            path.display()
        ),
    )
}

/// The memory of a container's shim, about, in addition to that of its program.
const SHIM_BYTES: u64 = 48 << 20;

/// Judges a container that has ended.
fn judge(ended: &Exited<'_>) -> Result<(), String> {
    Err(match (ended.status.code(), ended.reason) {
        (Some(0), _) => return Ok(()),
        (_, Some(OUT_OF_MEMORY)) => {
            "the kernel killed the program: the container's memory is too little; give it more \
             with mem="
                .to_owned()
        }
        (Some(code @ 129..), _) => killed(code - 128),
        _ => ended.described(),
    })
}

/// The reason for a container's end that its status does not show.
const OUT_OF_MEMORY: &str = "OOMKilled";

/// Containers with the same configuration.
struct Containers {
    docker: Docker,
    config: Value,
    /// The configuration to fall back to if the engine rejects that.
    less: Option<Value>,
}

impl Calls for Containers {
    fn start(&self, notices: &mut Vec<String>) -> Result<Box<dyn Body>, TargetError> {
        let (mut container, warnings) = match (
            Container::start(&self.docker, &self.config),
            &self.less,
        ) {
            // The engine can do it, and may not: one that runs without root, for example.
            (Err(error @ DockerError::Refused { status: 400.., .. }), Some(less)) => {
                let started = Container::start(&self.docker, less)?;
                notices.push(format!(
                    "{error}: started without the capabilities {}, /dev/cpu_dma_latency and real-time time",
                    CAPABILITIES.join(", ")
                ));
                started
            }
            (started, _) => started?,
        };
        notices.extend(warnings.into_iter().filter(|text| !text.is_empty()));
        container.exit = Some(self.docker.exit(&container.id)?);
        Ok(Box::new(container))
    }
}

/// Describes a container in the words of the engine's interface.
fn config(image: &str, words: &[String], resources: Resources, owner: &OwnerId) -> Value {
    let devices: Vec<Value> = resources
        .dma_device
        .iter()
        .map(|path| {
            json!({ "PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rw" })
        })
        .collect();
    json!({
        "Image": image,
        // Without words, what the image says.
        "Cmd": (!words.is_empty()).then_some(words),
        "Env": [format!("{OWNER_VARIABLE}={owner}/0")],
        "Labels": { OWNER_LABEL: owner.as_str() },
        "NetworkDisabled": true,
        "AttachStdout": true,
        "AttachStderr": true,
        "HostConfig": {
            "NetworkMode": "none",
            "LogConfig": { "Type": "none" },
            "Memory": resources.memory_bytes,
            "CpusetCpus": resources.cpus.map(|cpus| cpus.to_string()).unwrap_or_default(),
            "CapAdd": CAPABILITIES,
            "Devices": devices,
        },
    })
}

/// Has a container execute a server.
fn execute(config: &mut Value, server: &Server) {
    config["Entrypoint"] = json!([server.path()]);
    config["Cmd"] = json!(server.words);
    let mounts = server.mounts();
    let mounts = mounts.iter().map(|(path, is_writable)| {
        json!({ "Type": "bind", "Source": path, "Target": path, "ReadOnly": !is_writable })
    });
    config["HostConfig"]["Tmpfs"] = json!({ "/tmp": "" });
    config["HostConfig"]["Mounts"] = mounts.collect();
}

/// Starts a container that sleeps, and makes its network that of the guest's place: the engine
/// takes no network of others, but one of its containers.
fn hold(docker: &Docker, config: &Value, network: &Network) -> Result<Container, TargetError> {
    let mut config = with_less(config.clone());
    execute(&mut config, &Server::sleeping()?);
    let (container, _) = Container::start(docker, &config)?;
    let pid = docker.state(&container.id)?.pid;
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    if !groups.contains(&container.id) {
        let why = "the engine's containers are on another machine, or in another PID namespace";
        return Err(TargetError::Failed(why.to_owned()));
    }
    network.tap()?.join(NetworkNamespace::of(pid)?)?;
    Ok(container)
}

/// Puts the container into a group that has real-time time: the engine's own groups have none.
fn give_time(config: &mut Value, real_time: RealTime, group: &OwnedCgroup) {
    let host = &mut config["HostConfig"];
    host["CgroupParent"] = json!(format!("/{}", group.name()));
    host["CpuRealtimePeriod"] = json!(real_time.period_us);
    host["CpuRealtimeRuntime"] = json!(real_time.runtime_us);
}

/// Removes the rights and limits that an engine may not be allowed to grant.
fn with_less(mut config: Value) -> Value {
    config["HostConfig"]["CapAdd"] = json!([]);
    config["HostConfig"]["Devices"] = json!([]);
    for name in ["CgroupParent", "CpuRealtimePeriod", "CpuRealtimeRuntime"] {
        config["HostConfig"][name] = Value::Null;
    }
    config
}

/// A started container. Dropping it removes it.
#[derive(Debug)]
struct Container {
    docker: Docker,
    id: String,
    attached: Attached,
    /// Output that was received and not yet passed on.
    came: Vec<(Stream, Vec<u8>)>,
    exit: Option<Exit>,
}

impl Container {
    /// Creates, attaches and starts a container. Also returns the engine's warnings.
    fn start(docker: &Docker, config: &Value) -> Result<(Self, Vec<String>), DockerError> {
        let created = docker.create(config)?;
        let started = docker.attach(&created.id).and_then(|attached| {
            docker.start(&created.id)?;
            Ok(attached)
        });
        match started {
            Ok(attached) => {
                let container = Self {
                    docker: docker.clone(),
                    id: created.id,
                    attached,
                    came: Vec::new(),
                    exit: None,
                };
                Ok((container, created.warnings))
            }
            Err(error) => {
                // If it fails, the guard tries again at the end.
                let _ = docker.remove_container(&created.id);
                Err(error)
            }
        }
    }

    fn signal(&self, signal: &str) -> Result<(), TargetError> {
        Ok(self
            .docker
            .signal(&self.id, signal)
            .or_else(|error| match error {
                // It has ended by itself.
                DockerError::Refused { status: 409, .. } => Ok(()),
                error => Err(error),
            })?)
    }

    /// Waits until it has ended, at most this time. Of what it writes until then, the last is kept.
    fn wait_for_end(&mut self, most: Duration) -> Result<(), TargetError> {
        let patience = Patience::new(most);
        while self.try_wait()?.is_none() && !patience.left().is_zero() {
            let surplus = self.came.len().saturating_sub(MOST_PIECES);
            self.came.drain(..surplus);
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<(), TargetError> {
        let came = &mut self.came;
        let take = |stream, bytes: &[u8]| came.push((stream, bytes.to_vec()));
        let read = self.attached.read(take);
        read.map_err(|source| TargetError::Output { source })
    }

    fn status(&mut self) -> Result<Option<i32>, TargetError> {
        let exit = self
            .exit
            .as_mut()
            .expect("set when the container is started");
        exit.status().map_err(|error| {
            TargetError::Failed(format!(
                "the fate of the container is unknown ({error}): the engine has ended or was \
                 restarted; see its log"
            ))
        })
    }
}

impl Body for Container {
    fn pid(&self) -> Option<u32> {
        let state = self.docker.state(&self.id).ok()?;
        Some(state.pid).filter(|pid| *pid > 0)
    }

    fn try_wait(&mut self) -> Result<Option<ExitStatus>, TargetError> {
        let Some(status) = self.status()? else {
            return Ok(None);
        };
        // The engine reports the end on one connection and sends the output on another.
        self.receive()?;
        Ok(self.attached.ended().then(|| as_exit_status(status)))
    }

    fn read(&mut self, take: &mut dyn FnMut(Stream, &[u8])) -> Result<(), TargetError> {
        self.receive()?;
        for (stream, bytes) in self.came.drain(..) {
            take(stream, &bytes);
        }
        Ok(())
    }

    fn news(&self) -> Vec<BorrowedFd<'_>> {
        // A descriptor at end of file is always readable.
        let attached = (!self.attached.ended()).then(|| self.attached.as_fd());
        let exit = self.exit.as_ref().filter(|exit| !exit.is_known());
        attached.into_iter().chain(exit.map(AsFd::as_fd)).collect()
    }

    fn kill(&mut self) -> Result<(), TargetError> {
        self.signal("KILL")?;
        self.wait_for_end(KILL_LIMIT)
    }

    fn terminate(&mut self) -> Result<(), TargetError> {
        self.signal("TERM")
    }

    fn reason(&mut self) -> Option<String> {
        let has_failed = self
            .status()
            .ok()
            .flatten()
            .is_some_and(|status| status != 0);
        let state = has_failed
            .then(|| self.docker.state(&self.id).ok())
            .flatten()?;
        state.is_out_of_memory.then(|| OUT_OF_MEMORY.to_owned())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // If it fails, the guard tries again at the end.
        let _ = self.docker.remove_container(&self.id);
    }
}

/// Converts a container's status to a process's exit status.
fn as_exit_status(status: i32) -> ExitStatus {
    ExitStatus::from_raw((status & 0xff) << 8)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::thread;

    use super::*;

    /// Answers calls as an engine whose containers have ended and write without end.
    fn serve(mut call: UnixStream) {
        let (mut request, mut byte) = (Vec::new(), [0]);
        while !request.ends_with(b"\r\n\r\n") {
            call.read_exact(&mut byte).unwrap();
            request.push(byte[0]);
        }
        let has = |word: &[u8]| request.windows(word.len()).any(|here| here == word);
        let mut say = |answer: &[u8]| call.write_all(answer).is_ok();
        if has(b"/attach") {
            say(b"HTTP/1.1 101 UPGRADED\r\n\r\n");
            let frame = [&[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff][..], &[b'x'; 65_536]].concat();
            while say(&frame) {}
        } else if has(b"/wait") {
            say(b"HTTP/1.1 200 OK\r\n\r\n{\"StatusCode\":137}");
        }
    }

    #[test]
    fn a_container_that_ends_and_writes_without_end_takes_no_memory() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("docker.sock");
        let engine = UnixListener::bind(&socket).unwrap();
        thread::spawn(move || {
            for call in engine.incoming() {
                thread::spawn(move || serve(call.unwrap()));
            }
        });
        let docker = Docker::at(&socket);
        let mut container = Container {
            attached: docker.attach("one").unwrap(),
            exit: Some(docker.exit("one").unwrap()),
            docker,
            id: "one".to_owned(),
            came: Vec::new(),
        };
        container.wait_for_end(Duration::from_millis(300)).unwrap();
        let kept: usize = container.came.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!((1..=3 << 20).contains(&kept), "{kept}");
    }
}
