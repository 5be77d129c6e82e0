//! Linux kernels for guests, their modules, and what they boot into.
//!
//! What an operating system costs depends on its kernel more than on anything else, so a figure is
//! worth nothing without knowing exactly which one. Kernels come from the distribution, by its own
//! package tool, without root and without installing them; each is kept with its package, exact
//! version and SHA-256. Nothing is downloaded in the middle of a run: only a [`Fetcher`] downloads,
//! which `tare kernel fetch` uses; everything else works offline.
//!
//! * [`Store`]: the folder of kernels; finds a kernel by its name;
//! * [`Kernel`]: one kernel; tells its options and hands out modules in the order in which they
//!   load;
//! * [`name`]: the names of the distribution's kernels;
//! * [`Initramfs`]: the files that a guest finds when it starts;
//! * [`debian_root`]: a whole Debian on a disk, for what wants one;
//! * [`Fetcher`]: the distribution's tools; `bzimage`, `config`, `version`: formats.
#![forbid(unsafe_code)]

mod bzimage;
mod config;
pub mod debian_root;
mod error;
mod fetch;
mod files;
mod initramfs;
mod kernel;
mod modules;
pub mod name;
mod store;
mod version;

pub use config::ConfigOption;
pub use error::KernelError;
pub use fetch::{FetchPlan, FetchProgress, Fetcher};
pub use initramfs::Initramfs;
pub use kernel::{Kernel, Source};
pub use modules::Module;
pub use store::{Store, default_store_dir, file_sha256};
