//! Modules as the kernel takes them: decompressed here, since a small initramfs has nothing to do
//! it and not every kernel can.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use lzma_rust2::XzReader;

use super::bad;
use crate::error::KernelError;

/// How names of module files end.
pub(super) const SUFFIXES: [&str; 3] = [".ko", ".ko.xz", ".ko.zst"];

/// More than the largest module by far; a damaged file must not fill the memory.
const MAX_BYTES: u64 = 256 << 20;

/// Reads a module, decompressed.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, KernelError> {
    let bounded = |reader: &mut dyn Read| {
        let mut bytes = Vec::new();
        reader.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let unpacked = File::open(path).and_then(|mut file| {
        match path.extension().and_then(|extension| extension.to_str()) {
            // A module has one stream.
            Some("xz") => bounded(&mut XzReader::new(BufReader::new(file), false)),
            Some("zst") => bounded(&mut zstd::Decoder::new(file)?),
            _ => bounded(&mut file),
        }
    });
    let bytes = unpacked.map_err(|error| bad(path, error.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES {
        let why = format!("it is larger than {} MiB", MAX_BYTES >> 20);
        return Err(bad(path, why));
    }
    Ok(bytes)
}
