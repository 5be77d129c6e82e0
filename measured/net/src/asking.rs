//! A client of the name server with the synthetic zone, to count the instructions of its requests
//! within one machine.

use core::net::{Ipv4Addr, SocketAddr};

use edge_nal::{UdpReceive, UdpSend};

/// The number of requests before the first that counts.
const FIRST: u32 = 1_000;
/// The hosts that are asked for in turn: those whose number has three digits.
const HOSTS: u32 = 900;
const FIRST_HOST: u32 = 100;
/// The first address of the zone.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);

/// Asks for hosts in turn, one after the other, and returns how far `now` has moved during
/// `requests` of them, after a first 1,000. `None` if an answer was wrong.
pub async fn measure(
    mut socket: impl UdpReceive + UdpSend,
    server: SocketAddr,
    requests: u32,
    now: impl Fn() -> u64,
) -> Option<u64> {
    let mut begin = 0;
    for number in 0..FIRST + requests {
        if number == FIRST {
            begin = now();
        }
        ask(&mut socket, server, number).await?;
    }
    Some(now() - begin)
}

/// Asks for a host. `None` if the answer is wrong.
async fn ask(
    socket: &mut (impl UdpReceive + UdpSend),
    server: SocketAddr,
    number: u32,
) -> Option<()> {
    let host = FIRST_HOST + number % HOSTS;
    let mut query = heapless::Vec::<u8, 64>::new();
    let [high, low] = (number as u16).to_be_bytes();
    query
        .extend_from_slice(&[high, low, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0])
        .ok()?;
    query.extend_from_slice(b"\x07host").ok()?;
    let digits = [100, 10, 1].map(|unit| b'0' + (host / unit % 10) as u8);
    query.extend_from_slice(&digits).ok()?;
    query.extend_from_slice(b"\x07example\0\0\x01\0\x01").ok()?;
    socket.send(server, &query).await.ok()?;
    let mut answer = [0; 128];
    let (bytes, _) = socket.receive(&mut answer).await.ok()?;
    let answer = answer.get(..bytes)?;
    let address = Ipv4Addr::from_bits(ADDRESS.to_bits() + host);
    // The same number, NOERROR, one answer, and its data.
    let is_right = answer[..2] == query[..2]
        && answer.get(3)? & 0xf == 0
        && answer.get(6..8)? == [0, 1]
        && answer.ends_with(&address.octets());
    is_right.then_some(())
}
