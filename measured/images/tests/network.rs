//! Images on the network: cards on PCI and in memory, packets sent and received one by one.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use common::{Guest, Running};

const PING: &str = env!("CARGO_BIN_EXE_ping");

/// The machine types with the way in which each has its card.
const CARDS: [(&str, &str); 4] = [
    ("microvm,acpi=off", "virtio-net-device"),
    ("microvm,pcie=on", "virtio-net-pci"),
    ("q35", "virtio-net-pci"),
    ("pc", "virtio-net-pci"),
];

/// The address of the host in the frames of a test.
const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(10);
const GUEST: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];
const HOST_IP: [u8; 4] = [192, 0, 2, 1];
const GUEST_IP: [u8; 4] = [192, 0, 2, 2];

/// The other end of the guest's wire: frames as datagrams.
struct Wire {
    socket: UnixDatagram,
    folder: PathBuf,
    guest: Running,
    lines: BufReader<process::ChildStdout>,
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Wire {
    /// Boots the image with a wire, and waits until it says that its network is up.
    fn new((machine, card): (&'static str, &str), options: &str, words: &str) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("tare-wire-{}-{number}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (ours, theirs) = (folder.join("host"), folder.join("guest"));
        let socket = UnixDatagram::bind(&ours).unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        let wire = format!(
            "dgram,id=wire,local.type=unix,local.path={},remote.type=unix,remote.path={}",
            theirs.display(),
            ours.display()
        );
        let mut guest = Guest {
            machine,
            arguments: ["-netdev", &wire, "-device"]
                .map(str::to_owned)
                .into_iter()
                .chain([format!("{card},netdev=wire{options}")])
                .chain(["-global", "virtio-mmio.force-legacy=false"].map(str::to_owned))
                .collect(),
            ..Guest::new(PING, &format!("ip=192.0.2.2/24 {words}"))
        }
        .start()?;
        let mut wire = Self {
            lines: BufReader::new(guest.console()),
            guest,
            folder,
            socket,
        };
        wire.line("network: up 192.0.2.2/24");
        wire.socket.connect(&theirs).unwrap();
        Some(wire)
    }

    /// Waits for a line that starts so.
    fn line(&mut self, start: &str) -> String {
        loop {
            let mut line = String::new();
            let bytes = self.lines.read_line(&mut line).unwrap();
            assert_ne!(bytes, 0, "the guest has ended before it said '{start}'");
            if line.starts_with(start) {
                return line;
            }
        }
    }

    /// Asks for the guest's hardware address.
    fn arp(&self) -> Option<[u8; 6]> {
        let mut frame = frame([0xff; 6], 0x0806);
        frame.extend([0, 1, 8, 0, 6, 4, 0, 1]);
        frame.extend(HOST.iter().chain(&HOST_IP).chain(&[0; 6]).chain(&GUEST_IP));
        self.socket.send(&frame).unwrap();
        let answer = self.receive(|frame| frame.get(12..14) == Some(&[8, 6]) && frame[21] == 2)?;
        answer[22..28].try_into().ok()
    }

    /// Sends a ping of so many bytes, and returns how long the answer took. None if none comes within ten seconds.
    fn ping(&self, sequence: u16, bytes: usize) -> Option<Duration> {
        let start = Instant::now();
        self.socket.send(&echo_request(sequence, bytes)).unwrap();
        let sequence = sequence.to_be_bytes();
        let answer = self.receive(|frame| is_echo_reply(frame) && frame[40..42] == sequence)?;
        assert_eq!(answer.len(), 42 + bytes);
        assert_eq!(checksum(&answer[34..]), 0);
        Some(start.elapsed())
    }

    fn receive(&self, is_wanted: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        let mut room = [0; 2048];
        loop {
            let bytes = self.socket.recv(&mut room).ok()?;
            // Answers the guest's own question, which it asks before it sends us something.
            if is_wanted(&room[..bytes]) {
                return Some(room[..bytes].to_vec());
            }
        }
    }

    /// Takes all that still comes.
    fn drain(&self) {
        let wait = |limit| self.socket.set_read_timeout(Some(limit)).unwrap();
        wait(Duration::from_millis(300));
        while self.receive(|_| true).is_some() {}
        wait(LIMIT);
    }

    /// Answers the guest's question for the host's hardware address by sending it one's own.
    fn announce(&self) {
        let mut frame = frame(GUEST, 0x0806);
        frame.extend([0, 1, 8, 0, 6, 4, 0, 2]);
        frame.extend(HOST.iter().chain(&HOST_IP).chain(&GUEST).chain(&GUEST_IP));
        self.socket.send(&frame).unwrap();
    }

    /// Returns the CPU time of QEMU, in ticks of 10 ms.
    fn ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.guest.id())).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let fields = fields.split_ascii_whitespace().skip(11).take(2);
        fields.map(|field| field.parse::<u64>().unwrap()).sum()
    }
}

