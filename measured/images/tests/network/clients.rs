//! Real clients, over a TAP device and over QEMU's own network.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::Duration;

use tare_networks::{NetworkError, NetworkNamespace, TapNetwork, UserNetwork};
use tare_testkit::skip;

use crate::common::{Guest, Running};
use crate::packets::{Random, query};
use crate::wire::{CARDS, FIGURES, LIMIT, Lines};
use crate::{DNS, ECHO, HTTP};

/// The number of bytes sent to an echo service.
const MOVED: usize = if cfg!(debug_assertions) {
    8 << 20
} else {
    64 << 20
};

/// The guest's addresses, as clients write them.
const ADDRESSES: [&str; 2] = ["192.0.2.2", "2001:db8::2"];

pub fn has(program: &str) -> bool {
    let asked = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output();
    let is_there = asked.is_ok_and(|ran| ran.status.success());
    if !is_there {
        skip(program, "it is not installed");
    }
    is_there
}

/// Runs a shell script, in the network of the clients if there is one, and returns its output.
pub fn run(within: Option<&NetworkNamespace>, script: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null());
    if let Some(namespace) = within {
        namespace.contain(&mut command).unwrap();
    }
    let ran = command.output().unwrap();
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(
        ran.status.success(),
        "{script}: {text}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    text
}

