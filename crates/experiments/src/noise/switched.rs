//! Cells with this machine's switches on and off: `--isolate` compares all of them with none,
//! `--screen` gives each its own effect by a fractional factorial design ([`tare_stats::design`]).

use std::collections::BTreeMap;

use tare_host::{Source, switch_ids, switches};
use tare_lab::ExperimentError;
use tare_lab::parameter::{Parameter, Takes, Values};
use tare_lab::units::setting_file;
use tare_results::model::{CellPlan, SettingPlan, SwitchPlan};
use tare_results::target::Kernel;
use tare_stats::{MOST_SWITCHES, design};

use super::NAME;

/// The label of a cell whose switches are all on, or all off: `yes`, `no`.
pub(super) const ISOLATE: &str = "isolate";
/// The label of a cell of a screening: the number of its row in the design.
pub(super) const SCREEN: &str = "screen";
/// The word for all switches of this machine.
const ALL: &str = "all";

pub(super) const PARAMETERS: [Parameter; 2] = [
    Parameter {
        name: ISOLATE,
        meaning: "Measure in turn with and without the kernel settings that keep work away from the measured CPU, then restore them: \
                  all, or some separated by commas, by name (--dry-run lists them) or as NAME=VALUE, as for --set",
        ..SWITCHES
    },
    Parameter {
        name: SCREEN,
        meaning: "Find the effect of each of these settings, by a fractional factorial design; only gap by default. Takes the same \
                  values as --isolate",
        ..SWITCHES
    },
];

const SWITCHES: Parameter = Parameter {
    value: "WHICH",
    takes: Takes::Text {
        wanted: "all, or names of switches and NAME=VALUE, separated by commas",
        fits: |text| {
            words(text).iter().all(|word| match word.split_once('=') {
                Some((name, value)) => !name.is_empty() && !value.is_empty(),
                None => is_name(word),
            })
        },
    },
    bare: Some(ALL),
    heading: "Isolation",
    command_only: Some("which settings can be changed differs from machine to machine"),
    ..Parameter::NEW
};

fn is_name(word: &str) -> bool {
    word == ALL || switch_ids().any(|id| id == word)
}

