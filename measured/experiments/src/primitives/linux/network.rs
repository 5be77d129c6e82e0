//! The network: round trips, bandwidth, connections; over the loopback device, and to another
//! machine that the user names.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use crate::primitives::bench::{Bench, PLAIN, Why, why};
use crate::primitives::{Area, Context, Need, Primitive};
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::sockopt::{Timeout, set_socket_linger, set_socket_timeout};
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketType, ipproto};
use tare_workloads::timing::{Fenced, Timing};

use super::ipc::{pour, round_trip};
use super::kernel::{placements, put, take};
use super::peer::{ANSWER, COUNT, ECHO, Peer, SINK, connect};

const NETWORK: Primitive = Primitive {
    area: Area::Network,
    needs: &[Need::Kernel],
    ..Primitive::NEW
};
const ROUND_TRIP: &str = "one byte there and one back, many in a row and each between two stamps";

/// The primitives.
pub(crate) const TABLE: &[Primitive] = &[
    NETWORK.named("tcp-round-trip", "round trip by TCP")
        .method(ROUND_TRIP)
        .tags(&["published"])
        .by(|bench, around| {
            everywhere(bench, around, |bench, labels, address| {
                let connection = connect(address, ECHO)?;
                if !labels.contains("at=peer") {
                    // A wait with a timeout sets a timer. The local side answers, or ends.
                    let _ = connection.set_read_timeout(None);
                }
                let socket = connection.as_raw_fd();
                round_trip(bench, labels, (socket, socket))
            })
        }),
    NETWORK.named("udp-round-trip", "round trip by UDP")
        .method(ROUND_TRIP)
        .by(|bench, around| {
            everywhere(bench, around, |bench, labels, address| {
                let socket = udp(address)?;
                round_trip(bench, labels, (socket.as_raw_fd(), socket.as_raw_fd()))
            })
        }),
    NETWORK.named("icmp-round-trip", "round trip by ICMP echo: what the kernel answers itself")
        .method("echo requests of 8 bytes, each between two stamps")
        .tags(&["published"])
        .by(|bench, around| {
            everywhere(bench, around, |bench, labels, address| {
                if ["cpu=other", "cpu=socket"]
                    .iter()
                    .any(|at| labels.contains(at))
                {
                    // On the loopback device the kernel replies on the sending CPU.
                    return Ok(());
                }
                ping(bench, labels, address)
            })
        }),
    NETWORK.named("tcp-bandwidth", "bandwidth of TCP")
        .method("blocks of 64 KiB, until the other side confirms that it has read 16 MiB")
        .tags(&["published", "bandwidth"])
        .by(|bench, around| {
            everywhere(bench, around, |bench, labels, address| {
                let connection = connect(address, SINK)?;
                let socket = connection.as_raw_fd();
                pour(bench, labels, socket, socket)
            })
        }),
    NETWORK.named("udp-bandwidth", "bandwidth of UDP")
        .method("datagrams of 1,472 bytes, the most that Ethernet carries in one; of each 32, the last is answered when all have come")
        .tags(&["bandwidth"])
        .by(|bench, around| {
            everywhere(bench, around, |bench, labels, address| {
                datagrams(bench, labels, &udp(address)?)
            })
        }),
    NETWORK.named("tcp-connect", "connect by TCP")
        .method("each call between two stamps; the other side has accepted and answered before the next one, so that its queue is \
                 empty")
        .tags(&["published"])
        .by(|bench, around| {
            everywhere(bench, around, |bench, labels, address| {
                bench.single(labels, || {
                    let socket = Socket::new(&address)?;
                    let ticks = socket.connect(&address)?;
                    socket.asks()?;
                    socket.abort();
                    Ok(ticks)
                })
            })
        }),
    NETWORK.named("tcp-close", "close of a TCP connection")
        .method("each call between two stamps, of a connection that has carried a byte each way")
        .tags(&["published"])
        .by(|bench, around| {
            everywhere(bench, around, |bench, labels, address| {
                bench.single(labels, || {
                    let socket = Socket::new(&address)?;
                    socket.connect(&address)?;
                    socket.asks()?;
                    let begin = Fenced::before();
                    drop(socket);
                    Ok(Fenced::after().wrapping_sub(begin))
                })
            })
        }),
    NETWORK.named("tcp-accept", "accept of a TCP connection that waits")
        .method("each call between two stamps, when the connection is there")
        .by(|bench, _| {
            let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| {
                let address = listener.local_addr()?;
                Ok((listener, address))
            });
            let (listener, address) =
                listener.map_err(|error| why(format_args!("nothing listens: {error}")))?;
            bench.single(PLAIN, || {
                let socket = Socket::new(&address)?;
                socket.connect(&address)?;
                let begin = Fenced::before();
                let accepted = net::accept(&listener);
                let ticks = Fenced::after().wrapping_sub(begin);
                socket.abort();
                accepted.map_err(failed("no connection is there (accept)"))?;
                Ok(ticks)
            })
        }),
];

