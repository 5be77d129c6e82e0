//! The events that show why a thread was late, and the layout of their records.

use std::ffi::CString;
use std::fs;

use super::error::FlightError;
use super::tracefs::Tracefs;

/// The link of the initial PID namespace, whose number is fixed in the kernel (PROC_PID_INIT_INO).
const FIRST_PIDS: &str = "pid:[4026531836]";

/// The prefix of the events that the kernel does not let anyone record, because recording may raise
/// that interrupt itself (arch/x86/include/asm/trace/irq_vectors.h).
const UNRECORDED: &str = "irq_work";

/// The meaning of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Point {
    /// Entry of an interrupt of the CPU itself: `local timer`, `reschedule`.
    VectorEntry {
        /// Its name.
        name: String,
        /// Whether it is the timer interrupt.
        timer: bool,
    },
    /// Exit of such an interrupt.
    VectorExit {
        /// Its name.
        name: String,
        /// Whether it is the timer interrupt.
        timer: bool,
    },
    /// Entry of a device's interrupt handler.
    InterruptEntry,
    /// Exit of a device's interrupt handler.
    InterruptExit,
    /// Entry of a softirq.
    SoftirqEntry,
    /// Exit of a softirq.
    SoftirqExit,
    /// A timer's function was called.
    TimerExpired,
    /// A thread was made runnable.
    Waking,
    /// The CPU switched to another thread.
    Switch,
    /// A softirq was raised.
    SoftirqRaised,
    /// A kernel thread began a queued function.
    Work,
    /// An interrupt's handler began a function that another CPU asked for.
    Called,
    /// A non-maskable interrupt's handler ended.
    Nmi,
    /// An interrupt was sent to a CPU.
    Sent {
        /// The CPU; None for any.
        to: Option<u32>,
        /// Whether the event has a mask of CPUs.
        has_mask: bool,
    },
    /// A thread in user mode touched a page that is not there.
    PageFault,
    /// Another event, with the fields that are read.
    Other(&'static [&'static str]),
}

impl Point {
    /// Returns the names of the decoded fields, in the order of the places that
    /// [`Tracepoint::number`] and [`Tracepoint::text`] take.
    const fn fields(&self) -> &'static [&'static str] {
        match self {
            Self::Other(fields) => fields,
            Self::VectorEntry { .. } | Self::VectorExit { .. } => &["vector"],
            Self::InterruptEntry => &["irq", "name"],
            Self::InterruptExit => &["irq"],
            Self::SoftirqEntry | Self::SoftirqExit | Self::SoftirqRaised => &["vec"],
            Self::TimerExpired | Self::Work => &["function"],
            Self::Called => &["func"],
            Self::Nmi => &["delta_ns"],
            Self::Sent { has_mask: true, .. } => &["cpumask", "callback"],
            Self::Sent { .. } => &["cpu", "callback"],
            Self::PageFault => &["address"],
            Self::Waking => &["pid", "prio", "comm"],
            Self::Switch => &[
                "prev_pid",
                "prev_prio",
                "prev_comm",
                "next_pid",
                "next_prio",
                "next_comm",
            ],
        }
    }

    fn whens(&self) -> Vec<When> {
        let when = |filter: Option<String>, with_stack| When {
            filter: filter.and_then(|filter| CString::new(filter).ok()),
            with_stack,
        };
        match self {
            // The stack has the interrupted functions, or those that led to the switch. It is not
            // recorded on the idle thread, where it is always the same: a stack costs more than
            // everything else.
            Self::VectorEntry { timer: true, .. } | Self::Switch => vec![
                when(Some("common_pid != 0".to_owned()), true),
                when(Some("common_pid == 0".to_owned()), false),
            ],
            Self::Sent {
                to: Some(to),
                has_mask,
            } => vec![when(
                Some(match has_mask {
                    true => format!("cpumask & CPUS{{{to}}}"),
                    false => format!("cpu == {to}"),
                }),
                false,
            )],
            _ => vec![When::ALWAYS],
        }
    }
}

