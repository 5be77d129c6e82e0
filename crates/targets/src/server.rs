//! The programs that serve: ours, servers of others with the same content, and any command.
//!
//! Each of the others runs with one thread or process for requests, without a log of them and
//! without limits of rates; name servers give minimal responses, which is what ours gives. Their
//! zone or page is written by our server, so that all have the same.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use tare_guard::{Guard, ScratchDir};
use tare_networks::TapNetwork;
use tare_results::work::Work;

use crate::container::unwritable;
use crate::error::TargetError;
use crate::launch;
use crate::measured::MeasuredFile;
use crate::{Availability, Job, programs};

/// A server of Debian's.
#[derive(Debug)]
struct Rival {
    /// Its name, which is its package's.
    name: &'static str,
    /// Our service that has the same content.
    service: &'static str,
    program: &'static str,
    words: &'static [&'static str],
    /// The files of this machine that it looks up users in.
    files: &'static [&'static str],
    /// Its configuration: FOLDER is its own folder, ADDRESS that on which it listens.
    configuration: &'static str,
    /// The words of its line on standard output once it has started.
    started: &'static str,
}

const RIVALS: [Rival; 3] = [
    Rival {
        name: "nsd",
        service: "dns",
        program: "nsd",
        words: &["-d", "-c"],
        files: &[],
        configuration: include_str!("server/nsd.conf"),
        started: "nsd started",
    },
    Rival {
        name: "knot",
        service: "dns",
        program: "knotd",
        words: &["-c"],
        files: &[],
        configuration: include_str!("server/knot.conf"),
        started: "server started",
    },
    Rival {
        name: "nginx",
        service: "http",
        program: "nginx",
        words: &["-c"],
        files: &["/etc/passwd", "/etc/group"],
        configuration: include_str!("server/nginx.conf"),
        started: "start worker process ",
    },
];

/// The words of the work of our server as a process with the unikernel's network stack.
pub const STACK: &str = "stack=unikernel";

/// The line of our server once it answers.
pub(crate) const ANSWERING: &str = "answering on ";

/// A program that serves, ready to be started.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) program: PathBuf,
    pub(crate) words: Vec<String>,
    /// Its files, which it finds at the same path in a container.
    pub(crate) folder: Option<ScratchDir>,
    /// The files that a container has as well.
    files: &'static [&'static str],
    /// The words of its line on standard output from which on it can be asked; `None` if it says
    /// nothing.
    pub(crate) ready: Option<&'static str>,
}

impl Rival {
    fn of(work: &Work) -> Option<&'static Self> {
        RIVALS.iter().find(|rival| rival.name == work.id)
    }

    fn program(&self) -> Result<PathBuf, TargetError> {
        programs::require(self.program, self.name)
    }

    /// Makes its content and its configuration.
    fn prepare(&self, guard: &Guard) -> Result<Server, TargetError> {
        let folder = guard.scratch(self.name)?;
        let [content, configuration] = ["content", "conf"].map(|name| folder.path().join(name));
        let output = File::create(&content).map_err(|error| unwritable(&content, &error))?;
        let services = MeasuredFile::services();
        let mut command = Command::new(services.path()?);
        let written = command.args([self.service, "print"]).stdout(output);
        if !written.status().is_ok_and(|status| status.success()) {
            let why = format!(
                "the content of {} can't be written to {}",
                self.name,
                content.display()
            );
            return Err(TargetError::Failed(why));
        }
        let (address, _) = TapNetwork::GUEST;
        let text = self.configuration.replace("ADDRESS", &address.to_string());
        let text = text.replace("FOLDER", &folder.path().display().to_string());
        fs::write(&configuration, text).map_err(|error| unwritable(&configuration, &error))?;
        let words = self.words.iter().map(|word| (*word).to_owned());
        Ok(Server {
            program: self.program()?,
            words: words.chain([configuration.display().to_string()]).collect(),
            folder: Some(folder),
            files: self.files,
            ready: Some(self.started),
        })
    }
}

