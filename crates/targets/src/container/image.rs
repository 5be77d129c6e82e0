//! The image that engines make containers from: the agent and nothing else.

use std::fmt::Display;
use std::fs;
use std::path::Path;

use tare_guard::{OWNER_LABEL, OwnerId};

use super::AGENT;
use crate::error::TargetError;
use crate::measured::MeasuredFile;

/// The size of a block of a tar archive, and of its headers.
const BLOCK: usize = 512;

/// Returns the root file system as a tar archive (POSIX.1-1988, "ustar").
pub(super) fn archive(agent: &MeasuredFile) -> Result<Vec<u8>, TargetError> {
    let program = agent.read()?;
    let mut archive = header(&AGENT[1..], program.len()).to_vec();
    archive.extend_from_slice(&program);
    // Two empty blocks end an archive.
    let whole = archive.len().next_multiple_of(BLOCK) + 2 * BLOCK;
    archive.resize(whole, 0);
    Ok(archive)
}

/// Reads somebody else's image.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, TargetError> {
    fs::read(path).map_err(|error| unreadable(path, &error))
}

/// Returns the SHA-256 of somebody else's image.
pub(super) fn sha256(path: &Path) -> Result<String, TargetError> {
    tare_kernels::file_sha256(path).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &dyn Display) -> TargetError {
    TargetError::Failed(format!(
        "the image {} can't be read: {error}",
        path.display()
    ))
}

/// Returns what the image is to know, in the words of a Dockerfile.
pub(super) fn changes(owner: &OwnerId) -> [String; 3] {
    [
        format!("ENTRYPOINT [\"{AGENT}\"]"),
        "LABEL tare=agent".to_owned(),
        format!("LABEL {OWNER_LABEL}={owner}"),
    ]
}

/// Returns the header of a program that root owns.
fn header(name: &str, length: usize) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, text: &str| {
        header[at..at + text.len()].copy_from_slice(text.as_bytes());
    };
    put(0, name);
    put(100, "0000755");
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{length:011o}"));
    put(136, "00000000000");
    // The checksum counts itself as spaces.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    header
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn tar_reads_the_archive() {
        let agent = MeasuredFile::agent();
        let Ok(path) = agent.path() else {
            return tare_testkit::skip("agent", "not built");
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("image.tar");
        fs::write(&file, archive(&agent).unwrap()).unwrap();
        let unpacked = Command::new("tar")
            .args(["-C", folder.path().to_str().unwrap(), "-xvf"])
            .arg(&file)
            .output()
            .unwrap();
        assert!(unpacked.status.success(), "{unpacked:?}");
        assert_eq!(String::from_utf8_lossy(&unpacked.stdout), "tare-agent\n");
        let copy = fs::read(folder.path().join("tare-agent")).unwrap();
        assert!(copy == fs::read(path).unwrap());
    }
}
