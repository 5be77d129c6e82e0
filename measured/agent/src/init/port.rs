//! The virtio port by which records leave the guest, and by which the host requests an early end.

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::time::Duration;

use tare_wire::guest::PORT;

use super::appears;

const PORTS: &str = "/sys/class/virtio-ports";

/// The time limit for a port to get its name, which the kernel requests from the host.
const LIMIT: Duration = Duration::from_secs(5);

/// Opens the port; None if there is no driver for it, or no such port.
pub fn open() -> Option<File> {
    if !Path::new(PORTS).exists() {
        return None;
    }
    let device = appears(LIMIT, device)?;
    OpenOptions::new().read(true).write(true).open(device).ok()
}

fn device() -> Option<String> {
    fs::read_dir(PORTS).ok()?.flatten().find_map(|entry| {
        let name = fs::read_to_string(entry.path().join("name")).ok()?;
        let device = format!("/dev/{}", entry.file_name().to_str()?);
        (name.trim_end() == PORT && Path::new(&device).exists()).then_some(device)
    })
}
