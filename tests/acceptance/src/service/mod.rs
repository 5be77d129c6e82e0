//! The cost of network services in the unikernel: against a Linux guest, against processes, at
//! rest, over a long time, in instructions, and in bytes.
//!
//! Each but those that count instructions serves a separate TAP network.

pub mod clients;
mod inside;
mod linux;

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use tare_experiments::catalogue;
use tare_networks::TapNetwork;
use tare_pages::analyse;
use tare_results::RunFolder;

use crate::qemu::Qemu;
use crate::verdict::Verdicts;
use crate::{Result, median, output};

/// The time until a started service is at rest, and the time at rest.
const SETTLING: Duration = Duration::from_secs(5);
const REST: Duration = Duration::from_secs(20);
/// The duration of the long dnsperf runs on each of the machines, in seconds.
const LONG: [u32; 2] = [600, 60];
/// The port for an image's figures.
const FIGURES: u16 = 9100;

/// The name server with features besides IPv4 and UDP, and the limits on its size in bytes.
const FEATURES: [(&str, Option<f64>); 7] = [
    ("", None),
    ("dhcp", Some(100_000.0)),
    ("ipv6,tcp", None),
    ("dhcp,ipv6,tcp", Some(150_000.0)),
    ("dhcp,slaac,tcp", Some(170_000.0)),
    ("dhcp,files,slaac,tcp", None),
    ("console,dhcp,figures,files,slaac,tcp", None),
];

/// A kind of virtual machine.
pub struct Machine {
    pub name: &'static str,
    /// Additional arguments for QEMU.
    arguments: &'static str,
    card: &'static str,
}

impl Machine {
    /// One with its card on PCI, and one with an MMIO card.
    pub const ALL: [Self; 2] = [
        Self {
            name: "unikernel (q35, PCI)",
            arguments: "-machine q35,accel=tcg",
            card: "virtio-net-pci",
        },
        Self {
            name: "unikernel (microvm, MMIO)",
            arguments: "-machine microvm,acpi=off,accel=tcg -bios qboot.rom",
            card: "virtio-net-device",
        },
    ];

    /// Returns the arguments for QEMU with the network device 'net'.
    pub fn words(&self, netdev: &str) -> String {
        format!(
            "{} -cpu max -smp 1 -m 256 -name tare,debug-threads=on -global virtio-mmio.force-legacy=false \
             -netdev {netdev} -device {},netdev=net",
            self.arguments, self.card
        )
    }

    /// Boots a guest in a network, and waits until it answers.
    fn boot(&self, network: &TapNetwork, kernel: &Path, words: &str, more: &str) -> Result<Qemu> {
        let arguments = self.words(&network.netdev("net")) + more;
        let start = || Qemu::start(&arguments, kernel, words).map_err(|error| error.to_string());
        let mut qemu = network.hypervisor.within(start)??;
        qemu.wait_for("answering on ")?;
        Ok(qemu)
    }
}

/// A client that queries 1,000 names in turn.
struct Asker {
    queries: tempfile::NamedTempFile,
}

impl Asker {
    fn new() -> Result<Self> {
        let queries = tempfile::NamedTempFile::new()?;
        let names = (0..1_000).map(|host| format!("host{host}.example A\n"));
        fs::write(queries.path(), names.collect::<String>())?;
        Ok(Self { queries })
    }

    /// Runs dnsperf against the guest of a network, and returns the number of answers and their
    /// rate per second. None may be lost.
    fn ask(&self, network: &TapNetwork, words: &str) -> Result<(f64, f64)> {
        let mut dnsperf = Command::new("dnsperf");
        dnsperf
            .args(["-s", &TapNetwork::GUEST.0.to_string()])
            .args(["-d".as_ref(), self.queries.path().as_os_str()])
            .args(words.split(' '));
        network.clients.contain(&mut dnsperf)?;
        let told = output(&mut dnsperf)?;
        let number = |name: &str| -> Result<f64> {
            let line = told.lines().find_map(|line| line.trim().strip_prefix(name));
            let word = line.and_then(|line| line.split_whitespace().next());
            Ok(word
                .ok_or_else(|| format!("dnsperf has no '{name}': {told}"))?
                .parse()?)
        };
        if number("Queries lost:")? > 0.0 {
            return Err(format!("answers were lost: {told}").into());
        }
        Ok((
            number("Queries completed:")?,
            number("Queries per second:")?,
        ))
    }
}

/// Prints the size of each feature of the name server.
pub fn sizes(verdicts: &mut Verdicts) -> Result<()> {
    println!(
        "       {:>7}  features of dns besides IPv4 and UDP",
        "bytes"
    );
    for (features, most) in FEATURES {
        let path = built(&format!("dns-{features}"))?;
        let bytes = path.metadata()?.len();
        println!("       {bytes:>7}  {features}");
        if let Some(most) = most {
            verdicts.at_most(&format!("bytes of dns with {features}"), bytes as f64, most);
        }
    }
    Ok(())
}

/// Measures a name server against Linux, at rest, and for ten minutes.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    inside::run(verdicts)?;
    linux::run(verdicts)?;
    let (network, asker) = (TapNetwork::new()?, Asker::new()?);
    for (machine, seconds) in Machine::ALL.iter().zip(LONG) {
        for_long(&network, machine, &asker, seconds, verdicts)?;
    }
    Ok(())
}

