//! What can go wrong with a target, and what to do about it.

use std::io;
use std::path::PathBuf;

use tare_docker::DockerError;
use tare_guard::GuardError;
use tare_kernels::KernelError;
use thiserror::Error;

/// Says what went wrong with a target.
#[derive(Debug, Error)]
pub enum TargetError {
    /// No target has this name.
    #[error("there is no target '{name}'; known: {known}. `tare targets` tells which are usable")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The target has no such option.
    #[error("the target '{target}' has no option '{option}'; it takes: {known}")]
    UnknownOption {
        /// Name of the target.
        target: &'static str,
        /// What was asked for.
        option: String,
        /// The options that it has, or `none`.
        known: String,
    },
    /// The option does not take this value.
    #[error("the target '{target}' can't have '{option}={value}': want {wanted}")]
    BadOption {
        /// Name of the target.
        target: &'static str,
        /// The option.
        option: &'static str,
        /// What was given.
        value: String,
        /// What would be right.
        wanted: String,
    },
    /// The option stands twice.
    #[error("the option '{option}' of the target '{target}' stands twice")]
    RepeatedOption {
        /// Name of the target.
        target: &'static str,
        /// The option.
        option: String,
    },
    /// An option that must be given is not.
    #[error("the target '{target}' needs '{option}': it is written {form}")]
    MissingOption {
        /// Name of the target.
        target: &'static str,
        /// The option.
        option: &'static str,
        /// How the target is written.
        form: &'static str,
    },
    /// Two options contradict each other.
    #[error("the target '{target}' can't have {what}: {why}")]
    Contradiction {
        /// Name of the target.
        target: &'static str,
        /// The options.
        what: String,
        /// Why not.
        why: &'static str,
    },
    /// There is no file at the path given.
    #[error("{what} is not found; looked for {looked}")]
    NotThere {
        /// What was looked for.
        what: String,
        /// Where.
        looked: String,
    },
    /// A program or image is nowhere.
    #[error(
        "{what} is not found; looked for {looked}. Build it with `make build`, or say where it is \
         in {variable}"
    )]
    NotBuilt {
        /// What is missing.
        what: String,
        /// The places, joined by commas.
        looked: String,
        /// The environment variable that names the place.
        variable: &'static str,
    },
    /// A program or image can't be read.
    #[error("{what} {} can't be read: {source}; build it anew with `make build`", path.display())]
    Unreadable {
        /// What it is.
        what: String,
        /// Where it is.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is no QEMU.
    #[error("{program} is in no folder of PATH")]
    NoQemu {
        /// The program's name.
        program: &'static str,
    },
    /// KVM is asked for and does not work.
    #[error("KVM does not work here: {why}")]
    NoKvm {
        /// Why not.
        why: String,
    },
    /// QEMU does not do what it should.
    #[error("QEMU {why}")]
    Qemu {
        /// What happened, as the rest of a sentence.
        why: String,
    },
    /// The guest's kernel can't be used.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The kernel can't be what is asked for.
    #[error("the kernel '{kernel}' can't have {option}: {why}")]
    KernelCanNot {
        /// The kernel.
        kernel: String,
        /// What was asked for.
        option: String,
        /// Why not, and what to do.
        why: String,
    },
    /// The kernel would cut its command line.
    #[error(
        "the guest's kernel command line would have {bytes} bytes, more than the {most} bytes that \
         Linux reads; shorten cmdline= or the load"
    )]
    LongCommandLine {
        /// How long it is.
        bytes: usize,
        /// How long it can be.
        most: usize,
    },
    /// The scratch disk can't be made.
    #[error(
        "the guest's scratch disk can't be made: {why}. It takes mke2fs (apt-get install \
         e2fsprogs), room in the temporary folder, and a size into which its files fit \
         (disk=scratch:SIZE)"
    )]
    Disk {
        /// What happened.
        why: String,
    },
    /// The words of a load are none.
    #[error("{problem}")]
    Load {
        /// What is wrong with them.
        problem: String,
    },
    /// A program that a load executes is not here.
    #[error("the load's program {program} is not found: {remedy}")]
    MissingTool {
        /// The program.
        program: String,
        /// What to do.
        remedy: String,
    },
    /// A file can't be written.
    #[error("{} can't be written: {source}", path.display())]
    Unwritable {
        /// Where it would be.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A container or its engine does not do what it should.
    #[error("{why}")]
    Container {
        /// What happened.
        why: String,
    },
    /// No engine can be used.
    #[error("{why}")]
    NoEngine {
        /// Why not.
        why: String,
        /// The command that changes that.
        remedy: String,
    },
    /// The engine did not do what it was asked.
    #[error(transparent)]
    Docker(#[from] DockerError),
    /// The target does not execute what an agent would.
    #[error(
        "the target '{target}' runs no plans, since there is no agent in it: what can be measured of \
         it is how it starts. For a Linux guest with the agent use linux,kernel=PATH"
    )]
    RunsNoPlans {
        /// The target.
        target: String,
    },
    /// An image can't be booted.
    #[error("the image {} {why}", path.display())]
    Image {
        /// Where it is.
        path: PathBuf,
        /// Why not, as the rest of a sentence.
        why: String,
    },
    /// Another machine can't be used.
    #[error("{host} can't be used by ssh: {why}; to make it usable: {remedy}")]
    Ssh {
        /// The machine, as it was named.
        host: String,
        /// Why not.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// The instance could not be started.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// The instance's output could not be read.
    #[error("the output of the instance can't be read: {source}")]
    Output {
        /// Why not.
        source: io::Error,
    },
}
