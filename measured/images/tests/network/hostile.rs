//! Hostile clients, and clients that vanish.

use std::collections::HashSet;
use std::ffi::CString;
use std::io::{self, Seek};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{array, env, fs, iter, mem, panic, thread};

use tare_networks::TapNetwork;

use crate::clients::{has, on_tap, run};
use crate::packets::{
    ACK, ETHERNET, GUEST, GUEST_IP6, HOST, HOST_IP, HOST_IP6, ICMP6, RESET, Random, SYN, TCP, UDP,
    arp, ipv4, ipv4_to, ipv6_from, query, repair, tcp, udp,
};
use crate::wire::{AGAIN, CARDS, End, FIGURES, LIMIT, Peer, Wire, figures, from_guest, wait_for};
use crate::{DNS, ECHO};

/// The default number of random packets. A debug build is slower.
const PACKETS: u64 = if cfg!(debug_assertions) {
    150_000
} else {
    1_000_000
};
/// The default number of connection attempts in a flood.
const FLOOD: u64 = 100_000;

/// Returns the number of packets from the environment, or this default.
fn packets(usual: u64) -> u64 {
    env::var("TARE_PACKETS").map_or(usual, |text| text.parse().unwrap())
}

/// The seed of the packets.
const SEED: u64 = 0x7a5e;

/// Checks that a guest loses no memory.
struct Memory([u64; 2]);

impl Memory {
    fn of(figure: impl Fn(&str) -> u64) -> Self {
        Self(["heap_allocated_bytes", "memory_free_bytes"].map(figure))
    }

    fn assert_none_is_lost(&self, figure: impl Fn(&str) -> u64) {
        let [allocated, free] = self.0;
        let Self([now_allocated, now_free]) = Self::of(figure);
        assert!(
            now_allocated <= allocated,
            "{now_allocated} bytes after {allocated}"
        );
        assert!(now_free >= free, "{now_free} free bytes after {free}");
    }
}

/// Queries host 17, by UDP and TCP.
fn assert_names_are_answered(end: &End) {
    let question = query(99, "host17");
    let answer = end.ask(53, &question).expect("an answer by UDP");
    assert!(answer.ends_with(&[10, 0, 0, 17]), "{answer:?}");
    let framed = [&(question.len() as u16).to_be_bytes()[..], &question].concat();
    let answer = end.ask_by_tcp(53, &framed).expect("an answer by TCP");
    assert!(answer.ends_with(&[10, 0, 0, 17]), "{answer:?}");
}

/// Queries host 17 with dig, by UDP and TCP.
fn assert_dig_is_answered(network: &TapNetwork) {
    for words in ["", "+tcp"] {
        let to = TapNetwork::GUEST.0;
        let dig = format!("dig @{to} +time=2 +tries=20 +short {words} host17.example A");
        let text = run(Some(&network.clients), &dig);
        // Before that it may report a retry: the guest has the client's address from a forged
        // packet.
        assert!(text.ends_with("10.0.0.17\n"), "{text}");
    }
}

/// Opens a socket for the frames of a device: those of one protocol that come, and any to send.
fn raw(device: &str, protocol: i32) -> OwnedFd {
    let protocol = (protocol as u16).to_be();
    // SAFETY: takes no pointers.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, protocol.into()) };
    assert!(socket >= 0, "{}", io::Error::last_os_error());
    // SAFETY: a new descriptor.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let name = CString::new(device).unwrap();
    // SAFETY: all of its fields are numbers.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol;
    // SAFETY: the name is NUL-terminated.
    address.sll_ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) } as i32;
    let (start, bytes) = ((&raw const address).cast(), size_of_val(&address) as u32);
    // SAFETY: the address has that length.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), start, bytes) };
    assert_eq!(bound, 0, "{}", io::Error::last_os_error());
    socket
}

/// A socket that sends frames to a guest through its TAP device, past the bridge, which drops
/// invalid packets.
struct Tap {
    socket: OwnedFd,
    /// The counters of all devices in the network.
    counts: fs::File,
    sent: u64,
}

impl Tap {
    const AT_ONCE: u64 = 1_000;

    fn new(network: &TapNetwork) -> Self {
        let device = TapNetwork::DEVICE;
        // There must be room for packets of clients as well.
        let room = format!("ip link set dev {device} txqueuelen 10000");
        run(Some(&network.hypervisor), &room);
        let open = || {
            let socket = raw(device, 0);
            (socket, fs::File::open("/proc/thread-self/net/dev").unwrap())
        };
        let (socket, counts) = network.hypervisor.within(open).unwrap();
        let mut tap = Self {
            socket,
            counts,
            sent: 0,
        };
        tap.sent = tap.taken();
        tap
    }

