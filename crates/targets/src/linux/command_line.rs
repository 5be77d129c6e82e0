//! The kernel command line of a guest.

use std::fmt::Write;

use tare_networks::TapNetwork;
use tare_results::target::Clock;
use tare_results::work::Work;
use tare_wire::cpus::Cpus;
use tare_wire::guest::{ADDRESS, DIRECT, Encoded, FIXED_PHASE, LOAD, RAM_SCRATCH, ROOT};

use super::debian::UNIT;
use super::scratch::Scratch;
use super::settings::{COMMAND_LINE_BYTES, Root, Settings};
use super::threads;
use crate::Job;
use crate::error::TargetError;
use crate::options::Word;

/// Parameters of every guest: it prints errors on the serial port and ends after an oops or a
/// panic. With QEMU's `-no-reboot` a reboot is the end.
///
/// It skips the test of its timer, as it does by itself under KVM. The test computes while ten
/// ticks are due and panics if too few came; an emulator that waits for a CPU fails it.
const ALWAYS: &str = "console=ttyS0 quiet oops=panic panic=-1 no_timer_check";

/// Parameters of a guest that is measured while it is idle: no tests of its ciphers, which take
/// seconds. Guests that are only started boot as they would.
const QUIET: &str = "cryptomgr.notests";

/// Returns the kernel command line for a guest that does what is to be done at once, on its
/// console, and ends itself.
///
/// # Errors
///
/// As [`command_line`].
pub(super) fn direct(settings: &Settings, work: &Work) -> Result<String, TargetError> {
    // A triple fault is the shortest way to reset a PC.
    line(
        &format!("reboot=t {DIRECT}"),
        settings,
        &Job::idle(work),
        None,
    )
}

/// Returns the kernel command line for a job.
///
/// # Errors
///
/// Returns [`TargetError::Failed`] if Linux would cut it.
pub(super) fn command_line(
    settings: &Settings,
    job: &Job<'_>,
    scratch: Option<Scratch>,
) -> Result<String, TargetError> {
    line(QUIET, settings, job, scratch)
}

/// Returns the kernel command line of a guest with some additional words.
fn line(
    own: &str,
    settings: &Settings,
    job: &Job<'_>,
    scratch: Option<Scratch>,
) -> Result<String, TargetError> {
    let mut line = ALWAYS.to_owned();
    let mut add = |word: std::fmt::Arguments<'_>| {
        write!(line, " {word}").expect("a String takes everything");
    };
    if let Some(preempt) = settings.preempt {
        add(format_args!("preempt={}", preempt.word()));
    }
    if !settings.isolate.is_empty() {
        let isolated = &settings.isolate;
        let others: Cpus = (0..settings.cpus).collect();
        // Managed interrupts, the scheduler's balancing, and all other interrupts.
        add(format_args!("isolcpus=managed_irq,domain,{isolated}"));
        add(format_args!("irqaffinity={}", others.without(isolated)));
    }
    if !settings.nohz_full.is_empty() {
        let tickless = &settings.nohz_full;
        // RCU's callbacks would bring the tick back.
        add(format_args!("nohz_full={tickless} rcu_nocbs={tickless}"));
    }
    if settings.clock == Clock::Instructions {
        // Addresses decide what lies together in a cache or on a page, and the phase of the
        // activations how many of them meet the tick.
        add(format_args!("nokaslr norandmaps {FIXED_PHASE}"));
    }
    add(format_args!("{own}"));
    if !settings.command_line.is_empty() {
        add(format_args!("{}", settings.command_line));
    }
    if settings.root == Root::Debian {
        let (key, word) = ROOT;
        // When all else has been started, the agent is.
        add(format_args!(
            "{key}={word} systemd.unit=graphical.target systemd.wants={UNIT}"
        ));
    }
    if let Some(Scratch::Ram(size)) = scratch {
        add(format_args!("{RAM_SCRATCH}={size}"));
    }
    if let Some(load) = job.load {
        add(format_args!("{LOAD}={}", Encoded(load.as_str())));
    }
    if job.network.is_some() {
        let (address, _) = TapNetwork::GUEST;
        add(format_args!("{ADDRESS}={address}/{}", TapNetwork::PREFIX));
    }
    add(format_args!(
        "-- {}",
        threads::measured(job.work, settings).work(job.work)
    ));
    if line.len() >= COMMAND_LINE_BYTES {
        return Err(TargetError::Failed(format!(
            "the guest's kernel command line would have {} bytes, more than the {} bytes that Linux \
             reads; shorten cmdline= or the load",
            line.len(),
            COMMAND_LINE_BYTES - 1
        )));
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use tare_results::model::Schedule;

    use super::*;
    use crate::spec;
    use crate::tests::work;

    fn told(options: &str, load: Option<&str>) -> Result<String, TargetError> {
        let settings = Settings::read(&spec::options("linux", options)).unwrap();
        let scratch = settings.scratch;
        let work = work("workload=nap limit=22 repetitions=10 cpu=5");
        let load = load.map(|load| Schedule::parse(load).unwrap());
        let job = Job {
            load: load.as_ref(),
            ..Job::idle(&work)
        };
        command_line(&settings, &job, scratch)
    }

    const PLAN: &str = "workload=nap limit=22 repetitions=10 cpu=";

    #[test]
    fn the_plan_stands_last_with_the_guests_own_cpu() {
        assert_eq!(
            told("", None).unwrap(),
            format!("{ALWAYS} {QUIET} -- {PLAN}0")
        );
        assert_eq!(
            told("cpus=3,cmdline=mitigations=off nosmt,preempt=none", None).unwrap(),
            format!("{ALWAYS} preempt=none {QUIET} mitigations=off nosmt -- {PLAN}2")
        );
        assert_eq!(
            told("", Some("stress-ng:--cpu 1")).unwrap(),
            format!("{ALWAYS} {QUIET} tare.load=stress-ng:--cpu%201 -- {PLAN}0")
        );
        assert_eq!(
            told("disk=ram:2G", Some("3s:idle;dd+hackbench")).unwrap(),
            format!("{ALWAYS} {QUIET} tare.ram=2G tare.load=3s:idle%3bdd+hackbench -- {PLAN}0")
        );
    }

    #[test]
    fn a_cpu_that_is_kept_free_is_kept_free_of_everything() {
        assert_eq!(
            told("cpus=4,isolate=1-2,nohz_full=2", None).unwrap(),
            format!(
                "{ALWAYS} isolcpus=managed_irq,domain,1-2 irqaffinity=0,3 nohz_full=2 rcu_nocbs=2 \
                 {QUIET} -- {PLAN}2"
            )
        );
    }

    #[test]
    fn a_command_line_that_linux_would_cut_is_refused() {
        let long = format!("cmdline={}", "x".repeat(2_000));
        let error = told(&long, None).unwrap_err().to_string();
        assert!(error.contains("more than the 2047 bytes"), "{error}");
    }
}
