//! The network card.
//!
//! Each entry of a queue has its own buffer: a packet is read where the device has written it, and
//! written where the device reads it. The event loop calls [`Port::attend`] whenever an interrupt
//! may have come, and before the CPU halts; it wakes the stack.
//!
//! Interrupts are enabled only when there is nothing to do: for the next packet when all were
//! taken, and for room in the transmit queue when it is full.

use core::cell::{Cell, RefCell};
use core::mem::swap;
use core::task::{Context, Waker};

use embassy_net_driver::{Capabilities, Checksum, Driver, HardwareAddress, LinkState};

use crate::checksum::Place;
use crate::device::{Device, DeviceError, Interrupts};
use crate::machine::memory;
use crate::queue::{Buffer, Queue};

/// VIRTIO_NET_F_CSUM: the card completes checksums of sent packets.
const CSUM: u64 = 1 << 0;
/// VIRTIO_NET_F_GUEST_CSUM: the card marks checked checksums, and incomplete ones of packets that
/// were never on a cable.
const GUEST_CSUM: u64 = 1 << 1;
const MAC: u64 = 1 << 5;
const STATUS: u64 = 1 << 16;

const RECEIVE: u16 = 0;
const TRANSMIT: u16 = 1;

/// The size of the header in front of each packet, in bytes: flags, and numbers that are 0 here
/// except the start and the offset of a checksum.
const HEADER: usize = 12;
const CHECKSUM_START: usize = 6;
const CHECKSUM_OFFSET: usize = 8;
/// Flags: the checksum must be completed (NEEDS_CSUM), or was checked (DATA_VALID).
const NEEDS_CSUM: u8 = 1;
const DATA_VALID: u8 = 2;
/// The Ethernet header, in bytes.
const ETHERNET: usize = 14;

/// The settings of a card.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Maximum number of entries in a queue.
    pub ring: u16,
    /// Maximum size of an IP packet, in bytes.
    pub mtu: u16,
    /// Whether the driver polls for packets instead of being interrupted.
    pub polls: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ring: 64,
            mtu: 1500,
            polls: false,
        }
    }
}

/// The counters of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Interrupts for received packets.
    pub receive_interrupts: u64,
    /// Interrupts for room in the transmit queue. With MMIO all interrupts count as received
    /// packets.
    pub transmit_interrupts: u64,
    /// Notifications of the device.
    pub notifications: u64,
    /// Received packets.
    pub packets_in: u64,
    /// Sent packets.
    pub packets_out: u64,
    /// Packets that were dropped because they were truncated or their checksum was wrong.
    pub drops: u64,
    /// How often the transmit queue was full.
    pub full: u64,
    /// How often the device returned a buffer that it did not have.
    pub faults: u64,
}

/// One direction: a queue, and a buffer for each of its entries.
#[derive(Debug)]
struct Direction {
    queue: Queue,
    memory: u64,
    piece: usize,
    interrupts: Option<Interrupts>,
    packets: u64,
}

impl Direction {
    fn new(
        device: &Device,
        number: u16,
        settings: &Settings,
        interrupts: Option<Interrupts>,
    ) -> Result<Self, DeviceError> {
        // Message 0 is for changes of the configuration.
        let queue = device.queue(number, settings.ring, 1 + number)?;
        let piece = (HEADER + ETHERNET + usize::from(settings.mtu)).next_multiple_of(64);
        let memory = memory::take(piece * usize::from(queue.size())).ok_or(DeviceError::Memory)?;
        Ok(Self {
            queue,
            memory: memory.as_mut_ptr() as u64,
            piece,
            interrupts,
            packets: 0,
        })
    }

    fn address(&self, name: u16) -> u64 {
        self.memory + (usize::from(name) * self.piece) as u64
    }

    /// Returns a buffer: the header, and room for the packet. It belongs to the caller until it is
    /// put into the queue.
    ///
    /// # Safety
    ///
    /// The device must not own the buffer, and only one may be in use at a time.
    unsafe fn piece(&mut self, name: u16) -> (&mut [u8; HEADER], &mut [u8]) {
        let start = self.address(name) as *mut u8;
        let room = start.wrapping_add(HEADER);
        // SAFETY: memory of this direction, which is longer; the caller guarantees the rest.
        unsafe {
            (
                &mut *start.cast(),
                core::slice::from_raw_parts_mut(room, self.piece - HEADER),
            )
        }
    }

    /// Passes the next free buffer to the device.
    fn put(&mut self, bytes: usize, is_writable: bool) {
        if let Some(name) = self.queue.next() {
            let buffer = Buffer {
                address: self.address(name),
                bytes: bytes as u32,
                is_writable,
            };
            // SAFETY: static memory, which is not accessed until the device has returned it.
            unsafe { self.queue.put(&[buffer]) };
        }
    }
}

/// A card in use, shared by the driver of the stack and the event loop.
#[derive(Debug)]
pub struct Port {
    device: Device,
    settings: Settings,
    address: [u8; 6],
    receive: RefCell<Direction>,
    transmit: RefCell<Direction>,
    changes: Option<Interrupts>,
    is_up: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    /// Whether the stack did not look for packets, since there was no room for an answer.
    is_waiting: Cell<bool>,
    drops: Cell<u64>,
    full: Cell<u64>,
}

