//! The measuring functions' interface to the kernel: memory, processes, files, CPUs.

use core::fmt;
use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::primitives::bench::{Bench, Why, why};
use crate::primitives::memory::{ARRAY, array as array_bytes};
use crate::primitives::{Area, Context, FOLDER, Need, Pages, Plan, Primitive};
use libc::{c_int, c_long, pid_t};
use rustix::time::{ClockId, clock_gettime};
use tare_wire::cpus::Cpus;
use tare_workloads::stream::{tare_stream_copy, tare_stream_read, tare_stream_write};
use tare_workloads::timing::{Fenced, Timing};

const ON_ALL: Primitive = Primitive {
    area: Area::Memory,
    tags: &["bandwidth"],
    needs: &[Need::Kernel],
    ..Primitive::NEW
};

/// The primitives of memory that use several CPUs, and so require a kernel.
pub const MEMORY: &[Primitive] = &[
    ON_ALL.named("bandwidth-read-all", "read bandwidth of all cores")
        .method("sums of an array on each CPU that may be used, all at once")
        .by(|bench, around| {
            // SAFETY: the array has as many elements.
            everywhere(bench, around, |a, n| unsafe { tare_stream_read(a, n) })
        }),
    ON_ALL.named("bandwidth-write-all", "write bandwidth of all cores")
        .method("stores on each CPU that may be used, all at once")
        .by(|bench, around| {
            // SAFETY: as above.
            everywhere(bench, around, |a, n| unsafe { tare_stream_write(a, n, 1) })
        }),
    ON_ALL.named("bandwidth-copy-all", "copy bandwidth of all cores")
        .method("STREAM's Copy on each CPU that may be used, all at once: bytes read and bytes written both count")
        .tags(&["bandwidth", "stream"])
        .by(|bench, around| {
            everywhere(bench, around, |a, n| {
                let half = n as usize / 2;
                // SAFETY: as above; the halves do not overlap.
                unsafe { tare_stream_copy(a.cast(), a.add(half).cast(), n / 2) }
            })
        }),
];

/// Passes over an array on each CPU at the same time; a pass ends when the last CPU is done.
fn everywhere(
    bench: &mut Bench<'_>,
    around: &Context<'_>,
    pass: impl Fn(*mut u64, u64) -> u64 + Copy,
) -> Result<(), Why> {
    let cpus = allowed_cpus(around.plan);
    let each = ARRAY.max(array_bytes(around.plan.cache) / cpus.len().max(1));
    available(cpus.len() * each)?;
    let round = SharedWord::new()?;
    let done = SharedWord::new()?;
    let elements = (each / size_of::<u64>()) as u64;
    let mut others = Vec::new();
    let this = around.plan.cpu().or(cpus.first().copied());
    for cpu in cpus.iter().copied().filter(|cpu| Some(*cpu) != this) {
        others.push(Partner::start(Some(cpu), || {
            let Ok(array) = map_large(each) else {
                return;
            };
            let mut last = 0;
            done.add();
            loop {
                last = round.wait_while(last);
                pass(array.cast(), elements);
                done.add();
            }
        })?);
    }
    let array = map_large(each)?.cast();
    let number = others.len() as u32;
    // Wait until each has mapped its memory.
    if !done.wait_for(number, 5_000) {
        return Err(why("there is not enough memory for every CPU"));
    }
    let bytes = each as u64 * cpus.len() as u64;
    bench.passes(format_args!("cpus={}", cpus.len()), bytes, || {
        done.set(0);
        let begin = Fenced::before();
        round.add();
        pass(array, elements);
        while done.get() < number {
            core::hint::spin_loop();
        }
        Ok(Fenced::after().wrapping_sub(begin))
    })
}

/// Formats a failure with the kernel's reason.
pub(crate) fn error(what: impl fmt::Display) -> Why {
    let error = io::Error::last_os_error();
    why(format_args!("{what}: {error}"))
}

/// Checks the return value of a call that fails with -1.
pub(crate) fn checked(returned: c_int, what: &str) -> Result<c_int, Why> {
    match returned {
        -1 => Err(error(what)),
        returned => Ok(returned),
    }
}

/// Memory shared with processes that are forked later.
#[derive(Debug)]
pub(crate) struct Shared<T>(*mut T);

impl<T> Shared<T> {
    /// Maps it, zeroed.
    ///
    /// # Safety
    ///
    /// Zero must be a valid value.
    pub(crate) unsafe fn new() -> Result<Self, Why> {
        let start = map(size_of::<T>(), libc::MAP_SHARED)?;
        Ok(Self(start.cast()))
    }

