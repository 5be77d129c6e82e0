//! The services on Linux's sockets and on the unikernel's own stack over TAP, asked by real clients.

use std::hash::{DefaultHasher, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{fs, process, thread};

use tare_testkit::skip;

/// What is moved each way, in bytes.
const MOVED: usize = 64 << 20;

/// A service, ended when this is dropped.
struct Service(Child);

impl Service {
    fn start(within: &[&str], words: &[&str]) -> Self {
        let mut all = within.to_vec();
        all.push(env!("CARGO_BIN_EXE_tare-service"));
        all.extend(words);
        let mut child = Command::new(all[0])
            .args(&all[1..])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let service = Self(child);
        assert!(line.starts_with("answering on "), "{line}");
        service
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A network namespace with a TAP device, removed when this is dropped.
struct Namespace(String);

impl Namespace {
    /// Makes one. `None` where that can't be.
    fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tare-twin-{}-{number}", process::id());
        let made = output("ip", &["netns", "add", &name]);
        let namespace = Self(name);
        for words in [
            "link set lo up",
            "tuntap add dev tap0 mode tap",
            "address add 192.0.2.1/24 dev tap0",
            "address add 2001:db8::1/64 dev tap0 nodad",
            "link set tap0 up",
        ] {
            let made = made.as_ref().map_err(Clone::clone);
            let made = made.and_then(|_| {
                let mut all = vec!["-n", &namespace.0];
                all.extend(words.split(' '));
                output("ip", &all)
            });
            if let Err(why) = made {
                skip("network namespaces", &why);
                return None;
            }
        }
        Some(namespace)
    }

    fn within(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.0]
    }

    /// Runs a client in it.
    fn run(&self, words: &str) -> String {
        let mut all = self.within().to_vec();
        all.extend(words.split(' '));
        output(all[0], &all[1..]).unwrap_or_else(|why| panic!("{words}: {why}"))
    }

    /// Runs a script of the shell in it.
    fn run_script(&self, script: &str) -> String {
        let mut all = self.within().to_vec();
        all.extend(["sh", "-c", script]);
        output(all[0], &all[1..]).unwrap_or_else(|why| panic!("{script}: {why}"))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = output("ip", &["netns", "delete", &self.0]);
    }
}

/// Returns what a program prints, or why it failed.
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

/// Returns a port on which nobody answers.
fn free_port() -> u16 {
    let both = std::iter::repeat_with(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        TcpListener::bind(("127.0.0.1", port)).ok().map(|_| port)
    });
    both.take(100).flatten().next().unwrap()
}

/// Asks a name server everything that a client may.
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

/// Asks as fast as it goes for so many seconds, and returns how many answers there were. None may be lost.
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

/// Sends bytes over a connection to an echo and compares what comes back.
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
        // In the pieces in which it was sent, since a sum of other pieces is another one.
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
    let _service = Service::start(&[], &["dns", "address=127.0.0.1", &format!("port={port}")]);
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
    let Some(namespace) = Namespace::new().filter(|_| has("dig") && has("dnsperf") && has("ping"))
    else {
        return;
    };
    let words = ["dns", "tap=tap0", "ip=192.0.2.2/24", "ip6=2001:db8::2/64"];
    let _service = Service::start(&namespace.within(), &words);
    for address in ["192.0.2.2", "2001:db8::2"] {
        namespace.run(&format!("ping -q -c 3 -i 0.2 -W 5 {address}"));
        ask(|words| namespace.run(&format!("dig @{address} +time=5 {words}")));
    }
    assert!(
        ask_fast(
            |words| namespace.run(&format!("dnsperf -s 192.0.2.2 {words}")),
            2
        ) > 1_000
    );
}

/// Asks for files, figures, and what is not there, and then 10,000 times over 64 connections.
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
    // The connections were kept.
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
    let _service = Service::start(&[], &["http", &files, "address=127.0.0.1", &word]);
    browse(&format!("http://127.0.0.1:{port}"), &large, |asked| {
        let words = words(asked);
        let words: Vec<&str> = words.split(' ').collect();
        output(words[0], &words[1..]).unwrap()
    });
    let Some(namespace) = Namespace::new() else {
        return;
    };
    let own = [
        "http",
        &files,
        "tap=tap0",
        "ip=192.0.2.2/24",
        "ip6=2001:db8::2/64",
    ];
    let _service = Service::start(&namespace.within(), &own);
    for at in ["http://192.0.2.2", "http://[2001:db8::2]"] {
        browse(at, &large, |asked| namespace.run(&words(asked)));
    }
    // More connections than the service has sockets for wait until one ends.
    let told = namespace.run(&words(
        "-Z --parallel-max 128 --parallel-immediate -H Connection:close -o /dev/null -w %{http_code}\\n http://192.0.2.2/?[1-1000]",
    ));
    assert_eq!(told, "200\n".repeat(1_000));
}

#[test]
fn what_is_sent_comes_back_whole() {
    let port = free_port();
    let word = format!("port={port}");
    let _service = Service::start(&[], &["echo", "address=127.0.0.1", &word]);
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    echoes(to, MOVED);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    socket.send_to(b"and back", to).unwrap();
    let mut back = [0; 100];
    assert_eq!(socket.recv(&mut back).unwrap(), 8);
    let Some(namespace) = Namespace::new().filter(|_| has("nc")) else {
        return;
    };
    let words = ["echo", "tap=tap0", "ip=192.0.2.2/24", "ip6=2001:db8::2/64"];
    let _service = Service::start(&namespace.within(), &words);
    for address in ["192.0.2.2", "2001:db8::2"] {
        let script = format!(
            "set -e; f=$(mktemp); trap 'rm -f $f' EXIT; head -c {MOVED} /dev/urandom >$f; sha256sum <$f; nc -N -w 30 {address} 7 <$f | sha256sum"
        );
        let told = namespace.run_script(&script);
        let sums: Vec<&str> = told.lines().collect();
        assert!(sums.len() == 2 && sums[0] == sums[1], "{told}");
    }
}
