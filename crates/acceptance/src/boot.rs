//! How much later than the floor the smallest image is there, and what it costs when it idles.
//!
//! The floor is a guest of two instructions: a byte to the serial line, and the end. The time from
//! the call that executes QEMU to the first line is QEMU's and its firmware's; what `hello` takes
//! longer is the library OS's. The two alternate, so that a machine that slows down slows down
//! both, and all of it runs on one CPU: where QEMU's threads wake each other across CPUs, medians of 20
//! of the same image differ by 3 ms, else by half of one. An image that idles is halted, and its QEMU waits in the kernel.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::verdict::Verdicts;
use crate::{Result, median, on_one_cpu};

/// Is how often each image is started.
const STARTS: usize = 20;
/// Is how many milliseconds the smallest image may take longer than the floor.
const MOST_LATER_MS: f64 = 2.0;
/// Is how long an idle guest is watched.
const IDLE: Duration = Duration::from_secs(10);
/// Is how much of one CPU an idle guest may take, in percent.
const MOST_IDLE_PERCENT: f64 = 0.3;

/// Is a type of machine, with the words that it takes beyond those of all.
const MACHINES: [(&str, &[&str]); 2] = [("microvm", &["-bios", "qboot.rom"]), ("pc", &[])];

/// Starts the images, and watches one that idles.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    on_one_cpu(|| check(verdicts))
}

fn check(verdicts: &mut Verdicts) -> Result<()> {
    let (floor, hello) = (image("floor")?, image("hello")?);
    for (machine, words) in MACHINES {
        let (mut floors, mut hellos) = (Vec::new(), Vec::new());
        for round in 0..STARTS {
            // Who is first may pay for what the other finds in a cache: they take turns.
            let order = if round % 2 == 0 {
                [&floor, &hello]
            } else {
                [&hello, &floor]
            };
            for image in order {
                let ms = first_line_ms(machine, words, image)?;
                if image == &floor {
                    floors.push(ms);
                } else {
                    hellos.push(ms);
                }
            }
        }
        let (floor_ms, hello_ms) = (median(floors), median(hellos));
        println!(
            "       {machine} under TCG, exec to the first line, medians of {STARTS}: floor \
             {floor_ms:.2} ms, hello {hello_ms:.2} ms"
        );
        let what = format!("{machine}: hello later than the floor, ms");
        verdicts.at_most(&what, hello_ms - floor_ms, MOST_LATER_MS);

        let what = format!(
            "{machine}: CPU time of an idle guest over {} s, % of a CPU",
            IDLE.as_secs()
        );
        verdicts.at_most(
            &what,
            idle_percent(machine, words, &hello)?,
            MOST_IDLE_PERCENT,
        );
    }
    Ok(())
}

/// Finds an image as `make build` leaves it.
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

/// Is a QEMU that ends with this value.
struct Qemu(Child);

impl Qemu {
    fn start(machine: &str, words: &[&str], image: &Path, command_line: &str) -> Result<Self> {
        let child = Command::new("qemu-system-x86_64")
            .args(["-machine", &format!("{machine},accel=tcg")])
            .args(["-nodefaults", "-no-user-config", "-display", "none"])
            .args(["-no-reboot", "-serial", "stdio", "-m", "64"])
            .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"])
            .args(words)
            .arg("-kernel")
            .arg(image)
            .args(["-append", command_line])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|error| {
                format!("qemu-system-x86_64: {error}; type `apt-get install qemu-system-x86`")
            })?;
        Ok(Self(child))
    }

    /// Reads until the first line is complete.
    fn wait_for_line(&mut self) -> Result<()> {
        let output = self.0.stdout.as_mut().ok_or("standard output is a pipe")?;
        let mut byte = [0];
        while output.read(&mut byte)? == 1 {
            if byte == *b"\n" {
                return Ok(());
            }
        }
        Err("the guest ended without a line".into())
    }

    /// Sums up the CPU time of all its threads, in ns.
    fn cpu_ns(&self) -> Result<u64> {
        let mut sum = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.0.id()))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            let ns = text.split_whitespace().next().unwrap_or_default();
            sum += ns.parse::<u64>()?;
        }
        Ok(sum)
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        // One that has ended by itself can't be killed, and need not be.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn first_line_ms(machine: &str, words: &[&str], image: &Path) -> Result<f64> {
    let begun = Instant::now();
    let mut qemu = Qemu::start(machine, words, image, "a line")?;
    qemu.wait_for_line()?;
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    // It ends by itself: so the next one does not start beside it.
    qemu.0.wait()?;
    Ok(ms)
}

fn idle_percent(machine: &str, words: &[&str], image: &Path) -> Result<f64> {
    let mut qemu = Qemu::start(machine, words, image, "then=idle")?;
    qemu.wait_for_line()?;
    // What QEMU still does after a start is not the guest's idling.
    thread::sleep(Duration::from_secs(1));
    let (begun, before) = (Instant::now(), qemu.cpu_ns()?);
    thread::sleep(IDLE);
    let (wall, after) = (begun.elapsed(), qemu.cpu_ns()?);
    Ok(100.0 * (after - before) as f64 / wall.as_nanos() as f64)
}