/// The condition under which an event is recorded, and whether with the kernel's stack.
pub struct When {
    /// The kernel's filter; None for always.
    pub filter: Option<CString>,
    /// Whether with the stack.
    pub with_stack: bool,
}

impl When {
    /// Always, without the stack.
    pub const ALWAYS: Self = Self {
        filter: None,
        with_stack: false,
    };
}

/// An event of this kernel.
#[derive(Clone, Debug)]
pub struct Tracepoint {
    /// Name with its group: `sched:sched_switch`.
    pub name: String,
    /// Its number.
    pub id: u64,
    /// Meaning.
    pub point: Point,
    /// Whether it is recorded with the kernel's stack, if that of its kind is.
    pub has_stack: bool,
    fields: Vec<Field>,
}

/// The position of a value in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    offset: usize,
    size: usize,
}

impl Tracepoint {
    /// Returns the conditions under which it is recorded.
    pub fn whens(&self) -> Vec<When> {
        match self.has_stack {
            true => self.point.whens(),
            false => vec![When::ALWAYS],
        }
    }

    /// Decodes a number: the field with index `place` of the event's kind. None if the record is
    /// too short.
    pub fn number(&self, place: usize, bytes: &[u8]) -> Option<u64> {
        let field = self.fields.get(place)?;
        let bytes = bytes.get(field.offset..field.offset + field.size)?;
        let mut whole = [0; 8];
        whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(whole))
    }

    /// Decodes a text of fixed length, padded with zeros.
    pub fn text(&self, place: usize, bytes: &[u8]) -> Option<String> {
        let field = self.fields.get(place)?;
        terminated(bytes.get(field.offset..field.offset + field.size)?)
    }

    /// Decodes a text elsewhere in the record.
    pub fn text_elsewhere(&self, place: usize, bytes: &[u8]) -> Option<String> {
        terminated(self.elsewhere(place, bytes)?)
    }

    /// Decodes the CPUs to which the interrupt of a [`Point::Sent`] was sent.
    pub fn sent_to(&self, bytes: &[u8]) -> Vec<u64> {
        match self.point {
            Point::Sent { has_mask: true, .. } => {
                let mask = self.elsewhere(0, bytes).unwrap_or_default();
                let is_set = |cpu: &u64| mask[*cpu as usize / 8] >> (cpu % 8) & 1 == 1;
                (0..8 * mask.len() as u64).filter(is_set).collect()
            }
            _ => self.number(0, bytes).into_iter().collect(),
        }
    }

    /// Returns what is elsewhere in the record: its field holds offset and length.
    fn elsewhere<'a>(&self, place: usize, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let location = self.number(place, bytes)?;
        let (offset, length) = (location & 0xffff, location >> 16 & 0xffff);
        let (offset, length) = (offset as usize, length as usize);
        bytes.get(offset..offset + length)
    }
}