impl Port {
    /// Initialises a card.
    ///
    /// # Errors
    ///
    /// Returns [`DeviceError`] if the card can't be used.
    pub fn new(mut device: Device, settings: Settings) -> Result<Self, DeviceError> {
        device.negotiate(CSUM | GUEST_CSUM | MAC | STATUS)?;
        let address: [u8; 6] = device.own(0)?;
        if address[0] & 1 != 0 || address == [0; 6] {
            return Err(DeviceError::Address(address));
        }
        // With MMIO there is one interrupt for all events; it counts as received packets.
        let [mut changes, mut received, sent] = device.interrupts()?;
        if device.is_in_memory() {
            swap(&mut changes, &mut received);
        }
        let mut receive = Direction::new(&device, RECEIVE, &settings, received)?;
        for _ in 0..receive.queue.size() {
            receive.put(receive.piece, true);
        }
        let transmit = Direction::new(&device, TRANSMIT, &settings, sent)?;
        device.start();
        receive.queue.notify();
        let port = Self {
            device,
            settings,
            address,
            receive: RefCell::new(receive),
            transmit: RefCell::new(transmit),
            changes,
            is_up: Cell::new(true),
            waker: RefCell::new(None),
            is_waiting: Cell::new(false),
            drops: Cell::new(0),
            full: Cell::new(0),
        };
        port.read_link();
        Ok(port)
    }

    /// Notifies the device of new buffers, and wakes the stack if there may be something to do.
    /// Returns whether there may.
    pub fn attend(&self) -> bool {
        let mut receive = self.receive.borrow_mut();
        let mut transmit = self.transmit.borrow_mut();
        receive.queue.notify();
        transmit.queue.notify();
        let mut has_come = self.settings.polls && receive.queue.has_come();
        for interrupts in [&receive.interrupts, &transmit.interrupts] {
            has_come |= interrupts.as_ref().is_some_and(Interrupts::came);
        }
        let mut has_changed = has_come && self.device.acknowledge();
        has_changed |= self.changes.as_ref().is_some_and(Interrupts::came);
        if has_changed {
            self.read_link();
        }
        let has_any = has_come || has_changed;
        if has_any && let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
        has_any
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        let (receive, transmit) = (self.receive.borrow(), self.transmit.borrow());
        let interrupts =
            |direction: &Direction| direction.interrupts.as_ref().map_or(0, Interrupts::count);
        Counters {
            receive_interrupts: interrupts(&receive),
            transmit_interrupts: interrupts(&transmit),
            notifications: receive.queue.notifications() + transmit.queue.notifications(),
            packets_in: receive.packets,
            packets_out: transmit.packets,
            drops: self.drops.get(),
            full: self.full.get(),
            faults: receive.queue.faults() + transmit.queue.faults(),
        }
    }

    fn read_link(&self) {
        const LINK: u32 = 6;
        if !self.device.has(STATUS) {
            return;
        }
        // Another change will be reported.
        if let Ok([low, _]) = self.device.own::<2>(LINK) {
            self.is_up.set(low & 1 != 0);
        }
    }

    fn remember(&self, context: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        match &mut *waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => *waker = Some(context.waker().clone()),
        }
    }

    /// Frees the buffers of sent packets. Returns whether there is room.
    fn has_room(&self) -> bool {
        let queue = &mut self.transmit.borrow_mut().queue;
        while let Some((name, _)) = queue.take() {
            queue.release(name);
        }
        if queue.room() > 0 {
            queue.disable_interrupt();
            return true;
        }
        self.full.set(self.full.get() + 1);
        // Not for each packet but for half of them, so that there is something to do then.
        let has_none = queue.enable_interrupt((queue.in_flight() / 2).max(1));
        while let Some((name, _)) = queue.take() {
            queue.release(name);
        }
        !has_none || queue.room() > 0
    }

    /// Returns whether a packet has come; if not, enables the interrupt.
    fn has_come(&self) -> bool {
        let queue = &mut self.receive.borrow_mut().queue;
        if queue.has_come() {
            queue.disable_interrupt();
            return true;
        }
        !self.settings.polls && !queue.enable_interrupt(1)
    }
}

