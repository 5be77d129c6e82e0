//! How often the guests of a process leave their virtual CPUs, and why (`kvm:kvm_exit`).
//!
//! Only guests that the recording thread starts are recorded, through any number of threads and
//! processes between: the kernel passes its events on to what a thread starts. When a guest's TSC
//! was 0 is recorded as well (`kvm:kvm_write_tsc_offset`), so a guest's own time stamps say between
//! which of them an exit lies.

use super::decode;
use super::error::FlightError;
use super::live;
use super::recording::{Clocks, online};
use super::ring::{self, Ring, Whose};
use super::tracefs::Tracefs;
use super::tracepoint::{self, Point, Tracepoint};

const EXIT: (&str, Point) = ("kvm/kvm_exit", Point::Other(&["exit_reason", "isa"]));
const TSC: (&str, Point) = (
    "kvm/kvm_write_tsc_offset",
    Point::Other(&["next_tsc_offset"]),
);

/// The instruction set in an exit: Intel's, whose reasons have flags in their upper half, or AMD's.
const VMX: u64 = 1;

/// A recorder of exits, which runs until it is dropped.
pub struct Exits {
    rings: Vec<Ring>,
    tracepoints: [Tracepoint; 2],
    /// The names of reasons, Intel's and AMD's.
    names: [Vec<(u64, String)>; 2],
    began: Clocks,
}

/// The recorded exits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The time of each by CLOCK_MONOTONIC in ns, and its reason as the kernel names it.
    pub exits: Vec<(u64, String)>,
    /// When the TSC of a guest was set, and when it was 0 by that, in ns.
    pub zeros: Vec<(u64, u64)>,
}

impl Exits {
    /// Starts recording.
    ///
    /// # Errors
    ///
    /// Returns [`FlightError`] if the kernel does not show these events, or not to this user.
    pub fn open() -> Result<Self, FlightError> {
        let tracefs = Tracefs::open().map_err(FlightError::Tracefs)?;
        let describe = |(path, point)| tracepoint::describe(&tracefs, path, point);
        let tracepoints = [describe(EXIT)?, describe(TSC)?];
        let format = tracefs.read(&format!("events/{}/format", EXIT.0));
        let names = names(&format.map_err(FlightError::Tracefs)?);
        Ok(Self {
            rings: live::rings(Whose::Descendants, &online(), &tracepoints)?,
            tracepoints,
            names,
            began: Clocks::read(),
        })
    }

    /// Stops recording. Returns `None` if the kernel has overwritten exits.
    pub fn finish(self) -> Option<Recorded> {
        self.rings.iter().for_each(Ring::stop);
        let clocks = [self.began, Clocks::read()];
        let mut recorded = Recorded::default();
        for ring in &self.rings {
            let mut bytes = vec![0; ring.bytes().min(ring.written() as usize)];
            let copied = ring.newest(0, &mut bytes);
            if !copied.complete {
                return None;
            }
            for (identifier, at_ns, _, body) in ring::records(&bytes[..copied.bytes]) {
                let (place, with_stack) = ring.event_of(identifier)?;
                let (_, raw) = decode::split(body, with_stack)?;
                let number = |field| self.tracepoints[place].number(field, raw);
                if place == 0 {
                    let reason = self.name(number(0)?, number(1)?);
                    recorded.exits.push((at_ns, reason));
                } else {
                    // The guest's TSC is this machine's plus the offset.
                    let zero = 0_u64.wrapping_sub(number(0)?);
                    recorded.zeros.push((at_ns, Clocks::ns(clocks, zero)));
                }
            }
        }
        recorded.exits.sort();
        recorded.zeros.sort_unstable();
        Some(recorded)
    }

    fn name(&self, reason: u64, instruction_set: u64) -> String {
        let (names, reason) = match instruction_set {
            VMX => (&self.names[0], reason & 0xffff),
            _ => (&self.names[1], reason),
        };
        let named = names.iter().find(|(number, _)| *number == reason);
        named.map_or_else(|| format!("{reason:#x}"), |(_, name)| name.clone())
    }
}

/// Returns the names of reasons, Intel's and AMD's, from the description of the event.
fn names(format: &str) -> [Vec<(u64, String)>; 2] {
    let mut tables = format.split("__print_symbolic(").skip(1).map(|table| {
        let pairs = table.split('{').skip(1).filter_map(|pair| {
            let (number, name) = pair.split('}').next()?.split_once(',')?;
            let number = match number.trim().strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16),
                None => number.trim().parse(),
            };
            Some((number.ok()?, name.trim().trim_matches('"').to_lowercase()))
        });
        pairs.collect()
    });
    [(); 2].map(|()| tables.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_the_names_that_the_kernel_prints() {
        let format = r#"print fmt: "vcpu %u reason %s%s%s", REC->vcpu_id, (REC->isa == 1) ?
            __print_symbolic(REC->exit_reason & 0xffff, { 0, "EXCEPTION_NMI" }, { 12, "HLT" }) :
            __print_symbolic(REC->exit_reason, { 0x07b, "io" }, { -1, "invalid_guest_state" }),
            (REC->isa == 1) ? __print_flags(REC->exit_reason & ~0xffff, " ", { 0x80000000, "FAIL" })"#;
        let [vmx, svm] = names(format);
        let named = |(number, name): (u64, &str)| (number, name.to_owned());
        assert_eq!(vmx, [(0, "exception_nmi"), (12, "hlt")].map(named));
        assert_eq!(svm[0], named((0x7b, "io")));
    }
}
