//! `wakeup-phases.csv`: one row for each target, phase and run, with the columns of landolfi-2018 and ours.

use tare_results::csv::table;

use super::combine::WakeupCombination;
use super::latency::{Latencies, LatencyQuantile};

/// Is the name of the file.
pub const FILE: &str = "wakeup-phases.csv";

/// Is the first line.
pub const HEADER: &str = "target,load,traced,emulated,run,phase,phase_load,max_us,mean_us,sd_us,min_us,p50_us,\
p99_us,p99_9_us,p99_99_us,response_mean_us,response_sd_us,response_p50_us,response_p99_us,response_p99_9_us,\
response_p99_99_us,woken,missed,between_woken,between_missed,absent";

/// Returns the file; `None` if no wake-ups were measured.
///
/// A figure that there is not, such as a quantile of too few latencies, is an empty field.
#[must_use]
pub fn file(combinations: &[WakeupCombination]) -> Option<String> {
    if combinations.is_empty() {
        return None;
    }
    let mut rows = Vec::new();
    for combination in combinations {
        for run in &combination.each {
            for phase in &run.phases {
                let mut fields = vec![
                    combination.target.clone(),
                    combination.load.clone(),
                    combination.traced.to_string(),
                    combination.emulated.to_string(),
                    run.block.to_string(),
                    phase.number.to_string(),
                    phase.load.clone(),
                ];
                fields.extend(columns(phase.service.as_ref(), true));
                fields.extend(columns(phase.response.as_ref(), false));
                let counted = [
                    phase.woken,
                    phase.missed,
                    phase.between_woken,
                    phase.between_missed,
                ];
                fields.extend(counted.map(|count| count.to_string()));
                fields.push(phase.absent.clone().unwrap_or_default());
                rows.push(fields);
            }
        }
    }
    Some(table(HEADER, rows))
}

/// Writes the figures of a distribution; of the response latencies least and greatest are left out.
fn columns(latencies: Option<&Latencies>, with_ends: bool) -> Vec<String> {
    let number = |of: &dyn Fn(&Latencies) -> Option<f64>| {
        let ns = latencies.and_then(of);
        ns.map_or_else(String::new, |ns| format!("{:.3}", ns / 1e3))
    };
    let quantile = |of: &dyn Fn(&Latencies) -> LatencyQuantile| {
        number(&|latencies| of(latencies).ns.map(|ns| ns as f64))
    };
    let mut fields = Vec::new();
    if with_ends {
        fields.push(number(&|l| Some(l.max_ns as f64)));
    }
    fields.push(number(&|l| Some(l.mean_ns)));
    fields.push(number(&|l| Some(l.sd_ns)));
    if with_ends {
        fields.push(number(&|l| Some(l.min_ns as f64)));
    }
    fields.push(number(&|l| Some(l.median_ns as f64)));
    fields.push(quantile(&|l| l.p99));
    fields.push(quantile(&|l| l.p99_9));
    fields.push(quantile(&|l| l.p99_99));
    fields
}
