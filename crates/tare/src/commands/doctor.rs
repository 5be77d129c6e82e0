//! `tare doctor`: reports the disturbances of measurements on this machine, their causes, and
//! remedies.

use std::cmp::Reverse;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use tare_guard::{Guard, Interrupt, default_state_dir};
use tare_host::{Finding, Machine, Sample, Severity, Source, doctor, summary};
use tare_pages::text::Page;
use tare_results::receive::Receiver;
use tare_results::target::Kernel;
use tare_results::work::Work;
use tare_targets::instance::{Ending, OutputEvent};
use tare_targets::{Job, spec};
use tare_wire::files::NAME;

use super::{claim, clean_up, close};
use crate::cli::DoctorArguments;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// The time limit for a guest.
const LIMIT: Duration = Duration::from_secs(300);

/// Examines the machine, or a guest from inside.
pub fn run(arguments: &DoctorArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    clean_up(terminal);
    let (source, mut findings) = match &arguments.target {
        None => (Source::system(), claim::findings(arguments.cpu)),
        Some(target) => (inside(target, terminal)?, Vec::new()),
    };
    let (machine, sample) = (Machine::collect(&source), Sample::take(&source));
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

/// Starts an instance of a target, and returns the files that its agent sends.
fn inside(words: &str, terminal: &Terminal) -> Result<Source, CommandError> {
    let target = spec::parse(words)?;
    if matches!(target.spec().kernel(), Kernel::None | Kernel::Foreign) {
        let why = format!("doctor examines Linux by the agent, which {words} does not run");
        return Err(CommandError::Usage(why));
    }
    let interrupt = Interrupt::install()?;
    let guard = Guard::open(&default_state_dir()?)?;
    let work = Work::new(NAME, "");
    let mut receiver = Receiver::of(&work);
    let mut watcher = |event: OutputEvent<'_>| {
        if let OutputEvent::Line(line, _) = event {
            receiver.line(line);
        }
    };
    let ended = target
        .program()
        .and_then(|_| target.start(&Job::idle(&work), &guard))
        .and_then(|instance| instance.watch(LIMIT, &interrupt, &mut watcher));
    close(guard, terminal);
    let failed = |why: String| CommandError::Measurement(format!("{words}: {why}"));
    match ended?.how {
        Ending::Done => {}
        Ending::Failed { why } => return Err(failed(why)),
        Ending::Stopped => return Err(failed("stopped by the user".to_owned())),
        Ending::TimedOut { .. } => return Err(failed(format!("no answer within {LIMIT:?}"))),
    }
    let received = receiver.finish().map_err(|why| failed(why.to_string()))?;
    let facts = &received.program.facts;
    Ok(Source::sent(
        facts.iter().map(|fact| (&*fact.name, &*fact.value)),
    ))
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
