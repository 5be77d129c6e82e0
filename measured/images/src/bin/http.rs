//! A page, and the figures of the system for Prometheus at `/metrics`.
//!
//! Words: those of the network (see `tare_runtime::network`).
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

extern crate alloc;

#[path = "service/mod.rs"]
mod service;

use alloc::boxed::Box;

use embassy_time::Instant;
use tare_heap::Heap;
use tare_net::http;
use tare_net::http::metrics::{Kind, Metric, Value};
use tare_runtime::executor;
use tare_runtime::network::Timers;
use tare_unikernel::boot::Boot;
use tare_unikernel::exit::Status;
use tare_unikernel::{clock, cpu};
use tare_virtio::net::Port;

tare_unikernel::image!(main);

#[global_allocator]
static HEAP: Heap = Heap::new();

/// What a browser sees.
const PAGE: &str = "<!doctype html><title>tare</title><p>An image without a kernel beneath. <a href=\"/metrics\">What it counts</a>";

fn main(boot: &'static Boot) -> Status {
    let until_main = since(boot.entry_tsc);
    let network = match service::network("http", http::PORT, boot) {
        Ok(network) => network,
        Err(status) => return status,
    };
    let site: &'static Figures = Box::leak(Box::new(Figures {
        card: network.card(),
        until_main,
        until_network: since(boot.entry_tsc),
    }));
    service::on_connections(&network, http::PORT, |listener| {
        http::tcp(listener, site, Timers)
    });
    service::tell(&network, http::PORT);
    network.run()
}

/// The figures, and where they come from.
struct Figures {
    card: &'static Port,
    until_main: Value,
    until_network: Value,
}

impl http::Site for Figures {
    fn file(&self, name: &str) -> Option<&[u8]> {
        (name == "index.html").then_some(PAGE.as_bytes())
    }

    fn metric(&self, number: usize) -> Option<Metric<'_>> {
        let (card, tasks) = (self.card.counters(), executor::counters());
        let count = |name, help, value| (name, help, Kind::Counter, None, Value::Count(value));
        let boot = |until, value| {
            let help = "Time from the first 64-bit instruction.";
            (
                "boot_seconds",
                help,
                Kind::Gauge,
                Some(("until", until)),
                value,
            )
        };
        let up = Value::Nanoseconds(Instant::now().as_micros().saturating_mul(1000));
        #[rustfmt::skip]
        let (name, help, kind, label, value) = match number {
            0 => boot("main", self.until_main),
            1 => boot("network", self.until_network),
            2 => ("uptime_seconds", "Time since the clock of tasks was started.", Kind::Counter, None, up),
            3 => count("executor_wake_ups_total", "Times that the CPU was woken from its halt.", tasks.wake_ups),
            4 => count("executor_passes_total", "Times that tasks were run.", tasks.passes),
            5 => count("executor_spins_total", "Looks for something to do that found nothing.", tasks.spins),
            6 => count("network_receive_interrupts_total", "Interrupts since packets came.", card.receive_interrupts),
            7 => count("network_transmit_interrupts_total", "Interrupts since there was room to send.", card.transmit_interrupts),
            8 => count("network_notifications_total", "Notifications of the device.", card.notifications),
            9 => count("network_receive_packets_total", "Packets that came.", card.packets_in),
            10 => count("network_transmit_packets_total", "Packets that were sent.", card.packets_out),
            11 => count("network_dropped_packets_total", "Packets shorter than their headers.", card.drops),
            12 => count("network_transmit_full_total", "Times that there was no room to send.", card.full),
            _ => return None,
        };
        Some(Metric {
            name,
            help,
            kind,
            label,
            value,
        })
    }
}

/// Returns the time since a reading of the TSC.
fn since(tsc: u64) -> Value {
    let ticks = cpu::tsc().saturating_sub(tsc);
    let hz = clock::tsc_frequency().map_or(f64::INFINITY, |frequency| frequency.rate.hz);
    Value::Nanoseconds((ticks as f64 / hz * 1e9) as u64)
}
