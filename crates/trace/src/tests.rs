//! Traces whose culprit is known.

use std::collections::BTreeMap;
use std::slice;

use proptest::prelude::*;
use tare_results::model::{Trace, TraceEvent, TraceKind};

use crate::blame::{Blame, Culprit, blame};
use crate::parts::Parts;
use crate::takers::{takers, uses, way_in_ns};

const OURS: &str = "tare-agent/9";
/// SCHED_FIFO 95, as the kernel counts.
const RANK: i32 = 4;

fn at(at_ns: i64, what: TraceKind) -> TraceEvent {
    TraceEvent {
        at_ns,
        what,
        from_user: false,
        sender: None,
        waited_ns: None,
        stack: Vec::new(),
    }
}

fn running(at_ns: i64, thread: &str) -> TraceEvent {
    let ours = thread == OURS;
    let thread = thread.to_owned();
    at(at_ns, TraceKind::Running { thread, ours })
}

fn enter(at_ns: i64, name: &str) -> TraceEvent {
    let name = name.to_owned();
    at(at_ns, TraceKind::InterruptEntry { name })
}

fn leave(at_ns: i64, name: &str) -> TraceEvent {
    let name = name.to_owned();
    at(at_ns, TraceKind::InterruptExit { name })
}

fn softirq(from_ns: i64, to_ns: i64, name: &str) -> [TraceEvent; 2] {
    let name = || name.to_owned();
    [
        at(from_ns, TraceKind::SoftirqEntry { name: name() }),
        at(to_ns, TraceKind::SoftirqExit { name: name() }),
    ]
}

fn waking(at_ns: i64) -> TraceEvent {
    let thread = OURS.to_owned();
    let (ours, priority) = (true, RANK);
    at(
        at_ns,
        TraceKind::Waking {
            thread,
            ours,
            priority,
        },
    )
}

/// The CPU goes on from a thread to another one, each with its priority.
fn switch(at_ns: i64, from: (&str, i32), to: (&str, i32)) -> TraceEvent {
    at(
        at_ns,
        TraceKind::Switch {
            from: from.0.to_owned(),
            from_priority: from.1,
            to: to.0.to_owned(),
            to_priority: to.1,
            ours: to.0 == OURS,
        },
    )
}

/// The timer's interrupt, which makes our thread runnable 2 µs after it was entered, and takes 3
/// µs.
fn timer(at_ns: i64) -> [TraceEvent; 4] {
    [
        enter(at_ns, "local timer"),
        at(at_ns + 1_500, TraceKind::TimerExpired { wakes: true }),
        waking(at_ns + 2_000),
        leave(at_ns + 3_000, "local timer"),
    ]
}

fn with_stack(mut event: TraceEvent, stack: &[&str]) -> TraceEvent {
    event.stack = stack.iter().map(|name| (*name).to_owned()).collect();
    event
}

fn judged<const N: usize>(latency_ns: u64, events: [&[TraceEvent]; N]) -> Blame {
    let trace = Trace {
        set: 0,
        index: 7,
        value: latency_ns,
        greatest: latency_ns,
        samples: 1,
        complete: true,
        events: events.concat(),
        processes: [].into(),
    };
    let blame = blame(&trace, 0);
    assert_eq!(blame.parts.total_ns(), latency_ns);
    let shares: u64 = blame.shares.iter().map(|share| share.ns).sum();
    assert_eq!(shares, latency_ns);
    blame
}

const IDLE: (&str, i32) = ("idle", 120);
const TAR: (&str, i32) = ("tar/55", 120);
const US: (&str, i32) = (OURS, RANK);

#[test]
fn an_idle_cpu_that_is_interrupted_late_was_held_up_from_outside() {
    let blame = judged(
        805_000,
        [
            &[running(-40_000, "idle")],
            &timer(800_000),
            &[switch(804_000, IDLE, US)],
        ],
    );
    let parts = Parts {
        late_interrupt_ns: 800_000,
        non_preemptible_ns: 4_000,
        return_ns: 1_000,
        ..Parts::default()
    };
    assert_eq!(blame.parts, parts);
    assert_eq!(blame.culprit_text, "outside this kernel");
}

