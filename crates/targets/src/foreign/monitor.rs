//! What the end of somebody else's guest means: whether it is the one that counts as success.

use super::settings::Success;
use crate::launch::Exited;
use crate::options::Value;
use crate::qemu::why_ended;

/// Judges a guest that has ended.
pub(super) fn judge(success: Success, ended: &Exited<'_>) -> Result<(), String> {
    let (is_success, how) = match ended.status.code() {
        Some(0) => {
            let is_success = match success {
                Success::Status(_) => false,
                Success::Shutdown => ended.reason == Some("guest-shutdown"),
                Success::Reset => ended.reason == Some("guest-reset"),
            };
            let reset = "the guest reset itself, or faulted for the third time";
            let how = why_ended(ended.reason, reset, "the guest powered itself off");
            (is_success, how)
        }
        Some(code) if success == Success::Status(code.unsigned_abs()) => {
            (true, format!("QEMU ended with status {code}"))
        }
        // What isa-debug-exit ends QEMU with is odd; QEMU itself fails with 1, and says why.
        Some(code) if code % 2 == 1 && ended.error.is_empty() => {
            (false, format!("the guest ended QEMU with status {code}"))
        }
        _ => (false, format!("QEMU failed: {}", ended.described())),
    };
    let wanted = success.text();
    match is_success {
        true => Ok(()),
        false => Err(ended.with_console(&format!("{how}, and success={wanted} is wanted"))),
    }
}
