//! Where the agent's program is found.
//!
//! The agent is a file of its own, not part of `tare`: it is built with other flags, copied into
//! containers and guests, and its hash belongs to every result. It is looked for in this order:
//!
//! 1. the path in the environment variable `TARE_AGENT`;
//! 2. `tare-agent` beside the program `tare`;
//! 3. `../lib/tare/tare-agent` from there: an installed package;
//! 4. `measured/target/x86_64-unknown-linux-gnu/release/tare-agent` in the source tree in whose
//!    `target` folder `tare` lies.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::TargetError;

const NAME: &str = "tare-agent";
const BUILT: &str = "measured/target/x86_64-unknown-linux-gnu/release/tare-agent";

/// Is the agent's program, or the places where it was looked for in vain.
#[derive(Clone, Debug)]
pub struct Agent {
    found: Result<PathBuf, Vec<PathBuf>>,
}

impl Agent {
    /// Looks for the agent's program.
    #[must_use]
    pub fn find() -> Self {
        let places = match env::var_os("TARE_AGENT") {
            Some(path) => vec![PathBuf::from(path)],
            None => env::current_exe()
                .map(|exe| places(&exe))
                .unwrap_or_default(),
        };
        let found = places.iter().find(|path| path.is_file()).cloned();
        Self {
            found: found.ok_or(places),
        }
    }

    /// Returns the path of the program.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::NoAgent`] with the places where it was looked for.
    pub fn path(&self) -> Result<&Path, TargetError> {
        self.found.as_deref().map_err(|places| {
            let places: Vec<String> = places.iter().map(|p| p.display().to_string()).collect();
            TargetError::NoAgent {
                looked: places.join(", "),
            }
        })
    }

    /// Returns the SHA-256 of the program, in hexadecimal.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if the program is not found or can't be read.
    pub fn sha256(&self) -> Result<String, TargetError> {
        let path = self.path()?;
        let bytes = fs::read(path).map_err(|source| TargetError::UnreadableAgent {
            path: path.to_owned(),
            source,
        })?;
        let mut text = String::new();
        for byte in Sha256::digest(&bytes) {
            write!(text, "{byte:02x}").expect("a String takes everything");
        }
        Ok(text)
    }
}

fn places(exe: &Path) -> Vec<PathBuf> {
    let Some(folder) = exe.parent() else {
        return Vec::new();
    };
    let mut places = vec![folder.join(NAME)];
    if let Some(prefix) = folder.parent() {
        places.push(prefix.join("lib/tare").join(NAME));
    }
    // In a source tree: tree/target/debug/tare, tree/target/debug/deps/test.
    let trees = folder
        .ancestors()
        .filter(|f| f.file_name().is_some_and(|name| name == "target"));
    places.extend(trees.filter_map(Path::parent).map(|tree| tree.join(BUILT)));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_then_installed_then_in_the_source_tree() {
        let seen: Vec<String> = places(Path::new("/src/tare/target/release/tare"))
            .iter()
            .map(|p| p.display().to_string())
            .collect();
        assert_eq!(
            seen,
            [
                "/src/tare/target/release/tare-agent",
                "/src/tare/target/lib/tare/tare-agent",
                "/src/tare/measured/target/x86_64-unknown-linux-gnu/release/tare-agent",
            ]
        );
        let installed = places(Path::new("/usr/bin/tare"));
        assert_eq!(installed[1], Path::new("/usr/lib/tare/tare-agent"));
    }

    #[test]
    fn an_agent_that_is_nowhere_is_told_with_the_remedy() {
        let agent = Agent {
            found: Err(vec!["/a/tare-agent".into(), "/b/tare-agent".into()]),
        };
        assert_eq!(
            agent.sha256().unwrap_err().to_string(),
            "the agent is not found; looked for /a/tare-agent, /b/tare-agent. Build it with \
             `make build`, or name it in TARE_AGENT"
        );
    }
}