#[test]
fn a_late_interrupt_into_user_mode_came_from_outside() {
    let mut timer = timer(500_000);
    timer[0].from_user = true;
    let blame = judged(
        510_000,
        [
            &[running(-1, "tar/55")],
            &timer,
            &[switch(509_000, TAR, US)],
        ],
    );
    assert_eq!(blame.culprit, Culprit::OutsideKernel);
    assert_eq!(blame.parts.late_interrupt_ns, 500_000);
}

#[test]
fn a_late_interrupt_into_the_kernel_may_have_been_kept_off() {
    let mut timer = timer(500_000);
    let stack = [
        "_raw_spin_unlock_irqrestore",
        "free_pcppages_bulk",
        "free_unref_page",
    ];
    timer[0] = with_stack(timer[0].clone(), &stack);
    let blame = judged(
        510_000,
        [
            &[running(-1, "tar/55")],
            &timer,
            &[switch(509_000, TAR, US)],
        ],
    );
    assert_eq!(
        blame.culprit_text,
        "interrupts off in tar/55 (until free_pcppages_bulk), or outside this kernel"
    );
}

#[test]
fn a_softirq_during_which_the_interrupt_is_late_is_named_with_the_doubt() {
    let [entry, exit] = softirq(-10_000, 320_000, "NET_RX");
    let blame = judged(
        330_000,
        [
            &[running(-20_000, "dd/123"), entry],
            &timer(300_000),
            &[exit, switch(325_000, ("dd/123", 120), US)],
        ],
    );
    assert_eq!(blame.parts.late_interrupt_ns, 300_000);
    assert_eq!(
        blame.culprit_text,
        "interrupts off in dd/123, softirq NET_RX, or outside this kernel"
    );
    let of_softirq = blame.shares.iter().find(|share| share.ns == 17_000);
    let text = of_softirq.map(|share| share.culprit.to_string());
    assert_eq!(text.as_deref(), Some("softirq NET_RX in dd/123"));
}

#[test]
fn another_interrupts_handler_keeps_the_timers_off() {
    let blame = judged(
        100_000,
        [
            &[running(-9_000, "dd/123"), enter(-2_000, "virtio0-req.0")],
            &[leave(90_000, "virtio0-req.0")],
            &timer(91_000),
            &[switch(99_000, ("dd/123", 120), US)],
        ],
    );
    assert_eq!(blame.culprit_text, "interrupt virtio0-req.0 in dd/123");
    assert_eq!(blame.parts.late_interrupt_ns, 1_000);
    assert_eq!(blame.parts.non_preemptible_ns, 98_000);
}

#[test]
fn a_handler_that_was_entered_before_the_events_begin_is_named_too() {
    let blame = judged(
        100_000,
        [
            &[running(-3, "dd/123"), leave(90_000, "virtio0-req.0")],
            &timer(91_000),
            &[switch(99_000, ("dd/123", 120), US)],
        ],
    );
    assert_eq!(blame.culprit_text, "interrupt virtio0-req.0 in dd/123");
}

#[test]
fn a_softirq_on_the_way_out_of_the_interrupt_is_named() {
    let blame = judged(
        200_000,
        [
            &[running(-9_000, "dd/123")],
            &timer(1_000),
            &softirq(4_500, 190_000, "NET_RX"),
            &[switch(195_000, ("dd/123", 120), US)],
        ],
    );
    assert_eq!(blame.culprit_text, "softirq NET_RX in dd/123");
    // The timer's handler, the softirq, and what the thread itself could not be interrupted in.
    assert_eq!(blame.parts.non_preemptible_ns, 194_000);
    assert_eq!(blame.parts.return_ns, 5_000);
}

