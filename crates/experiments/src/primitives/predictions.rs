//! Predictions: what each primitive should cost, from what is known of the machine.
//!
//! They are a data file ([`SHIPPED`]), of which a user's own file replaces any line. It has two
//! tables: *quantities*, which predictions are made of, and *predictions*, each of a primitive with
//! its reasoning. Both are sums and products of numbers, units and quantities. What the machine
//! tells takes the place of the quantity of that name; the core's clock is measured.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Instant;

use serde::Deserialize;
use tare_host::machine::Cache;
use tare_host::{Machine, visible_in_line};
use tare_results::model::{Expected, Labels};
use tare_workloads::calibration::{ADDITIONS, tare_additions};

use super::BANDWIDTH;

/// The predictions that come with tare.
pub(super) const SHIPPED: &str = include_str!("predictions.toml");

/// The units, in ns or bytes. A cycle of the core's clock is a quantity.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    // Bytes in each ns.
    ("GB_per_s", 1.0),
    ("percent", 0.01),
];
/// The quantities that are loads of working sets, with the bytes of those.
const LOADS: [(&str, u64); 4] = [
    ("load_16K", 16 << 10),
    ("load_256K", 256 << 10),
    ("load_4M", 4 << 20),
    ("load_256M", 256 << 20),
];
/// The quantity that is measured: a cycle of the core's clock.
const CYCLE: &str = "cycle";
/// How deep quantities may be made of others.
const DEEPEST: usize = 16;

/// A file of predictions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    quantities: BTreeMap<String, Quantity>,
    #[serde(default)]
    predictions: BTreeMap<String, Prediction>,
}

/// What predictions are made of.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Quantity {
    is: String,
    #[expect(dead_code, reason = "it is for those who read the file")]
    why: String,
}

/// A prediction: of the intrinsic cost, or of the bandwidth.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Prediction {
    is: String,
    why: String,
}

/// Predictions for a machine.
#[derive(Clone, Debug)]
pub(super) struct Predictions {
    quantities: BTreeMap<String, String>,
    predictions: BTreeMap<String, Prediction>,
    /// The quantities that were evaluated: each may be made of others, thousands of times.
    known: RefCell<BTreeMap<String, f64>>,
}

impl Predictions {
    /// Reads those that come with tare, with what a user's own file has in place of them.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the user's file.
    pub(super) fn read(own: Option<&str>, machine: &Machine) -> Result<Self, String> {
        let mut file: File = toml::from_str(SHIPPED).map_err(|error| error.to_string())?;
        let told = told(machine).into_iter();
        let mut quantities: BTreeMap<String, String> = file
            .quantities
            .into_iter()
            .map(|(name, quantity)| (name, quantity.is))
            .chain(told.map(|(name, value)| (name.to_owned(), value)))
            .collect();
        if let Some(own) = own {
            let own: File = toml::from_str(own).map_err(|error| error.message().to_owned())?;
            let own_quantities = own.quantities.into_iter();
            quantities.extend(own_quantities.map(|(name, quantity)| (name, quantity.is)));
            file.predictions.extend(own.predictions);
        }
        let read = Self {
            quantities,
            predictions: file.predictions,
            known: RefCell::default(),
        };
        for (name, prediction) in &read.predictions {
            let wrong = |why: String| shown(&format!("the prediction of '{name}': {why}"));
            read.value(&prediction.is, 0).map_err(wrong)?;
            let labels = labels(name).map_err(wrong)?;
            let id = labels.get("primitive").unwrap_or_default();
            if tare_measured::primitives::linux::find(id).is_none() {
                return Err(wrong(
                    "there is no such primitive; `tare primitives --list` names them".to_owned(),
                ));
            }
        }
        Ok(read)
    }