    pub(crate) fn get(&self) -> *mut T {
        self.0
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is our own, and it is no longer used.
        unsafe { libc::munmap(self.0.cast(), size_of::<T>()) };
    }
}

/// A futex: a number in shared memory on which processes and threads wait.
#[derive(Debug)]
pub(crate) struct SharedWord(Shared<AtomicU32>);

// SAFETY: it only gives access to an atomic number, which is mapped as long as it lives.
unsafe impl Send for SharedWord {}
// SAFETY: as above.
unsafe impl Sync for SharedWord {}

impl SharedWord {
    pub(crate) fn new() -> Result<Self, Why> {
        // SAFETY: a number.
        Ok(Self(unsafe { Shared::new()? }))
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: mapped as long as `self`.
        unsafe { &*self.0.get() }
    }

    pub(crate) fn get(&self) -> u32 {
        self.word().load(Ordering::Acquire)
    }

    pub(crate) fn set(&self, number: u32) {
        self.word().store(number, Ordering::Release);
    }

    pub(crate) fn add(&self) {
        self.word().fetch_add(1, Ordering::AcqRel);
    }

    /// Spins while it equals `number`, and returns the new value.
    pub(crate) fn wait_while(&self, number: u32) -> u32 {
        loop {
            match self.get() {
                same if same == number => core::hint::spin_loop(),
                other => return other,
            }
        }
    }

    /// Waits until it equals `number`, for at most `most_ms`. Returns whether it does.
    pub(crate) fn wait_for(&self, number: u32, most_ms: u32) -> bool {
        for _ in 0..most_ms {
            if self.get() == number {
                return true;
            }
            // SAFETY: no pointers are passed.
            unsafe { libc::usleep(1_000) };
        }
        self.get() == number
    }

    /// Sleeps while it equals `number`.
    pub(crate) fn sleep_while(&self, number: u32) {
        while self.get() == number {
            self.futex(libc::FUTEX_WAIT, number);
        }
    }

    /// Wakes one sleeper, and returns whether there was one.
    pub(crate) fn wake(&self) -> bool {
        self.futex(libc::FUTEX_WAKE, 1) > 0
    }

    fn futex(&self, operation: c_int, number: u32) -> c_long {
        // SAFETY: the word is mapped; there is no timeout.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.0.get(),
                operation,
                number,
                ptr::null::<libc::timespec>(),
            )
        }
    }
}

/// Maps `bytes` bytes of zeroed memory.
pub(crate) fn map(bytes: usize, flags: c_int) -> Result<*mut u8, Why> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            flags | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    match start {
        libc::MAP_FAILED => Err(error(format_args!("{bytes} bytes can't be mapped"))),
        start => Ok(start.cast()),
    }
}

/// Maps untouched private memory, aligned to 2 MiB, for which the kernel uses pages of this size if
/// possible.
pub(crate) fn map_untouched(bytes: usize, pages: Pages) -> Result<*mut u8, Why> {
    const HUGE: usize = 2 << 20;
    let start = map(bytes + HUGE, libc::MAP_PRIVATE | libc::MAP_NORESERVE)?;
    let skipped = start.align_offset(HUGE);
    let aligned = start.wrapping_add(skipped);
    // SAFETY: the parts before and after, of a new mapping.
    unsafe {
        libc::munmap(start.cast(), skipped);
        libc::munmap(aligned.add(bytes).cast(), HUGE - skipped);
    }
    let advice = match pages {
        Pages::Small => libc::MADV_NOHUGEPAGE,
        Pages::Huge => libc::MADV_HUGEPAGE,
    };
    // SAFETY: our own mapping. A kernel without huge pages returns EINVAL for both.
    let advised = unsafe { libc::madvise(aligned.cast(), bytes, advice) };
    match (advised, pages) {
        (-1, Pages::Huge) => Err(error("this kernel has no transparent huge pages")),
        _ => Ok(aligned),
    }
}

/// Maps memory in huge pages, or else in small ones, and touches all of it.
pub(crate) fn map_large(bytes: usize) -> Result<*mut usize, Why> {
    map_pages(bytes, Pages::Huge).or_else(|_| map_pages(bytes, Pages::Small))
}

