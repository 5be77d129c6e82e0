//! What a run folder says: the plan and one record for each cell.
//!
//! Only facts are here: what was asked, what was seen. Whatever can be derived (means, classes,
//! shares, verdicts) is derived by those who read the folder, so that a better method can be
//! applied to an old run.
//!
//! Units are in the names: `_ns`, `_seconds`, `_bytes`, `_hz`, and `_cycles` for ticks of the
//! measured CPU's TSC.

mod arrivals;
mod record;
mod samples;
mod trace;

use std::collections::HashSet;
use std::hash::Hash;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::bounded;
use crate::bounds;
use crate::frequency;
use crate::target::{Clock, Engine, Kernel, TargetOption, TargetSpec, one_line};
use crate::work::Work;
pub use arrivals::{Arrivals, Arrived, Failure, MOST_INSTANCES, Rung};
pub use record::{
    Agent, Calibration, Counter, Exceeded, Fact, Frequency, FrequencySource, Labels, Preparation,
    Program, Record, STARTED, STOPPED, SetHead, Unit, Value,
};
pub use samples::{Bin, Count, Event, Instance, InstanceOutcome, Samples, SetSamples};
pub use tare_load_driver::{Schedule, cpus::Cpus as LoadCpus};
pub use tare_wire::cpus::Cpus;
pub use trace::{Trace, TraceEvent, TraceKind};

/// The version of the run folder's schema. It is raised when a reader of the old version would
/// misread the new one; fields that are only added do not raise it.
pub const SCHEMA: u32 = 5;
/// The oldest version that is read: before version 5, each cell had its record in `cell.json`, also
/// in long runs.
pub const OLDEST_SCHEMA: u32 = 4;

/// `plan.json`: what the run was asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Version of the schema, [`SCHEMA`].
    pub schema: u32,
    /// Version of `tare` that made the plan.
    pub tare_version: String,
    /// Name of the experiment, `noise`; of several joined by `+`.
    pub experiment: String,
    /// When the plan was made, UTC.
    #[schemars(with = "String")]
    pub created: Timestamp,
    /// The command line, program name first.
    #[serde(deserialize_with = "bounded::list::<{ bounds::MOST_WORDS }, _, _>")]
    pub command: Vec<String>,
    /// Seed of the random order within each block.
    pub seed: u64,
    /// CPU that the workloads are pinned to.
    pub cpu: u32,
    /// Why that CPU.
    pub cpu_reason: String,
    /// Kernel settings changed for the time of the run, and put back afterwards.
    #[serde(deserialize_with = "bounded::list::<{ bounds::MOST_SETTINGS }, _, _>")]
    pub settings: Vec<SettingPlan>,
    /// The study that asked for it; None if the command line did.
    #[serde(default)]
    pub study: Option<StudyPlan>,
    /// Whether an engine that targets need and that does not run is started for their cells, and
    /// stopped after them.
    #[serde(default)]
    pub start_engine: bool,
    /// The cells, in the order in which they run: block by block.
    #[serde(deserialize_with = "bounded::list::<{ bounds::MOST_CELLS }, _, _>")]
    pub cells: Vec<CellPlan>,
}

/// Says which study a run belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StudyPlan {
    /// Its name.
    #[serde(deserialize_with = "one_line")]
    pub name: String,
    /// The published study whose tables and claims the report is to show next to the figures.
    pub reproduces: Option<String>,
    /// Whether its shorter variant ran.
    pub quick: bool,
    /// The study's file, as it was when the plan was made.
    pub text: String,
}

impl Plan {
    /// Returns the measured CPU; none where instances run on any.
    pub fn measured_cpu(&self) -> Option<u32> {
        let mut cells = self.cells.iter();
        cells.any(CellPlan::has_its_cpus).then_some(self.cpu)
    }

    /// Returns the command that goes on with the run, without the name of its folder.
    pub fn resume_command(&self) -> String {
        let is_reproduction = self.command.get(1).is_some_and(|word| word == "reproduce");
        let command = match self.study {
            Some(_) if is_reproduction => "tare reproduce".to_owned(),
            Some(_) => "tare run".to_owned(),
            None => format!("tare {}", self.experiment),
        };
        let trust = if self.programs().is_empty() {
            ""
        } else {
            " --trust"
        };
        format!("{command}{trust} --resume")
    }