/// Measures over the loopback device for each placement of the other side, and to the plan's peer.
fn everywhere(
    bench: &mut Bench<'_>,
    around: &Context<'_>,
    mut measure: impl FnMut(&mut Bench<'_>, &str, SocketAddr) -> Result<(), Why>,
) -> Result<(), Why> {
    for (label, cpu) in placements(around.plan) {
        let peer = Peer::start(cpu)?;
        measure(bench, &format!("at=loopback cpu={label}"), peer.address)?;
    }
    let Some(peer) = around.plan.peer else {
        return Ok(());
    };
    let address = peer.to_socket_addrs().ok().and_then(|mut all| all.next());
    let address =
        address.ok_or_else(|| why(format_args!("'{peer}' is not an address with a port")))?;
    measure(bench, "at=peer", address)
}

fn udp(address: SocketAddr) -> Result<UdpSocket, Why> {
    let any = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let made = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(address)?;
        // A lost datagram must not block the measurement.
        socket.set_read_timeout(Some(Duration::from_secs(1)))?;
        Ok(socket)
    });
    made.map_err(|error| why(format_args!("no UDP socket to {address}: {error}")))
}

/// Sends datagrams, never more at a time than the other side's socket buffer holds.
fn datagrams(bench: &mut Bench<'_>, labels: &str, socket: &UdpSocket) -> Result<(), Why> {
    /// The payload of an Ethernet frame, less the headers of IP and UDP.
    const BYTES: usize = 1_472;
    const AT_A_TIME: u32 = 32;
    const TIMES: u32 = 64;
    let (sunk, counted) = ([SINK; BYTES], [COUNT; BYTES]);
    let ask = || -> io::Result<u32> {
        let mut answer = [0; 4];
        socket.send(&counted)?;
        socket.recv(&mut answer)?;
        Ok(u32::from_ne_bytes(answer))
    };
    let send = || {
        for _ in 1..AT_A_TIME {
            socket.send(&sunk)?;
        }
        ask()
    };
    // Forget datagrams from earlier measurements.
    ask().map_err(no_answer)?;
    let bytes = BYTES as u64 * u64::from(AT_A_TIME * TIMES);
    bench.whole(|bench| {
        bench.passes(labels, bytes, || {
            let begin = Fenced::before();
            for _ in 0..TIMES {
                match send() {
                    Ok(AT_A_TIME) => {}
                    Ok(came) => {
                        return Err(why(format_args!(
                            "{came} of {AT_A_TIME} datagrams have come: the rest is lost, and no bandwidth"
                        )));
                    }
                    Err(error) => return Err(no_answer(error)),
                }
            }
            Ok(Fenced::after().wrapping_sub(begin))
        })
    })
}

/// Formats the error of a peer that does not answer; the kernel's text for a timeout is of no help.
fn no_answer(error: impl Into<io::Error>) -> Why {
    let error = error.into();
    let waited = [Some(libc::EAGAIN), Some(libc::EINPROGRESS)].contains(&error.raw_os_error());
    match waited {
        true => why("the other side does not answer in time"),
        false => why(format_args!("the other side does not answer: {error}")),
    }
}

fn failed(what: &str) -> impl Fn(Errno) -> Why {
    move |error| why(format_args!("{what}: {error}"))
}

/// A TCP socket with timeouts.
struct Socket(OwnedFd);

impl Socket {
    fn new(address: &SocketAddr) -> Result<Self, Why> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let socket = net::socket(family, SocketType::STREAM, None);
        let socket = socket.map_err(failed("no TCP socket"))?;
        for direction in [Timeout::Recv, Timeout::Send] {
            let _ = set_socket_timeout(&socket, direction, Some(ANSWER));
        }
        Ok(Self(socket))
    }

    /// Connects, and returns the ticks that took.
    fn connect(&self, address: &SocketAddr) -> Result<u64, Why> {
        let name = address.as_any();
        let begin = Fenced::before();
        let connected = net::connect(&self.0, &name);
        let ticks = Fenced::after().wrapping_sub(begin);
        connected.map_err(no_answer)?;
        Ok(ticks)
    }

    /// Waits until the other side has accepted and answers.
    fn asks(&self) -> Result<(), Why> {
        rustix::io::write(&self.0, &[ECHO]).map_err(no_answer)?;
        let socket = self.0.as_raw_fd();
        match take(socket) && put(socket) && take(socket) {
            true => Ok(()),
            false => Err(no_answer(io::Error::last_os_error())),
        }
    }

    /// Resets the connection, so that its port does not stay in TIME_WAIT for a minute: there are
    /// not many ports.
    fn abort(self) {
        let _ = set_socket_linger(&self.0, Some(Duration::ZERO));
    }
}

