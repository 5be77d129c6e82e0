//! What happened in a second: what each CPU was used for, and who interrupted it most.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::mem;

use anstyle::Style;
use rustix::time::{ClockId, clock_gettime};
use tare_figures::format::Numbers;
use tare_figures::words::{NONE, counted};
use tare_host::sample::is_kernel_thread;
use tare_host::{Sample, Source};
use tare_measured::linux::flight::live::Recorded;
use tare_pages::Table;
use tare_pages::text::Page;
use tare_results::model::Trace;
use tare_trace::takers::{Taker, uses};
use tare_wire::cpus::Cpus;

const N: Numbers = Numbers::PLAIN;

/// The most that are named where there is no terminal with fewer lines.
const MOST: usize = 100;

/// The share of a CPU's time from which on the first line says that it is not recorded.
const LEAST_MISSING: f64 = 0.01;

/// The least softirqs that the kernel has to count, and the share of them in its events below which it
/// left out more than the moments of reading explain.
const LEAST_COUNTED: u64 = 20;
const LEAST_RECORDED: f64 = 0.9;

/// The columns of the CPUs, after their numbers.
const OF_EVENTS: &[&str] = &[
    "interrupts",
    "softirqs",
    "kernel\nthreads",
    "other\nthreads",
    "idle",
    "ran most",
];
const OF_COUNTS: &[&str] = &[
    "interrupts\nand softirqs",
    "user and\nsystem",
    "stolen",
    "idle",
];
/// Those of interruptions, after their names.
const OF_TAKERS: [&str; 4] = ["CPU", "per s", "of the time", "longest"];

/// The screen of one second.
pub(super) struct View {
    most: String,
    /// Missing events, and the cost of recording.
    notes: String,
    columns: &'static [&'static str],
    cpus: Vec<Row>,
    /// Who interrupted, the greatest first.
    takers: Vec<Row>,
}

/// A row of a table, the share of time or the rate of its interruptions, and whether these are
/// recorded.
struct Row {
    taken: f64,
    is_recorded: bool,
    cells: Vec<String>,
}

impl Row {
    fn new(taken: f64, cells: Vec<String>) -> Self {
        let is_recorded = true;
        Self {
            taken,
            is_recorded,
            cells,
        }
    }
}

