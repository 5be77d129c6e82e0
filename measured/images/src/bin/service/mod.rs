//! The common part of service images: sockets on the network, tasks that serve them, and figures.
//!
//! Words: those of the network (see `tare_runtime::network`) and of the console (see
//! `tare_runtime::console`), and `figures=PORT`, where any datagram is answered with all figures.

#![allow(dead_code, reason = "each service uses its part")]

#[cfg(feature = "figures")]
mod figures;

#[cfg(any(feature = "figures", feature = "tcp"))]
use alloc::boxed::Box;
#[cfg(feature = "figures")]
use core::cell::Cell;
use core::fmt::{Display, Write};
use core::future::Future;

use embassy_net::Stack;
use tare_heap::Heap;
#[cfg(feature = "tcp")]
use tare_net::sockets::Connections;
use tare_net::sockets::Datagrams;
use tare_runtime::network::{Network, NetworkError};
use tare_unikernel::boot::Boot;
use tare_unikernel::console::Console;
#[cfg(feature = "figures")]
use tare_unikernel::cpu;
use tare_unikernel::exit::Status;

#[cfg(feature = "figures")]
pub use figures::Figures;

/// Bytes of a connection's buffer in each direction.
#[cfg(feature = "tcp")]
const WINDOW: usize = 8 << 10;
/// The number of queued datagrams in each direction, more than dnsperf sends before it waits (100),
/// and their bytes.
const DATAGRAMS: usize = 128;
const DATAGRAM_BYTES: usize = 16 << 10;
/// The number of sockets: the image's connections, its own for datagrams, that of DHCP, that of figures,
/// and two spare ones.
const SOCKETS: usize = 5 + if cfg!(feature = "tcp") {
    crate::CONNECTIONS
} else {
    0
};

/// A service on a port.
pub struct Service {
    /// The counters.
    #[cfg(feature = "figures")]
    pub figures: &'static Figures,
    network: Network,
    port: u16,
}

impl Service {
    /// Starts the network as configured on the command line, and serves the figures. Prints the
    /// reason if that fails.
    pub fn new(
        name: &str,
        port: u16,
        boot: &'static Boot,
        #[cfg_attr(not(feature = "figures"), allow(unused_variables))] heap: &'static Heap,
    ) -> Result<Self, Status> {
        #[cfg(feature = "figures")]
        let main_tsc = cpu::tsc();
        #[cfg(feature = "console")]
        tare_runtime::console::start(boot.command_line)
            .map_err(|error| end(name, &error, Status::Failed))?;
        let network = Network::new::<SOCKETS>(boot.command_line, port).map_err(|error| {
            let status = match error {
                NetworkError::Word(_) => Status::Misused,
                _ => Status::Failed,
            };
            end(name, &error, status)
        })?;
        #[cfg(feature = "figures")]
        let figures: &'static Figures = Box::leak(Box::new(Figures {
            card: network.card(),
            watch: network.watch,
            heap,
            entry_tsc: boot.entry_tsc,
            until_main: figures::between(boot.entry_tsc, main_tsc),
            until_card: figures::between(boot.entry_tsc, cpu::tsc()),
            until_address: Cell::new(None),
        }));
        #[cfg(feature = "figures")]
        if let Some(text) = word(boot, "figures=") {
            let wanted = text.parse().ok().filter(|wanted| *wanted != port);
            let wanted = wanted.ok_or_else(|| misused(name, "figures=", "an unused port"))?;
            network.spawn(figures.answer(network.stack, wanted));
        }
        Ok(Self {
            #[cfg(feature = "figures")]
            figures,
            network,
            port,
        })
    }

    /// Adds a task.
    pub fn spawn<T: 'static>(&self, task: impl Future<Output = T> + 'static) {
        self.network.spawn(task);
    }

    /// Returns the network's stack.
    pub fn stack(&self) -> Stack<'static> {
        self.network.stack
    }

    /// Serves datagrams once the network is up, and reports that on the console.
    pub fn on_datagrams<T: Future + 'static>(&self, answer: impl FnOnce(Datagrams) -> T + 'static)
    where
        T::Output: 'static,
    {
        let (stack, port, watch) = (self.network.stack, self.port, self.network.watch);
        let up = self.up();
        self.spawn(async move {
            stack.wait_config_up().await;
            let socket = Datagrams::new(stack, port, DATAGRAMS, DATAGRAM_BYTES, watch);
            let socket = socket.expect("the port is the service's own");
            up();
            answer(socket).await
        });
    }

    /// Serves connections, up to the image's limit at a time.
    #[cfg(feature = "tcp")]
    pub fn on_connections<T: Future + 'static>(&self, answer: impl Fn(&'static Connections) -> T)
    where
        T::Output: 'static,
    {
        let Network { stack, watch, .. } = self.network;
        let listener = Connections::new(stack, crate::CONNECTIONS, WINDOW, watch);
        let listener: &'static Connections = Box::leak(Box::new(listener));
        self.spawn(listener.make_room());
        for _ in 0..listener.count() {
            self.spawn(answer(listener));
        }
    }

    /// Reports on the console when the network is up.
    pub fn tell(&self) {
        let (stack, up) = (self.network.stack, self.up());
        self.spawn(async move {
            stack.wait_config_up().await;
            up();
        });
    }

    /// Returns the function to call when the network has an address.
    fn up(&self) -> impl FnOnce() + use<> {
        let (stack, port) = (self.network.stack, self.port);
        #[cfg(feature = "figures")]
        let figures = self.figures;
        move || {
            #[cfg(feature = "figures")]
            figures.up();
            // Writing does not fail.
            let _ = write!(Console, "answering on port {port} at");
            if let Some(config) = stack.config_v4() {
                let _ = write!(Console, " {}", config.address);
            }
            Console.texts(&["\n"]);
        }
    }

    /// Runs all tasks. Never returns.
    pub fn run(self) -> ! {
        self.network.run()
    }
}

/// Returns the value of a key on the command line.
pub fn word(boot: &'static Boot, key: &str) -> Option<&'static str> {
    let mut words = boot.command_line.split_ascii_whitespace();
    words.find_map(|word| word.strip_prefix(key))
}

/// Reports an invalid word, and returns the exit status.
pub fn misused(name: &str, key: &str, wanted: &str) -> Status {
    end(name, &format_args!("{key}: want {wanted}"), Status::Misused)
}

/// Reports why the image ends.
pub fn end(name: &str, why: &impl Display, status: Status) -> Status {
    // Writing does not fail.
    let _ = writeln!(Console, "{name}: {why}");
    status
}
