//! What can go wrong with a target, and what to do about it.

use std::fmt::Display;
use std::io;

use tare_docker::DockerError;
use tare_guard::GuardError;
use tare_kernels::KernelError;
use tare_networks::NetworkError;
use thiserror::Error;

use crate::engine;

/// What went wrong with a target.
#[derive(Debug, Error)]
pub enum TargetError {
    /// No target has this name.
    #[error("there is no target '{name}'; known: {known}. `tare targets` shows which are usable")]
    Unknown {
        /// The name that was given.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The target can't have one of its options, or the load.
    #[error("{0}")]
    Usage(String),
    /// The target does not execute what an agent would.
    #[error(
        "the target '{target}' runs no plans, since there is no agent in it: what can be measured of \
         it is how it starts. For a Linux guest with the agent use linux,kernel=PATH"
    )]
    RunsNoPlans {
        /// The target.
        target: String,
    },
    /// Something that the target needs is not here, or can't be used.
    #[error("{why}")]
    Unusable {
        /// What, and why not.
        why: String,
        /// What to do, usually a command.
        remedy: String,
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
    /// The target, or what it runs on, does not do what it should.
    #[error("{0}")]
    Failed(String),
    /// The guest's kernel can't be used.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The engine did not do what it was asked.
    #[error(transparent)]
    Docker(#[from] DockerError),
    /// The network of a server can't be made.
    #[error(transparent)]
    Network(#[from] NetworkError),
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

impl TargetError {
    /// Makes an error of options that contradict each other.
    pub(crate) fn contradiction(target: &str, what: impl Display, why: &str) -> Self {
        Self::Usage(format!("the target '{target}' can't have {what}: {why}"))
    }

    /// Makes the error of a target that lacks something, with what to do about it.
    pub fn unusable(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Unusable {
            why: why.into(),
            remedy: remedy.into(),
        }
    }

    /// Returns what makes the target usable.
    pub(crate) fn remedy(&self) -> String {
        match self {
            Self::Unusable { remedy, .. } | Self::Ssh { remedy, .. } => remedy.clone(),
            Self::Kernel(error) => error.remedy().unwrap_or("tare kernel list").to_owned(),
            Self::Docker(error) => engine::remedy(error),
            _ => "see the message".to_owned(),
        }
    }
}
