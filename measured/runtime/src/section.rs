//! Critical sections: nothing has to be done for them.
//!
//! Only the first CPU runs tasks, and interrupt handlers do nothing but count: so nothing can come in between.

use critical_section::{Impl, RawRestoreState};
use tare_unikernel::local::local;

struct FirstCpuAlone;

critical_section::set_impl!(FirstCpuAlone);

// SAFETY: another CPU is refused, and no handler of an interrupt takes part in anything that a section protects.
unsafe impl Impl for FirstCpuAlone {
    unsafe fn acquire() -> RawRestoreState {
        assert!(local().number() == 0, "tasks are for the first CPU alone");
    }

    unsafe fn release((): RawRestoreState) {}
}
