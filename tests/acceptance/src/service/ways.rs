//! One service in three ways, and the size of its features in bytes.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use tare_networks::{NetworkNamespace, TapNetwork};

use super::{Asker, Machine, built, one_at_a_time, spent};
use crate::verdict::Verdicts;
use crate::{Owned, Result, median, output};

/// The number of turns of each way.
const TURNS: usize = 5;
/// The arguments of dnsperf.
const DNSPERF: &str = "-l 2 -c 2 -q 50";
/// The number of requests that curl sends over 64 connections.
const REQUESTS: u32 = 10_000;
/// The number of datagrams echoed one at a time, and their bytes.
const ECHOES: usize = 10_000;
const ECHO_BYTES: usize = 64;

/// The services.
const SERVICES: [&str; 3] = ["dns", "echo", "http"];
const WAYS: [&str; 3] = ["image in QEMU (TCG)", "Linux's sockets", "own stack on TAP"];

/// The name server with features besides IPv4 and UDP, and the limits on its size in bytes.
const FEATURES: [(&str, Option<f64>); 7] = [
    ("", None),
    ("dhcp", Some(100_000.0)),
    ("ipv6,tcp", None),
    ("dhcp,ipv6,tcp", Some(150_000.0)),
    ("dhcp,slaac,tcp", Some(170_000.0)),
    ("dhcp,files,slaac,tcp", None),
    ("console,dhcp,figures,files,slaac,tcp", None),
];

/// Prints the size of each feature of the name server.
pub fn sizes(verdicts: &mut Verdicts) -> Result<()> {
    println!(
        "       {:>7}  features of dns besides IPv4 and UDP",
        "bytes"
    );
    for (features, most) in FEATURES {
        let path = built(&format!("dns-{features}"))?;
        let bytes = path.metadata()?.len();
        println!("       {bytes:>7}  {features}");
        if let Some(most) = most {
            verdicts.at_most(&format!("bytes of dns with {features}"), bytes as f64, most);
        }
    }
    Ok(())
}

/// Prints the cost of an answer of the same code in an image, on Linux's sockets, and in a process
/// with the image's stack.
pub fn ways() -> Result<()> {
    let (network, asker) = (TapNetwork::new()?, Asker::new()?);
    for service in SERVICES {
        let mut turns = [const { Vec::new() }; 3];
        for number in 0..TURNS {
            for place in 0..turns.len() {
                let place = (place + number) % turns.len();
                let cost = cost(&network, &asker, service, place);
                turns[place].push(cost.map_err(|error| format!("{}: {error}", WAYS[place]))?);
            }
        }
        for (way, turns) in WAYS.into_iter().zip(turns) {
            let us = median(turns);
            println!("       {service}, {way}: {us:.1} µs of CPU time per answer");
        }
    }
    Ok(())
}

/// Returns the cost of an answer in one way, in µs of CPU time of the process.
fn cost(network: &TapNetwork, asker: &Asker, service: &str, way: usize) -> Result<f64> {
    // The address belonged to another card before.
    ip(&network.clients, "neighbour flush dev eth0")?;
    let ask = || match service {
        "dns" => asker.ask(network, DNSPERF),
        "echo" => Ok((echo(network)?, 0.0)),
        _ => Ok((browse(network)?, 0.0)),
    };
    let ([_, all], _) = if way == 0 {
        let qemu = Machine::ALL[0].boot(network, &built(service)?, TapNetwork::WORDS, "")?;
        spent(qemu.id(), ask)?
    } else {
        let tap = format!("tap={} {}", TapNetwork::DEVICE, TapNetwork::WORDS);
        let mut command = Command::new(built("tare-service")?);
        command.arg(service).stdout(Stdio::piped());
        if way == 1 {
            address(network, "add")?;
        } else {
            command.args(tap.split(' '));
        }
        network.hypervisor.contain(&mut command)?;
        let mut process = Owned(command.spawn()?);
        wait_for_line(&mut process)?;
        let spent = spent(process.0.id(), ask);
        drop(process);
        if way == 1 {
            address(network, "del")?;
        }
        spent?
    };
    Ok(all)
}

/// Adds the guest's address on the hypervisor's side, or removes it.
fn address(network: &TapNetwork, action: &str) -> Result<()> {
    let address = TapNetwork::GUEST.0;
    let words = format!("address {action} {address}/24 dev bridge0");
    ip(&network.hypervisor, &words)
}

fn ip(within: &NetworkNamespace, words: &str) -> Result<()> {
    let mut ip = Command::new("ip");
    within.contain(ip.args(words.split(' ')))?;
    output(&mut ip).map(drop)
}

fn wait_for_line(process: &mut Owned) -> Result<()> {
    use std::io::Read;
    let stdout = process.0.stdout.as_mut();
    let stdout = stdout.ok_or("standard output is a pipe")?;
    let mut byte = [0];
    while byte != *b"\n" {
        stdout.read_exact(&mut byte)?;
    }
    // The other side's card is detected a moment later.
    thread::sleep(Duration::from_millis(500));
    Ok(())
}

/// Sends datagrams to an echo service, and returns how many came back.
fn echo(network: &TapNetwork) -> Result<f64> {
    let datagram = |number: usize| vec![number as u8; ECHO_BYTES];
    let is_echo = |answer: &[u8], sent: &[u8]| answer == sent;
    let exchange =
        || one_at_a_time(7, ECHOES, datagram, is_echo).map_err(|error| error.to_string());
    Ok(network.clients.within(exchange)??.len() as f64)
}

/// Requests the system's figures, common to all ways, many times, and returns the number of
/// requests.
fn browse(network: &TapNetwork) -> Result<f64> {
    let url = format!("http://{}/metrics?[1-{REQUESTS}]", TapNetwork::GUEST.0);
    let mut curl = Command::new("curl");
    curl.args(
        "-sS -m 100 -Z --parallel-max 64 --parallel-immediate -o /dev/null -w %{http_code}\\n"
            .split(' '),
    );
    network.clients.contain(curl.arg(&url))?;
    let told = output(&mut curl)?;
    match told.lines().filter(|line| *line == "200").count() as u32 {
        REQUESTS => Ok(REQUESTS.into()),
        answered => Err(format!("of {REQUESTS} requests {answered} were answered").into()),
    }
}
