//! Links that lose packets, and DHCP servers that are silent or send invalid answers.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tare_networks::TapNetwork;

use crate::clients::{echoes, has, network, run};
use crate::packets::{
    ETHERNET, GUEST, GUEST_IP, HOST_IP, ICMP, Random, UDP, echo_request, ipv4, ipv4_to, udp,
};
use crate::wire::{CARDS, End, LIMIT, Wire, from_guest};
use crate::{DNS, ECHO, HTTP, PING};

/// The number of packets in a thousand that are lost, duplicated, or delayed.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    pub lost: usize,
    pub twice: usize,
    pub late: usize,
}

/// A connection between a guest's wire and the TAP device of a network, through which its clients
/// reach the guest.
pub struct Cable {
    is_cut: Arc<AtomicBool>,
    carrier: Option<JoinHandle<()>>,
}

impl Cable {
    pub fn new(network: &TapNetwork, end: &End, faults: Faults) -> Self {
        let tap = network.hypervisor.within(open_tap).unwrap().unwrap();
        let socket = end.socket();
        let is_cut = Arc::<AtomicBool>::default();
        let until = Arc::clone(&is_cut);
        let carrier = thread::spawn(move || carry(&tap, &socket, faults, &until));
        Self {
            is_cut,
            carrier: Some(carrier),
        }
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.is_cut.store(true, Ordering::Relaxed);
        if let Some(carrier) = self.carrier.take() {
            let _ = carrier.join();
        }
    }
}

/// Attaches to the TAP device, for raw Ethernet packets without a header.
fn open_tap() -> io::Result<File> {
    const FLAGS: i16 = (libc::IFF_TAP | libc::IFF_NO_PI) as i16;
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    let mut request = [0_u8; 40];
    let name = TapNetwork::DEVICE;
    request[..name.len()].copy_from_slice(name.as_bytes());
    request[16..18].copy_from_slice(&FLAGS.to_ne_bytes());
    // SAFETY: the request is as long as the kernel's `ifreq`.
    match unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, request.as_mut_ptr()) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(device),
    }
}

fn carry(mut tap: &File, socket: &UnixDatagram, faults: Faults, is_cut: &AtomicBool) {
    /// The maximum delay of a packet.
    const LATE: Duration = Duration::from_millis(5);
    let mut random = Random(5);
    let mut late: Vec<(Instant, bool, Vec<u8>)> = Vec::new();
    let mut room = [0; 2048];
    // Packets without room on the other side are lost, as on any cable.
    let send = |to_guest: bool, packet: &[u8]| match to_guest {
        true => socket.send(packet).is_ok(),
        false => (&*tap).write(packet).is_ok(),
    };
    while !is_cut.load(Ordering::Relaxed) {
        let mut wait = [tap.as_raw_fd(), socket.as_raw_fd()].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        // SAFETY: there are two of them.
        unsafe { libc::poll(wait.as_mut_ptr(), 2, 5) };
        for to_guest in [true, false] {
            if wait[usize::from(!to_guest)].revents == 0 {
                continue;
            }
            let read = match to_guest {
                true => tap.read(&mut room),
                false => socket.recv(&mut room),
            };
            let Ok(bytes) = read else {
                continue;
            };
            let packet = &room[..bytes];
            let mut fate = random.below(1_000);
            let mut falls_to = |share: usize| {
                let does = fate < share;
                fate = fate.wrapping_sub(share);
                does
            };
            if falls_to(faults.lost) {
                continue;
            }
            let is_late = falls_to(faults.late);
            if is_late || falls_to(faults.twice) {
                late.push((Instant::now() + LATE, to_guest, packet.to_vec()));
            }
            if !is_late {
                send(to_guest, packet);
            }
        }
        late.retain(|(due, to_guest, packet)| {
            let is_due = *due <= Instant::now();
            if is_due {
                send(*to_guest, packet);
            }
            !is_due
        });
    }
}

#[test]
fn what_goes_over_a_bad_link_comes_whole() {
    const BAD: Faults = Faults {
        lost: 10,
        twice: 10,
        late: 20,
    };
    if !has("dig") || !has("curl") {
        return;
    }
    let Some(network) = network() else {
        return;
    };
    for image in [DNS, HTTP, ECHO] {
        let Some(wire) = Wire::up(image, CARDS[2], "", "ip6=2001:db8::2/64") else {
            return;
        };
        let _cable = Cable::new(&network, &wire.end, BAD);
        let run = |script: &str| run(Some(&network.clients), script);
        if image == DNS {
            for host in 0..100 {
                let told = run(&format!(
                    "dig @192.0.2.2 +short +tries=10 +time=1 host{host}.example A"
                ));
                assert!(told.ends_with(&format!("10.0.0.{host}\n")), "{told}");
            }
        } else if image == HTTP {
            let told = run("curl -sS -m 60 --retry 3 'http://192.0.2.2/metrics?[1-100]'");
            assert_eq!(told.matches("\nheap_allocated_bytes ").count(), 100);
        } else {
            let at = SocketAddr::from((GUEST_IP, 7));
            network.clients.within(|| echoes(at, 1 << 20)).unwrap();
        }
    }
}

