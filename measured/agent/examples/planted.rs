//! The agent with a disturber whose doings are known, for `tare-acceptance culprits`.
//!
//! `planted plant KIND CPU FILE` disturbs a CPU until it is killed, and a minute at most. With
//! `PLANTED=KIND:CPU:FILE` in its environment the program is the agent, and a thread of it does the
//! same. Each burst is two numbers in the file: its beginning and its end by the TSC.

use std::fs::{File, OpenOptions};
use std::io::{self, Error};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use std::{fs, ptr, slice, thread};

use rustix::fs::ftruncate;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::thread::{CpuSet, UnshareFlags, sched_setaffinity, set_name};
use tare_workloads::gap;
use tare_workloads::timing::bare_rdtsc;

/// How long one disturbs.
const LIFE: Duration = Duration::from_secs(60);
/// Room for bursts in the file.
const BURSTS: usize = 1 << 20;
const PAGE: usize = 4_096;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [plant, kind, cpu, file] = &words[..]
        && plant == "plant"
    {
        return match planted(kind, cpu, file) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("planted: {kind}: {error}");
                ExitCode::FAILURE
            }
        };
    }
    // Whatever else is asked of the agent: as it is, so that no other process has these pages.
    let measures = words.iter().any(|word| word.starts_with("workload="));
    if !measures {
        let agent = std::env::current_exe().map(|path| path.with_file_name("../tare-agent"));
        let error = agent.map(|agent| Command::new(agent).args(&words).exec());
        eprintln!("planted: the agent can't be executed: {error:?}");
        return ExitCode::FAILURE;
    }
    if let Ok(planting) = std::env::var("PLANTED") {
        thread::spawn(move || {
            let words: Vec<&str> = planting.splitn(3, ':').collect();
            if let [kind, cpu, file] = words[..]
                && let Err(error) = planted(kind, cpu, file)
            {
                eprintln!("planted: {kind}: {error}");
            }
        });
    }
    tare_agent::main(&[])
}

/// The list of bursts, in a mapped file: it outlives whatever ends this process.
struct Bursts<'a> {
    rows: slice::IterMut<'a, [u64; 2]>,
}

impl Bursts<'_> {
    fn open(path: &str) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        let bytes = BURSTS * size_of::<[u64; 2]>();
        ftruncate(&file, bytes as u64)?;
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let map = unsafe { mmap(ptr::null_mut(), bytes, prot, MapFlags::SHARED, &file, 0) }?;
        // SAFETY: the mapping has this length, is aligned to pages, and stays until the end.
        let rows = unsafe { slice::from_raw_parts_mut(map.cast::<[u64; 2]>(), BURSTS) };
        Ok(Self {
            rows: rows.iter_mut(),
        })
    }

    /// Does something and notes when, if it did.
    fn note(&mut self, burst: impl FnOnce() -> bool) {
        let start = bare_rdtsc();
        if burst()
            && let Some(row) = self.rows.next()
        {
            *row = [start, bare_rdtsc()];
        }
    }
}

