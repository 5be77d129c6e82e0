//! The name server in the unikernel against the same code in a Debian cloud guest.
//!
//! Each guest answers first a client with one query at a time, then dnsperf. The CPU time is that
//! of QEMU's threads on the host, the virtual CPU's and all of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tare_kernels::{Initramfs, Kernel, Store, default_store_dir};
use tare_networks::TapNetwork;

use super::{Asker, Machine, built, one_at_a_time, spent};
use crate::verdict::Verdicts;
use crate::{Result, median};

/// The number of turns of each guest.
const TURNS: usize = 6;
/// The number of single queries, and of warm-up queries before them.
const QUERIES: usize = 3_000;
const FIRST: usize = 300;
/// The arguments of dnsperf.
const DNSPERF: &str = "-l 5 -c 2 -q 50";
/// The kernel of the other guest.
pub const KERNEL: &str = "debian-cloud-6.1";
/// The drivers of its card.
const MODULES: [&str; 3] = ["virtio_pci", "virtio_mmio", "virtio_net"];

/// The same machines with Linux, which detects MMIO cards by ACPI.
const LINUX: [Machine; 2] = [
    Machine {
        name: "linux (q35, PCI)",
        ..Machine::ALL[0]
    },
    Machine {
        name: "linux (microvm, MMIO)",
        arguments: "-machine microvm,acpi=on,accel=tcg -bios qboot.rom",
        ..Machine::ALL[1]
    },
];

/// The results of one guest in one turn: per query, in µs of CPU time of the virtual CPU and of
/// QEMU; then the times of single queries at the 99th percentile, in µs, or queries per second.
#[derive(Debug, Clone, Copy, Default)]
struct Turn {
    alone: [f64; 3],
    many: [f64; 3],
}

/// Lets the guests answer in alternation.
pub fn run(network: &TapNetwork, asker: &Asker, verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let kernel = Store::open(&default_store_dir()?)?.find(KERNEL)?;
    let initrd = scratch.path().join("initrd");
    fs::write(&initrd, guest(&kernel, "tare-service", SERVING)?)?;
    let (image, tsc_khz) = (built("dns")?, tsc_khz());
    // Both with Linux, then both with the image.
    let mut turns = [const { Vec::new() }; 4];
    for number in 0..TURNS {
        for place in 0..turns.len() {
            // Each begins as often as the others.
            let place = (place + number) % turns.len();
            let (machine, boot) = match place.checked_sub(LINUX.len()) {
                None => (&LINUX[place], linux(&kernel, &initrd, tsc_khz)),
                Some(place) => (
                    &Machine::ALL[place],
                    (image.clone(), TapNetwork::WORDS.to_owned(), String::new()),
                ),
            };
            let turn = turn(network, machine, boot, asker)?;
            println!("       {}: {turn:.1?}", machine.name);
            turns[place].push(turn);
        }
    }
    let middle =
        |place: usize, figure: &dyn Fn(&Turn) -> f64| median(turns[place].iter().map(figure));
    for (place, machine) in Machine::ALL.iter().enumerate() {
        let name = machine.name;
        let of_both = |figure: &dyn Fn(&Turn) -> f64| {
            middle(LINUX.len() + place, figure) / middle(place, figure)
        };
        let mut ratio = |what: &str, figure: &dyn Fn(&Turn) -> f64, most: f64| {
            let ratio = of_both(figure);
            verdicts.at_most(&format!("{name} / linux, {what}"), ratio, most);
        };
        ratio(
            "one at a time, CPU time of the virtual CPU",
            &|turn| turn.alone[0],
            0.30,
        );
        ratio(
            "one at a time, CPU time of QEMU",
            &|turn| turn.alone[1],
            0.40,
        );
        ratio("one at a time, 99th percentile", &|turn| turn.alone[2], 1.0);
        ratio(
            "dnsperf, CPU time of the virtual CPU",
            &|turn| turn.many[0],
            0.30,
        );
        ratio("dnsperf, CPU time of QEMU", &|turn| turn.many[1], 0.50);
        let rate = |turn: &Turn| turn.many[2];
        let ratio = of_both(&rate);
        verdicts.at_least(
            &format!("{name} / linux, dnsperf, queries per second"),
            ratio,
            1.7,
        );
    }
    Ok(())
}

