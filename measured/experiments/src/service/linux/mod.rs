//! The client on Linux's sockets.

mod client;
mod connection;
mod dnsperf;
mod highest;
mod process;

use std::io;

use rustix::time::ClockId;
use tare_wire::phases::LEAD_NS;
use tare_wire::record::{Begins, Record, Set, Unit};

use self::client::{Client, Counted, LOST};
use super::{NAME, Plan, Program, Protocol, RESPONSE, SERVICE, answers, message};
use crate::linux::clock::{now_ns, read_ns, sleep_until};
use crate::output::Output;
use crate::platform::Platform;
use crate::session::{self, Resources, Stop, Wanted};
use crate::table::{Failure, Measurement, Threads};
use crate::wakeup::linux::ThreadsError;

/// Returns the experiment on Linux.
pub fn on<P: Platform<Error = ThreadsError>>() -> Measurement<P> {
    Measurement {
        has: |id| id == NAME,
        threads: |words| Ok(Threads::one(Plan::parse(words)?.cpu)),
        run: |words, platform| {
            let plan = Plan::parse(words).map_err(Failure::Plan)?;
            run(&plan, platform).map_err(Failure::Measurement)
        },
    }
}

/// The reason why nothing was measured.
const NO_ANSWER: &str = "the server gave no right answer while the client waited for the first one";
/// The number of names that the server has to know before anything is measured.
const CHECKED: u64 = 100;

fn unreachable(source: io::Error) -> ThreadsError {
    ThreadsError::System {
        what: "way to the server",
        source,
    }
}

fn no_dnsperf(source: io::Error) -> ThreadsError {
    ThreadsError::System {
        what: "program dnsperf (Debian's package of that name)",
        source,
    }
}

/// Waits for the server's first answer, sends the requests, and writes the records.
fn run(plan: &Plan, platform: &mut impl Platform) -> Result<(), ThreadsError> {
    let allowed = plan.check();
    let wanted = Wanted {
        plan: &format_args!("workload={NAME} {plan}"),
        cpu: plan.cpu,
        bytes: allowed.map_or(0, |()| plan.buffer_bytes() as usize),
        allowed,
    };
    let prepare = |mut given: Resources| {
        let times = [(); 3].map(|()| given.arena.take::<u64>(plan.requests as usize));
        Ok::<_, ThreadsError>(times)
    };
    session::run(wanted, platform, prepare, |output, times| {
        let [sent, answered, sorted] = times;
        if plan.protocol == Protocol::Dns {
            let mut hosts = (0..plan.hosts).step_by(plan.hosts.div_ceil(CHECKED) as usize);
            hosts.try_for_each(|host| wait_for(plan, host))?;
        }
        let mut found = None;
        if plan.highest_ns.is_some() {
            let rate = highest::search(plan, sent, answered)?;
            highest::overload(plan, rate, sent, answered, output)?;
            found = Some(rate);
        }
        let plan = &found.map_or(*plan, |found| plan.at(found.rate));
        let mut client = Client::new(plan, sent, answered).map_err(unreachable)?;
        let requests = match plan.client {
            Program::Dnsperf => Some(dnsperf::requests(plan).map_err(no_dnsperf)?),
            _ => None,
        };
        let words = plan.client.words();
        wait_for_server(plan)?;
        if let Some(words) = &words {
            process::try_once(plan, words).map_err(ThreadsError::Client)?;
        }
        let origin_ns = now_ns() + LEAD_NS;
        output.put(&Record::Begins(Begins { origin_ns }))?;
        output.flush()?;
        while !sleep_until(origin_ns) {}
        let cpu_ns = spent_ns();
        let counted = match (requests, words) {
            (Some(requests), _) => client.run_dnsperf(requests).map_err(no_dnsperf)?,
            (_, Some(words)) => {
                let ran = client.run_processes(&words, origin_ns);
                ran.map_err(ThreadsError::Client)?
            }
            (None, None) => client.run(origin_ns),
        };
        // Both include the wait for the last requests that are lost.
        let (cpu_ns, round_ns) = (spent_ns() - cpu_ns, now_ns() - origin_ns);
        output.values(
            "",
            &[("client_cpu", "ns", cpu_ns), ("round", "ns", round_ns)],
        )?;
        if let Some(highest::Found { rate, is_client_s }) = found {
            let limited = ("limited", "", u64::from(is_client_s));
            output.values("", &[("highest", "", rate), limited])?;
        }
        if let Some(interval_ns) = interval_ns(plan) {
            // The first right answer to a request that is sent after all of them.
            let recovered = wait_for_server(plan);
            let last_ns = origin_ns + (plan.requests - 1) * interval_ns;
            let took_ns = now_ns() - last_ns;
            write(output, &client, sorted, origin_ns, &counted)?;
            recovered?;
            output.values("", &[("recovery", "ns", took_ns)])?;
        } else {
            write(output, &client, sorted, origin_ns, &counted)?;
        }
        Ok(())
    })
}

