//! Where the programs and images of the measured code are found.
//!
//! They are separate files, not part of `tare`: they are built with other flags, copied into
//! containers and guests, and their hashes belong to every result. One is looked for in this order:
//!
//! 1. where an environment variable says: `TARE_AGENT` is the path of the agent, `TARE_SERVICE` that
//!    of the network services, `TARE_IMAGES` the folder of the images;
//! 2. next to the program `tare`: `tare-agent`, `images/bench`;
//! 3. in `../lib/tare` from there: an installed package;
//! 4. in `measured/target/x86_64-unknown-linux-gnu/release` of the source tree in whose `target`
//!    folder `tare` lies; services in `service` next to that.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use tare_host::read_ordinary;

use crate::error::TargetError;

const BUILT: &str = "measured/target/x86_64-unknown-linux-gnu/release";
/// Where services are built, from there: in the profile in which their images are small.
const SERVICES: &str = "../service";

/// A program or image, or the places where it was looked for in vain.
#[derive(Clone, Debug)]
pub struct MeasuredFile {
    what: String,
    /// The environment variable that names it, if it is one that is looked for.
    variable: Option<&'static str>,
    found: Result<PathBuf, Vec<PathBuf>>,
}

impl MeasuredFile {
    /// Looks for the agent.
    pub fn agent() -> Self {
        const VARIABLE: &str = "TARE_AGENT";
        let given = env::var_os(VARIABLE).map(PathBuf::from);
        Self::look(
            "the agent".to_owned(),
            VARIABLE,
            given,
            "tare-agent",
            "tare-agent",
        )
    }

    /// Looks for an image by its name: `bench`, `hello`.
    pub fn image(name: &str) -> Self {
        Self::image_in(name, name)
    }

    fn image_in(name: &str, built: &str) -> Self {
        const VARIABLE: &str = "TARE_IMAGES";
        let join = |folder: OsString| Path::new(&folder).join(name);
        let given = env::var_os(VARIABLE).map(join);
        let what = format!("the image '{name}'");
        Self::look(what, VARIABLE, given, &format!("images/{name}"), built)
    }

    /// Looks for the program of the network services.
    pub fn services() -> Self {
        const VARIABLE: &str = "TARE_SERVICE";
        let given = env::var_os(VARIABLE).map(PathBuf::from);
        let (what, name) = (
            "the program of the network services".to_owned(),
            "tare-service",
        );
        Self::look(what, VARIABLE, given, name, &format!("{SERVICES}/{name}"))
    }

    /// Looks for the image of a network service by its name: `dns`.
    pub fn service(name: &str) -> Self {
        Self::image_in(name, &format!("{SERVICES}/{name}"))
    }

    /// Takes the file at a path.
    pub fn at(path: &Path) -> Self {
        Self::first("the image".to_owned(), None, vec![path.to_owned()])
    }

    /// Takes a file for the agent, whatever it is.
    #[cfg(test)]
    pub(crate) fn agent_at(path: &Path) -> Self {
        let agent = "the agent".to_owned();
        Self::first(agent, Some("TARE_AGENT"), vec![path.to_owned()])
    }

    fn look(
        what: String,
        variable: &'static str,
        given: Option<PathBuf>,
        installed: &str,
        built: &str,
    ) -> Self {
        let places = match (given, env::current_exe()) {
            (Some(path), _) => vec![path],
            (None, Ok(exe)) => places(&exe, installed, built),
            (None, Err(_)) => Vec::new(),
        };
        Self::first(what, Some(variable), places)
    }

    fn first(what: String, variable: Option<&'static str>, places: Vec<PathBuf>) -> Self {
        let found = places.iter().find(|path| path.is_file()).cloned();
        Self {
            what,
            variable,
            found: found.ok_or(places),
        }
    }

    /// Returns the path of the file.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::Unusable`] with the places where it was looked for.
    pub fn path(&self) -> Result<&Path, TargetError> {
        self.found.as_deref().map_err(|places| {
            let places: Vec<String> = places.iter().map(|p| p.display().to_string()).collect();
            let why = format!(
                "{} is not found; looked for {}",
                self.what,
                places.join(", ")
            );
            let build = self.variable.map(|variable| {
                format!(". Build it with `make build`, or say where it is in {variable}")
            });
            let remedy = match self.variable {
                Some(_) => "make build",
                None => "name an image that is there",
            };
            TargetError::unusable(why + &build.unwrap_or_default(), remedy)
        })
    }

    /// Reads the file.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::Unusable`] if it is not found or can't be read.
    pub fn read(&self) -> Result<Vec<u8>, TargetError> {
        /// More than any agent and any image of the unikernel has, in bytes.
        const LONGEST: u64 = 64 << 20;
        read_ordinary(self.path()?, LONGEST).map_err(|error| self.unreadable(&error))
    }

    /// Returns the SHA-256 of the file, in hexadecimal.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn sha256(&self) -> Result<String, TargetError> {
        tare_kernels::file_sha256(self.path()?).map_err(|error| self.unreadable(&error))
    }

    /// Makes the error of a file that is there and can't be read.
    pub(crate) fn unreadable(&self, error: &io::Error) -> TargetError {
        let path = self.found.as_deref().unwrap_or(Path::new("")).display();
        let what = &self.what;
        let why = format!("{what} {path} can't be read: {error}; build it anew with `make build`");
        TargetError::unusable(why, "make build")
    }
}

fn places(exe: &Path, installed: &str, built: &str) -> Vec<PathBuf> {
    let Some(folder) = exe.parent() else {
        return Vec::new();
    };
    let mut places = vec![folder.join(installed)];
    if let Some(prefix) = folder.parent() {
        places.push(prefix.join("lib/tare").join(installed));
    }
    // In a source tree: tree/target/debug/tare, tree/target/debug/deps/test.
    let trees = folder
        .ancestors()
        .filter(|f| f.file_name().is_some_and(|name| name == "target"));
    places.extend(
        trees
            .filter_map(Path::parent)
            .map(|tree| tree.join(BUILT).join(built)),
    );
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_then_installed_then_in_the_source_tree() {
        let seen = |installed, built| -> Vec<String> {
            places(Path::new("/src/tare/target/release/tare"), installed, built)
                .iter()
                .map(|p| p.display().to_string())
                .collect()
        };
        assert_eq!(
            seen("tare-agent", "tare-agent"),
            [
                "/src/tare/target/release/tare-agent",
                "/src/tare/target/lib/tare/tare-agent",
                "/src/tare/measured/target/x86_64-unknown-linux-gnu/release/tare-agent",
            ]
        );
        assert_eq!(
            seen("images/bench", "bench"),
            [
                "/src/tare/target/release/images/bench",
                "/src/tare/target/lib/tare/images/bench",
                "/src/tare/measured/target/x86_64-unknown-linux-gnu/release/bench",
            ]
        );
        let installed = places(Path::new("/usr/bin/tare"), "images/bench", "bench");
        assert_eq!(installed[1], Path::new("/usr/lib/tare/images/bench"));
    }

    #[test]
    fn what_is_nowhere_is_told_with_the_remedy() {
        let image = MeasuredFile {
            what: "the image 'bench'".to_owned(),
            variable: Some("TARE_IMAGES"),
            found: Err(vec!["/a/bench".into(), "/b/bench".into()]),
        };
        assert_eq!(
            image.sha256().unwrap_err().to_string(),
            "the image 'bench' is not found; looked for /a/bench, /b/bench. Build it with \
             `make build`, or say where it is in TARE_IMAGES"
        );
    }
}