fn frame(to: [u8; 6], kind: u16) -> Vec<u8> {
    to.into_iter()
        .chain(HOST)
        .chain(kind.to_be_bytes())
        .collect()
}

fn echo_request(sequence: u16, bytes: usize) -> Vec<u8> {
    let mut icmp = vec![8, 0, 0, 0, 0x12, 0x34];
    icmp.extend(sequence.to_be_bytes());
    icmp.extend((0..bytes).map(|byte| byte as u8));
    let sum = checksum(&icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    let length = (20 + icmp.len()) as u16;
    let mut ip = vec![0x45, 0];
    ip.extend(length.to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, 1, 0, 0]);
    ip.extend(HOST_IP.iter().chain(&GUEST_IP));
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut all = frame(GUEST, 0x0800);
    all.extend(ip);
    all.extend(icmp);
    all
}

fn is_echo_reply(frame: &[u8]) -> bool {
    frame.len() >= 42 && frame[12..14] == [8, 0] && frame[23] == 1 && frame[34] == 0
}

/// The internet checksum; 0 for what holds its own.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| {
        u32::from(u16::from_be_bytes([
            pair[0],
            pair.get(1).copied().unwrap_or(0),
        ]))
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[test]
fn pings_of_all_sizes_are_answered_on_all_machines_and_an_idle_guest_costs_nothing() {
    for card in CARDS {
        let Some(wire) = Wire::new(card, "", "") else {
            return;
        };
        assert_eq!(wire.arp(), Some(GUEST), "{card:?}");
        wire.announce();
        for sequence in 0..200 {
            let bytes = usize::from(sequence) * 1472 / 199;
            assert!(wire.ping(sequence, bytes).is_some(), "{card:?} {bytes}");
        }
        // One that spins takes 300.
        let before = wire.ticks();
        thread::sleep(Duration::from_secs(3));
        let idle = wire.ticks() - before;
        assert!(idle <= 30, "{card:?}: {idle} ticks of 10 ms in 3 s");
    }
}

#[test]
fn a_burst_into_a_ring_of_four_is_answered_and_the_full_ring_waits() {
    for card in CARDS {
        for events in [",event_idx=on", ",event_idx=off"] {
            let Some(wire) = Wire::new(card, events, "ring=4") else {
                return;
            };
            assert_eq!(wire.arp(), Some(GUEST), "{card:?}");
            wire.announce();
            // What does not fit may be lost, but not what comes after it.
            for _ in 0..5 {
                wire.socket.set_nonblocking(true).unwrap();
                for sequence in 0..200 {
                    let _ = wire.socket.send(&echo_request(sequence, 1000));
                }
                wire.socket.set_nonblocking(false).unwrap();
                wire.drain();
                assert!(wire.ping(1000, 10).is_some(), "{card:?}{events}");
            }
        }
    }
}

