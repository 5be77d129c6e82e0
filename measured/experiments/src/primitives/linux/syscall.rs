//! System calls, and their replacements in the vDSO.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr;

use crate::primitives::bench::{Bench, PLAIN, Why, why};
use crate::primitives::{Area, Context, Need, Primitive};
use libc::{c_int, clockid_t};
use tare_workloads::timing::{Fenced, Timing};

use super::kernel::{Folder, checked, close, error};

const SYSCALL: Primitive = Primitive {
    area: Area::Syscall,
    needs: &[Need::Kernel],
    ..Primitive::NEW
};
const FILE: Primitive = Primitive {
    needs: &[Need::Kernel, Need::Folder],
    ..SYSCALL
};
const PUBLISHED: &[&str] = &["published"];
const TIMER: &[&str] = &["timer"];
const VDSO: &[&str] = &["timer", "vdso"];

/// Defines an entry that needs no preparation.
macro_rules! plain {
    ($id:literal, $title:literal, $tags:expr, $operation:expr) => {
        SYSCALL
            .named($id, $title)
            .tags($tags)
            .by(|bench, _| bench.each(PLAIN, $operation))
    };
}

/// Defines an entry for a clock that the vDSO reads without the kernel, if the clock source permits
/// it.
macro_rules! by_vdso {
    ($id:literal, $title:literal, $operation:expr) => {
        SYSCALL.named($id, $title).tags(VDSO).by(|bench, _| {
            readable_by_vdso()?;
            bench.each(PLAIN, $operation)
        })
    };
}

/// The primitives.
pub(crate) const TABLE: &[Primitive] = &[
    plain!("enosys", "a system call that does not exist", &[], || {
        // SAFETY: no call has this number.
        unsafe { libc::syscall(0x7fff) };
    }),
    plain!("getpid", "getpid", PUBLISHED, || {
        // SAFETY: no pointers are passed. glibc does not cache the result.
        unsafe { libc::getpid() };
    }),
    plain!("getppid", "getppid", PUBLISHED, || {
        // SAFETY: no pointers are passed.
        unsafe { libc::getppid() };
    }),
    plain!("getuid", "getuid", &[], || {
        // SAFETY: no pointers are passed.
        unsafe { libc::getuid() };
    }),
    SYSCALL
        .named("read", "read of a byte of /dev/zero")
        .by(|bench, _| {
            with_file(bench, c"/dev/zero", libc::O_RDONLY, |file| {
                let mut byte = 0_u8;
                // SAFETY: room for a byte.
                unsafe { libc::read(file, (&raw mut byte).cast(), 1) == 1 }
            })
        }),
    SYSCALL
        .named("write", "write of a byte to /dev/null")
        .by(|bench, _| {
            with_file(bench, c"/dev/null", libc::O_WRONLY, |file| {
                let byte = 0_u8;
                // SAFETY: a byte.
                unsafe { libc::write(file, (&raw const byte).cast(), 1) == 1 }
            })
        }),
    FILE.named("open", "open of a file")
        .tags(PUBLISHED)
        .by(|bench, around| opened(bench, around, true)),
    FILE.named("close", "close of a file")
        .by(|bench, around| opened(bench, around, false)),
    FILE.named("open-close", "open and close of a file")
        .by(|bench, around| {
            let folder = Folder::new(around)?;
            let path = folder.path("file");
            close(create(&path)?);
            working(bench, || {
                // SAFETY: a NUL-terminated path.
                let file = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY) };
                close(file);
                file != -1
            })
        }),
    FILE.named("stat", "stat of a file").by(|bench, around| {
        let folder = Folder::new(around)?;
        let path = folder.path("file");
        close(create(&path)?);
        working(bench, || {
            let mut told = MaybeUninit::<libc::stat>::uninit();
            // SAFETY: a NUL-terminated path, and room for the result.
            unsafe { libc::stat(path.as_ptr(), told.as_mut_ptr()) == 0 }
        })
    }),
    FILE.named("fstat", "fstat of an open file")
        .by(|bench, around| {
            let folder = Folder::new(around)?;
            let file = create(&folder.path("file"))?;
            let measured = working(bench, || {
                let mut told = MaybeUninit::<libc::stat>::uninit();
                // SAFETY: room for the result.
                unsafe { libc::syscall(libc::SYS_fstat, file, told.as_mut_ptr()) == 0 }
            });
            close(file);
            measured
        }),
    SYSCALL
        .named("kill", "kill of this process with no signal")
        .by(|bench, _| {
            // SAFETY: no pointers are passed.
            let own = unsafe { libc::getpid() };
            // SAFETY: signal 0 only checks that the process exists.
            working(bench, || unsafe { libc::kill(own, 0) == 0 })
        }),
    plain!("wait", "wait without a child to wait for", &[], || {
        // SAFETY: the status is not requested.
        unsafe { libc::waitpid(-1, ptr::null_mut(), libc::WNOHANG) };
    }),
    by_vdso!("clock-monotonic", "CLOCK_MONOTONIC by the vDSO", || {
        clock(libc::CLOCK_MONOTONIC)
    }),
    by_vdso!("clock-boottime", "CLOCK_BOOTTIME by the vDSO", || {
        clock(libc::CLOCK_BOOTTIME)
    }),
    by_vdso!("clock-realtime", "CLOCK_REALTIME by the vDSO", || {
        clock(libc::CLOCK_REALTIME)
    }),
    by_vdso!(
        "clock-monotonic-raw",
        "CLOCK_MONOTONIC_RAW by the vDSO",
        || { clock(libc::CLOCK_MONOTONIC_RAW) }
    ),
    plain!(
        "clock-coarse",
        "CLOCK_MONOTONIC_COARSE by the vDSO",
        VDSO,
        || { clock(libc::CLOCK_MONOTONIC_COARSE) }
    ),
    by_vdso!("gettimeofday", "gettimeofday by the vDSO", || {
        let mut time = MaybeUninit::<libc::timeval>::uninit();
        // SAFETY: room for the time.
        unsafe { libc::gettimeofday(time.as_mut_ptr(), ptr::null_mut()) };
    }),
    plain!(
        "clock-monotonic-syscall",
        "CLOCK_MONOTONIC by a system call",
        TIMER,
        || {
            let mut time = MaybeUninit::<libc::timespec>::uninit();
            // SAFETY: room for the time.
            unsafe {
                libc::syscall(
                    libc::SYS_clock_gettime,
                    libc::CLOCK_MONOTONIC,
                    time.as_mut_ptr(),
                )
            };
        }
    ),
    plain!("clock-thread-cpu", "CLOCK_THREAD_CPUTIME_ID", TIMER, || {
        clock(libc::CLOCK_THREAD_CPUTIME_ID)
    }),
    plain!(
        "getcpu",
        "getcpu without a system call (vDSO, restartable sequences)",
        &["vdso"],
        || {
            // SAFETY: no pointers are passed.
            unsafe { libc::sched_getcpu() };
        }
    ),
];

