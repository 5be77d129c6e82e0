//! Drivers for virtio 1 devices, on PCI and in memory (MMIO).
//!
//! * [`device`]: finds devices, and agrees with one on features;
//! * [`queue`]: the rings that driver and device share;
//! * [`net`]: the network card; [`checksum`]: checksums that it leaves to the driver;
//! * [`block`]: a disk, read before a service starts;
//! * [`console`]: a console in place of the serial line.
//!
//! # Why not `virtio-drivers`
//!
//! Interrupt handlers of the library OS only count, and the event loop reads the counts. So a
//! driver must control when a queue interrupts, route messages (MSI-X), and leave checksums to a
//! device that can compute them. `virtio-drivers` 0.13 does none of these: it notifies the device
//! of each packet and is interrupted for each. In the same image, with its rings and card on these
//! registers and MSI-X, an answer took (own / `virtio-drivers`, µs of CPU time, medians of six
//! alternating turns, user-mode network, TCG):
//!
//! | | virtual CPU | QEMU | answers a second |
//! |---|---|---|---|
//! | dnsperf `-c 2 -q 50`, q35 | 11.5 / 17.3 | 22.1 / 34.2 | 43,900 / 30,600 |
//! | dnsperf, microvm | 11.6 / 17.8 | 21.7 / 33.7 | 42,800 / 29,400 |
//! | one at a time, q35 | 44.9 / 48.6 | 88.2 / 97.4 | 8,600 / 9,140 |
//! | one at a time, microvm | 45.3 / 58.0 | 87.2 / 104.6 | 8,690 / 7,490 |
//!
//! # Requirements
//!
//! Version 1 only, no legacy or transitional layout. All memory is below 4 GiB and identity-mapped,
//! so driver and device use the same addresses.
#![no_std]
#![cfg(target_arch = "x86_64")]

pub mod checksum;
// The fuzzer has no machine to link with, and tests on the host have a fake one.
#[cfg(any(test, not(feature = "model")))]
pub mod block;
#[cfg(not(any(test, feature = "model")))]
pub mod console;
#[cfg(any(test, not(feature = "model")))]
pub mod device;
#[cfg(not(any(test, feature = "model")))]
mod machine;
#[cfg(test)]
#[path = "machine/fake.rs"]
mod machine;
#[cfg(any(test, not(feature = "model")))]
pub mod net;
pub mod queue;

#[cfg(any(test, feature = "model"))]
extern crate std;