/// Returns the words of a text. A value may have commas: what follows one and is neither a name nor
/// a setting belongs to the setting before it.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(',') {
        match words.last_mut().filter(|last| last.contains('=')) {
            Some(last) if !is_name(word) && !word.contains('=') => {
                last.push(',');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// The combinations of switches of each cell: its label's value, and the switches that are on.
pub(super) struct Variation {
    label: &'static str,
    rows: Vec<(String, Vec<SwitchPlan>)>,
}

impl Variation {
    /// Returns the variation that values ask for, of the machine behind `source`; `None` if they ask
    /// for none.
    ///
    /// # Errors
    ///
    /// Returns [`ExperimentError::Contradiction`] if there are no such switches, or too many.
    pub fn of(values: &Values, source: &Source, cpu: u32) -> Result<Option<Self>, ExperimentError> {
        let wrong = |why: String| ExperimentError::Contradiction {
            experiment: NAME,
            why,
        };
        let label = match (values.has(ISOLATE), values.has(SCREEN)) {
            (false, false) => return Ok(None),
            (true, true) => {
                let why = "--isolate and --screen can't be combined: --screen measures with all switches, too";
                return Err(wrong(why.to_owned()));
            }
            (true, false) => ISOLATE,
            (false, true) => SCREEN,
        };
        let words = words(values.text(label).unwrap_or(ALL));
        let all = chosen(&words, source, cpu).map_err(wrong)?;
        let mut paths = BTreeMap::new();
        for (switch, setting) in all
            .iter()
            .flat_map(|all| all.settings.iter().map(|one| (&all.name, one)))
        {
            if let Some(other) = paths.insert(&setting.path, switch) {
                let why = format!("{} is given twice: by {other} and {switch}", setting.path);
                return Err(wrong(why));
            }
        }
        let rows = if label == ISOLATE {
            vec![("no".to_owned(), Vec::new()), ("yes".to_owned(), all)]
        } else {
            let rows = design(all.len()).map_err(|_| {
                wrong(format!(
                    "{} switches are too many for --screen, which takes {MOST_SWITCHES}",
                    all.len()
                ))
            })?;
            let rows = (1..).zip(rows).map(|(number, row): (u32, _)| {
                let on = row.into_iter().zip(&all).filter(|(is_on, _)| *is_on);
                (
                    format!("{number:02}"),
                    on.map(|(_, switch)| switch.clone()).collect(),
                )
            });
            rows.collect()
        };
        Ok(Some(Self { label, rows }))
    }

    /// Returns the cells of a combination.
    ///
    /// # Errors
    ///
    /// Returns [`ExperimentError::Contradiction`] if it does not run on this machine.
    pub fn cells(&self, cell: &CellPlan) -> Result<Vec<CellPlan>, ExperimentError> {
        if matches!(cell.target.kernel(), Kernel::Remote | Kernel::Unknown) {
            return Err(ExperimentError::Contradiction {
                experiment: NAME,
                why: format!(
                    "--{} changes this machine, and {} is another one: run tare there",
                    self.label, cell.target
                ),
            });
        }
        let rows = self.rows.iter();
        let cells = rows.map(|(value, switches)| CellPlan {
            name: format!("{} {}={value}", cell.name, self.label),
            labels: cell.labels.clone().with(self.label, value),
            switches: switches.clone(),
            ..cell.clone()
        });
        Ok(cells.collect())
    }
}

/// Returns the switches that words name.
fn chosen(words: &[String], source: &Source, cpu: u32) -> Result<Vec<SwitchPlan>, String> {
    let mut all: Vec<SwitchPlan> = Vec::new();
    for switch in switches(source, cpu) {
        if words.iter().any(|word| word == ALL || word == switch.id) {
            let files = switch.files.into_iter();
            all.push(SwitchPlan {
                name: switch.id.to_owned(),
                settings: files
                    .map(|(path, value)| SettingPlan { path, value })
                    .collect(),
            });
        }
    }
    for word in words.iter().filter(|word| *word != ALL) {
        match word.split_once('=') {
            Some((name, value)) => all.push(SwitchPlan {
                name: name.to_owned(),
                settings: vec![SettingPlan {
                    path: setting_file(name),
                    value: value.to_owned(),
                }],
            }),
            None if all.iter().all(|switch| switch.name != *word) => {
                return Err(format!(
                    "{word} has nothing to change here: this machine lacks it, or it is set so already"
                ));
            }
            None => {}
        }
    }
    match all.is_empty() {
        true => Err("no switch has anything to change here: all are set so already, or this machine lacks them".to_owned()),
        false => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tare_lab::parameter::Value;
    use tare_results::work::Work;

    use super::*;

    /// Makes a machine of two CPUs on which two switches have something to change.
    fn machine() -> (tempfile::TempDir, Source) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("sys/devices/system/cpu/online", "0-1\n"),
            ("proc/irq/24/smp_affinity_list", "0-1\n"),
            ("proc/irq/25/smp_affinity_list", "1\n"),
            ("proc/sys/vm/stat_interval", "1\n"),
            ("proc/sys/kernel/numa_balancing", "0\n"),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let source = Source::at(root.path());
        (root, source)
    }

    fn cells(
        name: &'static str,
        words: &str,
        target: &str,
    ) -> Result<Vec<CellPlan>, ExperimentError> {
        let (_root, source) = machine();
        let mut values = Values::default();
        values.give(name, vec![Value::Text(words.to_owned())]);
        let target = tare_targets::spec::parse(target).unwrap().spec();
        let cell = CellPlan::new(NAME, target, "gap", Work::new("gap", ""));
        let variation = Variation::of(&values, &source, 1)?;
        variation.unwrap().cells(&cell)
    }

    /// Writes the switches of cells, each with the number of its settings.
    fn told(cells: &[CellPlan]) -> Vec<String> {
        let each = cells.iter().map(|cell| {
            let switches = cell.switches.iter();
            let switches = switches.map(|one| format!(" {}:{}", one.name, one.settings.len()));
            format!("{}{}", cell.labels, switches.collect::<String>())
        });
        each.collect()
    }

    #[test]
    fn a_comparison_has_each_cell_with_and_without_all_switches() {
        let all = cells(ISOLATE, "all,vm.swappiness=1,2", "process").unwrap();
        assert_eq!(
            told(&all),
            [
                "isolate=no",
                "isolate=yes irq-affinity:2 stat-interval:1 vm.swappiness:1"
            ]
        );
        assert!(!all[0].repeats(&all[1]));
        let added = &all[1].switches[2].settings[0];
        assert_eq!(
            (added.path.as_str(), added.value.as_str()),
            ("/proc/sys/vm/swappiness", "1,2")
        );
    }

    #[test]
    fn a_screening_has_a_cell_for_each_row_of_the_design() {
        let all = cells(SCREEN, "stat-interval,vm.a=1,vm.b=1", "process").unwrap();
        assert_eq!(all.len(), 8);
        let rows = told(&all);
        assert_eq!(rows[3], "screen=04");
        assert_eq!(rows[7], "screen=08 stat-interval:1 vm.a:1 vm.b:1");
        let with = |name: &str| {
            let own = all.iter();
            own.filter(|cell| cell.switches.iter().any(|one| one.name == name))
                .count()
        };
        assert_eq!(["stat-interval", "vm.a", "vm.b"].map(with), [4, 4, 4]);
    }

    #[test]
    fn what_cannot_be_switched_is_refused_before_anything_runs() {
        for (words, target, why) in [
            ("numa-balancing", "process", "nothing to change here"),
            ("governor", "process", "nothing to change here"),
            (
                "all,vm.stat_interval=9",
                "process",
                "is given twice: by stat-interval and vm.stat_interval",
            ),
            ("all", "ssh,host=there", "run tare there"),
        ] {
            let refused = cells(ISOLATE, words, target).unwrap_err().to_string();
            assert!(refused.contains(why), "{words}: {refused}");
        }
        let many: Vec<String> = (0..24).map(|number| format!("vm.x{number}=1")).collect();
        let refused = cells(SCREEN, &many.join(","), "process")
            .unwrap_err()
            .to_string();
        assert!(refused.contains("24 switches are too many"), "{refused}");
        let parameter = &PARAMETERS[0];
        for wrong in ["", "irq", "vm.x=", "=1", "all,"] {
            assert!(parameter.read(wrong).is_err(), "{wrong}");
        }
    }
}
