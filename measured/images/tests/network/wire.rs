//! A wire between the test and a guest: single frames on a datagram socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use crate::common::{Guest, Running};
use crate::packets::{
    ACK, ETHERNET, GUEST, GUEST_IP, HOST_IP, ICMP, RESET, SYN, TCP, UDP, arp, checksum,
    echo_request, ipv4, tcp, udp,
};

/// The machine types, each with its kind of card.
pub const CARDS: [(&str, &str); 4] = [
    ("microvm,acpi=off", "virtio-net-device"),
    ("microvm,pcie=on", "virtio-net-pci"),
    ("q35", "virtio-net-pci"),
    ("pc", "virtio-net-pci"),
];

/// The time limit for anything.
pub const LIMIT: Duration = Duration::from_secs(60);
/// The time after which a request is repeated, as packets may be lost.
pub const AGAIN: Duration = Duration::from_secs(1);
/// The port for the figures of images.
pub const FIGURES: u16 = 9100;

/// A guest's console output.
pub struct Lines(Receiver<String>);

impl Lines {
    pub fn new(guest: &mut Running) -> Self {
        let (sender, lines) = mpsc::channel();
        let console = BufReader::new(guest.console());
        // Ends with the guest.
        thread::spawn(move || {
            let lines = console.split(b'\n').map_while(Result::ok);
            for line in lines {
                let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
            }
        });
        Self(lines)
    }

    /// Waits for a line with this start. An error has the output before the guest ended.
    pub fn find(&self, start: &str) -> Result<String, String> {
        let mut all = String::new();
        loop {
            match self.0.recv_timeout(LIMIT) {
                Ok(line) if line.starts_with(start) => return Ok(line),
                Ok(line) => all = all + &line + "\n",
                Err(why) => return Err(format!("'{start}': {why}: {all}")),
            }
        }
    }
}

/// The host's end of a wire.
pub struct End(UnixDatagram);

impl End {
    pub fn send(&self, frame: &[u8]) {
        self.0.send(frame).expect("QEMU takes packets");
    }

    /// Returns the socket, whose other users compete for packets.
    pub fn socket(&self) -> UnixDatagram {
        self.0.try_clone().unwrap()
    }

    /// Sends frames without waiting for room, so that the rest is lost, as in a network.
    pub fn send_hastily(&self, frames: impl Iterator<Item = Vec<u8>>) {
        self.0.set_nonblocking(true).unwrap();
        for frame in frames {
            let _ = self.0.send(&frame);
        }
        self.0.set_nonblocking(false).unwrap();
    }

    /// Sends each frame when the guest has room for it, and returns how many datagrams came back.
    pub fn flood(&self, frames: impl Iterator<Item = Vec<u8>>) -> u64 {
        let is_over = AtomicBool::new(false);
        let receive = || {
            let mut datagrams = 0;
            loop {
                let was_over = is_over.load(Ordering::Relaxed);
                let limit = if was_over { AGAIN } else { AGAIN / 10 };
                let came = self.receive(limit, |frame| from_guest(frame, UDP).is_some());
                match came {
                    Some(_) => datagrams += 1,
                    None if was_over => return datagrams,
                    None => {}
                }
            }
        };
        thread::scope(|scope| {
            let receiver = scope.spawn(receive);
            let sent = { frames }.try_for_each(|frame| self.0.send(&frame).map(drop));
            is_over.store(true, Ordering::Relaxed);
            sent.expect("QEMU takes packets");
            receiver.join().unwrap()
        })
    }

