//! What the kernel did around a late wake-up: kinds of trace events, by number.
//!
//! An event is a row of numbers in [`crate::record::Record::TraceEvents`]; the names behind the numbers come in
//! [`crate::record::Name`].

/// Is a kind of trace event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// A timer's function was called: (1 if it wakes a sleeping thread up, 0).
    TimerExpired = 6,
    /// A thread was made runnable: (thread, its priority as the kernel counts).
    Waking = 7,
    /// The CPU went on to another thread: (previous thread, next thread).
    Switch = 8,
    /// Another interrupt was entered: (vector, 0).
    VectorEntry = 9,
    /// It was left: (vector, 0).
    VectorExit = 10,
}

impl Kind {
    /// Lists all kinds, each at the place of its number.
    pub const ALL: [Self; 11] = [
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
    ];

    /// Finds a kind by its number.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Returns the kind's number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self as u64
    }
}

/// Writes a difference that may be negative as a number that is small if the difference is.
#[must_use]
pub const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Reads what [`zigzag`] wrote.
#[must_use]
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
        assert_eq!(Kind::from_number(11), None);
    }

    #[test]
    fn differences_come_back() {
        for value in [0, 1, -1, 63, -64, i64::MAX, i64::MIN] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
        assert_eq!(zigzag(-1), 1);
    }
}
