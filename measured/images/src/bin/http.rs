//! Serves files, and the figures of the system for Prometheus at `/metrics`. Without files (see
//! `tare_runtime::files`) there is a page of its own.
//!
//! Words: those of all services (see `service`).
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

extern crate alloc;

#[path = "service/mod.rs"]
mod service;

use alloc::boxed::Box;

use embassy_time::Instant;
use tare_heap::Heap;
use tare_net::http;
use tare_net::http::metrics::Metric;
#[cfg(feature = "files")]
use tare_runtime::files::Files;
use tare_runtime::network::Timers;
use tare_unikernel::boot::Boot;
use tare_unikernel::clock;
use tare_unikernel::exit::Status;

use service::{Figures, Service};

tare_unikernel::image!(main);

#[global_allocator]
static HEAP: Heap = Heap::new();

/// The greatest number of connections at a time. Browsers keep several open.
const CONNECTIONS: usize = 64;

fn main(boot: &'static Boot) -> Status {
    let service = match Service::new("http", http::PORT, boot, &HEAP) {
        Ok(service) => service,
        Err(status) => return status,
    };
    #[cfg(feature = "files")]
    let files = match Files::read(boot.command_line) {
        Ok(files) => files,
        Err(error) => return service::end("http", &error, Status::Failed),
    };
    let up = Instant::now().as_secs();
    let site: &'static Site = Box::leak(Box::new(Site {
        figures: service.figures,
        #[cfg(feature = "files")]
        files,
        start: clock::wall_seconds().map(|now| now - up),
    }));
    service.on_connections(|listener| http::tcp(listener, site, Timers));
    service.tell();
    service.run()
}

/// The content of the server.
struct Site {
    figures: &'static Figures,
    #[cfg(feature = "files")]
    files: Files,
    /// The time of day when the tasks' clock was 0, in seconds since 1970.
    start: Option<u64>,
}

impl http::Site for Site {
    fn file(&self, name: &str) -> Option<&[u8]> {
        #[cfg(feature = "files")]
        if !self.files.is_empty() {
            return self.files.get(name);
        }
        (name == http::INDEX).then_some(http::PAGE.as_bytes())
    }

    fn metric(&self, number: usize) -> Option<Metric<'_>> {
        self.figures.get(number)
    }

    fn now(&self) -> Option<u64> {
        Some(self.start? + Instant::now().as_secs())
    }
}
