//! The console: the first serial line of a PC, a 16550, which every machine type of QEMU has,
//! unless the image links another one.
//!
//! Its bytes go through the linker's symbol `tare_console_write`. An image may link another crate's
//! definition of it (`tare-runtime` has a virtio console), and contains none of that otherwise.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::cpu::{in8, out8};

/// The first register of COM1.
const PORT: u16 = 0x3f8;
/// The number of bytes that an empty transmitter accepts.
const FIFO: usize = 16;
/// The bit of the line status register for an empty transmitter FIFO.
const EMPTY: u8 = 1 << 5;
/// The bit of the line status register for an idle transmitter.
const IDLE: u8 = 1 << 6;
/// The number of polls before giving up: at 115,200 baud sixteen bytes take 1.4 ms, a read of a
/// register takes about 1 µs on real hardware.
const PATIENCE: u32 = 100_000;

static IS_THERE: AtomicBool = AtomicBool::new(false);

/// Sets the line to 115,200 baud, eight bits, no parity, with FIFO, without interrupts.
pub fn start() {
    // SAFETY: registers of the serial line, in the order of its data sheet; it touches no memory.
    let is_there = unsafe {
        out8(PORT + 1, 0); // no interrupts
        out8(PORT + 3, 0x80); // divisor follows
        out8(PORT, 1);
        out8(PORT + 1, 0);
        out8(PORT + 3, 3); // eight bits
        out8(PORT + 2, 7); // FIFO on and empty
        out8(PORT + 4, 3); // ready
        out8(PORT + 7, 0x5a); // a byte that the chip only keeps
        in8(PORT + 7) == 0x5a
    };
    IS_THERE.store(is_there, Ordering::Relaxed);
}

unsafe extern "Rust" {
    /// The output of the console: [`serial_line`], unless a crate of the image defines another one
    /// (`image.ld`).
    safe fn tare_console_write(bytes: &[u8]);
}

/// Writes raw bytes, and waits until the other side accepts them.
pub fn write(bytes: &[u8]) {
    tare_console_write(bytes);
}

/// Writes bytes to the serial line. Without one they are discarded.
#[unsafe(export_name = "tare_serial_line_write")]
pub fn serial_line(bytes: &[u8]) {
    if !IS_THERE.load(Ordering::Relaxed) {
        return;
    }
    for piece in bytes.chunks(FIFO) {
        // SAFETY: reads and writes registers of the serial line.
        unsafe {
            while in8(PORT + 5) & EMPTY == 0 {}
            for byte in piece {
                out8(PORT, *byte);
            }
        }
    }
}

/// Waits until everything written has been transmitted, so that ending the machine loses nothing.
/// Gives up on a line that nobody reads.
pub fn drain() {
    if !IS_THERE.load(Ordering::Relaxed) {
        return;
    }
    for _ in 0..PATIENCE {
        // SAFETY: reads a register of the serial line.
        if unsafe { in8(PORT + 5) } & IDLE != 0 {
            return;
        }
    }
}

/// The console as a sink for formatted text.
#[derive(Clone, Copy, Debug)]
pub struct Console;

impl Console {
    /// Writes texts one after the other.
    pub fn texts(self, texts: &[&str]) {
        for text in texts {
            write(text.as_bytes());
        }
    }

    /// Writes an address as `0x` and sixteen digits, in less code than the formatting of `core`.
    pub fn address(self, address: u64) {
        let mut digits = *b"0x0000000000000000";
        for (place, digit) in digits[2..].iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(address >> (60 - 4 * place)) as usize & 0xf];
        }
        write(&digits);
    }

    /// Writes a number in decimal digits.
    pub fn number(self, number: u32) {
        if number >= 10 {
            self.number(number / 10);
        }
        write(&[b'0' + (number % 10) as u8]);
    }
}

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write(text.as_bytes());
        Ok(())
    }
}
