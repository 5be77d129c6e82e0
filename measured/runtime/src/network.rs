//! The network of an image: its card, its stack and its tasks, from the words of its command line.

use alloc::boxed::Box;
use core::fmt;
use core::future::Future;

use embassy_executor::raw::{Executor, TaskStorage};
use embassy_net::{Stack, StackResources};
use embassy_time::Timer;
use tare_net::Clock;
use tare_net::filter::{self, Filter, use_routers};
use tare_net::settings::{BadWord, Settings, number};
use tare_net::watch::Watch;
use tare_unikernel::clock;
use tare_unikernel::local::local;
use tare_virtio::device::{self, DeviceError, Kind};
use tare_virtio::net::{self, Net, Port};

use crate::{entropy, executor, time};

/// The reason why an image has no network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkError {
    /// There is no card.
    NoCard,
    /// The card can't be used.
    Card(DeviceError),
    /// There is no source of random numbers.
    NoEntropy,
    /// A word is invalid.
    Word(BadWord<'static>),
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCard => f.write_str("there is no virtio network card (QEMU: -device virtio-net-pci or virtio-net-device)"),
            Self::Card(error) => write!(f, "the network card can't be used: {error}"),
            Self::NoEntropy => f.write_str("there is no source of random numbers (QEMU: -cpu max, or -device virtio-rng-pci)"),
            Self::Word(bad) => bad.fmt(f),
        }
    }
}

impl core::error::Error for NetworkError {}

/// The clock of the tasks.
#[derive(Clone, Copy, Debug)]
pub struct Timers;

impl Clock for Timers {
    async fn sleep(&self, seconds: u32) {
        Timer::after_secs(seconds.into()).await;
    }
}

/// A card with a stack.
pub struct Network {
    /// The stack.
    pub stack: Stack<'static>,
    /// The counts of dropped packets.
    pub watch: &'static Watch,
    port: &'static Port,
    tasks: &'static Executor,
    polls: bool,
}

impl Network {
    /// Starts the network on the first card, with room for `SOCKETS` sockets, for a service on a
    /// port.
    ///
    /// Words: `ring=N` sets the entries of a queue, `poll=yes` polls for packets, others are those
    /// of [`Settings`]; unknown words are ignored.
    ///
    /// # Errors
    ///
    /// Returns [`NetworkError`] if there is no network.
    pub fn new<const SOCKETS: usize>(
        command_line: &'static str,
        service: u16,
    ) -> Result<Self, NetworkError> {
        let begun = clock::begin();
        let (mut addresses, mut card) = (Settings::default(), net::Settings::default());
        for word in command_line.split_ascii_whitespace() {
            let bad = |wanted| NetworkError::Word(BadWord { word, wanted });
            if let Some(value) = word.strip_prefix("ring=") {
                let ring = number(value).and_then(|ring| ring.try_into().ok());
                let ring = ring.filter(|ring: &u16| ring.is_power_of_two());
                card.ring = ring.ok_or_else(|| bad("a power of two"))?;
            } else if let Some(value) = word.strip_prefix("poll=") {
                card.polls = value == "yes";
                if !card.polls {
                    return Err(bad("poll=yes"));
                }
            } else {
                addresses.read(word).map_err(NetworkError::Word)?;
            }
        }
        card.mtu = addresses.mtu;
        let device = device::find(Kind::Net, command_line).ok_or(NetworkError::NoCard)?;
        let port = Port::new(device, card).map_err(NetworkError::Card)?;
        // After the card, which enables the interrupt controller and so masks its timer.
        time::start(begun);
        let port: &'static Port = Box::leak(Box::new(port));
        let seed = entropy::random(command_line).ok_or(NetworkError::NoEntropy)?;
        let resources = Box::leak(Box::new(StackResources::<SOCKETS>::new()));
        let watch: &'static Watch = Box::leak(Box::new(Watch::new(service)));
        let (stack, mut runner) = embassy_net::new(
            Filter::new(Net(port), watch, &addresses),
            addresses.config(),
            resources,
            seed,
        );
        let network = Self {
            stack,
            watch,
            port,
            tasks: Box::leak(Box::new(Executor::new(core::ptr::null_mut()))),
            polls: card.polls,
        };
        network.spawn(async move { runner.run().await });
        if filter::HAS_SLAAC && addresses.v6.address.is_none() {
            network.spawn(use_routers(stack, watch));
        }
        Ok(network)
    }

    /// Returns the card.
    pub fn card(&self) -> &'static Port {
        self.port
    }

    /// Adds a task.
    pub fn spawn<T: 'static>(&self, task: impl Future<Output = T> + 'static) {
        let storage = Box::leak(Box::new(TaskStorage::new()));
        // New storage is always free.
        if let Ok(token) = storage.spawn(|| task) {
            self.tasks.spawner().spawn(token);
        }
    }

    /// Runs the tasks. Never returns.
    pub fn run(self) -> ! {
        executor::run(self.tasks, self.polls, || self.port.attend())
    }
}

/// A value for a `static` that only the first CPU uses, as all tasks do.
#[derive(Debug)]
pub struct OnFirstCpu<T>(T);

// SAFETY: `get` returns it to the first CPU only, and no interrupt handler is in Rust.
unsafe impl<T> Sync for OnFirstCpu<T> {}

impl<T> OnFirstCpu<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the value.
    ///
    /// # Panics
    ///
    /// Panics on any other CPU.
    pub fn get(&self) -> &T {
        assert_eq!(local().number(), 0, "only the first CPU runs tasks");
        &self.0
    }
}
