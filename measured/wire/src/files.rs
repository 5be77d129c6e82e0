//! The files in which a Linux shows what disturbs measurements.
//!
//! They are patterns with at most one `*` in each component, separated by blanks. Files that are not
//! there are not reported.

/// The id of the work that reports them.
pub const NAME: &str = "files";

/// The prefix of the name of a file that was read again later.
pub const LATER: &str = "later ";

/// The prefix of the name of a file that may not be read.
pub const REFUSED: &str = "refused ";

/// The files that are read twice, and the second time in reverse order: what reading them takes is not
/// between the last ones.
pub const CHANGING: &str = "/proc/*/stat /proc/interrupts /proc/stat";

/// All others.
pub const LASTING: &str = "\
    /proc/cmdline /proc/cpuinfo /proc/loadavg /proc/lockdep_stats /proc/meminfo \
    /proc/self/cgroup /proc/self/limits /proc/self/mountinfo /proc/self/ns/* \
    /proc/self/status /proc/self/uid_map /proc/irq/*/*affinity_list \
    /proc/sys/kernel/numa_balancing /proc/sys/kernel/*watchdog /proc/sys/kernel/watchdog* \
    /proc/sys/kernel/osrelease /proc/sys/kernel/perf_event_paranoid /proc/sys/kernel/printk \
    /proc/sys/kernel/sched_* /proc/sys/kernel/timer_migration /proc/sys/kernel/version \
    /proc/sys/vm/compact* /proc/sys/vm/stat_interval /proc/sys/vm/swappiness \
    /sys/bus/event_source/devices/*/type /sys/bus/workqueue/devices/writeback/cpumask \
    /sys/class/dmi/id/*_vendor /sys/class/dmi/id/product_name /sys/class/tty/console/active \
    /sys/devices/cpu_atom/cpus /sys/devices/system/cpu/isolated \
    /sys/devices/system/cpu/nohz_full /sys/devices/system/cpu/online \
    /sys/devices/system/cpu/present /sys/devices/system/cpu/possible \
    /sys/devices/system/cpu/cpufreq/boost /sys/devices/system/cpu/cpuidle/* \
    /sys/devices/system/cpu/intel_pstate/no_turbo /sys/devices/system/cpu/smt/control \
    /sys/devices/system/cpu/vulnerabilities/* /sys/devices/system/cpu/cpu*/cpu_capacity \
    /sys/devices/system/cpu/cpu*/cpufreq/*_freq \
    /sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference \
    /sys/devices/system/cpu/cpu*/cpufreq/scaling_* \
    /sys/devices/system/cpu/cpu*/topology/physical_package_id \
    /sys/devices/system/clocksource/clocksource0/*_clocksource \
    /sys/devices/system/machinecheck/machinecheck*/check_interval \
    /sys/devices/system/cpu/cpu*/cpuidle/state*/* \
    /sys/devices/system/cpu/cpu*/power/energy_perf_bias \
    /sys/devices/system/cpu/cpu*/topology/*_list /sys/devices/system/node/node*/cpulist \
    /sys/devices/system/node/node*/meminfo /sys/devices/virtual/workqueue/cpumask \
    /sys/fs/cgroup/cp* /sys/fs/cgroup/cpu*/cpu.* /sys/fs/cgroup/cpu/*/cpu.rt* \
    /sys/fs/cgroup/cpu/*/*/cpu.rt* /sys/fs/cgroup/*/cpu.max /sys/fs/cgroup/*/*/cpu.max \
    /sys/hypervisor/type /sys/kernel/debug/sched/fair_server/cpu*/runtime \
    /sys/kernel/debug/sched/preempt /sys/kernel/mm/ksm/run \
    /sys/kernel/mm/transparent_hugepage/* /sys/kernel/realtime /sys/kernel/rcu_normal \
    /boot/config-* /dev/cpu_dma_latency /.dockerenv /run/.containerenv \
    /run/systemd/container";