/// Boots a guest, queries it in both ways, and ends it.
fn turn(
    network: &TapNetwork,
    machine: &Machine,
    (kernel, words, more): (PathBuf, String, String),
    asker: &Asker,
) -> Result<Turn> {
    let qemu = machine.boot(network, &kernel, &words, &more)?;
    let ask = |times| {
        network
            .clients
            .within(|| one_at_a_time(53, times, query, answers).map_err(|error| error.to_string()))
    };
    ask(FIRST)??;
    let (alone, mut took) = spent(qemu.id(), || Ok((QUERIES as f64, ask(QUERIES)??)))?;
    took.sort_by(f64::total_cmp);
    let (many, rate) = spent(qemu.id(), || asker.ask(network, DNSPERF))?;
    Ok(Turn {
        alone: [alone[0], alone[1], took[took.len() * 99 / 100]],
        many: [many[0], many[1], rate],
    })
}

/// Returns a query for one of 1,000 names.
fn query(number: usize) -> Vec<u8> {
    let [.., high, low] = number.to_be_bytes();
    let mut query = vec![high, low, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let host = format!("host{}", number % 1_000);
    for label in [host.as_bytes(), b"example", b""] {
        query.push(label.len() as u8);
        query.extend(label);
    }
    query.extend([0, 1, 0, 1]);
    query
}

/// Returns whether a query has an answer of one record.
fn answers(answer: &[u8], query: &[u8]) -> bool {
    answer.len() >= query.len() && answer[..2] == query[..2] && answer[7] == 1
}

/// Measures the frequency of the TSC, which under TCG is also the guest's, in kHz.
fn tsc_khz() -> u64 {
    const MS: u64 = 100;
    // SAFETY: reads a counter.
    let tsc = || unsafe { core::arch::x86_64::_rdtsc() };
    let (start, first) = (Instant::now(), tsc());
    while start.elapsed() < Duration::from_millis(MS) {}
    (tsc() - first) / MS
}

/// The steps of a guest that serves a network.
const SERVING: &str = "ip link set lo up\nip link set eth0 up\nip address add 192.0.2.2/24 dev eth0\nexec /service dns\n";

/// Returns the Linux guest: kernel, command line, arguments for QEMU.
///
/// A microvm has no clock but the TSC. When Linux had to measure its frequency with a PIT, one of
/// 45 boots failed to, and hung.
fn linux(kernel: &Kernel, initrd: &Path, tsc_khz: u64) -> (PathBuf, String, String) {
    (
        kernel.vmlinuz.clone(),
        format!("console=ttyS0 quiet panic=-1 no_timer_check tsc_early_khz={tsc_khz}"),
        format!(" -initrd {}", initrd.display()),
    )
}

/// Creates the file system of a guest that does nothing but serve: Debian's shell, `ip` and
/// `insmod`, and the same service as a static program.
pub fn guest(kernel: &Kernel, service: &str, steps: &str) -> Result<Vec<u8>> {
    let service = built(service)?;
    let mut initramfs = Initramfs::new();
    for folder in ["/dev", "/proc", "/sys"] {
        initramfs.dir(folder, 0o755)?;
    }
    initramfs.node("/dev/console", 0o600, 5, 1)?;
    initramfs.node("/dev/null", 0o666, 1, 3)?;
    initramfs.node("/dev/urandom", 0o666, 1, 9)?;
    for program in ["/bin/dash", "/bin/ip", "/bin/kmod"] {
        initramfs.program(program)?;
    }
    initramfs.file("/service", 0o755, fs::read(service)?)?;
    let mut script = "#!/bin/dash\n".to_owned();
    for module in kernel.modules_for(&MODULES)? {
        let path = format!("/modules/{}.ko", module.name);
        script += &format!("/insmod {path}\n");
        initramfs.file(path, 0o644, module.bytes)?;
    }
    initramfs.symlink("/insmod", "/bin/kmod")?;
    script += steps;
    initramfs.file("/init", 0o755, script)?;
    Ok(initramfs.finish())
}
