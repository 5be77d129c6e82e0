//! What each instance does once it is ready.

use std::ops::RangeInclusive;

use tare_measured::start::{MAX_LIMIT, MIN_LIMIT};
use tare_results::work::Work;

use super::NAME;

/// The bounds below which primes can be counted.
const LIMITS: RangeInclusive<u64> = MIN_LIMIT as u64..=MAX_LIMIT as u64;

/// What an instance does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// It ends.
    Hello,
    /// It counts the primes below a number.
    Prime(u64),
    /// It scales a picture down.
    Thumbnail,
    /// It is a command of the user's.
    Command {
        /// As it was typed.
        text: String,
        /// The command line.
        words: Vec<String>,
    },
}

impl Job {
    /// Reads it as it is typed: `hello`, `prime:1000`, `thumbnail`, `command:redis-server --version`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.split_once(':') {
            None if text == "hello" => Some(Self::Hello),
            None if text == "thumbnail" => Some(Self::Thumbnail),
            Some(("prime", limit)) => {
                let limit = limit.parse().ok()?;
                LIMITS.contains(&limit).then_some(Self::Prime(limit))
            }
            Some(("command", command)) => {
                let words = shlex::split(command)?;
                let text = command.to_owned();
                let is_command = words.first().is_some_and(|first| !first.is_empty());
                is_command.then_some(Self::Command { text, words })
            }
            _ => None,
        }
    }

    /// Names it in the report: `prime 1000`.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Hello => "hello".to_owned(),
            Self::Prime(limit) => format!("prime {limit}"),
            Self::Thumbnail => "thumbnail".to_owned(),
            Self::Command { text, .. } => format!("command {text}"),
        }
    }

    /// Writes it as it is typed; None for the default, which is in no label.
    pub(super) fn label(&self) -> Option<String> {
        match self {
            Self::Hello => None,
            Self::Prime(limit) => Some(format!("prime:{limit}")),
            Self::Thumbnail => Some("thumbnail".to_owned()),
            Self::Command { text, .. } => Some(format!("command:{text}")),
        }
    }

    /// Returns the command line that is started in place of the measured code.
    pub(super) fn command(&self) -> Option<Vec<String>> {
        match self {
            Self::Command { words, .. } => Some(words.clone()),
            Self::Hello | Self::Prime(_) | Self::Thumbnail => None,
        }
    }

    /// Returns what the measured code is asked to do; None if a command takes its place.
    pub(super) fn work(&self) -> Option<Work> {
        let words = match self {
            Self::Hello => "work=hello".to_owned(),
            Self::Prime(limit) => format!("work=prime limit={limit}"),
            Self::Thumbnail => "work=thumbnail".to_owned(),
            Self::Command { .. } => return None,
        };
        Some(Work::new(NAME, &words))
    }

    /// Returns the same with the wish that the program tells of itself.
    pub(super) fn report(&self) -> Option<Work> {
        let mut work = self.work()?;
        work.words.push_str(" report=yes");
        Some(work)
    }
}

/// Makes the work of words that the agent takes: `workload=start work=prime limit=1000 report=yes`.
pub(super) fn of_words(words: &str) -> Option<Work> {
    let (mut id, mut work, mut limit, mut report) = (None, None, None, None);
    for word in words.split_whitespace() {
        let (key, value) = word.split_once('=')?;
        let slot = match key {
            "workload" => &mut id,
            "work" => &mut work,
            "limit" => &mut limit,
            "report" => &mut report,
            _ => return None,
        };
        if slot.replace(value).is_some() {
            return None;
        }
    }
    let typed = match (work?, limit) {
        ("prime", Some(limit)) => format!("prime:{limit}"),
        (work, None) if !work.contains(':') => work.to_owned(),
        _ => return None,
    };
    let job = Job::parse(&typed)?;
    match (id?, report) {
        (NAME, None) => job.work(),
        (NAME, Some("yes")) => job.report(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_read_and_become_words() {
        let words = |text: &str| {
            Job::parse(text)
                .and_then(|job| job.work())
                .map(|work| work.words)
        };
        assert_eq!(words("hello").as_deref(), Some("work=hello"));
        assert_eq!(
            words("prime:1000").as_deref(),
            Some("work=prime limit=1000")
        );
        assert_eq!(words("thumbnail").as_deref(), Some("work=thumbnail"));
        let command = Job::parse("command:sh -c 'echo ready; :'").unwrap();
        assert_eq!(command.command().unwrap(), ["sh", "-c", "echo ready; :"]);
        assert_eq!((command.work(), command.report()), (None, None));
        for wrong in [
            "",
            "hullo",
            "prime",
            "prime:1",
            "prime:x",
            "command:",
            "command:''",
            "command:'",
            "hello:1",
        ] {
            assert_eq!(Job::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn words_are_read_back() {
        for words in [
            "workload=start work=hello",
            "workload=start work=prime limit=1000 report=yes",
            "workload=start work=thumbnail report=yes",
        ] {
            assert_eq!(of_words(words).unwrap().to_string(), words);
        }
        for wrong in [
            "",
            "work=hello",
            "workload=prime work=hello",
            "workload=start",
            "workload=start work=prime",
            "workload=start work=hello limit=9",
            "workload=start work=hello report=no",
            "workload=start work=hello work=hello",
            "workload=start work=command:ls",
            "workload=start work=hello cpu=1",
            "hello",
        ] {
            assert_eq!(of_words(wrong), None, "{wrong}");
        }
    }
}