    /// Lists what of the plan names programs of this machine that would be executed: commands,
    /// options of ssh, kernel settings. Who wrote the plan can have anything done with these.
    pub fn programs(&self) -> Vec<String> {
        let cells = self.cells.iter();
        let mut all: Vec<String> = cells.flat_map(CellPlan::programs).collect();
        let switches = self.cells.iter().flat_map(|cell| &cell.switches);
        let settings = switches.flat_map(|switch| &switch.settings);
        let settings = self.settings.iter().chain(settings);
        let is_tunable = |path: &str| {
            !path.contains("..") && TUNABLE.iter().any(|folder| path.starts_with(folder))
        };
        let run = settings
            .filter(|setting| setting.value.contains(['|', '/']) || !is_tunable(&setting.path));
        all.extend(run.map(|setting| format!("{}={}", setting.path, setting.value)));
        let mut known = HashSet::new();
        all.retain(|one| known.insert(one.clone()));
        all
    }
}

/// The options of ssh_config(5) that name no program, no library, no file that is written, and no
/// file with options. All others are taken for programs: keywords have aliases, and new ones come.
const HARMLESS: [&str; 22] = [
    "AddressFamily",
    "BatchMode",
    "BindAddress",
    "BindInterface",
    "CASignatureAlgorithms",
    "Ciphers",
    "Compression",
    "ConnectTimeout",
    "ConnectionAttempts",
    "HostKeyAlgorithms",
    "HostName",
    "IPQoS",
    "IdentitiesOnly",
    "IdentityFile",
    "KexAlgorithms",
    "LogLevel",
    "MACs",
    "Port",
    "PubkeyAcceptedAlgorithms",
    "ServerAliveInterval",
    "TCPKeepAlive",
    "User",
];

/// Where settings are that change how the machine runs, and no more. Others may start a program, end
/// processes, or put the machine to sleep.
const TUNABLE: [&str; 10] = [
    "/proc/irq/",
    "/proc/sys/kernel/",
    "/proc/sys/net/",
    "/proc/sys/vm/",
    "/sys/bus/workqueue/devices/",
    "/sys/devices/system/cpu/",
    "/sys/devices/system/machinecheck/",
    "/sys/devices/virtual/workqueue/",
    "/sys/kernel/mm/",
    "/sys/kernel/rcu_normal",
];

/// Says which kernel setting is changed for the time of the run, or of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct SettingPlan {
    /// File below /proc/sys or /sys.
    pub path: String,
    /// Value during the run.
    pub value: String,
}

/// Settings that serve one purpose and are changed together, for the time of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct SwitchPlan {
    /// Its name: `irq-affinity`, or that of its only setting.
    #[serde(deserialize_with = "one_line")]
    pub name: String,
    /// The settings.
    #[serde(deserialize_with = "bounded::list::<{ bounds::MOST_SETTINGS }, _, _>")]
    pub settings: Vec<SettingPlan>,
}

/// A setting of a switch that did not have its planned value throughout a cell.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Unswitched {
    /// The name of the switch.
    pub switch: String,
    /// The file of the setting.
    pub path: String,
    /// Whether it was never changed; else it was, and did not stay so.
    pub refused: bool,
    /// The reason, and what to do.
    pub why: String,
}