/// Returns the time between two planned requests. Only our own client reports when they were planned.
fn interval_ns(plan: &Plan) -> Option<u64> {
    plan.interval_ns.filter(|_| plan.client == Program::Own)
}

/// Waits until the server gives a right answer.
fn wait_for_server(plan: &Plan) -> Result<(), ThreadsError> {
    wait_for(plan, 0)
}

/// Waits until the server gives the right answer for a host.
fn wait_for(plan: &Plan, host: u64) -> Result<(), ThreadsError> {
    match answers(plan, host).map_err(unreachable)? {
        true => Ok(()),
        false => Err(Stop::Place(NO_ANSWER).into()),
    }
}

/// Returns the CPU time of this process and of the programs that it has started and that have
/// ended, in ns.
fn spent_ns() -> u64 {
    // SAFETY: zeroed is a valid `rusage`, which the kernel fills.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: it outlives the call.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let ns = |time: libc::timeval| {
        (time.tv_sec.cast_unsigned() * 1_000_000 + time.tv_usec.cast_unsigned()) * 1_000
    };
    read_ns(ClockId::ProcessCPUTime) + ns(usage.ru_utime) + ns(usage.ru_stime)
}

/// Writes the sets and what was counted.
fn write(
    output: &mut Output<'_, impl Platform>,
    client: &Client<'_>,
    sorted: &mut [u64],
    origin_ns: u64,
    counted: &Counted,
) -> Result<(), ThreadsError> {
    let plan = client.plan;
    let Counted {
        answered,
        wrong,
        late,
        repeated,
        unsent,
        behind,
        dropped,
        window_ns,
    } = *counted;
    // At a rate, the interval after the last request belongs to it.
    let planned_ns = interval_ns(plan).unwrap_or_default() * plan.requests;
    let values = [
        ("requests", "", plan.requests),
        ("answered", "", answered),
        ("wrong", "", wrong),
        ("late", "", late),
        ("window", "ns", window_ns.max(planned_ns)),
        // What only our own client knows of itself.
        ("repeated", "", repeated),
        ("unsent", "", unsent),
        ("behind", "", behind),
        ("dropped", "", dropped),
    ];
    let known = match plan.client {
        Program::Own => &values[..],
        _ => &values[..5],
    };
    output.values("", known)?;
    let open = interval_ns(plan).map(|_| RESPONSE);
    for (number, measure) in (0..).zip([Some(SERVICE), open].into_iter().flatten()) {
        let mut n = 0;
        for index in 0..plan.requests {
            if let Some(latency) = client.latency(index, measure == RESPONSE) {
                sorted[n] = latency;
                n += 1;
            }
        }
        let sorted = &mut sorted[..n];
        sorted.sort_unstable();
        // What was not even sent has no service latency.
        let asked = match measure {
            SERVICE => plan.requests - unsent,
            _ => plan.requests,
        };
        let lost = asked - n as u64;
        let set = Set {
            number,
            measure,
            unit: Unit::Ns,
            first: origin_ns,
            last: origin_ns + window_ns,
            uncounted: lost,
            uncounted_min: if lost > 0 { plan.limit_ns } else { 0 },
            uncounted_max: if lost > 0 { LOST } else { 0 },
            uncounted_sum: lost.saturating_mul(plan.limit_ns),
            ..Set::default()
        };
        output.sorted(set, sorted)?;
    }
    Ok(())
}
