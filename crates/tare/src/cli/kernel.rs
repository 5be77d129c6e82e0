//! What can be typed after `tare kernel`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What to do with kernels.
#[derive(Debug, Subcommand)]
pub enum KernelCommand {
    /// List the kernels that are here, and the commands that fetch the others
    List(super::ListArguments),
    /// Fetch kernels from the distribution, without root and without installing them
    ///
    /// NAME is debian, debian-cloud or debian-rt, alone (the distribution's default series) or with
    /// a series: debian-6.1, debian-cloud-6.12. It fetches the newest version in apt's sources.
    /// debian-root is a whole Debian on a disk, for targets with root=debian; debootstrap makes it,
    /// as root, in a few minutes.
    ///
    /// Prints what it will download first. Nothing else in tare downloads anything.
    Fetch(FetchArguments),
    /// Add your own kernel to the store
    Add(AddArguments),
    /// Remove a kernel that was fetched or added, or debian-root
    Remove {
        /// Name, as `tare kernel list` shows it
        name: String,
    },
}

/// The arguments of `tare kernel fetch`.
#[derive(Debug, Args)]
pub struct FetchArguments {
    /// What to fetch
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Fetch all three flavours of series 6.1 and 6.12
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// Skip what is already here, even if there is a newer version
    #[arg(long)]
    pub if_missing: bool,
    /// Print what apt would download, and fetch no kernel
    #[arg(long)]
    pub dry_run: bool,
}

/// The arguments of `tare kernel add`.
#[derive(Debug, Args)]
pub struct AddArguments {
    /// Name for the kernel
    pub name: String,
    /// Compressed image of the kernel: a bzImage, such as /boot/vmlinuz
    pub vmlinuz: PathBuf,
    /// Folder of the modules: lib/modules/RELEASE, or one that contains it [default: next to the
    /// image, else the host's]
    #[arg(long, value_name = "DIR")]
    pub modules: Option<PathBuf>,
}