/// Maps memory in pages of this size and touches all of it, if enough is available.
pub(crate) fn map_pages(bytes: usize, pages: Pages) -> Result<*mut usize, Why> {
    available(bytes)?;
    let start = map_untouched(bytes, pages)?;
    let before = faults().0;
    for page in (0..bytes).step_by(4_096) {
        // SAFETY: within the mapping. Volatile, since nobody reads it.
        unsafe { start.add(page).write_volatile(0) };
    }
    // The kernel may accept the advice and still use small pages: huge pages are set to 'never', or
    // memory is fragmented. One block of 2 MiB in 64 may consist of small pages, which cause 512
    // faults.
    let seen = faults().0.saturating_sub(before);
    if pages == Pages::Huge && seen > (bytes >> 21) as u64 * 9 + 16 {
        // SAFETY: our own mapping, which nobody else has seen.
        unsafe { libc::munmap(start.cast(), bytes) };
        return Err(why(format_args!(
            "the kernel gave {seen} pages for {} MiB, no huge ones (/sys/kernel/mm/transparent_hugepage/enabled)",
            bytes >> 20
        )));
    }
    Ok(start.cast())
}

/// Checks that half of the available memory is enough: using more could start the OOM killer.
fn available(bytes: usize) -> Result<(), Why> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    match kib {
        Some(kib) if bytes as u64 > kib * 512 => Err(why(format_args!(
            "{} MiB are more than half of the memory that is available",
            bytes >> 20
        ))),
        _ => Ok(()),
    }
}

/// A guard that blocks SIGCHLD until it is dropped, so that it can be waited for.
#[derive(Debug)]
pub(crate) struct Blocked(libc::sigset_t);

/// Blocks SIGCHLD, for functions that wait for it.
pub(crate) fn block_sigchld() -> Blocked {
    let mut before = MaybeUninit::uninit();
    // SAFETY: both sets are our own, and the first one is made before it is used.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, &sigchld(), before.as_mut_ptr());
        Blocked(before.assume_init())
    }
}

fn sigchld() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the set is our own.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        set.assume_init()
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set from before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}

/// Waits for a process, and returns its status; `None` if it has not ended in time. SIGCHLD must be
/// blocked.
pub(crate) fn wait_until(pid: pid_t, limit_ns: u64) -> Option<c_int> {
    let deadline = monotonic_ns().saturating_add(limit_ns);
    loop {
        let mut status = 0;
        // SAFETY: the status is our own.
        if unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == pid {
            return Some(status);
        }
        let left = deadline.checked_sub(monotonic_ns())?;
        let timeout = libc::timespec {
            tv_sec: (left / 1_000_000_000) as i64,
            tv_nsec: (left % 1_000_000_000) as c_long,
        };
        // SAFETY: the set and the time are our own; no details of the signal are requested.
        unsafe { libc::sigtimedwait(&sigchld(), ptr::null_mut(), &raw const timeout) };
    }
}

/// Kills the rest of a process group, and reaps those that are children of this process. Gives up
/// after five seconds, if the kernel cannot end one.
pub(crate) fn end_group(group: pid_t) {
    for _ in 0..5_000 {
        // SAFETY: no pointers are passed.
        unsafe { libc::kill(-group, libc::SIGKILL) };
        // SAFETY: nobody asks for the status.
        match unsafe { libc::waitpid(-group, ptr::null_mut(), libc::WNOHANG) } {
            -1 => return,
            // SAFETY: no pointers are passed.
            0 => unsafe {
                libc::usleep(1_000);
            },
            _ => {}
        }
    }
}

/// Makes this process end with its parent.
pub(crate) fn die_with_parent() {
    // SAFETY: no pointers are passed.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Ends this process at once, without side effects on memory shared with its parent.
pub(crate) fn exit(status: c_int) -> ! {
    // SAFETY: does not return.
    unsafe { libc::_exit(status) }
}

fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Another process that takes part, and ends with this one.
#[derive(Debug)]
pub(crate) struct Partner(pub(crate) pid_t);

impl Partner {
    /// Forks it, and pins it if a CPU is given.
    pub(crate) fn start(cpu: Option<u32>, work: impl FnOnce()) -> Result<Self, Why> {
        // SAFETY: this program has one thread where partners are processes.
        match unsafe { libc::fork() } {
            -1 => Err(error("no process can be started (fork)")),
            0 => {
                die_with_parent();
                // On another CPU, it would be measured as if it were on this one.
                if cpu.is_none_or(pin) {
                    work();
                }
                exit(0)
            }
            pid => {
                let partner = Self(pid);
                // The child pins itself as well, and exits if that fails.
                match cpu {
                    Some(cpu) if !pin_to(pid, cpu) => {
                        Err(error(format_args!("the other side can't run on CPU {cpu}")))
                    }
                    _ => Ok(partner),
                }
            }
        }
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        // SAFETY: our own child, which has not been reaped.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, ptr::null_mut(), 0);
        }
    }
}

/// Pins this thread, and returns whether that worked.
pub(crate) fn pin(cpu: u32) -> bool {
    pin_to(0, cpu)
}

