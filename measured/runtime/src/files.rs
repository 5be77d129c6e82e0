//! The files of an image: those of an archive (tar, QEMU's `-initrd`), and those of a FAT disk.
//!
//! All are read before a service starts, so that a service never waits for a disk, and the memory
//! that they take is known. QEMU makes such a disk from a folder:
//! `-drive if=none,id=disk,format=raw,read-only=on,file=fat:FOLDER`.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};
use core::fmt;
use core::ops::ControlFlow;

use embedded_sdmmc::{
    Block, BlockCount, BlockDevice, BlockIdx, Directory, LfnBuffer, Mode, TimeSource, Timestamp,
    VolumeIdx, VolumeManager,
};
use tar_no_std::{CorruptDataError, TarArchiveRef};
use tare_unikernel::boot;
use tare_virtio::block::{Disk, ReadError};
use tare_virtio::device::{self, DeviceError, Kind};

/// Maximum depth of folders.
const DEPTH: usize = 8;
/// Maximum length of a FAT name: 255 units of UTF-16, each at most 3 bytes of UTF-8.
const LONGEST_NAME: usize = 765;

type FatError = embedded_sdmmc::Error<ReadError>;
type Volumes = VolumeManager<Sectors, NoTime, DEPTH, 1, 1>;
type Folder<'a> = Directory<'a, Sectors, NoTime, DEPTH, 1, 1>;

/// The reason why files can't be read.
#[derive(Clone, Debug)]
pub enum FilesError {
    /// The archive is malformed.
    Archive(CorruptDataError),
    /// A name in the archive is not UTF-8.
    Name,
    /// The disk can't be used.
    Disk(DeviceError),
    /// The file system can't be read.
    Fat(FatError),
}

impl fmt::Display for FilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Archive(error) => write!(f, "the initrd is not a tar archive: {error}"),
            Self::Name => f.write_str("a name in the initrd is not UTF-8"),
            Self::Disk(error) => write!(f, "the disk can't be used: {error}"),
            Self::Fat(error) => write!(
                f,
                "the disk has no FAT file system in its first partition (MBR), or not all of it can be read: {error:?}"
            ),
        }
    }
}

impl core::error::Error for FilesError {}

/// The files, by their names below the top folder, such as `a/b.html`.
#[derive(Debug, Default)]
pub struct Files(Vec<(String, &'static [u8])>);

impl Files {
    /// Reads all files of the archive and of the first disk, if any. The archive wins where both
    /// have a file of one name.
    ///
    /// # Errors
    ///
    /// Returns [`FilesError`] if one of them can't be read completely.
    pub fn read(command_line: &str) -> Result<Self, FilesError> {
        let mut files = Self::default();
        let archive = boot::archive();
        if !archive.is_empty() {
            files.read_archive(archive)?;
        }
        if let Some(device) = device::find(Kind::Block, command_line) {
            let disk = Disk::new(device).map_err(FilesError::Disk)?;
            files.read_disk(disk).map_err(FilesError::Fat)?;
        }
        // Stable: those of the archive come first.
        files.0.sort_by(|(one, _), (other, _)| one.cmp(other));
        files.0.dedup_by(|(second, _), (first, _)| first == second);
        Ok(files)
    }

    /// Returns the content of a file.
    pub fn get(&self, name: &str) -> Option<&'static [u8]> {
        let found = self
            .0
            .binary_search_by(|(other, _)| other.as_str().cmp(name));
        found.ok().map(|place| self.0[place].1)
    }

    /// Returns whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn read_archive(&mut self, archive: &'static [u8]) -> Result<(), FilesError> {
        let archive = TarArchiveRef::new(archive).map_err(FilesError::Archive)?;
        for entry in archive.entries() {
            let name = entry.filename();
            let name = name.as_str().map_err(|_| FilesError::Name)?;
            let name = name.trim_start_matches("./").to_owned();
            self.0.push((name, entry.data()));
        }
        Ok(())
    }

    fn read_disk(&mut self, disk: Disk) -> Result<(), FatError> {
        let volumes: Volumes = VolumeManager::new_with_limits(Sectors(disk), NoTime, 0);
        let volume = volumes.open_volume(VolumeIdx(0))?;
        self.read_folder(&volume.open_root_dir()?, "")
    }

    fn read_folder(&mut self, folder: &Folder<'_>, before: &str) -> Result<(), FatError> {
        let mut entries = Vec::new();
        let mut room = [0; LONGEST_NAME];
        folder.iterate_dir_lfn(&mut LfnBuffer::new(&mut room), |entry, long| {
            let is_link = [&b"."[..], b".."].contains(&entry.name.base_name());
            if !is_link && !entry.attributes.is_volume() {
                // A short name is stored in capitals.
                let name =
                    long.map_or_else(|| entry.name.to_string().to_lowercase(), str::to_owned);
                entries.push((entry.name, format!("{before}{name}"), entry.attributes));
            }
            ControlFlow::Continue(())
        })?;
        for (short, name, attributes) in entries {
            if attributes.is_directory() {
                let inner = folder.open_dir(short)?;
                self.read_folder(&inner, &format!("{name}/"))?;
            } else {
                let file = folder.open_file_in_dir(short, Mode::ReadOnly)?;
                let mut bytes = vec![0; file.length() as usize].into_boxed_slice();
                let mut read = 0;
                while read < bytes.len() {
                    read += file.read(&mut bytes[read..])?;
                }
                self.0.push((name, Box::leak(bytes)));
            }
        }
        Ok(())
    }
}

/// The sectors of a disk.
#[derive(Debug)]
struct Sectors(Disk);

impl BlockDevice for Sectors {
    type Error = ReadError;

    fn read(&self, blocks: &mut [Block], first: BlockIdx) -> Result<(), ReadError> {
        for (sector, block) in (u64::from(first.0)..).zip(blocks) {
            self.0.read(sector, &mut block.contents)?;
        }
        Ok(())
    }

    fn write(&self, _: &[Block], first: BlockIdx) -> Result<(), ReadError> {
        // No file is opened for writing.
        let sector = first.0.into();
        Err(ReadError { sector })
    }

    fn num_blocks(&self) -> Result<BlockCount, ReadError> {
        Ok(BlockCount(
            u32::try_from(self.0.sectors()).unwrap_or(u32::MAX),
        ))
    }
}

/// The clock for changes, which do not occur.
#[derive(Debug)]
struct NoTime;

impl TimeSource for NoTime {
    fn get_timestamp(&self) -> Timestamp {
        Timestamp::from_fat(0, 0)
    }
}
