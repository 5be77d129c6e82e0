//! The driver: starts the tools of a load, keeps them going, counts, and ends all of it.
//!
//! One thread sleeps in `poll` on its signals and on what the tools say. It wakes up when a tool ends or speaks,
//! so that the disturbance is the tools' and not the driver's.
//!
//! # Nothing outlives it
//!
//! Each tool is in a process group of its own. The driver is the subreaper of all descendants: whatever loses its parent
//! becomes the driver's child, and at the end every child is killed and waited for. If the driver itself is killed, the
//! kernel kills the tools (`PR_SET_PDEATHSIG`); what they had started ends by itself or is found by the
//! mark of the laboratory's guard. If the driver's parent dies, the driver gets SIGTERM and ends everything in order.

mod child;
mod crew;
mod folder;
mod options;
mod report;
mod signals;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use tare_wire::record::{Achieved, Failure, Hello, Notice, Record};

use crate::cpus;
use crate::error::Trouble;
use crate::kinds::{Setup, Walk};
use crate::loopback;
use crate::processes;
use crate::spec::Load;
use crate::tools;
use crate::tree;
use crew::Crew;
use folder::Folder;
use options::Options;
use report::Reporter;
use signals::Signals;

pub use options::{DEFAULT_LIMIT, USAGE};

/// Is the environment that the driver names in its first record.
pub const ENVIRONMENT: &str = "load";

/// Is how the time is named that the load's processes spent on CPUs.
pub const CPU_TIME: &str = "ns of CPU time";

/// Is how long all tools must live before the load counts as going: one that crashes does so at once. They must also have
/// been seen to work: one that is still being loaded from a cold disk disturbs little, and is not counted.
const SETTLE: Duration = Duration::from_millis(200);

/// Is how long tools may take until they work; then the load counts as going, and a notice says who does not. From a cold
/// disk the first lines of `du` take half a second, more on a busy one.
const WORK_LIMIT: Duration = Duration::from_secs(20);

/// Is how often it is asked whether tools work, after they have settled.
const ASK: Duration = Duration::from_millis(50);

/// Is how often the scratch folder is looked at, if a tool may write what it wants.
const LOOK: Duration = Duration::from_millis(500);

/// Is the share of a file system's free space that a load may take.
const SHARE_OF_FREE: f64 = 0.9;

/// Drives a load as these words say, and reports it on standard output. Returns the exit status: 0 done, 1 failed (a
/// `failure` record says why), 2 the words make no sense.
pub fn run(words: &[String]) -> u8 {
    let options = match Options::parse(words) {
        Ok(options) => options,
        Err(text) => {
            eprintln!("tare-agent: load: {text}\nTry 'tare-agent load --help'.");
            return 2;
        }
    };
    let mut reporter = Reporter::default();
    let plan = options.load.to_string();
    reporter.put(&Record::Hello(Hello {
        protocol: tare_wire::PROTOCOL,
        version: env!("CARGO_PKG_VERSION"),
        environment: ENVIRONMENT,
        plan: &plan,
    }));
    match drive(&options, &mut reporter) {
        Ok(()) => {
            reporter.end();
            0
        }
        Err(trouble) => {
            let text = trouble.to_string();
            eprintln!("tare-agent: load: {text}");
            reporter.put(&Record::Failure(Failure { text: &text }));
            1
        }
    }
}

