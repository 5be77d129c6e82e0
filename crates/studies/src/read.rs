//! From the text of a file to a study.
//!
//! Both variants are read from one document: the shorter one looks first into the `[quick]` tables.
//! A matrix that can't be is found here too, while it is still known where each word stands.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use tare_experiments::{catalogue, experiments, find};
use tare_lab::parameter::{Parameter, Takes, Value, Values};
use tare_lab::units;
use tare_results::model::{Schedule, SettingPlan};
use tare_results::target::TargetSpec;
use tare_targets::process;
use toml::de::{DeTable, DeValue};

use crate::error::{Problems, StudyError};
use crate::exclude::Exclusion;
use crate::keys;
use crate::matrix;
use crate::problem::{Source, suggestion};
use crate::study::{Part, Study, Variant};
use crate::value::{Item, Layers, Reader};
use crate::words::{cell_limit, label, load, target, word};

/// The greatest number of runs that a study can ask for: all cells of a run are fewer.
const MOST_RUNS: u64 = tare_lab::plan::MOST_CELLS;
/// The greatest whole number in a TOML file, which counts with a sign.
const MOST: u64 = i64::MAX as u64;

/// Reads a study; both its variants are checked.
pub(crate) fn study(file: &str, text: &str, variant: Variant) -> Result<Study, StudyError> {
    let source = Source { file, text };
    let document = DeTable::parse(text).map_err(|error| {
        let place = error.span().unwrap_or(0..0);
        let problem = source.problem(place, error.message());
        StudyError::Wrong(Problems(vec![problem]))
    })?;
    let mut reader = Reader::new(source);
    let table = document.get_ref();
    let full = read(&mut reader, table, Variant::Full);
    let has_quick = has_quick(table);
    let quick = has_quick.then(|| read(&mut reader, table, Variant::Quick));
    let problems = reader.problems();
    if !problems.is_empty() {
        return Err(StudyError::Wrong(Problems(problems)));
    }
    match (variant, quick) {
        (Variant::Full, _) => Ok(full),
        (Variant::Quick, Some(quick)) => Ok(quick),
        (Variant::Quick, None) => Err(StudyError::NoQuick { name: full.name }),
    }
}

fn has_quick(table: &DeTable<'_>) -> bool {
    let experiments = table.get("experiment").map(|item| item.get_ref());
    let tables = experiments.and_then(|experiments| experiments.as_array());
    table.contains_key("quick")
        || tables.is_some_and(|tables| {
            tables.iter().any(|item| {
                let table = item.get_ref().as_table();
                table.is_some_and(|table| table.contains_key("quick"))
            })
        })
}

/// Reads one variant. The result is of use only if nothing was wrong.
fn read<'a>(reader: &mut Reader<'a>, table: &'a DeTable<'a>, variant: Variant) -> Study {
    let layers = layers(reader, table, keys::STUDY, "a study", variant);
    let common = Common::read(reader, layers);
    let name = name(reader, layers);
    let mut study = Study {
        name,
        title: layers.get("title").and_then(|item| word(reader, item)),
        reproduces: reproduces(reader, layers),
        variant,
        seed: number(reader, layers, "seed", 0, MOST),
        cpu: number(reader, layers, "cpu", 0, u32::MAX.into()),
        settings: settings(reader, layers),
        start_engine: layers.get("start-engine").is_some(),
        parts: Vec::new(),
        exclusions: Vec::new(),
        text: reader.whole_text().to_owned(),
    };
    if let Some(item) = layers.get("start-engine")
        && !matches!(item.get_ref(), DeValue::Boolean(true))
    {
        reader.mistyped(item, "true");
    }
    if let Some(item) = layers.get("order") {
        let order = reader.text(item, "\"interleaved\"");
        if order.is_some_and(|order| order != "interleaved") {
            const ONLY: &str = "the order can only be \"interleaved\": if all runs of one \
                                combination came first, a drift of the machine would look like a \
                                difference";
            reader.wrong(item.span(), ONLY);
        }
    }
    match layers.get("experiment") {
        Some(item) => {
            for (place, table) in reader.tables(item, "tables [[experiment]]") {
                study
                    .parts
                    .extend(part(reader, &common, place, table, variant));
            }
        }
        None => reader.wrong(
            0..0,
            "there is no [[experiment]] table, so nothing would be measured",
        ),
    }
    refuse_conditions(reader, layers, &study.parts);
    let mut places = Vec::new();
    if let Some(item) = layers.get("exclude") {
        for (place, table) in reader.tables(item, "tables [[exclude]]") {
            study.exclusions.push(exclusion(reader, &place, table));
            places.push(place);
        }
    }
    if !reader.failed() {
        matrix::check(reader, table, &study, &places);
    }
    study
}

