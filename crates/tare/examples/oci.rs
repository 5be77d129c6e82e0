//! tare with the target of docs/adding-a-target.md: the agent in a container of any OCI runtime.
#![forbid(unsafe_code)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tare_guard::{Guard, OWNER_VARIABLE, OwnerId};
use tare_results::target::{Group, TargetSpec};
use tare_results::work::Work;
use tare_targets::launch::exec;
use tare_targets::measured::MeasuredFile;
use tare_targets::memory::needed;
use tare_targets::options::{Opt, Options, Size};
use tare_targets::spec::{KINDS, Kind, install};
use tare_targets::{Availability, Job, Launch, Program, Target, TargetError};

const RUNTIME: Opt = Opt::file("runtime", "the path of an OCI runtime")
    .required()
    .means("the runtime, such as `/usr/sbin/runc`");
const MEMORY: Opt = Opt::memory(Size::mib(8)).means("limit of the container's memory");

const OCI: Kind = Kind {
    name: "oci",
    summary: "a container of any OCI runtime",
    options: &[RUNTIME, MEMORY],
    make: |options| Ok(Box::new(Oci::new(options))),
    here: Some(|| Availability::of(MeasuredFile::agent().path())),
};

const TABLE: &[Kind] = &[KINDS[0], OCI];

fn main() -> ExitCode {
    install(TABLE);
    tare::main()
}

#[derive(Debug)]
struct Oci {
    spec: TargetSpec,
    runtime: PathBuf,
    memory: Option<Size>,
    agent: MeasuredFile,
}

impl Oci {
    fn new(options: &Options) -> Self {
        Self {
            spec: options.spec(Group::Container),
            runtime: options.get(&RUNTIME),
            memory: options.find(&MEMORY),
            agent: MeasuredFile::agent(),
        }
    }

    fn memory(&self, work: &Work) -> Size {
        self.memory.unwrap_or_else(|| needed(work.buffer_bytes))
    }

    /// Returns the agent's program, if there is a runtime to run it.
    fn agent(&self) -> Result<&Path, TargetError> {
        if !self.runtime.is_file() {
            let why = format!("there is no file {}", self.runtime.display());
            return Err(TargetError::unusable(why, "give the path of a runtime"));
        }
        self.agent.path()
    }
}

impl Target for Oci {
    fn spec(&self) -> TargetSpec {
        self.spec.clone()
    }

    fn present(&self) -> Availability {
        Availability::of(self.agent())
    }

    fn program(&self) -> Result<Program, TargetError> {
        Program::native(&self.agent)
    }

    fn resources(&self, work: &Work) -> Option<String> {
        let memory = self.memory(work);
        Some(format!("the measured CPUs, {memory} of memory, no network"))
    }

    fn launch(&self, job: &Job<'_>, guard: &Guard) -> Result<Launch, TargetError> {
        let agent = self.agent()?;
        // Both are moved into the closure below, and removed with it.
        let (folder, group) = (guard.scratch("oci")?, guard.reserve_cgroup("oci")?);
        let rootfs = folder.path().join("rootfs");
        make_rootfs(&rootfs, agent)
            .map_err(|error| TargetError::Failed(format!("no root file system: {error}")))?;
        let (runtime, owner, work) = (
            self.runtime.clone(),
            guard.owner().clone(),
            job.work.clone(),
        );
        let memory = self.memory(job.work);
        let started = AtomicU32::new(0);
        Ok(Launch::of_program("oci", move |number| {
            let name = group.name();
            // No other live container has this number: it takes over the bundle of an earlier one.
            let bundle = folder.path().join(format!("bundle-{number}"));
            fs::create_dir_all(&bundle)?;
            let cgroup = format!("/{name}/{number}");
            let config = config(&rootfs, &cgroup, memory, &work, &owner);
            fs::write(bundle.join("config.json"), config.to_string())?;
            let state = folder.path().join("state");
            let id = format!("{name}-{}", started.fetch_add(1, Ordering::Relaxed));
            let words = [
                "--root".as_ref(),
                state.as_os_str(),
                "run".as_ref(),
                "--bundle".as_ref(),
                bundle.as_os_str(),
                id.as_ref(),
            ];
            Ok(exec(&runtime, words)?.into())
        }))
    }
}

/// Makes a root file system with nothing but the agent.
fn make_rootfs(rootfs: &Path, agent: &Path) -> io::Result<()> {
    for folder in ["", "proc", "dev", "sys"] {
        fs::create_dir(rootfs.join(folder))?;
    }
    fs::copy(agent, rootfs.join("agent")).map(drop)
}

/// Returns the configuration of a container by the OCI Runtime Specification.
fn config(rootfs: &Path, cgroup: &str, memory: Size, work: &Work, owner: &OwnerId) -> Value {
    let plan = work.to_string();
    let arguments: Vec<&str> = ["/agent"]
        .into_iter()
        .chain(plan.split_whitespace())
        .collect();
    let capabilities = ["CAP_IPC_LOCK", "CAP_SYS_NICE"];
    let namespaces = ["pid", "network", "ipc", "uts", "mount"];
    let cpu = match work.used_cpus() {
        Some(cpus) => json!({ "cpus": cpus.to_string() }),
        None => json!({}),
    };
    json!({
        "ociVersion": "1.0.2",
        "root": { "path": rootfs, "readonly": true },
        "process": {
            "args": arguments,
            "cwd": "/",
            // The next command of tare finds containers that were left by this.
            "env": [format!("{OWNER_VARIABLE}={owner}/0")],
            "user": { "uid": 0, "gid": 0 },
            "capabilities": {
                "bounding": capabilities, "effective": capabilities, "permitted": capabilities,
            },
        },
        "mounts": [
            { "destination": "/proc", "type": "proc", "source": "proc" },
            { "destination": "/dev", "type": "tmpfs", "source": "tmpfs" },
            { "destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"] },
        ],
        "linux": {
            "cgroupsPath": cgroup,
            "namespaces": namespaces.map(|kind| json!({ "type": kind })),
            "resources": { "memory": { "limit": memory.mib << 20 }, "cpu": cpu },
        },
    })
}