    /// Waits for a frame, and answers requests for the host's hardware address while it waits.
    pub fn receive(&self, limit: Duration, is_wanted: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        let end = Instant::now() + limit;
        let mut room = [0; 2048];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            // A timeout of zero would mean none.
            self.0
                .set_read_timeout(Some(left).filter(|left| !left.is_zero()))
                .unwrap();
            if left.is_zero() {
                return None;
            }
            let Ok(bytes) = self.0.recv(&mut room) else {
                continue;
            };
            let frame = &room[..bytes];
            if is_wanted(frame) {
                return Some(frame.to_vec());
            }
            if is_arp(frame, 1) && frame[38..42] == HOST_IP {
                self.announce();
            }
        }
    }

    /// Repeats a request until it is answered.
    fn insist<T>(&self, mut attempt: impl FnMut(Duration) -> Option<T>) -> Option<T> {
        let start = Instant::now();
        while start.elapsed() < LIMIT {
            let answer = attempt(AGAIN);
            if answer.is_some() {
                return answer;
            }
        }
        None
    }

    /// Requests the guest's hardware address.
    pub fn arp(&self) -> Option<[u8; 6]> {
        let answer = self.insist(|limit| {
            self.send(&arp([0xff; 6], 1, HOST_IP));
            self.receive(limit, |frame| is_arp(frame, 2))
        })?;
        answer[22..28].try_into().ok()
    }

    /// Announces the host's hardware address to the guest.
    pub fn announce(&self) {
        self.send(&arp(GUEST, 2, HOST_IP));
    }

    /// Sends a ping of this size, and returns its round-trip time.
    pub fn ping(&self, sequence: u16, bytes: usize, limit: Duration) -> Option<Duration> {
        let start = Instant::now();
        self.send(&ipv4(HOST_IP, ICMP, &echo_request(8, sequence, bytes)));
        let answer = self.receive(limit, |frame| {
            from_guest(frame, ICMP)
                .is_some_and(|icmp| icmp[0] == 0 && icmp[6..8] == sequence.to_be_bytes())
        })?;
        assert_eq!(answer.len(), 42 + bytes);
        assert_eq!(checksum(&answer[34..]), 0);
        Some(start.elapsed())
    }

    /// Sends a datagram until it is answered, and returns the answer.
    pub fn ask(&self, port: u16, datagram: &[u8]) -> Option<Vec<u8>> {
        const OWN: u16 = 4_242;
        let answer = self.insist(|limit| {
            // The guest may have another host's address.
            self.announce();
            self.send(&ipv4(HOST_IP, UDP, &udp((OWN, port), datagram)));
            self.receive(limit, |frame| {
                from_guest(frame, UDP).is_some_and(|udp| is_between(udp, (port, OWN)))
            })
        })?;
        Some(answer[ETHERNET + 20 + 8..].to_vec())
    }

    /// Returns the guest's figures, by name.
    pub fn figures(&self) -> impl Fn(&str) -> u64 + use<> {
        figures(self.ask(FIGURES, b"?").expect("no figures received"))
    }

    /// Opens a connection, as soon as there is room for it.
    pub fn connect(&self, address: [u8; 4], ports: (u16, u16), limit: Duration) -> Option<Peer> {
        let mut peer = Peer::new(address, ports);
        let end = Instant::now() + limit;
        let answer = loop {
            self.send(&peer.packet(SYN, b""));
            let left = end.saturating_duration_since(Instant::now());
            let answers = |frame: &[u8]| peer.is_own(frame) && frame[47] == SYN | ACK;
            if let Some(answer) = self.receive(left.min(AGAIN), answers) {
                break answer;
            }
            if left.is_zero() {
                return None;
            }
        };
        let number = u32::from_be_bytes(answer[38..42].try_into().unwrap());
        peer.numbers = (1_001, number.wrapping_add(1));
        self.send(&peer.packet(ACK, b""));
        Some(peer)
    }

    /// Sends a query over new connections until one is answered, and returns the first packet of
    /// the answer.
    pub fn ask_by_tcp(&self, port: u16, question: &[u8]) -> Option<Vec<u8>> {
        static NEXT: AtomicU16 = AtomicU16::new(30_000);
        self.insist(|limit| {
            let own = NEXT.fetch_add(1, Ordering::Relaxed);
            self.announce();
            let mut peer = self.connect(HOST_IP, (own, port), LIMIT)?;
            self.send(&peer.packet(ACK, question));
            let is_answer = |frame: &[u8]| peer.is_own(frame) && frame.len() > 54;
            let answer = self.receive(5 * limit, is_answer);
            self.send(&peer.packet(RESET | ACK, b""));
            Some(answer?[54..].to_vec())
        })
    }
}

/// Parses a guest's figures, and returns them by name.
pub fn figures(told: Vec<u8>) -> impl Fn(&str) -> u64 {
    let text = String::from_utf8(told).unwrap();
    move |name| {
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value
            .unwrap_or_else(|| panic!("{name}: {text}"))
            .parse()
            .unwrap()
    }
}

/// The other side of a connection.
#[derive(Clone)]
pub struct Peer {
    address: [u8; 4],
    ports: (u16, u16),
    /// The numbers of bytes sent and received.
    pub numbers: (u32, u32),
}

impl Peer {
    pub fn new(address: [u8; 4], ports: (u16, u16)) -> Self {
        Self {
            address,
            ports,
            numbers: (1_000, 0),
        }
    }

    /// Returns its next packet.
    pub fn packet(&mut self, flags: u8, payload: &[u8]) -> Vec<u8> {
        let segment = tcp(self.ports, self.numbers, flags, payload);
        self.numbers.0 += payload.len() as u32;
        ipv4(self.address, TCP, &segment)
    }

