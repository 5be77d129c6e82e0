//! The client itself: one thread, which sends at planned times or after answers, and checks every
//! answer.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use rustix::event::{Timespec, epoll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::connection::Connection;
use crate::linux::clock::now_ns;
use crate::service::message::{self, LONGEST, Message};
use crate::service::{BEHIND_NS, Plan, Protocol};

/// The value for a lost request, above that of every one that was answered, in ns: a year. How long
/// it would have taken is unknown.
pub const LOST: u64 = 366 * 86_400 * 1_000_000_000;

/// The time until a message is sent again that the kernel did not take, in ns.
const RETRY_NS: u64 = 100_000;
/// The number of sockets whose answers are read at a time.
const EVENTS: usize = 64;
/// The answers of a socket that are read before requests are sent again.
const IN_TURN: usize = 32;
/// The requests that are sent before answers are read again: one that has come waits for no more.
const SENT_IN_TURN: u64 = 8;
/// The number of the timer among the sockets.
const TIMER: u64 = u64::MAX;
/// The time of an answer that does not count any more, and the socket without a request.
const GONE: u64 = u64::MAX;

/// A client and the state of its requests.
pub struct Client<'p> {
    /// The plan.
    pub plan: &'p Plan,
    sockets: Vec<Connection>,
    epoll: OwnedFd,
    /// Ends a wait for answers.
    timer: OwnedFd,
    /// When each request was sent, by CLOCK_MONOTONIC in ns; 0 if it was not.
    sent: &'p mut [u64],
    /// When each was answered: 0 if it was not, [`GONE`] if an answer does not count any more.
    answered: &'p mut [u64],
    /// The requests of sockets with one at a time; [`GONE`] for none.
    current: Vec<u64>,
    /// When the first request is planned, in ns.
    origin_ns: u64,
    /// The first request that is neither sent nor given up, and the first that still waits for an
    /// answer.
    next: u64,
    oldest: u64,
    /// When sending `next` was first tried, in a closed loop.
    tried_ns: Option<u64>,
    /// When a socket was last freed by its answer, or its loss.
    freed_ns: u64,
    counted: Counted,
}

/// What a client counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Requests with a right answer within the limit.
    pub answered: u64,
    /// Requests with a wrong answer.
    pub wrong: u64,
    /// Right answers after the limit.
    pub late: u64,
    /// Answers to requests that had one.
    pub repeated: u64,
    /// Requests that were not sent, since their limit was over.
    pub unsent: u64,
    /// Requests that the client was behind with by at least [`BEHIND_NS`], while a socket was free.
    pub behind: u64,
    /// Messages that the kernel dropped since the client did not read them in time.
    pub dropped: u64,
    /// The time from the first planned request, in ns: at a rate to the last right answer, in a
    /// closed loop until the last request is answered or lost.
    pub window_ns: u64,
}

impl<'p> Client<'p> {
    /// Opens the sockets. The buffers have room for the plan's requests.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error.
    pub fn new(plan: &'p Plan, sent: &'p mut [u64], answered: &'p mut [u64]) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)?;
        let number = epoll::EventData::new_u64(TIMER);
        epoll::add(&epoll, &timer, number, epoll::EventFlags::IN)?;
        let mut sockets = Vec::new();
        for number in 0..plan.sockets {
            let socket = Connection::open(plan)?;
            socket.watch(&epoll, number)?;
            sockets.push(socket);
        }
        sent.fill(0);
        answered.fill(0);
        Ok(Self {
            plan,
            epoll,
            timer,
            sent,
            answered,
            current: vec![GONE; sockets.len()],
            sockets,
            origin_ns: 0,
            next: 0,
            oldest: 0,
            tried_ns: None,
            freed_ns: 0,
            counted: Counted::default(),
        })
    }

    /// Sends all requests, the first one planned at `origin_ns`, which has passed, and waits until
    /// each is answered or lost.
    pub fn run(&mut self, origin_ns: u64) -> Counted {
        self.origin_ns = origin_ns;
        loop {
            let wake_ns = self.send_due();
            let expire_ns = self.give_up();
            if self.next == self.plan.requests && self.oldest == self.next {
                if self.plan.interval_ns.is_none() {
                    self.counted.window_ns = now_ns() - origin_ns;
                }
                self.counted.dropped = self.dropped();
                return self.counted;
            }
            let wake_ns = wake_ns.into_iter().chain(expire_ns).min();
            self.receive(wake_ns.unwrap_or_else(|| now_ns() + RETRY_NS));
        }
    }

