//! The plan of a client, as words.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr};

use tare_wire::bounds::{Refusal, within};
use tare_wire::words::PlanError;

use crate::arena::Arena;
use crate::words::{self, Form, Put, Slot, Word};

/// The id of its plans.
pub const NAME: &str = "service";

/// The description of the words, for the help.
pub const USAGE: &str = "
Words of a client of a service:
  workload=service          sends requests, and checks every answer
  protocol=dns|echo|http|ping
                            kind of the requests: by UDP, http by TCP, ping by ICMP
  client=own|nslookup|dnsperf|command:WORDS
                            the program that sends them; nslookup and a command are started for
                            each, the command's words percent-encoded: {name}, {address} and {port}
                            in them say what to ask for
  address=ADDRESS           address of the server (127.0.0.1)
  port=N                    port of the server (53)
  sockets=N                 sockets, used in turn
  requests=N                requests in all
  interval=TIME             time between two planned requests (open loop); without it each socket
                            sends when its last request was answered (closed loop)
  highest=TIME              searches the highest rate of which 99.99 % is answered, each offered
                            for this time; requests are then the most of a rate
  limit=TIME                time after which a request is lost
  patience=TIME             longest time until the server gives its first answer
  hosts=N                   names of the zone 'example' that are asked for in turn
  cpu=N                     CPU to which the client is pinned
";

/// The bounds of the number of requests.
pub const REQUESTS: [u64; 2] = [1, 20_000_000];
/// The bounds of the number of sockets.
pub const SOCKETS: [u64; 2] = [1, 512];
/// The bounds of the limit of a request, in ns.
pub const LIMIT_NS: [u64; 2] = [1_000_000, 60_000_000_000];
/// The bounds of the time between two requests, in ns: up to a million requests a second.
const INTERVAL_NS: [u64; 2] = [1_000, 60_000_000_000];
/// The bounds of the time for which a rate is offered, in ns.
pub const HIGHEST_NS: [u64; 2] = [100_000_000, 600_000_000_000];
/// The bounds of the patience, in ns.
const PATIENCE_NS: [u64; 2] = [1_000_000, 600_000_000_000];
/// The bounds of the number of hosts: 10.0.0.0/8 has as many addresses.
const HOSTS: [u64; 2] = [1, 1 << 24];

/// A plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Kind of the requests.
    pub protocol: Protocol,
    /// The program that sends them.
    pub client: Program,
    /// Address of the server.
    pub address: IpAddr,
    /// Its port.
    pub port: u32,
    /// Number of sockets.
    pub sockets: u64,
    /// Number of requests.
    pub requests: u64,
    /// Time between two planned requests, in ns; None for a closed loop.
    pub interval_ns: Option<u64>,
    /// For how long each rate is offered while the highest one is searched, in ns; None for none.
    pub highest_ns: Option<u64>,
    /// Time after which a request is lost, in ns.
    pub limit_ns: u64,
    /// The longest wait for the first answer, in ns.
    pub patience_ns: u64,
    /// Number of names that are asked for in turn.
    pub hosts: u64,
    /// CPU to which the client is pinned; any if None.
    pub cpu: Option<u32>,
}

/// A kind of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Look-ups of addresses (RFC 1035).
    #[default]
    Dns,
    /// Datagrams that come back (RFC 862).
    Echo,
    /// A page, over connections that stay open (RFC 9112).
    Http,
    /// Echo messages of ICMP (RFC 792), by IPv4: the system answers them, not a service.
    Ping,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Dns, Self::Echo, Self::Http, Self::Ping];

    /// Returns the name of the service that takes them.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Echo => "echo",
            Self::Http => "http",
            Self::Ping => "ping",
        }
    }

    /// Returns the service's port; pings need none, and get that of echo.
    #[must_use]
    pub fn port(self) -> u32 {
        match self {
            Self::Dns => 53,
            Self::Echo | Self::Ping => 7,
            Self::Http => 80,
        }
    }
}

impl Form for Protocol {
    fn read(&mut self, text: &str) -> Result<(), &'static str> {
        let found = Self::ALL.into_iter().find(|one| one.name() == text);
        *self = found.ok_or("dns, echo, http or ping")?;
        Ok(())
    }

    fn write(&self, put: Put<'_>) -> fmt::Result {
        put(&self.name())
    }
}

/// A program that sends requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Program {
    /// The agent itself.
    #[default]
    Own,
    /// `nslookup`, a process for each request.
    Nslookup,
    /// `dnsperf`, one process for all.
    Dnsperf,
    /// A command, a process for each request.
    Command(Packed),
}