impl View {
    /// Adds up the events of a turn. `own_before_ns` is the CPU time of this process at the last turn, and
    /// then at this one; `counts` are the kernel's in the same time.
    pub(super) fn of_events(
        recorded: &Recorded,
        traces: &[Trace],
        own_before_ns: &mut u64,
        counts: &Sample,
        source: &Source,
    ) -> Self {
        let (mut cpus, mut takers, mut notes) = (Vec::new(), Vec::new(), String::new());
        for trace in traces {
            let (cpu, wall_ns) = (trace.set, trace.value.max(1) as f64);
            let share = |ns: u64| ns as f64 / wall_ns;
            let mut all = Vec::from_iter(uses(trace));
            all.sort_by_key(|(_, times)| Reverse(times.iter().sum::<u64>()));
            let mut ran = None;
            let (mut columns, mut by_name) = ([0; 6], BTreeMap::<Taker, Vec<u64>>::new());
            let mut softirqs = 0;
            for ((taker, tid), times) in all {
                let ns: u64 = times.iter().sum();
                let column = match (&taker, tid) {
                    (Taker::Interrupt { .. }, _) => 0,
                    (Taker::Softirq { .. }, _) => 1,
                    (Taker::Thread { .. }, Some(tid)) if is_kernel_thread(source, tid) => 2,
                    (Taker::Process { name } | Taker::Thread { name, .. }, Some(_))
                        if ran.is_none() =>
                    {
                        ran = Some(format!("{name} {}", N.percent(share(ns))));
                        continue;
                    }
                    (Taker::Process { .. } | Taker::Thread { .. }, Some(_)) => 3,
                    (Taker::Thread { .. }, None) => 4,
                    _ => 5,
                };
                columns[column] += ns;
                softirqs += if column == 1 { times.len() as u64 } else { 0 };
                if column != 4 {
                    by_name.entry(taker).or_default().extend(times);
                }
            }
            let of_kernel = counts.softirqs.known().into_iter().flatten();
            let of_kernel: u64 = of_kernel.map(|one| one.on(cpu)).sum();
            let is_short = (softirqs as f64) < of_kernel as f64 * LEAST_RECORDED;
            if trace.complete && of_kernel >= LEAST_COUNTED && is_short {
                notes += &format!(
                    " On CPU {cpu} the kernel counted {} softirqs, {} of which are in its events: it leaves out \
                     interruptions of certain threads (seen on Linux 6.18), so more occurred than are shown.",
                    N.count(of_kernel),
                    N.count(softirqs)
                );
            }
            let shares = columns[..5].iter().map(|ns| N.percent(share(*ns)));
            let cells = [cpu.to_string()].into_iter().chain(shares);
            let cells = cells.chain([ran.unwrap_or(NONE.to_owned())]).collect();
            let taken = share(columns[..4].iter().sum());
            cpus.push(Row::new(taken, cells));
            takers.extend(by_name.into_iter().map(|(taker, times)| {
                let is_recorded = taker != Taker::Unseen;
                let rate = match is_recorded {
                    true => N.rate(times.len() as f64 / wall_ns * 1e9),
                    false => NONE.to_owned(),
                };
                let taken = share(times.iter().sum());
                let longest = times.into_iter().max().unwrap_or(0);
                let longest = N.ns(longest as f64, None);
                let (name, cpu) = (taker.to_string(), cpu.to_string());
                Row {
                    is_recorded,
                    ..Row::new(taken, vec![name, cpu, rate, N.percent(taken), longest])
                }
            }));
        }
        takers.sort_by(|a, b| b.taken.total_cmp(&a.taken));
        let find = |is_seen: bool, least: f64| {
            let mut rows = takers.iter().filter(|row| row.taken >= least);
            let row = rows.find(|row| row.is_recorded == is_seen)?;
            let [name, share, cpu] = [0, 3, 1].map(|at| &row.cells[at]);
            let name = if is_seen { name } else { "Not recorded" };
            Some(format!("{name}: {share} of the time of CPU {cpu}."))
        };
        let most = match (find(true, 0.0), find(false, LEAST_MISSING)) {
            (Some(most), None) => format!("Most was taken by {most}"),
            (Some(most), Some(unseen)) => format!("Most was taken by {most} {unseen}"),
            (None, unseen) => unseen.unwrap_or("Nothing interrupted these CPUs.".to_owned()),
        };
        let now_ns = own_ns();
        let own_ns = now_ns - mem::replace(own_before_ns, now_ns);
        let wall_ns = traces.first().map_or(1, |trace| trace.value.max(1)) as f64;
        let lost = match recorded.lost {
            0 => "none was lost".to_owned(),
            lost => format!("about {} more were lost", N.count(lost)),
        };
        let recording = match recorded.recording_ns {
            Some(ns) => format!(
                "about {}",
                N.percent(ns as f64 / wall_ns / traces.len() as f64)
            ),
            None => "an unknown share".to_owned(),
        };
        let events = counted(N, recorded.events, "kernel event", "kernel events");
        let notes = format!(
            "{events}; {lost}. Recording took {recording} of the time; tare used {} of a CPU. Nothing is measured: these are \
             interruptions of whatever runs there; the thread that ran most is none.{notes}",
            N.percent(own_ns as f64 / wall_ns),
        );
        Self {
            most,
            notes,
            columns: OF_EVENTS,
            cpus,
            takers,
        }
    }

