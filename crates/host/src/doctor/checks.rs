//! The checks: what is looked at, what it does to a measurement, and who judges it.

use super::{
    Check, clock, frequency, idle, interrupts, isolation, kernel, load, memory, privileges, quota,
    realtime, rt_group, topology, virtualisation,
};

/// All checks, in the order in which equals are listed.
pub(super) const CHECKS: &[Check] = &[
    Check(
        "cpu",
        "CPU to measure on",
        "Noise differs from CPU to CPU: interrupts, housekeeping and other processes are not \
         spread evenly, so a result belongs to the CPU on which it was measured. The other \
         findings are about this one.",
        topology::measured_cpu,
    ),
    Check(
        "load",
        "Other load",
        "Under an ordinary policy, work on the measured CPU takes turns with what is measured; under \
         SCHED_FIFO it runs while that sleeps, and in between if its own priority is higher. Work \
         on other CPUs shares the last-level cache, the memory bandwidth and the power budget \
         with it, and sends interrupts.",
        load::load,
    ),
    Check(
        "steal",
        "Stolen time",
        "Stolen time is time in which the guest wanted to run and the hypervisor ran something else; it \
         lengthens whatever is being measured by milliseconds. Not every hypervisor reports it, \
         and what it does on behalf of the guest itself does not count.",
        virtualisation::steal,
    ),
    Check(
        "cpu-quota",
        "CPU quota of the control group",
        "When the processes of a group have used up their quota, all of them are stopped until \
         the period ends, typically for tens of milliseconds. Measured code that spins uses a \
         whole CPU, and tare itself needs some of a second one.",
        quota::cpu_quota,
    ),
    Check(
        "tsc",
        "Time-stamp counter",
        "All durations are differences of the time-stamp counter. Only a counter that keeps one \
         rate in all frequency and idle states can be turned into nanoseconds.",
        clock::tsc,
    ),
    Check(
        "clocksource",
        "Clock source",
        "With the TSC, clock_gettime is answered in user space within tens of nanoseconds. With \
         hpet or acpi_pm each reading is a system call that talks to a slow device and takes a \
         microsecond or more; and where the kernel has given the TSC up as unstable, differences \
         of it cannot be trusted either.",
        clock::clocksource,
    ),
    Check(
        "governor",
        "Frequency governor",
        "A core that changes its frequency takes a different time for the same work, and speeds \
         up only after some milliseconds of load: the first samples, and those after every pause, \
         come out slow.",
        frequency::governor,
    ),
    Check(
        "turbo",
        "Turbo frequencies",
        "With turbo, the speed of a core depends on temperature and on how many other cores are \
         awake, while the time-stamp counter ticks on at its own rate: the same work takes a \
         different number of ticks from run to run.",
        frequency::turbo,
    ),
    Check(
        "energy-bias",
        "Preference for saving energy",
        "By this hint the processor decides how soon it raises its frequency and how deeply it \
         sleeps; 0 is for speed, 15 for saving energy.",
        |e| kernel::switched(e, "energy-bias"),
    ),
    Check(
        "idle-states",
        "Idle states (C-states)",
        "A core that sleeps deeply needs up to hundreds of microseconds to wake and finds its \
         caches cold: this is added to every wake-up latency. Code that never sleeps is not \
         affected on its own core.",
        idle::idle_states,
    ),
    Check(
        "smt",
        "SMT siblings",
        "Two SMT siblings share the execution units and the first caches of one core: work on one \
         slows the other by tens of percent without any interruption that could be counted.",
        topology::smt,
    ),
    Check(
        "core-type",
        "Kind of core",
        "A hybrid processor has cores of different speed and cache; results from one kind say \
         little about the other.",
        topology::core_type,
    ),
    Check(
        "isolation",
        "Isolation from the scheduler",
        "The scheduler puts other tasks on any CPU that is not isolated; while they run, measured \
         code stands still, for up to milliseconds at a time.",
        isolation::scheduler,
    ),
    Check(
        "parameters",
        "Kernel parameters",
        "A list of CPUs that is empty, contradicts another or is cut off does not do what was \
         meant, and the kernel boots all the same.",
        isolation::parameters,
    ),
    Check(
        "tick",
        "Periodic tick",
        "The tick interrupts running code at a fixed frequency for one to several microseconds, \
         and deferred kernel work follows it. On a CPU of nohz_full= it stops while a single task \
         runs.",
        isolation::tick,
    ),
    Check(
        "skew-tick",
        "Moment of the tick",
        "If the ticks of all CPUs come at the same moment, their handlers wait for each other's \
         locks, and take longer.",
        kernel::skewed_tick,
    ),
    Check(
        "rcu-callbacks",
        "RCU callbacks",
        "Memory that the kernel frees through RCU is freed in batches in a softirq, on the \
         CPU that asked for it. With rcu_nocbs= this work goes to threads that can run elsewhere.",
        isolation::rcu_callbacks,
    ),
    Check(
        "irq-affinity",
        "Device interrupts",
        "Each device interrupt stops the measured code for microseconds, more when network or \
         block work follows in a softirq; how many arrive depends on what others do.",
        interrupts::affinity,
    ),
    Check(
        "bound-irqs",
        "Interrupts of this CPU alone",
        "Drivers with a queue for each CPU have an interrupt for each, whose CPU only the kernel \
         chooses (managed interrupts). It comes when programs on this CPU use the device.",
        interrupts::bound,
    ),
    Check(
        "irqbalance",
        "irqbalance",
        "irqbalance moves device interrupts between CPUs every ten seconds, so the noise of one \
         CPU changes in the middle of a measurement. It leaves isolated CPUs alone by default.",
        interrupts::irqbalance,
    ),
    Check(
        "tuners",
        "Programs that change settings",
        "They set governors, frequencies, affinities or the kernel's parameters while something is \
         measured, so the first half of a run may be of another machine than the second.",
        kernel::tuners,
    ),
    Check(
        "workqueues",
        "Kernel workers",
        "Queued functions of the kernel that are bound to no CPU, and the writing of dirty pages, \
         run on any CPU of these masks, for microseconds to milliseconds.",
        |e| kernel::switched(e, "workqueues"),
    ),
    Check(
        "rcu-normal",
        "Expedited RCU grace periods",
        "To end a grace period at once, the kernel interrupts all CPUs that are not idle.",
        |e| kernel::switched(e, "rcu-normal"),
    ),
    Check(
        "rt-throttling",
        "Real-time throttling",
        "By default real-time tasks may use 95 % of each second. A SCHED_FIFO task that never \
         sleeps is then stopped for 50 ms per second, and a measurement that spins under \
         SCHED_FIFO measures this instead of noise.",
        realtime::throttling,
    ),
    Check(
        "rt-group",
        "Real-time budget of the control group",
        "A kernel with RT_GROUP_SCHED refuses SCHED_FIFO with EPERM in a control group without a \
         real-time budget, even to root. Measurements then run under SCHED_OTHER, where any other \
         task may interrupt them.",
        rt_group::budget,
    ),
    Check(
        "realtime",
        "Right to use SCHED_FIFO",
        "Under an ordinary policy every other task on the CPU gets its share while measured code \
         waits; under SCHED_FIFO only the kernel itself and higher real-time priorities interrupt \
         it. Wake-up latency is usually measured that way.",
        privileges::realtime,
    ),
    Check(
        "locked-memory",
        "Locked memory",
        "Memory that is not locked can be dropped or swapped out while it is measured, and comes \
         back by a page fault that looks like noise. Samples are kept in locked memory too.",
        privileges::locked_memory,
    ),
    Check(
        "thp",
        "Transparent huge pages",
        "With \"always\", the kernel joins small pages to huge ones while a program runs: the \
         pages are copied, the program faults, all its CPUs flush their TLBs, and the cost of a \
         memory access changes halfway through.",
        memory::transparent_hugepages,
    ),
    Check(
        "compaction",
        "Compaction of memory",
        "To make room in one piece, the kernel moves pages, locked ones too if it may: a program \
         that touches one then waits, and all its CPUs flush their TLBs.",
        |e| kernel::switched(e, "compaction"),
    ),
    Check(
        "page-merging",
        "Merging of equal pages (KSM)",
        "The kernel compares pages and lets programs share equal ones: the comparison takes CPU \
         time and cache, and the first write to a shared page is a fault.",
        |e| kernel::switched(e, "page-merging"),
    ),
    Check(
        "swap",
        "Swap",
        "A page that was swapped out costs its owner a major fault of tens of microseconds to \
         many milliseconds. Locked memory is never swapped.",
        memory::swap,
    ),
    Check(
        "numa-balancing",
        "Automatic NUMA balancing",
        "To learn which node uses a page, the kernel unmaps pages of running programs from time \
         to time; each first access afterwards is a minor fault, and the page may be copied to \
         another node.",
        memory::numa_balancing,
    ),
    Check(
        "memory-speed",
        "Speed of memory",
        "Memory that is run slower than its modules allow lengthens every cache miss and limits \
         the bandwidth of all CPUs.",
        memory::memory_speed,
    ),
    Check(
        "debug-kernel",
        "Debugging options of the kernel",
        "Checkers such as lockdep and KASAN make every system call, fault and interrupt several \
         times slower: results of such a kernel describe the checkers.",
        kernel::debug_options,
    ),
    Check(
        "preemption",
        "Preemption model",
        "It decides how long a task that has become ready waits for kernel code on its CPU: until \
         the next return to user space (none), a point on the way (voluntary), or hardly at all \
         (full, PREEMPT_RT).",
        kernel::preemption,
    ),
    Check(
        "watchdog",
        "Lockup detectors",
        "The detector of hard lockups occupies one performance counter and interrupts each watched \
         CPU after every watchdog_thresh seconds (10 by default) of running, with an interrupt that \
         nothing can mask. That of soft lockups wakes a thread of the highest priority on each \
         watched CPU every 4 seconds.",
        kernel::watchdog,
    ),
    Check(
        "timer-migration",
        "Timer migration",
        "To let idle CPUs sleep, the kernel hands their timers to a busy CPU; the one that is \
         being measured is the busy one, so it may serve timers of others. CPUs of nohz_full= are \
         spared.",
        kernel::timer_migration,
    ),
    Check(
        "stat-interval",
        "Folding of memory counters",
        "Every vm.stat_interval seconds a kernel worker runs for some microseconds on each CPU \
         that changed its memory counters.",
        kernel::stat_interval,
    ),
    Check(
        "machine-check",
        "Polling for machine errors",
        "Every check_interval seconds (300 by default) a timer on each CPU reads all banks of its \
         error registers.",
        |e| kernel::switched(e, "machine-check"),
    ),
    Check(
        "console",
        "Console for the kernel's messages",
        "A message to a serial line of 115,200 baud takes 87 µs for each character, some of it \
         with interrupts off on the CPU that writes it.",
        kernel::console,
    ),
    Check(
        "mitigations",
        "Mitigations of processor flaws",
        "Mitigations make entering the kernel, switching tasks and indirect calls slower, on some \
         processors by a factor; results from machines with different mitigations cannot be \
         compared.",
        kernel::mitigations,
    ),
    Check(
        "hypervisor",
        "Hypervisor",
        "A hypervisor takes the CPU from the guest for its own interrupts and for other guests. \
         Such gaps look like noise of this kernel, yet no setting in the guest removes them.",
        virtualisation::hypervisor,
    ),
    Check(
        "container",
        "Container",
        "A container shares the host's kernel: its processes are scheduled among all others, its \
         view of the machine is partial, and most settings can only be changed outside. \
         Namespaces themselves do not slow running code.",
        virtualisation::container,
    ),
    Check(
        "counters",
        "Performance counters",
        "Instructions, cache and TLB misses tell *why* a sample was slow. Without counters \
         durations are as exact, only their causes are harder to find.",
        privileges::counters,
    ),
];
