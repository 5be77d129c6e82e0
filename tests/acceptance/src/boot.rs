//! The start of the smallest image compared with the floor, and its cost when it idles.
//!
//! The floor is a guest of two instructions: a byte to the serial line, and the end. The time from
//! executing QEMU to the first line is QEMU's and its firmware's; the additional time of `hello` is
//! the library OS's. The two alternate, so that a slower machine slows down both, and all of it
//! runs on one CPU: if QEMU's threads wake each other across CPUs, medians of 20 of the same image
//! differ by 3 ms, else by half of one. An image that idles is halted, and its QEMU waits in the
//! kernel. A name server is asked until its first answer.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use tare_measured::service::{Plan, answers};
use tare_networks::UserNetwork;

use crate::qemu::Qemu;
use crate::service::{Machine, built};
use crate::verdict::Verdicts;
use crate::{Result, on_one_cpu};

/// The number of starts of each image.
const STARTS: usize = 20;
/// The limit on the start of the smallest image after the floor, in ms.
const MOST_LATER_MS: f64 = 2.0;
/// The same limit for the measuring image, started by `tare start`.
const MOST_READY_LATER_MS: f64 = 5.0;
/// The limits on the first answer of the name server after the floor, by its address, in ms.
const MOST_ANSWERING_LATER_MS: [(&str, &str, f64); 2] = [
    ("DHCP", "", 60.0),
    ("a static address", "ip=10.0.2.15/24", 20.0),
];
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
const EXIT: &str = "-device isa-debug-exit,iobase=0xf4,iosize=0x04";
/// The port of the name server.
const DNS: u16 = 53;

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
        let words = format!("{words} -m 64 {EXIT}");
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
    answering(verdicts)
}

/// Starts the name server in QEMU's user network, until its first answer. The floor has the same
/// card.
fn answering(verdicts: &mut Verdicts) -> Result<()> {
    let (floor, dns) = (image("floor")?, built("dns")?);
    for machine in &Machine::ALL {
        let mut shortest = [f64::MAX; 3];
        for _ in 0..STARTS {
            let network = UserNetwork::new(&[DNS])?;
            let words = machine.words(&network.netdev("net"));
            let own = first_line_ms(&format!("{words} {EXIT}"), &floor, "")?;
            shortest[0] = shortest[0].min(own);
            for (place, (_, line, _)) in (1..).zip(MOST_ANSWERING_LATER_MS) {
                let own = first_answer_ms(&words, &dns, line, &network)?;
                shortest[place] = shortest[place].min(own);
            }
        }
        let name = machine.name;
        println!(
            "       {name} under TCG, exec to the first line of the floor, shortest of {STARTS}: {:.2} ms",
            shortest[0]
        );
        for (place, (address, _, most)) in (1..).zip(MOST_ANSWERING_LATER_MS) {
            let what = format!("{name}: first answer with {address} later than the floor, ms");
            verdicts.at_most(&what, shortest[place] - shortest[0], most);
        }
    }
    Ok(())
}

/// Returns the time from executing QEMU to the first right answer of a name server, which is asked
/// from its line on.
fn first_answer_ms(words: &str, image: &Path, line: &str, network: &UserNetwork) -> Result<f64> {
    let address = network.address(DNS).ok_or("the port is forwarded")?;
    let plan = Plan {
        address: address.ip(),
        port: address.port().into(),
        ..Plan::default()
    };
    let begun = Instant::now();
    let mut qemu = Qemu::start(words, image, line)?;
    qemu.wait_for("answering on ")?;
    if !answers(&plan, 0)? {
        return Err("the name server gives no right answer".into());
    }
    Ok(begun.elapsed().as_secs_f64() * 1e3)
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