/// Says what one cell is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellPlan {
    /// Number of the cell, from 1, in running order. Names its folder.
    pub id: u32,
    /// Number of the block (run) that it belongs to, from 1. A block holds every combination once.
    pub block: u32,
    /// Experiment that it belongs to.
    pub experiment: String,
    /// Target.
    pub target: TargetSpec,
    /// Load as it is written on the command line: `idle`. Of loads one after the other, the
    /// schedule: `25s:idle;dd`.
    #[schemars(with = "String")]
    pub load: Schedule,
    /// The loads that run one after the other in one measurement, each as long as `phase_seconds`;
    /// empty if there is but one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub phases: Vec<Schedule>,
    /// How long each phase is, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_seconds: Option<f64>,
    /// The measured work, in words: `prime 22`.
    pub name: String,
    /// The labels, besides target and load, that distinguish it from others of its experiment.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The work of the measured code.
    pub work: Work,
    /// The work of a server on the target, which the measured code asks as a client on this machine;
    /// null if the measured code itself runs on the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Work>,
    /// How its instances are started, if there are many; null if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Its place on a ladder of cells, if it is on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<Rung>,
    /// Whether Docker's engine runs at the same time although the target does without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beside_engine: bool,
    /// The kernel settings that are changed for the time of the cell, as far as the kernel allows it,
    /// and put back afterwards.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "bounded::list::<{ bounds::MOST_SETTINGS }, _, _>"
    )]
    pub switches: Vec<SwitchPlan>,
    /// The expectations of its figures when the plan was made.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "bounded::list::<{ bounds::MOST_EXPECTED }, _, _>"
    )]
    pub expected: Vec<Expected>,
    /// Estimated duration of the cell in seconds.
    pub estimate_seconds: f64,
    /// Time after which the cell counts as hung, in seconds.
    pub limit_seconds: f64,
}

impl CellPlan {
    /// Lists what of it names programs of this machine that would be executed.
    fn programs(&self) -> Vec<String> {
        let schedules = self.phases.iter().chain([&self.load]);
        let loads = schedules.flat_map(Schedule::loads).map(ToString::to_string);
        let mut all: Vec<String> = loads.filter(|load| load.starts_with("command:")).collect();
        let own = self.arrivals.iter().filter_map(|own| own.command.as_ref());
        all.extend(own.map(|words| format!("command:{}", words.join(" "))));
        let server = self.server.iter().filter(|work| work.id == Work::COMMAND);
        all.extend(server.map(|work| format!("{}:{}", Work::COMMAND, work.words)));
        all.extend(
            self.work
                .client_command()
                .map(|line| format!("{}:{line}", Work::COMMAND)),
        );
        let options = self.target.options.iter();
        let is_program = |option: &&TargetOption| {
            // As ssh reads it: a keyword, and its value behind spaces or an equals sign.
            let line = option.value.trim_start();
            let end = line.find(|c: char| !c.is_ascii_alphanumeric());
            let key = &line[..end.unwrap_or(line.len())];
            let is_harmless = HARMLESS.iter().any(|known| key.eq_ignore_ascii_case(known));
            option.key == "option" && !is_harmless
        };
        all.extend(
            options
                .filter(is_program)
                .map(|option| option.value.clone()),
        );
        all
    }

    /// Makes the plan of a cell without load, not yet numbered.
    pub fn new(experiment: &str, target: TargetSpec, name: &str, work: Work) -> Self {
        Self {
            id: 0,
            block: 0,
            experiment: experiment.to_owned(),
            target,
            load: Schedule::idle(),
            phases: Vec::new(),
            phase_seconds: None,
            name: name.to_owned(),
            labels: Labels::default(),
            work,
            server: None,
            arrivals: None,
            rung: None,
            beside_engine: false,
            switches: Vec::new(),
            expected: Vec::new(),
            estimate_seconds: 0.0,
            limit_seconds: 0.0,
        }
    }