    pub fn is_own(&self, frame: &[u8]) -> bool {
        let (own, to) = self.ports;
        frame.get(30..34) == Some(&self.address)
            && from_guest(frame, TCP).is_some_and(|tcp| is_between(tcp, (to, own)))
    }
}

/// Returns the payload of an IPv4 packet from the guest.
pub fn from_guest(frame: &[u8], protocol: u8) -> Option<&[u8]> {
    let is_meant = frame.len() >= 42
        && frame[12..14] == [8, 0]
        && frame[23] == protocol
        && frame[26..30] == GUEST_IP;
    is_meant.then(|| &frame[34..])
}

fn is_between(payload: &[u8], (from, to): (u16, u16)) -> bool {
    payload[..2] == from.to_be_bytes() && payload[2..4] == to.to_be_bytes()
}

fn is_arp(frame: &[u8], operation: u8) -> bool {
    frame.len() >= 42 && frame[12..14] == [8, 6] && frame[21] == operation
}

/// A guest with a wire, whose other end is the test's.
pub struct Wire {
    pub end: End,
    pub guest: Running,
    pub lines: Lines,
    folder: PathBuf,
}

impl Drop for Wire {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("The guest has said:");
            self.lines.0.try_iter().for_each(|line| eprintln!("{line}"));
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Wire {
    /// Boots an image with a wire.
    pub fn new(
        image: &'static str,
        (machine, card): (&'static str, &str),
        options: &str,
        words: &str,
    ) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("tare-wire-{}-{number}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [ours, theirs, monitor] = ["host", "guest", "monitor"].map(|name| folder.join(name));
        let socket = UnixDatagram::bind(&ours).unwrap();
        socket.set_write_timeout(Some(LIMIT)).unwrap();
        let netdev = format!(
            "dgram,id=wire,local.type=unix,local.path={},remote.type=unix,remote.path={}",
            theirs.display(),
            ours.display()
        );
        let device = format!("{card},netdev=wire{options}");
        let monitor = format!("unix:{},server=on,wait=off", monitor.display());
        let modern = "virtio-mmio.force-legacy=false";
        let arguments = [
            "-netdev", &netdev, "-device", &device, "-global", modern, "-qmp", &monitor,
        ];
        let started = Guest {
            machine,
            arguments: arguments.map(str::to_owned).to_vec(),
            ..Guest::new(image, words)
        }
        .start();
        let Some(mut guest) = started else {
            let _ = fs::remove_dir_all(&folder);
            return None;
        };
        let wire = Self {
            end: End(socket),
            lines: Lines::new(&mut guest),
            guest,
            folder,
        };
        wait_for(|| wire.end.0.connect(&theirs).ok());
        Some(wire)
    }

    /// Boots an image with the guest's address, and waits until it reports that its network is up.
    pub fn up(
        image: &'static str,
        card: (&'static str, &str),
        options: &str,
        words: &str,
    ) -> Option<Self> {
        let wire = Self::new(
            image,
            card,
            options,
            &format!("ip=192.0.2.2/24 figures={FIGURES} {words}"),
        )?;
        let start = if image == crate::PING {
            "answering on 192.0.2.2/24"
        } else {
            "answering on port"
        };
        wire.lines.find(start).unwrap();
        Some(wire)
    }

    /// Connects or disconnects the guest's end.
    pub fn plug(&self, is_in: bool) {
        let mut monitor = UnixStream::connect(self.folder.join("monitor")).unwrap();
        monitor.set_read_timeout(Some(LIMIT)).unwrap();
        let ask = format!(
            "{{\"execute\":\"qmp_capabilities\"}}{{\"execute\":\"set_link\",\"arguments\":{{\"name\":\"wire\",\"up\":{is_in}}}}}"
        );
        monitor.write_all(ask.as_bytes()).unwrap();
        let lines = BufReader::new(monitor).lines();
        let done = lines
            .map(Result::unwrap)
            .filter(|line| line.contains("\"return\""))
            .take(2)
            .count();
        assert_eq!(done, 2);
    }

    /// Returns the CPU time of QEMU, in ticks of 10 ms.
    pub fn ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.guest.id())).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let fields = fields.split_ascii_whitespace().skip(11).take(2);
        fields.map(|field| field.parse::<u64>().unwrap()).sum()
    }
}

/// Repeats an attempt until it succeeds.
pub fn wait_for<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(done) = attempt() {
            return done;
        }
        assert!(start.elapsed() < LIMIT, "it takes too long");
        thread::sleep(Duration::from_millis(10));
    }
}