#[test]
fn a_thread_of_lower_rank_that_goes_on_can_not_be_preempted() {
    let stack = [
        "preempt_schedule_common",
        "__cond_resched",
        "zap_pte_range",
        "unmap_page_range",
    ];
    let blame = judged(
        900_000,
        [
            &[running(-9_000, "tar/55")],
            &timer(500),
            &[enter(400_000, "reschedule"), leave(402_000, "reschedule")],
            &[with_stack(switch(897_000, TAR, US), &stack)],
        ],
    );
    assert_eq!(
        blame.culprit_text,
        "non-preemptible section in tar/55 (until zap_pte_range)"
    );
    let parts = Parts {
        late_interrupt_ns: 500,
        non_preemptible_ns: 896_500,
        return_ns: 3_000,
        ..Parts::default()
    };
    assert_eq!(blame.parts, parts);
    let mut shares = blame.shares.iter();
    let timer = shares.find(|share| share.culprit.to_string() == "interrupt local timer");
    assert_eq!(timer.map(|share| share.ns), Some(3_000));
}

#[test]
fn a_thread_of_higher_priority_is_scheduling() {
    let hog = ("hog/77", 0);
    let blame = judged(
        10_000_000,
        [
            &[running(-9_000, "hog/77")],
            &timer(500),
            &[
                enter(4_000_000, "local timer"),
                leave(4_010_000, "local timer"),
            ],
            &[switch(9_998_000, hog, US)],
        ],
    );
    assert_eq!(blame.culprit_text, "thread hog/77 of higher priority");
    let parts = Parts {
        late_interrupt_ns: 500,
        non_preemptible_ns: 13_000,
        scheduling_ns: 9_984_500,
        return_ns: 2_000,
        unseen_ns: 0,
    };
    assert_eq!(blame.parts, parts);
}

#[test]
fn a_thread_of_higher_priority_that_comes_after_the_timer_is_scheduling_too() {
    let migration = ("migration/1", 0);
    let blame = judged(
        50_000,
        [
            &[running(-9_000, "idle")],
            &timer(500),
            &[switch(4_000, IDLE, migration)],
            &[switch(49_000, migration, US)],
        ],
    );
    assert_eq!(blame.culprit_text, "thread migration/1 of higher priority");
    assert_eq!(blame.parts.scheduling_ns, 45_000);
}

#[test]
fn a_thread_of_the_same_priority_is_not_preempted() {
    let other = ("tare-agent/10", RANK);
    let blame = judged(
        60_000,
        [
            &[running(-9_000, "tare-agent/10")],
            &timer(500),
            &[switch(59_000, other, US)],
        ],
    );
    assert_eq!(
        blame.culprit_text,
        "thread tare-agent/10 of the same priority"
    );
}

#[test]
fn a_thread_of_lower_rank_that_is_chosen_shows_the_throttle() {
    let hog = ("hog/77", 0);
    let blame = judged(
        60_000_000,
        [
            &[running(-9_000, "hog/77")],
            &timer(500),
            &[switch(5_000_000, hog, TAR)],
            &[switch(55_000_000, TAR, US)],
        ],
    );
    assert_eq!(
        blame.culprit_text,
        "real-time throttling: tar/55 ran instead"
    );
    assert_eq!(blame.parts.scheduling_ns, 55_000_000 - 3_500);
}

