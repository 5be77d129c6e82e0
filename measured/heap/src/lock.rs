//! A spin lock: there is no scheduler to wait with.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, Ordering};

use lock_api::{GuardSend, RawMutex};

/// A lock that is held while the value is true.
pub struct SpinLock(AtomicBool);

// SAFETY: `lock` returns only to the caller that has changed false to true, and only `unlock`
// changes it back. Interrupt handlers only count and acknowledge, and take no lock.
unsafe impl RawMutex for SpinLock {
    const INIT: Self = Self(AtomicBool::new(false));

    type GuardMarker = GuardSend;

    fn lock(&self) {
        while !self.try_lock() {
            while self.0.load(Ordering::Relaxed) {
                spin_loop();
            }
        }
    }

    fn try_lock(&self) -> bool {
        self.0
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    unsafe fn unlock(&self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::thread;

    use super::*;

    #[test]
    fn only_one_thread_is_inside_at_a_time() {
        let mutex = lock_api::Mutex::<SpinLock, u64>::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        *mutex.lock() += 1;
                    }
                });
            }
        });
        assert_eq!(*mutex.lock(), 40_000);
        assert!(mutex.try_lock().is_some());
        let held = mutex.lock();
        assert!(mutex.try_lock().is_none());
        drop(held);
    }
}
