//! The generated tree of files.
//!
//! The study packed a kernel's source tree and walked a full root. Neither is reliable: a guest has
//! none, and hosts differ. This tree is identical everywhere: sizes and contents follow from a
//! seed. Its files are as large as those of a kernel's source (log-uniform from 0.5 to 64 KiB:
//! median 6 KB, mean 13 KB), and their text compresses about as well. Only the number is smaller:
//! about 4,000 files where a kernel has 60,000 and more, so that it fits on a small scratch disk,
//! and into the page cache.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The seed of the tree that loads use.
pub const SEED: u64 = 2018;

/// The number of files.
const FILES: u64 = 4_096;
/// The number of folders below the root of the tree.
const FOLDERS: u64 = 256;
/// The number of folders in a folder: 256 folders are up to three deep, four with the root.
const BRANCHES: u64 = 6;
/// The length of the shortest file.
const SHORTEST: f64 = 512.0;
/// The number of times that a length doubles up to the longest file.
const DOUBLINGS: f64 = 7.0;
/// The minimum disk usage of a file or folder.
const BLOCK: u64 = 4_096;

/// The size of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Number of files.
    pub files: u64,
    /// Number of folders, including the root.
    pub folders: u64,
    /// Number of bytes in the files.
    pub bytes: u64,
}

impl Size {
    /// Returns the approximate disk usage of the tree, in bytes: whole blocks.
    pub fn disk_bytes(&self) -> u64 {
        self.bytes + (self.files + self.folders) * BLOCK
    }
}

/// Returns the size of the tree of a seed, without creating it.
pub fn size(seed: u64) -> Size {
    Size {
        files: FILES,
        folders: FOLDERS + 1,
        bytes: (0..FILES).map(|number| length(seed, number)).sum(),
    }
}

/// Creates the tree in a folder, which must exist and should be empty.
///
/// # Errors
///
/// Returns the first error of the file system.
pub fn make(dir: &Path, seed: u64) -> io::Result<Size> {
    let folders: Vec<PathBuf> = (0..FOLDERS)
        .map(|number| dir.join(folder(number)))
        .collect();
    for folder in &folders {
        fs::create_dir(folder)?;
    }
    let vocabulary = vocabulary(seed);
    let mut text = Vec::new();
    for number in 0..FILES {
        let folder = &folders[(number % FOLDERS) as usize];
        let mut file = File::create(folder.join(format!("file-{number:04}.c")))?;
        fill(&mut text, length(seed, number), &vocabulary, seed ^ !number);
        file.write_all(&text)?;
    }
    Ok(size(seed))
}

/// Counts the content of a folder, without leaving its file system or following links.
///
/// # Errors
///
/// Returns the error of a folder that can't be read.
pub fn count(dir: &Path) -> io::Result<Size> {
    let mut size = Size::default();
    let mut open = vec![dir.to_owned()];
    while let Some(folder) = open.pop() {
        size.folders += 1;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let data = entry.metadata()?;
            if data.is_dir() {
                open.push(entry.path());
            } else {
                size.files += 1;
                size.bytes += data.len();
            }
        }
    }
    Ok(size)
}

/// Returns the path of a folder below the root: folder n is in folder n / 6 − 1.
fn folder(number: u64) -> PathBuf {
    let name = format!("folder-{number:03}");
    match (number / BRANCHES).checked_sub(1) {
        Some(parent) => folder(parent).join(name),
        None => PathBuf::from(name),
    }
}

/// Returns the length of a file.
fn length(seed: u64, number: u64) -> u64 {
    let unit = Random(seed.wrapping_add(number << 20)).unit();
    (SHORTEST * (unit * DOUBLINGS).exp2()) as u64
}

/// Generates words of 2 to 11 letters.
fn vocabulary(seed: u64) -> Vec<Vec<u8>> {
    let mut random = Random(seed);
    let word = |random: &mut Random| {
        let letters = 2 + random.below(10);
        let mut word: Vec<u8> = (0..letters)
            .map(|_| b'a' + random.below(26) as u8)
            .collect();
        word.push(if random.below(9) == 0 { b'\n' } else { b' ' });
        word
    };
    (0..1_024).map(|_| word(&mut random)).collect()
}

/// Fills a file's text with words; short ones are more frequent, as in any text.
fn fill(text: &mut Vec<u8>, length: u64, vocabulary: &[Vec<u8>], seed: u64) {
    text.clear();
    let mut random = Random(seed);
    while (text.len() as u64) < length {
        let most = random.below(vocabulary.len() as u64) + 1;
        text.extend(&vocabulary[random.below(most) as usize]);
    }
    text.truncate(length as usize);
}

/// The generator SplitMix64 (Steele, Lea and Flood, 2014): its whole state is one number, so that
/// each file has its own stream.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 (inclusive) to 1 (exclusive).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_what_it_says_and_the_same_every_time() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let made = make(one.path(), SEED).unwrap();
        assert_eq!(made, size(SEED));
        assert_eq!(count(one.path()).unwrap(), made);
        assert_eq!((made.files, made.folders), (4_096, 257));
        assert!((30_000_000..70_000_000).contains(&made.bytes), "{made:?}");
        make(two.path(), SEED).unwrap();
        let file = folder(255).join("file-4095.c");
        let read = |dir: &Path| fs::read(dir.join(&file)).unwrap();
        assert_eq!(read(one.path()), read(two.path()));
        assert!(
            read(one.path())
                .iter()
                .all(|byte| byte.is_ascii_lowercase() || b" \n".contains(byte))
        );
        assert_ne!(size(SEED), size(SEED + 1));
    }

    #[test]
    fn folders_lie_in_folders() {
        let depth = |number| folder(number).components().count();
        assert_eq!((depth(0), depth(5), depth(6), depth(255)), (1, 1, 2, 3));
        assert_eq!(folder(6), Path::new("folder-000/folder-006"));
    }
}
