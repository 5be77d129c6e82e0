//! The rule itself, and the words in which it explains itself.

use std::cmp::Ordering;

use super::reach::Reach;
use super::{BUSY_SHARE, CpuChoice, Rule};
use crate::error::HostError;
use crate::machine::Machine;
use crate::sample::Sample;
use tare_wire::cpus::Cpus;

/// Applies the rule.
pub(super) struct Chooser<'a> {
    pub(super) machine: &'a Machine,
    pub(super) sample: &'a Sample,
    pub(super) reach: &'a Reach,
    /// Whether CPUs that other runs measure on were taken out of its reach.
    pub(super) others_measure: bool,
}

impl Chooser<'_> {
    pub(super) fn requested(&self, cpu: u32) -> Result<CpuChoice, HostError> {
        if !self.reach.online.contains(cpu) {
            return Err(self.not_online(cpu));
        }
        let allowed = self.reach.on_request();
        if !allowed.contains(cpu) {
            return Err(self.refusal(cpu, allowed));
        }
        let reason = format!("CPU {cpu} ({})", self.describe(cpu));
        Ok(self.finish(cpu, Rule::Requested, reason, Vec::new()))
    }

    fn not_online(&self, cpu: u32) -> HostError {
        let present = self.machine.topology.present.known();
        let remedy = if present.is_some_and(|present| present.contains(cpu)) {
            format!(
                "choose one of them, or bring it up with `echo 1 | sudo tee \
                 /sys/devices/system/cpu/cpu{cpu}/online`"
            )
        } else {
            "choose one of them".to_owned()
        };
        HostError::CpuNotOnline {
            cpu,
            online: Box::new(self.reach.online),
            remedy,
        }
    }

    fn refusal(&self, cpu: u32, allowed: Cpus) -> HostError {
        let cpuset = self.machine.process.cpuset.known();
        let mask = &self.reach.mask;
        let (why, start) = match cpuset {
            Some(set) if !set.contains(cpu) => (
                format!("its cpuset holds {set}"),
                "in a control group whose cpuset has the CPU".to_owned(),
            ),
            _ => {
                let wider = mask.union(&Cpus::from_iter([cpu]));
                let start = format!("with `taskset -c {wider} tare …`");
                (format!("its affinity mask holds {mask}"), start)
            }
        };
        HostError::CpuNotAllowed {
            cpu,
            allowed: Box::new(allowed),
            why,
            remedy: format!("choose one of them, or start tare {start}"),
        }
    }

    pub(super) fn automatic(&self) -> CpuChoice {
        let isolated = self.reach.isolated_unasked();
        let mut warnings = Vec::new();
        let idle = isolated
            .iter()
            .rev()
            .find(|&cpu| !self.is_busy(cpu) && !self.has_busy_sibling(cpu));
        if let Some(cpu) = idle {
            let reason = format!(
                "CPU {cpu}, the highest-numbered of the isolated CPUs {isolated} that is idle \
                 together with its SMT siblings ({})",
                self.describe(cpu)
            );
            return self.finish(cpu, Rule::Isolated, reason, warnings);
        }
        // Isolated CPUs that are busy stay with whoever uses them, if anything else is left.
        let shared = self.reach.mask.without(&isolated);
        let candidates = if shared.is_empty() {
            warnings.push(format!(
                "this process may only use the isolated CPUs {isolated}, and all of them, or \
                 their SMT siblings, are busy: what is measured disturbs what runs there, and the \
                 other way round"
            ));
            isolated
        } else {
            if !isolated.is_empty() {
                warnings.push(format!(
                    "the isolated CPUs {isolated} or their SMT siblings are busy and were left \
                     alone; name one with --cpu to measure there nevertheless"
                ));
            }
            shared
        };
        let candidates = Some(candidates.without(&Cpus::one(0)))
            .filter(|others| !others.is_empty())
            .unwrap_or(candidates);
        let cpu = candidates
            .iter()
            .min_by(|&a, &b| self.compare(a, b).then(b.cmp(&a)))
            .expect(
                "the mask holds at least one CPU, and CPU 0 is only dropped when others remain",
            );
        let (rule, why) = self.why_quietest(cpu, &candidates);
        let reason = format!("CPU {cpu}, {why} ({})", self.describe(cpu));
        self.finish(cpu, rule, reason, warnings)
    }

    fn why_quietest(&self, cpu: u32, candidates: &Cpus) -> (Rule, String) {
        if self.reach.online.count() == 1 {
            return (Rule::OnlyOne, "the only one of this machine".to_owned());
        }
        if self.reach.mask.count() == 1 {
            let why = match self.others_measure {
                true => "the only one that this process may use and no other run measures on",
                false => "the only one in the affinity mask of this process",
            };
            return (Rule::OnlyOne, why.to_owned());
        }
        let besides = match self.reach.mask.contains(0) && cpu != 0 {
            true => " besides CPU 0",
            false => "",
        };
        let is_tied = |other| other != cpu && self.compare(other, cpu).is_eq();
        let why = if candidates.count() == 1 {
            format!("the only one that is left to this process{besides}")
        } else if candidates.iter().all(|cpu| self.sample.busy(cpu).is_none()) {
            format!("the highest-numbered that this process may use{besides}")
        } else if candidates.iter().any(is_tied) {
            format!(
                "the quietest that this process may use{besides}, the highest-numbered of several"
            )
        } else {
            format!("the quietest that this process may use{besides}")
        };
        (Rule::Quietest, why)
    }

    /// Order two candidates, the better first: those without a busy sibling, then full-speed cores,
    /// then the lower share.
    fn compare(&self, a: u32, b: u32) -> Ordering {
        let slower = &self.machine.topology.slower_cpus;
        self.has_busy_sibling(a)
            .cmp(&self.has_busy_sibling(b))
            .then(slower.contains(a).cmp(&slower.contains(b)))
            .then(self.core_share(a).total_cmp(&self.core_share(b)))
    }

    /// The busy share of a CPU or of its busiest sibling.
    fn core_share(&self, cpu: u32) -> f64 {
        self.share(cpu)
            .max(self.busiest_sibling(cpu).map_or(0.0, |(_, share)| share))
    }

    /// An unknown share counts as idle: nothing speaks against the CPU.
    fn share(&self, cpu: u32) -> f64 {
        self.sample.busy(cpu).unwrap_or(0.0)
    }

    fn is_busy(&self, cpu: u32) -> bool {
        self.share(cpu) > BUSY_SHARE
    }

    fn has_busy_sibling(&self, cpu: u32) -> bool {
        self.busiest_sibling(cpu)
            .is_some_and(|(_, share)| share > BUSY_SHARE)
    }

    fn busiest_sibling(&self, cpu: u32) -> Option<(u32, f64)> {
        self.machine
            .topology
            .siblings(cpu)
            .iter()
            .map(|sibling| (sibling, self.share(sibling)))
            .max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Says how busy the CPU and its siblings are.
    fn describe(&self, cpu: u32) -> String {
        let own = match self.sample.busy(cpu) {
            Some(share) => format!("{:.0} % busy", share * 100.0),
            None => "its load could not be sampled".to_owned(),
        };
        match self.busiest_sibling(cpu) {
            Some((sibling, share)) => {
                format!(
                    "{own}, its SMT sibling CPU {sibling} {:.0} %",
                    share * 100.0
                )
            }
            None if self.machine.topology.cores.known().is_some() => {
                format!("{own}, no SMT sibling")
            }
            None => format!("{own}, SMT siblings unknown"),
        }
    }

    fn finish(&self, cpu: u32, rule: Rule, reason: String, mut warnings: Vec<String>) -> CpuChoice {
        let controller_cpus = self.controller_cpus(cpu);
        if controller_cpus.contains(cpu) {
            warnings.push(format!(
                "tare itself has to run on CPU {cpu} too, so its own work shows in the measurement"
            ));
        }
        if self.is_busy(cpu) {
            warnings.push(format!(
                "CPU {cpu} is {:.0} % busy with other work: if it stays, it shows in the measurement",
                self.share(cpu) * 100.0
            ));
        }
        if let Some((sibling, share)) = self.busiest_sibling(cpu)
            && share > BUSY_SHARE
        {
            warnings.push(format!(
                "CPU {sibling} shares a core with CPU {cpu} and is {:.0} % busy, which slows the \
                 measured code",
                share * 100.0
            ));
        }
        if self.machine.topology.slower_cpus.contains(cpu) {
            warnings.push(format!(
                "CPU {cpu} is an efficiency core, slower than others of this machine"
            ));
        }
        CpuChoice {
            cpu,
            rule,
            reason,
            warnings,
            controller_cpus,
        }
    }

    /// Finds where the controller disturbs least: drops what should stay quiet as long as something
    /// remains.
    fn controller_cpus(&self, cpu: u32) -> Cpus {
        let set_apart = self.machine.isolation.set_apart();
        let siblings = self.machine.topology.siblings(cpu);
        let others = self.reach.mask.without(&Cpus::one(cpu));
        [
            others.without(&set_apart).without(&siblings),
            others.without(&set_apart),
            others.without(&siblings),
            others,
        ]
        .into_iter()
        .find(|list| !list.is_empty())
        .unwrap_or_else(|| Cpus::from_iter([cpu]))
    }
}
