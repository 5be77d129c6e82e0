//! The driver's arguments.

use std::path::PathBuf;
use std::time::Duration;

use tare_wire::cpus::Cpus as Measured;

use super::begin::Begin;
use crate::cpus::Cpus;
use crate::schedule::Schedule;

/// The default size of the scratch folder in bytes: room for the three files of 1 GiB of the
/// study's DD phase, and for a tree.
pub const DEFAULT_LIMIT: u64 = 4 << 30;

/// The description of the words, for the help.
pub const USAGE: &str = "\
Runs a load until SIGTERM and prints wire records of its work. Started by tare.

Usage: tare-agent load LOAD dir=DIR [WORD...]
       tare-agent load LENGTH:LOAD;LOAD... dir=DIR [WORD...]

Loads:
  idle, dd, hackbench, du, tar, nc, ping, stress-ng:ARGS, command:WORDS; join several
  with +, and put cpus=all:, cpus=others: or cpus=LIST: before them

Phases:
  25s:idle;ping;dd runs loads one after the other, each for this long; a ; inside a load is
  written twice

Words:
  dir=DIR       folder for the load's files; they are removed at the end
  limit=BYTES   limit on written bytes (4294967296)
  cpus=CPUS     all, others or a list, instead of the load's
  except=LIST   the measured CPUs, which others excludes
  seconds=N     stop after this many seconds at full load; not with phases
  begin=WHEN    beginning of the first phase: now, NS (CLOCK_MONOTONIC), or stdin: the time in a
                line 'origin NS' (now); in this case wait for SIGTERM after the last phase
  tree=DIR      a tree of files for tar and du, instead of a generated one
";

/// The values of the words.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) schedule: Schedule,
    pub(super) dir: PathBuf,
    pub(super) limit: u64,
    pub(super) cpus: Option<Cpus>,
    pub(super) except: Measured,
    pub(super) seconds: Option<Duration>,
    /// Beginning of the first phase of a schedule.
    pub(super) begin: Begin,
    pub(super) tree: Option<PathBuf>,
}

impl Options {
    pub(super) fn parse(words: &[String]) -> Result<Self, String> {
        let (schedule, words) = words.split_first().ok_or("want a load")?;
        let schedule = Schedule::parse(schedule).map_err(|error| error.to_string())?;
        let mut dir = None;
        let mut options = Self {
            schedule,
            dir: PathBuf::new(),
            limit: DEFAULT_LIMIT,
            cpus: None,
            except: Measured::default(),
            seconds: None,
            begin: Begin::default(),
            tree: None,
        };
        for word in words {
            let bad = || format!("invalid word '{word}'");
            let (key, value) = word.split_once('=').ok_or_else(bad)?;
            match key {
                "dir" => dir = Some(PathBuf::from(value)),
                "limit" => options.limit = value.parse().map_err(|_| bad())?,
                "cpus" => options.cpus = Some(Cpus::parse(value).ok_or_else(bad)?),
                "except" => options.except = Measured::parse(value).ok_or_else(bad)?,
                "seconds" => {
                    let seconds = value.parse().map_err(|_| bad())?;
                    let time = Duration::try_from_secs_f64(seconds).map_err(|_| bad())?;
                    options.seconds = Some(time);
                }
                "begin" => options.begin = Begin::parse(value).ok_or_else(bad)?,
                "tree" => options.tree = Some(PathBuf::from(value)),
                _ => return Err(bad()),
            }
        }
        options.dir = dir.ok_or("want dir=DIR, a folder for the load's files")?;
        if options.schedule.phase_ns().is_some() && options.seconds.is_some() {
            return Err("phases end by their length: leave seconds= out".to_owned());
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options, String> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn words_come_in_any_order() {
        let options =
            parse("dd+ping seconds=1.5 cpus=0 dir=/s limit=7 except=1-2 tree=/t").unwrap();
        assert_eq!(options.schedule.to_string(), "dd+ping");
        assert_eq!(options.limit, 7);
        assert_eq!(options.except, Measured::parse("1,2").unwrap());
        assert_eq!(options.seconds, Some(Duration::from_millis(1_500)));
        assert_eq!(
            (options.dir, options.tree),
            ("/s".into(), Some("/t".into()))
        );
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        for (text, message) in [
            ("dd", "want dir=DIR, a folder for the load's files"),
            ("dd dir=/s limit=x", "invalid word 'limit=x'"),
            ("dd dir=/s seconds=-1", "invalid word 'seconds=-1'"),
            ("dd dir=/s fast", "invalid word 'fast'"),
            ("1s:dd;idle dir=/s begin=soon", "invalid word 'begin=soon'"),
            (
                "1s:dd;idle dir=/s seconds=2",
                "phases end by their length: leave seconds= out",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), message);
        }
        assert!(
            parse("nothing dir=/s")
                .unwrap_err()
                .contains("there is no load")
        );
    }
}
