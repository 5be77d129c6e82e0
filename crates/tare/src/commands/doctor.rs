//! `tare doctor`: tells what disturbs measuring here, why, and what to do.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use tare_host::{Finding, Machine, Sample, Severity, Source, doctor, summary};

use super::clean_up;
use crate::cli::DoctorArguments;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// Examines the machine.
pub fn run(arguments: &DoctorArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    clean_up(terminal);
    let source = Source::system();
    let (machine, sample) = (Machine::collect(&source), Sample::take(&source));
    let findings = doctor(&source, &machine, &sample, arguments.cpu);
    if arguments.json {
        terminal.print_json(&findings)?;
        return Ok(exit::DONE);
    }
    let shown: Vec<&Finding> = findings
        .iter()
        .filter(|finding| arguments.all || finding.severity > Severity::Good)
        .collect();
    let mut text = render(&shown, terminal.colours_results());
    text.push_str(&summary(&findings));
    terminal.print(&text)?;
    Ok(exit::DONE)
}

/// Renders findings, one paragraph each.
fn render(findings: &[&Finding], colour: bool) -> String {
    let mut text = String::new();
    for finding in findings {
        let style = if colour {
            style(finding.severity)
        } else {
            Style::new()
        };
        // A String takes everything.
        let _ = writeln!(
            text,
            "{style}{:<8}{style:#} {}: {}",
            finding.severity.to_string(),
            finding.title,
            finding.state
        );
        let _ = writeln!(text, "         {}", finding.why);
        if let Some(remedy) = &finding.remedy {
            let _ = writeln!(text, "         → {remedy}");
        }
        text.push('\n');
    }
    text
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
