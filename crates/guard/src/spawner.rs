//! The one thread that starts all children.
//!
//! A child asks the kernel to kill it when its parent dies (`PR_SET_PDEATHSIG`), so that it ends
//! even if `kill -9` leaves the guard no time. But the kernel means the *thread* that forked: a
//! child started by a worker thread would be killed, in the middle of a measurement, when that
//! worker returns. So one thread of the guard does all forking, and it lives as long as the guard.
//!
//! A consequence: a child inherits CPU affinity and scheduling policy from this thread, that is,
//! from whoever started the guard's first child, at that time, and not from its caller. A child
//! that wants others sets them itself.

use std::io;
use std::mem;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Starts children from its own thread, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Spawner {
    requests: Sender<Request>,
}

#[derive(Debug)]
struct Request {
    command: Command,
    reply: Sender<(Command, io::Result<Child>)>,
}

impl Spawner {
    /// Starts the thread.
    pub(crate) fn new() -> io::Result<Spawner> {
        let (requests, incoming) = channel();
        std::thread::Builder::new()
            .name("tare-spawner".into())
            .spawn(move || serve(&incoming))?;
        Ok(Spawner { requests })
    }

    /// Starts a child and waits until its program is executing, or could not be executed.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let ended = || io::Error::other("the thread that starts children has ended");
        let (reply, outcome) = channel();
        // The command goes to the other thread and comes back.
        let request = Request {
            command: mem::replace(command, Command::new("")),
            reply,
        };
        self.requests.send(request).map_err(|_| ended())?;
        let (used, child) = outcome.recv().map_err(|_| ended())?;
        *command = used;
        child
    }
}

fn serve(incoming: &Receiver<Request>) {
    for Request { mut command, reply } in incoming {
        let child = command.spawn();
        // Whoever asked is waiting for this answer.
        let _ = reply.send((command, child));
    }
}
