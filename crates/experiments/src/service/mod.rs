//! `service`, after includeos-2015: what a network service costs on each target, for each request.
//!
//! A cell has a server on the target, which is the same code everywhere, and a client on this
//! machine, which is the same for all. The client measures. The plan has its work, and separately
//! that of the server. The CPU time of the server is read on this machine.

mod checks;
mod measures;
mod memory;
mod parameters;
mod story;
mod tables;

use std::net::SocketAddr;

use tare_figures::format::Numbers;
use tare_lab::estimate::OVERHEAD_SECONDS;
use tare_lab::experiment::{Conditions, Experiment};
use tare_lab::parameter::{Parameter, Values};
use tare_lab::plan::at_most;
use tare_lab::{Driven, Endpoint, ExperimentError, Stage};
use tare_loads::cpus::{allowed, current};
use tare_measured::service::{Plan, Program, Protocol, REQUESTS, TIMES, answers};
use tare_networks::TapNetwork;
use tare_results::model::{CellPlan, Labels, Schedule};
use tare_results::target::TargetSpec;
use tare_results::work::Work;
use tare_targets::{Availability, process, server};
use tare_wire::cpus::Cpus;

pub use tare_measured::service::NAME;

use self::parameters::{OWN, Pace, STACK};

/// The label of a client other than the built-in one.
const CLIENT: &str = "client";
/// The label of a server other than ours.
const SERVER: &str = "server";
/// The label of a start: until the server's line, or its first answer.
const UNTIL: &str = "until";
/// The label of a service, and that of the offered rate: requests per second, or [`HIGHEST`].
const SERVICE: &str = "service";
const RATE: &str = "rate";
const HIGHEST: &str = "highest";
/// The label of a cell whose guest has the least memory with which its service answers.
const LEAST_MEMORY: (&str, &str) = ("memory", "least");

/// The rate at which a closed loop of the built-in client is estimated to run, that of others, and
/// that which every target is given the time for, in requests per second and socket.
const EXPECTED: f64 = 5_000.0;
const OF_OTHERS: f64 = 50.0;
const LEAST: f64 = 20.0;

/// How long a search of the least memory takes.
const SEARCH_SECONDS: f64 = 30.0;

/// The rates that a search is estimated to offer, and at most does.
const SEARCHED: [f64; 2] = [14.0, 32.0];

/// The experiment, as studies name it.
#[derive(Clone, Copy, Debug)]
pub struct Service;

impl Experiment for Service {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "what a network service costs: CPU time and latency of each request"
    }

    fn without_arguments(&self) -> &'static str {
        "Without arguments, a name server as a process is asked for 1,000 addresses, one after the other; six times. It requires \
         root, to make its networks."
    }

    /// The client is on this machine.
    fn without_agent(&self) -> bool {
        true
    }

    fn parameters(&self) -> &'static [Parameter] {
        parameters::ALL
    }

    fn combinations(
        &self,
        conditions: &Conditions,
        values: &Values,
    ) -> Result<Vec<CellPlan>, ExperimentError> {
        let program = parameters::client(values)?;
        let paces = parameters::paces(values)?;
        let protocols = parameters::protocols(values);
        let servers = parameters::servers(values);
        let client = other_cpu(conditions.cpu);
        let measured = [conditions.cpu, client].into_iter().collect();
        check_loads(&conditions.loads, &allowed().unwrap_or_default(), &measured)?;
        let has_taps = process::taps() == Availability::Usable;
        let mut all = Vec::new();
        for target in &conditions.targets {
            check_target(target, values)?;
            for server in &servers {
                let own = protocols.iter().filter(|one| serves(server, **one, target));
                all.extend(own.map(|protocol| (target, *server, *protocol)));
            }
        }
        check_servers(&servers, &all)?;
        at_most((all.len() * conditions.loads.len() * paces.len()) as u64)?;
        let mut cells = Vec::new();
        for (target, server, protocol) in all {
            for load in &conditions.loads {
                for pace in &paces {
                    let plan = plan((program, protocol), *pace, client, values);
                    plan.check().map_err(|bad| contradiction(bad.to_string()))?;
                    let own = parameters::words(protocol, values);
                    let mut cell = cell((target, server), &own, &plan, *pace, conditions.cpu);
                    let mut search = 0.0;
                    if values.has(parameters::LEAST_MEMORY.name) {
                        mark(&mut cell, LEAST_MEMORY, " with the least memory");
                        search = SEARCH_SECONDS;
                    }
                    // Pings are not forwarded.
                    let forwarded = target.kernel().is_guest() && protocol != Protocol::Ping;
                    if !has_taps && forwarded {
                        mark(&mut cell, CellPlan::USER_NETWORK, ", user-mode network");
                    }
                    let (expected, more) = seconds(&plan, *pace);
                    let mut cell = conditions.under(load, cell, OVERHEAD_SECONDS + expected);
                    cell.estimate_seconds += search;
                    if conditions.cell_limit.is_none() {
                        let first_ns = plan.patience_ns + plan.limit_ns;
                        cell.limit_seconds += search + more + first_ns as f64 / 1e9;
                    }
                    cells.push(cell);
                }
            }
        }
        Ok(cells)
    }

    fn drive(&self, stage: &mut Stage<'_>) -> Driven {
        let words = format!("workload={NAME} {}", stage.plan().work.words);
        let plan = Plan::parse(words.split_whitespace()).unwrap_or_default();
        let at = |to: SocketAddr| Plan {
            address: to.ip(),
            port: to.port().into(),
            ..plan
        };
        let endpoint = Endpoint {
            port: plan.port as u16,
            words: &|to| at(to).to_string(),
            is_answered: &|to| answers(&at(to), 0).unwrap_or_default(),
        };
        let (label, value) = LEAST_MEMORY;
        match stage.plan().labels.get(label) == Some(value) {
            true => memory::play(stage, &endpoint),
            false => stage.served(&stage.plan().target, &endpoint),
        }
    }

    fn work(&self, words: &str) -> Option<Work> {
        Some(work(&Plan::parse(words.split_whitespace()).ok()?))
    }
}