    /// Returns what is the same in cells that differ only in their block, and in no others.
    pub fn combination(&self) -> impl Eq + Hash + '_ {
        (
            &self.experiment,
            &self.target,
            &self.load,
            &self.work,
            &self.server,
            &self.arrivals,
            self.beside_engine,
            &self.switches,
        )
    }

    /// The label of a cell whose server has QEMU's user-mode network.
    pub const USER_NETWORK: (&str, &str) = ("network", "user-mode");

    /// Says whether two cells differ only in their block: then they are repetitions of each other.
    pub fn repeats(&self, other: &Self) -> bool {
        self.combination() == other.combination()
    }

    /// Says whether it is measured on CPUs that tare chose: many instances run where the kernel
    /// puts them, and another tool where its options say.
    pub fn has_its_cpus(&self) -> bool {
        self.arrivals.is_none() && self.target.kernel() != Kernel::Unknown
    }

    /// Returns the CPUs of the measured code: the server's where a client asks one.
    pub fn measured_cpus(&self) -> Cpus {
        self.server.as_ref().unwrap_or(&self.work).measured_cpus()
    }

    /// Returns whether its server, in a guest, has no TAP device but QEMU's user-mode network.
    pub fn has_user_network(&self) -> bool {
        let (label, value) = Self::USER_NETWORK;
        self.labels.get(label) == Some(value)
    }

    /// Returns the CPUs that nothing else should use: those, and the client's.
    pub fn claimed_cpus(&self) -> Cpus {
        let own = self.measured_cpus();
        own.iter().chain(self.work.measured_cpus().iter()).collect()
    }

    /// Returns the engine that must run while it is measured: its target's, or the one next to
    /// which it is measured.
    pub fn engine(&self) -> Option<Engine> {
        let needed = self.target.capabilities().engine;
        needed.or(self.beside_engine.then_some(Engine::Docker))
    }

    /// Names the combination: target, workload and load, as far as they distinguish it from others.
    pub fn label(&self) -> String {
        let mut label = format!("{} {}", self.target, self.name);
        if let Some(seconds) = self.phase_seconds {
            label.push_str(&format!(" in {} phases of {seconds} s", self.phases.len()));
        } else {
            label.push_str(&self.load.under());
        }
        if self.is_traced() {
            label.push_str(" traced");
        }
        label
    }

    /// Returns whether its times are instructions that an emulator counted. How an instance starts
    /// is seen from this machine.
    #[must_use]
    pub fn counts_instructions(&self) -> bool {
        self.target.clock == Clock::Instructions && self.arrivals.is_none()
    }

    /// Says whether the kernel's events are recorded, which costs time.
    pub fn is_traced(&self) -> bool {
        self.work.rights.kernel_events
    }
}

/// The expected value of a figure, stated before it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expected {
    /// The measure.
    pub measure: String,
    /// What distinguishes it from others of the measure.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The expected value, in the measure's unit.
    pub value: f64,
    /// The reasoning, in a line.
    #[serde(deserialize_with = "one_line")]
    pub why: String,
}

/// `cell.json`: what was seen of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Version of the schema, [`SCHEMA`].
    pub schema: u32,
    /// Its plan.
    pub plan: CellPlan,
    /// When the invocation of tare began that measured it, UTC: what it measured shares its
    /// minutes.
    #[schemars(with = "String")]
    pub invocation: Timestamp,
    /// When the cell was started, UTC.
    #[schemars(with = "String")]
    pub started_at: Timestamp,
    /// Its outcome.
    pub outcome: Outcome,
    /// Remarks of the agent and of this tool.
    #[serde(deserialize_with = "bounded::list::<{ bounds::MOST_NOTICES }, _, _>")]
    pub notices: Vec<String>,
    /// The load, where one ran.
    #[serde(default)]
    pub load: Option<Load>,
    /// Daemons that ran on this machine at the same time and may disturb: `dockerd`, `containerd`.
    #[serde(
        default,
        deserialize_with = "bounded::list::<{ bounds::MOST_NAMES }, _, _>"
    )]
    pub daemons: Vec<String>,
    /// What else ran on the measured CPUs of this machine; null if it was not watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_work: Option<OtherWork>,
    /// What else ran on the measured CPUs of a guest, as its own kernel counts; null if that is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_work: Option<OtherWork>,
    /// Settings of the plan's switches that did not have their planned value throughout.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "bounded::list::<{ bounds::MOST_SETTINGS }, _, _>"
    )]
    pub unswitched: Vec<Unswitched>,
}

impl Cell {
    /// Returns how long it was measured, in ns: all its sets one after the other. `None` if it has
    /// none, their ticks are of unknown length, or it measured between them.
    pub fn measured_ns(&self) -> Option<f64> {
        let record = self
            .outcome
            .record()
            .filter(|record| !record.sets.is_empty() && !self.plan.work.reports_between)?;
        let hz = frequency::choose(&record.program()?.frequencies).map(|tsc| tsc.hz);
        let each = record.sets.iter().map(|head| match head.unit {
            Unit::Ns => Some(head.length() as f64),
            Unit::Cycles => Some(head.length() as f64 * 1e9 / hz?),
        });
        each.sum()
    }

