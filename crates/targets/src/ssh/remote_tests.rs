//! Runs the real agent by the real ssh on a machine that a real sshd makes of this one.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use tare_guard::Guard;
use tare_testkit::sshd::Sshd;

use super::*;
use crate::Instance;
use crate::instance::Ending;
use crate::spec;
use crate::tests::{LONG, SHORT, Seen, cut_short, record, result, watch, work};

const LIMIT: Duration = Duration::from_secs(60);

/// Another machine, and what reaches it.
struct Bench {
    sshd: Sshd,
    guard: Guard,
    folder: tempfile::TempDir,
}

impl Bench {
    /// Starts one; None if that is not possible here.
    fn new(extra: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("sshd");
        fs::create_dir(&files).unwrap();
        Some(Self {
            sshd: Sshd::start(&files, extra)?,
            guard: Guard::open(&folder.path().join("state")).unwrap(),
            folder,
        })
    }

    fn target(&self, options: &str) -> Ssh {
        let settings = Settings::read(&spec::options("ssh", options));
        Ssh {
            state_dir: Some(self.folder.path().join("state")),
            ..Ssh::new(settings)
        }
    }

    /// Makes a target that works.
    fn working(&self) -> Ssh {
        self.target(&self.sshd.options())
    }

    fn launch(&self, target: &Ssh, words: &str) -> Instance {
        target.start(&Job::idle(&work(words)), &self.guard).unwrap()
    }

    /// Returns the one folder that is there.
    fn kept(&self) -> std::path::PathBuf {
        let left = self.sshd.left();
        assert_eq!(left.len(), 1, "{left:?}");
        Path::new(&self.sshd.file("base")).join(&left[0])
    }

