//! The time that a hypervisor takes from the measured CPUs of this machine while a cell is
//! measured, as the kernel accounts it.

use tare_host::Source;
use tare_host::sample::Stat;
use tare_results::model::{Labels, Value};
use tare_wire::cpus::Cpus;

/// The kernel's unit of accounted time, 1/100 s, in ns.
const UNIT_NS: f64 = 1e7;

/// The time stolen before the cell began.
#[derive(Debug)]
pub(crate) struct Stolen {
    cpus: Vec<u32>,
    source: Source,
    before: Stat,
}

impl Stolen {
    /// Begins to count for some CPUs of this machine; `None` if they are none.
    pub fn begin(cpus: &Cpus, source: Source) -> Option<Self> {
        let before = read(&source)?;
        (cpus.count() > 0).then(|| Self {
            cpus: cpus.iter().collect(),
            source,
            before,
        })
    }

    /// Returns what was stolen since, if anything was.
    pub fn end(self) -> Option<Value> {
        let all = self.before.until(&read(&self.source)?);
        let each = self.cpus.iter().filter_map(|cpu| all.cpu(*cpu));
        let units: u64 = each.map(|times| times.steal).sum();
        (units > 0).then(|| Value {
            measure: "stolen".to_owned(),
            labels: Labels::default(),
            unit: "ns".to_owned(),
            value: units as f64 * UNIT_NS,
        })
    }
}

fn read(source: &Source) -> Option<Stat> {
    let text = source.text("/proc/stat");
    Some(Stat::parse(text.known()?))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn time_stolen_from_the_measured_cpu_is_reported() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("proc")).unwrap();
        let told = |cpu1: u64, cpu2: u64| {
            let line = |cpu: u32, steal: u64| format!("cpu{cpu} 1 2 3 4 5 6 7 {steal} 0 0\n");
            let stat = line(1, cpu1) + &line(2, cpu2);
            fs::write(root.path().join("proc/stat"), stat).unwrap();
        };
        for (after, stolen) in [((100, 900), None), ((104, 900), Some(40e6))] {
            told(100, 200);
            let begun = Stolen::begin(&Cpus::one(1), Source::at(root.path())).unwrap();
            told(after.0, after.1);
            assert_eq!(begun.end().map(|value| value.value), stolen);
        }
        assert!(Stolen::begin(&Cpus::default(), Source::at(root.path())).is_none());
    }
}