/// Returns the client's plan.
fn plan((client, protocol): (Program, Protocol), pace: Pace, cpu: u32, values: &Values) -> Plan {
    let (address, _) = TapNetwork::GUEST;
    let duration_ns = parameters::DURATION.number(values) as f64;
    let of = |rate: u64| ((rate as f64 * duration_ns / 1e9) as u64).clamp(1, REQUESTS[1]);
    let several = match client {
        Program::Dnsperf => parameters::SOCKETS_OF_DNSPERF,
        _ => parameters::SOCKETS_OF_A_RATE,
    };
    let (requests, interval_ns, sockets) = match pace {
        Pace::Closed => (parameters::REQUEST.number(values), None, 1),
        Pace::Rate(rate) => (of(rate), Some(1_000_000_000 / rate), several),
        Pace::Highest => (of(parameters::RATES[1]), None, several),
    };
    let limit_ns = match client.is_of_processes() {
        false => Plan::default().limit_ns,
        // It takes a process its time to start.
        true => 5_000_000_000,
    };
    Plan {
        protocol,
        client,
        address: address.into(),
        port: protocol.port(),
        sockets: values.number(parameters::SOCKET.name).unwrap_or(sockets),
        requests,
        interval_ns,
        highest_ns: (pace == Pace::Highest).then_some(duration_ns as u64),
        limit_ns: values.number(parameters::TIMEOUT.name).unwrap_or(limit_ns),
        cpu: Some(cpu),
        ..Plan::default()
    }
}

/// Returns how long a round is expected to take, and how much longer at most, in seconds.
fn seconds(plan: &Plan, pace: Pace) -> (f64, f64) {
    let closed = |rate: f64| plan.requests as f64 / (rate * plan.sockets as f64);
    match (pace, plan.client) {
        (Pace::Rate(rate), _) => (plan.requests as f64 / rate as f64, 0.0),
        (Pace::Highest, _) => {
            let one = plan.highest_ns.unwrap_or_default() as f64 / 1e9;
            let [expected, longest] = SEARCHED.map(|rates| (rates + TIMES.len() as f64) * one);
            (expected, longest - expected)
        }
        // All requests may be lost.
        (Pace::Closed, client) => {
            let is_own = client == Program::Own;
            let expected = closed(if is_own { EXPECTED } else { OF_OTHERS });
            (expected, closed(LEAST.min(1e9 / plan.limit_ns as f64)))
        }
    }
}

/// Makes a cell, whose server runs on a CPU of this machine, without its duration; `own` are the
/// words of ours.
fn cell(
    (target, program): (&TargetSpec, &str),
    own: &str,
    plan: &Plan,
    pace: Pace,
    cpu: u32,
) -> CellPlan {
    let service = plan.protocol.name();
    let server = match parameters::command(program) {
        Some(words) => Work::new(Work::COMMAND, words),
        None if program == OWN => Work::new(service, own),
        None if program == STACK => Work::new(service, server::STACK),
        None => Work::new(program, ""),
    };
    let server = Work {
        cpus: Some(Cpus::one(cpu)),
        ..server
    };
    let mut cell = CellPlan {
        labels: Labels::default().with(SERVICE, service),
        server: Some(server),
        ..CellPlan::new(NAME, target.clone(), service, work(plan))
    };
    if program != OWN {
        mark(&mut cell, (SERVER, program), &format!(" of {program}"));
    }
    if plan.client != Program::Own {
        let client = plan.client.name();
        mark(&mut cell, (CLIENT, &client), &format!(" by {client}"));
    }
    match pace {
        Pace::Closed => {}
        Pace::Rate(rate) => {
            let words = format!(" at {}", Numbers::PLAIN.rate(rate as f64));
            mark(&mut cell, (RATE, &rate.to_string()), &words);
        }
        Pace::Highest => mark(&mut cell, (RATE, HIGHEST), " at its highest rate"),
    }
    cell
}

