//! The time to the first record of a Linux guest compared with a minimal one, and every load inside
//! of one.
//!
//! The minimal guest is the same kernel with an `/init` of two lines: it prints and powers off. The
//! additional time of the target `linux` is the agent's set-up: an initramfs of a few hundred kB,
//! the modules of the virtio port, a second process. Both run on one CPU, for the reason in
//! [`crate::boot`].

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tare_guard::{Guard, Interrupt};
use tare_kernels::{Initramfs, Kernel, Store, default_store_dir};
use tare_results::CellState;
use tare_results::model::Load;
use tare_results::receive::Receiver;
use tare_results::work::Work;
use tare_targets::instance::OutputEvent;
use tare_targets::{Job, spec};

use crate::qemu::Qemu;
use crate::verdict::Verdicts;
use crate::{Result, median, on_one_cpu, run as tare};

/// The number of starts of each guest.
const STARTS: usize = 14;
/// The limit on the time to the first record relative to the minimal guest.
const MOST_RATIO: f64 = 1.15;
/// The time limit for a guest.
const LIMIT: Duration = Duration::from_secs(60);

/// Loads that run anywhere.
pub const LOADS: [&str; 8] = [
    "dd",
    "hackbench",
    "dd+hackbench",
    "du",
    "tar",
    "nc",
    "ping",
    "stress-ng:--cpu 1 --hdd 1 --hdd-bytes 16M",
];

const KERNELS: [&str; 2] = ["debian-cloud-6.1", "debian-rt-6.1"];

/// About five seconds of timer reads under TCG, where no load takes turns.
const READS: &str = "150000000";

/// Starts guests, and lets each load run in one.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    on_one_cpu(|| {
        for name in KERNELS {
            first_words(name, verdicts)?;
        }
        Ok(())
    })?;
    let scratch = tempfile::tempdir()?;
    let loads = LOADS
        .into_iter()
        .chain(["command:find /usr /scratch -xdev"]);
    for (number, load) in loads.enumerate() {
        inside(load, &format!("load-{number}"), scratch.path(), verdicts)?;
    }
    Ok(())
}