/// The driver of a card, for the stack.
#[derive(Debug)]
pub struct Net(pub &'static Port);

impl Driver for Net {
    type RxToken<'a> = Received;
    type TxToken<'a> = ToSend;

    fn receive(&mut self, context: &mut Context<'_>) -> Option<(Received, ToSend)> {
        self.0.remember(context);
        // An answer may have to be sent.
        let has_room = self.0.has_room();
        self.0.is_waiting.set(!has_room);
        let is_ready = has_room && self.0.has_come();
        is_ready.then_some((Received(self.0), ToSend(self.0)))
    }

    fn transmit(&mut self, context: &mut Context<'_>) -> Option<ToSend> {
        self.0.remember(context);
        let has_room = self.0.has_room();
        // Room that is found here is not interrupted for, and packets not either.
        if has_room && self.0.is_waiting.take() {
            context.waker().wake_by_ref();
        }
        has_room.then_some(ToSend(self.0))
    }

    fn link_state(&mut self, context: &mut Context<'_>) -> LinkState {
        self.0.remember(context);
        match self.0.is_up.get() {
            true => LinkState::Up,
            false => LinkState::Down,
        }
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.max_transmission_unit = ETHERNET + usize::from(self.0.settings.mtu);
        // The checksums that are left to the stack: none of received packets.
        let sums = match self.0.device.has(CSUM) {
            true => Checksum::None,
            false => Checksum::Tx,
        };
        (capabilities.checksum.udp, capabilities.checksum.tcp) = (sums, sums);
        capabilities.max_burst_size = Some(self.0.transmit.borrow().queue.size().into());
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet(self.0.address)
    }
}

/// A received packet.
#[derive(Debug)]
pub struct Received(&'static Port);

impl embassy_net_driver::RxToken for Received {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, read: F) -> R {
        let mut receive = self.0.receive.borrow_mut();
        let Some((name, bytes)) = receive.queue.take() else {
            return read(&mut []);
        };
        receive.packets += 1;
        // SAFETY: the device has returned it, and it is put in again after its use.
        let (header, room) = unsafe { receive.piece(name) };
        let known = self.0.device.has(GUEST_CSUM) && header[0] & (NEEDS_CSUM | DATA_VALID) != 0;
        let length = (bytes as usize).saturating_sub(HEADER);
        let mut frame = room.get_mut(..length).unwrap_or_default();
        let is_wrong = |frame: &[u8]| Place::find(frame).is_some_and(|sum| !sum.is_right(frame));
        if frame.is_empty() || !known && is_wrong(frame) {
            self.0.drops.set(self.0.drops.get() + 1);
            frame = &mut [];
        }
        let result = read(frame);
        receive.queue.release(name);
        let bytes = receive.piece;
        receive.put(bytes, true);
        result
    }
}

/// Room for a packet to send.
#[derive(Debug)]
pub struct ToSend(&'static Port);

impl embassy_net_driver::TxToken for ToSend {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, fill: F) -> R {
        let mut transmit = self.0.transmit.borrow_mut();
        transmit.packets += 1;
        let name = transmit.queue.next().expect("a token stands for room");
        // SAFETY: it is free, so the device does not own it.
        let (header, room) = unsafe { transmit.piece(name) };
        header.fill(0);
        let frame = &mut room[..bytes];
        let result = fill(frame);
        if self.0.device.has(CSUM)
            && let Some(sum) = Place::find(frame)
        {
            sum.prepare(frame);
            header[0] = NEEDS_CSUM;
            header[CHECKSUM_START..][..2].copy_from_slice(&sum.start.to_le_bytes());
            header[CHECKSUM_OFFSET..][..2].copy_from_slice(&sum.offset.to_le_bytes());
        }
        transmit.put(HEADER + bytes, false);
        result
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU32, Ordering};
    use std::boxed::Box;
    use std::sync::Arc;
    use std::task::Wake;

    use embassy_net_driver::{RxToken, TxToken};

    use super::*;
    use crate::device::mmio;
    use crate::queue::model::Memory;

    #[derive(Default)]
    struct Wakes(AtomicU32);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn packets_that_found_no_room_for_an_answer_are_looked_for_once_there_is() {
        let [received, sent] = [(); 2].map(|()| Box::leak(Box::new(Memory::new(1))));
        let [(received, mut from), (sent, mut to)] =
            [received, sent].map(|memory| memory.queue(1, true));
        let direction = |queue| Direction {
            queue,
            memory: memory::take(2_048).unwrap().as_mut_ptr() as u64,
            piece: 2_048,
            interrupts: None,
            packets: 0,
        };
        let port = Box::leak(Box::new(Port {
            device: mmio("virtio_mmio.device=512@0xfeb00000:12").unwrap(),
            settings: Settings::default(),
            address: [2; 6],
            receive: RefCell::new(direction(received)),
            transmit: RefCell::new(direction(sent)),
            changes: None,
            is_up: Cell::new(true),
            waker: RefCell::new(None),
            is_waiting: Cell::new(false),
            drops: Cell::new(0),
            full: Cell::new(0),
        }));
        port.receive.borrow_mut().put(2_048, true);
        let wakes = Arc::new(Wakes::default());
        let waker = wakes.clone().into();
        let context = &mut Context::from_waker(&waker);
        let mut net = Net(port);
        let token = net.transmit(context).unwrap();
        token.consume(60, |_| ());
        from.returns(0, 72);
        assert!(net.receive(context).is_none(), "there is no room");
        // The stack looks for room to send, and has nothing to send.
        to.returns(0, 0);
        assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
        assert!(net.transmit(context).is_some());
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        let (token, _) = net.receive(context).unwrap();
        token.consume(|_| ());
        assert!(net.transmit(context).is_some());
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1, "nothing waits");
    }
}
