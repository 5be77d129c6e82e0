//! Machines made of files.
//!
//! Each function builds the tree of one machine in a temporary folder, with the
//! files that such a machine really has: what is absent here is absent there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

use crate::cpuid::Cpuid;
use crate::source::Source;

const CPUS: &str = "/sys/devices/system/cpu";
const V2_MOUNT: &str =
    "25 20 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
/// The time that one CPU of a sample is accounted: 20 units of 10 ms.
const TICKS: u64 = 20;

/// A tree of files, as it is now and 200 ms later.
pub(crate) struct Tree {
    now: TempDir,
    later: Option<TempDir>,
    cpuid: Option<Cpuid>,
}

impl Tree {
    pub(crate) fn new() -> Self {
        Self {
            now: folder(),
            later: None,
            cpuid: None,
        }
    }

    pub(crate) fn source(&self) -> Source {
        let mut source = Source::at(self.now.path());
        if let Some(later) = &self.later {
            source = source.with_later(later.path());
        }
        if let Some(cpuid) = &self.cpuid {
            source = source.with_cpuid(cpuid.clone());
        }
        source
    }

    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        self.bytes(path, text.as_bytes())
    }

    pub(crate) fn bytes(self, path: &str, bytes: &[u8]) -> Self {
        write(self.now.path(), path, bytes);
        self
    }

    pub(crate) fn files(self, files: &[(&str, &str)]) -> Self {
        files
            .iter()
            .fold(self, |tree, (path, text)| tree.file(path, text))
    }

    pub(crate) fn later_file(mut self, path: &str, text: &str) -> Self {
        let later = self.later.get_or_insert_with(folder);
        write(later.path(), path, text.as_bytes());
        self
    }

    pub(crate) fn link(self, path: &str, target: &str) -> Self {
        let path = self.now.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        symlink(target, path).unwrap();
        self
    }

    pub(crate) fn without(self, path: &str) -> Self {
        fs::remove_file(self.now.path().join(path.trim_start_matches('/'))).unwrap();
        self
    }

    pub(crate) fn cpuid(mut self, hypervisor: Option<&str>) -> Self {
        self.cpuid = Some(Cpuid {
            hypervisor: hypervisor.map(str::to_owned),
            invariant_tsc: true,
            tlb_pages: vec![64, 2_048],
        });
        self
    }

    /// Lists the system paths of all files of the tree, sorted.
    pub(crate) fn paths(&self) -> Vec<String> {
        fn walk(folder: &Path, root: &Path, out: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, root, out);
                } else {
                    out.push(format!("/{}", path.strip_prefix(root).unwrap().display()));
                }
            }
        }
        let mut paths = Vec::new();
        walk(self.now.path(), self.now.path(), &mut paths);
        paths.sort();
        paths
    }

    /// CPUs with cores of `threads` CPUs each, numbered as Linux does: CPU n and CPU n + cores
    /// share a core.
    pub(crate) fn cpus(mut self, count: u32, threads: u32) -> Self {
        let cores = count / threads;
        for name in ["online", "present", "possible"] {
            self = self.file(&format!("{CPUS}/{name}"), &format!("0-{}\n", count - 1));
        }
        for cpu in 0..count {
            let core = cpu % cores;
            let siblings: Vec<String> = (0..threads)
                .map(|t| (core + t * cores).to_string())
                .collect();
            self = self.file(
                &format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list"),
                &format!("{}\n", siblings.join(",")),
            );
        }
        self
    }

    /// The package of each CPU, from CPU 0 on.
    pub(crate) fn packages(self, packages: &[u32]) -> Self {
        (0..).zip(packages).fold(self, |tree, (cpu, package)| {
            let path = format!("{CPUS}/cpu{cpu}/topology/physical_package_id");
            tree.file(&path, &format!("{package}\n"))
        })
    }

    pub(crate) fn caches(mut self, count: u32) -> Self {
        for cpu in 0..count {
            for (index, level, kind, size, shared) in [
                (0, 1, "Data", "48K", cpu.to_string()),
                (1, 2, "Unified", "1280K", cpu.to_string()),
                (2, 3, "Unified", "12288K", format!("0-{}", count - 1)),
            ] {
                let folder = format!("{CPUS}/cpu{cpu}/cache/index{index}");
                self = self
                    .file(&format!("{folder}/level"), &format!("{level}\n"))
                    .file(&format!("{folder}/type"), &format!("{kind}\n"))
                    .file(&format!("{folder}/size"), &format!("{size}\n"))
                    .file(&format!("{folder}/coherency_line_size"), "64\n")
                    .file(&format!("{folder}/shared_cpu_list"), &format!("{shared}\n"));
            }
        }
        self
    }

    pub(crate) fn frequency(
        mut self,
        count: u32,
        driver: &str,
        governor: &str,
        low: u64,
        high: u64,
    ) -> Self {
        for cpu in 0..count {
            let folder = format!("{CPUS}/cpu{cpu}/cpufreq");
            self = self
                .file(&format!("{folder}/scaling_driver"), &format!("{driver}\n"))
                .file(
                    &format!("{folder}/scaling_governor"),
                    &format!("{governor}\n"),
                )
                .file(&format!("{folder}/scaling_min_freq"), &format!("{low}\n"))
                .file(&format!("{folder}/scaling_max_freq"), &format!("{high}\n"))
                .file(&format!("{folder}/cpuinfo_min_freq"), &format!("{low}\n"))
                .file(&format!("{folder}/cpuinfo_max_freq"), &format!("{high}\n"));
        }
        self
    }

    /// Idle states as (name, exit latency in µs, disabled).
    pub(crate) fn idle(mut self, count: u32, driver: &str, states: &[(&str, u64, bool)]) -> Self {
        self = self
            .file(
                &format!("{CPUS}/cpuidle/current_driver"),
                &format!("{driver}\n"),
            )
            .file(&format!("{CPUS}/cpuidle/current_governor_ro"), "menu\n");
        for cpu in 0..count {
            for (index, (name, latency, disabled)) in states.iter().enumerate() {
                let folder = format!("{CPUS}/cpu{cpu}/cpuidle/state{index}");
                self = self
                    .file(&format!("{folder}/name"), &format!("{name}\n"))
                    .file(&format!("{folder}/latency"), &format!("{latency}\n"))
                    .file(
                        &format!("{folder}/residency"),
                        &format!("{}\n", latency * 3),
                    )
                    .file(
                        &format!("{folder}/disable"),
                        &format!("{}\n", u32::from(*disabled)),
                    );
            }
        }
        self
    }

    /// `/proc/stat` now and later: per CPU how many of 20 units were busy, and how many stolen.
    pub(crate) fn busy(self, cpus: &[(u32, u64, u64)]) -> Self {
        let line = |cpu: u32, busy: u64, steal: u64| {
            let idle = 90_000 + TICKS - busy - steal;
            format!(
                "cpu{cpu} {} 0 500 {idle} 20 0 7 {steal} 0 0\n",
                5_000 + busy
            )
        };
        let before: String = cpus
            .iter()
            .map(|(cpu, _, _)| format!("cpu{cpu} 5000 0 500 90000 20 0 7 0 0 0\n"))
            .collect();
        let after: String = cpus
            .iter()
            .map(|(cpu, busy, steal)| line(*cpu, *busy, *steal))
            .collect();
        self.file("/proc/stat", &before)
            .later_file("/proc/stat", &after)
    }

    /// `/proc/interrupts` now and later. Columns are CPUs; the last is (added on CPU, how many).
    pub(crate) fn interrupts(mut self, cpus: u32, lines: &[(u32, &str, u32, u64)]) -> Self {
        let head: String = (0..cpus).map(|cpu| format!("       CPU{cpu}")).collect();
        let (mut before, mut after) = (format!("{head}\n"), format!("{head}\n"));
        for (number, device, on, added) in lines {
            let counts = |extra: u64| -> String {
                (0..cpus)
                    .map(|cpu| format!(" {:>10}", if cpu == *on { 1_000 + extra } else { 0 }))
                    .collect()
            };
            before += &format!(
                "{number:>4}:{}  IR-PCI-MSIX-0000:00:02.0   1-edge      {device}\n",
                counts(0)
            );
            after += &format!(
                "{number:>4}:{}  IR-PCI-MSIX-0000:00:02.0   1-edge      {device}\n",
                counts(*added)
            );
            self = self.file(
                &format!("/proc/irq/{number}/effective_affinity_list"),
                &format!("{on}\n"),
            );
        }
        let local = " LOC: 500 500   Local timer interrupts\n ERR: 0\n";
        self.file("/proc/interrupts", &(before + local))
            .later_file("/proc/interrupts", &(after + local))
    }

    /// A memory module of 16 GiB, with its transfers per second as configured and as rated, in
    /// millions.
    pub(crate) fn memory_module(self, run: u16, rated: u16) -> Self {
        let mut table = vec![0; 0x22];
        (table[0], table[1]) = (17, 0x22);
        for (at, word) in [(0x0c, 16_384), (0x15, rated), (0x20, run)] {
            table[at..at + 2].copy_from_slice(&word.to_le_bytes());
        }
        table.extend([0; 2]);
        self.bytes("/sys/firmware/dmi/tables/DMI", &table)
    }

    /// A process now and later, with the units of CPU time it used in between.
    pub(crate) fn process(self, pid: u32, name: &str, used: u64, cpu: u32) -> Self {
        let line = |ticks: u64| {
            format!(
                "{pid} ({name}) S 1 1 1 0 -1 4194304 100 0 0 0 {ticks} 0 0 0 20 0 1 0 77 \
                 3133440 407 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 {cpu} 0 0 0 0 0\n"
            )
        };
        self.file(&format!("/proc/{pid}/stat"), &line(1_000))
            .later_file(&format!("/proc/{pid}/stat"), &line(1_000 + used))
    }

    /// What every Linux shows of itself, with the affinity mask of this process.
    fn linux(self, release: &str, version: &str, cmdline: &str, affinity: &str) -> Self {
        self.files(&[
            ("/proc/sys/kernel/osrelease", &format!("{release}\n")),
            ("/proc/sys/kernel/version", &format!("{version}\n")),
            ("/proc/sys/kernel/hostname", "secret-name\n"),
            ("/proc/cmdline", &format!("{cmdline}\n")),
            ("/proc/loadavg", "0.15 0.30 0.20 1/412 9999\n"),
            ("/proc/meminfo", "MemTotal:       16280000 kB\nSwapTotal:             0 kB\n"),
            ("/proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
            ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
            ("/proc/sys/kernel/sched_autogroup_enabled", "1\n"),
            ("/proc/sys/kernel/timer_migration", "1\n"),
            ("/proc/sys/kernel/nmi_watchdog", "1\n"),
            ("/proc/sys/kernel/numa_balancing", "0\n"),
            ("/proc/sys/kernel/perf_event_paranoid", "2\n"),
            ("/proc/sys/vm/stat_interval", "1\n"),
            ("/proc/sys/vm/swappiness", "60\n"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("/sys/kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never\n"),
            ("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n"),
            ("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       16280000 kB\n"),
            ("/sys/devices/system/node/node0/cpulist", "0-7\n"),
            (
                "/proc/self/status",
                &format!(
                    "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\nCpus_allowed_list:\t{affinity}\n\
                     Mems_allowed_list:\t0\n"
                ),
            ),
            ("/proc/self/uid_map", "         0          0 4294967295\n"),
            (
                "/proc/self/limits",
                "Max locked memory         8388608              8388608              bytes     \n\
                 Max realtime priority     0                    0                    \n",
            ),
        ])
        .link("/proc/self/ns/pid", "pid:[4026531836]")
        .link("/proc/self/ns/ipc", "ipc:[4026531839]")
        .link("/proc/self/ns/uts", "uts:[4026531838]")
        .link("/proc/self/ns/cgroup", "cgroup:[4026531835]")
    }

    fn root(self) -> Self {
        let affinity = self.affinity();
        self.file(
            "/proc/self/status",
            &format!(
                "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nCpus_allowed_list:\t{affinity}\nMems_allowed_list:\t0\n"
            ),
        )
        .file("/dev/cpu_dma_latency", "")
    }

    pub(crate) fn affinity(&self) -> String {
        let status = self
            .source()
            .text("/proc/self/status")
            .into_known()
            .unwrap();
        let (_, rest) = status.split_once("Cpus_allowed_list:\t").unwrap();
        rest.lines().next().unwrap().to_owned()
    }

    pub(crate) fn with_affinity(self, affinity: &str) -> Self {
        let status = self
            .source()
            .text("/proc/self/status")
            .into_known()
            .unwrap();
        let old = format!("Cpus_allowed_list:\t{}", self.affinity());
        self.file(
            "/proc/self/status",
            &status.replace(&old, &format!("Cpus_allowed_list:\t{affinity}")),
        )
    }

    fn cpuinfo(self, vendor: &str, name: &str, flags: &str) -> Self {
        self.file(
            "/proc/cpuinfo",
            &format!(
                "processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: 6\nmodel\t\t: 140\nmodel name\t: {name}\n\
                 stepping\t: 1\nmicrocode\t: 0xa4\nflags\t\t: fpu tsc {flags}\n\nprocessor\t: 1\n"
            ),
        )
    }

    fn clocksource(self, current: &str, available: &str) -> Self {
        let folder = "/sys/devices/system/clocksource/clocksource0";
        self.file(
            &format!("{folder}/current_clocksource"),
            &format!("{current}\n"),
        )
        .file(
            &format!("{folder}/available_clocksource"),
            &format!("{available}\n"),
        )
    }

    fn mitigations(self) -> Self {
        let folder = format!("{CPUS}/vulnerabilities");
        self.file(&format!("{folder}/meltdown"), "Not affected\n")
            .file(
                &format!("{folder}/spectre_v1"),
                "Mitigation: usercopy/swapgs barriers\n",
            )
            .file(
                &format!("{folder}/spectre_v2"),
                "Mitigation: Enhanced IBRS\n",
            )
    }
}

/// A machine has hundreds of files, so they are kept in memory where that is possible.
fn folder() -> TempDir {
    TempDir::new_in("/dev/shm")
        .or_else(|_| TempDir::new())
        .unwrap()
}

fn write(root: &Path, path: &str, bytes: &[u8]) {
    let path = root.join(path.trim_start_matches('/'));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// A laptop as it comes: 4 cores with 2 threads, powersave, turbo, deep idle states, a browser on
/// CPU 7, an ordinary user.
pub(crate) fn laptop() -> Tree {
    Tree::new()
        .linux(
            "6.8.0-45-generic",
            "#45-Ubuntu SMP PREEMPT_DYNAMIC Fri Aug 30 12:02:04 UTC 2024",
            "BOOT_IMAGE=/boot/vmlinuz root=UUID=0000 ro quiet splash",
            "0-7",
        )
        .cpus(8, 2)
        .caches(8)
        .file(&format!("{CPUS}/smt/control"), "on\n")
        .file(&format!("{CPUS}/isolated"), "\n")
        .file(&format!("{CPUS}/nohz_full"), " (null)\n")
        .frequency(8, "intel_pstate", "powersave", 400_000, 4_700_000)
        .file(&format!("{CPUS}/intel_pstate/no_turbo"), "0\n")
        .idle(
            8,
            "intel_idle",
            &[
                ("POLL", 0, false),
                ("C1_ACPI", 1, false),
                ("C10_ACPI", 1_034, false),
            ],
        )
        .mitigations()
        .cpuinfo(
            "GenuineIntel",
            "11th Gen Intel(R) Core(TM) i7",
            "constant_tsc nonstop_tsc tsc_known_freq art",
        )
        .cpuid(None)
        .clocksource("tsc", "tsc hpet acpi_pm")
        .files(&[
            (
                "/etc/os-release",
                "NAME=\"Ubuntu\"\nPRETTY_NAME=\"Ubuntu 24.04.1 LTS\"\n",
            ),
            (
                "/proc/meminfo",
                "MemTotal:       16280000 kB\nSwapTotal:       2097148 kB\n",
            ),
            (
                "/sys/kernel/mm/transparent_hugepage/enabled",
                "[always] madvise never\n",
            ),
            (
                "/boot/config-6.8.0-45-generic",
                "CONFIG_HZ=1000\nCONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_RCU_NOCB_CPU=y\n",
            ),
            ("/sys/bus/event_source/devices/cpu/type", "4\n"),
            ("/sys/class/dmi/id/sys_vendor", "LENOVO\n"),
            ("/sys/class/dmi/id/product_name", "20XW\n"),
            ("/sys/class/dmi/id/product_serial", "PF-SECRET\n"),
            ("/sys/class/dmi/id/bios_vendor", "LENOVO\n"),
            ("/sys/class/dmi/id/bios_version", "N32ET91W\n"),
            ("/sys/class/dmi/id/bios_date", "02/13/2024\n"),
            ("/proc/self/cgroup", "0::/user.slice/user-1000.slice\n"),
            ("/proc/self/mountinfo", V2_MOUNT),
            ("/sys/fs/cgroup/cpuset.cpus.effective", "0-7\n"),
            ("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n"),
        ])
        .busy(&[
            (0, 2, 0),
            (1, 0, 0),
            (2, 0, 0),
            (3, 0, 0),
            (4, 1, 0),
            (5, 0, 0),
            (6, 0, 0),
            (7, 12, 0),
        ])
        .interrupts(
            8,
            &[
                (125, "nvme0q6", 6, 0),
                (130, "iwlwifi", 6, 4),
                (131, "xhci_hcd", 0, 2),
            ],
        )
        .process(4_242, "Web Content", 11, 7)
        .process(800, "irqbalance", 0, 0)
}

/// A telecom host: 8 cores without SMT, 2-7 set apart, everything fixed; root.
pub(crate) fn telecom() -> Tree {
    Tree::new()
        .linux(
            "5.14.0-427.rt14.el9.x86_64",
            "#1 SMP PREEMPT_RT Fri Mar 1 10:00:00 EST 2024",
            "root=/dev/sda1 isolcpus=managed_irq,domain,2-7 nohz_full=2-7 rcu_nocbs=2-7 nosmt \
             intel_idle.max_cstate=0 idle=poll tsc=reliable skew_tick=1 rd.luks.key=SECRET",
            "0-1",
        )
        .root()
        .cpus(8, 1)
        .caches(8)
        .file(&format!("{CPUS}/smt/control"), "forceoff\n")
        .file(&format!("{CPUS}/isolated"), "2-7\n")
        .file(&format!("{CPUS}/nohz_full"), "2-7\n")
        .frequency(8, "intel_pstate", "performance", 2_600_000, 2_600_000)
        .file(&format!("{CPUS}/intel_pstate/no_turbo"), "1\n")
        .mitigations()
        .cpuinfo(
            "GenuineIntel",
            "Intel(R) Xeon(R) Gold",
            "constant_tsc nonstop_tsc tsc_known_freq tsc_reliable",
        )
        .cpuid(None)
        .clocksource("tsc", "tsc hpet acpi_pm")
        .files(&[
            ("/sys/kernel/realtime", "1\n"),
            (
                "/etc/os-release",
                "PRETTY_NAME=\"Red Hat Enterprise Linux 9.4 (Plow)\"\n",
            ),
            (
                "/boot/config-5.14.0-427.rt14.el9.x86_64",
                "CONFIG_HZ=1000\nCONFIG_PREEMPT_RT=y\nCONFIG_RCU_NOCB_CPU=y\nCONFIG_NO_HZ_FULL=y\n",
            ),
            ("/proc/sys/kernel/sched_rt_runtime_us", "-1\n"),
            ("/proc/sys/kernel/nmi_watchdog", "0\n"),
            ("/proc/sys/kernel/timer_migration", "0\n"),
            ("/proc/sys/kernel/printk", "4\t4\t1\t7\n"),
            ("/sys/class/tty/console/active", "tty0\n"),
            ("/proc/sys/vm/stat_interval", "10\n"),
            (
                "/sys/kernel/mm/transparent_hugepage/enabled",
                "always madvise [never]\n",
            ),
            (
                "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages",
                "16\n",
            ),
            ("/sys/bus/event_source/devices/cpu/type", "4\n"),
            ("/proc/self/cgroup", "0::/user.slice/user-0.slice\n"),
            ("/proc/self/mountinfo", V2_MOUNT),
            ("/sys/fs/cgroup/cpuset.cpus.effective", "0-7\n"),
        ])
        .busy(&[
            (0, 1, 0),
            (1, 0, 0),
            (2, 0, 0),
            (3, 0, 0),
            (4, 0, 0),
            (5, 0, 0),
            (6, 0, 0),
            (7, 20, 0),
        ])
        .memory_module(4_800, 4_800)
        .interrupts(8, &[(60, "eno1-TxRx-0", 0, 12)])
        .process(2_000, "dpdk-testpmd", 20, 7)
}

/// A small guest of a microVM monitor, booted from a container's image: 2 CPUs, cgroup version 1,
/// root; no DMI, no cpufreq.
pub(crate) fn guest() -> Tree {
    Tree::new()
        .linux(
            "6.18.44",
            "#1 SMP PREEMPT_DYNAMIC",
            "console=ttyS0 quiet panic=1 mitigations=auto",
            "0-1",
        )
        .root()
        .cpus(2, 1)
        .file(&format!("{CPUS}/smt/control"), "notsupported\n")
        .file(&format!("{CPUS}/isolated"), "\n")
        .idle(
            2,
            "haltpoll",
            &[("POLL", 0, false), ("haltpoll idle", 1, false)],
        )
        .mitigations()
        .cpuinfo(
            "AuthenticAMD",
            "AMD EPYC",
            "constant_tsc nonstop_tsc tsc_known_freq hypervisor",
        )
        .cpuid(Some("KVMKVMKVM"))
        .clocksource("tsc", "tsc kvm-clock")
        .files(&[
            ("/.dockerenv", ""),
            (
                "/etc/os-release",
                "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
            ),
            (
                "/boot/config-6.18.44",
                "CONFIG_HZ=250\nCONFIG_PREEMPT_NONE=y\nCONFIG_RCU_NOCB_CPU=y\n\
                 CONFIG_RT_GROUP_SCHED=y\n",
            ),
            ("/proc/sys/kernel/nmi_watchdog", "0\n"),
            ("/sys/bus/event_source/devices/software/type", "1\n"),
            (
                "/proc/self/cgroup",
                "3:cpuset:/\n2:cpuacct:/\n1:cpu:/\n0::/\n",
            ),
            (
                "/proc/self/mountinfo",
                "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                 34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n",
            ),
            ("/sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-1\n"),
            ("/sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ])
        .busy(&[(0, 1, 0), (1, 0, 1)])
        .interrupts(
            2,
            &[(36, "virtio1-req.0", 1, 0), (38, "virtio2-input.0", 1, 0)],
        )
}

/// A container on cgroup version 2 with half a CPU, on an otherwise idle 4-core server.
pub(crate) fn container() -> Tree {
    Tree::new()
        .linux("6.1.0-18-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1", "quiet", "0-3")
        .file(
            "/proc/self/status",
            "Uid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0\n",
        )
        .cpus(4, 1)
        .file(&format!("{CPUS}/isolated"), "\n")
        .file(&format!("{CPUS}/nohz_full"), "\n")
        .frequency(4, "acpi-cpufreq", "schedutil", 1_500_000, 3_400_000)
        .file(&format!("{CPUS}/cpufreq/boost"), "1\n")
        .idle(4, "acpi_idle", &[("POLL", 0, false), ("C1", 1, false), ("C2", 400, false)])
        .mitigations()
        .cpuinfo("AuthenticAMD", "AMD Ryzen", "constant_tsc nonstop_tsc")
        .cpuid(None)
        .clocksource("hpet", "hpet acpi_pm")
        .files(&[
            ("/.dockerenv", ""),
            ("/etc/os-release", "PRETTY_NAME=\"Alpine Linux v3.20\"\n"),
            ("/proc/self/cgroup", "0::/\n"),
            ("/proc/self/mountinfo", "900 880 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n"),
            ("/sys/fs/cgroup/cpu.max", "50000 100000\n"),
            ("/sys/fs/cgroup/cpuset.cpus.effective", "0-3\n"),
            ("/sys/bus/event_source/devices/cpu/type", "4\n"),
            ("/proc/sys/kernel/perf_event_paranoid", "3\n"),
        ])
        .link("/proc/self/ns/pid", "pid:[4026532500]")
        .link("/proc/self/ns/ipc", "ipc:[4026532501]")
        .link("/proc/self/ns/uts", "uts:[4026532502]")
        .link("/proc/self/ns/cgroup", "cgroup:[4026532503]")
        .busy(&[(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0)])
        .interrupts(4, &[(40, "nvme0q1", 0, 0)])
        .process(1, "sh", 0, 0)
}

/// Root on cgroup version 1 in a group without a real-time budget, below one that has none either.
pub(crate) fn rt_group() -> Tree {
    guest().files(&[
        (
            "/proc/self/cgroup",
            "3:cpuset:/\n1:cpu:/system.slice/ssh.service\n0::/\n",
        ),
        (
            "/sys/fs/cgroup/cpu/machine.slice/cpu.rt_runtime_us",
            "150000\n",
        ),
        ("/sys/fs/cgroup/cpu/system.slice/cpu.rt_runtime_us", "0\n"),
        (
            "/sys/fs/cgroup/cpu/system.slice/ssh.service/cpu.rt_runtime_us",
            "0\n",
        ),
        (
            "/sys/fs/cgroup/cpu/system.slice/ssh.service/cpu.cfs_quota_us",
            "-1\n",
        ),
    ])
}
