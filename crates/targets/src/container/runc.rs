//! `runc`: the agent in a container of the reference runtime, which Docker uses, without an engine.

use super::Settings;
use super::runtime::Runtime;

/// Is the target's name and the runtime's.
pub(crate) const NAME: &str = "runc";

/// Makes the target.
pub(crate) fn target(settings: Settings) -> Runtime {
    Runtime::new(settings, Vec::new)
}
