//! `crun`: the agent in a container of the runtime in C that podman uses, without an engine.
//!
//! crun 1.8, that of Debian 12, gives up where control groups of both versions are mounted. There
//! it gets mounts of its own, without those of version 2.

use super::runtime::Runtime;
use super::{Settings, without_hybrid_cgroups};

/// Is the target's name and the runtime's.
pub(crate) const NAME: &str = "crun";

/// Makes the target.
pub(crate) fn target(settings: Settings) -> Runtime {
    Runtime::new(settings, without_hybrid_cgroups)
}