#[test]
fn a_computation_that_does_not_yield_keeps_pings_waiting() {
    let median = |words: &str| -> Option<Duration> {
        let wire = Wire::new(CARDS[2], "", words)?;
        assert_eq!(wire.arp(), Some(GUEST));
        wire.announce();
        // Not all between two computations.
        let pause = Duration::from_millis(100);
        let pings = (0..9).map(|sequence| {
            thread::sleep(pause);
            wire.ping(sequence, 56)
        });
        let mut pings: Vec<Duration> = pings.collect::<Option<_>>().expect("all are answered");
        pings.sort();
        Some(pings[4])
    };
    let alone = median("compute=1000");
    let (Some(alone), Some(yields)) = (alone, median("compute=1000 yield=yes")) else {
        return;
    };
    assert!(alone > 3 * yields, "{alone:?} against {yields:?}");
}

/// Returns a port of 127.0.0.1 on which nobody answers.
fn free_port() -> u16 {
    let both = std::iter::repeat_with(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        TcpListener::bind(("127.0.0.1", port)).ok().map(|_| port)
    });
    both.take(100).flatten().next().unwrap()
}

/// Boots a service with a port of it forwarded, and waits until it answers.
fn service(
    image: &'static str,
    (machine, card): (&'static str, &str),
    memory_mib: u32,
    port: u16,
) -> Option<(Running, u16)> {
    let device = format!("{card},netdev=net");
    let mut said = String::new();
    // A port that was free may be taken before QEMU forwards it.
    for _ in 0..3 {
        let free = free_port();
        let forwarded = ["udp", "tcp"].map(|by| format!("hostfwd={by}:127.0.0.1:{free}-:{port}"));
        let network = format!("user,id=net,{}", forwarded.join(","));
        let modern = "virtio-mmio.force-legacy=false";
        let arguments = ["-netdev", &network, "-device", &device, "-global", modern];
        let mut guest = Guest {
            machine,
            memory_mib,
            arguments: arguments.map(str::to_owned).to_vec(),
            ..Guest::new(image, "")
        }
        .start()?;
        let mut text = String::new();
        let mut lines = BufReader::new(guest.console());
        while lines.read_line(&mut text).unwrap() > 0 {
            if text.contains("answering on ") {
                return Some((guest, free));
            }
        }
        said.push_str(&text);
    }
    panic!("{machine} with {card} has ended each time: {said}");
}

#[test]
fn names_are_answered_by_udp_and_tcp_in_three_mib_on_every_card() {
    for card in CARDS {
        // The firmware of PCs needs more, and so do images that were not made small.
        let is_least = card.0.starts_with("microvm") && !cfg!(debug_assertions);
        let memory_mib = if is_least { 3 } else { 8 };
        let Some((_guest, port)) = service(env!("CARGO_BIN_EXE_dns"), card, memory_mib, 53) else {
            return;
        };
        for (words, told) in [
            ("+short host9999.example A", "10.0.39.15"),
            ("+short +tcp host17.example AAAA", "2001:db8::11"),
            ("host10000.example A", "status: NXDOMAIN"),
        ] {
            let ran = Command::new("dig")
                .args(["@127.0.0.1", "-p", &port.to_string(), "+time=10"])
                .args(words.split(' '))
                .output()
                .expect("scripts/setup installs dig");
            let text = String::from_utf8_lossy(&ran.stdout).into_owned();
            assert!(text.contains(told), "{card:?} {words}: {text}");
        }
    }
}

#[test]
fn what_is_sent_to_an_echo_comes_back_whole() {
    /// In all, and at once: what is under way has to fit into the buffers of both sides.
    const ALL: usize = 64 << 20;
    const PIECE: usize = 32 << 10;
    let Some((_guest, port)) = service(env!("CARGO_BIN_EXE_echo"), CARDS[2], 64, 7) else {
        return;
    };
    let mut connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
    connection
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut back = vec![0; PIECE];
    for number in 0..ALL / PIECE {
        let piece: Vec<u8> = (0..PIECE)
            .map(|place| (place * 31 + number * 7) as u8)
            .collect();
        connection.write_all(&piece).unwrap();
        connection.read_exact(&mut back).unwrap();
        assert!(piece == back, "piece {number}");
    }
}
