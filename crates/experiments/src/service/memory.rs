//! The least memory of a guest with which its service answers.

use std::time::Duration;

use tare_lab::{Driven, Endpoint, Stage};
use tare_results::model::{Labels, Outcome, Value};
use tare_results::target::TargetOption;

/// The memory of a guest in MiB that is too little, and one that is enough.
const ENDS: [u64; 2] = [1, 512];
/// The longest time in which a guest with little memory is to become ready.
const TRIAL: Duration = Duration::from_secs(20);

/// Finds it by bisection in whole MiB, and plays the cell with it.
pub(super) fn play(stage: &mut Stage<'_>, endpoint: &Endpoint<'_>) -> Driven {
    let plan = stage.plan();
    let with = |mib: u64| {
        let mut target = plan.target.clone();
        target.options.push(TargetOption {
            key: "mem".to_owned(),
            value: format!("{mib}M"),
        });
        target
    };
    let [mut fails, mut works] = ENDS;
    while works - fails > 1 {
        let mib = fails.midpoint(works);
        match stage.answers(&with(mib), endpoint, TRIAL)? {
            true => works = mib,
            false => fails = mib,
        }
    }
    let mut outcome = stage.served(&with(works), endpoint)?;
    if let Outcome::Done { record, .. } = &mut outcome {
        record.values.push(Value {
            measure: "least-memory".to_owned(),
            labels: Labels::default(),
            unit: "bytes".to_owned(),
            value: (works << 20) as f64,
        });
    }
    Ok(outcome)
}