impl Program {
    /// Those that have a name, with it.
    const NAMED: [(Self, &str); 3] = [
        (Self::Own, "own"),
        (Self::Nslookup, "nslookup"),
        (Self::Dnsperf, "dnsperf"),
    ];
    /// What the name of a command begins with.
    const COMMAND: &str = "command:";

    /// Returns its name, with the command.
    #[cfg(feature = "primitives")]
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Command(words) => format!("{}{}", Self::COMMAND, words.line()),
            _ => self.to_string(),
        }
    }

    /// Returns whether each request is a process of its own.
    #[must_use]
    pub fn is_of_processes(self) -> bool {
        matches!(self, Self::Nslookup | Self::Command(_))
    }

    /// Returns the words of the process that a request is, before what is asked for is put in the
    /// place of `{name}`, `{address}` and `{port}`; `None` if it is none.
    #[cfg(feature = "primitives")]
    #[must_use]
    pub fn words(self) -> Option<Vec<String>> {
        const NSLOOKUP: &str = "nslookup -type=a -port={port} {name} {address}";
        let line = match self {
            Self::Own | Self::Dnsperf => return None,
            Self::Nslookup => NSLOOKUP.to_owned(),
            Self::Command(words) => words.line(),
        };
        // Words that can't be split are none, and can't be started.
        Some(shlex::split(&line).unwrap_or_default())
    }

    /// Returns the program of a name, whose command is not encoded yet; `None` if there is none.
    #[cfg(feature = "primitives")]
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let packed = name.strip_prefix(Self::COMMAND).and_then(Packed::of);
        let command = packed.map(Self::Command);
        let command = command.filter(|one| {
            one.words()
                .is_some_and(|words| words.first().is_some_and(|first| !first.is_empty()))
        });
        let mut named = Self::NAMED.into_iter();
        named
            .find(|(_, own)| *own == name)
            .map(|(one, _)| one)
            .or(command)
    }
}

impl fmt::Display for Program {
    /// Writes its name, with the command as it is packed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Command(words) = self {
            return write!(f, "{}{}", Self::COMMAND, words.text());
        }
        let mut named = Self::NAMED.into_iter();
        let name = named.find(|(one, _)| one == self).map(|(_, name)| name);
        f.write_str(name.unwrap_or_default())
    }
}

impl Form for Program {
    fn read(&mut self, text: &str) -> Result<(), &'static str> {
        let command = text.strip_prefix(Self::COMMAND).and_then(Packed::read);
        let mut named = Self::NAMED.into_iter();
        let found = named.find(|(_, name)| *name == text).map(|(one, _)| one);
        *self = found
            .or(command.map(Self::Command))
            .ok_or("own, nslookup, dnsperf or command:WORDS")?;
        Ok(())
    }

    fn write(&self, put: Put<'_>) -> fmt::Result {
        match self {
            Self::Own => Ok(()),
            _ => put(self),
        }
    }
}

/// A command line without blanks: percent-encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    bytes: [u8; Self::MOST],
    length: u8,
}

impl Packed {
    /// The most bytes of one: a plan is copied with it.
    const MOST: usize = 192;

    /// Packs a command line; `None` if it is too long.
    #[cfg(feature = "primitives")]
    fn of(line: &str) -> Option<Self> {
        use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
        const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'%');
        Self::read(&utf8_percent_encode(line, ENCODED).to_string())
    }

    /// Reads one that is packed; `None` if it is too long.
    fn read(text: &str) -> Option<Self> {
        let mut packed = Self {
            bytes: [0; Self::MOST],
            length: text.len().try_into().ok()?,
        };
        packed
            .bytes
            .get_mut(..text.len())?
            .copy_from_slice(text.as_bytes());
        Some(packed)
    }

    fn text(&self) -> &str {
        let text = self.bytes.get(..self.length.into()).unwrap_or_default();
        // It was text when it was read.
        core::str::from_utf8(text).unwrap_or_default()
    }

    /// Returns the command line.
    #[cfg(feature = "primitives")]
    fn line(&self) -> String {
        percent_encoding::percent_decode_str(self.text())
            .decode_utf8_lossy()
            .into_owned()
    }
}

impl Form for IpAddr {
    fn read(&mut self, text: &str) -> Result<(), &'static str> {
        *self = text.parse().map_err(|_| "an IPv4 or IPv6 address")?;
        Ok(())
    }

    fn write(&self, put: Put<'_>) -> fmt::Result {
        put(self)
    }
}