/// Lets a guest rest, and then answer for a long time.
fn for_long(
    network: &TapNetwork,
    machine: &Machine,
    asker: &Asker,
    seconds: u32,
    verdicts: &mut Verdicts,
) -> Result<()> {
    let words = format!("{} figures={FIGURES}", TapNetwork::WORDS);
    let qemu = machine.boot(network, &built("dns")?, &words, "")?;
    thread::sleep(SETTLING);
    let ([_, idle], ()) = spent(qemu.id(), || {
        thread::sleep(REST);
        Ok((REST.as_secs_f64() * 1e6, ()))
    })?;
    let name = machine.name;
    verdicts.at_most(&format!("{name}, at rest, % of a core"), idle * 100.0, 0.3);
    asker.ask(network, "-l 5 -c 2 -q 50")?;
    let before = figures(network)?;
    let (answers, rate) = asker.ask(network, &format!("-l {seconds} -c 2 -q 50"))?;
    println!("       {name}: {answers} answers, {rate:.0} in a second, none lost");
    let after = figures(network)?;
    let grown = |figure: &str| after(figure) - before(figure);
    verdicts.at_most(
        &format!("{name}, heap grown by, bytes"),
        grown("heap_allocated_bytes"),
        0.0,
    );
    verdicts.at_least(
        &format!("{name}, free memory more by, bytes"),
        grown("memory_free_bytes"),
        0.0,
    );
    verdicts.at_most(
        &format!("{name}, looks for something to do that found nothing, per answer"),
        grown("executor_spins_total") / answers,
        0.01,
    );
    Ok(())
}

/// Returns the CPU time of a request in each round on a target in ns, of our server, or that of a
/// name.
fn costs(
    folder: &RunFolder,
    (target, server): (&str, Option<&str>),
    place: &str,
) -> Result<Vec<f64>> {
    let analysis = analyse(folder, catalogue())?;
    let mut rows = analysis.rows().of("service", "cpu");
    let row = rows.find(|row| {
        row.target == target && row.labels.get("server") == server && row.has("place", place)
    });
    let row = row.ok_or_else(|| format!("there is no CPU time of {server:?} on {target}"))?;
    let mut each: Vec<_> = row.each.iter().collect();
    each.sort_by_key(|each| each.block);
    let all = each.iter().map(|each| each.figure.value());
    let all: Option<Vec<f64>> = all.collect();
    Ok(all.ok_or_else(|| format!("a round of {server:?} on {target} has no CPU time"))?)
}

/// Returns the median and the interquartile range over it.
fn middle(mut all: Vec<f64>) -> [f64; 2] {
    all.sort_by(f64::total_cmp);
    let range = all[all.len() - 1 - all.len() / 4] - all[all.len() / 4];
    let median = median(all);
    [median, range / median]
}

/// Returns the figures of a network's guest, by name; NaN for unknown ones.
fn figures(network: &TapNetwork) -> Result<impl Fn(&str) -> f64 + use<>> {
    let ask = || -> std::io::Result<String> {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.set_read_timeout(Some(SETTLING))?;
        socket.send_to(b"?", (TapNetwork::GUEST.0, FIGURES))?;
        let mut room = [0; 2048];
        let bytes = socket.recv(&mut room)?;
        Ok(String::from_utf8_lossy(&room[..bytes]).into_owned())
    };
    let text = network.clients.within(ask)??;
    Ok(move |name: &str| {
        let mut values = text.lines().filter_map(|line| line.strip_prefix(name));
        let value = values.next().map(|value| value.trim().parse());
        value.and_then(|value| value.ok()).unwrap_or(f64::NAN)
    })
}

/// Returns the image of a service, or `tare-service`.
pub fn built(name: &str) -> Result<PathBuf> {
    let folder = "../../measured/target/x86_64-unknown-linux-gnu/service";
    let path = std::env::current_exe()?.with_file_name(folder).join(name);
    match path.is_file() {
        true => Ok(path),
        false => Err(format!("{} is not built: make build comes first", path.display()).into()),
    }
}

/// Returns the CPU time per query of a process, in µs: that of virtual CPUs, and all of it; and the
/// result of the work. The work returns its number of queries, too.
fn spent<T>(process: u32, work: impl FnOnce() -> Result<(f64, T)>) -> Result<([f64; 2], T)> {
    let before = cpu_us(process)?;
    let (queries, done) = work()?;
    let after = cpu_us(process)?;
    Ok((
        [0, 1].map(|which| (after[which] - before[which]) / queries),
        done,
    ))
}

/// Returns the CPU time of the virtual CPU's thread and of all threads, in µs.
fn cpu_us(process: u32) -> Result<[f64; 2]> {
    let (mut of_cpu, mut of_all) = (0.0, 0.0);
    for task in fs::read_dir(format!("/proc/{}/task", process))? {
        let task = task?.path();
        let spent = fs::read_to_string(task.join("schedstat"))?;
        let spent: f64 = spent.split(' ').next().unwrap_or_default().parse()?;
        of_all += spent / 1e3;
        if fs::read_to_string(task.join("comm"))?.starts_with("CPU ") {
            of_cpu += spent / 1e3;
        }
    }
    Ok([of_cpu, of_all])
}