    /// Returns why its figures are not those of the planned rate: `saturated`, `not open-loop`.
    pub fn doubts(&self) -> impl Iterator<Item = &'static str> + use<> {
        let arrivals = self.plan.arrivals.as_ref();
        let rate = arrivals.and_then(|arrivals| arrivals.interval_ns);
        let record = self.outcome.record().filter(|_| rate.is_some());
        let arrived = record.and_then(|record| record.arrived.as_ref());
        let is = |why: fn(&Arrived) -> &Option<String>| arrived.is_some_and(|of| why(of).is_some());
        let saturated = is(|of| &of.saturated).then_some("saturated");
        let late = is(|of| &of.not_open_loop).then_some("not open-loop");
        saturated.into_iter().chain(late)
    }

    /// Returns whether other work says something of its figures: it was watched for long enough, and
    /// not mostly while nothing was measured.
    pub fn is_told_by(&self, other: &OtherWork) -> bool {
        let is_within =
            |ns| ns >= OtherWork::SHORTEST_NS as f64 && 2.0 * ns >= other.watched_ns as f64;
        other.is_telling() && self.measured_ns().is_none_or(is_within)
    }
}

/// What else ran on the measured CPUs of this machine while a cell was measured, as far as its
/// kernel tells.
///
/// All tasks are looked at once a second; what one has had is counted for the CPU on which it ran
/// last at two readings in a row. So the times are about right for work that stays on a CPU, and
/// none for what lives shorter than a second in between.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherWork {
    /// How long was watched: from the first look after the measurement began to the one when it was
    /// over; in a cell that never began, while it was prepared. 0 if there was no time for a look.
    pub watched_ns: u64,
    /// The processes that ran there most, without those of the cell and of its load; the one with
    /// the most time first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<OtherTask>,
    /// Other runs of tare that measured on one of these CPUs: their folders and processes.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "bounded::list::<{ bounds::MOST_NAMES }, _, _>"
    )]
    pub runs: Vec<String>,
}

impl OtherWork {
    /// The shortest time whose other work says something: tasks are looked at before the measurement
    /// and after it, and in a shorter one what ran in between is not what ran within.
    pub const SHORTEST_NS: u64 = 50_000_000;

    /// Returns whether it was watched for long enough to say something.
    pub fn is_telling(&self) -> bool {
        self.watched_ns >= Self::SHORTEST_NS
    }
}

/// A process that ran on a measured CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherTask {
    /// The CPU.
    pub cpu: u32,
    /// Its process id on this machine.
    pub pid: u32,
    /// Its name as the kernel keeps it: anybody can choose it.
    pub name: String,
    /// Whether it is a thread of the kernel.
    #[serde(default)]
    pub kernel: bool,
    /// CPU time that it had there.
    pub ns: u64,
}

/// Says what a load did while a cell ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// Where it ran.
    pub place: LoadPlace,
    /// How much it did.
    pub achieved: Vec<Achieved>,
    /// In what it differs from the published load, and what else it remarked.
    #[serde(deserialize_with = "bounded::list::<{ bounds::MOST_NOTICES }, _, _>")]
    pub notices: Vec<String>,
    /// When each phase was and what it achieved, where loads ran one after the other. `achieved` is
    /// empty then.
    #[serde(default)]
    pub phases: Vec<LoadPhase>,
    /// Tools that could not be ended in their time, and were left running.
    #[serde(default)]
    pub left: Vec<LeftTool>,
}

/// A tool of a load that could not be ended in its time, and was left running: the kernel did not
/// let it be killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftTool {
    /// The tool.
    pub tool: String,
    /// Its process, in its own kernel.
    pub pid: u32,
    /// Number of the phase that it belongs to, from 0.
    pub phase: u32,
    /// Number of the last phase that began while it was still there: its own if none did.
    pub until: u32,
    /// Whether it had ended when the load did. If not, it ends as soon as its kernel lets it.
    pub ended: bool,
}