    /// Returns what is expected of a primitive's figure, which is of this measure.
    pub(super) fn of(&self, id: &str, measure: &str) -> Vec<Expected> {
        let own = self.predictions.iter().filter_map(|(name, prediction)| {
            let labels = labels(name).ok()?;
            let value = self.value(&prediction.is, 0).ok()?;
            (labels.get("primitive") == Some(id)).then(|| Expected {
                measure: measure.to_owned(),
                labels,
                // Bytes in a second, not in a ns.
                value: if measure == BANDWIDTH {
                    value * 1e9
                } else {
                    value
                },
                why: visible_in_line(&prediction.why).into_owned(),
            })
        });
        own.collect()
    }

    /// Returns the cycle that predictions are made of, next to which they can be read.
    pub(super) fn cycle(&self) -> Option<Expected> {
        Some(Expected {
            measure: CYCLE.to_owned(),
            labels: labels(CYCLE).ok()?,
            value: self.value(CYCLE, 0).ok()?,
            why: "a cycle of the core's clock, as the others are made of it".to_owned(),
        })
    }

    /// Returns the primitives of which there are predictions.
    #[cfg(test)]
    fn ids(&self) -> Vec<String> {
        let names = self.predictions.keys();
        let ids = names.filter_map(|name| Some(labels(name).ok()?.get("primitive")?.to_owned()));
        ids.collect()
    }

    /// Evaluates a formula.
    fn value(&self, formula: &str, depth: usize) -> Result<f64, String> {
        if depth > DEEPEST {
            return Err(format!("'{formula}' is made of itself"));
        }
        let spaced = ["*", "/", "+", "-"].iter();
        let spaced = spaced.fold(formula.to_owned(), |text, sign| {
            text.replace(sign, &format!(" {sign} "))
        });
        let mut words = spaced.split_whitespace();
        let factor = |word: Option<&str>| {
            let word = word.ok_or("a number or a name is missing at the end")?;
            word.parse().or_else(|_| self.named(word, depth))
        };
        let (mut sum, mut product) = (0.0, factor(words.next())?);
        while let Some(sign) = words.next() {
            let next = match sign {
                "*" | "/" | "+" | "-" => factor(words.next())?,
                _ => return Err(format!("'{formula}': unknown '{sign}'")),
            };
            match sign {
                "*" => product *= next,
                "/" => product /= next,
                sign => {
                    sum += product;
                    product = if sign == "+" { next } else { -next };
                }
            }
        }
        let value = sum + product;
        match value.is_finite() && value > 0.0 {
            true => Ok(value),
            false => Err(format!("'{formula}' is not a number above 0")),
        }
    }

    fn named(&self, name: &str, depth: usize) -> Result<f64, String> {
        let mut units = UNITS.iter();
        if let Some((_, value)) = units.find(|(unit, _)| *unit == name) {
            return Ok(*value);
        }
        if let Some(value) = self.known.borrow().get(name) {
            return Ok(*value);
        }
        let formula = self.quantities.get(name);
        let formula =
            formula.ok_or_else(|| format!("there is no quantity and no unit '{name}'"))?;
        let value = self.value(formula, depth + 1)?;
        self.known.borrow_mut().insert(name.to_owned(), value);
        Ok(value)
    }
}

/// Returns an error in one line that nobody has to scroll through: what it quotes comes from a file.
fn shown(error: &str) -> String {
    const LONGEST: usize = 200;
    let mut shown = visible_in_line(error).into_owned();
    if let Some((end, _)) = shown.char_indices().nth(LONGEST) {
        shown.truncate(end);
        shown.push('…');
    }
    shown
}

/// Reads the name of a prediction: a primitive, and behind it labels if its variants differ:
/// `fork memory=64M`.
fn labels(name: &str) -> Result<Labels, String> {
    Labels::parse(&format!("primitive={name}")).map_err(|word| format!("'{word}' is not a label"))
}