    /// Returns the number of frames that QEMU has read from the device, or that were dropped there.
    fn taken(&mut self) -> u64 {
        self.counts.rewind().unwrap();
        let text = io::read_to_string(&self.counts).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(TapNetwork::DEVICE));
        let words: Vec<&str> = line.unwrap().split_ascii_whitespace().collect();
        // After a colon and eight fields on received packets: bytes, packets, errors, drops.
        [10, 12]
            .map(|place| words[place].parse::<u64>().unwrap())
            .iter()
            .sum()
    }

    /// Sends a frame as soon as there is room for it.
    fn send(&mut self, frame: &[u8]) {
        if self.sent.is_multiple_of(Self::AT_ONCE) {
            wait_for(|| (self.taken() >= self.sent).then_some(()));
        }
        self.sent += 1;
        let (socket, start) = (self.socket.as_raw_fd(), frame.as_ptr().cast());
        // SAFETY: the frame has that length.
        let sent = unsafe { libc::send(socket, start, frame.len(), 0) };
        assert_eq!(sent, frame.len() as isize, "{}", io::Error::last_os_error());
    }
}

#[test]
fn random_packets_from_tap_harm_nothing() {
    let count = packets(PACKETS);
    if !has("dig") {
        return;
    }
    let Some((network, _guest)) = on_tap(DNS) else {
        return;
    };
    // As the frames say.
    run(
        Some(&network.clients),
        "ip link set dev eth0 address 02:00:00:00:00:01",
    );
    let mut tap = Tap::new(&network);
    // Each attempt has a new socket, which receives no earlier answer.
    let attempt = || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.set_read_timeout(Some(AGAIN)).unwrap();
        socket.send_to(b"?", (TapNetwork::GUEST.0, FIGURES)).ok()?;
        let mut room = [0; 2048];
        let bytes = socket.recv(&mut room).ok()?;
        Some(figures(room[..bytes].to_vec()))
    };
    let ask = || network.clients.within(|| wait_for(attempt)).unwrap();
    assert_dig_is_answered(&network);
    let before = Memory::of(ask());
    let names = [
        "network_receive_packets_total",
        "executor_wake_ups_total",
        "executor_passes_total",
        "executor_spins_total",
    ];
    let at_first = names.map(ask());
    // Only visible on failure.
    println!("{count} packets of the seed {SEED:#x}");
    let mut random = Random(SEED);
    for _ in 0..count {
        tap.send(&random.frame());
    }
    assert_dig_is_answered(&network);
    let now = ask();
    before.assert_none_is_lost(&now);
    let [received, wake_ups, passes, spins] =
        array::from_fn(|place| now(names[place]) - at_first[place]);
    let told = format!("{received} packets, {wake_ups} wake-ups, {passes} passes, {spins} spins");
    println!("{told}");
    // Hardly any is dropped.
    assert!(received >= count / 100 * 99, "{told}");
    assert!(spins <= count / 100, "{told}");
    // Each wake-up makes the stack run, and perhaps a service and the stack again; so may a packet
    // that comes in between.
    assert!(passes <= received + 4 * wake_ups, "{told}");
}

/// Returns a packet from another hardware address than that of the sender that it names: a
/// query, a TCP segment, or a claim of an address in ARP or NDP.
fn forged(random: &mut Random, victims: ([u8; 4], [u8; 16])) -> Vec<u8> {
    let mut frame = match random.below(8) {
        0 => forged_arp(random, victims.0),
        1 => forged_ndp(random, victims.1),
        kind => forged_query(random, victims, kind == 2),
    };
    let any = random.next() as u8;
    let sender = [HOST, [2, 0, 0, 0, 1, any], [3, 0, 0, 0, 0, any], [0; 6]][random.below(4)];
    frame[6..12].copy_from_slice(&sender);
    frame
}

