//! Boots an image by itself, for people who work on it: its console, and gdb if they want it.
//!
//! An image is written as the target `unikernel` is, with the image in the place of the target's
//! name: `hello`, `bench,irq=off`, `./my-image,machine=pc,mem=2M`. The project's images are given
//! by name, others by a path with a slash.

use std::path::Path;

use tare_guard::Guard;
use tare_results::target;

use super::settings::{NAME, Settings};
use super::{MEMORY, Reached, Unikernel};
use crate::error::TargetError;
use crate::instance::Instance;
use crate::measured::MeasuredFile;
use crate::memory;
use crate::options::Options;

/// An image that can be booted by itself.
#[derive(Debug)]
pub struct Image {
    machine: Unikernel,
}

impl Image {
    /// Reads an image with its options.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] for an option that the target `unikernel` would not take either.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let (name, options) = target::split(text);
        let image = if name.contains('/') {
            MeasuredFile::at(Path::new(&name))
        } else {
            MeasuredFile::image(&name)
        };
        let settings = Settings::read(&Options::read(NAME, super::OPTIONS, options)?)?;
        if settings.image.is_some() {
            let why = "the image is named in front";
            return Err(TargetError::contradiction(NAME, "image=", why));
        }
        Ok(Self {
            machine: Unikernel::of(settings, image),
        })
    }

    /// Returns the path of the image.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::Unusable`] if it is nowhere.
    pub fn path(&self) -> Result<&Path, TargetError> {
        self.machine.image.path()
    }

    /// Boots the image with these words after those of its settings, and with memory for buffers of
    /// this size, if it is known.
    ///
    /// With a port, QEMU listens there on 127.0.0.1 for gdb, and the image executes nothing before
    /// gdb says so.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if there is no image or no QEMU, or it can't be started: because the
    /// port is taken, for example.
    pub fn boot(
        &self,
        words: &str,
        buffer_bytes: Option<u64>,
        gdb_port: Option<u16>,
        guard: &Guard,
    ) -> Result<Instance, TargetError> {
        let line = format!("{} {words}", self.machine.settings.for_image(None));
        let memory = buffer_bytes.map_or(MEMORY, memory::needed);
        let line = line.trim_end();
        let reached = Reached {
            gdb_port,
            ..Reached::default()
        };
        let launch = self.machine.prepare(line, memory, &[], reached)?;
        Instance::start(launch, guard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_the_target() {
        assert!(Image::parse("hello,machine=pc,mem=2M,cpus=2,irq=off").is_ok());
        assert_eq!(
            Image::parse("hello,colour=red").unwrap_err().to_string(),
            "the target 'unikernel' has no option 'colour'; it takes: irq=on|off, \
             timer-hz=N, cpus=N, pages=4K|2M|1G, mem=SIZE, machine=microvm|q35|pc, accel=auto|kvm|tcg, \
             clock=host|instructions, image=FILE"
        );
        assert_eq!(
            Image::parse("hello,image=/x").unwrap_err().to_string(),
            "the target 'unikernel' can't have image=: the image is named in front"
        );
    }

    #[test]
    fn a_path_is_taken_as_it_is() {
        let error = Image::parse("./no/such").unwrap().path().unwrap_err();
        assert_eq!(
            error.to_string(),
            "the image is not found; looked for ./no/such"
        );
    }
}
