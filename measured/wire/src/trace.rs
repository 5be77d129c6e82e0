//! Kinds of kernel trace events around a sample, by number.
//!
//! An event is a row of numbers in [`crate::record::Record::TraceEvents`]; the names behind the
//! numbers come in [`crate::record::Name`].

/// A kind of trace event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The local timer's interrupt was entered: (vector, 0).
    TimerEntry = 0,
    /// It was left: (vector, 0).
    TimerExit = 1,
    /// A device's interrupt was entered: (interrupt, 0).
    InterruptEntry = 2,
    /// It was left: (interrupt, 0).
    InterruptExit = 3,
    /// A softirq was entered: (softirq, 0).
    SoftirqEntry = 4,
    /// It was left: (softirq, 0).
    SoftirqExit = 5,
    /// A timer's function was called: (1 if it wakes a sleeping thread up, 0). A [`Kind::Frame`]
    /// with the function follows.
    TimerExpired = 6,
    /// A thread was made runnable: (thread with priority, 0), see [`Task`].
    Waking = 7,
    /// The CPU went on to another thread: (previous one with priority, next one with priority), see
    /// [`Task`].
    Switch = 8,
    /// Another interrupt was entered: (vector, 0).
    VectorEntry = 9,
    /// It was left: (vector, 0).
    VectorExit = 10,
    /// A thread was running when the events begin: (thread, 0). Always the first event.
    Running = 11,
    /// The interrupt entered by the event before came while the CPU was in user mode: (0, 0).
    FromUser = 12,
    /// A kernel function was active at the event before, innermost first: (function, 0). At an
    /// interrupt's entry it is one that was interrupted; at a switch, one that led to it.
    Frame = 13,
    /// A kernel thread began to run a queued function, or an interrupt's handler one that another CPU
    /// asked for: (function, 0).
    Work = 14,
    /// The running thread touched a page that was not there: (what it is of, 0).
    PageFault = 15,
    /// The interrupt entered by the event before was sent by a thread on another CPU: (thread, 0).
    Sender = 16,
    /// The softirq entered by the event before had been raised some time before: (ns, 0).
    Waited = 17,
}

impl Kind {
    /// All kinds, each at the index of its number.
    pub const ALL: [Self; 18] = [
        Self::TimerEntry,
        Self::TimerExit,
        Self::InterruptEntry,
        Self::InterruptExit,
        Self::SoftirqEntry,
        Self::SoftirqExit,
        Self::TimerExpired,
        Self::Waking,
        Self::Switch,
        Self::VectorEntry,
        Self::VectorExit,
        Self::Running,
        Self::FromUser,
        Self::Frame,
        Self::Work,
        Self::PageFault,
        Self::Sender,
        Self::Waited,
    ];

    /// Finds a kind by its number.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Returns the kind's number.
    pub const fn number(self) -> u64 {
        self as u64
    }
}

/// The greatest id of a thread in the kernel (PID_MAX_LIMIT). A greater number stands for several
/// threads.
pub const MOST_TID: u32 = 1 << 22;

/// A thread with its priority, as one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its id in the kernel; 0 is the idle thread.
    pub tid: u32,
    /// Its priority in the kernel's numbers: −1 SCHED_DEADLINE, 0 to 98 real-time from the highest,
    /// 100 to 139 the others, 120 for nice value 0 and for the idle thread.
    pub priority: i16,
}

impl Task {
    /// The bits of the priority, which is stored plus one: 0 to 140.
    const SHIFT: u32 = 8;

    /// Packs both into one number.
    pub fn number(self) -> u64 {
        let priority = self.priority.clamp(-1, 254) + 1;
        u64::from(self.tid) << Self::SHIFT | u64::from(priority.unsigned_abs())
    }

    /// Unpacks the number of [`Task::number`]. None if it is invalid.
    pub fn from_number(number: u64) -> Option<Self> {
        let tid = u32::try_from(number >> Self::SHIFT).ok()?;
        let priority = i16::from(number as u8) - 1;
        Some(Self { tid, priority })
    }
}

/// Encodes a difference as an unsigned number, a small one if the difference is small.
pub const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Decodes [`zigzag`].
pub const fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_their_numbers() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_number(kind.number()), Some(kind));
        }
        assert_eq!(Kind::from_number(18), None);
    }

    #[test]
    fn threads_come_back_with_their_priority() {
        for (tid, priority) in [(0, 120), (1, -1), (77, 0), (u32::MAX, 139)] {
            let task = Task { tid, priority };
            assert_eq!(Task::from_number(task.number()), Some(task));
        }
        assert_eq!(Task::from_number(u64::MAX), None);
    }

    #[test]
    fn differences_come_back() {
        for value in [0, 1, -1, 63, -64, i64::MAX, i64::MIN] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
        assert_eq!(zigzag(-1), 1);
    }
}