const DISCOVER: u8 = 1;
const OFFER: u8 = 2;
const REQUEST: u8 = 3;
const AGREED: u8 = 5;
const REFUSED: u8 = 6;

/// Waits for a message of a DHCP client, and returns it.
fn asked(end: &End, kinds: &[u8]) -> Vec<u8> {
    let asks = |frame: &[u8]| {
        frame.len() > 285
            && frame[12..14] == [8, 0]
            && frame[36..38] == [0, 67]
            && frame[282..284] == [53, 1]
            && kinds.contains(&frame[284])
    };
    let frame = end.receive(LIMIT, asks);
    frame.unwrap_or_else(|| panic!("none of {kinds:?}"))[ETHERNET + 28..].to_vec()
}

/// Offers an address for this many seconds until the client requests it.
fn requested(end: &End, lease: u32) -> Vec<u8> {
    loop {
        let message = asked(end, &[DISCOVER, REQUEST]);
        if message[242] == REQUEST {
            return message;
        }
        send(end, &answer(&message, OFFER, lease, b""));
    }
}

/// Returns an answer to a DHCP client.
fn answer(to: &[u8], kind: u8, lease: u32, more: &[u8]) -> Vec<u8> {
    let mut message = vec![2, 1, 6, 0];
    message.extend(&to[4..8]);
    message.extend([0; 8]);
    message.extend(GUEST_IP);
    message.extend([0; 8]);
    message.extend(GUEST);
    message.extend([0; 10 + 64 + 128]);
    message.extend([99, 130, 83, 99, 53, 1, kind, 54, 4]);
    message.extend(HOST_IP);
    message.extend([1, 4, 255, 255, 255, 0, 51, 4]);
    message.extend(lease.to_be_bytes());
    message.extend(more);
    message.push(255);
    message
}

fn send(end: &End, message: &[u8]) {
    send_from(end, HOST_IP, message);
}

fn send_from(end: &End, from: [u8; 4], message: &[u8]) {
    let datagram = udp((67, 68), message);
    end.send(&ipv4_to(GUEST, (from, GUEST_IP), UDP, &datagram));
}

/// Assigns the guest its address for this many seconds, with more options, and waits until it has
/// it.
pub fn give_address(end: &End, lease: u32, more: &[u8]) {
    let request = requested(end, lease);
    send(end, &answer(&request, AGREED, lease, more));
    assert_eq!(end.arp(), Some(GUEST));
    end.announce();
}

#[test]
fn routers_and_servers_of_dhcp_that_are_no_hosts_are_passed_over() {
    let Some(wire) = Wire::new(PING, CARDS[0], "", "") else {
        return;
    };
    let end = &wire.end;
    let discover = asked(end, &[DISCOVER]);
    send_from(end, [0; 4], &answer(&discover, OFFER, 3_600, b""));
    let request = requested(end, 3_600);
    for router in [[0; 4], [255; 4], [224, 0, 0, 1]] {
        let option = [&[3, 4][..], &router].concat();
        send(end, &answer(&request, AGREED, 3_600, &option));
    }
    let was_taken = end.receive(Duration::from_secs(1), |frame| {
        from_guest(frame, UDP).is_some()
    });
    assert_eq!(was_taken, None);
    give_address(end, 3_600, &[3, 4, 192, 0, 2, 1]);
    // From behind the router, which gets the answer.
    let pings = (0..60).any(|number| {
        end.announce();
        end.send(&ipv4([10, 0, 0, 9], ICMP, &echo_request(8, number, 56)));
        let answers = |frame: &[u8]| from_guest(frame, ICMP).is_some();
        end.receive(Duration::from_secs(1), answers).is_some()
    });
    assert!(pings);
}

