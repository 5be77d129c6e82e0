//! The network card.
//!
//! Each entry of a queue has its own piece of memory: a packet is read where the device put it, and written where the device
//! takes it. The stack is told of packets by its waker; who runs the event loop calls [`Port::attend`] whenever an interrupt
//! may have come, and before the CPU halts.
//!
//! Interrupts are asked for only when there is nothing to do: for the next packet when all were taken, and for room in the transmit
//! queue when there is none.

use core::cell::{Cell, RefCell};
use core::task::{Context, Waker};

use embassy_net_driver::{Capabilities, Checksum, Driver, HardwareAddress, LinkState};
use tare_unikernel::memory;

use crate::checksum::Place;
use crate::device::{Device, DeviceError, Interrupts};
use crate::queue::{Buffer, Queue};

/// The card completes checksums of what is sent.
const COMPLETES_CHECKSUMS: u64 = 1 << 0;
/// The card may leave checksums incomplete of what never was on a cable, and tells which it has checked.
const TELLS_CHECKSUMS: u64 = 1 << 1;
const HAS_ADDRESS: u64 = 1 << 5;
const HAS_STATUS: u64 = 1 << 16;

const RECEIVE: u16 = 0;
const TRANSMIT: u16 = 1;

/// What stands in front of each packet, in bytes: flags, five numbers that are 0 here but for where a checksum starts and where it
/// is, and a number of buffers.
const HEADER: usize = 12;
const CHECKSUM_START: usize = 6;
const CHECKSUM_OFFSET: usize = 8;
/// Flags: the checksum has still to be completed, or was checked.
const INCOMPLETE: u8 = 1;
const CHECKED: u8 = 2;
/// The Ethernet header, in bytes.
const ETHERNET: usize = 14;

/// How a card is to be used.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many entries a queue has at most.
    pub ring: u16,
    /// The longest IP packet, in bytes.
    pub mtu: u16,
    /// Looks for packets all the time instead of being interrupted.
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

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Interrupts since packets came.
    pub receive_interrupts: u64,
    /// Interrupts since there was room in the transmit queue again. With MMIO all interrupts count as those for packets.
    pub transmit_interrupts: u64,
    /// Notifications of the device.
    pub notifications: u64,
    /// Packets that came.
    pub packets_in: u64,
    /// Packets that were sent.
    pub packets_out: u64,
    /// Packets that were dropped, since they were cut short or their checksum is wrong.
    pub drops: u64,
    /// How often the transmit queue was full when something was to be sent.
    pub full: u64,
}

/// One direction: a queue, and as many pieces of memory as it has entries.
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
        // Behind message 0, which tells of changes.
        let queue = Queue::new(device, number, settings.ring, 1 + number)?;
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

    /// Returns a piece of memory, which belongs to the caller until it is put into the queue.
    ///
    /// # Safety
    ///
    /// The device must not have it, and only one may be in use at a time.
    unsafe fn piece(&mut self, name: u16) -> &mut [u8] {
        let start = self.memory + (usize::from(name) * self.piece) as u64;
        // SAFETY: memory of this direction alone; the caller vouches for the rest.
        unsafe { core::slice::from_raw_parts_mut(start as *mut u8, self.piece) }
    }

    /// Hands the next free piece to the device.
    fn put(&mut self, bytes: usize, is_writable: bool) {
        if let Some(name) = self.queue.next() {
            let buffer = Buffer {
                address: self.memory + (usize::from(name) * self.piece) as u64,
                bytes: bytes as u32,
                is_writable,
            };
            // SAFETY: memory that lives for ever, and that nobody touches before it has come back.
            unsafe { self.queue.put(&[buffer]) };
        }
    }
}

/// A card in use: what the driver of the stack and the event loop share.
#[derive(Debug)]
pub struct Port {
    device: Device,
    settings: Settings,
    address: [u8; 6],
    receive: RefCell<Direction>,
    transmit: RefCell<Direction>,
    changes: RefCell<Option<Interrupts>>,
    is_up: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    drops: Cell<u64>,
    full: Cell<u64>,
}

impl Port {
    /// Takes a card into use.
    ///
    /// # Errors
    ///
    /// Returns [`DeviceError`] if it can't be used.
    pub fn new(mut device: Device, settings: Settings) -> Result<Self, DeviceError> {
        device.agree(COMPLETES_CHECKSUMS | TELLS_CHECKSUMS | HAS_ADDRESS | HAS_STATUS)?;
        let mut address = [0; 6];
        for (place, byte) in (0..).zip(&mut address) {
            *byte = device.own(place);
        }
        // In memory there is one interrupt for all; it counts as the first.
        let (changes, received, sent) = if device.is_in_memory() {
            let [all] = device.interrupts()?;
            (None, all, None)
        } else {
            let [changes, received, sent] = device.interrupts()?;
            (changes, received, sent)
        };
        let mut receive = Direction::new(&device, RECEIVE, &settings, received)?;
        for _ in 0..receive.queue.size() {
            receive.put(receive.piece, true);
        }
        let transmit = Direction::new(&device, TRANSMIT, &settings, sent)?;
        device.start();
        receive.queue.tell();
        let port = Self {
            device,
            settings,
            address,
            receive: RefCell::new(receive),
            transmit: RefCell::new(transmit),
            changes: RefCell::new(changes),
            is_up: Cell::new(true),
            waker: RefCell::new(None),
            drops: Cell::new(0),
            full: Cell::new(0),
        };
        port.read_link();
        Ok(port)
    }