    /// Shows the kernel's counts in a turn, since its events can't be recorded.
    pub(super) fn of_counts(counts: &Sample, cpus: &Cpus, why: &str) -> Self {
        let interrupts = counts.interrupts.known().into_iter().flatten();
        let interrupts = interrupts.map(|one| match one.number() {
            Some(_) => (format!("interrupt {}", one.device()), one),
            None => (format!("interrupt {} ({})", one.name, one.description), one),
        });
        let softirqs = counts.softirqs.known().into_iter().flatten();
        let softirqs = softirqs.map(|one| (format!("softirq {}", one.name), one));
        let all = interrupts.chain(softirqs).flat_map(|(name, one)| {
            let here = |cpu: &u32| one.on(*cpu) > 0;
            cpus.iter().filter(here).map(move |cpu| {
                let taken = one.on(cpu) as f64 / counts.interval.as_secs_f64();
                let none = || NONE.to_owned();
                let cells = vec![name.clone(), cpu.to_string(), N.rate(taken), none(), none()];
                Row::new(taken, cells)
            })
        });
        let mut takers = Vec::from_iter(all);
        takers.sort_by(|a, b| b.taken.total_cmp(&a.taken));
        let most = match takers.first().map(|row| &row.cells[..]) {
            Some([name, cpu, rate, ..]) => format!(
                "Most often came {name}: {rate} on CPU {cpu}. How long each took is unknown."
            ),
            _ if counts.interrupts.known().is_none() => {
                "The kernel's counts of interrupts can't be read.".to_owned()
            }
            _ => "Nothing interrupted these CPUs.".to_owned(),
        };
        let row = |cpu: u32| {
            let times = counts.stat.known().and_then(|stat| stat.cpu(cpu));
            let of = times.copied().unwrap_or_default();
            let parts = [of.interrupts, of.user + of.system, of.steal, of.idle];
            let parts = parts.map(|part| match of.total() {
                0 => NONE.to_owned(),
                total => N.percent(part as f64 / total as f64),
            });
            let cells = [cpu.to_string()].into_iter().chain(parts).collect();
            Row::new(of.interrupts as f64, cells)
        };
        Self {
            most,
            notes: format!(
                "The kernel's events are not recorded: {why}. Its counts name no threads, functions or senders, and do not \
                 say how long anything took."
            ),
            columns: OF_COUNTS,
            cpus: cpus.iter().map(row).collect(),
            takers,
        }
    }

    /// Writes it for a width, and for a number of lines if there is one: of the CPUs those that were
    /// interrupted most.
    pub(super) fn text(&self, width: usize, lines: Option<usize>) -> String {
        let room = lines.map_or(usize::MAX, |lines| (lines / 3).max(1));
        let cpus = table("CPU", self.columns, &self.cpus, room).left(&[6]);
        let room = lines.map_or(MOST, |lines| lines / 2);
        let takers = table("by", &OF_TAKERS, &self.takers, room).of_prose();
        let mut page = Page::new(width);
        page.paragraph(&self.most, Style::new(), "");
        page.blank();
        page.table(&cpus);
        page.blank();
        page.paragraph(&self.notes, Style::new(), "");
        page.blank();
        page.table(&takers);
        page.finish().to_string().trim_end().to_owned()
    }
}

/// Makes a table of all rows, or of those with the most interruptions.
fn table(first: &str, columns: &[&str], rows: &[Row], most: usize) -> Table {
    let mut shown = Vec::from_iter(rows);
    let mut first = first.to_owned();
    if shown.len() > most {
        shown.sort_by(|a, b| b.taken.total_cmp(&a.taken));
        shown.truncate(most);
        first += &format!(" ({most} of {})", rows.len());
    }
    let mut table = Table::new([first.as_str()].into_iter().chain(columns.iter().copied()));
    for row in shown {
        table.row(row.cells.iter().cloned());
    }
    table
}