fn terminated(bytes: &[u8]) -> Option<String> {
    let text = bytes.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Checks that the kernel's events identify threads by the numbers of this namespace.
///
/// # Errors
///
/// Returns [`FlightError::Namespace`] if not.
pub fn check_namespace() -> Result<(), FlightError> {
    match fs::read_link("/proc/self/ns/pid") {
        Ok(link) if link.as_os_str() != FIRST_PIDS => Err(FlightError::Namespace),
        _ => Ok(()),
    }
}

/// Finds the events on this kernel.
///
/// # Errors
///
/// Returns [`FlightError`] if a required one is missing.
pub fn find(tracefs: &Tracefs) -> Result<Vec<Tracepoint>, FlightError> {
    let mut found = Vec::new();
    for (name, point) in [
        ("irq/irq_handler_entry", Point::InterruptEntry),
        ("irq/irq_handler_exit", Point::InterruptExit),
        ("irq/softirq_entry", Point::SoftirqEntry),
        ("irq/softirq_exit", Point::SoftirqExit),
        ("timer/hrtimer_expire_entry", Point::TimerExpired),
        ("sched/sched_waking", Point::Waking),
        ("sched/sched_switch", Point::Switch),
    ] {
        found.push(describe(tracefs, name, point)?);
    }
    let vectors = tracefs.list("events/irq_vectors");
    let vectors = vectors.map_err(|source| FlightError::NoEvent {
        name: "irq_vectors:local_timer_entry".to_owned(),
        source,
    })?;
    // The vectors depend on the kernel's configuration. The other events of the group are no
    // interrupts.
    for event in vectors
        .iter()
        .filter(|event| !event.starts_with(UNRECORDED))
    {
        let vector = |name: &str| (name.replace('_', " "), name == "local_timer");
        let point = if let Some(name) = event.strip_suffix("_entry") {
            let (name, timer) = vector(name);
            Point::VectorEntry { name, timer }
        } else if let Some(name) = event.strip_suffix("_exit") {
            let (name, timer) = vector(name);
            Point::VectorExit { name, timer }
        } else {
            continue;
        };
        found.push(describe(tracefs, &format!("irq_vectors/{event}"), point)?);
    }
    Ok(found)
}

/// Finds the events on this kernel, also those that only some kernels have, which tell more of what
/// took a CPU.
///
/// # Errors
///
/// Returns [`FlightError`] if a required one is missing.
pub fn find_all(tracefs: &Tracefs) -> Result<Vec<Tracepoint>, FlightError> {
    let mut all = find(tracefs)?;
    all.extend(find_more(tracefs));
    Ok(all)
}

fn find_more(tracefs: &Tracefs) -> impl Iterator<Item = Tracepoint> {
    let more = [
        ("timer/timer_expire_entry", Point::TimerExpired),
        ("workqueue/workqueue_execute_start", Point::Work),
        ("csd/csd_function_entry", Point::Called),
        ("irq/softirq_raise", Point::SoftirqRaised),
        ("nmi/nmi_handler", Point::Nmi),
        ("exceptions/page_fault_user", Point::PageFault),
    ];
    let more = more.into_iter();
    more.filter_map(|(name, point)| describe(tracefs, name, point).ok())
}

/// Finds the events by which this kernel shows, on the sender's CPU, that an interrupt is sent to
/// another one, or to any; from Linux 6.3 on.
pub fn find_sent(tracefs: &Tracefs, to: Option<u32>) -> impl Iterator<Item = Tracepoint> {
    let all = [("ipi/ipi_send_cpu", false), ("ipi/ipi_send_cpumask", true)].into_iter();
    all.filter_map(move |(name, has_mask)| {
        describe(tracefs, name, Point::Sent { to, has_mask }).ok()
    })
}

/// Finds an event by its path, and the layout of its records.
///
/// # Errors
///
/// Returns [`FlightError`] if it is missing, or described in an unknown way.
pub fn describe(tracefs: &Tracefs, path: &str, point: Point) -> Result<Tracepoint, FlightError> {
    let name = path.replace('/', ":");
    let format = tracefs.read(&format!("events/{path}/format"));
    let format = match format {
        Ok(format) => format,
        Err(source) => return Err(FlightError::NoEvent { name, source }),
    };
    parse(&name, &format, point).ok_or(FlightError::Format { name })
}

/// Parses the kernel's description of an event (Documentation/trace/events.rst, "Event formats").
fn parse(name: &str, format: &str, point: Point) -> Option<Tracepoint> {
    let id = format
        .lines()
        .find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok())?;
    let fields = point
        .fields()
        .iter()
        .map(|field| format.lines().find_map(|line| place(line, field)))
        .collect::<Option<_>>()?;
    Some(Tracepoint {
        name: name.to_owned(),
        id,
        point,
        has_stack: true,
        fields,
    })
}