fn first_words(name: &str, verdicts: &mut Verdicts) -> Result<()> {
    let kernel = Store::open(&default_store_dir()?)?.find(name)?;
    let scratch = tempfile::tempdir()?;
    let initrd = scratch.path().join("initrd");
    fs::write(&initrd, two_lines(scratch.path())?)?;
    // A hypervisor's interference lasts for minutes and amounts to a fifth of a start: guests of
    // the same minute are compared.
    let (mut least_ms, mut ours_ms, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..STARTS {
        let least = || first_line_ms(&kernel, &initrd);
        let ours = || first_record_ms(name, scratch.path());
        let (least, ours) = match round % 2 {
            0 => (least()?, ours()?),
            _ => {
                let ours = ours()?;
                (least()?, ours)
            }
        };
        ratios.push(ours / least);
        least_ms.push(least);
        ours_ms.push(ours);
    }
    println!(
        "       {name} under TCG, medians of {STARTS}: two-line init to its line {:.0} ms, agent to its first record {:.0} ms",
        median(least_ms),
        median(ours_ms)
    );
    ratios.sort_by(f64::total_cmp);
    println!("       each pair: {ratios:.2?}");
    let what = format!("{name}: agent's first record / two-line init's line");
    verdicts.at_most(&what, median(ratios), MOST_RATIO);
    Ok(())
}

/// Creates an initramfs with nothing but an init that prints a line and powers off.
fn two_lines(scratch: &Path) -> Result<Vec<u8>> {
    let (source, program) = (scratch.join("init.s"), scratch.join("init"));
    // write(1, line, 6); reboot(…, …, LINUX_REBOOT_CMD_POWER_OFF)
    fs::write(
        &source,
        ".globl _start\n_start:\n\
         mov $1, %eax\nmov $1, %edi\nlea line(%rip), %rsi\nmov $6, %edx\nsyscall\n\
         mov $169, %eax\nmov $0xfee1dead, %edi\nmov $0x28121969, %esi\nmov $0x4321fedc, %edx\n\
         syscall\n\
         line: .ascii \"first\\n\"\n",
    )?;
    let built = Command::new("cc")
        .args(["-static", "-nostdlib", "-o"])
        .args([&program, &source])
        .status()?;
    if !built.success() {
        return Err(format!("cc can't build the two-line init: {built}").into());
    }
    let mut initramfs = Initramfs::new();
    initramfs
        .dir("/dev", 0o755)?
        .node("/dev/console", 0o600, 5, 1)?
        .file("/init", 0o755, fs::read(&program)?)?;
    Ok(initramfs.finish())
}

/// Starts the kernel on the target `linux`'s machine, and returns the time to the first line.
fn first_line_ms(kernel: &Kernel, initrd: &Path) -> Result<f64> {
    let words = format!(
        "-machine q35,accel=tcg -cpu max -smp 1 -m 513 -device virtio-serial-pci -initrd {}",
        initrd.display()
    );
    let command_line = "console=ttyS0 quiet oops=panic panic=-1 no_timer_check";
    let begun = Instant::now();
    let mut qemu = Qemu::start(&words, &kernel.vmlinuz, command_line)?;
    qemu.wait_for("first")?;
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    qemu.end()?;
    Ok(ms)
}

/// Starts the target and returns the time from the call to the agent's first record, without the time
/// for which the agent waited until the guest was idle.
fn first_record_ms(kernel: &str, scratch: &Path) -> Result<f64> {
    let guard = Guard::open(&scratch.join("state"))?;
    let target = spec::parse(&format!("linux,kernel={kernel},accel=tcg"))?;
    // Called in advance, as by every run: it looks for QEMU.
    target.program()?;
    let started_ns = tare_targets::instance::now_ns();
    // Short: the measured part is over before it starts.
    let work = Work::new("prime", "limit=22 repetitions=1000");
    let instance = target.start(&Job::idle(&work), &guard)?;
    let (mut first, mut receiver) = (None, Receiver::default());
    let mut watcher = |event: OutputEvent<'_>| {
        if let OutputEvent::Line(line, at_ns) = event {
            if line.starts_with(b"tare5:") {
                first.get_or_insert(at_ns);
            }
            receiver.line(line);
        }
    };
    let ended = instance.watch(LIMIT, &Interrupt::detached()?, &mut watcher)?;
    let at_ns = first.ok_or_else(|| format!("no record came: {:?}", ended.how))?;
    let received = receiver
        .finish()
        .map_err(|why| format!("its records broke off: {why}"))?;
    let waited = received.program.fact("idle after boot");
    let waited_ms: Option<f64> = waited.and_then(|text| text.split(' ').nth(1)?.parse().ok());
    let waited_ms = waited_ms.ok_or("it did not say for how long it waited")?;
    Ok((at_ns - started_ns) as f64 / 1e6 - waited_ms)
}

/// Measures noise under a load inside of a guest, and prints the load's work.
fn inside(load: &str, name: &str, scratch: &Path, verdicts: &mut Verdicts) -> Result<()> {
    let words =
        format!("noise --workload gap --repetitions {READS} --runs 1 --target linux,cpus=2,mem=1G");
    let folder = tare(scratch, name, &words, &["--load", load])?;
    let CellState::Done(cell) = folder.state(1) else {
        return Err(format!("{load} in a guest: the cell failed").into());
    };
    let did = cell.load.ok_or("the cell has no load")?;
    show(&format!("{load} in a guest"), &did, verdicts)
}

/// Prints the work of a load, which must not be zero.
fn show(what: &str, did: &Load, verdicts: &mut Verdicts) -> Result<()> {
    for achieved in &did.achieved {
        let rate = achieved.rate().ok_or("no time passed")?;
        println!("       {what}: {rate}");
    }
    let first = did.achieved.first().map_or(0, |achieved| achieved.amount);
    verdicts.at_least(&format!("{what}: amount"), first as f64, 1.0);
    Ok(())
}