/// Pins a process, 0 for this thread, and returns whether that worked.
fn pin_to(pid: pid_t, cpu: u32) -> bool {
    // SAFETY: zero is an empty set.
    let mut set: libc::cpu_set_t = unsafe { MaybeUninit::zeroed().assume_init() };
    if cpu >= libc::CPU_SETSIZE.cast_unsigned() {
        return false;
    }
    // SAFETY: the set has the CPU, and is our own.
    unsafe {
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(pid, size_of_val(&set), &raw const set) == 0
    }
}

/// Returns the CPUs that a process may run on, 0 for this thread; empty if unknown.
fn cpus_of(pid: pid_t) -> Cpus {
    // SAFETY: zero is an empty set.
    let mut set: libc::cpu_set_t = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the set is our own.
    unsafe { libc::sched_getaffinity(pid, size_of_val(&set), &raw mut set) };
    let all = 0..libc::CPU_SETSIZE.cast_unsigned();
    // SAFETY: the index is within the set.
    all.filter(|cpu| unsafe { libc::CPU_ISSET(*cpu as usize, &set) })
        .collect()
}

/// Returns whether a process may run on its CPU only.
pub(crate) fn is_pinned(pid: pid_t, cpu: Option<u32>) -> bool {
    cpu.is_none_or(|cpu| cpus_of(pid) == Cpus::one(cpu))
}

/// Checks that this thread is still pinned to its CPU.
pub(crate) fn stayed(cpu: Option<u32>) -> Result<(), Why> {
    // SAFETY: no pointers are passed.
    let here = unsafe { libc::sched_getcpu() }.cast_unsigned();
    match cpu {
        Some(own) if own != here || !is_pinned(0, cpu) => Err(why(format_args!(
            "somebody moved it from CPU {own} to CPU {here}: its times are of no one CPU"
        ))),
        _ => Ok(()),
    }
}

/// The CPUs that this program was allowed before it pinned itself.
static INITIAL_CPUS: OnceLock<Cpus> = OnceLock::new();

/// Records the CPUs that this thread may run on before it is pinned, so that CPUs excluded by
/// `taskset` are not used later.
pub fn record_initial_cpus() {
    given_cpus();
}

fn given_cpus() -> Cpus {
    *INITIAL_CPUS.get_or_init(|| cpus_of(0))
}

/// Returns the CPUs that this program was allowed, and those of the plan that it can move to; the
/// thread returns to the measured CPU.
pub(crate) fn allowed_cpus(plan: &Plan<'_>) -> Vec<u32> {
    let given = given_cpus();
    let all: Cpus = given
        .iter()
        .chain(plan.cpu())
        .chain(plan.other_cpus())
        .collect();
    let can = |cpu: &u32| {
        // SAFETY: no pointers are passed.
        pin(*cpu) && unsafe { libc::sched_getcpu() }.cast_unsigned() == *cpu
    };
    let allowed = all.iter().filter(can).collect();
    if let Some(own) = plan.cpu() {
        pin(own);
    }
    allowed
}

/// Returns the placements of a partner, each with its label: the same CPU, another one of the same
/// socket, one of another socket.
pub(crate) fn placements(plan: &Plan<'_>) -> Vec<(&'static str, Option<u32>)> {
    let socket = |cpu: u32| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id");
        std::fs::read_to_string(path).ok()
    };
    let own = plan.cpu().and_then(socket);
    let mut places = vec![("same", plan.cpu())];
    for cpu in plan.other_cpus() {
        let label = if socket(cpu) == own {
            "other"
        } else {
            "socket"
        };
        if places.iter().all(|(known, _)| *known != label) {
            places.push((label, Some(cpu)));
        }
    }
    places
}

/// A pipe, or a pair of sockets, closed on drop.
#[derive(Debug)]
pub(crate) struct Pair(pub(crate) [c_int; 2]);

impl Pair {
    /// Creates a pipe: data written to the second descriptor is read from the first.
    pub(crate) fn pipe() -> Result<Self, Why> {
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors.
        checked(unsafe { libc::pipe(ends.as_mut_ptr()) }, "no pipe (pipe)")?;
        Ok(Self(ends))
    }

    /// Creates a pair of UNIX sockets of this type.
    pub(crate) fn sockets(kind: c_int) -> Result<Self, Why> {
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors.
        let made = unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) };
        checked(made, "no sockets (socketpair)")?;
        Ok(Self(ends))
    }
}

impl Pair {
    /// Leaves it open until this process ends.
    pub(crate) fn keep(self) -> [c_int; 2] {
        let ends = self.0;
        std::mem::forget(self);
        ends
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for end in self.0 {
            close(end);
        }
    }
}

