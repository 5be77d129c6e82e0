//! A page, and the figures of the system for Prometheus at `/metrics`.
//!
//! Words: those of all services (see `service`).
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

extern crate alloc;

#[path = "service/mod.rs"]
mod service;

use alloc::boxed::Box;

use tare_heap::Heap;
use tare_net::http;
use tare_net::http::metrics::Metric;
use tare_runtime::network::Timers;
use tare_unikernel::boot::Boot;
use tare_unikernel::exit::Status;

use service::{Figures, Service};

tare_unikernel::image!(main);

#[global_allocator]
static HEAP: Heap = Heap::new();

/// What a browser sees.
const PAGE: &str = "<!doctype html><title>tare</title><p>An image without a kernel beneath. <a href=\"/metrics\">What it counts</a>";

fn main(boot: &'static Boot) -> Status {
    let service = match Service::new("http", http::PORT, boot, &HEAP) {
        Ok(service) => service,
        Err(status) => return status,
    };
    let site: &'static Site = Box::leak(Box::new(Site(service.figures)));
    service.on_connections(|listener| http::tcp(listener, site, Timers));
    service.tell();
    service.run()
}

/// What can be asked for.
struct Site(&'static Figures);

impl http::Site for Site {
    fn file(&self, name: &str) -> Option<&[u8]> {
        (name == "index.html").then_some(PAGE.as_bytes())
    }

    fn metric(&self, number: usize) -> Option<Metric<'_>> {
        self.0.get(number)
    }
}
