//! A network service of the unikernel as a process of Linux: the same code, on the kernel's sockets
//! or on a TAP device with the unikernel's own stack.

mod site;
mod tap;
mod udp;

use std::convert::Infallible;
use std::future::pending;
use std::io::Write;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use async_executor::LocalExecutor;
use async_io::Timer;
use edge_nal::{TcpBind, UdpReceive, UdpSend};
use embassy_futures::block_on;
use embassy_futures::select::{Either, select, select3};
use embassy_net::StackResources;
use tare_net::filter::{Filter, use_routers};
use tare_net::settings::Settings;
use tare_net::sockets::{Connections, Datagrams};
use tare_net::watch::Watch;
use tare_net::zone::{MOST_HOSTS, Zone};
use tare_net::{Accept, Clock, dns, echo, http};

use site::Folder;

const USAGE: &str = "\
usage: tare-service echo|dns|http|ping [WORD]...

  port=N                   the port (7, 53 or 80)
  zone=FILE                the zone file, for dns
  records=N                without a zone, hosts of the zone 'example' (10000)
  print                    print the zone or the page, for another server, and exit
  compute=MS               for ping, which the system answers: computes for MS ms at a time, with
                           pauses of 10 ms
  files=FOLDER             content for http instead of a page, in addition to /metrics

On the sockets of Linux:
  address=ADDRESS          the address to listen on (all addresses of this machine)

On a TAP device, with the unikernel's own stack:
  tap=NAME                 the device
  ip=ADDRESS/PREFIX gateway=ADDRESS ip6=ADDRESS/PREFIX gateway6=ADDRESS mtu=BYTES
                           without ip= by DHCP, without ip6= by SLAAC
";

/// The greatest number of connections at a time.
const CONNECTIONS: usize = 64;
/// Bytes of a connection's buffer in each direction.
const WINDOW: usize = 16 << 10;
/// The number of queued datagrams in each direction, more than dnsperf sends before it waits (100),
/// and their bytes.
const DATAGRAMS: usize = 128;
const DATAGRAM_BYTES: usize = 16 << 10;
/// The pause after each time that `ping` computes, as that of the image.
const PAUSE: Duration = Duration::from_millis(10);
/// The exit status for invalid arguments, as everywhere in tare.
const MISUSED: u8 = 2;

/// The services.
#[derive(Clone, Copy)]
enum Service {
    Echo,
    Dns,
    Http,
    Ping,
}

/// The options.
struct Wanted {
    service: Service,
    port: u16,
    records: u32,
    compute: Duration,
    is_printed: bool,
    zone: Option<PathBuf>,
    files: Option<PathBuf>,
    address: IpAddr,
    tap: Option<String>,
    settings: Settings,
}

/// The clock of the process.
#[derive(Clone, Copy)]
struct Own;