#[test]
fn who_is_not_asleep_in_time_is_not_woken_late() {
    let hog = ("hog/77", 0);
    // Held up before it slept; the timer that it then sets has expired already.
    let blame = judged(
        520_000,
        [
            &[running(-30_000, OURS), switch(-20_000, US, hog)],
            &[switch(500_000, hog, US), switch(505_000, US, IDLE)],
            &timer(506_000),
            &[switch(515_000, IDLE, US)],
        ],
    );
    assert_eq!(blame.culprit_text, "thread hog/77 of higher priority");
    assert_eq!(blame.parts.scheduling_ns, 500_000);
    assert_eq!(blame.parts.late_interrupt_ns, 1_000);
    assert_eq!(blame.parts.return_ns, 10_000);
    // Never slept at all.
    let blame = judged(
        300_000,
        [
            &[running(-30_000, OURS), switch(-20_000, US, hog)],
            &[switch(298_000, hog, US)],
        ],
    );
    assert_eq!(blame.culprit_text, "thread hog/77 of higher priority");
    assert_eq!(blame.parts.scheduling_ns, 298_000);
}

#[test]
fn a_timer_on_another_cpu_is_not_taken_for_this_ones() {
    let blame = judged(
        50_000,
        [
            &[running(-9_000, "idle")],
            &[enter(40_000, "reschedule"), leave(41_000, "reschedule")],
            &[switch(45_000, IDLE, US)],
        ],
    );
    assert_eq!(blame.culprit, Culprit::OtherCpu);
    assert_eq!(blame.parts.late_interrupt_ns, 40_000);
}

#[test]
fn who_is_preempted_after_the_switch_names_the_one_who_came() {
    let hog = ("hog/77", 0);
    let blame = judged(
        80_000,
        [
            &[running(-9_000, "idle")],
            &timer(500),
            &[switch(5_000, IDLE, US), switch(6_000, US, hog)],
            &[switch(76_000, hog, US)],
        ],
    );
    assert_eq!(blame.culprit_text, "thread hog/77 of higher priority");
    assert_eq!(blame.parts.scheduling_ns, 70_000);
    assert_eq!(blame.parts.return_ns, 5_000);
}

#[test]
fn what_was_overwritten_is_nobodys() {
    let events = [
        running(700_000, "tar/55"),
        switch(790_000, TAR, US),
        enter(795_000, "local timer"),
    ];
    let trace = Trace {
        set: 0,
        index: 7,
        value: 800_000,
        greatest: 800_000,
        samples: 1,
        complete: false,
        events: events.to_vec(),
        processes: [].into(),
    };
    let blame = blame(&trace, 0);
    assert!(!blame.complete);
    assert_eq!(blame.culprit, Culprit::Unseen { last: None });
    assert_eq!(blame.parts.unseen_ns, 700_000);
    assert_eq!(blame.parts.total_ns(), 800_000);
    for latency_ns in [0, 5_000] {
        let nothing = judged(latency_ns, [&[]]);
        assert_eq!(nothing.culprit, Culprit::Unseen { last: None });
        assert_eq!(nothing.parts.unseen_ns, latency_ns);
        assert!(!nothing.complete);
    }
}

/// Makes delays with this total length.
fn traced<const N: usize>(samples: u64, value: u64, events: [&[TraceEvent]; N]) -> Trace {
    Trace {
        set: 0,
        index: 7,
        value,
        greatest: value / samples,
        samples,
        complete: true,
        events: [&[running(0, OURS)], &events.concat()[..]].concat(),
        processes: [].into(),
    }
}

/// Returns who took how much of delays with this total length.
fn taken<const N: usize>(
    samples: u64,
    value: u64,
    events: [&[TraceEvent]; N],
) -> Vec<(String, u64)> {
    let trace = traced(samples, value, events);
    let shares = takers(&trace, 0, 0).takers.into_iter();
    let shares = Vec::from_iter(shares.map(|(taker, ns)| (taker.to_string(), ns)));
    assert_eq!(shares.iter().map(|(_, ns)| ns).sum::<u64>(), value);
    shares
}

fn processes<const N: usize>(of: [(&str, &str); N]) -> BTreeMap<String, String> {
    let of = of.map(|(thread, process)| (thread.to_owned(), process.to_owned()));
    of.into()
}