/// Returns a query or a segment with any field of the headers as it should be or not.
fn forged_query(
    random: &mut Random,
    (victim, victim_6): ([u8; 4], [u8; 16]),
    is_tcp: bool,
) -> Vec<u8> {
    let any = random.next().to_be_bytes();
    let ports = (1_024 + u16::from(any[1]), [53, 53, 53, 54][random.below(4)]);
    let (protocol, payload) = if is_tcp {
        let flags = [SYN, SYN, ACK, RESET][random.below(4)];
        (TCP, tcp(ports, (random.next() as u32, 0), flags, b""))
    } else {
        (UDP, udp(ports, &query(any[0].into(), "host1")))
    };
    let hardware = [
        GUEST,
        GUEST,
        GUEST,
        GUEST,
        [0xff; 6],
        [2, 0, 0, 0, 0, any[2]],
    ][random.below(6)];
    let is_4 = random.below(3) > 0;
    let mut frame = if is_4 {
        let near = [192, 0, 2, any[3]];
        let from = [victim, victim, near, near, any[4..].try_into().unwrap()][random.below(5)];
        let to = [[192, 0, 2, 2], [192, 0, 2, 2], [192, 0, 2, 255], near][random.below(4)];
        ipv4_to(hardware, (from, to), protocol, &payload)
    } else {
        let mut near = victim_6;
        near[15] = any[3];
        let from = [victim_6, victim_6, near][random.below(3)];
        let to = [GUEST_IP6, GUEST_IP6, near][random.below(3)];
        let mut frame = ipv6_from((from, to), protocol, &payload);
        frame[..6].copy_from_slice(&hardware);
        frame
    };
    // A fragment, another length, version or protocol, or a wrong checksum.
    if random.below(2) == 0 {
        // The header of IP, and as much of the next one as UDP has.
        let headers = if is_4 { 20 + 8 } else { 40 + 8 };
        let place = ETHERNET + random.below(headers);
        frame[place] = [any[5], 0x20, 0, frame[place] ^ 1][random.below(4)];
        if random.below(2) == 0 {
            repair(&mut frame);
        }
    }
    frame
}

/// Returns a claim in ARP: a right one of another address, or of the victim's one that no host
/// believes. A right one of that moves it, as the protocol has it.
fn forged_arp(random: &mut Random, victim: [u8; 4]) -> Vec<u8> {
    let any = random.next() as u8;
    let operation = 1 + random.below(2) as u8;
    if random.below(4) == 0 {
        // Of fewer hosts than the guest can know at once.
        return arp(GUEST, operation, [192, 0, 2, 100 + any % 8]);
    }
    let mut frame = arp(GUEST, operation, victim);
    let (place, value) = [
        // The kinds of addresses, their lengths, the operation.
        (0, any | 2),
        (1, any & !1),
        (2, any & !8),
        (4, any & !6),
        (5, any & !4),
        (6, any | 1),
        // The sender: a group, none, the guest; the target.
        (8, any | 1),
        (27, any & !2),
    ][random.below(8)];
    frame[ETHERNET + place] = value;
    match random.below(8) {
        0 => frame[ETHERNET + 8..][..6].fill(0),
        1 => frame[ETHERNET + 8..][..6].copy_from_slice(&GUEST),
        _ => {}
    }
    frame
}

/// Returns such a claim in NDP: an advertisement, or a solicitation with the sender's address.
fn forged_ndp(random: &mut Random, victim: [u8; 16]) -> Vec<u8> {
    let any = random.next() as u8;
    let is_right = random.below(4) == 0;
    let mut from = victim;
    if is_right {
        from[15] = 100 + any % 8;
    }
    let (kind, target, option) = [(136, from, 2), (135, GUEST_IP6, 1)][random.below(2)];
    let mut icmp = vec![kind, 0, 0, 0, if kind == 136 { 0x20 } else { 0 }, 0, 0, 0];
    icmp.extend(target);
    icmp.extend([option, 1]);
    icmp.extend(HOST);
    let mut frame = ipv6_from((from, GUEST_IP6), ICMP6, &icmp);
    if is_right {
        return frame;
    }
    let icmp = ETHERNET + 40;
    let (place, value) = [
        // Version, protocol, hop limit, destination.
        (ETHERNET, 0x40 | any & 15),
        (ETHERNET + 6, UDP),
        (ETHERNET + 7, any & 0x7f),
        (ETHERNET + 39, any & !2),
        // The type, the length of the option, a group's address in it.
        (icmp, 2),
        (icmp + 25, [0, 2, 255][usize::from(any) % 3]),
        (icmp + 26, any | 1),
    ][random.below(7)];
    frame[place] = value;
    repair(&mut frame);
    // Or nothing but a wrong checksum.
    if random.below(4) == 0 {
        frame[icmp + 2] ^= 1 << (any % 8);
    }
    frame
}

