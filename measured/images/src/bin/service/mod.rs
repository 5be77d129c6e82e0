//! What the images of services have in common: sockets on the network, and tasks that answer on them.

#![allow(dead_code, reason = "each service uses its part")]

use alloc::boxed::Box;
use alloc::format;
use core::future::Future;
use core::net::{Ipv4Addr, SocketAddr};

#[cfg(feature = "tcp")]
use edge_nal::TcpBind;
use edge_nal::UdpBind;
#[cfg(feature = "tcp")]
use edge_nal_embassy::{Tcp, TcpAccept, TcpBuffers};
use edge_nal_embassy::{Udp, UdpBuffers, UdpSocket};
use embassy_net::Stack;
use tare_runtime::network::{Network, NetworkError, OnFirstCpu};
use tare_unikernel::boot::Boot;
use tare_unikernel::console::Console;
use tare_unikernel::exit::Status;

/// How many connections are served at once.
#[cfg(feature = "tcp")]
const CONNECTIONS: usize = 16;
/// Bytes of a connection's buffer in each direction.
#[cfg(feature = "tcp")]
const WINDOW: usize = 8 << 10;
/// Datagrams that wait in each direction, more than dnsperf sends before it waits (100), and their bytes.
const DATAGRAMS: usize = 128;
const DATAGRAM_BYTES: usize = 16 << 10;
/// The sockets of services, and what the stack has for itself: DHCP, and one to spare.
#[cfg(feature = "tcp")]
const SOCKETS: usize = 3 + CONNECTIONS;
#[cfg(not(feature = "tcp"))]
const SOCKETS: usize = 3;

static DATAGRAM_BUFFERS: OnFirstCpu<UdpBuffers<1, DATAGRAM_BYTES, DATAGRAM_BYTES, DATAGRAMS>> =
    OnFirstCpu(UdpBuffers::new());
#[cfg(feature = "tcp")]
static CONNECTION_BUFFERS: OnFirstCpu<TcpBuffers<CONNECTIONS, WINDOW, WINDOW>> =
    OnFirstCpu(TcpBuffers::new());

/// Takes the network into use as the command line says. Where there is none, it says why.
pub fn network(name: &str, port: u16, boot: &Boot) -> Result<Network, Status> {
    Network::new::<SOCKETS>(boot.command_line, port).map_err(|error| {
        Console.texts(&[&format!("{name}: {error}\n")]);
        match error {
            NetworkError::Word(_) => Status::Misused,
            _ => Status::Failed,
        }
    })
}

/// Answers datagrams on a port once the network is up, which is said on the console.
pub fn on_datagrams<T: Future + 'static>(
    network: &Network,
    port: u16,
    answer: impl FnOnce(UdpSocket<'static>) -> T + 'static,
) where
    T::Output: 'static,
{
    let stack = network.stack;
    network.spawn(async move {
        stack.wait_config_up().await;
        let sockets: &'static Udp<'static> =
            Box::leak(Box::new(Udp::new(stack, DATAGRAM_BUFFERS.get())));
        let socket = sockets
            .bind(any(port))
            .await
            .expect("there are buffers for this socket");
        tell_address(stack, port);
        answer(socket).await
    });
}

/// Answers connections on a port, as many at once as there are buffers.
#[cfg(feature = "tcp")]
pub fn on_connections<T: Future + 'static>(
    network: &Network,
    port: u16,
    answer: impl Fn(TcpAccept<'static>) -> T,
) where
    T::Output: 'static,
{
    let sockets = Tcp::new(network.stack, CONNECTION_BUFFERS.get());
    let sockets: &'static Tcp<'static> = Box::leak(Box::new(sockets));
    // Binding waits for nothing.
    let listener =
        embassy_futures::block_on(sockets.bind(any(port))).expect("a listener takes no buffers");
    for _ in 0..CONNECTIONS {
        network.spawn(answer(listener));
    }
}

/// Says on the console when the network is up.
#[cfg(feature = "tcp")]
pub fn tell(network: &Network, port: u16) {
    let stack = network.stack;
    network.spawn(async move {
        stack.wait_config_up().await;
        tell_address(stack, port);
    });
}

fn tell_address(stack: Stack<'static>, port: u16) {
    let address = stack
        .config_v4()
        .map(|config| format!(" {}", config.address));
    Console.texts(&[&format!(
        "answering on port {port} at{}\n",
        address.unwrap_or_default()
    )]);
}

fn any(port: u16) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)
}
