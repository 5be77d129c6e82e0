//! `stress-ng:ARGS`: any of the stressors of stress-ng.

use std::fs;
use std::path::PathBuf;

use super::{Kind, PLAIN, Setup};
use crate::error::DriverError;
use crate::task::{Ended, Meter, Task};
use crate::tools::Tool;

pub(super) const STRESS_NG: Kind = Kind {
    name: "stress-ng",
    usage: "stress-ng:ARGS",
    summary: "stress-ng with these arguments, in a loop",
    tools: &[Tool::new("stress-ng", "stress-ng")],
    example: Some("stress-ng:--cpu 2"),
    refuses,
    writes: |_| None,
    tasks,
    ..PLAIN
};

/// Refuses options that name files; as with getopt_long(3), a long option may be abbreviated, and
/// one that is given in full is not the abbreviation of another.
fn refuses(word: &str) -> Option<&'static str> {
    const OURS: [&str; 4] = ["--yaml", "--temp-path", "--log-file", "--job"];
    // Plugins and modules are code, and a device may do anything.
    const OTHERS: [&str; 5] = [
        "--plugin-so",
        "--module-name",
        "--dev-file",
        "--fstat-dir",
        "--gpu-devnode",
    ];
    const STRESSORS: [&str; 5] = ["--plugin", "--module", "--dev", "--fstat", "--gpu"];
    let option = word.split('=').next().unwrap_or_default();
    let is_long = option.len() > 2 && !STRESSORS.contains(&option);
    let is_any = |of: &[&str]| is_long && of.iter().any(|long| long.starts_with(option));
    let is_short = !word.starts_with("--") && word.starts_with('-') && word.contains(['Y', 'j']);
    if is_short || is_any(&OURS) {
        return Some("tare itself says where figures and files go");
    }
    is_any(&OTHERS).then_some("it names files outside of the run; use command:stress-ng …")
}

fn tasks(setup: &mut Setup, words: &[String]) -> Result<Vec<Task>, DriverError> {
    let figures = setup.dir.join("stress-ng.yaml");
    let ours = [
        "--metrics-brief".into(),
        "--yaml".into(),
        figures.clone().into_os_string(),
        "--temp-path".into(),
        setup.dir.clone().into_os_string(),
    ];
    let done = Vec::new();
    let task = Task::again("stress-ng", setup.cpus, StressNgMeter { figures, done });
    Ok(vec![task.args(words).args(ours)])
}

/// A meter that reads the figures that stress-ng prints at its end, also when it is interrupted.
#[derive(Debug)]
struct StressNgMeter {
    figures: PathBuf,
    /// Bogus operations of each stressor.
    done: Vec<(String, u64)>,
}

impl Meter for StressNgMeter {
    fn ended(&mut self, _ended: &Ended) -> Result<(), String> {
        let text = fs::read_to_string(&self.figures).unwrap_or_default();
        let _ = fs::remove_file(&self.figures);
        let found = operations(&text);
        if found.is_empty() {
            return Err("left no figures: are its arguments those of a stressor?".to_owned());
        }
        for (stressor, operations) in found {
            match self.done.iter_mut().find(|(known, _)| *known == stressor) {
                Some((_, sum)) => *sum += operations,
                None => self.done.push((stressor, operations)),
            }
        }
        Ok(())
    }

    fn totals(&self) -> Vec<(String, u64)> {
        let named = |(stressor, sum): &(String, u64)| (format!("bogo ops of {stressor}"), *sum);
        self.done.iter().map(named).collect()
    }
}

/// Finds `bogo-ops: N` after each `- stressor: NAME`.
fn operations(text: &str) -> Vec<(String, u64)> {
    let mut found: Vec<(String, u64)> = Vec::new();
    let mut stressor = None;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("- stressor: ") {
            stressor = Some(name.to_owned());
        } else if let Some(number) = line.strip_prefix("bogo-ops: ")
            && let Ok(number) = number.parse()
        {
            found.extend(stressor.take().map(|stressor| (stressor, number)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_option_names_a_file_however_it_is_written() {
        let bad = "--yaml -Y -Yx -vYx --temp-path=/x --temp --log-file --log-fil --job -j -jx --jo \
                   --plugin-so --plugin-s=x.so --dev-file --dev-f --fstat-dir=/x --fstat-d \
                   --gpu-devnode=/dev/x --gpu- --module-name --module-name=/x.ko --module-n";
        for word in bad.split_whitespace() {
            assert!(refuses(word).is_some(), "{word}");
        }
        for word in
            "--cpu 2 -c 4 --timeout --jpeg --log-brief --vm-bytes=1G Yj -- --dev 1 --dev-ops=5 \
                     --fstat --gpu --gpu-xsize --plugin --module 1 --module-ops=5"
                .split_whitespace()
        {
            assert_eq!(refuses(word), None, "{word}");
        }
    }

    #[test]
    fn the_figures_of_each_stressor_are_found() {
        let text = "metrics:\n    - stressor: cpu\n      bogo-ops: 395\n      bogo-ops-per-second-real-time: 404.6\n\n    \
                    - stressor: hdd\n      bogo-ops: 4608\n";
        let found = operations(text);
        assert_eq!(found, [("cpu".to_owned(), 395), ("hdd".to_owned(), 4_608)]);
    }
}
