//! Disks that answer without having read.

use super::*;
use crate::machine::{Fake, plug};
use crate::queue::model;

/// A disk that answers each request in this way: the status, and the bytes that it claims.
struct Answering {
    status: u8,
    claimed: u32,
    memory: u64,
    device: Option<model::Device>,
}

impl Fake for Answering {
    fn read(&mut self, address: u64) -> u32 {
        panic!("{address:#x} is read")
    }

    /// The driver looks at the clock when the request is in the queue.
    fn act(&mut self) {
        if let Some(mut device) = self.device.take_if(|device| device.has_request()) {
            // SAFETY: the status of the request, in memory that the test keeps.
            unsafe { ((self.memory + STATUS as u64) as *mut u8).write_volatile(self.status) };
            device.returns(0, self.claimed);
        }
    }
}

#[test]
fn a_read_is_done_when_all_was_written_and_the_status_says_so() {
    let all = SECTOR as u32 + 1;
    for (status, claimed, is_read) in [
        (0, all, true),
        (0, 0, false),
        (0, 1, false),
        (0, all - 1, false),
        (1, all, false),
        (255, all, false),
    ] {
        let mut rings = model::Memory::new(4);
        let (queue, device) = rings.queue(4, false);
        let memory = memory::take(DATA + PIECE).unwrap().as_mut_ptr() as u64;
        plug(Answering {
            status,
            claimed,
            memory,
            device: Some(device),
        });
        let disk = Disk {
            sectors: 1,
            queue: RefCell::new(queue),
            memory,
        };
        let read = disk.read(0, &mut [0; SECTOR]);
        assert_eq!(read.is_ok(), is_read, "{status} {claimed}: {read:?}");
    }
}

#[test]
fn a_disk_that_does_not_answer_is_an_error() {
    let mut rings = model::Memory::new(4);
    let (queue, _) = rings.queue(4, false);
    let disk = Disk {
        sectors: 1,
        queue: RefCell::new(queue),
        memory: memory::take(DATA + PIECE).unwrap().as_mut_ptr() as u64,
    };
    assert_eq!(disk.read(3, &mut [0; SECTOR]), Err(ReadError { sector: 3 }));
}
