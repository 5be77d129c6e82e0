//! The console of an image: the serial line, or with `console=virtio` a virtio device, which takes
//! a whole line at once.

use core::cell::OnceCell;

use tare_unikernel::console::serial_line;
use tare_virtio::console::VirtioConsole;
use tare_virtio::device::{self, DeviceError, Kind};

use crate::network::OnFirstCpu;

/// The device, if it is used.
static DEVICE: OnFirstCpu<OnceCell<VirtioConsole>> = OnFirstCpu::new(OnceCell::new());

/// The reason why there is no virtio console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleError {
    /// There is no device.
    NoDevice,
    /// The device can't be used.
    Device(DeviceError),
}

impl core::fmt::Display for ConsoleError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoDevice => f.write_str(
                "there is no virtio console (QEMU: -device virtio-serial-pci -device virtconsole,chardev=…)",
            ),
            Self::Device(error) => write!(f, "the virtio console can't be used: {error}"),
        }
    }
}

impl core::error::Error for ConsoleError {}

/// Switches to a virtio console if the command line asks for it.
///
/// # Errors
///
/// Returns [`ConsoleError`] if there is no usable one.
pub fn start(command_line: &str) -> Result<(), ConsoleError> {
    let mut words = command_line.split_ascii_whitespace();
    if words.any(|word| word == "console=virtio") {
        let device = device::find(Kind::Console, command_line).ok_or(ConsoleError::NoDevice)?;
        let console = VirtioConsole::new(device).map_err(ConsoleError::Device)?;
        // It is set only once.
        let _ = DEVICE.get().set(console);
    }
    Ok(())
}

/// Writes the output of `tare_unikernel::console`.
#[unsafe(no_mangle)]
fn tare_console_write(bytes: &[u8]) {
    match DEVICE.get().get() {
        Some(device) => device.write(bytes),
        None => serial_line(bytes),
    }
}
