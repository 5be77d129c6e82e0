//! Starts a program at the least cost, from any thread.
//!
//! `fork` copies the page tables of the whole process, which takes milliseconds where that is
//! large, and the standard library forks whenever something is to be done in the child before its
//! program. Here the child borrows the memory of its parent until it executes its program, as with
//! `vfork` and `posix_spawn`, but it also asks to die with its parent, gets a process group of its
//! own and enters control groups, which `posix_spawn` can't.
//!
//! The child runs on its own stack with all signals blocked; the thread that starts it stands
//! still until then.

use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::fs::File;
use std::io::{self, PipeReader, pipe};
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::ptr;

use crate::owned::cgroup::{CgroupEntry, enter_when_spawned};

/// The size of the child's stack: enough for some system calls.
const STACK: usize = 32 * 1024;

/// The greatest number of a signal, real-time signals included.
const LAST_SIGNAL: c_int = 64;

/// A program with its arguments.
#[derive(Debug)]
pub struct Exec {
    path: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    folder: Option<CString>,
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    /// Files to which a process writes to enter a control group.
    groups: Vec<File>,
}

/// A program that was started. It is killed when this is dropped before it was reaped.
#[derive(Debug)]
pub struct Started {
    pid: libc::pid_t,
    pidfd: OwnedFd,
    /// The reading end of its standard output.
    pub stdout: PipeReader,
    /// The reading end of its standard error.
    pub stderr: PipeReader,
    is_reaped: bool,
}

/// How a process ended, and what it and those that it waited for had taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceUsage {
    /// How it ended.
    pub status: ExitStatus,
    /// CPU time in user mode; of a hypervisor, with its guest's.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// Greatest resident memory of one of them; None if it is unknown. Linux gives that of the
    /// parent of a process that has never taken as much as its parent had when it was started.
    pub peak_bytes: Option<u64>,
    /// Whether others of its group still ran, and were killed.
    pub left_others: bool,
}

