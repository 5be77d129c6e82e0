//! The console of an image: the serial line, or by the word `console=virtio` a virtio device, which takes a line at once.

use core::cell::OnceCell;

use tare_unikernel::console::serial_line;
use tare_virtio::console::VirtioConsole;
use tare_virtio::device::{self, DeviceError, Kind};

use crate::network::OnFirstCpu;

/// The device, once it is used.
static DEVICE: OnFirstCpu<OnceCell<VirtioConsole>> = OnFirstCpu::new(OnceCell::new());

/// Why there is no such console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleError {
    /// There is no device.
    NoDevice,
    /// It can't be used.
    Device(DeviceError),
}

impl core::fmt::Display for ConsoleError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoDevice => f.write_str(
                "there is no virtio console (QEMU: -device virtio-serial-pci -device virtconsole,chardev=…)",
            ),
            Self::Device(error) => write!(f, "the virtio console can't be used: {error:?}"),
        }
    }
}

impl core::error::Error for ConsoleError {}

/// Writes to a virtio console from now on if the command line says so.
///
/// # Errors
///
/// Returns [`ConsoleError`] if it does, and there is none.
pub fn start(command_line: &str) -> Result<(), ConsoleError> {
    let mut words = command_line.split_ascii_whitespace();
    if words.any(|word| word == "console=virtio") {
        let device = device::find(Kind::Console, command_line).ok_or(ConsoleError::NoDevice)?;
        let console = VirtioConsole::new(device).map_err(ConsoleError::Device)?;
        // It is started once.
        let _ = DEVICE.get().set(console);
    }
    Ok(())
}

/// Takes what is written to the console, as the library OS's `console` asks.
#[unsafe(no_mangle)]
fn tare_console_write(bytes: &[u8]) {
    match DEVICE.get().get() {
        Some(device) => device.write(bytes),
        None => serial_line(bytes),
    }
}
