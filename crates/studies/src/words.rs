//! Values that several tables of a study have: targets, loads, durations, numbers.

use std::time::Duration;

use tare_lab::units;
use tare_loads::Load;
use tare_results::model::Schedule;
use tare_results::target::TargetSpec;
use tare_targets::{TargetError, spec};
use toml::de::DeValue;

use crate::problem::suggestion;
use crate::value::{Item, Reader};

const TARGETS: &str = "a list of targets, such as [\"process\"]";
const LOADS: &str = "a list of loads, such as [\"idle\"]";

/// Reads a target.
pub(crate) fn target<'a>(reader: &mut Reader<'a>, item: &'a Item<'a>) -> Option<TargetSpec> {
    let text = reader.text(item, TARGETS)?;
    match spec::parse(text) {
        Ok(target) => Some(target.spec()),
        Err(error) => {
            let text = match &error {
                TargetError::Unknown { name, .. } => {
                    let hint = suggestion(name, spec::kinds().iter().map(|kind| kind.name));
                    hint.contains("did you mean")
                        .then(|| format!("there is no target '{name}'{hint}"))
                }
                _ => None,
            };
            let text = text.unwrap_or_else(|| error.to_string());
            reader.wrong(item.span(), text);
            None
        }
    }
}

/// Reads a load.
pub(crate) fn load<'a>(reader: &mut Reader<'a>, item: &'a Item<'a>) -> Option<Schedule> {
    let text = reader.text(item, LOADS)?;
    Load::parse(text)
        .map(Schedule::from)
        .map_err(|problem| reader.wrong(item.span(), problem.to_string()))
        .ok()
}

/// Reads a word that is checked elsewhere.
pub(crate) fn word<'a>(reader: &mut Reader<'a>, item: &'a Item<'a>) -> Option<String> {
    reader.text(item, "a text").map(str::to_owned)
}

/// Reads the value of a label: a word or a whole number.
pub(crate) fn label<'a>(reader: &mut Reader<'a>, item: &'a Item<'a>) -> Option<String> {
    match item.get_ref() {
        DeValue::Integer(number) => Some(number.to_string()),
        _ => word(reader, item),
    }
}

/// Reads the time after which a cell counts as hung.
pub(crate) fn cell_limit<'a>(reader: &mut Reader<'a>, item: &'a Item<'a>) -> Option<Duration> {
    let text = reader.text(item, "a text of a number and its unit, such as \"90s\"")?;
    units::duration(text)
        .map_err(|problem| reader.wrong(item.span(), problem))
        .ok()
}
