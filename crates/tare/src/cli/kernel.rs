//! What can be typed after `tare kernel`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What to do with kernels.
#[derive(Debug, Subcommand)]
pub enum KernelCommand {
    /// List the kernels that are here, and what could be fetched
    List(super::ListArguments),
    /// Fetch kernels from the distribution, without root and without installing them
    ///
    /// NAME is debian, debian-cloud or debian-rt, alone (the series that is the distribution's
    /// default) or with a series: debian-6.1, debian-cloud-6.12. The newest version that apt's
    /// sources offer is taken. debian-root is a whole Debian on a disk, for targets with
    /// root=debian; it is made by debootstrap, as root, in some minutes.
    ///
    /// Says what it will download before it does. Nothing else in tare downloads anything.
    Fetch(FetchArguments),
    /// Put a kernel of your own into the store
    Add(AddArguments),
    /// Remove a kernel that was fetched or added
    Remove {
        /// Its name, as the list has it
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
    /// Leave out what is here already, even if there is a newer version
    #[arg(long)]
    pub if_missing: bool,
    /// Say what would be downloaded, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// The arguments of `tare kernel add`.
#[derive(Debug, Args)]
pub struct AddArguments {
    /// Name for it
    pub name: String,
    /// Its compressed image: a bzImage, as /boot/vmlinuz is
    pub vmlinuz: PathBuf,
    /// Folder of its modules: lib/modules/RELEASE, or one in which that is found [default: beside
    /// the kernel, else the host's]
    #[arg(long, value_name = "DIR")]
    pub modules: Option<PathBuf>,
}