impl Clock for Own {
    async fn sleep(&self, seconds: u32) {
        Timer::after(Duration::from_secs(seconds.into())).await;
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let wanted = match wanted(&words) {
        Ok(wanted) => wanted,
        Err(why) => {
            eprintln!("tare-service: {why}\n\n{USAGE}");
            return ExitCode::from(MISUSED);
        }
    };
    if wanted.is_printed {
        let text = match wanted.service {
            Service::Http => http::PAGE.to_owned(),
            _ => Zone::synthetic(wanted.records).to_string(),
        };
        return match std::io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("tare-service: can't print: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let Err(why) = run(&wanted);
    eprintln!("tare-service: {why}");
    ExitCode::FAILURE
}

fn wanted(words: &[String]) -> Result<Wanted, String> {
    let (service, port) = match words.first().map(String::as_str) {
        Some("echo") => (Service::Echo, echo::PORT),
        Some("dns") => (Service::Dns, dns::PORT),
        Some("http") => (Service::Http, http::PORT),
        Some("ping") => (Service::Ping, 0),
        _ => return Err("want a service".to_owned()),
    };
    let mut wanted = Wanted {
        service,
        port,
        records: 10_000,
        compute: Duration::ZERO,
        is_printed: false,
        zone: None,
        files: None,
        address: Ipv6Addr::UNSPECIFIED.into(),
        tap: None,
        settings: Settings::default(),
    };
    for word in &words[1..] {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let bad = |wanted: &str| format!("'{word}': want {wanted}");
        match key {
            "port" => wanted.port = value.parse().map_err(|_| bad("a port"))?,
            "address" => wanted.address = value.parse().map_err(|_| bad("an address"))?,
            "compute" => {
                let ms = value.parse().map_err(|_| bad("a number of ms"))?;
                wanted.compute = Duration::from_millis(ms);
            }
            "print" => wanted.is_printed = true,
            "zone" => wanted.zone = Some(value.into()),
            "files" => wanted.files = Some(value.into()),
            "tap" => wanted.tap = Some(value.to_owned()),
            "records" => {
                let records = value.parse().ok().filter(|hosts| *hosts <= MOST_HOSTS);
                wanted.records = records.ok_or_else(|| bad("a number of at most 2^24"))?;
            }
            _ if wanted.settings.read(word).map_err(|bad| bad.to_string())? => {}
            _ => return Err(format!("'{word}': there is no such word")),
        }
    }
    Ok(wanted)
}

/// Serves until the process is ended.
fn run(wanted: &Wanted) -> Result<Infallible, String> {
    if let Service::Ping = wanted.service {
        println!("answering on {}", wanted.address);
        loop {
            let begin = Instant::now();
            while begin.elapsed() < wanted.compute {}
            thread::sleep(PAUSE);
        }
    }
    let content = Content::read(wanted)?;
    let Some(name) = &wanted.tap else {
        let local = SocketAddr::new(wanted.address, wanted.port);
        let failed = |error: &dyn std::fmt::Debug| format!("can't answer on {local}: {error:?}");
        let datagrams = match wanted.service {
            Service::Http | Service::Ping => None,
            Service::Echo | Service::Dns => {
                Some(UdpSocket::bind(local).map_err(|error| failed(&error))?)
            }
        };
        let sockets = edge_nal_std::Stack::new();
        let listener = async_io::block_on(TcpBind::bind(&sockets, local));
        let listener = listener.map_err(|error| failed(&error))?;
        return thread::scope(|scope| {
            if let Some(socket) = datagrams {
                let answered = answer(wanted, udp::Batched::new(socket), &content);
                scope.spawn(|| block_on(answered));
            }
            async_io::block_on(serve(wanted, &listener, pending(), &content, local))
        });
    };
    let device = tap::Tap::open(name, wanted.settings.mtu)
        .map_err(|error| format!("the TAP device '{name}' can't be used: {error}"))?;
    let watch = Box::leak(Box::new(Watch::new(wanted.port)));
    let device = Filter::new(device, watch, &wanted.settings);
    let resources = Box::leak(Box::new(StackResources::<{ CONNECTIONS + 4 }>::new()));
    let (stack, mut runner) =
        embassy_net::new(device, wanted.settings.config(), resources, seed()?);
    let listener = Connections::new(stack, CONNECTIONS, WINDOW, watch);
    let up = async {
        stack.wait_config_up().await;
        let datagrams = match wanted.service {
            Service::Http | Service::Ping => None,
            Service::Echo | Service::Dns => {
                Datagrams::new(stack, wanted.port, DATAGRAMS, DATAGRAM_BYTES, watch)
            }
        };
        let local = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), wanted.port);
        let answered = async {
            match datagrams {
                Some(datagrams) => answer(wanted, datagrams, &content).await,
                None => pending().await,
            }
        };
        serve(wanted, &listener, answered, &content, local).await
    };
    let announced = async {
        match wanted.settings.v6.address {
            Some(_) => pending().await,
            None => use_routers(stack, watch).await,
        }
    };
    let stack = select3(runner.run(), announced, listener.make_room());
    match async_io::block_on(select(stack, up)) {
        Either::Second(ended) => ended,
    }
}

/// The content of the services.
struct Content {
    zone: Zone,
    files: Folder,
}

impl Content {
    fn read(wanted: &Wanted) -> Result<Self, String> {
        let zone = match (wanted.service, &wanted.zone) {
            (Service::Dns, Some(path)) => {
                let text = std::fs::read_to_string(path).map_err(|error| at(path, &error))?;
                Zone::read(&text).map_err(|bad| at(path, &bad))?
            }
            (Service::Dns, None) => Zone::synthetic(wanted.records),
            _ => Zone::synthetic(0),
        };
        let files = Folder::read(wanted.files.as_deref()).map_err(|error| match &wanted.files {
            Some(folder) => format!("the folder '{}' can't be read: {error}", folder.display()),
            None => error.to_string(),
        })?;
        Ok(Self { zone, files })
    }
}

/// Serves connections, and whatever answers datagrams.
async fn serve(
    wanted: &Wanted,
    listener: &impl Accept,
    answered: impl Future<Output = Infallible>,
    content: &Content,
    local: SocketAddr,
) -> Result<Infallible, String> {
    println!("answering on {local}");
    let executor = LocalExecutor::new();
    for _ in 0..CONNECTIONS {
        executor
            .spawn(connections(wanted.service, listener, content))
            .detach();
    }
    // As a task: the stack is woken whenever a socket is polled, and would wake this one.
    executor.spawn(answered).detach();
    match executor.run(pending::<Infallible>()).await {}
}

/// Answers datagrams.
async fn answer(
    wanted: &Wanted,
    datagrams: impl UdpReceive + UdpSend,
    content: &Content,
) -> Infallible {
    match wanted.service {
        Service::Echo => echo::udp(datagrams, wanted.port).await,
        Service::Dns => dns::udp(datagrams, &content.zone).await,
        Service::Http | Service::Ping => pending().await,
    }
}

/// Describes an error of a file.
fn at(path: &Path, what: &dyn std::fmt::Display) -> String {
    format!("{}: {what}", path.display())
}

async fn connections(service: Service, listener: &impl Accept, content: &Content) {
    match service {
        Service::Echo => echo::tcp(listener, Own).await,
        Service::Dns => dns::tcp(listener, &content.zone, Own).await,
        Service::Http => http::tcp(listener, &content.files, Own).await,
        Service::Ping => pending().await,
    }
}

/// Returns random bits for the stack.
fn seed() -> Result<u64, String> {
    let mut seed = [0; 8];
    let read = std::fs::File::open("/dev/urandom")
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut seed));
    read.map_err(|error| format!("/dev/urandom: {error}"))?;
    Ok(u64::from_ne_bytes(seed))
}