    /// Tells the device what was put into its queues, wakes the stack if there may be something to do, and says whether there may.
    pub fn attend(&self) -> bool {
        let mut receive = self.receive.borrow_mut();
        let mut transmit = self.transmit.borrow_mut();
        receive.queue.tell();
        transmit.queue.tell();
        let mut has_come = self.settings.polls && receive.queue.has_come();
        for one in [&mut receive.interrupts, &mut transmit.interrupts] {
            has_come |= one.as_mut().is_some_and(Interrupts::came);
        }
        let mut has_changed = has_come && self.device.acknowledge();
        if let Some(changes) = &mut *self.changes.borrow_mut() {
            has_changed |= changes.came();
        }
        if has_changed {
            self.read_link();
        }
        let has_any = has_come || has_changed;
        if has_any && let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
        has_any
    }

    /// Returns what was counted.
    #[must_use]
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
        }
    }

    fn read_link(&self) {
        const STATUS: u64 = 6;
        let is_up = !self.device.has(HAS_STATUS) || self.device.own(STATUS) & 1 != 0;
        self.is_up.set(is_up);
    }

    fn remember(&self, context: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        match &mut *waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => *waker = Some(context.waker().clone()),
        }
    }

    /// Takes back what was sent, and tells whether there is room.
    fn has_room(&self) -> bool {
        let queue = &mut self.transmit.borrow_mut().queue;
        while let Some((name, _)) = queue.take() {
            queue.release(name);
        }
        if queue.room() > 0 {
            queue.want_none();
            return true;
        }
        self.full.set(self.full.get() + 1);
        // Not for each one: for half of them, so that there is something to do then.
        let has_none = queue.want((queue.in_flight() / 2).max(1));
        while let Some((name, _)) = queue.take() {
            queue.release(name);
        }
        !has_none || queue.room() > 0
    }

    /// Tells whether a packet has come; if not, asks for an interrupt.
    fn has_come(&self) -> bool {
        let queue = &mut self.receive.borrow_mut().queue;
        if queue.has_come() {
            queue.want_none();
            return true;
        }
        !self.settings.polls && !queue.want(1)
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
        let is_ready = self.0.has_room() && self.0.has_come();
        is_ready.then_some((Received(self.0), ToSend(self.0)))
    }

    fn transmit(&mut self, context: &mut Context<'_>) -> Option<ToSend> {
        self.0.remember(context);
        self.0.has_room().then_some(ToSend(self.0))
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
        // What the stack shall still do itself.
        let does = |feature| !self.0.device.has(feature);
        let sums = match (does(TELLS_CHECKSUMS), does(COMPLETES_CHECKSUMS)) {
            (true, true) => Checksum::Both,
            (true, false) => Checksum::Rx,
            (false, true) => Checksum::Tx,
            (false, false) => Checksum::None,
        };
        (capabilities.checksum.udp, capabilities.checksum.tcp) = (sums, sums);
        capabilities.max_burst_size = Some(self.0.transmit.borrow().queue.size().into());
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet(self.0.address)
    }
}

/// A packet that has come.
#[derive(Debug)]
pub struct Received(&'static Port);

impl embassy_net_driver::RxToken for Received {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, read: F) -> R {
        let mut receive = self.0.receive.borrow_mut();
        let Some((name, bytes)) = receive.queue.take() else {
            return read(&mut []);
        };
        receive.packets += 1;
        // SAFETY: the device has given it back, and it is put in again behind its use.
        let piece = unsafe { receive.piece(name) };
        let (header, room) = piece.split_at_mut(HEADER);
        let known = !self.0.device.has(TELLS_CHECKSUMS) || header[0] & (INCOMPLETE | CHECKED) != 0;
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

/// Room for a packet to be sent.
#[derive(Debug)]
pub struct ToSend(&'static Port);

impl embassy_net_driver::TxToken for ToSend {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, fill: F) -> R {
        let mut transmit = self.0.transmit.borrow_mut();
        transmit.packets += 1;
        let name = transmit.queue.next().expect("a token is given for room");
        // SAFETY: the device has not got it, since it is free.
        let piece = unsafe { transmit.piece(name) };
        let (header, frame) = piece.split_at_mut(HEADER);
        header.fill(0);
        let frame = &mut frame[..bytes];
        let result = fill(frame);
        if self.0.device.has(COMPLETES_CHECKSUMS)
            && let Some(sum) = Place::find(frame)
        {
            sum.prepare(frame);
            header[0] = INCOMPLETE;
            header[CHECKSUM_START..][..2].copy_from_slice(&sum.start.to_le_bytes());
            header[CHECKSUM_OFFSET..][..2].copy_from_slice(&sum.offset.to_le_bytes());
        }
        transmit.put(HEADER + bytes, false);
        result
    }
}