/// Adds a label to a cell, and words to its name.
fn mark(cell: &mut CellPlan, (label, value): (&str, &str), words: &str) {
    cell.labels = std::mem::take(&mut cell.labels).with(label, value);
    cell.name += words;
}

/// Makes the work of a client's plan.
fn work(plan: &Plan) -> Work {
    let words = Plan { cpu: None, ..*plan }.to_string();
    Work {
        cpus: plan.cpu.map(Cpus::one),
        buffer_bytes: plan.buffer_bytes(),
        ..Work::new(NAME, &words)
    }
}

/// Returns a CPU for the client: another one than the server's, if there is one.
fn other_cpu(server: u32) -> u32 {
    let allowed = current().unwrap_or_default();
    let mut others = allowed.iter().filter(|cpu| *cpu != server);
    others.next().unwrap_or(server)
}

/// Refuses a load on other CPUs than those of server and client where there are none.
fn check_loads(loads: &[Schedule], allowed: &Cpus, measured: &Cpus) -> Result<(), ExperimentError> {
    match loads.iter().find(|load| load.is_on_others()) {
        Some(load) if allowed.without(measured).count() == 0 => Err(contradiction(format!(
            "{load}: server and client use CPU {measured}, and this process may use no other: give a list of CPUs, or all"
        ))),
        _ => Ok(()),
    }
}

/// Refuses a target on which no service can be started, or not as the values want it.
fn check_target(target: &TargetSpec, values: &Values) -> Result<(), ExperimentError> {
    let is_guest = target.kernel().is_guest();
    let has_memory = target.options.iter().any(|option| option.key == "mem");
    let finds_least = values.has(parameters::LEAST_MEMORY.name);
    let refused = if !target.capabilities().serves {
        format!(
            "no service can be started on '{target}': of containers, those of tare's own image can, of Linux guests those with an initramfs, and guest,image=FILE"
        )
    } else if finds_least && (has_memory || !is_guest) {
        format!("--least-memory is for guests without mem=, which '{target}' is not")
    } else {
        return Ok(());
    };
    Err(contradiction(refused))
}

/// Returns whether a server has a service on a target: others than ours are programs of this
/// machine.
fn serves(server: &str, protocol: Protocol, target: &TargetSpec) -> bool {
    let is_process = target.capabilities().is_direct;
    match server {
        OWN => true,
        STACK => is_process && protocol != Protocol::Ping,
        "nginx" => protocol == Protocol::Http && target.kernel().is_host(),
        _ if parameters::command(server).is_some() => is_process,
        _ => protocol == Protocol::Dns && target.kernel().is_host(),
    }
}

/// Refuses servers without a target or a service that they could have.
fn check_servers(
    servers: &[&str],
    all: &[(&TargetSpec, &str, Protocol)],
) -> Result<(), ExperimentError> {
    let idle = servers
        .iter()
        .find(|server| !all.iter().any(|(_, own, _)| own == *server));
    idle.map_or(Ok(()), |server| {
        Err(contradiction(format!(
            "{server} is for another service or target: nsd and knot answer dns and nginx http, as a process or in a container; stack and command are processes"
        )))
    })
}

fn contradiction(why: String) -> ExperimentError {
    ExperimentError::Contradiction {
        experiment: NAME,
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_on_other_cpus_than_server_and_client_needs_some() {
        let check = |load: &str, allowed: &str| {
            let [allowed, both] = [allowed, "0-1"].map(|list| Cpus::parse(list).unwrap());
            check_loads(&[Schedule::parse(load).unwrap()], &allowed, &both)
        };
        assert!(check("cpus=all:dd", "0-1").is_ok());
        assert!(check("cpus=others:dd", "0-2").is_ok());
        let why = check("cpus=others:dd", "0-1").unwrap_err().to_string();
        assert!(why.contains("server and client use CPU 0-1"), "{why}");
    }

    #[test]
    fn server_and_client_are_both_claimed() {
        let [server, client] = [2, 3];
        let plan = Plan {
            cpu: Some(client),
            ..Plan::default()
        };
        let target = tare_targets::process::spec();
        let cell = cell((&target, OWN), "", &plan, Pace::Closed, server);
        assert_eq!(cell.measured_cpus(), Cpus::one(server));
        assert_eq!(cell.claimed_cpus(), Cpus::parse("2-3").unwrap());
    }
}
