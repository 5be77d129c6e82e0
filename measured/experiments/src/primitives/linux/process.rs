//! Processes and threads: creating them, running another program, and ending.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::primitives::bench::{Bench, PLAIN, Why, why};
use crate::primitives::{Area, Need, Pages, Primitive};
use libc::{c_char, c_int, c_void, pid_t};
use tare_workloads::timing::{Fenced, Timing, bare_rdtsc};

use super::kernel::{self, Shared, checked, error};

const PROCESS: Primitive = Primitive {
    area: Area::Process,
    method: "each one between two stamps; the label memory is the memory that the process has touched",
    needs: &[Need::Kernel],
    ..Primitive::NEW
};
const PUBLISHED: &[&str] = &["published"];
/// The memory that a big process has touched in addition, in bytes.
const BIG: usize = 64 << 20;
/// The argument that makes the agent exit at once; with `=` and a descriptor, it writes its start
/// time there first.
const STAMP: &str = "stamp";

/// The primitives.
pub(crate) const TABLE: &[Primitive] = &[
    PROCESS.named("fork", "fork, until it returns in the parent")
        .by(|bench, _| {
            small_and_big(bench, |bench, memory| {
                bench.single(format_args!("memory={memory}"), || {
                    let begin = Fenced::before();
                    let child = fork()?;
                    let ticks = Fenced::after().wrapping_sub(begin);
                    wait(child)?;
                    Ok(ticks)
                })
            })
        }),
    PROCESS.named("exit", "exit, until the parent's wait returns")
        .by(|bench, _| {
            // SAFETY: a number.
            let stamped = unsafe { Shared::<AtomicU64>::new()? };
            // SAFETY: mapped as long as `stamped`.
            let stamp = unsafe { &*stamped.get() };
            bench.single(PLAIN, || {
                // SAFETY: this program has one thread.
                match unsafe { libc::fork() } {
                    -1 => return Err(error("no process can be started (fork)")),
                    0 => {
                        stamp.store(Fenced::before(), Ordering::Release);
                        kernel::exit(0)
                    }
                    child => wait(child)?,
                }
                Ok(Fenced::after().wrapping_sub(stamp.load(Ordering::Acquire)))
            })
        }),
    PROCESS.named("fork-exit", "fork, exit and wait")
        .tags(PUBLISHED)
        .by(|bench, _| with_memory(bench, fork)),
    PROCESS.named("vfork-exit", "vfork, exit and wait")
        .method("clone with CLONE_VM and CLONE_VFORK, as vfork and posix_spawn do, each one between two stamps")
        .by(|bench, _| {
            let mut stack = Stack::new();
            with_memory(bench, || stack.vfork(end, ptr::null_mut()))
        }),
    PROCESS.named("clone3-exit", "clone3 without flags, exit and wait")
        .by(|bench, _| {
            with_memory(bench, || {
                // SAFETY: zero is a valid `clone_args`: no flags, and the stack of the parent, as
                // fork.
                let mut how: libc::clone_args = unsafe { MaybeUninit::zeroed().assume_init() };
                how.exit_signal = libc::SIGCHLD as u64;
                // SAFETY: this program has one thread.
                let child =
                    unsafe { libc::syscall(libc::SYS_clone3, &raw mut how, size_of_val(&how)) };
                match child {
                    0 => kernel::exit(0),
                    child => checked(child as c_int, "no process can be started (clone3)"),
                }
            })
        }),
    PROCESS.named("fork-exec-static", "fork, exec of a static program, exit and wait")
        .tags(PUBLISHED)
        .by(|bench, _| {
            let program = Program::own()?;
            with_memory(bench, || program.fork_exec())
        }),
    PROCESS.named("fork-exec-dynamic", "fork, exec of a dynamic program, exit and wait")
        .by(|bench, _| {
            let program = Program::dynamic()?;
            with_memory(bench, || program.fork_exec())
        }),
    PROCESS.named("vfork-exec-static", "vfork, exec of a static program, exit and wait")
        .by(|bench, _| {
            let program = Program::own()?;
            let mut stack = Stack::new();
            with_memory(bench, || program.vfork_exec(&mut stack))
        }),
    PROCESS.named("vfork-exec-dynamic", "vfork, exec of a dynamic program, exit and wait")
        .by(|bench, _| {
            let program = Program::dynamic()?;
            let mut stack = Stack::new();
            with_memory(bench, || program.vfork_exec(&mut stack))
        }),
    PROCESS.named("posix-spawn-static", "posix_spawn of a static program, exit and wait")
        .by(|bench, _| {
            let program = Program::own()?;
            with_memory(bench, || program.spawn())
        }),
    PROCESS.named("posix-spawn-dynamic", "posix_spawn of a dynamic program, exit and wait")
        .by(|bench, _| {
            let program = Program::dynamic()?;
            with_memory(bench, || program.spawn())
        }),
    PROCESS.named("exec", "exec of a static program, until its main")
        .method("from the call of execve to the first line of main of the new program, which stamps the time")
        .by(|bench, _| exec(bench)),
    PROCESS.named("thread-create", "pthread_create, until it returns")
        .tags(PUBLISHED)
        .by(|bench, _| {
            bench.single(PLAIN, || {
                let begin = Fenced::before();
                let thread = thread()?;
                let ticks = Fenced::after().wrapping_sub(begin);
                join(thread);
                Ok(ticks)
            })
        }),
    PROCESS.named("thread-create-join", "pthread_create, end and pthread_join")
        .by(|bench, _| {
            bench.single(PLAIN, || {
                let begin = Fenced::before();
                join(thread()?);
                Ok(Fenced::after().wrapping_sub(begin))
            })
        }),
];