/// Parses a line if it describes the field `wanted`:
/// `field:char comm[16]; offset:8; size:16; signed:0;`.
fn place(line: &str, wanted: &str) -> Option<Field> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declared = parts.next()?.strip_prefix("field:")?;
    let declared = declared
        .split('[')
        .next()
        .filter(|_| !declared.starts_with("__data_loc"))
        .unwrap_or(declared);
    if declared.rsplit([' ', '*']).next()? != wanted {
        return None;
    }
    let mut value = |key| parts.next()?.strip_prefix(key)?.parse().ok();
    let offset = value("offset:")?;
    let size = value("size:")?;
    Some(Field { offset, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAKING: &str = "name: sched_waking\nID: 375\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\n\
        print fmt: \"comm=%s pid=%d\", REC->comm, REC->pid\n";

    #[test]
    fn fields_are_found_where_the_kernel_says() {
        let waking = parse("sched:sched_waking", WAKING, Point::Waking).unwrap();
        assert_eq!(waking.id, 375);
        let mut bytes = [0; 32];
        bytes[8..11].copy_from_slice(b"tar");
        bytes[24..28].copy_from_slice(&55_u32.to_le_bytes());
        bytes[28..32].copy_from_slice(&(-1_i32).to_le_bytes());
        assert_eq!(waking.number(0, &bytes), Some(55));
        assert_eq!(waking.number(1, &bytes), Some(0xffff_ffff));
        assert_eq!(waking.text(2, &bytes).as_deref(), Some("tar"));
        assert_eq!(waking.number(1, &bytes[..30]), None);
    }

    #[test]
    fn a_text_elsewhere_is_found_by_offset_and_length() {
        let format = "ID: 225\n\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n\
            \tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n";
        let entry = parse("irq:irq_handler_entry", format, Point::InterruptEntry).unwrap();
        let mut bytes = vec![0; 16];
        bytes[8] = 24;
        bytes[12..16].copy_from_slice(&(16_u32 | 8 << 16).to_le_bytes());
        bytes.extend(b"virtio0\0");
        assert_eq!(entry.number(0, &bytes), Some(24));
        assert_eq!(entry.text_elsewhere(1, &bytes).as_deref(), Some("virtio0"));
    }

    #[test]
    fn the_cpus_to_which_an_interrupt_is_sent_are_those_of_a_mask_or_one() {
        let format = "ID: 5\n\tfield:__data_loc cpumask_t cpumask;\toffset:8;\tsize:4;\tsigned:0;\n\
            \tfield:void * callback;\toffset:16;\tsize:8;\tsigned:0;\n\
            \tfield:unsigned int cpu;\toffset:8;\tsize:4;\tsigned:0;\n";
        let sent = |has_mask, bytes: &[u8]| {
            let point = Point::Sent { to: None, has_mask };
            parse("ipi", format, point).unwrap().sent_to(bytes)
        };
        let mut bytes = vec![0; 24];
        bytes[8..12].copy_from_slice(&(24_u32 | 16 << 16).to_le_bytes());
        bytes.extend([0b110, 0, 0, 0, 0, 0, 0, 0, 0b1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(sent(true, &bytes), [1, 2, 64]);
        assert_eq!(sent(true, &bytes[..30]), [0; 0]);
        bytes[8..12].copy_from_slice(&3_u32.to_le_bytes());
        assert_eq!(sent(false, &bytes), [3]);
    }

    #[test]
    fn pointers_are_fields_too_and_missing_ones_are_told() {
        let line = "\tfield:void * function;\toffset:24;\tsize:8;\tsigned:0;";
        let expected = Some(Field {
            offset: 24,
            size: 8,
        });
        assert_eq!(place(line, "function"), expected);
        assert!(parse("timer:hrtimer_expire_entry", WAKING, Point::TimerExpired).is_none());
    }
}
