//! `tare kernel fetch`: the only command that downloads.

use tare_guard::{Guard, Interrupt, default_state_dir};
use tare_kernels::debian_root;
use tare_kernels::name::Wanted;
use tare_kernels::{FetchPlan, FetchProgress, Fetcher, Store};

use super::megabytes;
use crate::cli::kernel::FetchArguments;
use crate::commands::close;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::{Line, Terminal};

/// Fetches kernels, and perhaps a whole Debian.
pub fn run(
    store: &Store,
    arguments: &FetchArguments,
    terminal: &Terminal,
) -> Result<u8, CommandError> {
    let interrupt = Interrupt::install()?;
    let mut request = Request::of(arguments)?;
    if arguments.if_missing {
        request
            .kernels
            .retain(|wanted| !store.has(&wanted.to_string()));
        request.root &= debian_root::find(store).is_err();
    }
    if request.root {
        // Before minutes are spent on kernels.
        debian_root::check_tools()?;
    }
    if request.kernels.is_empty() && !request.root {
        terminal.print("everything is here already")?;
        return Ok(exit::DONE);
    }
    let guard = Guard::open_with(&default_state_dir()?, store.guard_options()?)?;
    let outcome = fetch(
        store,
        &request,
        arguments.dry_run,
        &guard,
        &interrupt,
        terminal,
    );
    close(guard, terminal);
    outcome
}

/// The requested kernels and root, without duplicates.
struct Request {
    kernels: Vec<Wanted>,
    root: bool,
}

impl Request {
    fn of(arguments: &FetchArguments) -> Result<Self, CommandError> {
        let mut request = Self {
            kernels: if arguments.all {
                Wanted::all()
            } else {
                Vec::new()
            },
            root: false,
        };
        if !arguments.all && arguments.names.is_empty() {
            let why = "name what to fetch, or take --all; `tare kernel list` shows what there is";
            return Err(CommandError::Usage(why.to_owned()));
        }
        for name in &arguments.names {
            if name == debian_root::NAME {
                request.root = true;
                continue;
            }
            let wanted = Wanted::parse(name).ok_or_else(|| {
                CommandError::Usage(format!(
                    "'{name}' can't be fetched: want debian, debian-cloud or debian-rt, alone or \
                     with a series as in debian-6.12, or {}",
                    debian_root::NAME
                ))
            })?;
            if !request.kernels.contains(&wanted) {
                request.kernels.push(wanted);
            }
        }
        Ok(request)
    }
}

fn fetch(
    store: &Store,
    request: &Request,
    dry_run: bool,
    guard: &Guard,
    interrupt: &Interrupt,
    terminal: &Terminal,
) -> Result<u8, CommandError> {
    let mut bar = Bar::new(terminal);
    if !request.kernels.is_empty() {
        let mut fetcher = Fetcher::new(store, guard, interrupt)?;
        let mut plans: Vec<FetchPlan> = Vec::new();
        for wanted in &request.kernels {
            let plan = fetcher.plan(*wanted, &mut |step| bar.show(step))?;
            // Two names may mean the same kernel.
            if !plans.iter().any(|other| other.name() == plan.name()) {
                plans.push(plan);
            }
        }
        announce(&plans, terminal);
        if !dry_run {
            for plan in &plans {
                bar.begin(&plan.package);
                let kernel = fetcher.fetch(plan, &mut |step| bar.show(step));
                bar.clear();
                let kernel = kernel?;
                terminal.print(&format!("{}: Linux {}", kernel.name, kernel.release))?;
            }
        }
    }
    if request.root {
        let plan = debian_root::plan(guard, interrupt)?;
        let size = match plan.bytes {
            0 => "of a size that apt does not know".to_owned(),
            bytes => format!("about {}", megabytes(bytes)),
        };
        terminal.note(&format!(
            "{}: debootstrap downloads {} packages of Debian {}, {size}, and a disk is made of \
             them; that takes some minutes",
            debian_root::NAME,
            plan.packages,
            plan.suite
        ));
        if !dry_run {
            let root = debian_root::make(store, guard, interrupt)?;
            let record = &root.record;
            terminal.print(&format!(
                "{}: Debian {}, {} packages",
                debian_root::NAME,
                record.suite,
                record.packages.len()
            ))?;
        }
    }
    Ok(exit::DONE)
}

/// Says what will be downloaded, before it is.
fn announce(plans: &[FetchPlan], terminal: &Terminal) {
    for plan in plans {
        let state = if plan.cached {
            "is here already".to_owned()
        } else {
            megabytes(plan.bytes)
        };
        terminal.note(&format!("{} {}: {state}", plan.package, plan.version));
    }
    let missing: Vec<&FetchPlan> = plans.iter().filter(|plan| !plan.cached).collect();
    if missing.len() > 1 {
        let bytes = missing.iter().map(|plan| plan.bytes).sum();
        terminal.note(&format!(
            "to download: {} in {} packages",
            megabytes(bytes),
            missing.len()
        ));
    }
}

/// Shows how far fetching is: a line on a terminal, elsewhere only what takes long.
struct Bar<'a> {
    terminal: &'a Terminal,
    line: Option<Line<'a>>,
    package: String,
}

impl<'a> Bar<'a> {
    fn new(terminal: &'a Terminal) -> Self {
        Self {
            terminal,
            line: terminal.progress(1, "{bar:20} {wide_msg}"),
            package: String::new(),
        }
    }

    fn begin(&mut self, package: &str) {
        self.package = package.to_owned();
    }

    fn clear(&self) {
        if let Some(line) = &self.line {
            line.clear();
        }
    }

    fn show(&self, step: FetchProgress) {
        let Some(line) = &self.line else {
            if step == FetchProgress::Lists {
                self.terminal
                    .note("fetching the lists of packages: the machine has none that serve");
            }
            return;
        };
        match step {
            FetchProgress::Lists => line.say("fetching the lists of packages"),
            FetchProgress::Package { bytes, of } => {
                line.reached(bytes.min(of), of);
                line.say(&format!(
                    "{}: {} of {}",
                    self.package,
                    megabytes(bytes),
                    megabytes(of)
                ));
            }
            FetchProgress::Unpacking => line.say(&format!("{}: unpacking", self.package)),
        }
    }
}