#[test]
fn what_forged_packets_say_redirects_nobody_s_traffic() {
    let count = packets(PACKETS);
    let Some((network, _guest)) = on_tap(DNS) else {
        return;
    };
    // `/sys` shows the devices of the namespace in which it was mounted.
    let link = run(Some(&network.clients), "ip -o link show dev eth0");
    let (_, address) = link.split_once("link/ether ").unwrap();
    let victim: Vec<u8> = address[..17]
        .split(':')
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect();
    assert_ne!(victim, HOST);
    let question = query(7, "host17");
    let asks = |guest: IpAddr| {
        let attempt = || {
            let any: IpAddr = match guest {
                IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let socket = UdpSocket::bind((any, 0)).unwrap();
            socket.set_read_timeout(Some(AGAIN)).unwrap();
            socket.send_to(&question, (guest, 53)).ok()?;
            socket.recv(&mut [0; 512]).ok().map(drop)
        };
        network.clients.within(|| wait_for(attempt)).unwrap();
    };
    let (guest, guest_6) = TapNetwork::GUEST;
    let both = [IpAddr::V4(guest), IpAddr::V6(guest_6)];
    both.into_iter().for_each(asks);
    let seen = || raw(TapNetwork::DEVICE, libc::ETH_P_ALL);
    let seen = network.hypervisor.within(seen).unwrap();
    let mut tap = Tap::new(&network);
    let mut random = Random(SEED);
    let (mut answers, mut room) = (0_u64, [0; 2_048]);
    for number in 0..count {
        tap.send(&forged(&mut random, (HOST_IP, HOST_IP6)));
        if number % (count / 8) == 0 {
            both.into_iter().for_each(asks);
        }
        loop {
            let (start, bytes) = (room.as_mut_ptr().cast(), room.len());
            // SAFETY: there is room for that many bytes.
            let bytes = unsafe { libc::recv(seen.as_raw_fd(), start, bytes, libc::MSG_DONTWAIT) };
            let Ok(bytes) = usize::try_from(bytes) else {
                break;
            };
            let frame = &room[..bytes];
            if frame.len() < 54 || frame[6..12] != GUEST {
                continue;
            }
            let to_victim = match frame[12..14] {
                [0x08, 0x00] => frame[30..34] == HOST_IP,
                [0x86, 0xdd] => frame[38..54] == HOST_IP6,
                _ => false,
            };
            answers += u64::from(to_victim);
            assert!(!to_victim || frame[..6] == victim, "{number}: {frame:x?}");
        }
    }
    both.into_iter().for_each(asks);
    assert!(answers > 100, "{answers} of {count}");
}

#[test]
fn clients_are_served_during_a_flood_of_beginnings() {
    const CLIENTS: u32 = 10;
    const BEGINNINGS: u32 = 400;
    /// Four times as many as the image has places.
    const ANSWERED: usize = 64;
    let Some(wire) = Wire::up(DNS, CARDS[2], "", "gateway=192.0.2.1") else {
        return;
    };
    let end = &wire.end;
    assert_names_are_answered(end);
    let (begun, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let number = begun.fetch_add(1, Ordering::Relaxed);
                let from = (0x0a00_0001 + number).to_be_bytes();
                end.send(&ipv4(from, TCP, &tcp((1_025, 53), (number, 0), SYN, b"")));
                thread::sleep(Duration::from_millis(10));
            }
        });
        let served = panic::catch_unwind(panic::AssertUnwindSafe(|| {
            let mut answered = HashSet::new();
            while begun.load(Ordering::Relaxed) < BEGINNINGS {
                let answers =
                    |frame: &[u8]| from_guest(frame, TCP).is_some_and(|tcp| tcp[13] == SYN | ACK);
                let answer = end.receive(Duration::from_millis(100), answers);
                answered.extend(answer.map(|frame| frame[30..34].to_vec()));
            }
            let count = answered.len();
            assert!(count >= ANSWERED, "{count} of {BEGINNINGS} are answered");
            (0..CLIENTS).for_each(|_| assert_names_are_answered(end));
        }));
        is_over.store(true, Ordering::Relaxed);
        served.unwrap_or_else(|failed| panic::resume_unwind(failed));
    });
}

#[test]
fn a_query_longer_than_any_answer_is_answered() {
    let Some(wire) = Wire::up(DNS, CARDS[2], "", "") else {
        return;
    };
    let mut question = query(7, "host17");
    // With padding (RFC 7830).
    question[11] = 1;
    question.extend([0, 0, 41, 4, 208, 0, 0, 0, 0]);
    question.extend([&1_304_u16.to_be_bytes()[..], &[0, 12, 5, 20], &[0; 1_300]].concat());
    let answer = wire.end.ask(53, &question).expect("an answer");
    let at = answer.len() - 11;
    assert!(answer[..at].ends_with(&[10, 0, 0, 17]), "{answer:?}");
}