#[test]
fn the_threads_of_a_process_have_one_share_and_are_told_with_it() {
    let of = [
        ("opt cgu.02/21", "rustc"),
        ("a/b/22", "rustc"),
        ("kworker/0:1/30", "python3"),
        ("esc\x1b[2J/31", "python3"),
        (OURS, "tare-agent"),
    ];
    let threads = of.map(|(thread, _)| (thread, 120));
    let [cgu, other, python, hostile, ours] = threads;
    let events = [
        TraceEvent {
            sender: Some(cgu.0.to_owned()),
            ..enter(500, "reschedule")
        },
        leave(1_000, "reschedule"),
        switch(1_000, ours, cgu),
        switch(31_000, cgu, other),
        switch(41_000, other, ("ksoftirqd/1/18", 120)),
        switch(42_000, ("ksoftirqd/1/18", 120), python),
        at(43_000, TraceKind::Work),
        switch(45_000, python, hostile),
        switch(50_000, hostile, ours),
    ];
    let mut trace = traced(1, 50_000, [&events]);
    trace.processes = processes(of);
    let shares = takers(&trace, 0, 0);
    let named = shares
        .takers
        .iter()
        .map(|(taker, ns)| (taker.to_string(), *ns));
    let wanted = [
        ("process rustc", 40_500),
        ("process python3", 8_000),
        ("thread ksoftirqd/1", 1_000),
        ("interrupt reschedule from rustc", 500),
    ];
    assert_eq!(
        named.collect::<Vec<_>>(),
        wanted.map(|(name, ns)| (name.to_owned(), ns))
    );
    let threads = shares.threads.iter().map(|(taker, threads)| {
        let threads = threads.iter().map(|(tid, name)| format!("{tid} {name}"));
        (taker.to_string(), threads.collect::<Vec<_>>().join(", "))
    });
    let wanted = [
        ("process python3", "30 kworker/0:1, 31 esc\x1b[2J"),
        ("process rustc", "21 opt cgu.02, 22 a/b"),
        ("thread ksoftirqd/1", "18 ksoftirqd/1"),
    ];
    let wanted = wanted.map(|(taker, threads)| (taker.to_owned(), threads.to_owned()));
    assert_eq!(threads.collect::<Vec<_>>(), wanted);
}

#[test]
fn a_late_wake_up_names_a_thread_with_its_process() {
    for (thread, process, wanted) in [
        ("opt cgu.02/77", "rustc", "opt cgu.02/77 (rustc)"),
        ("rustc/77", "rustc", "rustc/77"),
    ] {
        let mut trace = traced(
            1,
            60_000,
            [&[
                switch(1_000, US, (thread, 0)),
                switch(59_000, (thread, 0), US),
            ]],
        );
        trace.processes = processes([(thread, process)]);
        let text = blame(&trace, 0).culprit_text;
        assert_eq!(text, format!("thread {wanted} of higher priority"));
    }
}

fn calls(at_ns: i64, function: &str) -> TraceEvent {
    with_stack(
        at(at_ns, TraceKind::TimerExpired { wakes: false }),
        &[function],
    )
}

#[test]
fn a_tick_is_named_with_its_functions_and_has_the_way_into_it() {
    let [begin, end] = softirq(4_000, 5_000, "TIMER");
    let tick = [
        enter(1_000, "local timer"),
        calls(1_500, "tick_nohz_handler"),
        leave(4_000, "local timer"),
        begin,
        calls(4_200, "delayed_work_timer_fn"),
        end,
    ];
    let wanted = [
        ("interrupt local timer (tick_nohz_handler)", 4_800),
        ("softirq TIMER (delayed_work_timer_fn)", 1_000),
    ];
    let wanted = wanted.map(|(name, ns)| (name.to_owned(), ns));
    assert_eq!(taken(1, 5_800, [&tick]), wanted);
    // Of ten such ones, ten times as much.
    let ten = tick.map(|event| TraceEvent {
        at_ns: 10 * event.at_ns,
        ..event
    });
    assert_eq!(
        taken(10, 58_000, [&ten]),
        wanted.map(|(name, ns)| (name, 10 * ns))
    );
}

