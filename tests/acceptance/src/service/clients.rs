//! Clients and name servers of others, by `tare service`: what dnsperf says of the same server, and of
//! servers that stall or lose requests; and NSD and Knot with the same zone.

use std::net::UdpSocket;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tare_figures::rows::RunFigure;

use super::{costs, middle};
use crate::verdict::Verdicts;
use crate::{Result, figure, median, of_row, run as tare};

/// How often both clients measure one after the other, in alternating order.
const ROUNDS: usize = 15;
/// The most by which their medians differ.
const MOST: f64 = 0.1;
/// A rate at which a server that stalls or loses requests is asked.
const OFFERED: &str = "--rate 500 --duration 6s --timeout 2s --runs 1";
/// The word that makes this program a server.
pub const SERVER: &str = "serve";

/// Compares clients, and then servers.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let scratch = scratch.path();
    same_median(scratch, verdicts)?;
    let of = |kind: &str, client: &str, name: &str| {
        let program = std::env::current_exe()?;
        let server = format!("command:{} {SERVER} {kind}", program.display());
        let words = format!("service {OFFERED} {client}");
        tare(scratch, name, words.trim(), &["--server", &server])
    };
    let stalls = of("stalls", "--client own", "stalls")?;
    let p99_ns = figure(&stalls, "service", ("response", "p99"), &[])?;
    verdicts.at_least("a server that stalls: our p99, s", p99_ns / 1e9, 0.8);
    let stalls = of("stalls", "--client dnsperf --sockets 1", "stalls-dnsperf")?;
    let p99_ns = figure(&stalls, "service", ("service", "p99"), &[])?;
    let what = "a server that stalls: p99 of dnsperf -q 1, ms";
    verdicts.at_most(what, p99_ns / 1e6, 10.0);
    let loses = of("loses", "--client own", "loses")?;
    let known = of_row(&loses, "service", ("response", "p99"), &[], |row| {
        let first = row.each.first().ok_or("there is no run")?;
        Ok(first.figure)
    })?;
    let above_ns = match known {
        RunFigure::AtLeast(ns) => ns,
        _ => 0.0,
    };
    let what = "a server that loses 2 %: our p99 is above, s";
    verdicts.at_least(what, above_ns / 1e9, 2.0);
    servers(scratch, verdicts)
}

/// Compares the medians of both clients at one rate, in alternation.
fn same_median(scratch: &Path, verdicts: &mut Verdicts) -> Result<()> {
    let p50 = |client: &str, number: usize| {
        let words = format!("service --client {client} --rate 1000 --duration 2s --runs 1");
        let folder = tare(scratch, &format!("{client}-{number}"), &words, &[])?;
        figure(&folder, "service", ("service", "p50"), &[])
    };
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let mut each = [0.0; 2];
        for turn in [round % 2, 1 - round % 2] {
            each[turn] = p50(["own", "dnsperf"][turn], round)?;
        }
        ratios.push(each[0] / each[1]);
    }
    println!("       medians of our client / of dnsperf: {ratios:.3?}");
    let what = "median of our client / of dnsperf, at one rate";
    verdicts.within(what, median(ratios), 1.0 - MOST, 1.0 + MOST);
    Ok(())
}

/// Compares our name server as a process with NSD and Knot.
fn servers(scratch: &Path, verdicts: &mut Verdicts) -> Result<()> {
    for (client, words) in [
        ("one at a time", "--requests 3000"),
        (
            "dnsperf",
            "--client dnsperf --sockets 100 --requests 100000",
        ),
    ] {
        let words = format!("service {words} --server own,nsd,knot --runs 10");
        let folder = tare(scratch, client, &words, &[])?;
        let cost = |server: Option<&str>| -> Result<f64> {
            let [ns, spread] = middle(costs(&folder, ("process", server), "all")?);
            let name = server.unwrap_or("own");
            println!(
                "       {client}, {name}: {ns:.0} ns; interquartile range / median: {spread:.2}"
            );
            Ok(ns)
        };
        let (own, nsd, knot) = (cost(None)?, cost(Some("nsd"))?, cost(Some("knot"))?);
        let what = format!("own / the better of NSD and Knot, {client}, CPU time");
        verdicts.at_most(&what, own / nsd.min(knot), 1.0);
    }
    Ok(())
}

/// Is a name server that does not always answer in time, until it is killed.
pub fn serve(kind: &str) -> Result<()> {
    let socket = UdpSocket::bind(("0.0.0.0", 53))?;
    // Requests during a stall must not be lost because a buffer is full.
    let (sender, requests) = mpsc::channel();
    let reader = socket.try_clone()?;
    thread::spawn(move || {
        let mut bytes = [0; 512];
        while let Ok((length, from)) = reader.recv_from(&mut bytes) {
            if sender.send((bytes, length, from)).is_err() {
                break;
            }
        }
    });
    for (number, (mut bytes, length, from)) in (1_u64..).zip(requests) {
        let length = address(&mut bytes, length).ok_or("it is no question for a host")?;
        match kind {
            "stalls" if number % 1_000 == 0 => thread::sleep(Duration::from_secs(1)),
            "loses" if number % 50 == 0 => continue,
            _ => {}
        }
        socket.send_to(&bytes[..length], from)?;
    }
    Ok(())
}

/// Makes an answer of the request for a host's address. Returns its length.
fn address(bytes: &mut [u8; 512], length: usize) -> Option<usize> {
    let label = bytes.get(13..)?.get(..bytes[12].into())?;
    let host = std::str::from_utf8(label).ok()?.strip_prefix("host")?;
    let address = (10 << 24) + host.parse::<u32>().ok()?;
    // Authoritative, with one record: the name of the question, type A, class IN, an hour.
    bytes[2] |= 0x84;
    bytes[7] = 1;
    let record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4];
    let record = [&record[..], &address.to_be_bytes()].concat();
    let end = length + record.len();
    bytes.get_mut(length..end)?.copy_from_slice(&record);
    Some(end)
}
