//! The services on Linux's sockets and on the unikernel's own stack over TAP, with real clients.

use std::hash::{DefaultHasher, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use tare_networks::{TapNetwork, UserNetwork};
use tare_testkit::skip;

/// The number of bytes moved each way.
const MOVED: usize = 64 << 20;

/// A service, ended when this is dropped.
struct Service(Child);

impl Service {
    fn start(words: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tare-service"));
        command.args(words).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let service = Self(child);
        assert!(line.starts_with("answering on "), "{line}");
        service
    }

    /// Starts it on the TAP device of a network.
    fn on_tap(network: &TapNetwork, words: &[&str]) -> Self {
        let device = format!("tap={}", TapNetwork::DEVICE);
        let mut all = [words, &[device.as_str()]].concat();
        all.extend(TapNetwork::WORDS.split(' '));
        let start = || Self::start(&all);
        network.hypervisor.within(start).unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates a network. `None`, with a message, if that is impossible.
fn network() -> Option<TapNetwork> {
    let made = TapNetwork::new();
    made.map_err(|error| skip("network namespaces", &error.to_string()))
        .ok()
}

/// Runs a client in a network.
fn run(network: &TapNetwork, words: &[&str]) -> String {
    let run = || output(words[0], &words[1..]);
    let ran = network.clients.within(run).unwrap();
    ran.unwrap_or_else(|why| panic!("{words:?}: {why}"))
}

/// Runs a client in a network, with its words separated by spaces.
fn run_words(network: &TapNetwork, words: &str) -> String {
    run(network, &words.split(' ').collect::<Vec<_>>())
}

/// Returns the output of a program, or why it failed.
fn output(program: &str, words: &[&str]) -> Result<String, String> {
    let ran = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    match ran.status.success() {
        true => Ok(text),
        false => Err(text + &String::from_utf8_lossy(&ran.stderr)),
    }
}

fn has(program: &str) -> bool {
    let there = output("sh", &["-c", &format!("command -v {program}")]).is_ok();
    if !there {
        skip(program, "it is not installed");
    }
    there
}

/// Returns an unused port of this machine.
fn free_port() -> u16 {
    const ANY: u16 = 7;
    let network = UserNetwork::new(&[ANY]).unwrap();
    network.address(ANY).unwrap().port()
}

/// Sends a name server every kind of query.
fn ask(dig: impl Fn(&str) -> String) {
    assert_eq!(dig("+short host17.example A"), "10.0.0.17\n");
    assert_eq!(dig("+short HOST258.Example AAAA"), "2001:db8::102\n");
    assert_eq!(dig("+short +tcp host9999.example A"), "10.0.39.15\n");
    assert_eq!(dig("+short +noedns example NS"), "ns.example.\n");
    for (words, told) in [
        ("host10000.example A", "status: NXDOMAIN"),
        ("host1.example TXT", "AUTHORITY: 1"),
        ("example.org A", "status: REFUSED"),
        (
            "+edns=1 +noednsnegotiation host1.example A",
            "status: BADVERS",
        ),
        ("+opcode=UPDATE host1.example A", "status: NOTIMP"),
    ] {
        let answer = dig(words);
        assert!(answer.contains(told), "{words}: {answer}");
    }
}

/// Sends queries at full speed for this many seconds, and returns the number of answers. None may
/// be lost.
fn ask_fast(dnsperf: impl Fn(&str) -> String, seconds: u32) -> u32 {
    let folder = tempfile::tempdir().unwrap();
    let queries = folder.path().join("queries");
    let lines: String = (0..1_000)
        .map(|host| format!("host{host}.example A\n"))
        .collect();
    fs::write(&queries, lines).unwrap();
    let told = dnsperf(&format!("-d {} -l {seconds} -c 2 -q 50", queries.display()));
    let number = |name: &str| -> u32 {
        let line = told.lines().find_map(|line| line.trim().strip_prefix(name));
        let words = line
            .unwrap_or_else(|| panic!("{name}: {told}"))
            .split_whitespace();
        words.clone().next().unwrap().parse().unwrap()
    };
    assert_eq!(number("Queries lost:"), 0, "{told}");
    number("Queries completed:")
}

/// Sends bytes over a connection to an echo service and compares the answer.
fn echoes(to: SocketAddr, bytes: usize) {
    let connection = TcpStream::connect(to).unwrap();
    connection
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut sender = connection.try_clone().unwrap();
    let sent = thread::spawn(move || {
        let mut sum = DefaultHasher::new();
        let mut state = 1_u64;
        for _ in 0..bytes / (64 << 10) {
            let block: Vec<u8> = (0..64 << 10)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    (state >> 56) as u8
                })
                .collect();
            sum.write(&block);
            sender.write_all(&block).unwrap();
        }
        sender.shutdown(std::net::Shutdown::Write).unwrap();
        sum.finish()
    });
    let (mut sum, mut all) = (DefaultHasher::new(), 0);
    let mut block = vec![0; 64 << 10];
    let mut receiver = connection;
    while all < bytes {
        // In the pieces in which it was sent, since the checksum depends on them.
        receiver.read_exact(&mut block).unwrap();
        sum.write(&block);
        all += block.len();
    }
    assert_eq!(sum.finish(), sent.join().unwrap());
    assert_eq!(receiver.read(&mut block).unwrap(), 0);
}

#[test]
fn names_are_answered_on_the_sockets_of_linux() {
    if !has("dig") || !has("dnsperf") {
        return;
    }
    let port = free_port().to_string();
    let _service = Service::start(&["dns", "address=127.0.0.1", &format!("port={port}")]);
    let run = |program: &str, words: String| {
        let words: Vec<&str> = words.split(' ').collect();
        output(program, &words).unwrap()
    };
    ask(|words| run("dig", format!("@127.0.0.1 -p {port} +time=5 {words}")));
    assert!(
        ask_fast(
            |words| run("dnsperf", format!("-s 127.0.0.1 -p {port} {words}")),
            2
        ) > 1_000
    );
}

#[test]
fn names_are_answered_by_the_own_stack_over_tap() {
    let Some(network) = network().filter(|_| has("dig") && has("dnsperf") && has("ping")) else {
        return;
    };
    let _service = Service::on_tap(&network, &["dns"]);
    for address in ["192.0.2.2", "2001:db8::2"] {
        run_words(&network, &format!("ping -q -c 3 -i 0.2 -W 5 {address}"));
        ask(|words| run_words(&network, &format!("dig @{address} +time=5 {words}")));
    }
    assert!(
        ask_fast(
            |words| run_words(&network, &format!("dnsperf -s 192.0.2.2 {words}")),
            2
        ) > 1_000
    );
}

/// Requests files, figures, and a missing file, and then 10,000 files over 64 connections.
fn browse(at: &str, large: &str, curl: impl Fn(&str) -> String) {
    assert_eq!(curl(&format!("{at}/")), "<p>");
    assert_eq!(curl(&format!("{at}/folder/a%20b.txt")), large);
    for form in ["", "-0 "] {
        let figures = curl(&format!("{form}{at}/metrics"));
        assert!(figures.ends_with("\nhttp_files 2\n"), "{figures}");
    }
    for (words, status) in [
        ("/none", "404"),
        ("/folder/../../etc/passwd", "400"),
        ("/ -X DELETE", "405"),
        ("/folder/a%20b.txt -I", "200"),
    ] {
        let told = curl(&format!(
            "{at}{words} --path-as-is -o /dev/null -w %{{http_code}}"
        ));
        assert_eq!(told, status, "{words}");
    }
    let told = curl(&format!(
        "-Z --parallel-max 64 --parallel-immediate -o /dev/null -w %{{http_code}}:%{{num_connects}}\\n {at}/?[1-10000]"
    ));
    let with = |begin: &str| told.lines().filter(|line| line.starts_with(begin)).count();
    assert_eq!(with("200:"), 10_000);
    // The connections were kept open.
    assert!(with("200:1") < 1_000, "{}", with("200:1"));
}

#[test]
fn files_are_answered_on_the_sockets_of_linux_and_over_tap() {
    if !has("curl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let large = "0123456789abcdef".repeat(10_000);
    fs::create_dir(folder.path().join("folder")).unwrap();
    fs::write(folder.path().join("index.html"), "<p>").unwrap();
    fs::write(folder.path().join("folder/a b.txt"), &large).unwrap();
    let files = format!("files={}", folder.path().display());
    let words = |words: &str| format!("curl -sS -m 100 {words}");
    let port = free_port();
    let word = format!("port={port}");
    let _service = Service::start(&["http", &files, "address=127.0.0.1", &word]);
    browse(&format!("http://127.0.0.1:{port}"), &large, |asked| {
        let words = words(asked);
        let words: Vec<&str> = words.split(' ').collect();
        output(words[0], &words[1..]).unwrap()
    });
    let Some(network) = network() else {
        return;
    };
    let _service = Service::on_tap(&network, &["http", &files]);
    for at in ["http://192.0.2.2", "http://[2001:db8::2]"] {
        browse(at, &large, |asked| run_words(&network, &words(asked)));
    }
    // More connections than the service has sockets for wait until one ends.
    let told = run_words(
        &network,
        &words(
            "-Z --parallel-max 128 --parallel-immediate -H Connection:close -o /dev/null -w %{http_code}\\n http://192.0.2.2/?[1-1000]",
        ),
    );
    assert_eq!(told, "200\n".repeat(1_000));
}

#[test]
fn a_datagram_from_the_port_of_the_service_is_not_echoed() {
    let port = free_port();
    let word = format!("port={port}");
    let _service = Service::start(&["echo", "address=127.0.0.1", &word]);
    let sends = |from: (&str, u16), wait| {
        let socket = UdpSocket::bind(from).unwrap();
        socket.set_read_timeout(Some(wait)).unwrap();
        socket.send_to(b"echo", ("127.0.0.1", port)).unwrap();
        socket.recv(&mut [0; 100]).ok()
    };
    assert_eq!(sends(("127.0.0.2", port), Duration::from_millis(500)), None);
    assert_eq!(sends(("127.0.0.2", 0), Duration::from_secs(10)), Some(4));
}

#[test]
fn what_is_sent_comes_back_whole() {
    let port = free_port();
    let word = format!("port={port}");
    let _service = Service::start(&["echo", "address=127.0.0.1", &word]);
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    echoes(to, MOVED);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    socket.send_to(b"and back", to).unwrap();
    let mut back = [0; 100];
    assert_eq!(socket.recv(&mut back).unwrap(), 8);
    let Some(network) = network().filter(|_| has("nc")) else {
        return;
    };
    let _service = Service::on_tap(&network, &["echo"]);
    for address in ["192.0.2.2", "2001:db8::2"] {
        let script = format!(
            "set -e; f=$(mktemp); trap 'rm -f $f' EXIT; head -c {MOVED} /dev/urandom >$f; sha256sum <$f; nc -N -w 30 {address} 7 <$f | sha256sum"
        );
        let told = run(&network, &["sh", "-c", &script]);
        let sums: Vec<&str> = told.lines().collect();
        assert!(sums.len() == 2 && sums[0] == sums[1], "{told}");
    }
}
