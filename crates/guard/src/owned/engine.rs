//! What is made at a Docker engine: containers, and the images that they are made from.
//!
//! They are not this process's children, and the engine keeps them after its own restart and the
//! machine's. Each has a label with the owner's id; whatever the engine lists under that label is
//! ours.

use std::path::Path;
use std::sync::Arc;

use tare_docker::{Docker, DockerError};

use crate::error::GuardError;
use crate::owned::Context;
use crate::owned::guarded::{Guarded, Inner};
use crate::record::{EngineRecord, Record};
use crate::report::Undone;

/// The label by which containers and images are known to belong to a guard. Its value is the
/// owner's id.
pub const OWNER_LABEL: &str = "tare.owner";

/// All that a guard makes at one engine. When it is dropped, containers and images that carry the
/// owner's label are removed.
#[must_use = "containers and images are removed when this is dropped"]
#[derive(Debug)]
pub struct OwnedAtEngine {
    guarded: Guarded,
}

impl OwnedAtEngine {
    pub(crate) fn announce(inner: &Arc<Inner>, socket: &Path) -> Result<OwnedAtEngine, GuardError> {
        let text = socket.to_str().ok_or_else(|| GuardError::Engine {
            socket: socket.display().to_string(),
            why: "its path is not UTF-8".to_owned(),
        })?;
        let socket = text.to_owned();
        let guarded = inner.announce(|_| Record::Engine(EngineRecord { socket }))?;
        Ok(OwnedAtEngine { guarded })
    }

    /// Removes the containers and images now.
    ///
    /// # Errors
    ///
    /// [`GuardError::Engine`]; the guard tries again when it is closed.
    pub fn remove(self) -> Result<(), GuardError> {
        self.guarded.undo()
    }
}

impl EngineRecord {
    pub(crate) fn undo(
        &self,
        context: Context<'_>,
        done: &mut Vec<Undone>,
    ) -> Result<(), GuardError> {
        let owner = context.owner.as_str();
        // An engine of the owner's own, whose data is in a scratch folder and goes with that.
        if self.socket.contains(owner) {
            return Ok(());
        }
        let docker = Docker::at(Path::new(&self.socket));
        let label = format!("{OWNER_LABEL}={owner}");
        remove_all(&docker, &label, done).map_err(|error| GuardError::Engine {
            socket: self.socket.clone(),
            why: error.to_string(),
        })
    }
}

fn remove_all(docker: &Docker, label: &str, done: &mut Vec<Undone>) -> Result<(), DockerError> {
    for id in docker.containers_with(label)? {
        if docker.remove_container(&id)? {
            done.push(Undone::ContainerRemoved { id });
        }
    }
    for id in docker.images_with(label)? {
        if docker.remove_image(&id)? {
            done.push(Undone::ImageRemoved { id });
        }
    }
    Ok(())
}