#[test]
fn a_renewal_that_says_only_what_changed_keeps_the_address_and_is_counted() {
    const LEASE: u32 = 6;
    let Some(wire) = Wire::new(PING, CARDS[0], "", "figures=9100") else {
        return;
    };
    let end = &wire.end;
    let counts = || {
        let figure = end.figures();
        ["renewed", "refused", "lost"]
            .map(|what| figure(&format!("network_leases_total{{what=\"{what}\"}}")))
    };
    give_address(end, LEASE, &[3, 4, 192, 0, 2, 1]);
    let renewal = asked(end, &[REQUEST]);
    assert_eq!(renewal[12..16], GUEST_IP);
    let mut thin = answer(&renewal, AGREED, LEASE, b"");
    // Without the mask of the network.
    assert_eq!(thin.drain(249..255).next(), Some(1));
    send(end, &thin);
    // Past the first lease, nothing was lost. The next renewal is refused.
    let renewal = asked(end, &[DISCOVER, REQUEST]);
    assert_eq!(renewal[242], REQUEST);
    assert_eq!(counts(), [1, 0, 0]);
    assert!(end.ping(1, 56, LIMIT).is_some());
    send(end, &answer(&renewal, REFUSED, 0, b""));
    give_address(end, 3_600, b"");
    assert_eq!(counts(), [1, 1, 1]);
}

#[test]
fn an_address_is_asked_for_again_when_the_link_comes_back() {
    for card in [CARDS[0], CARDS[2]] {
        let Some(wire) = Wire::new(PING, card, "", "") else {
            return;
        };
        let end = &wire.end;
        give_address(end, 3_600, b"");
        for round in 0..2 {
            wire.plug(false);
            thread::sleep(Duration::from_millis(300));
            wire.plug(true);
            give_address(end, 3_600, b"");
            let answer = end.ping(round, 56, LIMIT);
            assert!(answer.is_some(), "{card:?}");
        }
    }
}

#[test]
fn an_address_is_asked_for_until_a_server_gives_it_and_nonsense_is_passed_over() {
    let Some(wire) = Wire::new(PING, CARDS[0], "", "") else {
        return;
    };
    let end = &wire.end;
    // The first two, sent when the link comes up, are not answered.
    asked(end, &[DISCOVER]);
    asked(end, &[DISCOVER]);
    let again = asked(end, &[DISCOVER]);
    let mut random = Random(7);
    let mut other = again.clone();
    other[4] ^= 1;
    send(end, &answer(&other, OFFER, 3600, b""));
    send(end, &answer(&again, OFFER, 3600, &[3, 255]));
    send(end, &answer(&again, REFUSED, 0, b""));
    send(
        end,
        &answer(
            &again,
            OFFER,
            3600,
            &[[3_u8, 250].as_slice(), &[1; 250]].concat().repeat(4),
        ),
    );
    for _ in 0..500 {
        let mut message = answer(&again, OFFER, random.next() as u32, b"");
        // Of another transaction, so that all of them are invalid.
        message[4] ^= 1;
        for _ in 0..8 {
            let place = 8 + random.below(message.len() - 8);
            message[place] = random.next() as u8;
        }
        message.truncate(1 + random.below(message.len()));
        send(end, &message);
    }
    // It accepts the valid offer. After a refusal it requests again.
    let refused = requested(end, 3600);
    send(end, &answer(&refused, REFUSED, 0, b""));
    let request = loop {
        // It may have sent the same request twice: the refusal among the nonsense ended one, too.
        let request = requested(end, 3600);
        if request[4..8] != refused[4..8] {
            break request;
        }
    };
    let mut other = request.clone();
    other[4] ^= 1;
    send(end, &answer(&other, AGREED, 3600, b""));
    send(end, &answer(&other, REFUSED, 3600, b""));
    send(end, &answer(&request, AGREED, 3600, b""));
    wire.lines.find("answering on 192.0.2.2/24").unwrap();
    end.announce();
    assert!(end.ping(1, 56, LIMIT).is_some());
}

#[test]
fn a_lease_of_no_time_does_not_keep_the_guest_busy() {
    let Some(wire) = Wire::new(PING, CARDS[0], "", "") else {
        return;
    };
    let end = &wire.end;
    send(end, &answer(&requested(end, 0), AGREED, 0, b""));
    let before = wire.ticks();
    end.receive(Duration::from_secs(2), |_| false);
    let busy = wire.ticks() - before;
    assert!(busy <= 100, "{busy} ticks of 10 ms in 2 s");
    // A valid answer is still accepted.
    send(end, &answer(&requested(end, 3600), AGREED, 3600, b""));
    assert_eq!(end.arp(), Some(GUEST));
    assert!(end.ping(1, 56, LIMIT).is_some());
}
