//! The instructions of a request to the name server within one guest, in the unikernel and in Linux.
//!
//! Server and client are the same code in both, and packets go over a loopback device. In the
//! unikernel they are two tasks of its one program; in Linux two processes, as services are used
//! there. Two tasks of one process are shown besides: that Linux saves its switches. QEMU counts
//! instructions, and its TSC is that count. A copy that repeats one instruction counts for each
//! repetition, in both.

use std::fs;
use std::path::Path;

use tare_kernels::{Store, default_store_dir};

use super::built;
use super::linux::{KERNEL, guest};
use crate::Result;
use crate::qemu::Qemu;
use crate::verdict::Verdicts;

/// The number of requests that count.
const REQUESTS: u32 = 20_000;
/// The time of an instruction is 1 ns, as is a tick.
const MACHINE: &str = "-machine q35,accel=tcg -cpu max -m 256 -icount shift=0,sleep=off";

/// Counts twice in each guest.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let kernel = Store::open(&default_store_dir()?)?.find(KERNEL)?;
    let linux = |name: &str, steps: &str| -> Result<f64> {
        let initrd = scratch.path().join(name);
        let steps = format!("ip link set lo up\n{steps} {REQUESTS}\n");
        fs::write(&initrd, guest(&kernel, "examples/inside", &steps)?)?;
        let words = format!("{MACHINE} -initrd {}", initrd.display());
        let line = "console=ttyS0 quiet panic=-1 no_timer_check";
        each(&words, &kernel.vmlinuz, line)
    };
    let word = format!("requests={REQUESTS}");
    for turn in 1..=2 {
        let own = each(MACHINE, &built("inside")?, &word)?;
        let two = linux("two", "/service serve &\nexec /service")?;
        let one = linux("one", "exec /service serve")?;
        println!(
            "       instructions of a request: unikernel {own:.0}, linux {two:.0}, in one process {one:.0}"
        );
        let what = format!("unikernel / linux, instructions of a request, turn {turn}");
        verdicts.at_most(&what, own / two, 0.33);
    }
    Ok(())
}

/// Returns the instructions of a request in a guest.
fn each(words: &str, kernel: &Path, line: &str) -> Result<f64> {
    let mut qemu = Qemu::start(words, kernel, line)?;
    let said = qemu.wait_for(" ticks")?;
    let ticks = said.rsplit(['\n', ' ']).nth(1).unwrap_or_default();
    Ok(ticks.parse::<f64>()? / f64::from(REQUESTS))
}
