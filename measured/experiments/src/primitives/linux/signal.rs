//! Signals.

use std::mem::MaybeUninit;
use std::ptr;

use crate::primitives::bench::{PLAIN, why};
use crate::primitives::{Area, Need, Primitive};
use libc::c_int;
use tare_workloads::timing::{Fenced, Timing};

use super::kernel::{Partner, placements};

const SIGNAL: Primitive = Primitive {
    area: Area::Signal,
    needs: &[Need::Kernel],
    ..Primitive::NEW
};

/// The primitives.
pub(crate) const TABLE: &[Primitive] = &[
    SIGNAL.named("signal-install", "installing a signal handler")
        .by(|bench, _| bench.each(PLAIN, || install(libc::SIGUSR1))),
    SIGNAL.named("signal-catch", "sending a signal to oneself and handling it")
        .by(|bench, _| {
            install(libc::SIGUSR1);
            // SAFETY: no pointers are passed.
            let this = unsafe { libc::getpid() };
            bench.each(PLAIN, || {
                // SAFETY: the handler does nothing.
                unsafe { libc::kill(this, libc::SIGUSR1) }
            })
        }),
    SIGNAL.named("signal-round-trip", "signal to another process and back")
        .method("two processes that wait for signals (sigwaitinfo) and answer each other; a round trip is two signals")
        .by(|bench, around| {
            for (label, cpu) in placements(around.plan) {
                // SAFETY: no pointers are passed.
                let this = unsafe { libc::getpid() };
                let set = blocked(libc::SIGUSR1);
                let partner = Partner::start(cpu, || {
                    while await_signal(&set) {
                        // SAFETY: no pointers are passed.
                        unsafe { libc::kill(this, libc::SIGUSR1) };
                    }
                })?;
                bench.single(format_args!("cpu={label}"), || {
                    let begin = Fenced::before();
                    // SAFETY: no pointers are passed.
                    unsafe { libc::kill(partner.0, libc::SIGUSR1) };
                    match await_signal(&set) {
                        true => Ok(Fenced::after().wrapping_sub(begin)),
                        false => Err(why("a signal was not waited for")),
                    }
                })?;
            }
            Ok(())
        }),
];

extern "C" fn ignore(_: c_int) {}

fn install(signal: c_int) {
    // SAFETY: zero is a valid `sigaction`, with an empty mask and no flags.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = ignore as *const () as usize;
    // SAFETY: the handler does nothing.
    unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
}

/// Blocks a signal in this process and in those that it forks, so that it can be waited for.
fn blocked(signal: c_int) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the set is our own.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut());
        set.assume_init()
    }
}

fn await_signal(set: &libc::sigset_t) -> bool {
    // SAFETY: no details of the signal are requested.
    unsafe { libc::sigwaitinfo(set, ptr::null_mut()) > 0 }
}