/// Sends echo requests (RFC 792), each after the reply to the previous one.
fn ping(bench: &mut Bench<'_>, labels: &str, address: SocketAddr) -> Result<(), Why> {
    if address.is_ipv6() {
        return Err(why("ICMP echo is measured over IPv4 only"));
    }
    let socket = |kind| net::socket(AddressFamily::INET, kind, Some(ipproto::ICMP));
    // The raw socket requires privileges, the other one only that net.ipv4.ping_group_range
    // includes this group.
    let raw = socket(SocketType::RAW);
    let is_raw = raw.is_ok();
    let socket = raw.or_else(|_| socket(SocketType::DGRAM)).map_err(failed(
        "no raw socket, which takes CAP_NET_RAW, and none for ICMP (net.ipv4.ping_group_range)",
    ))?;
    net::connect(&socket, &address).map_err(failed("no way to the other side"))?;
    let _ = set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(1)));
    let id = (std::process::id() as u16).to_be_bytes();
    let mut number = 0_u16;
    bench.single(labels, || {
        number = number.wrapping_add(1);
        let request = request(id, number);
        let mut reply = [0_u8; 128];
        let begin = Fenced::before();
        let _ = net::send(&socket, &request, SendFlags::empty());
        loop {
            let got = net::recv(&socket, &mut reply, RecvFlags::empty());
            let (got, _) = got.map_err(failed("no reply to an ICMP echo request"))?;
            // A raw socket shows the IP header, and on the loopback device the requests as well; a
            // datagram socket replaces the id.
            let header = if is_raw {
                usize::from(reply[0] & 0xf) * 4
            } else {
                0
            };
            let message = reply[..got].get(header..header + 8).unwrap_or_default();
            let same = if is_raw { 4 } else { 6 };
            if message.first() == Some(&0) && message[same..] == request[same..] {
                return Ok(Fenced::after().wrapping_sub(begin));
            }
        }
    })
}

fn request(id: [u8; 2], number: u16) -> [u8; 8] {
    let mut request = [8, 0, 0, 0, id[0], id[1], 0, 0];
    request[6..].copy_from_slice(&number.to_be_bytes());
    let mut words = request.as_slice();
    let mut sum = 0_u32;
    let mut word = [0; 2];
    while words.read_exact(&mut word).is_ok() {
        sum += u32::from(u16::from_be_bytes(word));
    }
    let once = (sum & 0xffff) + (sum >> 16);
    request[2..4].copy_from_slice(&(!(once + (once >> 16)) as u16).to_be_bytes());
    request
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use crate::primitives::bench::Results;

    use super::*;

    /// Returns a socket that listens with this backlog and accepts nothing.
    fn mute(queue: i32) -> TcpListener {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // SAFETY: no pointers are passed. It changes the backlog.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), queue) }, 0);
        listener
    }

    #[test]
    fn nobody_is_waited_for_for_ever() {
        let begin = Instant::now();
        let mute = [mute(16), mute(0)];
        let [accepts, full] = mute.each_ref().map(|one| one.local_addr().unwrap());
        let own: Vec<Socket> = (0..2).map(|_| Socket::new(&full).unwrap()).collect();
        // A backlog of 0 holds one connection. The first packet of the next one is dropped, as in a
        // black hole.
        assert!(own[0].connect(&full).is_ok());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let why = own[1].connect(&full).unwrap_err();
                assert_eq!(why, "the other side does not answer in time");
            });
            scope.spawn(|| assert!(connect(full, ECHO).is_err()));
            scope.spawn(|| assert!(connect(accepts, ECHO).is_err()));
            scope.spawn(|| {
                let socket = Socket::new(&accepts).unwrap();
                socket.connect(&accepts).unwrap();
                let why = socket.asks().unwrap_err();
                assert_eq!(why, "the other side does not answer in time");
            });
        });
        assert!(begin.elapsed() < 4 * ANSWER);
    }

    #[test]
    fn datagrams_that_do_not_come_are_no_bandwidth() {
        // SAFETY: zero is a valid value.
        let mut results = unsafe { Box::<Results>::new_zeroed().assume_init() };
        let mut bench = Bench::new(&mut results, 1_000, 0);
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = udp(other.local_addr().unwrap()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in [1_u32, 31] {
                    let (_, from) = other.recv_from(&mut [0; 2_048]).unwrap();
                    other.send_to(&number.to_ne_bytes(), from).unwrap();
                }
            });
            let why = datagrams(&mut bench, "at=peer", &socket).unwrap_err();
            assert!(why.starts_with("31 of 32 datagrams"), "{why}");
        });
        assert!(results.all().is_empty());
    }

    #[test]
    fn an_echo_request_has_the_checksum_of_rfc_1071() {
        let request = request([0x12, 0x34], 1);
        let sum: u32 = request
            .chunks(2)
            .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
            .sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }
}