/// Checks that the kernel's clock source is readable by programs; else the vDSO calls the kernel.
fn readable_by_vdso() -> Result<(), Why> {
    const PATH: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    const READABLE: [&str; 3] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page"];
    match std::fs::read_to_string(PATH) {
        Ok(source) if !READABLE.contains(&source.trim()) => Err(why(format_args!(
            "the vDSO can't read the clock source {}: it asks the kernel, as clock-monotonic-syscall does",
            source.trim()
        ))),
        _ => Ok(()),
    }
}

/// Opens or closes a file many times in a row, so that the cost of the other call cancels out, then
/// each between two stamps.
fn opened(bench: &mut Bench<'_>, around: &Context<'_>, is_open: bool) -> Result<(), Why> {
    /// The greatest number of open files at a time: below any limit.
    const MOST: u64 = 128;
    let folder = Folder::new(around)?;
    let path = folder.path("file");
    close(create(&path)?);
    // SAFETY: a NUL-terminated path.
    let open = || unsafe { libc::open(path.as_ptr(), libc::O_RDONLY) };
    let mut files = [-1; MOST as usize];
    let mut timed = |number: u64| {
        let files = &mut files[..number as usize];
        let begin = Fenced::before();
        files.fill_with(open);
        let between = Fenced::after();
        let again = Fenced::before();
        files.iter().for_each(|file| close(*file));
        let end = Fenced::after();
        match files.contains(&-1) {
            true => Err(error("the file can't be opened")),
            false if is_open => Ok(between.wrapping_sub(begin)),
            false => Ok(end.wrapping_sub(again)),
        }
    };
    timed(MOST)?;
    bench.whole(|bench| {
        let mut failed = None;
        bench.cost(PLAIN, 1, |units| {
            let whole = (0..units / MOST).map(|_| MOST);
            let batches = whole.chain([units % MOST]).filter(|number| *number > 0);
            let ticks = batches.map(|number| {
                timed(number).unwrap_or_else(|why| {
                    failed = Some(why);
                    0
                })
            });
            ticks.sum()
        })?;
        failed.map_or(Ok(()), Err)?;
        bench.timed(PLAIN, || timed(1)).map(drop)
    })
}

fn clock(clock: clockid_t) {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: room for the time.
    unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) };
    black_box(time);
}

fn create(path: &std::ffi::CStr) -> Result<c_int, Why> {
    // SAFETY: a NUL-terminated path.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CREAT, 0o600) };
    checked(file, "the file can't be made")
}

fn with_file(
    bench: &mut Bench<'_>,
    path: &std::ffi::CStr,
    how: c_int,
    operation: impl Fn(c_int) -> bool,
) -> Result<(), Why> {
    // SAFETY: a NUL-terminated path.
    let file = unsafe { libc::open(path.as_ptr(), how) };
    checked(file, "the device can't be opened")?;
    let measured = working(bench, || operation(file));
    close(file);
    measured
}

/// Measures a call that reports success, which is checked before and after the measurement:
/// checking during it would be timed, too.
fn working(bench: &mut Bench<'_>, operation: impl Fn() -> bool) -> Result<(), Why> {
    let works = || match operation() {
        true => Ok(()),
        false => Err(error("the call fails")),
    };
    bench.whole(|bench| {
        works()?;
        bench.each(PLAIN, &operation)?;
        works()
    })
}