    /// Waits until the agent runs there, and returns its process id.
    fn agent(&self) -> u32 {
        loop {
            let is_agent = |pid: &u32| {
                let exe = fs::read_link(format!("/proc/{pid}/exe"));
                exe.is_ok_and(|exe| exe.display().to_string().contains("/agent-"))
            };
            if let Some(pid) = self.sshd.workers().into_iter().find(is_agent) {
                return pid;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn unusable(target: &Ssh) -> (String, String) {
    match target.availability() {
        Availability::Unusable { why, remedy } => (why, remedy),
        Availability::Usable => panic!("{} is usable", target.spec()),
    }
}

#[test]
fn one_connection_and_one_copy_serve_several_cells() {
    let Some(bench) = Bench::new("") else { return };
    let target = bench.working();
    assert_eq!(target.availability(), Availability::Usable);
    let program = target.program().unwrap();
    let notice = program.notice.unwrap();
    assert!(notice.contains("@127.0.0.1: "), "{notice}");
    let mut copies = Vec::new();
    for _ in 0..3 {
        let Seen {
            ended, received, ..
        } = watch(bench.launch(&target, SHORT), LIMIT);
        assert_eq!(ended.how, Ending::Done);
        let received = received.unwrap();
        assert_eq!(received.program.agent.environment, "linux");
        let record = record(received);
        assert_eq!(result(&record), (Some(8.0), Some(84.0)));
        let agent = bench
            .kept()
            .join(format!("agent-{}", &program.sha256[..16]));
        copies.push(fs::metadata(agent).unwrap().modified().unwrap());
        assert_eq!(bench.sshd.connections().len(), 1);
    }
    copies.dedup();
    assert_eq!(copies.len(), 1);
    let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(bench.kept()).unwrap());
    assert_eq!(mode & 0o777, 0o700);
    drop(target);
    // The monitor has confirmed: nothing is waited for.
    assert_eq!(bench.sshd.left(), Vec::<String>::new());
    bench.sshd.wait_until_clean();
}

#[test]
fn an_agent_reports_what_it_has_when_it_is_asked_to_end() {
    let Some(bench) = Bench::new("") else { return };
    let target = bench.working();
    cut_short(&target, "", &bench.guard);
    // The connection is still good.
    let seen = watch(bench.launch(&target, SHORT), LIMIT);
    assert_eq!(seen.ended.how, Ending::Done);
}

#[test]
fn the_cpu_is_one_of_the_other_machine() {
    let Some(bench) = Bench::new("") else { return };
    let target = bench.working();
    let session = target.session().unwrap();
    let first = session
        .machine
        .cpus
        .split([',', '-'])
        .next()
        .unwrap()
        .to_owned();
    drop(session);
    let error = target.start(&Job::idle(&work(&format!("{SHORT} cpu=999"))), &bench.guard);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("CPU 999 is not among its CPUs"), "{error}");
    let target = bench.target(&format!("{},cpu={first}", bench.sshd.options()));
    let Seen {
        ended, received, ..
    } = watch(bench.launch(&target, &format!("{SHORT} cpu=999")), LIMIT);
    assert_eq!(ended.how, Ending::Done);
    let cpu = received.unwrap().program.preparation.cpu;
    assert_eq!(cpu.map(|cpu| cpu.to_string()), Some(first));
}

#[test]
fn a_host_key_that_is_not_known_is_refused_and_the_remedy_works() {
    let Some(bench) = Bench::new("") else { return };
    let known = bench.sshd.file("known_hosts");
    fs::remove_file(&known).unwrap();
    let (why, remedy) = unusable(&bench.working());
    assert_eq!(why, "its host key is not known");
    let typed = remedy.split('`').nth(1).unwrap();
    let typed = Command::new("sh").args(["-c", typed]).output().unwrap();
    assert!(typed.status.success(), "{typed:?}");
    assert_eq!(bench.working().availability(), Availability::Usable);

    // Another key than the one that is known.
    bench.sshd.know("stranger.pub");
    let (why, remedy) = unusable(&bench.working());
    assert!(why.contains("not the one that is known"), "{why}");
    assert!(remedy.contains("ssh-keygen -R '[127.0.0.1]:"), "{remedy}");
    bench.sshd.wait_until_clean();
}

#[test]
fn a_key_that_is_not_accepted_or_not_there_is_told() {
    let Some(bench) = Bench::new("") else { return };
    let (user, stranger) = (bench.sshd.file("user"), bench.sshd.file("stranger"));
    let options = bench.sshd.options();
    let (why, remedy) = unusable(&bench.target(&options.replace(&user, &stranger)));
    assert!(why.contains("Permission denied (publickey"), "{why}");
    assert!(
        remedy.starts_with(&format!("`ssh-copy-id -i {stranger} -p ")),
        "{remedy}"
    );
    let (why, _) = unusable(&bench.target(&options.replace(&user, "/nowhere/key")));
    assert!(why.contains("the key /nowhere/key can't be read"), "{why}");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    fs::set_permissions(&user, mode).unwrap();
    let (_, remedy) = unusable(&bench.working());
    assert_eq!(remedy, format!("chmod 600 {user}"));
}

#[test]
fn a_machine_that_is_not_there_is_told() {
    let Some(bench) = Bench::new("") else { return };
    let options = bench.sshd.options();
    drop(bench.sshd);
    let settings = Settings::read(&spec::options("ssh", &options));
    let target = Ssh {
        state_dir: Some(bench.folder.path().join("state")),
        ..Ssh::new(settings)
    };
    let (why, remedy) = unusable(&target);
    assert!(why.starts_with("nothing listens on its port "), "{why}");
    assert!(remedy.contains("systemctl start ssh"), "{remedy}");
}

#[test]
fn another_architecture_is_refused() {
    let bin = tempfile::tempdir().unwrap();
    let uname = bin.path().join("uname");
    fs::write(
        &uname,
        "#!/bin/sh\n[ \"$1\" = -s ] && echo Linux || echo aarch64\n",
    )
    .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&uname, mode).unwrap();
    let command = format!(
        "ForceCommand PATH={}:$PATH; eval \"$SSH_ORIGINAL_COMMAND\"",
        bin.path().display()
    );
    let Some(bench) = Bench::new(&command) else {
        return;
    };
    let (why, _) = unusable(&bench.working());
    assert_eq!(
        why,
        "it is Linux aarch64, and the agent is for Linux x86_64"
    );
    bench.sshd.wait_until_clean();
}

#[test]
fn what_a_login_shell_says_is_no_obstacle_unless_it_is_all() {
    let words = "echo Welcome to the machine; eval \"$SSH_ORIGINAL_COMMAND\"";
    let Some(bench) = Bench::new(&format!("ForceCommand {words}")) else {
        return;
    };
    let Seen {
        ended, received, ..
    } = watch(bench.launch(&bench.working(), SHORT), LIMIT);
    assert_eq!(ended.how, Ending::Done);
    received.unwrap();
    let bench = Bench::new("ForceCommand echo This account is not available.; exit 1").unwrap();
    let (why, remedy) = unusable(&bench.working());
    assert!(
        why.ends_with("it said: This account is not available."),
        "{why}"
    );
    assert!(remedy.contains("/bin/sh -c true"), "{remedy}");
}

#[test]
fn a_folder_that_can_not_be_made_or_filled_is_told() {
    let Some(bench) = Bench::new("") else { return };
    let base = format!("dir={}", bench.sshd.file("base"));
    let options = bench.sshd.options();
    let (why, remedy) = unusable(&bench.target(&options.replace(&base, "dir=/nowhere")));
    assert!(why.contains("no folder can be made there: "), "{why}");
    assert_eq!(remedy, "name another one with dir=DIR");
    // The folder is there, but what is copied is not what arrives.
    let target = bench.working();
    let path = target.agent.path().unwrap().to_owned();
    let session = target.session().unwrap();
    let folder = session.folder.clone();
    drop(session);
    let name = format!("agent-{}", &target.sha256().unwrap()[..16]);
    std::os::unix::fs::symlink("/dev/full", Path::new(&folder).join(name)).unwrap();
    let error = target
        .start(&Job::idle(&work(SHORT)), &bench.guard)
        .unwrap_err();
    let error = error.to_string();
    assert!(error.contains("No space left on device"), "{error}");
    assert!(error.contains("dir=DIR"), "{error}");
    assert!(path.exists());
}

#[test]
fn a_server_that_allows_one_session_only_is_told() {
    let Some(bench) = Bench::new("MaxSessions 1") else {
        return;
    };
    let target = bench.working();
    let error = target
        .start(&Job::idle(&work(SHORT)), &bench.guard)
        .unwrap_err();
    assert!(error.to_string().contains("MaxSessions"), "{error}");
    drop(target);
    bench.sshd.wait_until_clean();
}

#[test]
fn a_broken_connection_leaves_nothing_and_the_next_cell_makes_a_new_one() {
    let Some(bench) = Bench::new("") else { return };
    let target = bench.working();
    let instance = bench.launch(&target, LONG);
    bench.agent();
    bench.sshd.break_connections();
    let Seen { ended, .. } = watch(instance, LIMIT);
    let Ending::Failed { why } = ended.how else {
        panic!("{ended:?}");
    };
    assert!(why.starts_with("the connection to "), "{why}");
    bench.sshd.wait_until_clean();
    // The client may take a moment to see it.
    while target.session.borrow_mut().as_mut().unwrap().stands() {
        thread::sleep(Duration::from_millis(10));
    }
    let Seen { ended, .. } = watch(bench.launch(&target, SHORT), LIMIT);
    assert_eq!(ended.how, Ending::Done);
}

#[test]
fn an_agent_that_hangs_is_ended_there_and_the_connection_stays() {
    let Some(bench) = Bench::new("") else { return };
    let target = bench.working();
    let instance = bench.launch(&target, LONG);
    let agent = bench.agent();
    let stop = Command::new("kill")
        .args(["-STOP", &agent.to_string()])
        .status();
    assert!(stop.unwrap().success());
    let Seen { ended, .. } = watch(instance, Duration::from_millis(300));
    let Ending::TimedOut { doing: Some(doing) } = ended.how else {
        panic!("{ended:?}");
    };
    assert!(doing.starts_with("the agent still ran on "), "{doing}");
    let exe = fs::read_link(format!("/proc/{agent}/exe"));
    assert!(exe.is_err(), "the agent is left: {exe:?}");
    let Seen { ended, .. } = watch(bench.launch(&target, SHORT), LIMIT);
    assert_eq!(ended.how, Ending::Done);
    assert_eq!(bench.sshd.connections().len(), 1);
}

#[test]
fn an_agent_that_is_killed_there_is_told() {
    let Some(bench) = Bench::new("") else { return };
    let target = bench.working();
    let instance = bench.launch(&target, LONG);
    let agent = bench.agent().to_string();
    assert!(
        Command::new("kill")
            .args(["-9", &agent])
            .status()
            .unwrap()
            .success()
    );
    let Seen { ended, .. } = watch(instance, LIMIT);
    let Ending::Failed { why } = ended.how else {
        panic!("{ended:?}");
    };
    assert!(why.starts_with("it was killed (SIGKILL) on "), "{why}");
}

#[test]
fn what_a_killed_monitor_left_is_removed_by_the_next_connection() {
    let Some(bench) = Bench::new("") else { return };
    let alive = bench.working();
    assert_eq!(alive.availability(), Availability::Usable);
    let base = bench.sshd.file("base");
    let place = fs::read(bench.kept().join("place")).unwrap();
    for (name, place) in [("tare-ssh-old", &place[..]), ("tare-ssh-elsewhere", b"x")] {
        let folder = Path::new(&base).join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("place"), place).unwrap();
    }
    fs::create_dir(Path::new(&base).join("mine")).unwrap();
    for name in bench.sshd.left() {
        let path = format!("{base}/{name}");
        let touched = Command::new("touch")
            .args(["-d", "-5 minutes", &path])
            .status();
        assert!(touched.unwrap().success());
    }
    let kept = bench.kept_by(&alive);
    let next = bench.working();
    assert_eq!(next.availability(), Availability::Usable);
    let mut expected = vec![
        "mine".to_owned(),
        "tare-ssh-elsewhere".to_owned(),
        kept,
        bench.kept_by(&next),
    ];
    let mut left = bench.sshd.left();
    expected.sort();
    left.sort();
    assert_eq!(left, expected);
}

#[test]
fn a_process_that_works_elsewhere_is_not_ended() {
    let (_, rest) = include_str!("monitor.sh").split_once("<<'RUN'\n").unwrap();
    let (script, _) = rest.split_once("\nRUN\n").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [run, agent, gone] = ["run", "agent", "gone"].map(|name| folder.path().join(name));
    fs::write(&run, script).unwrap();
    std::os::unix::fs::symlink("/bin/sh", agent).unwrap();
    // As if the agent had ended, and its id were that of somebody's process.
    let mut command = Command::new("sh");
    command.arg(&run).args(["agent", "-c"]);
    command
        .args(["cd / && : >\"$0\" && exec sleep 1"])
        .arg(&gone);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    while !gone.exists() {
        thread::sleep(Duration::from_millis(5));
    }
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

impl Bench {
    /// Returns the name of the folder that a target has there.
    fn kept_by(&self, target: &Ssh) -> String {
        let folder = target.session().unwrap().folder.clone();
        folder.rsplit('/').next().unwrap().to_owned()
    }
}