/// Returns the time of a cycle of the core's clock in ns, as it turns out: that of an addition that
/// waits for the one before. A virtual machine may claim a clock that is half the real one.
fn cycle_ns() -> f64 {
    /// Some 0.3 ms of additions.
    const PASSES: u64 = 20_000;
    /// The number of rounds: interruptions affect only a few.
    const ROUNDS: u32 = 9;
    let rounds = (0..ROUNDS).map(|_| {
        let begun = Instant::now();
        tare_additions(PASSES);
        begun.elapsed()
    });
    let least = rounds.min().unwrap_or_default();
    least.as_secs_f64() * 1e9 / (PASSES * ADDITIONS) as f64
}

/// Returns the quantities that the machine itself tells.
fn told(machine: &Machine) -> Vec<(&'static str, String)> {
    let mut told = vec![(CYCLE, format!("{} * ns", cycle_ns()))];
    if let Some(khz) = khz(machine) {
        told.push(("claimed_cycle", format!("{} * ns", 1e6 / khz)));
    }
    let modules = machine.devices.memory_modules.known();
    let first = modules.and_then(|modules| modules.first());
    if let Some(rate) = first.and_then(|module| module.mega_transfers) {
        told.push(("memory_transfer", format!("{} * ns", 1e3 / f64::from(rate))));
        let modules = modules.map_or(0, Vec::len);
        told.push(("memory_modules", modules.to_string()));
    }
    let caches = machine.topology.caches.iter();
    let caches = caches.filter(|cache| !cache.kind.eq_ignore_ascii_case("instruction"));
    let caches: Vec<&Cache> = caches.collect();
    if !caches.is_empty() {
        told.extend(LOADS.map(|(name, bytes)| (name, load(&caches, bytes).to_owned())));
    }
    let rates = machine.devices.interfaces.iter();
    let rates = rates.filter_map(|interface| interface.megabits.known().copied());
    if let Some(megabits) = rates.max().filter(|rate| *rate > 0) {
        told.push(("wire", format!("{} * GB_per_s", megabits as f64 / 8e3)));
    }
    told
}

/// Returns what a load takes of a working set: from the first of the caches that claims to hold it.
fn load(caches: &[&Cache], bytes: u64) -> &'static str {
    let holding = caches.iter().filter(|cache| cache.size_bytes >= bytes);
    match holding.map(|cache| cache.level).min() {
        Some(1) => "l1_load",
        Some(2) => "l2_load",
        Some(_) => "l3_load",
        None => "memory_load",
    }
}

/// Returns the frequency of the core's clock that the machine claims, in kHz: the highest one it
/// can have, else the one it had when it was described.
pub(super) fn khz(machine: &Machine) -> Option<f64> {
    let frequency = machine.power.frequency.known();
    let highest = frequency
        .and_then(|groups| groups.first())
        .and_then(|group| group.hardware_maximum_khz.known())
        .map(|khz| *khz as f64);
    let khz = highest.or_else(|| Some(machine.processor.mhz.known()? * 1e3));
    khz.filter(|khz| *khz > 0.0)
}

#[cfg(test)]
mod tests {
    use tare_host::Source;

    use super::*;

    fn read(own: &str) -> Result<Predictions, String> {
        Predictions::read(Some(own), &Machine::collect(&Source::system()))
    }

    #[test]
    fn every_primitive_has_a_prediction_with_its_reasoning() {
        let shipped = read("").unwrap();
        for id in shipped.ids() {
            assert!(
                tare_measured::primitives::linux::find(&id).is_some(),
                "{id}"
            );
        }
        for primitive in tare_measured::primitives::linux::all() {
            let all = shipped.of(primitive.id, "cost");
            assert!(!all.is_empty(), "{}", primitive.id);
            for expected in all {
                assert!(expected.value > 0.0 && !expected.why.is_empty());
            }
        }
    }

    #[test]
    fn what_a_file_says_begins_no_line_and_fills_no_screen() {
        let long = "1 * ".repeat(10_000);
        for formula in ["1 x\\nerror: forged", &long] {
            let file = format!("[predictions]\nfork = {{ is = \"{formula}\", why = \"x\" }}\n");
            let error = read(&file).unwrap_err();
            assert!(!error.contains('\n') && error.len() < 300, "{error}");
        }
    }