/// Refuses conditions that no experiment of a study can be measured under.
fn refuse_conditions<'a>(reader: &mut Reader<'a>, layers: Layers<'a>, parts: &[Part]) {
    let Some((first, others)) = parts.split_first() else {
        return;
    };
    for (name, why) in first.experiment.refuses() {
        let refuses = |part: &Part| part.experiment.refuses().iter().any(|(key, _)| key == name);
        if let Some(item) = layers.get(name).filter(|_| others.iter().all(refuses)) {
            let kind = first.experiment.name();
            reader.wrong(item.span(), format!("{kind} does not take '{name}': {why}"));
        }
    }
}

/// Reads the whole number under a key, if there is one.
fn number<T: TryFrom<u64>>(
    reader: &mut Reader<'_>,
    layers: Layers<'_>,
    key: &str,
    least: u64,
    most: u64,
) -> Option<T> {
    let number = reader.number(layers.get(key)?, least, most)?;
    T::try_from(number).ok()
}

/// Puts the table of the shorter variant before the other, and notes keys that neither can have.
fn layers<'a>(
    reader: &mut Reader<'a>,
    table: &'a DeTable<'a>,
    known: &[&str],
    what: &str,
    variant: Variant,
) -> Layers<'a> {
    unknown_keys(reader, table, known.iter().copied(), what);
    let over = table
        .get("quick")
        .and_then(|item| reader.table(item, "a table"));
    if let Some(over) = over {
        let may = known.iter().filter(|key| !keys::FULL_ONLY.contains(key));
        unknown_keys(reader, over, may.copied(), "a [quick] table");
    }
    Layers {
        over: over.filter(|_| variant == Variant::Quick),
        base: table,
    }
}

fn unknown_keys<'k>(
    reader: &mut Reader<'_>,
    table: &DeTable<'_>,
    known: impl Iterator<Item = &'k str> + Clone,
    what: &str,
) {
    for (key, _) in table.iter() {
        let name: &str = key.get_ref();
        if !known.clone().any(|known| known == name) {
            let hint = suggestion(name, known.clone());
            reader.wrong(key.span(), format!("{what} has no key '{name}'{hint}"));
        }
    }
}

/// What experiments take over from the study.
struct Common {
    targets: Option<Vec<TargetSpec>>,
    loads: Option<Loads>,
    runs: Option<u32>,
    cell_limit: Option<Duration>,
}

/// A list of loads, and where one stands for the second time: as a phase it may.
type Loads = (Vec<Schedule>, Option<Range<usize>>);

impl Common {
    fn read<'a>(reader: &mut Reader<'a>, layers: Layers<'a>) -> Self {
        let (targets, loads) = (layers.get("targets"), layers.get("loads"));
        let limit = layers.get("cell-limit");
        Self {
            targets: targets.and_then(|item| reader.list(item, target)),
            loads: loads.and_then(|item| reader.sequence(item, load)),
            runs: number(reader, layers, "runs", 1, MOST_RUNS),
            cell_limit: limit.and_then(|item| cell_limit(reader, item)),
        }
    }
}

