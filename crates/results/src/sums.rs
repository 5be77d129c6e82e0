//! Checksums of everything that must never change.
//!
//! A flipped bit in a column of numbers gives another number, which looks as good as the right
//! one: neither JSON nor Parquet as written here would notice. So each folder of raw files carries
//! a file `SHA256SUMS`, in the notation of `sha256sum`, which can check it too:
//! `sha256sum --check SHA256SUMS`.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// The name of the file.
pub(crate) const NAME: &str = "SHA256SUMS";

/// Holds the checksums of a folder's files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Pairs of name and checksum in lower-case hexadecimal.
    lines: Vec<(String, String)>,
}

impl Sums {
    /// Computes the checksums of files given as pairs of name and content.
    pub(crate) fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let sum = |(name, content): (&str, &[u8])| (name.to_owned(), sha256(content));
        Self {
            lines: files.into_iter().map(sum).collect(),
        }
    }

    /// Reads the file; says what is wrong with it.
    pub(crate) fn parse(content: &[u8]) -> Result<Self, String> {
        let text = str::from_utf8(content).map_err(|_| "is not a text".to_owned())?;
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            // The second space is an asterisk if the sums were made with `sha256sum --binary`.
            let parts = line
                .split_at_checked(64)
                .filter(|(sum, _)| sum.bytes().all(|byte| byte.is_ascii_hexdigit()))
                .and_then(|(sum, rest)| {
                    let name = rest.strip_prefix("  ").or(rest.strip_prefix(" *"))?;
                    Some((name.to_owned(), sum.to_ascii_lowercase()))
                });
            lines.push(parts.ok_or(format!("line {number} is not a checksum and a file name"))?);
        }
        Ok(Self { lines })
    }

    /// Checks a file's content; says what is wrong with it. A file that is being replaced has two
    /// checksums, of which one must hold.
    pub(crate) fn check(&self, name: &str, content: &[u8]) -> Result<(), String> {
        self.compare(name, &sha256(content))
    }

    /// Checks what is read, of which only a piece is in memory at a time; says what is wrong with
    /// it.
    pub(crate) fn check_read(
        &self,
        name: &str,
        mut content: impl Read,
    ) -> io::Result<Result<(), String>> {
        let mut hash = Sha256::new();
        let mut piece = vec![0; 1 << 16];
        loop {
            match content.read(&mut piece)? {
                0 => return Ok(self.compare(name, &in_hexadecimal(&hash.finalize()))),
                count => hash.update(&piece[..count]),
            }
        }
    }

    fn compare(&self, name: &str, found: &str) -> Result<(), String> {
        let listed = || self.lines.iter().filter(|(listed, _)| listed == name);
        if listed().any(|(_, sum)| *sum == found) {
            return Ok(());
        }
        Err(match listed().next() {
            Some(_) => format!(
                "its content has changed since it was written (SHA-256 differs from {NAME})"
            ),
            None => format!("has no checksum in {NAME}"),
        })
    }

    /// Returns whether it has a checksum of this file.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.lines.iter().any(|(listed, _)| listed == name)
    }

    /// Writes the file's content.
    pub(crate) fn text(&self) -> String {
        let lines = self.lines.iter();
        lines
            .map(|(name, sum)| format!("{sum}  {name}\n"))
            .collect()
    }
}

fn sha256(content: &[u8]) -> String {
    in_hexadecimal(&Sha256::digest(content))
}

fn in_hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notation_is_that_of_sha256sum() {
        // `printf abc | sha256sum`
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  abc\n";
        let sums = Sums::of([("abc", b"abc".as_slice())]);
        assert_eq!(sums.text(), text);
        assert_eq!(Sums::parse(text.as_bytes()).unwrap(), sums);
        let binary = text
            .replace("  ", " *")
            .to_uppercase()
            .replace("ABC\n", "abc\n");
        assert_eq!(Sums::parse(binary.as_bytes()).unwrap(), sums);
    }

    #[test]
    fn what_is_changed_or_not_listed_is_found() {
        let sums = Sums::of([("a", b"abc".as_slice())]);
        assert_eq!(sums.check("a", b"abc"), Ok(()));
        assert!(sums.check("a", b"abd").unwrap_err().contains("changed"));
        assert!(sums.check("b", b"abc").unwrap_err().contains("no checksum"));
    }

    #[test]
    fn garbage_is_refused() {
        for garbage in [
            "\n",
            "abc  x",
            &"g".repeat(70),
            &"é".repeat(40),
            &"0".repeat(64),
        ] {
            assert!(Sums::parse(garbage.as_bytes()).is_err(), "{garbage}");
        }
        assert!(Sums::parse(&[0xff; 80]).is_err());
    }
}
