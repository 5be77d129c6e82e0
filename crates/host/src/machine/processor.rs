//! The processor model, from `/proc/cpuinfo`.

use std::collections::BTreeMap;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::Fact;
use crate::source::Source;

/// The event sources that mean "this processor's counters can be used": plain, hybrid, Arm.
const COUNTER_DEVICES: [&str; 4] = ["cpu", "cpu_core", "armv8_pmuv3", "armv8_pmuv3_0"];

/// The processor model. All CPUs are taken to be the same as the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Processor {
    /// Who made it, as CPUID spells it: GenuineIntel, AuthenticAMD.
    pub vendor: Fact<String>,
    /// The name it gives itself; a guest sees what the hypervisor wants it to see.
    pub model_name: Fact<String>,
    /// The family number.
    pub family: Fact<u32>,
    /// The model number.
    pub model: Fact<u32>,
    /// The stepping number.
    pub stepping: Fact<u32>,
    /// The revision of the microcode, in hexadecimal.
    pub microcode: Fact<String>,
    /// Frequency of the first CPU's clock in MHz, as the kernel reports it: its current frequency,
    /// or what it is made for.
    #[serde(default)]
    pub mhz: Fact<f64>,
    /// Whether the kernel offers the processor's performance counters.
    pub performance_counters: Fact<bool>,
}

impl Processor {
    pub(super) fn collect(source: &Source) -> Self {
        let info = first_cpu(source);
        Self {
            vendor: field(&info, "vendor_id"),
            model_name: field(&info, "model name"),
            family: field(&info, "cpu family"),
            model: field(&info, "model"),
            stepping: field(&info, "stepping"),
            microcode: field(&info, "microcode"),
            mhz: field(&info, "cpu MHz"),
            performance_counters: source.names("/sys/bus/event_source/devices").map(|names| {
                names
                    .iter()
                    .any(|name| COUNTER_DEVICES.contains(&name.as_str()))
            }),
        }
    }
}

/// The words of the `flags` line of the first CPU.
pub(super) fn flags(source: &Source) -> Fact<Vec<String>> {
    field::<String>(&first_cpu(source), "flags")
        .map(|flags| flags.split_ascii_whitespace().map(str::to_owned).collect())
}

/// Reads the first block of `/proc/cpuinfo`.
fn first_cpu(source: &Source) -> Fact<BTreeMap<String, String>> {
    source.text("/proc/cpuinfo").map(|text| {
        text.lines()
            .take_while(|line| !line.trim().is_empty())
            .filter_map(|line| {
                let (name, value) = line.split_once(':')?;
                Some((name.trim().to_owned(), value.trim().to_owned()))
            })
            .collect()
    })
}

fn field<T: FromStr>(info: &Fact<BTreeMap<String, String>>, name: &str) -> Fact<T> {
    let because = format!("/proc/cpuinfo does not tell the {name}");
    info.as_ref()
        .find(because, |info| info.get(name)?.parse().ok())
}