/// Reads one `[[experiment]]`.
fn part<'a>(
    reader: &mut Reader<'a>,
    common: &Common,
    place: Range<usize>,
    table: &'a DeTable<'a>,
    variant: Variant,
) -> Option<Part> {
    let Some(item) = table.get("kind") else {
        let names: Vec<&str> = experiments().iter().map(|known| known.name()).collect();
        let known = names.join(", ");
        let text = format!("this experiment has no kind; write kind = \"…\" (known: {known})");
        reader.wrong(place, text);
        return None;
    };
    let kind = reader.text(item, "the name of an experiment")?;
    let Some(experiment) = find(kind) else {
        let hint = suggestion(kind, experiments().iter().map(|known| known.name()));
        reader.wrong(
            item.span(),
            format!("there is no experiment '{kind}'{hint}"),
        );
        return None;
    };
    let mut known = keys::EXPERIMENT.to_vec();
    known.extend(
        experiment
            .parameters()
            .iter()
            .map(|parameter| parameter.name),
    );
    let what = format!("an experiment of kind {kind}");
    let layers = layers(reader, table, &known, &what, variant);
    let own = Common::read(reader, layers);
    let mut values = Values::default();
    for parameter in experiment.parameters() {
        match (layers.get(parameter.name), parameter.command_only) {
            (Some(item), None) => self::values(reader, parameter, item, &mut values),
            (Some(item), Some(why)) => {
                let name = parameter.name;
                let text = format!("'{name}' is only for the command line: {why}");
                reader.wrong(item.span(), text);
            }
            (None, _) => {}
        }
    }
    let targets = own.targets.or_else(|| common.targets.clone());
    let loads = own.loads.or_else(|| common.loads.clone());
    let runs = own.runs.or(common.runs);
    let mut all = experiment.parameters().iter();
    let fixed = all.find(|parameter| parameter.fixes_runs && values.has(parameter.name));
    if let (Some(Parameter { name, .. }), Some(item)) = (fixed, layers.get("runs")) {
        let text = format!("'{name}' decides how many runs there are: give one of the two");
        reader.wrong(item.span(), text);
    }
    let runs = runs.filter(|_| fixed.is_none());
    let given = [
        ("targets", targets.is_some()),
        ("loads", loads.is_some()),
        ("runs", runs.is_some()),
    ];
    let given = given.into_iter().filter(|(_, is_given)| *is_given);
    let given = given.map(|(name, _)| name).collect();
    let (loads, again) = loads.unwrap_or_else(|| (vec![Schedule::idle()], None));
    if !experiment.has_phases(&values) {
        reader.refuse_again(again);
    }
    Some(Part {
        experiment,
        targets: targets.unwrap_or_else(|| vec![process::spec()]),
        loads,
        runs: runs.unwrap_or_else(|| experiment.default_runs(&values)),
        cell_limit: own.cell_limit.or(common.cell_limit),
        values,
        given,
        place,
    })
}

/// Reads a parameter as the experiment describes it.
fn values<'a>(
    reader: &mut Reader<'a>,
    parameter: &Parameter,
    item: &'a Item<'a>,
    values: &mut Values,
) {
    if !parameter.many && item.get_ref().is_array() {
        let name = parameter.name;
        let text = format!(
            "'{name}' takes one value; to measure with several, write several [[experiment]] tables"
        );
        return reader.wrong(item.span(), text);
    }
    if let Some(read) = reader.list(item, |reader, item| value(reader, parameter, item)) {
        values.give(parameter.name, read);
    }
}

fn value<'a>(reader: &mut Reader<'a>, parameter: &Parameter, item: &'a Item<'a>) -> Option<Value> {
    let read = match (parameter.takes, item.get_ref()) {
        (Takes::Number { .. }, DeValue::Integer(integer)) => {
            let number = u64::from_str_radix(integer.as_str(), integer.radix());
            match number {
                Ok(number) => parameter.check(number),
                Err(_) => Err(format!("want {}, not {integer}", parameter.takes)),
            }
        }
        (Takes::Flag, DeValue::Boolean(true)) => Ok(Value::Number(1)),
        (Takes::Number { .. } | Takes::Flag, _) | (_, DeValue::Integer(_)) => {
            reader.mistyped(item, &parameter.takes.to_string());
            return None;
        }
        _ => parameter.read(reader.text(item, &parameter.takes.to_string())?),
    };
    read.map_err(|problem| reader.wrong(item.span(), problem))
        .ok()
}