fn drive(options: &Options, reporter: &mut Reporter) -> Result<(), Trouble> {
    let mut signals = Signals::take()?;
    check(&options.load)?;
    let cpus = options.cpus()?;
    let (folder, mut setup) = prepare(options, cpus)?;
    let mut tasks = Vec::new();
    for part in options.load.parts() {
        tasks.extend((part.kind.tasks)(&mut setup, &part.words)?);
    }
    let mut notices: Vec<String> = options.load.deviations();
    notices.extend(setup.notices);
    let remarks: BTreeSet<String> = tasks
        .iter()
        .filter_map(|task| task.meter.remark())
        .collect();
    notices.extend(remarks);
    for text in &notices {
        reporter.put(&Record::Notice(Notice { text }));
    }

    // A part that takes what room there is was told how much; others write what they want.
    let watched = options
        .load
        .parts()
        .iter()
        .any(|part| part.kind.example.is_some());
    let limit = watched.then_some(options.limit);
    let mut crew = Crew::new(tasks, folder.path(), limit);
    let started = Instant::now();
    let time = options.seconds;
    let outcome = attend(
        &mut crew,
        &mut signals,
        reporter,
        folder.path(),
        limit,
        time,
    );
    let done_ns = nanoseconds(started);
    let ended = outcome.and_then(|()| crew.stop(&mut signals));
    let rest = crew.end_rest();
    for text in ended? {
        reporter.put(&Record::Notice(Notice { text: &text }));
    }
    rest?;
    let mut achieved = |what: &str, amount, ns| {
        reporter.put(&Record::Achieved(Achieved { what, amount, ns }));
    };
    for (what, amount) in crew.totals() {
        achieved(&what, amount, done_ns);
    }
    if let Some(cpu_ns) = crew.cpu_ns() {
        // To end 2,400 processes takes CPU time, too: it belongs to a longer time than the work.
        achieved(CPU_TIME, cpu_ns, nanoseconds(started));
    }
    folder.remove()
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Keeps the tools going until the load is to stop.
fn attend(
    crew: &mut Crew,
    signals: &mut Signals,
    reporter: &mut Reporter,
    folder: &Path,
    limit: Option<u64>,
    time: Option<Duration>,
) -> Result<(), Trouble> {
    crew.start(signals)?;
    let started = Instant::now();
    let mut ask = Some(match crew.is_empty() {
        true => started,
        false => started + SETTLE,
    });
    let mut end = None;
    let mut look = started + LOOK;
    loop {
        let now = Instant::now();
        if signals.stop_asked() || reporter.is_unheard() || end.is_some_and(|end| now >= end) {
            return Ok(());
        }
        if ask.is_some_and(|ask| now >= ask) {
            ask = Some(now + ASK);
            let idlers = crew.idlers();
            if idlers.is_empty() || now >= started + WORK_LIMIT {
                if !idlers.is_empty() {
                    let (idlers, limit) = (idlers.join(", "), WORK_LIMIT.as_secs());
                    let text = format!("{idlers}: was not seen to work in its first {limit} s");
                    reporter.put(&Record::Notice(Notice { text: &text }));
                }
                reporter.put(&Record::Going);
                ask = None;
                end = time.and_then(|time| now.checked_add(time));
            }
        }
        if let Some(limit) = limit
            && now >= look
        {
            look = now + LOOK;
            let found = folder::used(folder);
            if found > limit {
                let dir = folder.to_owned();
                return Err(Trouble::OverLimit { dir, found, limit });
            }
        }
        let moments = [ask, limit.map(|_| look), end];
        crew.wait(signals, moments.into_iter().flatten().min())?;
    }
}

/// Checks what can be checked before anything is made.
fn check(load: &Load) -> Result<(), Trouble> {
    let missing = |tool: &tools::Tool| tool.find().is_none();
    if let Some(tool) = load.tools().into_iter().find(missing) {
        return Err(Trouble::MissingTool(tool));
    }
    if let Some((load, why)) = load.needs_root()
        && !rustix::process::geteuid().is_root()
    {
        return Err(Trouble::NeedsRoot { load, why });
    }
    let mut kinds = load.parts().iter().map(|part| part.kind);
    if let Some(kind) = kinds.find(|kind| kind.loopback)
        && !loopback::is_up()
    {
        return Err(Trouble::NoLoopback { load: kind.name });
    }
    Ok(())
}

/// Makes the scratch folder, and the tree if one is needed.
fn prepare(options: &Options, cpus: Vec<u32>) -> Result<(Folder, Setup), Trouble> {
    let folder = Folder::make(&options.dir)?;
    let walk = match folder::ram_disk(Path::new("/")) {
        Some(_) => Walk::Tree,
        None => Walk::Root,
    };
    let kinds = || options.load.parts().iter().map(|part| part.kind);
    let mut setup = Setup {
        cpus,
        dir: folder.path().to_owned(),
        room: 0,
        tree: None,
        walk,
        notices: Vec::new(),
    };
    if options.load.is_idle() {
        return Ok((folder, setup));
    }
    if let Some(kind) = folder::ram_disk(folder.path()) {
        setup.notices.push(format!(
            "the scratch folder is on {kind}: a RAM disk is another load than the disk of the study"
        ));
    }
    if processes::io(rustix::process::getpid()).is_none() {
        setup.notices.push(
            "this kernel keeps no account of what processes read and write (CONFIG_TASK_IO_ACCOUNTING): \
             what is cut short, of hackbench and tar, is not counted, and of nc whole blocks only"
                .to_owned(),
        );
    }
    let free = (folder::free(folder.path())? as f64 * SHARE_OF_FREE) as u64;
    let mut room = options.limit.min(free);
    let mut take = |need: u64| {
        let dir = folder.path().to_owned();
        room = room
            .checked_sub(need)
            .ok_or(Trouble::NoRoom { dir, room, need })?;
        Ok(())
    };
    if kinds().any(|kind| (kind.needs_tree)(&walk)) {
        setup.tree = Some(match &options.tree {
            Some(path) => {
                let size =
                    tree::count(path).map_err(|error| Trouble::at("read the tree", path, error))?;
                (path.clone(), size)
            }
            None => {
                take(tree::size(tree::SEED).disk_bytes())?;
                let path = folder.path().join("tree");
                let made = std::fs::create_dir(&path).and_then(|()| tree::make(&path, tree::SEED));
                let size = made.map_err(|error| Trouble::at("make the tree", &path, error))?;
                (path, size)
            }
        });
    }
    let writes: Vec<Option<u64>> = kinds().map(|kind| (kind.writes)(&setup)).collect();
    take(writes.iter().flatten().sum())?;
    let takers = writes.iter().filter(|need| need.is_none()).count() as u64;
    setup.room = room / takers.max(1);
    Ok((folder, setup))
}

impl Options {
    /// Chooses the CPUs.
    fn cpus(&self) -> Result<Vec<u32>, Trouble> {
        let wanted = self.cpus.as_ref().unwrap_or(self.load.cpus());
        wanted.choose(&cpus::allowed()?, self.except)
    }
}
