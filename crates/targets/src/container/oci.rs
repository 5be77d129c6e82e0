//! The configuration of a container for a runtime: the `config.json` of an OCI bundle.
//!
//! The OCI Runtime Specification 1.0.2 says what the fields mean.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{major, minor};
use serde_json::{Value, json};
use tare_guard::{OWNER_VARIABLE, OwnerId};

use super::settings::{CAPABILITIES, Resources, SERVING};

/// Says what is particular to one container.
#[derive(Debug)]
pub(super) struct Container<'a> {
    pub(super) rootfs: &'a Path,
    /// Its words, behind the path of its program.
    pub(super) arguments: &'a [String],
    /// The path of the network namespace that it shares; one without a network if None.
    pub(super) network: Option<&'a str>,
    /// The paths of this machine that it sees, with whether it may write there. With any, it also
    /// has a /tmp.
    pub(super) mounts: &'a [(String, bool)],
    /// The path of its control group from the top of each hierarchy.
    pub(super) cgroup: &'a str,
    pub(super) resources: Resources,
    pub(super) owner: &'a OwnerId,
}

impl Container<'_> {
    /// Returns the bundle's `config.json`.
    pub(super) fn config(&self) -> Value {
        let serves = self.network.map(|_| SERVING);
        let capabilities = CAPABILITIES.into_iter().chain(serves);
        let capabilities: Vec<String> = capabilities.map(|name| format!("CAP_{name}")).collect();
        let device = self.resources.dma_device.and_then(device);
        let mut allowed = vec![json!({ "allow": false, "access": "rwm" })];
        allowed.extend(device.as_ref().map(|device| {
            json!({
                "allow": true, "access": "rw", "type": "c",
                "major": device["major"], "minor": device["minor"],
            })
        }));
        let mut namespaces =
            ["network", "pid", "ipc", "uts", "mount"].map(|kind| json!({ "type": kind }));
        if let Some(network) = self.network {
            namespaces[0]["path"] = json!(network);
        }
        let mut cpu = json!({});
        if let Some(cpus) = self.resources.cpus {
            cpu["cpus"] = json!(cpus.to_string());
        }
        if let Some(real_time) = self.resources.real_time {
            cpu["realtimePeriod"] = json!(real_time.period_us);
            cpu["realtimeRuntime"] = json!(real_time.runtime_us);
        }
        let mut mounts = vec![
            json!({ "destination": "/proc", "type": "proc", "source": "proc" }),
            json!({
                "destination": "/dev", "type": "tmpfs", "source": "tmpfs",
                "options": ["nosuid", "mode=755", "size=64k"],
            }),
            json!({
                "destination": "/sys", "type": "sysfs", "source": "sysfs",
                "options": ["nosuid", "noexec", "nodev", "ro"],
            }),
        ];
        if !self.mounts.is_empty() {
            // In this order: the others may be in /tmp.
            mounts.push(json!({ "destination": "/tmp", "type": "tmpfs", "source": "tmpfs" }));
        }
        mounts.extend(self.mounts.iter().map(|(path, is_writable)| {
            let access = if *is_writable { "rw" } else { "ro" };
            json!({
                "destination": path, "type": "bind", "source": path, "options": ["bind", access],
            })
        }));
        json!({
            "ociVersion": "1.0.2",
            "root": { "path": self.rootfs, "readonly": true },
            "process": {
                "args": self.arguments,
                "cwd": "/",
                "env": [format!("{OWNER_VARIABLE}={}/0", self.owner)],
                "user": { "uid": 0, "gid": 0 },
                "noNewPrivileges": true,
                "capabilities": {
                    "bounding": capabilities,
                    "effective": capabilities,
                    "permitted": capabilities,
                },
            },
            "mounts": mounts,
            "linux": {
                "cgroupsPath": format!("/{}", self.cgroup),
                "namespaces": namespaces,
                "devices": device.as_slice(),
                "resources": {
                    "devices": allowed,
                    "memory": { "limit": self.resources.memory_bytes },
                    "cpu": cpu,
                },
                "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list"],
                "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"],
            },
        })
    }
}

/// Describes a device of this machine, unless it is none.
fn device(path: &str) -> Option<Value> {
    let number = fs::metadata(path).ok()?.rdev();
    Some(json!({
        "path": path,
        "type": "c",
        "major": major(number),
        "minor": minor(number),
        "fileMode": 0o600,
        "uid": 0,
        "gid": 0,
    }))
}
