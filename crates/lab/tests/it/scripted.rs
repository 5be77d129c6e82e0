//! A target that plays what it was given at given times, in place of measured code.

use std::collections::HashMap;
use std::io::{self, PipeReader, Read, Write, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::mpsc::{Sender, channel};
use std::sync::{LazyLock, Mutex, Once};
use std::thread;
use std::time::Duration;

use tare_docker::Stream;
use tare_guard::Guard;
use tare_results::target::{Group, TargetSpec};
use tare_targets::instance::{Body, set_nonblocking};
use tare_targets::launch::{Calls, Exited, Start};
use tare_targets::options::{Opt, Options, non_empty};
use tare_targets::spec::{self, Kind};
use tare_targets::{Availability, Facts, Job, Launch, Program, Target, TargetError};

/// The option that names a script.
const PLAY: Opt = Opt::text("play", "NAME", "the name of a script", non_empty);

const KINDS: &[Kind] = &[Kind {
    name: "scripted",
    summary: "an instance that plays what it was given",
    options: &[PLAY],
    make: |options| Ok(Box::new(Scripted::new(options))),
    here: None,
}];

/// A step of a script.
#[derive(Clone, Debug)]
pub enum Step {
    /// It writes this.
    Write(Vec<u8>),
    /// It does nothing for this time.
    Pause(Duration),
    /// It does nothing until it is asked to end.
    UntilAsked,
}

/// The actions of an instance, and the status with which it then ends.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub steps: Vec<Step>,
    pub status: i32,
    /// An engine's description of its end.
    pub reason: Option<&'static str>,
    /// How long it takes to judge what it sent.
    pub judging: Duration,
}

static SCRIPTS: LazyLock<Mutex<HashMap<String, Script>>> = LazyLock::new(Mutex::default);

/// Makes a target that plays a script. Names must differ.
pub fn target(name: &str, script: Script) -> TargetSpec {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| spec::install(KINDS));
    SCRIPTS.lock().unwrap().insert(name.to_owned(), script);
    spec::parse(&format!("scripted,play={name}"))
        .unwrap()
        .spec()
}

#[derive(Debug)]
struct Scripted {
    spec: TargetSpec,
    script: Script,
}

impl Scripted {
    fn new(options: &Options) -> Self {
        let name: String = options.get(&PLAY);
        Self {
            spec: options.spec(Group::Process),
            script: SCRIPTS.lock().unwrap()[&name].clone(),
        }
    }
}

impl Target for Scripted {
    fn spec(&self) -> TargetSpec {
        self.spec.clone()
    }

    fn present(&self) -> Availability {
        Availability::Usable
    }

    fn program(&self) -> Result<Program, TargetError> {
        Ok(Program::default())
    }

    fn verify(&self, _facts: Facts<'_>) -> Result<(), String> {
        thread::sleep(self.script.judging);
        Ok(())
    }

    fn launch(&self, _job: &Job<'_>, _guard: &Guard) -> Result<Launch, TargetError> {
        let start = Start::Calls(Box::new(Player(self.script.clone())));
        let mut launch = Launch::new("scripted", start);
        launch.judge = Box::new(judge);
        Ok(launch)
    }
}

fn judge(ended: &Exited<'_>) -> Result<(), String> {
    match (ended.status.code(), ended.reason) {
        (Some(0), None) => Ok(()),
        (_, Some(reason)) => Err(format!("its engine says: {reason}")),
        (status, None) => Err(format!("it ended with {status:?}: {}", ended.output)),
    }
}

struct Player(Script);

impl Calls for Player {
    fn start(&self, _notices: &mut Vec<String>) -> Result<Box<dyn Body>, TargetError> {
        let unstarted = |source| TargetError::Output { source };
        let (output, mut input) = pipe().map_err(unstarted)?;
        set_nonblocking(output.as_fd()).map_err(unstarted)?;
        let (end, asked) = channel();
        let steps = self.0.steps.clone();
        thread::spawn(move || {
            for step in steps {
                let played = match step {
                    Step::Write(bytes) => input.write_all(&bytes).is_ok(),
                    Step::Pause(time) => {
                        thread::sleep(time);
                        true
                    }
                    Step::UntilAsked => asked.recv().is_ok(),
                };
                if !played {
                    break;
                }
            }
        });
        Ok(Box::new(Playing {
            output,
            end: Some(end),
            status: None,
            script: self.0.clone(),
        }))
    }
}

#[derive(Debug)]
struct Playing {
    output: PipeReader,
    /// Asks it to end.
    end: Option<Sender<()>>,
    /// Its status, once all that it wrote was read.
    status: Option<ExitStatus>,
    script: Script,
}

impl Body for Playing {
    fn pid(&self) -> Option<u32> {
        None
    }

    fn try_wait(&mut self) -> Result<Option<ExitStatus>, TargetError> {
        Ok(self.status)
    }

    fn read(&mut self, take: &mut dyn FnMut(Stream, &[u8])) -> Result<(), TargetError> {
        let mut bytes = [0; 4096];
        loop {
            match self.output.read(&mut bytes) {
                Ok(0) => {
                    let ended = ExitStatus::from_raw(self.script.status << 8);
                    self.status.get_or_insert(ended);
                    return Ok(());
                }
                Ok(n) => take(Stream::Output, &bytes[..n]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(source) => return Err(TargetError::Output { source }),
            }
        }
    }

    fn news(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.output.as_fd()]
    }

    fn kill(&mut self) -> Result<(), TargetError> {
        self.end = None;
        self.status = Some(ExitStatus::from_raw(9));
        Ok(())
    }

    fn terminate(&mut self) -> Result<(), TargetError> {
        if let Some(end) = &self.end {
            let _ = end.send(());
        }
        Ok(())
    }

    fn reason(&mut self) -> Option<String> {
        self.script.reason.map(str::to_owned)
    }
}
