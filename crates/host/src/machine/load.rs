//! How busy the machine is, and how much the hypervisor has taken from it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::Fact;
use crate::sample::Stat;
use crate::source::Source;

/// Load when the machine was described.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// The load averages.
    pub average: Fact<LoadAverage>,
    /// The share of all CPU time since boot that the hypervisor took, 0 to 1; 0 also when the
    /// hypervisor does not tell.
    pub steal_since_boot: Fact<f64>,
}

/// How many tasks ran or waited uninterruptibly, damped over three spans.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadAverage {
    /// Over 1 minute.
    pub one_minute: f64,
    /// Over 5 minutes.
    pub five_minutes: f64,
    /// Over 15 minutes.
    pub fifteen_minutes: f64,
}

impl Load {
    pub(super) fn collect(source: &Source) -> Self {
        Self {
            average: source
                .line("/proc/loadavg")
                .find("/proc/loadavg does not hold three numbers", parse_average),
            steal_since_boot: source
                .text("/proc/stat")
                .find("/proc/stat accounts no time to any CPU", |text| {
                    Stat::parse(&text).sum().steal_share()
                }),
        }
    }
}

fn parse_average(line: String) -> Option<LoadAverage> {
    let mut numbers = line.split_ascii_whitespace().map(|word| {
        word.parse::<f64>()
            .ok()
            .filter(|number| number.is_finite() && *number >= 0.0)
    });
    Some(LoadAverage {
        one_minute: numbers.next()??,
        five_minutes: numbers.next()??,
        fifteen_minutes: numbers.next()??,
    })
}