/// Closes a descriptor.
pub(crate) fn close(descriptor: c_int) {
    // SAFETY: our own descriptor.
    unsafe { libc::close(descriptor) };
}

/// Writes one byte, and returns whether that succeeded.
pub(crate) fn put(descriptor: c_int) -> bool {
    let byte = 1_u8;
    // SAFETY: one byte is there.
    unsafe { libc::write(descriptor, (&raw const byte).cast(), 1) == 1 }
}

/// Reads one byte, and returns whether one came.
pub(crate) fn take(descriptor: c_int) -> bool {
    let mut byte = 0_u8;
    // SAFETY: there is room for one byte.
    unsafe { libc::read(descriptor, (&raw mut byte).cast(), 1) == 1 }
}

/// Returns the faults of this process: minor, major.
pub(crate) fn faults() -> (u64, u64) {
    // SAFETY: zero is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the value is our own.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    (usage.ru_minflt as u64, usage.ru_majflt as u64)
}

/// The prefix of folder names; the process ID of the owner follows.
const FOLDERS: &str = "tare-primitives-";

/// Opens a folder and locks it, unless its owner still has the lock. This works across machines and
/// namespaces.
fn lock(path: &std::path::Path) -> Option<std::fs::File> {
    let mut options = std::fs::File::options();
    options
        .read(true)
        .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW);
    let folder = options.open(path).ok()?;
    folder.try_lock().ok()?;
    Some(folder)
}

/// Removes folders that killed processes left in these directories.
pub fn sweep<'a>(dirs: impl IntoIterator<Item = &'a str>) {
    for dir in dirs {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        for entry in entries {
            if is_ours(&entry) && lock(&entry.path()).is_some() {
                // Nothing else can be done on failure.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// Returns whether a folder is named after a process and belongs to this user: other folders of
/// users may have the same prefix.
fn is_ours(entry: &std::fs::DirEntry) -> bool {
    let name = entry.file_name();
    let number = name.to_str().and_then(|name| name.strip_prefix(FOLDERS));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // SAFETY: no pointers are passed.
    let user = unsafe { libc::geteuid() };
    // Does not follow links.
    let metadata = entry.metadata();
    number.is_some_and(is_number)
        && metadata.is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user)
}

/// A folder for the files of one primitive, removed with its content on drop.
#[derive(Debug)]
pub(crate) struct Folder {
    path: String,
    /// The lock that protects it from [`sweep`].
    _lock: Option<std::fs::File>,
}

impl Folder {
    /// Creates it in the plan's folder.
    pub(crate) fn new(around: &Context<'_>) -> Result<Self, Why> {
        Self::in_folder(around.plan.dir)
    }

    /// Creates it in `dir`.
    pub(crate) fn in_folder(dir: &str) -> Result<Self, Why> {
        let path = format!("{dir}/{FOLDERS}{}", std::process::id());
        // Images of containers and guests may lack the default folder.
        if dir == FOLDER {
            let _ = std::fs::create_dir_all(dir);
        }
        // `create` fails on a link or folder that another user has put there.
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => Ok(Self {
                _lock: lock(path.as_ref()),
                path,
            }),
            Err(error) => Err(why(format_args!(
                "no folder can be made in {dir}: {error}; name another one (--dir)"
            ))),
        }
    }

    /// Returns the path of a file in it.
    pub(crate) fn path(&self, name: &str) -> CString {
        CString::new(format!("{}/{name}", self.path)).unwrap_or_default()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing else can be done on failure.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_processes_left_is_swept_never_what_a_user_named_alike() {
        let own = std::env::temp_dir().join(format!("tare-sweep-{}", std::process::id()));
        let path = |name: &str| own.join(name);
        for name in ["1", "monday", "2/kept", ""] {
            std::fs::create_dir_all(path(&format!("{FOLDERS}{name}"))).unwrap();
        }
        std::fs::create_dir_all(path("linked")).unwrap();
        std::os::unix::fs::symlink(path("linked"), path(&format!("{FOLDERS}3"))).unwrap();
        std::fs::write(path(&format!("{FOLDERS}4")), "a file").unwrap();
        // One whose owner is alive.
        let held = lock(&path(&format!("{FOLDERS}2")));
        sweep(own.to_str());
        let mut left: Vec<String> = std::fs::read_dir(&own)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        drop(held);
        std::fs::remove_dir_all(&own).unwrap();
        let named = |name: &str| format!("{FOLDERS}{name}");
        let kept = ["", "2", "3", "4", "monday"].map(named);
        assert_eq!(left[0], "linked");
        assert_eq!(left[1..], kept);
    }
}