/// Measures with little memory, and again after touching much.
fn small_and_big(
    bench: &mut Bench<'_>,
    mut measure: impl FnMut(&mut Bench<'_>, &str) -> Result<(), Why>,
) -> Result<(), Why> {
    measure(bench, "small")?;
    kernel::map_pages(BIG, Pages::Small)?;
    measure(bench, "64M")
}

/// Measures the time to create a process and to wait for its end, with little memory and with much.
fn with_memory(
    bench: &mut Bench<'_>,
    mut create: impl FnMut() -> Result<pid_t, Why>,
) -> Result<(), Why> {
    small_and_big(bench, |bench, memory| {
        bench.single(format_args!("memory={memory}"), || {
            let begin = Fenced::before();
            wait(create()?)?;
            Ok(Fenced::after().wrapping_sub(begin))
        })
    })
}

/// Forks a process that ends at once.
fn fork() -> Result<pid_t, Why> {
    // SAFETY: this program has one thread.
    match unsafe { libc::fork() } {
        0 => kernel::exit(0),
        child => checked(child, "no process can be started (fork)"),
    }
}

/// Waits for a child, and checks that it exited with 0.
fn wait(child: pid_t) -> Result<(), Why> {
    let mut status = 0;
    // SAFETY: the status is our own.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    checked(waited, "no child (waitpid)")?;
    match status {
        0 => Ok(()),
        status => Err(why(format_args!(
            "a new process ended with status {status:#x}"
        ))),
    }
}

extern "C" fn end(_: *mut c_void) -> c_int {
    0
}

/// The stack of a child that shares this process's memory until it ends or runs another program.
struct Stack(Vec<u8>);

impl Stack {
    fn new() -> Self {
        Self(vec![0; 64 << 10])
    }

    fn vfork(
        &mut self,
        work: extern "C" fn(*mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> Result<pid_t, Why> {
        let top = self.0.as_mut_ptr_range().end;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: only the child uses the stack, and this process waits until the child no longer
        // needs it.
        let child = unsafe { libc::clone(work, top.cast(), flags, argument) };
        checked(child, "no process can be started (clone)")
    }
}

/// A program that exits at once.
struct Program {
    path: CString,
    argument: Option<CString>,
}

impl Program {
    /// Returns this program with the argument that ends it: it is static, and in memory already.
    fn own() -> Result<Self, Why> {
        let path = std::fs::read_link("/proc/self/exe");
        let path = path.map_err(|error| why(format_args!("this program is not found: {error}")))?;
        let path = CString::new(path.into_os_string().into_encoded_bytes());
        Ok(Self {
            path: path.unwrap_or_default(),
            argument: CString::new(STAMP).ok(),
        })
    }

    /// Returns a program of this system that loads the C library and exits.
    fn dynamic() -> Result<Self, Why> {
        let mut paths = ["/bin/true", "/usr/bin/true"].into_iter();
        let found = paths.find(|path| is_dynamic(path));
        let path = found.ok_or_else(|| why("there is no dynamically linked /bin/true here"))?;
        Ok(Self {
            path: CString::new(path).unwrap_or_default(),
            argument: None,
        })
    }

    fn arguments(&self) -> [*const c_char; 3] {
        let argument = self.argument.as_ref();
        let argument = argument.map_or(ptr::null(), |argument| argument.as_ptr());
        [self.path.as_ptr(), argument, ptr::null()]
    }

    /// Replaces this process by it. Returns only on failure.
    fn exec(&self) -> c_int {
        let nothing = [ptr::null::<c_char>()];
        // SAFETY: NUL-terminated strings, in NULL-terminated arrays.
        unsafe {
            libc::execve(
                self.path.as_ptr(),
                self.arguments().as_ptr(),
                nothing.as_ptr(),
            )
        };
        127
    }

    fn fork_exec(&self) -> Result<pid_t, Why> {
        // SAFETY: this program has one thread.
        match unsafe { libc::fork() } {
            0 => kernel::exit(self.exec()),
            child => checked(child, "no process can be started (fork)"),
        }
    }

    fn vfork_exec(&self, stack: &mut Stack) -> Result<pid_t, Why> {
        extern "C" fn run(program: *mut c_void) -> c_int {
            // SAFETY: the parent waits with the program until the child has called exec.
            let program = unsafe { &*program.cast::<Program>() };
            kernel::exit(program.exec())
        }
        stack.vfork(run, ptr::from_ref(self).cast_mut().cast())
    }

    fn spawn(&self) -> Result<pid_t, Why> {
        let mut child = 0;
        let nothing = [ptr::null_mut::<c_char>()];
        // SAFETY: NUL-terminated strings, in NULL-terminated arrays; no attributes and no actions.
        let failed = unsafe {
            libc::posix_spawn(
                &raw mut child,
                self.path.as_ptr(),
                ptr::null(),
                ptr::null(),
                self.arguments().map(<*const c_char>::cast_mut).as_ptr(),
                nothing.as_ptr(),
            )
        };
        match failed {
            0 => Ok(child),
            number => {
                let error = std::io::Error::from_raw_os_error(number);
                Err(why(format_args!(
                    "no process can be started (posix_spawn): {error}"
                )))
            }
        }
    }
}

/// Returns whether a program is an ELF file that names an interpreter.
fn is_dynamic(path: &str) -> bool {
    let bytes = std::fs::read(path).unwrap_or_default();
    bytes.starts_with(b"\x7fELF")
        && bytes[..bytes.len().min(4_096)]
            .windows(3)
            .any(|three| three == b"/ld")
}

fn exec(bench: &mut Bench<'_>) -> Result<(), Why> {
    let mut program = Program::own()?;
    // SAFETY: a number.
    let stamped = unsafe { Shared::<AtomicU64>::new()? };
    // SAFETY: mapped as long as `stamped`.
    let stamp = unsafe { &*stamped.get() };
    let answer = kernel::Pair::pipe()?;
    // The new program inherits both ends.
    let [read, write] = answer.0;
    program.argument = CString::new(format!("{STAMP}={write}")).ok();
    bench.single(PLAIN, || {
        // SAFETY: this program has one thread.
        match unsafe { libc::fork() } {
            -1 => return Err(error("no process can be started (fork)")),
            0 => {
                stamp.store(Fenced::before(), Ordering::Release);
                kernel::exit(program.exec())
            }
            child => wait(child)?,
        }
        let mut main = [0_u8; 8];
        // SAFETY: room for eight bytes.
        match unsafe { libc::read(read, main.as_mut_ptr().cast(), 8) } {
            8 => Ok(u64::from_ne_bytes(main).wrapping_sub(stamp.load(Ordering::Acquire))),
            _ => Err(why("the new program did not tell when it began")),
        }
    })
}

/// Ends the program if this argument requests it, after writing the start time to the descriptor in
/// the argument.
pub fn stamp(argument: &[u8], main_tsc: Option<u64>) {
    let Some(to) = argument.strip_prefix(STAMP.as_bytes()) else {
        return;
    };
    let to = std::str::from_utf8(to).unwrap_or("=");
    match to.strip_prefix('=').map(str::parse) {
        None if to.is_empty() => kernel::exit(0),
        Some(Ok(descriptor)) => {
            let bytes = main_tsc.unwrap_or_else(bare_rdtsc).to_ne_bytes();
            // SAFETY: eight bytes, to a descriptor that the caller of this program has opened for
            // them.
            unsafe { libc::write(descriptor, bytes.as_ptr().cast(), bytes.len()) };
            kernel::exit(0)
        }
        // Another argument.
        _ => {}
    }
}

fn thread() -> Result<libc::pthread_t, Why> {
    extern "C" fn nothing(_: *mut c_void) -> *mut c_void {
        ptr::null_mut()
    }
    let mut thread = MaybeUninit::uninit();
    // SAFETY: room for the thread; the default attributes.
    let failed =
        unsafe { libc::pthread_create(thread.as_mut_ptr(), ptr::null(), nothing, ptr::null_mut()) };
    match failed {
        // SAFETY: it was made.
        0 => Ok(unsafe { thread.assume_init() }),
        number => {
            let error = std::io::Error::from_raw_os_error(number);
            Err(why(format_args!(
                "no thread can be started (pthread_create): {error}"
            )))
        }
    }
}

fn join(thread: libc::pthread_t) {
    // SAFETY: a thread that has not been joined; its result is not requested.
    unsafe { libc::pthread_join(thread, ptr::null_mut()) };
}