impl Default for Plan {
    /// The look-ups of includeos-2015, one at a time.
    fn default() -> Self {
        Self {
            protocol: Protocol::Dns,
            client: Program::Own,
            address: Ipv4Addr::LOCALHOST.into(),
            port: Protocol::Dns.port(),
            sockets: 1,
            requests: 1_000,
            interval_ns: None,
            highest_ns: None,
            limit_ns: 250_000_000,
            patience_ns: 5_000_000_000,
            hosts: 10_000,
            cpu: None,
        }
    }
}

const WORDS: &[Word<Plan>] = &[
    ("protocol", |plan| Slot::Form(&mut plan.protocol)),
    ("client", |plan| Slot::Form(&mut plan.client)),
    ("address", |plan| Slot::Form(&mut plan.address)),
    ("port", |plan| Slot::Small(&mut plan.port)),
    ("sockets", |plan| Slot::Number(&mut plan.sockets)),
    ("requests", |plan| Slot::Number(&mut plan.requests)),
    ("interval", |plan| Slot::AnyTime(&mut plan.interval_ns)),
    ("highest", |plan| Slot::AnyTime(&mut plan.highest_ns)),
    ("limit", |plan| Slot::Time(&mut plan.limit_ns)),
    ("patience", |plan| Slot::Time(&mut plan.patience_ns)),
    ("hosts", |plan| Slot::Number(&mut plan.hosts)),
    ("cpu", |plan| Slot::AnySmall(&mut plan.cpu)),
];

impl Plan {
    /// Reads a plan from its words.
    ///
    /// # Errors
    ///
    /// Returns [`PlanError`] for an invalid word.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, PlanError<'a>> {
        let mut plan = Self::default();
        words::read(&mut plan, WORDS, words, &["workload"])?;
        Ok(plan)
    }

    /// Checks its bounds. The requests that wait for an answer at a time must be fewer than a
    /// socket has numbers for them.
    ///
    /// # Errors
    ///
    /// Returns the word that is out of bounds.
    pub fn check(&self) -> Result<(), Refusal> {
        let all = [
            ("port", u64::from(self.port), [1, u64::from(u16::MAX)]),
            ("sockets", self.sockets, SOCKETS),
            ("requests", self.requests, REQUESTS),
            (
                "interval",
                self.interval_ns.unwrap_or(INTERVAL_NS[1]),
                INTERVAL_NS,
            ),
            ("limit", self.limit_ns, LIMIT_NS),
            ("patience", self.patience_ns, PATIENCE_NS),
            ("hosts", self.hosts, HOSTS),
        ];
        let mut all = all.into_iter();
        all.try_for_each(|(what, given, [least, most])| within(what, given, least, most))?;
        if let Some(ns) = self.highest_ns {
            within("highest", ns, HIGHEST_NS[0], HIGHEST_NS[1])?;
            // A search needs room for `requests` in that time.
            within(
                "requests",
                self.requests,
                ns / INTERVAL_NS[1] + 1,
                ns / INTERVAL_NS[0],
            )?;
        }
        let shortest = self.highest_ns.map(|ns| ns / self.requests);
        let waiting = shortest.or(self.interval_ns);
        let waiting = waiting.map_or(1, |ns| self.limit_ns / ns);
        within(
            "sockets",
            self.sockets,
            waiting.div_ceil(NUMBERS),
            SOCKETS[1],
        )
    }

    /// Returns the plan of a rate that is offered, in requests per second, for the time for which
    /// each is while the highest one is searched.
    #[must_use]
    pub fn at(&self, rate: u64) -> Self {
        let seconds = self.highest_ns.unwrap_or_default() as f64 / 1e9;
        Self {
            requests: ((rate as f64 * seconds) as u64).clamp(1, self.requests),
            interval_ns: Some(1_000_000_000 / rate),
            highest_ns: None,
            ..*self
        }
    }

    /// Returns the size of the buffers, in bytes: when each request was sent and answered, and its
    /// latency.
    #[must_use]
    pub fn buffer_bytes(&self) -> u64 {
        3 * Arena::bytes::<u64>(self.requests as usize) as u64
    }
}

/// The number of requests of a socket that are distinguished at a time: half of what 16 bits hold.
const NUMBERS: u64 = 1 << 15;

impl fmt::Display for Plan {
    /// Writes all words but the id.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        words::write(*self, WORDS, f)
    }
}
