//! The arguments of an experiment: those that all experiments share, and an option for each of its
//! parameters.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use tare_experiments::{experiments, find, noise};
use tare_figures::gates::Gate;
use tare_lab::Experiment;
use tare_lab::parameter::{Parameter, Takes, Value, Values};
use tare_lab::units::{duration, setting_file};
use tare_loads::{Cpus, Load};
use tare_results::model::SettingPlan;

use super::top::TopArguments;
use crate::actions::{Action, On, When};

/// The request for an experiment.
#[derive(Debug)]
pub struct MeasureCommand {
    /// The experiment.
    pub experiment: &'static dyn Experiment,
    /// The values of its parameters.
    pub values: Values,
    /// Actions when a limit is exceeded, and at the end.
    pub actions: Vec<On>,
    /// The CPU to measure on, where the experiment has no parameter for it.
    pub cpu: CpuArgument,
    /// The arguments of `tare noise top`, if that was asked for.
    pub top: Option<TopArguments>,
    /// Whether only what can be chosen is listed.
    pub list: bool,
    /// The arguments of every experiment.
    pub arguments: MeasureArguments,
}

/// The option for the CPU.
#[derive(Debug, Default, Args)]
pub struct CpuArgument {
    /// CPU to measure on [default: an isolated one, else the quietest other than CPU 0]
    #[arg(long, value_name = "N", help_heading = "Target and load")]
    pub cpu: Option<u32>,
}

/// What every experiment takes.
#[derive(Debug, Args)]
pub struct MeasureArguments {
    /// Where to run; may be given several times. `tare targets` lists them [default: process]
    #[arg(long, value_name = "TARGET", help_heading = "Target and load")]
    pub target: Vec<String>,
    /// Background load to measure under; may be given several times: idle, dd, hackbench, du, tar,
    /// nc, ping, stress-ng:ARGS, command:WORDS, several at once as dd+hackbench [default: idle]
    #[arg(long, value_name = "LOAD", value_parser = load, help_heading = "Target and load")]
    pub load: Vec<Load>,
    /// CPUs that the loads run on: all, others (all but the measured one) or a list [default: all,
    /// as in landolfi-2018]
    #[arg(long, value_name = "CPUS", value_parser = load_cpus, requires = "load", help_heading = "Target and load")]
    pub load_cpus: Option<Cpus>,
    /// Change a kernel setting for the time of the run: vm.stat_interval=120, or a file below
    /// /proc/sys or /sys. May be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting, help_heading = "Target and load")]
    pub set: Vec<SettingPlan>,

    /// Runs of each combination
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub runs: Option<u32>,
    /// Seed of the random order within each block [default: random]
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub seed: Option<u64>,
    /// Time after which a cell counts as hung, such as 90s; applies separately to preparing it,
    /// measuring, and ending its load [default: 30 s and several times its estimate; under a load
    /// 300 s and more]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Run")]
    pub cell_limit: Option<Duration>,
    /// Continue a run; with --runs, add that many runs of each combination
    #[arg(long, value_name = "RUN", help_heading = "Run")]
    pub resume: Option<PathBuf>,
    /// How it is run.
    #[command(flatten)]
    pub options: RunOptions,
}

/// The arguments that conflict with `--resume`, besides the experiment's parameters.
const NOT_RESUMED: [&str; 9] = [
    "target",
    "load",
    "load_cpus",
    "set",
    "seed",
    "cell_limit",
    "cpu",
    "output",
    "start_engine",
];

/// The option that lists what can be chosen of an experiment.
const LIST: &str = "list";

/// How anything is run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub struct RunOptions {
    /// Folder of the run; must be new or empty [default: tare-runs/TIME-NAME]
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Start a private Docker engine for the cells that need one, if none runs, and stop it after
    /// them, since it would disturb all others
    #[arg(long)]
    pub start_engine: bool,
    /// Measure on a CPU that another run measures on. Both reports say so
    #[arg(long)]
    pub share_cpu: bool,
    /// Run the programs that a study, or the run to continue, names: commands, options of ssh
    #[arg(long)]
    pub trust: bool,
    /// Print the plan and its estimated duration, and run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Options for the result.
    #[command(flatten)]
    pub result: ResultOptions,
}

/// Options for the result of a run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct ResultOptions {
    /// End with exit code 3 if a figure is beyond a limit: 'lost > 2%', 'rate < 60/s',
    /// 'latency.p99.9{load=dd} > 50us'. May be given several times
    #[arg(long, value_name = "GATE")]
    pub fail_if: Vec<Gate>,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
    /// Print the verdict only: no progress, no tables
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,
}