impl Server {
    /// Prepares the server of a work, whose id is the name of our service or of another server, or
    /// whose words are a command.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if its program is missing, or its files can't be written.
    pub(crate) fn of(work: &Work, guard: &Guard) -> Result<Self, TargetError> {
        let (program, words, ready) = match Rival::of(work) {
            Some(rival) => return rival.prepare(guard),
            None if work.id == Work::COMMAND => {
                let (program, words) = command(work)?;
                (program, words, None)
            }
            None => {
                let program = canonical(MeasuredFile::services().path()?);
                let words = words(work).split(' ').map(str::to_owned).collect();
                (program, words, Some(ANSWERING))
            }
        };
        Ok(Self {
            program,
            words,
            folder: None,
            files: &[],
            ready,
        })
    }

    /// Prepares a program that sleeps until it is ended, and answers nothing.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if it is missing.
    pub(crate) fn sleeping() -> Result<Self, TargetError> {
        Ok(Self {
            program: canonical(&programs::require("sleep", "coreutils")?),
            words: vec!["infinity".to_owned()],
            folder: None,
            files: &[],
            ready: None,
        })
    }

    /// Prepares the server of a job, if it is one.
    ///
    /// # Errors
    ///
    /// As [`Server::of`].
    pub(crate) fn of_job(job: &Job<'_>, guard: &Guard) -> Result<Option<Self>, TargetError> {
        let server = job.network.map(|_| Self::of(job.work, guard));
        server.transpose()
    }

    /// Returns the path of its program.
    pub(crate) fn path(&self) -> String {
        self.program.display().to_string()
    }

    /// Returns the paths that a container has to see as this machine does, with whether it may
    /// write there: the program, the libraries that it needs, and its folder.
    pub(crate) fn mounts(&self) -> Vec<(String, bool)> {
        // It fails for static programs, which need none.
        let libraries = Command::new("ldd").arg(&self.program).output();
        let libraries = libraries.map(|ran| ran.stdout).unwrap_or_default();
        let libraries = String::from_utf8_lossy(&libraries);
        let libraries = libraries
            .split_whitespace()
            .filter(|word| word.starts_with('/'));
        let files = self.files.iter().map(|file| (*file).to_owned());
        let files = libraries
            .map(str::to_owned)
            .chain([self.path()])
            .chain(files);
        let folder = self.folder.iter();
        let folder = folder.map(|folder| (folder.path().display().to_string(), true));
        files.map(|file| (file, false)).chain(folder).collect()
    }
}

/// Finds the program of a command, and its words.
fn command(work: &Work) -> Result<(PathBuf, Vec<String>), TargetError> {
    launch::command(&shlex::split(&work.words).unwrap_or_default())
}

/// Returns the words of our server.
fn words(work: &Work) -> String {
    let (service, device) = (&work.id, TapNetwork::DEVICE);
    match &*work.words {
        STACK => format!("{service} tap={device} {}", TapNetwork::WORDS),
        words => format!("{service} {words}").trim_end().to_owned(),
    }
}

/// Returns the whole path of a program, by which a container finds it as well.
fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns the name of the program of others that a client's work starts, and whether it is here, with
/// the remedy; `None` if it starts none.
#[must_use]
pub fn client(work: &Work) -> Option<(String, Availability)> {
    const PACKAGES: [(&str, &str); 2] = [("dnsperf", "dnsperf"), ("nslookup", "bind9-dnsutils")];
    if let Some(line) = work.client_command() {
        let words = shlex::split(&line).unwrap_or_default();
        let name = words.first().cloned().unwrap_or_default();
        return Some((name, Availability::of(launch::command(&words))));
    }
    let mut words = work.words.split_whitespace();
    let name = words.find_map(|word| word.strip_prefix("client="))?;
    let mut all = PACKAGES.into_iter();
    let (program, package) = all.find(|(program, _)| *program == name)?;
    let availability = Availability::of(programs::require(program, package));
    Some((program.to_owned(), availability))
}

/// Returns whether the program of a server of others is here, and if not, the remedy.
#[must_use]
pub fn present(work: &Work) -> Availability {
    match Rival::of(work) {
        Some(rival) => Availability::of(rival.program()),
        None if work.id == Work::COMMAND => Availability::of(command(work)),
        None => Availability::Usable,
    }
}
