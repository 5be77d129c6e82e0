//! The plan, as words: `workload=clocks clock=tsc reads=1000 cpu=1`.

use core::fmt;

use tare_measured::words::{self, Form, Put, Slot, Word};
use tare_wire::words::PlanError;

pub const NAME: &str = "clocks";

#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    pub clock: Clock,
    pub reads: u64,
    pub cpu: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
pub enum Clock {
    #[default]
    Tsc,
    Monotonic,
    Reference,
}

const WORDS: &[Word<Plan>] = &[
    ("clock", |plan| Slot::Form(&mut plan.clock)),
    ("reads", |plan| Slot::Number(&mut plan.reads)),
    ("cpu", |plan| Slot::AnySmall(&mut plan.cpu)),
];

impl Plan {
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, PlanError<'a>> {
        let mut plan = Self::default();
        words::read(&mut plan, WORDS, words, &["clock", "reads"])?;
        Ok(plan)
    }

    /// Returns the size of the buffer: a number for each read.
    pub fn buffer_bytes(&self) -> u64 {
        self.reads * 8
    }
}

impl fmt::Display for Plan {
    /// Writes all words but the id.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        words::write(*self, WORDS, f)
    }
}

impl Clock {
    pub const ALL: [Self; 3] = [Self::Tsc, Self::Monotonic, Self::Reference];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Tsc => "tsc",
            Self::Monotonic => "monotonic",
            Self::Reference => "reference",
        }
    }
}

impl Form for Clock {
    fn read(&mut self, text: &str) -> Result<(), &'static str> {
        let found = Self::ALL.into_iter().find(|clock| clock.name() == text);
        *self = found.ok_or("tsc, monotonic or reference")?;
        Ok(())
    }

    fn write(&self, put: Put<'_>) -> fmt::Result {
        put(&self.name())
    }
}