/// Returns the CPU time of this process, in ns.
pub(super) fn own_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use tare_host::sample::Reading;
    use tare_results::model::{TraceEvent, TraceKind};

    use super::*;

    fn at(at_ns: i64, what: TraceKind, function: Option<&str>) -> TraceEvent {
        TraceEvent {
            at_ns,
            what,
            from_user: false,
            sender: None,
            waited_ns: None,
            stack: function.map(str::to_owned).into_iter().collect(),
        }
    }

    /// A CPU that runs a thread with a tick each ms, and once another thread.
    fn ticking(cpu: u32) -> Trace {
        let name = || "local timer".to_owned();
        let thread = || "stress-ng-cpu/4000001".to_owned();
        let running = TraceKind::Running {
            thread: thread(),
            ours: false,
        };
        let mut events = vec![at(0, running, None)];
        for tick in 0..1_000 {
            let from = tick * 1_000_000 + 1_000;
            let entry = TraceKind::InterruptEntry { name: name() };
            let expired = TraceKind::TimerExpired { wakes: false };
            let exit = TraceKind::InterruptExit { name: name() };
            events.extend([
                at(from, entry, None),
                at(from + 500, expired, Some("tick_nohz_handler")),
                at(from + 4_200 + tick, exit, None),
            ]);
        }
        let switch = |from: String, to: String| TraceKind::Switch {
            from,
            from_priority: 120,
            to,
            to_priority: 120,
            ours: false,
        };
        let other = || "systemd-journald/4000002".to_owned();
        events.extend([
            at(999_500_000, switch(thread(), other()), None),
            at(999_800_000, switch(other(), thread()), None),
        ]);
        Trace {
            set: cpu,
            index: 0,
            value: 1_000_000_000,
            greatest: 1_000_000_000,
            samples: 1,
            complete: true,
            events,
            processes: [].into(),
        }
    }

    /// The counts of a second of two CPUs, the second of which is not accounted.
    fn counts() -> Sample {
        let root = tempfile::tempdir().unwrap();
        let proc = root.path().join("proc");
        fs::create_dir(&proc).unwrap();
        let source = Source::at(root.path());
        let read = |timer: u32, network: u32, user: u32, idle: u32| {
            let table = |rows: String| format!("  CPU0 CPU3\n{rows}");
            let interrupts = format!(
                "LOC: {timer} 0 Local timer interrupts\n36: 0 {} MSI 1-edge virtio0-req.0\n",
                network / 10
            );
            fs::write(proc.join("interrupts"), table(interrupts)).unwrap();
            let softirqs = format!("NET_RX: {network} 0\n");
            fs::write(proc.join("softirqs"), table(softirqs)).unwrap();
            let stat = format!("cpu0 {user} 0 0 {idle} 0 2\ncpu3 0 0 0 0\n");
            fs::write(proc.join("stat"), stat).unwrap();
            Reading::take(&source)
        };
        let mut counts = read(0, 0, 0, 0).until(read(1_000, 310, 31, 67));
        counts.interval = Duration::from_secs(1);
        counts
    }

    #[test]
    fn a_second_fits_80_columns_and_few_lines() {
        let mut lost = ticking(3);
        lost.complete = false;
        lost.events.drain(1..1_501);
        lost.events[0].at_ns = lost.events[1].at_ns;
        let recorded = Recorded {
            events: 4_504,
            lost: 1_500,
            recording_ns: Some(1_800_000),
        };
        let (traces, source) = ([ticking(0), lost], Source::at("/nonexistent"));
        let mut view = View::of_events(&recorded, &traces, &mut own_ns(), &counts(), &source);
        let own = view.notes.find("tare ").unwrap()..view.notes.find(" of a CPU").unwrap();
        view.notes.replace_range(own, "tare 1.20 %");
        insta::assert_snapshot!(view.text(80, Some(24)));
        let few = view.text(80, Some(4));
        assert!(few.contains("CPU (1 of 2)"), "{few}");
        assert!(few.contains("by (2 of "), "{few}");
    }

    #[test]
    fn counts_say_what_they_do_not_show() {
        let why = "the kernel does not record irq:irq_handler_entry on CPU 0 for us (Permission \
                   denied (os error 13)); run as root or with CAP_PERFMON";
        let view = View::of_counts(&counts(), &Cpus::parse("0,3").unwrap(), why);
        insta::assert_snapshot!(view.text(80, Some(24)));
    }
}
