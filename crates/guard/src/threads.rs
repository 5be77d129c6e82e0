//! Threads that must not wait for others.

use std::io;
use std::mem;

/// Raises the calling thread to SCHED_FIFO, but not the threads and processes that it starts.
///
/// # Errors
///
/// If the kernel refuses: it takes CAP_SYS_NICE, and time in the control group where groups have
/// real-time time.
pub fn raise_priority(priority: i32) -> io::Result<()> {
    // SAFETY: plain data.
    let mut parameters: libc::sched_param = unsafe { mem::zeroed() };
    parameters.sched_priority = priority;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the calling thread is meant, and the parameters live as long as the call.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