    #[test]
    fn a_quantity_is_evaluated_once_however_often_it_is_named() {
        let mut file = "[quantities]\nq0 = { is = \"ns\", why = \"x\" }\n".to_owned();
        for level in 1..DEEPEST {
            let of = vec![format!("q{}", level - 1); 1_000].join(" / ");
            file += &format!("q{level} = {{ is = \"{of}\", why = \"x\" }}\n");
        }
        let last = DEEPEST - 1;
        file += &format!("[predictions]\nfork = {{ is = \"q{last}\", why = \"x\" }}\n");
        let of = read(&file).unwrap().of("fork", "cost");
        assert_eq!(of[0].value, 1.0);
    }

    #[test]
    fn the_claimed_caches_decide_what_a_load_takes() {
        let cache = |level, size_bytes| Cache {
            level,
            kind: "Unified".to_owned(),
            size_bytes,
            line_bytes: None,
            shared_by: Vec::new(),
        };
        let all = [cache(1, 48 << 10), cache(2, 4 << 20), cache(3, 384 << 20)];
        let all: Vec<&Cache> = all.iter().collect();
        let of = |caches: &[&Cache]| LOADS.map(|(_, bytes)| load(caches, bytes));
        assert_eq!(of(&all), ["l1_load", "l2_load", "l2_load", "l3_load"]);
        assert_eq!(of(&all[..2])[3], "memory_load");
        for (name, _) in LOADS {
            assert!(read("").unwrap().named(name, 0).unwrap() > 0.0);
        }
    }

    #[test]
    fn a_file_of_ones_own_replaces_lines_and_keeps_others() {
        let own = "[quantities]\ncycle = { is = '0.5 * ns', why = 'my clock' }\n\
                   [predictions]\nloop = { is = '4 * cycle + 1 * ns / 2', why = 'slow' }\n\
                   'fork memory=64M' = { is = '3 * ms', why = 'copied' }\n";
        let own = read(own).unwrap();
        let expected = own.of("loop", "cost");
        assert_eq!((expected.len(), expected[0].value), (1, 2.5));
        assert_eq!(expected[0].why, "slow");
        let big = own.of("fork", "cost");
        let big = big
            .iter()
            .find(|one| one.labels.get("memory") == Some("64M"));
        assert_eq!(big.unwrap().value, 3e6);
        assert!(!own.of("getppid", "cost").is_empty());
        let read = own.of("bandwidth-read", BANDWIDTH);
        assert!(read[0].measure == BANDWIDTH && read[0].value > 1e9);
        assert_eq!(own.cycle().unwrap().value, 0.5);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told() {
        let of = |is: &str| {
            read(&format!(
                "[predictions]\nloop = {{ is = '{is}', why = '' }}"
            ))
            .unwrap_err()
        };
        for (is, told) in [
            ("", "a number or a name is missing at the end"),
            ("2 *", "a number or a name is missing at the end"),
            ("2 ns", "'2 ns': unknown 'ns'"),
            ("2 * parsec", "there is no quantity and no unit 'parsec'"),
            ("0 * ns", "'0 * ns' is not a number above 0"),
            ("1 / 0", "'1 / 0' is not a number above 0"),
            ("1 - 2", "'1 - 2' is not a number above 0"),
        ] {
            assert_eq!(of(is), format!("the prediction of 'loop': {told}"));
        }
        let own = "[quantities]\ncycle = { is = 'cycle + 1', why = '' }";
        assert!(read(own).unwrap_err().contains("is made of itself"));
        assert!(read("[prediction]").unwrap_err().contains("prediction"));
        assert!(
            read("[predictions]\n'loop fast' = { is = '1', why = '' }")
                .unwrap_err()
                .contains("'fast' is not a label")
        );
    }
}