    /// Returns the latency of a request in ns: of the service, from when it was sent, or its
    /// response, from when it was planned. None if it was lost.
    pub fn latency(&self, index: u64, is_response: bool) -> Option<u64> {
        let (sent, answered) = (self.sent[index as usize], self.answered[index as usize]);
        let from = match self.plan.interval_ns {
            Some(interval) if is_response => self.origin_ns + index * interval,
            _ => sent,
        };
        (answered != 0 && answered != GONE).then(|| answered.saturating_sub(from))
    }

    /// Records a request that something else sent, and had answered.
    pub(super) fn set(&mut self, index: u64, sent_ns: u64, answered_ns: Option<u64>) {
        self.sent[index as usize] = sent_ns;
        self.answered[index as usize] = answered_ns.unwrap_or(GONE);
    }

    /// Sends the requests that are due, up to [`SENT_IN_TURN`]. Returns when the next one is, if a
    /// time decides that.
    fn send_due(&mut self) -> Option<u64> {
        let end = self.next + SENT_IN_TURN;
        while self.next < self.plan.requests {
            let now = now_ns();
            if self.next == end {
                return Some(now);
            }
            let socket = match self.takes_turns() {
                true => Some((self.next % self.plan.sockets) as usize),
                false => self.current.iter().position(|index| *index == GONE),
            };
            let planned = match self.plan.interval_ns {
                Some(interval) => self.origin_ns + self.next * interval,
                None => socket.map(|_| *self.tried_ns.get_or_insert(now))?,
            };
            if now < planned {
                return Some(planned);
            }
            // That all sockets are busy is not the client's doing.
            let begin_ns = match self.takes_turns() {
                true => planned,
                false => planned.max(self.freed_ns),
            };
            let is_behind = socket.is_some() && now - begin_ns >= BEHIND_NS;
            if now - planned > self.plan.limit_ns {
                self.counted.behind += u64::from(is_behind);
                self.counted.unsent += 1;
                self.answered[self.next as usize] = GONE;
            } else {
                let socket = socket?;
                let (id, host) = (self.id(self.next), self.next % self.plan.hosts);
                let request = Message::request(self.plan.protocol, id, host);
                // The time before the call: what sending takes is the service's.
                self.sent[self.next as usize] = now_ns();
                if let Err(error) = self.sockets[socket].send(request.bytes()) {
                    self.sent[self.next as usize] = 0;
                    if error.kind() != ErrorKind::WouldBlock {
                        self.renew(socket);
                    }
                    return Some(now + RETRY_NS);
                }
                self.counted.behind += u64::from(is_behind);
                if !self.takes_turns() {
                    self.current[socket] = self.next;
                }
            }
            self.tried_ns = None;
            self.next += 1;
        }
        None
    }

    /// Gives up the requests whose limit is over. Returns when that of the next one is.
    fn give_up(&mut self) -> Option<u64> {
        while self.oldest < self.next {
            let place = self.oldest as usize;
            if self.answered[place] == 0 {
                let until = self.sent[place] + self.plan.limit_ns;
                if now_ns() < until {
                    return Some(until);
                }
                self.answered[place] = GONE;
                if let Some(socket) = self.free(self.oldest) {
                    self.renew(socket);
                }
            }
            self.oldest += 1;
        }
        None
    }

    /// Lets the socket of a request send the next one, if that had to wait for it. Returns it.
    fn free(&mut self, index: u64) -> Option<usize> {
        let socket = self.current.iter().position(|own| *own == index)?;
        self.current[socket] = GONE;
        self.freed_ns = now_ns();
        Some(socket)
    }

    /// Replaces a connection whose answer would be taken for that of another request, or that has
    /// ended. A request that it had is lost when its limit is over.
    fn renew(&mut self, socket: usize) {
        if matches!(self.sockets[socket], Connection::Tcp(..)) {
            // One that can't be opened is tried again when it can't send.
            let opened = Connection::open(self.plan);
            let opened = opened.and_then(|own| own.watch(&self.epoll, socket as u64).map(|()| own));
            if let Ok(opened) = opened {
                self.sockets[socket] = opened;
            }
        }
    }