#[test]
fn every_query_of_a_flood_is_answered_or_counted() {
    const QUERIES: u16 = 20_000;
    for card in [CARDS[0], CARDS[2]] {
        // More room on the card than in the socket.
        let Some(wire) = Wire::up(DNS, card, "", "ring=256") else {
            return;
        };
        let end = &wire.end;
        assert_names_are_answered(end);
        let dropped = |figure: &dyn Fn(&str) -> u64| {
            ["card", "filter", "room", "route", "peer"]
                .map(|by| figure(&format!("network_dropped_packets_total{{by=\"{by}\"}}")))
                .iter()
                .sum::<u64>()
        };
        let before = dropped(&end.figures());
        let query = |number| ipv4(HOST_IP, UDP, &udp((4_242, 53), &query(number, "host17")));
        let answered = end.flood((0..QUERIES).map(query));
        let lost = dropped(&end.figures()) - before;
        assert_eq!(answered + lost, QUERIES.into(), "{card:?}: {lost} lost");
    }
}

#[test]
fn floods_and_half_open_connections_cost_no_memory_and_names_are_answered_after_them() {
    const HALF_OPEN: u32 = 10_000;
    let Some(wire) = Wire::up(DNS, CARDS[2], "", "gateway=192.0.2.1") else {
        return;
    };
    let end = &wire.end;
    assert_names_are_answered(end);
    let before = Memory::of(end.figures());
    let mut random = Random(SEED);
    let mut begin = |from: [u8; 4]| {
        let ports = (random.next() as u16 | 1, 53);
        ipv4(from, TCP, &tcp(ports, (random.next() as u32, 0), SYN, b""))
    };
    // From anywhere behind the router, which knows all of them.
    let begins = 0x0a00_0000..0x0a00_0000 + packets(FLOOD) as u32;
    end.flood(begins.map(|from| begin(from.to_be_bytes())));
    assert_names_are_answered(end);
    let refused = end.figures()("network_dropped_packets_total{by=\"connections\"}");
    assert!(refused > 0);
    // From neighbours that do not exist.
    end.flood((0..HALF_OPEN).map(|number| begin([192, 0, 2, 3 + (number % 250) as u8])));
    assert_names_are_answered(end);
    // From one that exists, and is silent after the handshake.
    assert!(end.connect(HOST_IP, (9_999, 53), LIMIT).is_some());
    for number in 0..100 {
        end.connect(HOST_IP, (10_000 + number, 53), Duration::from_millis(50));
    }
    assert_names_are_answered(end);
    before.assert_none_is_lost(end.figures());
}

#[test]
fn peers_that_vanish_in_the_middle_of_a_connection_free_their_places() {
    /// As many as the image has places.
    const PEERS: u8 = 16;
    let Some(wire) = Wire::up(ECHO, CARDS[2], "", "") else {
        return;
    };
    let end = &wire.end;
    assert!(end.ask_by_tcp(7, b"first").is_some());
    let before = Memory::of(end.figures());
    for number in 0..PEERS {
        let address = [192, 0, 2, 10 + number];
        end.send(&arp(GUEST, 1, address));
        let mut peer = end
            .connect(address, (1_234, 7), LIMIT)
            .expect("there is a place");
        // Answers are not acknowledged.
        if number % 2 == 0 {
            end.send(&peer.packet(ACK, b"and back"));
        }
    }
    assert!(
        end.connect(HOST_IP, (999, 7), Duration::from_secs(1))
            .is_none()
    );
    assert_eq!(
        end.ask(7, b"a datagram").as_deref(),
        Some(&b"a datagram"[..])
    );
    for _ in 0..PEERS {
        let answer = end.ask_by_tcp(7, b"and back");
        assert_eq!(answer.as_deref(), Some(&b"and back"[..]));
    }
    before.assert_none_is_lost(end.figures());
}