#[test]
fn what_no_event_explains_was_taken_from_outside() {
    assert_eq!(
        taken(1, 9_000, []),
        [("outside this kernel".to_owned(), 9_000)]
    );
    let tick = [enter(60_000, "local timer"), leave(63_000, "local timer")];
    let shares = taken(1, 64_000, [&tick]);
    assert_eq!(shares[0], ("outside this kernel".to_owned(), 61_000));
    assert_eq!(shares[1], ("interrupt local timer".to_owned(), 3_000));
}

#[test]
fn the_usual_way_into_an_interrupt_is_the_interrupts() {
    let tick = |from, to| [enter(from, "local timer"), leave(to, "local timer")];
    let usual = traced(30, 30 * 12_000, [&tick(30 * 8_000, 30 * 11_500)]);
    let late = traced(1, 70_000, [&tick(60_000, 69_000)]);
    let all = [usual, late, traced(900, 900 * 6_000, [])];
    let way_ns = way_in_ns(&all, 0);
    assert_eq!(way_ns, 8_000);
    let shares = all.map(|trace| takers(&trace, 0, way_ns).takers);
    let named = shares.iter().map(|shares| shares[0].0.to_string());
    let (timer, outside) = ("interrupt local timer", "outside this kernel");
    assert_eq!(named.collect::<Vec<_>>(), [timer, outside, outside]);
    assert_eq!(shares[0][0].1, 30 * 12_000);
    assert_eq!(shares[1][1].1, 17_000);
}

#[test]
fn another_thread_is_named_without_its_number_and_a_worker_with_its_work() {
    let worker = ("kworker/1:1/345", 120);
    let ours = (OURS, 120);
    let events = [
        switch(1_000, ours, worker),
        with_stack(at(1_200, TraceKind::Work), &["vmstat_update"]),
        switch(31_000, worker, ours),
    ];
    let wanted = ("thread kworker/1:1 (vmstat_update)".to_owned(), 32_000);
    assert_eq!(taken(1, 32_000, [&events]), [wanted]);
    // What another thread calls on its own CPU is not queued.
    let other = ("rustc/7", 120);
    let events = [
        switch(1_000, ours, other),
        with_stack(at(1_200, TraceKind::Work), &["flush_tlb_func"]),
        switch(31_000, other, ours),
    ];
    let wanted = ("thread rustc".to_owned(), 32_000);
    assert_eq!(taken(1, 32_000, [&events]), [wanted]);
    // A thread with a real-time priority would not have made way for it.
    let events = [switch(1_000, US, worker), switch(31_000, worker, US)];
    let wanted = ("throttling of this thread".to_owned(), 32_000);
    assert_eq!(taken(1, 32_000, [&events]), [wanted]);
}

#[test]
fn a_page_that_was_not_there_is_named_also_where_the_thread_sleeps_until_it_is() {
    let of = |of: Option<&str>| TraceKind::PageFault {
        of: of.map(str::to_owned),
    };
    let fault = at(500, of(None));
    let wanted = [("page faults".to_owned(), 80_000)];
    assert_eq!(taken(1, 80_000, [slice::from_ref(&fault)]), wanted);
    let of_two = [at(500, of(Some("stack"))), at(700, of(Some("file data")))];
    let named = [("page faults (file data, stack)".to_owned(), 80_000)];
    assert_eq!(taken(1, 80_000, [&of_two]), named);
    let ours = (OURS, 120);
    let events = [fault, switch(2_000, ours, IDLE), switch(79_000, IDLE, ours)];
    assert_eq!(taken(1, 80_000, [&events]), wanted);
    // Where the switch back was not recorded.
    assert_eq!(taken(1, 80_000, [&events[..2]]), wanted);
}

