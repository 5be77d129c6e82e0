//! Devices that do not keep to the standard.

use super::*;
use crate::machine::{Fake, plug};

const BASE: u64 = 0xfeb0_0000;
const MODERN_DISK: (u16, u16) = (0x1af4, 0x1042);
/// The structures of a PCI device: type, range of registers, offset, length, multiplier.
const COMMON: [u32; 5] = [1 << 24, 0, 0, common::BYTES, 0];
const NOTIFY: [u32; 5] = [2 << 24, 1, 0, 8, 4];
const OWN: [u32; 5] = [4 << 24, 2, 0, 8, 0];

fn in_memory() -> Device {
    mmio("virtio_mmio.device=512@0xfeb00000:12").unwrap()
}

/// Returns a disk with these structures in ranges of registers of 64 bytes.
fn disk(structures: &'static [[u32; 5]]) -> Option<Device> {
    let function = Function {
        id: MODERN_DISK,
        structures,
        bytes: 64,
    };
    on_pci(function, Kind::Block)
}

#[test]
fn a_reset_that_never_ends_is_an_error() {
    struct Resetting;
    impl Fake for Resetting {
        fn read(&mut self, address: u64) -> u32 {
            match address - BASE {
                mmio::VERSION => 2,
                mmio::STATUS => DRIVER_OK.into(),
                other => panic!("{other:#x} is read during the reset"),
            }
        }
    }
    plug(Resetting);
    assert_eq!(in_memory().negotiate(0), Err(DeviceError::Reset));
}

/// A device whose configuration has changed when its last byte is read, so often.
struct Changing {
    left: u32,
    generation: u32,
}

impl Fake for Changing {
    fn read(&mut self, address: u64) -> u32 {
        const LAST: u64 = mmio::OWN + 7;
        match address - BASE {
            mmio::GENERATION => self.generation,
            LAST if self.left > 0 => {
                self.left -= 1;
                self.generation += 1;
                0xff
            }
            _ => self.generation,
        }
    }
}

#[test]
fn a_configuration_is_of_one_state_or_an_error() {
    for (changes, read) in [
        (0, Ok([0; 8])),
        (99, Ok([99; 8])),
        (100, Err(DeviceError::Changing)),
        (u32::MAX, Err(DeviceError::Changing)),
    ] {
        plug(Changing {
            left: changes,
            generation: 0,
        });
        assert_eq!(in_memory().own(0), read, "{changes}");
    }
}

#[test]
fn structures_beyond_their_registers_are_refused() {
    assert!(disk(&[COMMON, NOTIFY]).is_some());
    let refused: [&'static [[u32; 5]]; 7] = [
        &[],
        &[COMMON],
        // No such range, one byte too far, past the end of 32 bits, too short.
        &[[1 << 24, 6, 0, 56, 0], NOTIFY],
        &[[1 << 24, 0, 9, 56, 0], NOTIFY],
        &[[1 << 24, 0, u32::MAX, 56, 0], NOTIFY],
        &[[1 << 24, 0, 0, 55, 0], NOTIFY],
        &[COMMON, [2 << 24, 1, 60, 5, 4]],
    ];
    for structures in refused {
        assert!(disk(structures).is_none(), "{structures:?}");
    }
}

/// The registers of a PCI disk: what lies beyond its structures is not to be read.
struct PciDisk {
    notify: u32,
}

impl Fake for PciDisk {
    fn read(&mut self, address: u64) -> u32 {
        match address {
            common::QUEUE_SIZE => 4,
            common::QUEUE_NOTIFY => self.notify,
            common::GENERATION => 0,
            own if (2 << 32..(2 << 32) + 8).contains(&own) => 7,
            other => panic!("{other:#x} is read"),
        }
    }
}

#[test]
fn nothing_is_read_or_notified_beyond_a_structure() {
    let device = disk(&[COMMON, NOTIFY, OWN]).unwrap();
    plug(PciDisk { notify: 1 });
    assert_eq!(device.own(4), Ok([7, 7, 7, 7, 0, 0]));
    assert_eq!(device.own(u32::MAX), Ok([0; 2]));
    assert!(device.queue(0, 4, 0).is_ok());
    plug(PciDisk { notify: 2 });
    assert_eq!(device.queue(0, 4, 0).err(), Some(DeviceError::NoQueue(0)));
    // One that is not inside of its range counts as none.
    let device = disk(&[COMMON, NOTIFY, [4 << 24, 2, 60, 8, 0]]).unwrap();
    assert_eq!(device.own(0), Ok([0; 8]));
}
