//! The counters of an image: at `/metrics`, or by a datagram to the port of the word
//! `figures=PORT`.

use core::cell::Cell;
use core::fmt::Write;

use edge_nal::{UdpReceive, UdpSend};
use embassy_net::Stack;
use embassy_time::Instant;
use tare_heap::Heap;
use tare_net::http::answer::Packet;
use tare_net::http::metrics::{Kind, Metric, Value};
use tare_net::sockets::Datagrams;
use tare_net::watch::{Dropped, Lease, Watch};
use tare_runtime::{executor, time};
use tare_unikernel::{cpu, memory};
use tare_virtio::net::Port;

/// The figures, and their sources.
pub struct Figures {
    pub(super) card: &'static Port,
    pub(super) watch: &'static Watch,
    pub(super) heap: &'static Heap,
    pub(super) entry_tsc: u64,
    pub(super) until_main: Value,
    pub(super) until_card: Value,
    pub(super) until_address: Cell<Option<Value>>,
}

impl Figures {
    /// Records that the network has an address.
    pub fn up(&self) {
        let until = between(self.entry_tsc, cpu::tsc());
        self.until_address.set(Some(until));
    }

    /// Returns a figure by its number; numbers are contiguous from 0.
    pub fn get(&self, number: usize) -> Option<Metric<'_>> {
        let (card, tasks) = (self.card.counters(), executor::counters());
        let count = |name, help, value| (name, help, Kind::Counter, None, Value::Count(value));
        let bytes = |name, help, bytes| {
            let value = Value::Count(bytes as u64);
            (name, help, Kind::Gauge, None, value)
        };
        let boot = |until, value| {
            let help = "Time from the first 64-bit instruction.";
            let label = Some(("until", until));
            ("boot_seconds", help, Kind::Gauge, label, value)
        };
        let drops = |by, packets| {
            let help = "Packets that came and reached no service, or were thrown away before they were sent.";
            let (label, value) = (Some(("by", by)), Value::Count(packets));
            (
                "network_dropped_packets_total",
                help,
                Kind::Counter,
                label,
                value,
            )
        };
        let leases = |what: Lease| {
            let help = "Renewals of the address from DHCP, requests that a server refused, and addresses lost.";
            let value = Value::Count(self.watch.leases(what));
            (
                "network_leases_total",
                help,
                Kind::Counter,
                Some(("what", what.name())),
                value,
            )
        };
        let up = Value::Nanoseconds(Instant::now().as_micros().saturating_mul(1000));
        #[rustfmt::skip]
        let (name, help, kind, label, value) = match number {
            0 => ("uptime_seconds", "Time since the clock of tasks was started.", Kind::Counter, None, up),
            1 => bytes("heap_allocated_bytes", "Memory that is allocated from the heap.", self.heap.allocated()),
            2 => bytes("memory_free_bytes", "Memory that neither the heap nor anything else has taken.", memory::left()),
            3 => count("executor_wake_ups_total", "Times that the CPU was woken from its halt.", tasks.wake_ups),
            4 => count("executor_passes_total", "Times that tasks were run.", tasks.passes),
            5 => count("executor_spins_total", "Looks for something to do that found nothing, and runs of tasks that only tasks had woken.", tasks.spins),
            6 => count("network_receive_interrupts_total", "Interrupts since packets came.", card.receive_interrupts),
            7 => count("network_transmit_interrupts_total", "Interrupts since there was room to send.", card.transmit_interrupts),
            8 => count("network_notifications_total", "Notifications of the device.", card.notifications),
            9 => count("network_receive_packets_total", "Packets that came.", card.packets_in),
            10 => count("network_transmit_packets_total", "Packets that were sent.", card.packets_out),
            11 => count("network_transmit_full_total", "Times that there was no room to send.", card.full),
            12 => count("network_device_faults_total", "Buffers that the device returned without having them.", card.faults),
            13 => drops("card", card.drops),
            _ => match Dropped::ALL.get(number - 14) {
                Some(by) => drops(by.name(), self.watch.dropped(*by)),
                None => match number - 14 - Dropped::ALL.len() {
                    0 => boot("main", self.until_main),
                    1 => boot("card", self.until_card),
                    at @ 2..5 => leases(Lease::ALL[at - 2]),
                    5 => boot("address", self.until_address.get()?),
                    _ => return None,
                },
            },
        };
        Some(Metric {
            name,
            help,
            kind,
            label,
            value,
        })
    }

    /// Answers each datagram to a port with all figures, one per line. Never returns.
    pub async fn answer(&self, stack: Stack<'static>, port: u16) {
        /// The greatest number of queued requests and answers.
        const QUESTIONS: usize = 4;
        let mut answer = Packet::new();
        // `service` reports a port that is in use.
        let Some(mut socket) =
            Datagrams::new(stack, port, QUESTIONS, answer.capacity(), self.watch)
        else {
            return;
        };
        loop {
            let Ok((_, from)) = socket.receive(&mut [0; 64]).await else {
                continue;
            };
            answer.clear();
            for metric in (0..).map_while(|number| self.get(number)) {
                // There is room for all of them.
                let _ = write!(answer, "{metric}");
            }
            // A failed answer is lost, like any datagram.
            let _ = socket.send(from, &answer).await;
        }
    }
}

/// Returns the time between two readings of the TSC, once the network has started the clock: to
/// find the TSC's frequency again takes 1.5 ms where only a timer shows it.
pub fn between(from: u64, until: u64) -> Value {
    Value::Nanoseconds(time::micros(until.saturating_sub(from)).saturating_mul(1000))
}
