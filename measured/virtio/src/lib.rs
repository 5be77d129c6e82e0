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
//! Interrupt handlers of the library OS only count, and the event loop reads the counts. So a driver
//! must control when a queue interrupts, route messages (MSI-X), and leave checksums to a device that
//! can compute them. `virtio-drivers` 0.13 does none of these: it notifies the device of each packet
//! and is interrupted for each, and takes half as much CPU time again for an answer under load.
//!
//! # Requirements
//!
//! Version 1 only, no legacy or transitional layout. All memory is below 4 GiB and identity-mapped, so
//! driver and device use the same addresses.
#![no_std]
#![cfg(target_arch = "x86_64")]

pub mod checksum;
// Tests on the host have no machine to link with.
#[cfg(not(test))]
pub mod block;
#[cfg(not(test))]
pub mod console;
#[cfg(not(test))]
pub mod device;
#[cfg(not(test))]
pub mod net;
#[cfg(not(test))]
pub mod queue;