#[test]
fn an_interrupt_is_named_with_its_sender_and_a_softirq_with_its_waiting() {
    let sent = TraceEvent {
        sender: Some("bash/77".to_owned()),
        ..enter(500, "call function")
    };
    let [mut begin, end] = softirq(4_000, 7_000, "RCU");
    begin.waited_ns = Some(3_500);
    let events = [
        sent,
        with_stack(at(600, TraceKind::Work), &["ipi_mb"]),
        leave(3_900, "call function"),
        begin,
        end,
    ];
    let shares = takers(&traced(1, 8_000, [&events]), 0, 0);
    let names = shares.takers.iter().map(|(taker, _)| taker.to_string());
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["interrupt call function (ipi_mb) from bash", "softirq RCU"]
    );
    let waits = shares.waits.iter();
    let waits = waits.map(|(taker, waits)| (taker.to_string(), *waits));
    assert_eq!(
        waits.collect::<Vec<_>>(),
        [("softirq RCU".to_owned(), (1, 3_500))]
    );
}

#[test]
fn what_the_kernel_left_out_is_nobodys_either() {
    let silent = ("tokio/75", 110);
    // Nothing while that thread runs: no timer, and not even the switch to ours.
    let events = [running(-9_000, OURS), switch(-8_000, US, silent)];
    let blame = judged(800_000, [&events]);
    assert_eq!(
        blame.culprit_text,
        "not recorded; the last thread seen was tokio/75"
    );
    assert_eq!(blame.parts.unseen_ns, 800_000);
    assert!(!blame.complete);
    // A thread leaves that never came.
    let blame = judged(
        800_000,
        [
            &[running(-9_000, "idle"), switch(600_000, TAR, IDLE)],
            &timer(700_000),
            &[switch(705_000, IDLE, US)],
        ],
    );
    assert_eq!(blame.parts.unseen_ns, 600_000);
    assert_eq!(blame.parts.late_interrupt_ns, 100_000);
}

#[test]
fn a_thread_whose_coming_is_not_recorded_is_not_taken_for_the_one_before_it() {
    let hog = ("hog/77", 2);
    // The kernel's own ticks come while it runs, and idle seems to be there.
    let blame = judged(
        20_000_000,
        [
            &[running(-9_000, "idle")],
            &timer(500),
            &[
                enter(4_000_000, "local timer"),
                leave(4_010_000, "local timer"),
                switch(19_990_000, hog, US),
            ],
        ],
    );
    assert_eq!(
        blame.culprit_text,
        "not recorded; the last thread seen was hog/77"
    );
    assert!(blame.parts.unseen_ns > 19_900_000, "{:?}", blame.parts);
    assert!(!blame.complete);
}

#[test]
fn a_softirq_that_is_preempted_goes_on_with_its_thread() {
    let ksoftirqd = ("ksoftirqd/1", 98);
    // As under PREEMPT_RT: the thread that runs the softirq is left in the middle of it.
    let blame = judged(
        30_000,
        [
            &[running(-9_000, "ksoftirqd/1")],
            &softirq(-8_000, 40_000, "NET_RX")[..1],
            &timer(500),
            &[switch(4_000, ksoftirqd, US)],
        ],
    );
    assert_eq!(blame.culprit, Culprit::OwnThread);
    assert_eq!(blame.parts.return_ns, 26_000);
}

/// Makes events of any kind and of no sense.
fn any_event() -> impl Strategy<Value = (i64, u8, u8)> {
    let time = prop_oneof![
        9 => -50_000..1_000_000_i64,
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX)],
    ];
    (time, 0..10_u8, 0..4_u8)
}

