//! What a vmlinuz says of itself.
//!
//! A compressed x86 kernel (bzImage) begins with a header for boot loaders, at offsets that the
//! kernel's documentation fixes (`Documentation/arch/x86/boot.rst`). It tells the release, so that
//! a kernel file without a package is known by what it is, not by its name; and it tells a kernel
//! from a truncated download before QEMU says nothing for a minute.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{Doing, KernelError};
use crate::files::is_plain;

/// Offset of `setup_sects`: how many sectors the real-mode part has after the first.
const SETUP_SECTS: usize = 0x1f1;
/// Offset of `syssize`: the protected-mode part in units of 16 bytes.
const SYSSIZE: usize = 0x1f4;
/// Offset of the boot sector's signature.
const BOOT_FLAG: usize = 0x1fe;
/// Offset of the header's magic word.
const HEADER: usize = 0x202;
/// Offset of the boot protocol's version.
const PROTOCOL: usize = 0x206;
/// Offset of a pointer to the version's text, less 0x200.
const KERNEL_VERSION: usize = 0x20e;
/// Offset of the loader's flags.
const LOADFLAGS: usize = 0x211;
/// Offset of `xloadflags`, since protocol 2.12.
const XLOADFLAGS: usize = 0x236;
/// The header ends before this in every version of the protocol.
const HEADER_END: usize = 0x280;

const SECTOR: usize = 512;
/// The real-mode part can't be larger: `setup_sects` is a byte.
const SETUP_MAX: usize = 256 * SECTOR;

/// Reads the release (what `uname -r` will say) from a bzImage.
///
/// # Errors
///
/// [`KernelError::Failed`] if the file is something else or is cut off, [`KernelError::Io`] if
/// it can't be read.
pub(crate) fn release(path: &Path) -> Result<String, KernelError> {
    let not = |why: String| {
        KernelError::Failed(format!(
            "{} is not a Linux kernel for x86-64: {why}; want a bzImage, as /boot/vmlinuz is",
            path.display()
        ))
    };
    // Read before the file is opened: opening a pipe would wait for its writer.
    let status = std::fs::metadata(path).doing("read", path)?;
    if status.is_dir() {
        return Err(not("it is a folder".to_owned()));
    }
    if !status.is_file() {
        return Err(not("it is not a regular file".to_owned()));
    }
    let mut setup = Vec::new();
    let mut file = File::open(path).doing("read", path)?.take(SETUP_MAX as u64);
    file.read_to_end(&mut setup).doing("read", path)?;
    parse(&setup, status.len()).map_err(not)
}

/// Reads the release from the beginning of a bzImage of `length` bytes, or says why it is none.
fn parse(setup: &[u8], length: u64) -> Result<String, String> {
    if setup.is_empty() {
        return Err("it is empty".to_owned());
    }
    if setup.starts_with(b"\x7fELF") {
        return Err(
            "it is an ELF file; what boots is the compressed image, arch/x86/boot/bzImage of a \
             kernel's build folder"
                .to_owned(),
        );
    }
    if setup.len() < HEADER_END {
        return Err(format!("it has only {length} bytes"));
    }
    if setup[BOOT_FLAG..BOOT_FLAG + 2] != [0x55, 0xaa] || &setup[HEADER..HEADER + 4] != b"HdrS" {
        return Err("it has no x86 boot header".to_owned());
    }
    let protocol = half(setup, PROTOCOL);
    if protocol < 0x20c || setup[LOADFLAGS] & 1 == 0 {
        return Err(format!(
            "its boot protocol {}.{:02} is older than 2.12, of Linux 3.8",
            protocol >> 8,
            protocol & 0xff
        ));
    }
    if setup[XLOADFLAGS] & 1 == 0 {
        return Err("it is a kernel for 32 bits".to_owned());
    }
    // 0 means 4, says the protocol.
    let sectors = match setup[SETUP_SECTS] {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let real_mode = (sectors + 1) * SECTOR;
    let protected = u64::from(half(setup, SYSSIZE)) + (u64::from(half(setup, SYSSIZE + 2)) << 16);
    let whole = real_mode as u64 + protected * 16;
    // The last unit may be counted whole without being there.
    if length + 15 < whole {
        return Err(format!(
            "it is cut off: {length} of {whole} bytes are there"
        ));
    }
    let at = usize::from(half(setup, KERNEL_VERSION)) + 0x200;
    let text = setup
        .get(at..real_mode)
        .and_then(|rest| rest.split(|byte| *byte == 0).next())
        .and_then(|text| std::str::from_utf8(text).ok())
        .and_then(|text| text.split_whitespace().next())
        .filter(|text| is_release(text));
    text.map(str::to_owned)
        .ok_or_else(|| "its header does not tell the kernel's version".to_owned())
}

/// Returns whether a text can be a release: it becomes part of paths.
pub(crate) fn is_release(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit()) && is_plain(text, 64)
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes the least that passes as a bzImage.
    fn image() -> Vec<u8> {
        let mut image = vec![0; 5 * SECTOR + 160];
        image[SETUP_SECTS] = 4;
        image[SYSSIZE] = 10;
        image[BOOT_FLAG..BOOT_FLAG + 2].copy_from_slice(&[0x55, 0xaa]);
        image[HEADER..HEADER + 4].copy_from_slice(b"HdrS");
        image[PROTOCOL..PROTOCOL + 2].copy_from_slice(&0x20f_u16.to_le_bytes());
        image[KERNEL_VERSION..KERNEL_VERSION + 2].copy_from_slice(&0x400_u16.to_le_bytes());
        image[LOADFLAGS] = 1;
        image[XLOADFLAGS] = 1;
        let version = b"6.1.0-56-amd64 (builder@host) #1 SMP\0";
        image[0x600..0x600 + version.len()].copy_from_slice(version);
        image
    }

    fn said(change: impl FnOnce(&mut Vec<u8>)) -> Result<String, String> {
        let mut image = image();
        change(&mut image);
        let length = image.len() as u64;
        parse(&image[..image.len().min(SETUP_MAX)], length)
    }

    #[test]
    fn the_release_is_the_first_word_of_the_version() {
        assert_eq!(said(|_| {}).as_deref(), Ok("6.1.0-56-amd64"));
    }

    #[test]
    fn what_is_no_kernel_is_refused_with_its_reason() {
        let why = |change: fn(&mut Vec<u8>)| said(change).unwrap_err();
        assert!(why(Vec::clear).contains("empty"));
        assert!(why(|image| image.truncate(100)).contains("only 100 bytes"));
        assert!(why(|image| image.truncate(2_600)).contains("cut off"));
        assert!(why(|image| image[..4].copy_from_slice(b"\x7fELF")).contains("bzImage"));
        assert!(why(|image| image[HEADER] = 0).contains("no x86 boot header"));
        assert!(why(|image| image[PROTOCOL] = 0).contains("2.12"));
        assert!(why(|image| image[XLOADFLAGS] = 0).contains("32 bits"));
        assert!(why(|image| image[KERNEL_VERSION + 1] = 0xff).contains("version"));
        assert!(why(|image| image[0x600] = b'/').contains("version"));
    }

    proptest::proptest! {
        #[test]
        fn garbage_is_refused_without_a_panic(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..1_200),
            length in 0_u64..100_000,
        ) {
            let _ = parse(&bytes, length);
            let mut image = image();
            let end = bytes.len().min(image.len());
            for (at, byte) in bytes[..end].iter().enumerate() {
                image[(at * 7) % end] ^= byte;
            }
            let _ = parse(&image, length);
        }
    }
}
