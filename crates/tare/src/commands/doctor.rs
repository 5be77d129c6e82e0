//! `tare doctor`: reports the disturbances of measurements on this machine, their causes, and
//! remedies.

use std::cmp::Reverse;

use anstyle::{AnsiColor, Style};
use tare_host::{Finding, Machine, Sample, Severity, Source, doctor, summary};
use tare_pages::text::Page;

use super::{claim, clean_up};
use crate::cli::DoctorArguments;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// Examines the machine.
pub fn run(arguments: &DoctorArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    clean_up(terminal);
    let source = Source::system();
    let (machine, sample) = (Machine::collect(&source), Sample::take(&source));
    let mut findings = claim::findings(arguments.cpu);
    findings.extend(doctor(&source, &machine, &sample, arguments.cpu));
    findings.sort_by_key(|finding| Reverse(finding.severity));
    if arguments.json {
        terminal.print_json(&findings)?;
        return Ok(exit::DONE);
    }
    let shown: Vec<&Finding> = findings
        .iter()
        .filter(|finding| arguments.all || finding.severity > Severity::Good)
        .collect();
    let mut page = Page::new(terminal.width());
    for finding in shown {
        write(finding, arguments.all, &mut page);
    }
    page.blank();
    page.paragraph(&summary(&findings), Style::new(), "");
    if !arguments.all {
        let more = "`tare doctor --all` says why each matters, and lists what is good.";
        page.paragraph(more, Style::new(), "");
    }
    terminal.print_text(&page.finish())?;
    Ok(exit::DONE)
}

/// Writes a finding: what was found, what to do, and in full why it matters.
fn write(finding: &Finding, in_full: bool, page: &mut Page) {
    const INDENT: &str = "         ";
    let severity = format!("{:<9}", finding.severity.to_string());
    let found = format!("{}: {}", finding.title, finding.state);
    page.marked(&found, (&severity, style(finding.severity)));
    if in_full {
        page.paragraph(&finding.why, Style::new(), INDENT);
    }
    if let Some(remedy) = &finding.remedy {
        page.paragraph(remedy, Style::new(), &format!("{INDENT}→ "));
    }
    if in_full {
        page.blank();
    }
}

fn style(severity: Severity) -> Style {
    match severity {
        Severity::Problem => AnsiColor::Red.on_default().bold(),
        Severity::Warning => AnsiColor::Yellow.on_default().bold(),
        Severity::Unknown => AnsiColor::Magenta.on_default(),
        Severity::Note => AnsiColor::Cyan.on_default(),
        Severity::Good => AnsiColor::Green.on_default(),
    }
}