/// Creates a network. `None`, with a message, without the privileges or the kernel's support.
pub fn network() -> Option<TapNetwork> {
    match TapNetwork::new() {
        Ok(network) => Some(network),
        Err(
            error @ (NetworkError::Namespace(_)
            | NetworkError::NoIp(_)
            | NetworkError::Device { .. }),
        ) => {
            skip("network namespaces", &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Boots a service on a card, and waits until it answers. An error has its output.
fn start(
    image: &'static str,
    (machine, card): (&'static str, &str),
    memory_mib: u32,
    netdev: &str,
    words: &str,
) -> Option<Result<Running, String>> {
    let device = format!("{card},netdev=net");
    let modern = "virtio-mmio.force-legacy=false";
    let arguments = ["-netdev", netdev, "-device", &device, "-global", modern];
    let mut guest = Guest {
        machine,
        memory_mib,
        arguments: arguments.map(str::to_owned).to_vec(),
        ..Guest::new(image, words)
    }
    .start()?;
    let answers = Lines::new(&mut guest).find("answering on ");
    Some(answers.map(|_| guest))
}

/// Boots a service on a TAP device.
pub fn on_tap(image: &'static str) -> Option<(TapNetwork, Running)> {
    let network = network()?;
    let netdev = network.netdev("net");
    let words = format!("{} figures={FIGURES}", TapNetwork::WORDS);
    let within = || start(image, CARDS[2], 64, &netdev, &words);
    let guest = network.hypervisor.within(within).unwrap()?;
    Some((network, guest.unwrap()))
}

/// Boots a service on QEMU's user network, and returns its address.
fn on_user_network(
    image: &'static str,
    card: (&'static str, &str),
    memory_mib: u32,
    port: u16,
) -> Option<(Running, SocketAddr)> {
    let mut ended = String::new();
    // Another process may take the free port before QEMU forwards it.
    for _ in 0..3 {
        let network = UserNetwork::new(&[port]).unwrap();
        match start(image, card, memory_mib, &network.netdev("net"), "")? {
            Ok(guest) => return Some((guest, network.address(port).unwrap())),
            Err(why) => ended = why,
        }
    }
    panic!("{card:?} has ended each time: {ended}");
}

#[test]
fn names_are_answered_by_udp_and_tcp_in_three_mib_on_every_card() {
    if !has("dig") {
        return;
    }
    for card in CARDS {
        // The firmware of PCs needs more memory, and so do images not built for size.
        let is_least = card.0.starts_with("microvm") && !cfg!(debug_assertions);
        let memory_mib = if is_least { 3 } else { 8 };
        let Some((_guest, at)) = on_user_network(DNS, card, memory_mib, 53) else {
            return;
        };
        let dig = format!("dig @{} -p {} +time=10", at.ip(), at.port());
        for (words, told) in [
            ("+short host9999.example A", "10.0.39.15"),
            ("+short +tcp host17.example AAAA", "2001:db8::11"),
            ("host10000.example A", "status: NXDOMAIN"),
        ] {
            let text = run(None, &format!("{dig} {words}"));
            assert!(text.contains(told), "{card:?} {words}: {text}");
        }
    }
}

#[test]
fn ping_dig_and_dnsperf_are_answered_over_tap() {
    if !["ping", "dig", "dnsperf"].into_iter().all(has) {
        return;
    }
    let Some((network, _guest)) = on_tap(DNS) else {
        return;
    };
    let run = |script: &str| run(Some(&network.clients), script);
    for address in ADDRESSES {
        run(&format!("ping -q -c 3 -i 0.2 -W 10 {address}"));
        run(&format!("ping -q -c 3 -i 0.2 -W 10 -s 1400 {address}"));
        for (words, told) in [
            ("+short host17.example A", "10.0.0.17\n"),
            ("+short HOST258.Example AAAA", "2001:db8::102\n"),
            ("+short +tcp host9999.example A", "10.0.39.15\n"),
            ("+short +noedns example NS", "ns.example.\n"),
            ("+bufsize=512 host1.example A", "EDNS: version: 0"),
            (
                "+edns=1 +noednsnegotiation host1.example A",
                "status: BADVERS",
            ),
            ("host10000.example A", "status: NXDOMAIN"),
            ("example.org A", "status: REFUSED"),
        ] {
            let text = run(&format!("dig @{address} +time=10 {words}"));
            assert!(text.contains(told), "{address} {words}: {text}");
        }
        let script = "for h in $(seq 0 9999); do echo host$h.example A; done | dnsperf -n 1 -c 2 -q 50 -t 30";
        let text = run(&format!("{script} -s {address}"));
        let all = "Queries completed:    10000 (100.00%)";
        assert!(text.contains(all), "{text}");
    }
}

#[test]
fn ten_thousand_requests_over_64_connections_are_answered_without_an_error() {
    if !has("curl") {
        return;
    }
    let Some((network, _guest)) = on_tap(HTTP) else {
        return;
    };
    let curl = |words: &str| run(Some(&network.clients), &format!("curl -sS -m 100 {words}"));
    for at in ["http://192.0.2.2", "http://[2001:db8::2]"] {
        assert!(curl(&format!("-g {at}/")).contains("<title>tare</title>"));
        let metrics = curl(&format!("-g {at}/metrics"));
        let [main, card, address] = ["main", "card", "address"].map(|until| {
            let name = format!("boot_seconds{{until=\"{until}\"}} ");
            let seconds = metrics.lines().find_map(|line| line.strip_prefix(&name));
            seconds.expect(&metrics).parse::<f64>().unwrap()
        });
        let is_ordered = 0.0 < main && main < card && card < address && address < 60.0;
        assert!(is_ordered, "{main}, {card}, {address}");
        let status = curl(&format!("-g {at}/none -o /dev/null -w %{{http_code}}"));
        assert_eq!(status, "404");
    }
    let told = curl(
        "-Z --parallel-max 64 --parallel-immediate -o /dev/null -w '%{http_code}:%{num_connects}\\n' 'http://192.0.2.2/?[1-10000]'",
    );
    let with = |begin: &str| told.lines().filter(|line| line.starts_with(begin)).count();
    assert_eq!(with("200:"), 10_000);
    // All were open at once, and stayed open.
    let connects = with("200:1");
    assert!((64..1_000).contains(&connects), "{connects}");
}

#[test]
fn slow_clients_give_their_places_to_others() {
    let get = b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let question = query(7, "host17");
    let question = [&(question.len() as u16).to_be_bytes()[..], &question].concat();
    let services = [
        (HTTP, 64, 80, &get[..]),
        (DNS, 16, 53, &question),
        (ECHO, 16, 7, b"echo"),
    ];
    for (image, places, port, request) in services {
        let Some((network, _guest)) = on_tap(image) else {
            return;
        };
        let at = SocketAddr::from((TapNetwork::GUEST.0, port));
        network
            .clients
            .within(|| {
                let slow = |_| {
                    let mut slow = TcpStream::connect_timeout(&at, LIMIT).unwrap();
                    slow.write_all(&request[..1]).unwrap();
                    slow
                };
                let mut slow: Vec<TcpStream> = (0..places).map(slow).collect();
                for client in &mut slow {
                    client.write_all(&request[1..2]).unwrap();
                }
                for _ in 0..3 {
                    thread::sleep(Duration::from_secs(1));
                    let mut other = TcpStream::connect_timeout(&at, LIMIT).unwrap();
                    other.set_read_timeout(Some(LIMIT)).unwrap();
                    other.write_all(request).unwrap();
                    assert!(other.read(&mut [0; 64]).unwrap() > 0);
                }
                // Only so many have lost theirs as were needed.
                let is_open = |mut client: &TcpStream| {
                    client.set_nonblocking(true).unwrap();
                    let mut room = [0; 64];
                    loop {
                        match client.read(&mut room) {
                            Ok(0) => return false,
                            Ok(_) => {}
                            Err(why) => return why.kind() == io::ErrorKind::WouldBlock,
                        }
                    }
                };
                for client in &mut slow {
                    // Whose place was taken back hears so now.
                    let _ = client.write_all(&request[2..3]);
                }
                thread::sleep(Duration::from_millis(500));
                let open = slow.iter().filter(|client| is_open(client)).count();
                assert!((places - 6..places).contains(&open), "{open} of {places}");
            })
            .unwrap();
    }
}

#[test]
fn what_nc_sends_to_an_echo_comes_back_whole_over_tap() {
    if !has("nc") {
        return;
    }
    let Some((network, _guest)) = on_tap(ECHO) else {
        return;
    };
    let random = std::env::temp_dir().join(format!("tare-random-{}", process::id()));
    fs::write(&random, Random(1).bytes(MOVED)).unwrap();
    let path = random.display();
    let told = ADDRESSES.map(|to| {
        let script = format!("sha256sum <{path}; nc -N -w 60 {to} 7 <{path} | sha256sum");
        run(Some(&network.clients), &script)
    });
    fs::remove_file(&random).unwrap();
    for told in told {
        let (sent, came) = told.trim_end().split_once('\n').unwrap();
        assert_eq!(sent, came);
    }
}

#[test]
fn what_is_sent_to_an_echo_comes_back_whole_over_the_user_network() {
    if let Some((_guest, at)) = on_user_network(ECHO, CARDS[2], 64, 7) {
        echoes(at, MOVED / 4);
    }
}

/// Sends random bytes to an echo and compares what comes back.
pub fn echoes(at: SocketAddr, bytes: usize) {
    let mut connection = TcpStream::connect(at).unwrap();
    connection.set_read_timeout(Some(LIMIT)).unwrap();
    let mut sender = connection.try_clone().unwrap();
    let sent = Random(2).bytes(bytes);
    thread::scope(|scope| {
        scope.spawn(|| {
            sender.write_all(&sent).unwrap();
            sender.shutdown(Shutdown::Write).unwrap();
        });
        let mut came = Vec::new();
        connection.read_to_end(&mut came).unwrap();
        assert!(came == sent, "{} of {bytes} bytes, or others", came.len());
    });
}
