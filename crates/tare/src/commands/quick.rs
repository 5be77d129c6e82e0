//! `tare quick`: the study of that name, on what is usable here.

use tare_guard::Interrupt;
use tare_studies::{Variant, included};
use tare_targets::{Availability, spec};

use super::measure::{Request, interrupted};
use super::run_study::run_as;
use crate::cli::QuickArguments;
use crate::error::CommandError;
use crate::terminal::Terminal;

/// Takes a first picture of this machine.
pub fn run(arguments: &QuickArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    // Finding out what is usable starts guests and engines' clients, which Ctrl-C has to end.
    let interrupt = Interrupt::install()?;
    interrupt.prepare(true);
    let file = &included::QUICK;
    let mut study = file.study(Variant::Full)?;
    for part in &mut study.parts {
        let mut usable = Vec::new();
        for target in std::mem::take(&mut part.targets) {
            let found = spec::of(&target)?;
            let availability = match arguments.options.dry_run {
                true => found.present(),
                false => found.availability(),
            };
            match availability {
                // Without this target there is nothing to measure; the error explains why it is
                // unusable.
                Availability::Unusable { why, remedy } if !target.capabilities().is_direct => {
                    terminal.note(&format!(
                        "without {target}: {why}\n  to make it usable: {remedy}"
                    ))
                }
                _ => usable.push(target),
            }
        }
        part.targets = usable;
    }
    if interrupt.finish_requested() {
        return Ok(interrupted(terminal));
    }
    let request = Request {
        name: &study.name,
        resume: None,
        cpus: arguments.cpu.cpu.into_iter().collect(),
        more_runs: None,
        actions: &[],
        options: &arguments.options,
    };
    run_as(&study, None, &request, terminal)
}
