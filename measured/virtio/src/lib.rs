//! Drivers for virtio 1 devices, on PCI and in memory (MMIO).
//!
//! * [`device`]: finds devices, and agrees with one on features;
//! * [`queue`]: the rings that driver and device share;
//! * [`net`]: the network card; [`checksum`]: what it leaves to the driver;
//! * [`block`]: a disk, read before a service starts;
//! * [`console`]: a console in place of the serial line.
//!
//! # Why our own
//!
//! Interrupt handlers of the library OS only count, and the event loop looks at the counts. A driver that fits has to say
//! when it wants interrupts and when not, has to route messages (MSI-X), and must leave checksums to the device where that
//! can do them. `virtio-drivers` 0.13 has none of the three, and takes half as much CPU time again for an answer under load
//! (ARCHITECTURE.md has the figures).
//!
//! # What the driver asks of the device
//!
//! Version 1 only; no legacy, no transitional layout. All memory lies below 4 GiB and is mapped to its own address, so the
//! addresses of the driver are those of the device.
#![no_std]
#![cfg(target_arch = "x86_64")]

pub mod checksum;
// The host's tests have no machine to link with.
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
