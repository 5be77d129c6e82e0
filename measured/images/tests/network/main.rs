//! Images on the network, in QEMU: cards, real clients, hostile ones, and bad links.

mod cards;
mod clients;
#[path = "../common/mod.rs"]
mod common;
mod hostile;
mod link;
mod neighbors;
mod packets;
mod routers;
mod wire;

const DNS: &str = env!("CARGO_BIN_EXE_dns");
const ECHO: &str = env!("CARGO_BIN_EXE_echo");
const HTTP: &str = env!("CARGO_BIN_EXE_http");
const PING: &str = env!("CARGO_BIN_EXE_ping");
