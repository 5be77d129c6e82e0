//! The kernel's command line, reduced to the words that matter to timing.
//!
//! A command line may hold anything: keys of encrypted disks, tokens of a cloud,
//! addresses. So words are recorded by a list of what is wanted, never by a list of
//! what is not.

use crate::fact::Fact;
use crate::source::Source;
use tare_wire::cpus::Cpus;

/// Parameters that change when and how often code is interrupted, how fast it runs,
/// or what time is. A name that ends in a dot stands for all parameters of that module.
const TIMING: &[&str] = &[
    // CPUs set apart.
    "isolcpus nohz nohz_full rcu_nocbs rcu_nocb_poll irqaffinity kthread_cpus housekeeping \
     maxcpus nr_cpus nosmp nosmt workqueue. rcupdate. rcutree.",
    // Preemption and interrupts.
    "preempt threadirqs skew_tick rt_group_sched noirqbalance nmi_watchdog nowatchdog \
     nosoftlockup watchdog_thresh highres psi lapic_timer_c2_ok",
    // Clocks.
    "tsc notsc clocksource hpet nohpet no-kvmclock no-steal-acc",
    // Frequency and idle.
    "idle processor.max_cstate processor. intel_idle. intel_pstate amd_pstate amd_prefcore \
     cpufreq. cpuidle. cpuidle_haltpoll. haltpoll. no_turbo pcie_aspm pcie_aspm.",
    // Memory.
    "transparent_hugepage default_hugepagesz hugepagesz hugepages hugetlb_cma \
     numa_balancing init_on_alloc init_on_free page_poison slub_debug slab_debug \
     debug_pagealloc kasan kfence. kmemleak iommu intel_iommu amd_iommu",
    // Mitigations.
    "mitigations spectre_v1 nospectre_v1 spectre_v2 nospectre_v2 spectre_v2_user \
     spectre_bhi spec_store_bypass_disable nospec_store_bypass_disable spec_rstack_overflow \
     pti nopti kpti l1tf l1d_flush mds mmio_stale_data tsx tsx_async_abort retbleed srbds \
     gather_data_sampling reg_file_data_sampling kvm-intel.vmentry_l1d_flush \
     indirect_target_selection tsa vmscape split_lock_detect",
    // Tracing and auditing that stay on.
    "audit ftrace mce lockdown",
];

/// The parameters that the kernel was booted with, as far as they matter to timing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// Words such as `isolcpus=2-7` in the order in which they were given.
    pub(super) words: Fact<Vec<String>>,
}

impl CommandLine {
    pub(super) fn read(source: &Source) -> Self {
        Self {
            words: source.text("/proc/cmdline").map(|line| timing_words(&line)),
        }
    }

    /// Returns the last value given to a parameter: "" for a bare word, `None` when it does not
    /// occur.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        value_of(self.words.known()?, name)
    }

    /// Returns the CPUs that a parameter names; `None` when it does not occur or is invalid.
    pub(super) fn cpus(&self, name: &str, last_cpu: u32) -> Option<Cpus> {
        Cpus::parse_parameter(self.value(name)?, last_cpu).ok()
    }
}

/// Returns the last value given to a parameter among some words: "" for a bare word.
pub(super) fn value_of<'a>(words: &'a [String], name: &str) -> Option<&'a str> {
    words.iter().rev().find_map(|word| {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        same_name(key, name).then_some(value)
    })
}

fn timing_words(line: &str) -> Vec<String> {
    split(line)
        .into_iter()
        // What follows a lone "--" belongs to init.
        .take_while(|word| word != "--")
        .filter(|word| matters(word))
        .collect()
}

fn matters(word: &str) -> bool {
    let key = word.split_once('=').map_or(word, |(key, _)| key);
    let mut names = TIMING.iter().flat_map(|group| group.split(' '));
    names.any(|name| match name.strip_suffix('.') {
        Some(module) => key
            .split_once('.')
            .is_some_and(|(before, _)| same_name(before, module)),
        None => same_name(key, name),
    })
}

/// Compares two parameter names as the kernel does: hyphen and underscore are the same.
fn same_name(a: &str, b: &str) -> bool {
    let plain = |c: char| if c == '-' { '_' } else { c };
    a.chars().map(plain).eq(b.chars().map(plain))
}

/// Splits at white space outside double quotes.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for c in line.chars() {
        if c == '"' {
            quoted = !quoted;
        }
        if c.is_whitespace() && !quoted {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
        } else {
            word.push(c);
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_matter_to_timing_are_kept() {
        let line = "BOOT_IMAGE=/vmlinuz root=UUID=1-2 ro quiet rd.luks.key=SECRET \
                    isolcpus=managed_irq,domain,2-7 \
                    nohz_full=2-7 rcu_nocbs=2-7 systemd.setenv=TOKEN=x \
                    intel-idle.max_cstate=1 tsc=reliable \
                    dyndbg=\"file x.c +p isolcpus=9\" mitigations=off -- idle=poll\n";
        assert_eq!(
            timing_words(line),
            [
                "isolcpus=managed_irq,domain,2-7",
                "nohz_full=2-7",
                "rcu_nocbs=2-7",
                "intel-idle.max_cstate=1",
                "tsc=reliable",
                "mitigations=off",
            ]
        );
    }

    #[test]
    fn the_last_value_counts() {
        let line = CommandLine {
            words: Fact::Known(timing_words(
                "preempt=none nohz_full=1-N preempt=full threadirqs",
            )),
        };
        assert_eq!(line.value("preempt"), Some("full"));
        assert_eq!(line.value("threadirqs"), Some(""));
        assert_eq!(line.value("isolcpus"), None);
        assert_eq!(line.cpus("nohz_full", 3).unwrap().to_string(), "1-3");
    }
}
