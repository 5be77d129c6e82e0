//! The work of each instance once it is ready.

use std::ops::RangeInclusive;

use tare_measured::start::{MAX_LIMIT, MIN_LIMIT};
use tare_results::work::Work;

use super::NAME;

/// The bounds below which primes can be counted.
const LIMITS: RangeInclusive<u64> = MIN_LIMIT as u64..=MAX_LIMIT as u64;
/// The default, which is in no label.
const HELLO: &str = "hello";

/// The work of an instance, as it is typed: `hello` ends at once, `prime:1000` counts the primes
/// below a number, `thumbnail` scales a picture down, `command:redis-server --version` is a command
/// of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job(String);

impl Job {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_job = match text.split_once(':') {
            None => [HELLO, "thumbnail"].contains(&text),
            Some(("prime", limit)) => {
                let limit: u64 = limit.parse().ok()?;
                return LIMITS
                    .contains(&limit)
                    .then(|| Self(format!("prime:{limit}")));
            }
            Some(("command", command)) => !shlex::split(command)?.first()?.is_empty(),
            _ => false,
        };
        is_job.then(|| Self(text.to_owned()))
    }

    pub(super) fn hello() -> Self {
        Self(HELLO.to_owned())
    }

    /// Names it in the report: `prime 1000`.
    pub(super) fn name(&self) -> String {
        self.0.replacen(':', " ", 1)
    }

    /// Writes it as it is typed; `None` for the default.
    pub(super) fn label(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|text| *text != HELLO)
    }

    /// Returns the command line that is started in place of the measured code.
    pub(super) fn command(&self) -> Option<Vec<String>> {
        shlex::split(self.0.strip_prefix("command:")?)
    }

    /// Returns the work of the measured code; `None` if a command takes its place.
    pub(super) fn work(&self) -> Option<Work> {
        let words = match self.0.split_once(':') {
            None => format!("work={}", self.0),
            Some(("prime", limit)) => format!("work=prime limit={limit}"),
            Some(_) => return None,
        };
        Some(Work::new(NAME, &words))
    }

    /// Returns the same with the wish that the program reports on itself.
    pub(super) fn report(&self) -> Option<Work> {
        let mut work = self.work()?;
        work.words.push_str(" report=yes");
        Some(work)
    }
}

/// Makes the work of words that the agent takes, in any order:
/// `workload=start work=prime limit=1000 report=yes`.
pub(super) fn of_words(words: &str) -> Option<Work> {
    let sorted = |words: &str| {
        let mut words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        words.sort();
        words
    };
    let wanted = sorted(words);
    let value = |key| wanted.iter().find_map(|word| word.strip_prefix(key));
    let job = match value("limit=") {
        Some(limit) => Job::parse(&format!("prime:{limit}")),
        None => Job::parse(value("work=")?),
    }?;
    let both = [job.work()?, job.report()?];
    both.into_iter()
        .find(|work| sorted(&work.to_string()) == wanted)
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
