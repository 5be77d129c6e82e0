//! The name server in the unikernel against the same code in a Debian cloud guest, by `tare service`.

use std::fs;
use std::path::Path;

use tare_kernels::{Initramfs, Kernel};

use super::{built, costs, middle};
use crate::verdict::Verdicts;
use crate::{Result, median, of_row, run as tare};

/// The kernel of the other guest.
pub const KERNEL: &str = "debian-cloud-6.1";
const TARGETS: [&str; 2] = ["unikernel,machine=q35", "linux,kernel=debian-cloud-6.1"];
/// The rounds of a client, and the most of the interquartile range of their ratios over the median.
const RUNS: usize = 10;
const SPREAD: f64 = 0.25;
/// The runs of each offered rate.
const RUNS_OF_A_RATE: usize = 3;

/// A client, and the most that the unikernel may take of Linux's CPU time for a request: that of the
/// virtual CPU, and that of QEMU.
const CLIENTS: [(&str, &str, [f64; 2]); 2] = [
    ("one at a time", "--requests 10000", [0.25, 0.36]),
    (
        "dnsperf",
        "--client dnsperf --sockets 100 --requests 150000",
        [0.20, 0.36],
    ),
];

/// Lets the guests answer in alternation, and then three times what they can.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let [own, linux] = TARGETS;
    for (client, words, mosts) in CLIENTS {
        let words = format!("service {words} --runs {RUNS} --target {own} --target {linux}");
        let folder = tare(scratch.path(), client, &words, &[])?;
        for (place, most) in ["inside", "all"].into_iter().zip(mosts) {
            let costs = |target| costs(&folder, (target, None), place);
            let (own, linux) = (costs(own)?, costs(linux)?);
            if own.len() != RUNS || linux.len() != RUNS {
                return Err(format!("{} and {} of {RUNS} rounds", own.len(), linux.len()).into());
            }
            // A hypervisor's interference lasts for minutes: guests of the same round are compared.
            let ratios = own.iter().zip(&linux).map(|(own, linux)| own / linux);
            let [ratio, spread] = middle(ratios.collect());
            let [[own_ns, own_spread], [linux_ns, linux_spread]] = [own, linux].map(middle);
            println!(
                "       {client}, {place}: {own_ns:.0} and {linux_ns:.0} ns; interquartile range / median: \
                 {own_spread:.2} and {linux_spread:.2}"
            );
            let what = format!("unikernel / linux, {client}, CPU time {place}");
            verdicts.at_most(&what, ratio, most);
            let what = format!("{client}, {place}: interquartile range of this / median");
            verdicts.at_most(&what, spread, SPREAD);
        }
    }
    let [own_kept, linux_kept] = TARGETS.map(|target| overload(scratch.path(), target));
    let (own_kept, linux_kept) = (own_kept?, linux_kept?);
    for (target, (_, recovery_ns)) in TARGETS.into_iter().zip([own_kept, linux_kept]) {
        let what = format!("{target}, recovery from overload, s");
        verdicts.at_most(&what, recovery_ns / 1e9, 1.0);
    }
    verdicts.at_least(
        "unikernel / linux, goodput under overload / at its peak",
        own_kept.0 / linux_kept.0,
        1.0,
    );
    Ok(())
}

/// Finds the most that a target answers, and offers it three times that for a minute. Returns the
/// part of its most that it then answers, and the time until it answers the next request, in ns;
/// each a median over the runs.
fn overload(scratch: &Path, target: &str) -> Result<(f64, f64)> {
    let answers = |name: &str, rate: &str| {
        let words = format!("service --rate {rate} --runs {RUNS_OF_A_RATE} --target {target}");
        let folder = tare(scratch, &format!("{target}-{name}"), &words, &[])?;
        let of = |what| {
            of_row(&folder, "service", what, &[], |row| {
                Ok(median(
                    row.each.iter().filter_map(|each| each.figure.value()),
                ))
            })
        };
        Ok::<_, Box<dyn std::error::Error>>([of(("answers", "rate"))?, of(("recovery", "mean"))?])
    };
    let mut most: f64 = 0.0;
    for rate in ["15000", "30000", "60000", "120000"] {
        most = most.max(answers(rate, rate)?[0]);
    }
    let rate = format!("{:.0} --duration 60s", 3.0 * most);
    let [kept, recovery_ns] = answers("overload", &rate)?;
    println!(
        "       {target}: at most {most:.0} answers/s, {kept:.0} when offered three times that"
    );
    Ok((kept / most, recovery_ns))
}

/// The drivers of its card.
const MODULES: [&str; 3] = ["virtio_pci", "virtio_mmio", "virtio_net"];

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