impl Subcommand for MeasureCommand {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(experiments().iter().map(|entry| subcommand(*entry)))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        find(name).is_some()
    }
}

impl FromArgMatches for MeasureCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let found = matches.subcommand();
        let found = found.and_then(|(name, matches)| Some((find(name)?, matches)));
        let (experiment, matches) =
            found.ok_or_else(|| Error::new(ErrorKind::MissingSubcommand))?;
        let mut values = Values::default();
        let mut actions = Vec::new();
        for parameter in experiment.parameters() {
            let given = given(parameter, matches)?;
            if given.is_empty() {
                continue;
            }
            if let Takes::Action = parameter.takes {
                let all = matches.get_many::<String>(parameter.name);
                let all: Vec<&str> = all.into_iter().flatten().map(String::as_str).collect();
                let own = all.chunks(names_of(parameter).count());
                let own = own.map(|texts| on(parameter, texts));
                let own: Result<Vec<On>, String> = own.collect();
                actions.extend(own.map_err(|why| {
                    let why = format!("--{}: {why}", parameter.name);
                    Error::raw(ErrorKind::ValueValidation, why)
                })?);
            }
            values.give(parameter.name, given);
        }
        for (name, why) in experiment.refuses() {
            if matches.value_source(name) == Some(ValueSource::CommandLine) {
                let name = name.replace('_', "-");
                let why = format!("{} does not take --{name}: {why}", experiment.name());
                return Err(Error::raw(ErrorKind::ArgumentConflict, why));
            }
        }
        let cpu = match own_cpu(experiment) {
            true => CpuArgument::default(),
            false => CpuArgument::from_arg_matches(matches)?,
        };
        // The only command below an experiment.
        let top = matches.subcommand();
        let top = top.map(|(_, given)| TopArguments::from_arg_matches(given));
        Ok(Self {
            experiment,
            values,
            actions,
            cpu,
            top: top.transpose()?,
            list: experiment.listing().is_some() && matches.get_flag(LIST),
            arguments: MeasureArguments::from_arg_matches(matches)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns whether an experiment has its own option for CPUs.
fn own_cpu(experiment: &dyn Experiment) -> bool {
    let mut all = experiment.parameters().iter();
    all.any(|parameter| parameter.name == "cpu" || parameter.aliases.contains(&"cpu"))
}

/// Makes the command of an experiment.
fn subcommand(experiment: &'static dyn Experiment) -> Command {
    let about = format!("Measure {}", experiment.summary());
    let command = Command::new(experiment.name()).args(experiment.parameters().iter().map(option));
    let command = match own_cpu(experiment) {
        true => command,
        false => CpuArgument::augment_args(command),
    };
    let command = match experiment.name() == noise::NAME {
        true => command
            .subcommand(TopArguments::augment_args(Command::new("top")))
            .args_conflicts_with_subcommands(true),
        false => command,
    };
    let command = match experiment.listing() {
        Some(_) => command.arg(
            Arg::new(LIST)
                .long(LIST)
                .action(ArgAction::SetTrue)
                .help_heading("Output")
                .help("List what can be measured, and measure nothing"),
        ),
        None => command,
    };
    let own = experiment.parameters().iter();
    // Options that act at the command line belong to this invocation.
    let own = own.filter(|parameter| !matches!(parameter.takes, Takes::Action));
    let not_resumed = NOT_RESUMED
        .into_iter()
        .filter(|name| *name != "cpu" || !own_cpu(experiment));
    let not_resumed: Vec<&str> = not_resumed
        .chain(own.map(|parameter| parameter.name))
        .collect();
    let runs = experiment.default_runs(&Values::default());
    let fixed = experiment.parameters().iter();
    let fixed = fixed.filter(|parameter| parameter.fixes_runs);
    let fixed = fixed.map(|parameter| parameter.name);
    let refused = experiment.refuses().iter();
    let command = MeasureArguments::augment_args(command);
    refused
        .fold(command, |command, (name, _)| {
            command.mut_arg(name, |option| option.hide(true))
        })
        .long_about(format!("{about}\n\n{}", experiment.without_arguments()))
        .about(about)
        .mut_arg("resume", |resume| resume.conflicts_with_all(not_resumed))
        .mut_arg("runs", |option| {
            option
                .help(format!("Runs of each combination [default: {runs}]"))
                .conflicts_with_all(fixed)
        })
}

/// Makes the option of a parameter.
fn option(parameter: &'static Parameter) -> Arg {
    let several = match (parameter.many, parameter.takes) {
        (false, _) => "",
        (true, Takes::Action) => "; may be given several times",
        (true, _) => "; several, separated by commas, are all measured",
    };
    let default = match parameter.default {
        "" => String::new(),
        default => format!(" [default: {default}]"),
    };
    let option = Arg::new(parameter.name)
        .help_heading(parameter.heading)
        .help(format!("{}{several}{default}", parameter.meaning));
    let option = match parameter.positional {
        true => option,
        false => option
            .long(parameter.name)
            .visible_aliases(parameter.aliases),
    };
    let option = match parameter.short {
        Some(short) => option.short(short),
        None => option,
    };
    let option = match parameter.bare {
        Some(bare) => option.num_args(0..=1).default_missing_value(bare),
        None => option,
    };
    match parameter.takes {
        Takes::Flag => option.action(ArgAction::SetTrue),
        Takes::Action => option
            .action(ArgAction::Append)
            .num_args(names_of(parameter).count())
            .value_names(names_of(parameter)),
        _ if parameter.many => option
            .action(ArgAction::Append)
            .value_delimiter(',')
            .value_name(parameter.value)
            .value_parser(|text: &str| parameter.read(text)),
        _ => option
            .value_name(parameter.value)
            .value_parser(|text: &str| parameter.read(text)),
    }
}

/// Returns the names of the values that each use of a parameter takes.
fn names_of(parameter: &Parameter) -> impl Iterator<Item = &'static str> {
    parameter.value.split(' ')
}

/// Reads the values of one use of a parameter that takes an action, perhaps after its event.
fn on(parameter: &Parameter, texts: &[&str]) -> Result<On, String> {
    let (when, action) = match texts {
        [text, action] => (When::Above(noise::event(text)?), action),
        [action] if parameter.name == "on-end" => (When::End, action),
        // Beyond the limit of the plan.
        [action] => (When::Above(0), action),
        _ => return Err("want an event and an action".to_owned()),
    };
    let action = Action::parse(action)?;
    match (when, &action) {
        (When::End, Action::Report | Action::Continue) => {
            Err("want signal:NAME[,pid=PID] or shell:CMD".to_owned())
        }
        _ => Ok(On { when, action }),
    }
}

/// Returns what is given to a parameter.
fn given(parameter: &Parameter, matches: &ArgMatches) -> Result<Vec<Value>, Error> {
    let name = parameter.name;
    Ok(match parameter.takes {
        Takes::Flag if matches.get_flag(name) => vec![Value::Number(1)],
        Takes::Flag => Vec::new(),
        Takes::Action => matches
            .get_many::<String>(name)
            .into_iter()
            .flatten()
            .map(|text| Value::Text(text.clone()))
            .collect(),
        _ => {
            let given = matches.get_many::<Value>(name);
            let mut all: Vec<Value> = Vec::new();
            for value in given.into_iter().flatten() {
                if all.contains(value) {
                    let why = format!(
                        "--{name}: {} is given twice; use --runs for repetitions",
                        parameter.show(value)
                    );
                    return Err(Error::raw(ErrorKind::ValueValidation, why));
                }
                all.push(value.clone());
            }
            all
        }
    })
}

fn load(text: &str) -> Result<Load, String> {
    Load::parse(text).map_err(|error| error.to_string())
}

fn load_cpus(text: &str) -> Result<Cpus, String> {
    Cpus::parse(text).ok_or_else(|| "want all, others or a list such as 0-2,5".to_owned())
}

/// Reads `NAME=VALUE`, where NAME is a file or, as for sysctl, its path below /proc/sys with dots.
fn setting(text: &str) -> Result<SettingPlan, String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .ok_or("want NAME=VALUE")?;
    Ok(SettingPlan {
        path: setting_file(name),
        value: value.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_files_or_sysctl_names() {
        let path = |text| setting(text).map(|setting| setting.path);
        assert_eq!(
            path("vm.stat_interval=120").as_deref(),
            Ok("/proc/sys/vm/stat_interval")
        );
        assert_eq!(path("/sys/a=b=c").as_deref(), Ok("/sys/a"));
        for wrong in ["", "=", "a=", "=1", "vm.stat_interval"] {
            assert!(setting(wrong).is_err(), "{wrong}");
        }
    }
}
