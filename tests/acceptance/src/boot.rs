//! The start of the smallest image compared with the floor, and its cost when it idles.
//!
//! The floor is a guest of two instructions: a byte to the serial line, and the end. The time from
//! executing QEMU to the first line is QEMU's and its firmware's; the additional time of `hello` is
//! the library OS's. The two alternate, so that a slower machine slows down both, and all of it
//! runs on one CPU: if QEMU's threads wake each other across CPUs, medians of 20 of the same image
//! differ by 3 ms, else by half of one. An image that idles is halted, and its QEMU waits in the
//! kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::qemu::Qemu;
use crate::verdict::Verdicts;
use crate::{Result, on_one_cpu};

/// The number of starts of each image.
const STARTS: usize = 20;
/// The limit on the start of the smallest image after the floor, in ms.
const MOST_LATER_MS: f64 = 2.0;
/// The same limit for the measuring image, started by `tare start`.
const MOST_READY_LATER_MS: f64 = 5.0;
/// The time for which an idle guest is watched.
const IDLE: Duration = Duration::from_secs(10);
/// The limit on an idle guest's share of one CPU, in percent.
const MOST_IDLE_PERCENT: f64 = 0.3;

/// The machine types, with their arguments.
const MACHINES: [(&str, &str); 2] = [
    ("microvm", "-machine microvm,accel=tcg -bios qboot.rom"),
    ("pc", "-machine pc,accel=tcg"),
];
/// The arguments of each: the guest's exit ends QEMU.
const PARTS: &str = "-m 64 -device isa-debug-exit,iobase=0xf4,iosize=0x04";

/// Starts the images, and watches one that idles.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    on_one_cpu(|| check(verdicts))
}

fn check(verdicts: &mut Verdicts) -> Result<()> {
    let images = [
        (image("floor")?, "a line"),
        (image("hello")?, "a line"),
        (image("bench")?, "workload=start work=hello"),
    ];
    for (machine, words) in MACHINES {
        let words = format!("{words} {PARTS}");
        // A hypervisor's interruptions only add time: the shortest times are compared.
        let mut shortest = [f64::MAX; 3];
        for round in 0..STARTS {
            // The first one may pay for filling caches: they take turns.
            for turn in 0..images.len() {
                let place = (round + turn) % images.len();
                let (image, line) = &images[place];
                shortest[place] = shortest[place].min(first_line_ms(&words, image, line)?);
            }
        }
        let [floor_ms, hello_ms, start_ms] = shortest;
        println!(
            "       {machine} under TCG, exec to the first line, shortest of {STARTS}: floor {floor_ms:.2} ms, hello \
             {hello_ms:.2} ms, an instance of start {start_ms:.2} ms"
        );
        let what = format!("{machine}: hello later than the floor, ms");
        verdicts.at_most(&what, hello_ms - floor_ms, MOST_LATER_MS);
        let what = format!("{machine}: an instance of start later than the floor, ms");
        verdicts.at_most(&what, start_ms - floor_ms, MOST_READY_LATER_MS);

        let what = format!(
            "{machine}: CPU time of an idle guest over {} s, % of a CPU",
            IDLE.as_secs()
        );
        verdicts.at_most(
            &what,
            idle_percent(&words, &images[1].0)?,
            MOST_IDLE_PERCENT,
        );
    }
    Ok(())
}

/// Returns an image built by `make build`.
fn image(name: &str) -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root
        .join("measured/target/x86_64-unknown-linux-gnu/release")
        .join(name);
    if path.is_file() {
        Ok(path)
    } else {
        Err(format!("{} is missing: type `make build`", path.display()).into())
    }
}

/// Returns the CPU time of all threads of a process, in ns.
fn cpu_ns(pid: u32) -> Result<u64> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        let ns = text.split_whitespace().next().unwrap_or_default();
        sum += ns.parse::<u64>()?;
    }
    Ok(sum)
}

fn first_line_ms(words: &str, image: &Path, line: &str) -> Result<f64> {
    let begun = Instant::now();
    let mut qemu = Qemu::start(words, image, line)?;
    qemu.wait_for("\n")?;
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    qemu.end()?;
    Ok(ms)
}

fn idle_percent(words: &str, image: &Path) -> Result<f64> {
    let mut qemu = Qemu::start(words, image, "then=idle")?;
    qemu.wait_for("\n")?;
    let pid = qemu.0.0.id();
    // QEMU's work just after the start is not the guest's idling.
    thread::sleep(Duration::from_secs(1));
    let (begun, before) = (Instant::now(), cpu_ns(pid)?);
    thread::sleep(IDLE);
    let (wall, after) = (begun.elapsed(), cpu_ns(pid)?);
    Ok(100.0 * (after - before) as f64 / wall.as_nanos() as f64)
}
