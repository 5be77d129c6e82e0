//! Room for the descriptors of many instances.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many descriptors an instance takes (output, error, pidfd, its hypervisor's channel), and how
/// many all else.
const EACH: u64 = 4;
const OTHERS: u64 = 256;

/// A raised limit of open files, which is as it was when this is dropped.
///
/// It is raised by no more than is needed: instances inherit it, and some programs close every
/// descriptor that there may be.
#[derive(Debug)]
pub(super) struct Files(Option<Rlimit>);

impl Files {
    /// Raises the limit to what this number of instances needs, as far as this process may.
    pub(super) fn for_instances(number: u32) -> Self {
        let before = getrlimit(Resource::Nofile);
        let needed = u64::from(number) * EACH + OTHERS;
        let wanted = before.maximum.map_or(needed, |most| most.min(needed));
        let is_short = before.current.is_some_and(|now| now < wanted);
        let raised = Rlimit {
            current: Some(wanted),
            ..before
        };
        let is_raised = is_short && setrlimit(Resource::Nofile, raised).is_ok();
        Self(is_raised.then_some(before))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            // A lower limit is always allowed.
            let _ = setrlimit(Resource::Nofile, before);
        }
    }
}