proptest! {
    #[test]
    fn parts_of_any_trace_sum_up(
        raw in prop::collection::vec(any_event(), 0..40),
        latency_ns in prop_oneof![9 => 0..900_000_u64, 1 => Just(i64::MAX as u64)],
    ) {
        let threads = [IDLE, TAR, US, ("hog/77", 0)];
        let names = ["local timer", "reschedule", "eth0", "virtio0"];
        let events: Vec<TraceEvent> = raw
            .iter()
            .map(|(time, kind, which)| {
                let which = usize::from(*which);
                match kind {
                    0 => running(*time, threads[which].0),
                    1 | 2 => enter(*time, names[which]),
                    3 | 4 => leave(*time, names[which]),
                    5 => softirq(*time, 0, names[which])[0].clone(),
                    6 => softirq(0, *time, names[which])[1].clone(),
                    7 => waking(*time),
                    _ => switch(*time, threads[usize::from(*kind) % 4], threads[which]),
                }
            })
            .collect();
        // Asserts the sums.
        judged(latency_ns, [&events]);
    }
}

#[test]
fn the_uses_of_a_cpu_are_added_up_whatever_ran() {
    let expired = |at_ns, function: &str| {
        let what = TraceKind::TimerExpired { wakes: false };
        let stack = vec![function.to_owned()];
        TraceEvent {
            stack,
            ..at(at_ns, what)
        }
    };
    let sent = TraceEvent {
        sender: Some("tar/7".to_owned()),
        ..enter(1_500, "reschedule")
    };
    let [begin, end] = softirq(2_200, 2_900, "NET_RX");
    let mut trace = Trace {
        set: 0,
        index: 0,
        value: 9_000,
        greatest: 9_000,
        samples: 1,
        complete: true,
        processes: processes([("sh/55", "make")]),
        events: vec![
            running(0, "idle"),
            // It goes on since before.
            leave(1_000, "local timer"),
            // An interrupt ends idle sleep; the softirq of another one is interrupted.
            sent,
            leave(1_700, "reschedule"),
            enter(2_000, "virtio0"),
            leave(2_100, "virtio0"),
            begin,
            enter(2_300, "local timer"),
            expired(2_400, "tick_nohz_handler"),
            leave(2_500, "local timer"),
            end,
            switch(3_000, ("idle", 120), ("kworker/0:1/12", 120)),
            at(3_100, TraceKind::Work),
            switch(4_000, ("kworker/0:1/12", 120), ("sh/55", 120)),
            enter(5_000, "local timer"),
            expired(5_100, "hrtimer_wakeup"),
            leave(5_400, "local timer"),
            switch(6_000, ("sh/55", 120), ("sh/56", 120)),
            // The switch from sh to tar was not recorded.
            switch(7_000, ("tar/57", 120), ("sh/55", 120)),
        ],
    };
    let rows = |trace: &Trace| {
        let all = uses(trace).into_iter();
        Vec::from_iter(all.map(|((taker, tid), times)| (taker.to_string(), tid, times)))
    };
    let row = |name: &str, tid, times: &[u64]| (name.to_owned(), tid, times.to_vec());
    assert_eq!(
        rows(&trace),
        [
            row("interrupt local timer", None, &[1_000]),
            row("interrupt local timer (hrtimer_wakeup)", None, &[400]),
            row("interrupt local timer (tick_nohz_handler)", None, &[200]),
            row("interrupt reschedule from tar", None, &[200]),
            row("interrupt virtio0", None, &[100]),
            row("softirq NET_RX", None, &[500]),
            row("process make", Some(55), &[1_600, 2_000]),
            row("thread idle", None, &[1_000]),
            row("thread kworker/0:1", Some(12), &[1_000]),
            row("not recorded", None, &[1_000]),
        ]
    );
    // Time of overwritten events is nobody's.
    trace.complete = false;
    trace.events = vec![running(4_000, "sh/55")];
    let lost = [
        row("process make", Some(55), &[5_000]),
        row("not recorded", None, &[4_000]),
    ];
    assert_eq!(rows(&trace), lost);
    trace.events.clear();
    assert_eq!(rows(&trace), [row("not recorded", None, &[9_000])]);
}