#[test]
fn a_connection_that_ends_as_it_begins_leaves_its_place() {
    let Some(wire) = Wire::up(ECHO, CARDS[2], "", "") else {
        return;
    };
    let end = &wire.end;
    end.announce();
    let mut answers = 0;
    for number in 0..200 {
        let ports = (2_000 + number, 7);
        let part = |numbers, flags| ipv4(HOST_IP, TCP, &tcp(ports, numbers, flags, b""));
        end.send(&part((1_000, 0), SYN));
        let is_own = |frame: &[u8]| frame.len() >= 54 && frame[36..38] == ports.0.to_be_bytes();
        let Some(frame) = end.receive(Duration::from_secs(1), is_own) else {
            continue;
        };
        answers += 1;
        let got = u32::from_be_bytes(frame[38..42].try_into().unwrap()).wrapping_add(1);
        // After a packet that keeps the guest busy for a moment, so that both are found at once.
        let rest = [part((1_001, got), ACK), part((1_001, got), RESET | ACK)];
        end.send_hastily(iter::repeat_n(arp([0xff; 6], 1, HOST_IP), 4).chain(rest));
    }
    assert!(answers > 100, "{answers}");
    let answer = end.ask_by_tcp(7, b"still there");
    assert_eq!(answer.as_deref(), Some(&b"still there"[..]));
}

#[test]
fn who_guesses_a_number_neither_ends_nor_begins_a_connection() {
    let Some(wire) = Wire::up(ECHO, CARDS[2], "", "") else {
        return;
    };
    let end = &wire.end;
    end.announce();
    let mut peer = end.connect(HOST_IP, (5_000, 7), LIMIT).unwrap();
    let echoes = |peer: &mut Peer, text: &[u8; 2]| {
        end.send(&peer.packet(ACK, text));
        let answer = |frame: &[u8]| peer.is_own(frame) && frame.ends_with(text);
        let frame = end.receive(LIMIT, answer).expect("an echo");
        assert!(frame[47] & RESET == 0);
        peer.numbers.1 = u32::from_be_bytes(frame[38..42].try_into().unwrap()).wrapping_add(2);
        end.send(&peer.packet(ACK, b""));
    };
    echoes(&mut peer, b"a1");
    for (number, flags) in [
        (1, RESET),
        (100, RESET | ACK),
        (8_000, RESET),
        (0, SYN),
        (50, SYN),
    ] {
        // Each gets an acknowledgement, one a second.
        let begun = Instant::now();
        let challenge = loop {
            assert!(begun.elapsed() < LIMIT, "{number} {flags}");
            let mut forged = peer.clone();
            forged.numbers.0 += number;
            end.send(&forged.packet(flags, b""));
            let is_own = |frame: &[u8]| peer.is_own(frame);
            if let Some(frame) = end.receive(Duration::from_millis(300), is_own) {
                break frame;
            }
        };
        assert_eq!(challenge[47], ACK, "{number} {flags}");
        let expected = u32::from_be_bytes(challenge[42..46].try_into().unwrap());
        assert_eq!(expected, peer.numbers.0);
        echoes(&mut peer, b"b2");
    }
    // The right number ends it, and the same peer may begin again.
    end.send(&peer.packet(RESET, b""));
    end.send(&peer.packet(ACK, b"c3"));
    let reset = |frame: &[u8]| peer.is_own(frame) && frame[47] & RESET != 0;
    assert!(end.receive(LIMIT, reset).is_some());
    let mut peer = end.connect(HOST_IP, (5_000, 7), LIMIT).unwrap();
    echoes(&mut peer, b"d4");
}

#[test]
fn a_segment_size_of_one_byte_is_not_believed() {
    let Some(wire) = Wire::up(ECHO, CARDS[2], "", "") else {
        return;
    };
    let end = &wire.end;
    end.announce();
    let mut begins = tcp((6_000, 7), (1_000, 0), SYN, &[2, 4, 0, 1]);
    begins[12] = 6 << 4;
    let peer = Peer::new(HOST_IP, (6_000, 7));
    let mut answered = None;
    for _ in 0..20 {
        end.send(&ipv4(HOST_IP, TCP, &begins));
        let begun = |frame: &[u8]| peer.is_own(frame) && frame[47] == SYN | ACK;
        answered = end.receive(AGAIN, begun);
        if answered.is_some() {
            break;
        }
    }
    let number = u32::from_be_bytes(answered.unwrap()[38..42].try_into().unwrap());
    let numbers = (1_001, number.wrapping_add(1));
    end.send(&ipv4(
        HOST_IP,
        TCP,
        &tcp((6_000, 7), numbers, ACK, &[7; 200]),
    ));
    let echo = |frame: &[u8]| peer.is_own(frame) && frame.len() > 54;
    let echo = end.receive(LIMIT, echo).expect("an echo");
    assert_eq!(echo.len(), 54 + 200);
}
