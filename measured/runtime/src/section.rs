//! Critical sections, which are empty: only the first CPU runs tasks, and interrupt handlers only
//! count.

use critical_section::{Impl, RawRestoreState};
use tare_unikernel::local::local;

struct FirstCpuAlone;

critical_section::set_impl!(FirstCpuAlone);

// SAFETY: other CPUs are rejected, and interrupt handlers use nothing that a section protects.
unsafe impl Impl for FirstCpuAlone {
    unsafe fn acquire() -> RawRestoreState {
        assert!(local().number() == 0, "only the first CPU runs tasks");
    }

    unsafe fn release((): RawRestoreState) {}
}
