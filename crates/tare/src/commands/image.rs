//! `tare image run`: boots an image by itself, for people who work on it.

use std::time::Duration;

use serde_json::Value;
use tare_guard::{Guard, Interrupt, default_state_dir};
use tare_lab::units::counted;
use tare_targets::instance::{Ending, OutputEvent, Watcher};
use tare_targets::unikernel::Image;
use tare_wire::line::{Line, MARKER, MAX_PAYLOAD, decode};
use tare_wire::record::{List, Record};

use super::{clean_up, close};
use crate::cli::ImageRunArguments;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// How long an image may run: a year. A deadline beyond what the clock holds would overflow.
const LIMIT: Duration = Duration::from_secs(366 * 24 * 3600);

/// Boots an image with its console on standard output.
pub fn run(arguments: &ImageRunArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    let interrupt = Interrupt::install()?;
    clean_up(terminal);
    let guard = Guard::open(&default_state_dir()?)?;
    let image = Image::parse(&arguments.image)?;
    let path = image.path()?.to_owned();
    let words = arguments.words.join(" ");
    let buffer_bytes = tare_experiments::work(&words).map(|work| work.buffer_bytes);
    let instance = image.boot(&words, buffer_bytes, arguments.gdb, &guard)?;
    if let Some(port) = arguments.gdb {
        terminal.note(&format!(
            "waiting for: gdb -ex 'target remote 127.0.0.1:{port}' {}",
            path.display()
        ));
    }
    let mut console = Console {
        terminal,
        interrupt: &interrupt,
        raw: arguments.raw,
        failed: None,
    };
    let ended = instance.watch(LIMIT, &interrupt, &mut console)?;
    let failed = console.failed;
    close(guard, terminal);
    match (failed, ended.how) {
        (Some(error), _) => Err(error),
        (None, Ending::Done) => Ok(exit::DONE),
        (None, Ending::Stopped) => Ok(exit::INTERRUPTED),
        (None, Ending::Failed { why }) => Err(CommandError::Image {
            image: arguments.image.clone(),
            why,
        }),
        (None, Ending::TimedOut { doing }) => Err(CommandError::Image {
            image: arguments.image.clone(),
            why: doing.unwrap_or_else(|| "it ran for a year".to_owned()),
        }),
    }
}

/// Prints the lines of the image.
struct Console<'a> {
    terminal: &'a Terminal,
    interrupt: &'a Interrupt,
    /// Whether records are printed as they came.
    raw: bool,
    /// Why printing ended, if it did.
    failed: Option<CommandError>,
}

impl Watcher for Console<'_> {
    fn on_event(&mut self, event: OutputEvent<'_>) {
        let OutputEvent::Line(line, _) = event else {
            return;
        };
        let text = match readable(line).filter(|_| !self.raw) {
            Some(record) => record.into(),
            None => String::from_utf8_lossy(line),
        };
        if self.failed.is_none()
            && let Err(error) = self.terminal.print(text.trim_end_matches('\r'))
        {
            self.failed = Some(error);
            self.interrupt.request_stop();
        }
    }

    fn tick(&mut self) -> Option<Duration> {
        // There is no cell to be finished: the first Ctrl-C ends it. The signal itself wakes up who
        // watches, so no time has to be given.
        if self.interrupt.finish_requested() {
            self.interrupt.request_stop();
        }
        None
    }
}

/// Writes the record in a line for people, behind whatever stands before it; None if there is none.
fn readable(line: &[u8]) -> Option<String> {
    let mut room = [0; MAX_PAYLOAD];
    let told = match decode(line, &mut room) {
        Line::Other => return None,
        Line::Record { record, .. } => told(&record),
        Line::Damaged(damage) => format!("damaged record ({damage:?})"),
    };
    let text = String::from_utf8_lossy(line);
    let before = text.split(MARKER).next().unwrap_or_default();
    Some(format!("{before}{told}"))
}

/// Writes a record as `kind key=value …`. Of a list only its length is shown.
fn told(record: &Record<'_>) -> String {
    let rows = match record {
        Record::Counts(list) | Record::Events(list) | Record::Raw(list) => length::<4>(list),
        Record::Envelope(list) => length::<6>(list),
        Record::Parts(list) => length::<2>(list),
        Record::TraceEvents(list) => length::<5>(list),
        _ => {
            // A record is made of texts and numbers, of which JSON takes all.
            let fields = serde_json::to_value(record).unwrap_or_default();
            let fields = fields.as_object().and_then(|outer| outer.values().next());
            let fields = fields.and_then(Value::as_object);
            let fields = fields.into_iter().flatten();
            let fields = fields.filter(|(_, value)| !value.is_null());
            return fields.fold(record.kind().to_owned(), |told, (key, value)| {
                format!("{told} {key}={value}")
            });
        }
    };
    format!("{} {rows}", record.kind())
}

fn length<const COLUMNS: usize>(list: &List<'_>) -> String {
    counted(list.rows.rows::<COLUMNS>().count() as u64, "row", "rows")
}

#[cfg(test)]
mod tests {
    use tare_wire::line::Encoder;
    use tare_wire::packed::Packer;
    use tare_wire::record::{Counter, Ready};

    use super::*;

    #[test]
    fn records_are_read_by_people_and_other_lines_stay_as_they_are() {
        let mut encoder = Encoder::default();
        let mut packer = Packer::default();
        assert!(packer.push([0, 0, 84, 7]) && packer.push([0, 0, 1, 2]));
        for (record, told) in [
            (
                Record::Counter(Counter {
                    name: "timer interrupts",
                    count: 7,
                    labels: "",
                }),
                "counter name=\"timer interrupts\" count=7 labels=\"\"",
            ),
            (
                Record::Ready(Ready {
                    tsc: 9,
                    monotonic_ns: None,
                    cpu: Some(1),
                    buffer_bytes: 64,
                    locked: false,
                    latency_held: true,
                }),
                "ready tsc=9 cpu=1 buffer_bytes=64 locked=false latency_held=true",
            ),
            (
                Record::Counts(List {
                    rows: packer.packed(),
                }),
                "counts 2 rows",
            ),
            (Record::Going, "going"),
        ] {
            let line = [b"SeaBIOS ", encoder.encode(&record).unwrap()].concat();
            assert_eq!(readable(&line), Some(format!("SeaBIOS {told}")));
        }
        assert_eq!(readable(b"hello"), None);
        let damaged = readable(b"tare5: 0 hello AAAA 00000000").unwrap();
        assert!(damaged.contains("damaged"), "{damaged}");
    }
}
