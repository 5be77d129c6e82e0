//! Modules as the kernel takes them: decompressed here, since a small initramfs has nothing to do it
//! and not every kernel can.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use lzma_rust2::XzReader;

use crate::error::KernelError;

/// How names of module files end.
pub(super) const SUFFIXES: [&str; 3] = [".ko", ".ko.xz", ".ko.zst"];

/// More than the largest module by far; a damaged file must not fill the memory.
const MAX_BYTES: u64 = 256 << 20;

/// Reads a module, decompressed.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, KernelError> {
    let bad = |error: std::io::Error| KernelError::BadModule {
        path: path.to_owned(),
        why: error.to_string(),
    };
    let bytes = match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => {
            let file = File::open(path).map_err(bad)?;
            // A module has one stream.
            bounded(XzReader::new(std::io::BufReader::new(file), false)).map_err(bad)?
        }
        Some("zst") => {
            let file = File::open(path).map_err(bad)?;
            let reader = zstd::Decoder::new(file).map_err(bad)?;
            bounded(reader).map_err(bad)?
        }
        _ => fs::read(path).map_err(bad)?,
    };
    if bytes.len() as u64 > MAX_BYTES {
        let why = format!("it is larger than {} MiB", MAX_BYTES >> 20);
        let path = path.to_owned();
        return Err(KernelError::BadModule { path, why });
    }
    Ok(bytes)
}

fn bounded(reader: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