    /// Reads the answers that have come, or, if there are none, those that come first until a time.
    fn receive(&mut self, until_ns: u64) {
        let second = 1_000_000_000;
        let mut timeout = None;
        if until_ns <= now_ns() {
            timeout = Some(Timespec::default());
        } else {
            // Not a timeout of the wait, which is of whole milliseconds before Linux 5.11.
            let until = Itimerspec {
                it_interval: Timespec::default(),
                it_value: Timespec {
                    tv_sec: (until_ns / second).cast_signed(),
                    tv_nsec: (until_ns % second).cast_signed(),
                },
            };
            let set = timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &until);
            set.expect("the timer is open, and the time valid");
        }
        let mut events = Vec::<epoll::Event>::with_capacity(EVENTS);
        let filled = rustix::buffer::spare_capacity(&mut events);
        // A signal only makes it look earlier.
        let _ = epoll::wait(&self.epoll, filled, timeout.as_ref());
        let mut answer = [0; LONGEST];
        for event in events {
            let number = event.data.u64();
            if number == TIMER {
                continue;
            }
            let socket = number as usize;
            for _ in 0..IN_TURN {
                match self.sockets[socket].receive(&mut answer) {
                    Ok(Some(bytes)) => self.take(number, &answer[..bytes], now_ns()),
                    Ok(None) => {}
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => {
                        // By UDP it is that of a refused request, and the next read is of an answer.
                        self.renew(socket);
                    }
                }
            }
        }
    }

    /// Takes an answer that came at a time.
    fn take(&mut self, socket: u64, answer: &[u8], at_ns: u64) {
        let index = match self.sockets[socket as usize] {
            Connection::Udp(_) => {
                message::number(self.plan.protocol, answer).and_then(|id| self.index(socket, id))
            }
            Connection::Tcp(..) => Some(self.current[socket as usize]).filter(|own| *own != GONE),
        };
        let Some(index) = index else {
            self.counted.wrong += 1;
            return;
        };
        let (id, host) = (self.id(index), index % self.plan.hosts);
        let request = Message::request(self.plan.protocol, id, host);
        let is_right = request.is_answered_by(self.plan.protocol, host, answer);
        let place = index as usize;
        let is_late = at_ns - self.sent[place] > self.plan.limit_ns;
        match self.answered[place] {
            0 if is_right && !is_late => {
                self.answered[place] = at_ns;
                self.counted.answered += 1;
                self.counted.window_ns = at_ns - self.origin_ns;
            }
            0 => {
                self.answered[place] = GONE;
                self.counted.late += u64::from(is_right);
                self.counted.wrong += u64::from(!is_right);
            }
            GONE if is_late && is_right => self.counted.late += 1,
            _ => self.counted.repeated += 1,
        }
        self.free(index);
    }

    /// Returns how many messages the kernel dropped because the sockets' buffers were full.
    fn dropped(&self) -> u64 {
        let file = match self.plan.address {
            IpAddr::V4(_) => "/proc/thread-self/net/udp",
            IpAddr::V6(_) => "/proc/thread-self/net/udp6",
        };
        let table = fs::read_to_string(file).unwrap_or_default();
        let ports = self.sockets.iter().filter_map(Connection::udp_port);
        let ports: Vec<u16> = ports.collect();
        let own = table.lines().filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let port = words.get(1)?.rsplit(':').next()?;
            let port = u16::from_str_radix(port, 16).ok()?;
            let drops = words.last()?.parse::<u64>().ok()?;
            ports.contains(&port).then_some(drops)
        });
        own.sum()
    }

    /// Returns the number of a request in its message. Those of a socket follow each other in an
    /// open loop, and those of all sockets in a closed one.
    fn id(&self, index: u64) -> u16 {
        (index / self.in_turn()) as u16
    }

    /// Returns the last request that was sent by a socket with a number; None if there is none.
    fn index(&self, socket: u64, id: u16) -> Option<u64> {
        let in_turn = self.in_turn();
        let first = if in_turn == 1 { 0 } else { socket };
        let last = (self.next.checked_sub(first + 1)?) / in_turn;
        let back = (last as u16).wrapping_sub(id);
        let turn = last.checked_sub(back.into())?;
        let index = turn * in_turn + first;
        (self.sent[index as usize] != 0).then_some(index)
    }

    /// The sockets that take turns.
    fn in_turn(&self) -> u64 {
        match self.takes_turns() {
            true => self.plan.sockets,
            false => 1,
        }
    }

    /// Returns whether sockets take turns, whatever became of their last requests. By TCP an answer
    /// has no number, so each has one request at a time.
    fn takes_turns(&self) -> bool {
        self.plan.interval_ns.is_some() && self.plan.protocol != Protocol::Http
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::service::answers;

    /// Runs a client against a server that answers the n-th request with what `answer` makes of it,
    /// after a pause.
    fn run(
        plan: &Plan,
        answer: impl Fn(usize, &[u8]) -> Vec<(Duration, Vec<u8>)> + Send + 'static,
    ) -> (Counted, Vec<Option<u64>>, Vec<Option<u64>>) {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let plan = Plan {
            protocol: Protocol::Echo,
            port: server.local_addr().unwrap().port().into(),
            ..*plan
        };
        server
            .set_read_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        let serving = thread::spawn(move || {
            let mut bytes = [0; LONGEST];
            let mut number = 0;
            while let Ok((length, from)) = server.recv_from(&mut bytes) {
                let from: SocketAddr = from;
                for (pause, answer) in answer(number, &bytes[..length]) {
                    thread::sleep(pause);
                    server.send_to(&answer, from).unwrap();
                }
                number += 1;
            }
        });
        let [mut sent, mut answered] = [(); 2].map(|()| vec![0; plan.requests as usize]);
        let mut client = Client::new(&plan, &mut sent, &mut answered).unwrap();
        let counted = client.run(now_ns());
        let of = |is_response| {
            let all = 0..plan.requests;
            all.map(|index| client.latency(index, is_response))
                .collect()
        };
        let latencies = (of(false), of(true));
        drop(client);
        serving.join().unwrap();
        (counted, latencies.0, latencies.1)
    }

    fn at_once(answer: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        vec![(Duration::ZERO, answer.to_vec())]
    }

    #[test]
    fn every_request_is_answered_once() {
        // Few enough for a socket's buffer, if the machine stands still.
        for (interval_ns, sockets) in [(None, 1), (None, 7), (Some(200_000), 1), (Some(200_000), 7)]
        {
            let plan = Plan {
                requests: 200,
                sockets,
                interval_ns,
                limit_ns: 2_000_000_000,
                ..Plan::default()
            };
            let (counted, service, response) = run(&plan, |_, request| at_once(request));
            let wanted = Counted {
                answered: 200,
                behind: counted.behind,
                window_ns: counted.window_ns,
                ..Counted::default()
            };
            assert_eq!(counted, wanted, "{sockets} sockets, {interval_ns:?}");
            let pairs = service.iter().zip(&response);
            assert!(
                pairs
                    .into_iter()
                    .all(|(own, all)| own <= all && own.is_some())
            );
        }
    }

    #[test]
    fn answers_are_read_while_requests_are_due() {
        let plan = Plan {
            requests: 100_000,
            interval_ns: Some(1),
            limit_ns: 1_000_000_000,
            ..Plan::default()
        };
        let (counted, ..) = run(&plan, |_, request| at_once(request));
        // More than a socket's buffer holds, none of them lost in it.
        assert!(counted.answered > 10_000, "{counted:?}");
        assert_eq!(counted.dropped, 0);
    }

    #[test]
    fn more_requests_than_numbers_are_kept_apart() {
        let plan = Plan {
            requests: 150_000,
            sockets: 2,
            limit_ns: 2_000_000_000,
            ..Plan::default()
        };
        let (counted, ..) = run(&plan, |_, request| at_once(request));
        assert_eq!((counted.answered, counted.repeated), (150_000, 0));
    }

    #[test]
    fn a_pause_of_the_server_is_in_the_response_of_every_request_planned_in_it() {
        let plan = Plan {
            requests: 1_000,
            interval_ns: Some(1_000_000),
            limit_ns: 2_000_000_000,
            ..Plan::default()
        };
        let (counted, _, response) = run(&plan, |number, request| {
            let pause = if number == 500 { 200 } else { 0 };
            vec![(Duration::from_millis(pause), request.to_vec())]
        });
        assert_eq!(counted.answered, 1_000);
        let above = |ms: u64| {
            let late = response.iter().flatten().filter(|ns| **ns > ms * 1_000_000);
            late.count()
        };
        // One in 200 ms at a rate of 1,000 a second, evenly.
        assert!(above(100) >= 90, "{}", above(100));
        assert!(above(195) >= 1);
    }

    #[test]
    fn requests_without_a_right_answer_in_time_are_lost() {
        for interval_ns in [None, Some(1_000_000)] {
            let plan = Plan {
                requests: 100,
                sockets: 2,
                interval_ns,
                limit_ns: 20_000_000,
                ..Plan::default()
            };
            let (counted, service, _) = run(&plan, |number, request| match number % 10 {
                1 => Vec::new(),
                // Nothing is changed that names the request.
                2 => {
                    let mut wrong = request.to_vec();
                    wrong[20] ^= 1;
                    at_once(&wrong)
                }
                3 => [at_once(request), at_once(request)].concat(),
                _ => at_once(request),
            });
            let wanted = Counted {
                answered: 80,
                wrong: 10,
                repeated: 10,
                behind: counted.behind,
                window_ns: counted.window_ns,
                ..Counted::default()
            };
            assert_eq!(counted, wanted);
            assert_eq!(service.iter().flatten().count(), 80);
        }
    }

    #[test]
    fn a_closed_loop_lasts_until_its_last_requests_are_lost() {
        let plan = Plan {
            requests: 6,
            limit_ns: 30_000_000,
            ..Plan::default()
        };
        let (counted, ..) = run(&plan, |number, request| match number {
            0 | 1 => at_once(request),
            _ => Vec::new(),
        });
        assert!(counted.answered <= 2, "{counted:?}");
        assert!(counted.window_ns >= 4 * plan.limit_ns, "{counted:?}");
    }

    #[test]
    fn an_answer_after_the_limit_is_late_and_its_request_lost() {
        let plan = Plan {
            requests: 3,
            limit_ns: 30_000_000,
            ..Plan::default()
        };
        let (counted, service, _) = run(&plan, |number, request| {
            let pause = if number == 1 { 60 } else { 0 };
            vec![(Duration::from_millis(pause), request.to_vec())]
        });
        // The third one waits behind it, and may be lost as well.
        assert!(
            counted.answered >= 1 && counted.answered <= 2,
            "{counted:?}"
        );
        assert!(counted.late >= 1, "{counted:?}");
        assert_eq!(service[1], None);
    }

    /// Serves pages over TCP: the n-th connection of all closes without an answer to its
    /// `closes`-th request.
    fn pages(closes: usize) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in listener.incoming() {
                thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    stream.set_nodelay(true).unwrap();
                    let mut bytes = [0; LONGEST];
                    for _ in 0..closes {
                        let Ok(1..) = stream.read(&mut bytes) else {
                            return;
                        };
                        let (head, body) = (
                            "HTTP/1.1 200 OK\r\nContent-Length: 34\r\n\r\n",
                            "<!doctype html><title>tare</title>",
                        );
                        // In two parts: a reader has to put them together.
                        stream.write_all(head.as_bytes()).unwrap();
                        stream.write_all(body.as_bytes()).unwrap();
                    }
                    let _ = stream.read(&mut bytes);
                });
            }
        });
        port
    }

    #[test]
    fn pages_are_asked_for_over_connections_and_a_closed_one_loses_its_request() {
        for (interval_ns, closes, answered) in [
            (None, 1_000, 300),
            (Some(500_000), 1_000, 300),
            // Each connection answers 50, and loses the next one.
            (None, 50, 297),
        ] {
            let plan = Plan {
                protocol: Protocol::Http,
                port: pages(closes).into(),
                sockets: 3,
                requests: 300,
                interval_ns,
                limit_ns: 200_000_000,
                ..Plan::default()
            };
            assert!(answers(&plan, 0).unwrap());
            let [mut sent, mut at] = [(); 2].map(|()| vec![0; 300]);
            let mut client = Client::new(&plan, &mut sent, &mut at).unwrap();
            let counted = client.run(now_ns());
            let close = counted.answered.abs_diff(answered) <= 3;
            assert!(close, "{interval_ns:?}, {closes}: {counted:?}");
            assert_eq!(counted.wrong, 0);
        }
    }
}