/// Disturbs a CPU, and notes the bursts.
fn planted(kind: &str, cpu: &str, file: &str) -> io::Result<()> {
    let cpu: usize = cpu.parse().map_err(Error::other)?;
    // Where more than one CPU is needed, it is the first one.
    let other = usize::from(cpu == 0);
    let mut bursts = Bursts::open(file)?;
    set_name(c"plant")?;
    let ends = Instant::now() + LIFE;
    let exe = File::open(std::env::current_exe()?)?;
    let mut every = |pause: Duration, burst: &mut dyn FnMut() -> bool| {
        while Instant::now() < ends {
            if kind == "fault" {
                // A CPU keeps pages that it has just read in its own list. This empties all lists.
                // SAFETY: the call takes no pointers.
                unsafe { libc::posix_fadvise(exe.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
            }
            thread::sleep(pause);
            bursts.note(&mut *burst);
        }
    };
    match kind {
        "timer" => {
            real_time(cpu)?;
            every(Duration::from_millis(1), &mut || true);
        }
        "thread" => {
            real_time(cpu)?;
            every(Duration::from_millis(10), &mut || {
                spin(Duration::from_micros(200));
                true
            });
        }
        "hog" => {
            real_time(cpu)?;
            every(Duration::from_millis(45), &mut || {
                spin(Duration::from_millis(5));
                true
            });
        }
        "busy" => {
            pin(cpu)?;
            every(Duration::ZERO, &mut || {
                spin(Duration::from_millis(1));
                false
            });
        }
        "pages" => {
            real_time(cpu)?;
            every(Duration::from_millis(20), &mut || {
                let Ok(pages) = Page::several(64) else {
                    return false;
                };
                // SAFETY: the mapping has this length, and nothing else uses it.
                unsafe {
                    pages.0.cast::<u8>().write_bytes(1, 64 * PAGE);
                    rustix::mm::munmap(pages.0, 64 * PAGE).is_ok()
                }
            });
        }
        "packets" => {
            let [from, to] = flooded(cpu)?;
            pin(other)?;
            let to = to.local_addr()?;
            every(Duration::from_millis(5), &mut || {
                for _ in 0..64 {
                    let _ = from.send_to(&[0; 64], to);
                }
                // The other CPU is not done when the last one is sent.
                spin(Duration::from_micros(100));
                true
            });
        }
        "membarrier" => {
            pin(other)?;
            membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)?;
            every(Duration::from_micros(500), &mut || {
                membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED).is_ok()
            });
        }
        "mprotect" => {
            pin(other)?;
            let mut page = Page::new()?;
            every(Duration::from_micros(500), &mut || {
                page.protect();
                true
            });
        }
        "fault" => {
            pin(other)?;
            // The pages of the measured loop's own code, which the kernel reads at once.
            const PAGES: usize = 16 * PAGE;
            let code = gap::tare_gap as *const ();
            let pages = (code.addr() & !(PAGES - 1)) as *mut libc::c_void;
            every(Duration::from_millis(5), &mut || {
                let before = major_faults();
                // SAFETY: the page is a file's, and unchanged: it is read again when it is needed.
                unsafe {
                    libc::munlock(pages, PAGES);
                    libc::madvise(pages, PAGES, libc::MADV_PAGEOUT);
                }
                // The kernel keeps it where it is, at times.
                let ends = Instant::now() + Duration::from_millis(1);
                while major_faults() == before && Instant::now() < ends {}
                major_faults() > before
            });
        }
        _ => return Err(Error::other("no such kind")),
    }
    Ok(())
}

/// Returns the number of pages that this process had to read from a disk.
fn major_faults() -> i64 {
    // SAFETY: zeroed is a valid `rusage`, which the call fills.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage.ru_majflt
    }
}

fn spin(time: Duration) {
    let ends = Instant::now() + time;
    while Instant::now() < ends {}
}

fn pin(cpu: usize) -> io::Result<()> {
    let mut one = CpuSet::new();
    one.set(cpu);
    Ok(sched_setaffinity(None, &one)?)
}

/// Takes a CPU from whatever else runs there.
fn real_time(cpu: usize) -> io::Result<()> {
    pin(cpu)?;
    let priority = libc::sched_param { sched_priority: 50 };
    // SAFETY: a live value, for this thread.
    checked(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) })
}

fn membarrier(command: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes no pointers.
    checked(unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } as i32)
}

fn checked(result: i32) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

/// A page whose protection changes: the CPUs on which the process runs have to forget it.
struct Page(*mut libc::c_void);

impl Page {
    fn new() -> io::Result<Self> {
        Self::several(1)
    }

    /// Maps some pages, one behind the other.
    fn several(number: usize) -> io::Result<Self> {
        let (bytes, prot) = (number * PAGE, ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let first =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, prot, MapFlags::PRIVATE) }?;
        Ok(Self(first))
    }

    fn protect(&mut self) {
        // SAFETY: the page belongs to this value, and is written while it may be.
        unsafe {
            self.0.cast::<u8>().write_volatile(1);
            libc::mprotect(self.0, PAGE, libc::PROT_READ);
            libc::mprotect(self.0, PAGE, libc::PROT_READ | libc::PROT_WRITE);
        }
    }
}

/// Makes a network whose packets a CPU receives, and a socket at each end.
fn flooded(cpu: usize) -> io::Result<[UdpSocket; 2]> {
    // SAFETY: only this thread uses the network and mounts; nothing else runs in the process.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET | UnshareFlags::NEWNS) }?;
    rustix::mount::mount_change(
        "/",
        rustix::mount::MountPropagationFlags::PRIVATE | rustix::mount::MountPropagationFlags::REC,
    )?;
    rustix::mount::mount(
        "sysfs",
        "/sys",
        "sysfs",
        rustix::mount::MountFlags::empty(),
        None,
    )?;
    fs::write(
        "/sys/class/net/lo/queues/rx-0/rps_cpus",
        format!("{:x}", 1_u64 << cpu),
    )?;
    let control = UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: a value of plain numbers, of which the call reads name and flags.
    let up = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[..2].copy_from_slice(&[b'l' as libc::c_char, b'o' as libc::c_char]);
        request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
        libc::ioctl(control.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
    };
    checked(up)?;
    Ok([
        UdpSocket::bind("127.0.0.1:0")?,
        UdpSocket::bind("127.0.0.1:0")?,
    ])
}