fn exclusion<'a>(
    reader: &mut Reader<'a>,
    place: &Range<usize>,
    table: &'a DeTable<'a>,
) -> Exclusion {
    let parameters = experiments().iter().flat_map(|known| known.parameters());
    let parameters = parameters.filter(|parameter| parameter.many);
    let names = || parameters.clone().map(|parameter| parameter.name);
    let known = keys::EXCLUDE.iter().copied().chain(names());
    unknown_keys(reader, table, known, "an exclusion");
    if table.is_empty() {
        let text = "this exclusion names nothing, so it would leave everything out";
        reader.wrong(place.clone(), text);
    }
    let targets = table.get("target");
    let targets = targets.and_then(|item| reader.list(item, target));
    let loads = table.get("load");
    let loads = loads.and_then(|item| reader.list(item, load));
    let mut list = |name: &str, read: fn(&mut Reader<'a>, &'a Item<'a>) -> Option<String>| {
        let item = table.get(name)?;
        reader.list(item, read)
    };
    let kinds = list("kind", word);
    let labels = names().filter_map(|name| Some((name.to_owned(), list(name, label)?)));
    let labels = labels.collect();
    Exclusion {
        kinds: kinds.unwrap_or_default(),
        targets: targets.unwrap_or_default(),
        loads: loads.unwrap_or_default(),
        labels,
    }
}

fn name<'a>(reader: &mut Reader<'a>, layers: Layers<'a>) -> String {
    const WANTED: &str = "up to 60 letters, digits, points, hyphens and underscores, not beginning \
                          with a point";
    let fits = |name: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        !name.is_empty() && name.len() <= 60 && !name.starts_with('.') && name.chars().all(is_plain)
    };
    let Some(item) = layers.get("name") else {
        let stem = Path::new(reader.file()).file_stem();
        let stem = stem
            .and_then(|stem| stem.to_str())
            .filter(|stem| fits(stem));
        return stem.unwrap_or("study").to_owned();
    };
    let name = reader.text(item, WANTED).unwrap_or_default();
    if !fits(name) && !name.is_empty() {
        let text = format!("a study can't be called so, because its runs are: want {WANTED}");
        reader.wrong(item.span(), text);
    }
    name.to_owned()
}

fn reproduces<'a>(reader: &mut Reader<'a>, layers: Layers<'a>) -> Option<String> {
    let item = layers.get("reproduces")?;
    let name = reader.text(item, "the name of a published study")?;
    if catalogue().study(name).is_none() {
        let known = catalogue().studies.iter().map(|study| study.name);
        let hint = suggestion(name, known);
        reader.wrong(
            item.span(),
            format!("there is no published study '{name}' here{hint}"),
        );
        return None;
    }
    Some(name.to_owned())
}

fn settings<'a>(reader: &mut Reader<'a>, layers: Layers<'a>) -> Vec<SettingPlan> {
    const WANTED: &str = "a table of texts, such as { \"vm.stat_interval\" = \"120\" }";
    let Some(item) = layers.get("settings") else {
        return Vec::new();
    };
    let Some(table) = reader.table(item, WANTED) else {
        return Vec::new();
    };
    let mut settings = Vec::new();
    for (name, item) in table.iter() {
        let Some(value) = reader.text(item, "the setting's value as a text") else {
            continue;
        };
        if name.get_ref().is_empty() || value.is_empty() {
            reader.wrong(item.span(), "a setting needs a name and a value");
            continue;
        }
        settings.push(SettingPlan {
            path: units::setting_file(name.get_ref()),
            value: value.to_owned(),
        });
    }
    settings
}