impl Exec {
    /// Prepares a program, by its path.
    ///
    /// # Errors
    ///
    /// If a word has a NUL.
    pub fn new<'a>(
        path: &Path,
        arguments: impl IntoIterator<Item = &'a OsStr>,
    ) -> io::Result<Self> {
        let path = word(path.as_os_str())?;
        let mut all = vec![path.clone()];
        for argument in arguments {
            all.push(word(argument)?);
        }
        Ok(Self {
            path,
            arguments: all,
            environment: Vec::new(),
            folder: None,
            stdin: None,
            stdout: None,
            groups: Vec::new(),
        })
    }

    /// Adds a variable to its environment, which has this process's besides.
    ///
    /// # Errors
    ///
    /// If it has a NUL.
    pub fn variable(&mut self, name: &str, value: &OsStr) -> io::Result<()> {
        let mut text = format!("{name}=").into_bytes();
        text.extend_from_slice(value.as_bytes());
        self.environment.push(CString::new(text)?);
        Ok(())
    }

    /// Starts it in a folder.
    ///
    /// # Errors
    ///
    /// If its name has a NUL.
    pub fn in_folder(&mut self, folder: &Path) -> io::Result<()> {
        self.folder = Some(word(folder.as_os_str())?);
        Ok(())
    }

    /// Gives it a standard input; else it has none.
    pub fn stdin(&mut self, stdin: OwnedFd) {
        self.stdin = Some(stdin);
    }

    /// Gives it a standard output; else that is a pipe, which is [`Started::stdout`]. Only a
    /// program that is started by its [`command`](Self::command) can have one.
    pub fn stdout(&mut self, stdout: OwnedFd) {
        self.stdout = Some(stdout);
    }

    /// Returns it as a command, for [`Guard::spawn`](crate::Guard::spawn): one that is started
    /// alone has its own line in the journal.
    #[must_use]
    pub fn command(self) -> Command {
        let os = |text: &CString| OsStr::from_bytes(text.as_bytes()).to_owned();
        let mut command = Command::new(os(&self.path));
        command.args(self.arguments.iter().skip(1).map(os));
        for variable in &self.environment {
            let variable = variable.as_bytes();
            let end = variable.iter().position(|byte| *byte == b'=');
            let (name, value) = variable.split_at(end.unwrap_or(variable.len()));
            let value = value.strip_prefix(b"=").unwrap_or_default();
            command.env(OsStr::from_bytes(name), OsStr::from_bytes(value));
        }
        if let Some(folder) = &self.folder {
            command.current_dir(os(folder));
        }
        command.stdin(self.stdin.map_or_else(Stdio::null, Stdio::from));
        if let Some(stdout) = self.stdout {
            command.stdout(stdout);
        }
        if !self.groups.is_empty() {
            enter_when_spawned(&mut command, self.groups);
        }
        command
    }

    /// Lets it start in a control group.
    ///
    /// # Errors
    ///
    /// If there are too many open files.
    pub fn enter(&mut self, group: &CgroupEntry) -> io::Result<()> {
        for file in &group.files {
            self.groups.push(file.try_clone()?);
        }
        Ok(())
    }

    /// Starts it, with these variables besides its own.
    ///
    /// # Errors
    ///
    /// If it can't be started or its program can't be executed.
    pub(crate) fn start(&self, null: &OwnedFd, inherited: &[CString]) -> io::Result<Started> {
        let (stdout, output) = pipe()?;
        let (stderr, error) = pipe()?;
        let pointers = |words: &mut dyn Iterator<Item = *const c_char>| -> Vec<*const c_char> {
            words.chain([ptr::null()]).collect()
        };
        let arguments = pointers(&mut self.arguments.iter().map(|word| word.as_ptr()));
        let own = self.environment.iter().chain(inherited);
        let environment = pointers(&mut own.map(|word| word.as_ptr()));
        let stdin = self.stdin.as_ref().unwrap_or(null).as_raw_fd();
        let groups: Vec<RawFd> = self.groups.iter().map(AsRawFd::as_raw_fd).collect();
        let mut child = Child {
            path: self.path.as_ptr(),
            arguments: arguments.as_ptr(),
            environment: environment.as_ptr(),
            folder: self
                .folder
                .as_ref()
                .map_or(ptr::null(), |path| path.as_ptr()),
            streams: [stdin, output.as_raw_fd(), error.as_raw_fd()],
            groups: &groups,
            parent: std::process::id() as libc::pid_t,
            error: 0,
        };
        let (pid, pidfd) = child.start()?;
        let started = Started {
            pid,
            pidfd,
            stdout,
            stderr,
            is_reaped: false,
        };
        match child.error {
            0 => Ok(started),
            // Dropping it reaps it.
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

fn word(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

/// Returns this process's environment with another mark.
pub(crate) fn environment(mark: CString) -> Vec<CString> {
    let name = crate::OWNER_VARIABLE;
    let inherited = std::env::vars_os().filter(|(key, _)| key != name);
    let texts = inherited.filter_map(|(key, value)| {
        let mut text = key.into_encoded_bytes();
        text.push(b'=');
        text.extend_from_slice(value.as_bytes());
        CString::new(text).ok()
    });
    texts.chain([mark]).collect()
}

/// The child's instructions. It shares its parent's memory, and writes why it failed.
struct Child<'a> {
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    folder: *const c_char,
    streams: [RawFd; 3],
    groups: &'a [RawFd],
    parent: libc::pid_t,
    error: c_int,
}

impl Child<'_> {
    /// Starts it, and waits until its program is executed or could not be.
    fn start(&mut self) -> io::Result<(libc::pid_t, OwnedFd)> {
        let mut stack = vec![0_u128; STACK / size_of::<u128>()];
        let top = stack.as_mut_ptr_range().end;
        let mut pidfd: c_int = -1;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
        let before = block_signals()?;
        let told: *mut Self = self;
        // SAFETY: `run` gets `self` and its own stack. Because of CLONE_VFORK this thread goes
        // on only when the child has executed its program or ended, so both live long enough, and
        // nobody else uses them.
        let pid = unsafe {
            libc::clone(
                run,
                top.cast::<c_void>(),
                flags,
                told.cast::<c_void>(),
                &raw mut pidfd,
            )
        };
        let cloned = match pid {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: the kernel has just opened it for us.
            _ => Ok((pid, unsafe { OwnedFd::from_raw_fd(pidfd) })),
        };
        restore_signals(&before);
        cloned
    }
}

/// Does in the child what is to be done before its program, and executes that. Only system calls:
/// other threads of the parent may hold any lock.
extern "C" fn run(told: *mut c_void) -> c_int {
    // SAFETY: it is what `Child::start` handed over, and only used here until the child has ended.
    let child = unsafe { &mut *told.cast::<Child<'_>>() };
    // SAFETY: system calls with pointers that `Exec::start` keeps alive. The child has its own
    // table of handlers and of descriptors, since neither CLONE_SIGHAND nor CLONE_FILES is asked
    // for.
    unsafe {
        // A handler of the parent would run in the parent's memory. The C library keeps two signals
        // and refuses those.
        for signal in 1..=LAST_SIGNAL {
            libc::signal(signal, libc::SIG_DFL);
        }
        let tied = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != child.parent {
            // The parent died before; nobody reads why.
            libc::_exit(127);
        }
        let mut failed = tied == -1 || libc::setpgid(0, 0) == -1;
        for group in child.groups {
            failed = failed || libc::write(*group, c"0".as_ptr().cast(), 1) == -1;
        }
        if !child.folder.is_null() {
            failed = failed || libc::chdir(child.folder) == -1;
        }
        for (number, stream) in (0..).zip(child.streams) {
            failed = failed || libc::dup2(stream, number) == -1;
        }
        if !failed {
            let none: libc::sigset_t = mem::zeroed();
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
            libc::execve(child.path, child.arguments, child.environment);
        }
        child.error = *libc::__errno_location();
        libc::_exit(127)
    }
}

fn block_signals() -> io::Result<libc::sigset_t> {
    // SAFETY: a set of signals is plain data, which both calls fill.
    unsafe {
        let (mut all, mut before) = (mem::zeroed(), mem::zeroed());
        libc::sigfillset(&raw mut all);
        match libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) {
            0 => Ok(before),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, ptr::null_mut()) };
}

impl Started {
    /// Gives the process id, which is also the id of its process group.
    pub fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Gives the descriptor that becomes readable when the process has ended.
    pub fn pidfd(&self) -> &OwnedFd {
        &self.pidfd
    }

    /// Reaps the process if it has ended, and kills what is left of its group. `None` if it runs.
    ///
    /// # Errors
    ///
    /// If the kernel can't tell.
    pub fn try_reap(&mut self) -> io::Result<Option<ResourceUsage>> {
        self.reap(libc::WNOHANG)
    }

    fn reap(&mut self, flags: c_int) -> io::Result<Option<ResourceUsage>> {
        if flags == libc::WNOHANG && !self.has_ended()? {
            return Ok(None);
        }
        // Before reaping: a zombie keeps the id of its group from being given to others.
        self.kill_group();
        let mut status = 0;
        // SAFETY: plain data, which the call fills.
        let mut usage: libc::rusage = unsafe { mem::zeroed() };
        loop {
            // SAFETY: the id is that of a child that nobody has reaped yet.
            match unsafe { libc::wait4(self.pid, &raw mut status, flags, &raw mut usage) } {
                0 => return Ok(None),
                -1 => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
                _ => break,
            }
        }
        self.is_reaped = true;
        // SAFETY: no signal is sent. Whoever was killed just now is there until its parent, or init,
        // has reaped it.
        let left_others = unsafe { libc::kill(-self.pid, 0) } == 0;
        let ns = |time: libc::timeval| {
            time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1_000
        };
        Ok(Some(ResourceUsage {
            status: ExitStatus::from_raw(status),
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            peak_bytes: (usage.ru_maxrss > own_maxrss())
                .then(|| usage.ru_maxrss.unsigned_abs() * 1024),
            left_others,
        }))
    }

    /// Returns whether the process has ended, without reaping it.
    fn has_ended(&self) -> io::Result<bool> {
        let mut poll = libc::pollfd {
            fd: self.pidfd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: the length of one entry is given.
        match unsafe { libc::poll(&raw mut poll, 1, 0) } {
            -1 => Err(io::Error::last_os_error()),
            ready => Ok(ready > 0),
        }
    }

    /// Kills the process and its group.
    pub fn kill_group(&self) {
        if !self.is_reaped {
            // SAFETY: the ids belong to a child that is not reaped yet. That it has ended is no
            // error.
            unsafe {
                libc::kill(-self.pid, libc::SIGKILL);
            }
        }
    }

    /// Leaves the process to the kernel: one that can't be killed would be waited for without end.
    pub fn leave(mut self) {
        self.is_reaped = true;
    }

    /// Kills the process and its group, and reaps it.
    ///
    /// # Errors
    ///
    /// If the kernel does not return how it ended.
    pub fn end(&mut self) -> io::Result<Option<ResourceUsage>> {
        // SAFETY: as in `kill_group`; in case that it has left its group.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        self.reap(0)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !self.is_reaped {
            // There is nobody left to report it to.
            let _ = self.end();
        }
    }
}

/// Returns the greatest resident memory of this process so far, as [`libc::rusage`] has it.
fn own_maxrss() -> libc::c_long {
    // SAFETY: plain data, which the call fills.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: there is room for the result.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    usage.ru_maxrss
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::{Read, Write};
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    /// Returns a line of a process's status.
    fn status(pid: &str, key: &str) -> Option<String> {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim().to_owned())
    }

    #[test]
    fn a_child_has_no_handler_before_it_lets_signals_in() {
        extern "C" fn nothing(_: c_int) {}
        let handler = nothing as *const () as libc::sighandler_t;
        // SAFETY: the handler does nothing.
        unsafe { libc::signal(libc::SIGRTMIN() + 3, handler) };

        // Before its program the child writes to the file of a group: a full pipe holds it there.
        let (mut reader, mut writer) = pipe().unwrap();
        // SAFETY: no memory is involved.
        let size = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_GETPIPE_SZ) };
        writer.write_all(&vec![0; size as usize]).unwrap();
        let mut exec = Exec::new(Path::new("/bin/true"), []).unwrap();
        exec.groups.push(OwnedFd::from(writer).into());

        let (sender, receiver) = channel();
        let starter = thread::spawn(move || {
            // SAFETY: no memory is involved.
            sender.send(unsafe { libc::gettid() }).unwrap();
            let null = File::open("/dev/null").unwrap().into();
            exec.start(&null, &[]).map(drop)
        });
        let children = format!("/proc/self/task/{}/children", receiver.recv().unwrap());
        let child = loop {
            let child = fs::read_to_string(&children).unwrap().trim().to_owned();
            if status(&child, "State:").is_some_and(|state| state.starts_with('S')) {
                break child;
            }
            thread::yield_now();
        };
        let caught = status(&child, "SigCgt:").unwrap();
        reader.read_exact(&mut vec![0; size as usize]).unwrap();
        starter.join().unwrap().unwrap();
        // The C library's own two signals, 32 and 33, come from threads of the same process only.
        let caught = u64::from_str_radix(&caught, 16).unwrap() & !(0b11 << 31);
        assert_eq!(caught, 0, "{caught:x}");
    }
}