/// Says when one phase of a load was, and what it achieved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadPhase {
    /// Number of the phase, from 0.
    pub number: u32,
    /// The load, as written on the command line.
    pub load: String,
    /// When it was due, by the CLOCK_MONOTONIC of the kernel that its tools ran under.
    pub due_ns: u64,
    /// When its tools were started; when it was skipped, if more than half of the phase had passed
    /// by then.
    pub started_ns: u64,
    /// When they were asked to end.
    pub stopping_ns: u64,
    /// When the last one had ended or was left running.
    pub stopped_ns: u64,
    /// The tool that ended last; null without tools.
    #[serde(default)]
    pub last_tool: Option<String>,
    /// How much it did.
    pub achieved: Vec<Achieved>,
}

/// The place of a load, as seen from the measured code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadPlace {
    /// On the target's machine, next to it.
    Beside,
    /// Inside the target, under the same kernel as the measured code.
    Inside,
}

/// Says how much of one thing a load did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Achieved {
    /// The things counted, in the plural: `bytes written`, `messages`, `packets`, `files`.
    pub what: String,
    /// How many.
    pub amount: u64,
    /// In what time.
    pub ns: u64,
}

/// The outcome of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// It ran to its end, and every record arrived.
    Done {
        /// The measurements; their samples are in the Parquet files next to it.
        record: Box<Record>,
        /// Why it ended before its plan was done; absent if it did not. Its samples are those until
        /// then, and a resumed run measures it again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cut_short: Option<String>,
    },
    /// The protocol left it out while the run went on, because what came before made it pointless,
    /// or a right was missing.
    LeftOut {
        /// What that was.
        reason: String,
    },
    /// It was tried, and did not.
    Failed {
        /// What happened, and what to do.
        reason: String,
    },
    /// It was not tried, because what must work before it failed. A resumed run tries both.
    NotTried {
        /// What that was.
        reason: String,
    },
}

/// Not derived: by its tag, all of it would first become a tree, which takes fifty times its length.
impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Status {
            Done,
            LeftOut,
            Failed,
            NotTried,
        }
        #[derive(Deserialize)]
        struct Members {
            status: Status,
            record: Option<Box<Record>>,
            cut_short: Option<String>,
            reason: Option<String>,
        }
        let members = Members::deserialize(from)?;
        let reason = || {
            members
                .reason
                .ok_or_else(|| D::Error::missing_field("reason"))
        };
        Ok(match members.status {
            Status::Done => Self::Done {
                record: members
                    .record
                    .ok_or_else(|| D::Error::missing_field("record"))?,
                cut_short: members.cut_short,
            },
            Status::LeftOut => Self::LeftOut { reason: reason()? },
            Status::Failed => Self::Failed { reason: reason()? },
            Status::NotTried => Self::NotTried { reason: reason()? },
        })
    }
}

impl Outcome {
    /// Makes the outcome of a cell that was measured to its end.
    pub fn done(record: Record) -> Self {
        Self::Done {
            record: Box::new(record),
            cut_short: None,
        }
    }

    /// Returns what was measured, if the cell is done.
    pub fn record(&self) -> Option<&Record> {
        match self {
            Self::Done { record, .. } => Some(record),
            Self::LeftOut { .. } | Self::Failed { .. } | Self::NotTried { .. } => None,
        }
    }

    /// Returns why the cell ended before its plan was done, if it did: what there is of it was
    /// measured, and is no whole cell.
    pub fn cut_short(&self) -> Option<&str> {
        match self {
            Self::Done { cut_short, .. } => cut_short.as_deref(),
            Self::LeftOut { .. } | Self::Failed { .. } | Self::NotTried { .. } => None,
        }
    }

    /// Returns why nothing was measured, if nothing was.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Done { .. } => None,
            Self::LeftOut { reason } | Self::Failed { reason } | Self::NotTried { reason } => {
                Some(reason)
            }
        }
    }
}
