//! What an image says on its console when it panics or faults, made readable.
//!
//! ```text
//! unikernel: fault: #PF page fault: a stack overflow
//! unikernel: cpu 0x… rip 0x… rsp 0x… rflags 0x… error 0x… address 0x…
//! unikernel: at 0x0000000000101234
//! unikernel: backtrace 0x0000000000100abc
//! ```
//!
//! The image knows addresses only. The names of its functions are in its file, which is not
//! stripped.

use object::{Object, ObjectSection, ObjectSymbol, SectionIndex, SectionKind};
use rustc_demangle::demangle;

use crate::measured::MeasuredFile;

/// Starts every line that an image says for itself.
pub(super) const PREFIX: &str = "unikernel: ";

/// How many lines of a report are kept. An image reports fewer.
const MOST_LINES: usize = 64;

/// The messages of an image, without the prefix.
#[derive(Debug, Default)]
pub(super) struct Report {
    lines: Vec<String>,
}

impl Report {
    /// Takes a line.
    pub(super) fn take(&mut self, line: &str) {
        if self.lines.len() < MOST_LINES {
            self.lines.push(line.trim().to_owned());
        }
    }

    /// Returns the first message.
    pub(super) fn message(&self) -> &str {
        self.lines.first().map_or("it said nothing", String::as_str)
    }

    /// Says what happened and which functions were under way, innermost first.
    pub(super) fn explain(&self, image: &MeasuredFile) -> String {
        let mut text = format!("the image crashed: {}", self.message());
        let addresses: Vec<u64> = self.lines.iter().filter_map(|line| address(line)).collect();
        if !addresses.is_empty() {
            let names = names(image, &addresses);
            text.push_str("; under way were, innermost first: ");
            text.push_str(&folded(&names).join(", "));
        }
        text
    }
}

/// Returns an address inside of the function that a line of the report names.
fn address(line: &str) -> Option<u64> {
    let parse = |digits| u64::from_str_radix(digits, 16).ok();
    match line.split_once(" 0x")? {
        ("at", digits) => parse(digits),
        // Execution goes on behind the call, which may be its function's last instruction.
        ("backtrace", digits) => parse(digits)?.checked_sub(1),
        _ => None,
    }
}

/// Returns the names of the functions at some addresses, or the addresses where there is none.
fn names(image: &MeasuredFile, addresses: &[u64]) -> Vec<String> {
    // If the image was replaced or removed, only the addresses are shown.
    let bytes = image.read().unwrap_or_default();
    let functions = functions(&bytes);
    let name = |address: u64| {
        let function = functions.iter().rfind(|f| f.start <= address);
        match function.filter(|f| address < f.end) {
            // `{:#}` leaves the hash out.
            Some(function) => format!("{:#}", demangle(function.name)),
            None => format!("{address:#x}"),
        }
    };
    addresses.iter().copied().map(name).collect()
}

/// A function, or a label of assembly code.
struct Function<'a> {
    start: u64,
    end: u64,
    name: &'a str,
}

/// Returns the functions of an ELF file by their addresses.
///
/// Labels of assembly code have no length: they reach to the next symbol of their section.
fn functions(bytes: &[u8]) -> Vec<Function<'_>> {
    let Ok(file) = object::File::parse(bytes) else {
        return Vec::new();
    };
    let mut symbols: Vec<_> = file
        .symbols()
        .filter(|symbol| is_code(&file, symbol.section_index()))
        .filter_map(|symbol| {
            let name = symbol.name().ok()?;
            Some((symbol.address(), symbol.size(), name))
        })
        .collect();
    symbols.sort_unstable();
    let next = symbols.iter().skip(1).map(|(start, ..)| *start);
    let next = next.chain([u64::MAX]);
    symbols
        .iter()
        .zip(next)
        .map(|(&(start, size, name), next)| Function {
            start,
            end: match size {
                0 => next,
                size => start.saturating_add(size),
            },
            name,
        })
        .collect()
}

fn is_code(file: &object::File<'_>, section: Option<SectionIndex>) -> bool {
    let section = section.and_then(|index| file.section_by_index(index).ok());
    section.is_some_and(|section| section.kind() == SectionKind::Text)
}

/// Writes a name that stands several times in a row once: `deeper (22 times)`.
fn folded(names: &[String]) -> Vec<String> {
    names
        .chunk_by(|a, b| a == b)
        .map(|same| match same {
            [once] => once.clone(),
            several => format!("{} ({} times)", several[0], several.len()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str) -> Report {
        let mut report = Report::default();
        for line in text.lines() {
            report.take(line.strip_prefix(PREFIX).unwrap());
        }
        report
    }

    #[test]
    fn addresses_without_an_image_stay_addresses() {
        let report = report(
            "unikernel: fault: #DE divide error\n\
             unikernel: cpu 0x0 rip 0x101234 rsp 0x2000\n\
             unikernel: at 0x0000000000101234\n\
             unikernel: backtrace 0x0000000000100abc\n\
             unikernel: backtrace 0x0000000000100abc\n\
             unikernel: backtrace nonsense\r\n",
        );
        assert_eq!(
            report.explain(&MeasuredFile::image("none")),
            "the image crashed: fault: #DE divide error; under way were, innermost first: \
             0x101234, 0x100abb (2 times)"
        );
    }

    #[test]
    fn a_report_without_end_does_not_fill_the_memory() {
        let mut report = Report::default();
        for _ in 0..10_000 {
            report.take("backtrace 0x1");
        }
        assert_eq!(report.lines.len(), MOST_LINES);
    }
}
