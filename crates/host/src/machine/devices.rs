//! Memory modules, disks and network interfaces: what a description of a machine names besides its
//! processor.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::Fact;
use crate::source::Source;

const SMBIOS: &str = "/sys/firmware/dmi/tables/DMI";
const BLOCK: &str = "/sys/block";
const NET: &str = "/sys/class/net";

/// Memory modules, disks and network interfaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Devices {
    /// Memory modules, as the firmware describes them; only root can read that.
    pub memory_modules: Fact<Vec<MemoryModule>>,
    /// Disks, without those that stand for something else: loop devices, RAM, swap in memory.
    pub disks: Vec<Disk>,
    /// Network interfaces but for loopback.
    pub interfaces: Vec<Interface>,
}

/// A memory module (SMBIOS 3.7, section 7.18, type 17).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryModule {
    /// Its size.
    pub bytes: u64,
    /// Its kind: DDR4, for example; empty if the firmware names none that is known.
    pub kind: String,
    /// Its transfers per second at which it is run, in millions; null if it is not told.
    pub mega_transfers: Option<u16>,
    /// The most of which it is capable, in millions; null if one of the two is not told.
    #[serde(default)]
    pub rated_mega_transfers: Option<u16>,
    /// Width of its data, in bits; null if it is not told.
    pub width_bits: Option<u16>,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Disk {
    /// Its name: `nvme0n1`.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Whether it turns.
    pub rotational: Fact<bool>,
    /// Its model, if it tells one.
    pub model: Fact<String>,
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interface {
    /// Its name: `eth0`.
    pub name: String,
    /// Its speed, in Mbit/s.
    pub megabits: Fact<u64>,
    /// Its greatest packet, in bytes.
    pub mtu: Fact<u64>,
}

impl Devices {
    pub(super) fn collect(source: &Source) -> Self {
        let names = |folder| source.names(folder).into_known().unwrap_or_default();
        let is_disk = |name: &String| {
            !["loop", "ram", "zram", "dm-", "md", "sr", "fd"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
        };
        let disk = |name: String| {
            let path = format!("{BLOCK}/{name}");
            let sectors: u64 = source.value(&format!("{path}/size")).into_known()?;
            Some(Disk {
                // The kernel counts in sectors of 512 bytes whatever the disk's own are.
                bytes: sectors.checked_mul(512)?,
                rotational: source
                    .value::<u8>(&format!("{path}/queue/rotational"))
                    .map(|flag| flag != 0),
                model: source.words(&format!("{path}/device/model")),
                name,
            })
        };
        let interface = |name: String| Interface {
            // One that is down says -1, or an error.
            megabits: source.value(&format!("{NET}/{name}/speed")),
            mtu: source.value(&format!("{NET}/{name}/mtu")),
            name,
        };
        let disks = names(BLOCK).into_iter().filter(is_disk);
        let interfaces = names(NET).into_iter().filter(|name| name != "lo");
        Self {
            memory_modules: source.bytes(SMBIOS).map(|table| memory_modules(&table)),
            disks: disks.filter_map(disk).collect(),
            interfaces: interfaces.map(interface).collect(),
        }
    }
}

/// Finds the memory modules of an SMBIOS table (section 6.1: structures, each followed by texts
/// that end with two zeros).
fn memory_modules(table: &[u8]) -> Vec<MemoryModule> {
    let mut modules = Vec::new();
    let mut rest = table;
    while let [kind, length, ..] = *rest {
        let length = usize::from(length);
        let Some((structure, texts)) = rest.split_at_checked(length).filter(|_| length >= 4) else {
            break;
        };
        if kind == 17 {
            modules.extend(memory_module(structure));
        }
        let Some(end) = texts.windows(2).position(|two| two == [0, 0]) else {
            break;
        };
        rest = &texts[end + 2..];
    }
    modules
}

/// Reads a memory module; `None` of an empty slot, or one of unknown size.
fn memory_module(structure: &[u8]) -> Option<MemoryModule> {
    const UNKNOWN: u16 = 0xffff;
    const EXTENDED: u16 = 0x7fff;
    let word = |at: usize| {
        let bytes = structure.get(at..at + 2)?;
        Some(u16::from_le_bytes([bytes[0], bytes[1]]))
    };
    let bytes = match word(0x0c)? {
        0 | UNKNOWN => return None,
        EXTENDED => {
            let bytes = structure.get(0x1c..0x20)?;
            u64::from(u32::from_le_bytes(bytes.try_into().ok()?)) << 20
        }
        // The highest bit says that it is counted in KiB.
        size if size & 0x8000 != 0 => u64::from(size & 0x7fff) << 10,
        size => u64::from(size) << 20,
    };
    let kind = match structure.get(0x12)? {
        0x18 => "DDR3",
        0x1a => "DDR4",
        0x1b => "LPDDR",
        0x1d => "LPDDR3",
        0x1e => "LPDDR4",
        0x20 => "HBM",
        0x21 => "HBM2",
        0x22 => "DDR5",
        0x23 => "LPDDR5",
        _ => "",
    };
    let known = |value: &u16| !matches!(*value, 0 | UNKNOWN);
    let [configured, rated] = [0x20, 0x15].map(|at| word(at).filter(known));
    Some(MemoryModule {
        bytes,
        kind: kind.to_owned(),
        mega_transfers: configured.or(rated),
        rated_mega_transfers: configured.and(rated),
        width_bits: word(0x0a).filter(known),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structure(kind: u8, fields: &[(usize, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; 0x54];
        (bytes[0], bytes[1]) = (kind, 0x54);
        for (at, field) in fields {
            bytes[*at..at + field.len()].copy_from_slice(field);
        }
        bytes.extend(b"DIMM A\0\0");
        bytes
    }

    #[test]
    fn memory_modules_are_found_among_other_structures() {
        let mut table = structure(16, &[]);
        table.extend(structure(
            17,
            &[
                (0x0a, &64_u16.to_le_bytes()),
                (0x0c, &16_384_u16.to_le_bytes()),
                (0x12, &[0x1a]),
                (0x15, &3_200_u16.to_le_bytes()),
                (0x20, &2_933_u16.to_le_bytes()),
            ],
        ));
        // An empty slot.
        table.extend(structure(17, &[]));
        table.extend(structure(
            17,
            &[
                (0x0c, &0x7fff_u16.to_le_bytes()),
                (0x12, &[0x22]),
                (0x15, &4_800_u16.to_le_bytes()),
                (0x1c, &65_536_u32.to_le_bytes()),
            ],
        ));
        let modules = memory_modules(&table);
        assert_eq!(
            modules[0],
            MemoryModule {
                bytes: 16 << 30,
                kind: "DDR4".to_owned(),
                mega_transfers: Some(2_933),
                rated_mega_transfers: Some(3_200),
                width_bits: Some(64),
            }
        );
        assert_eq!(
            (modules[1].bytes, modules[1].mega_transfers),
            (64 << 30, Some(4_800))
        );
        assert_eq!(modules.len(), 2);
        for cut in 0..table.len() {
            let _ = memory_modules(&table[..cut]);
        }
    }
}
