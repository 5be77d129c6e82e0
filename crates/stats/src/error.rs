//! Everything that the functions of this crate can refuse, in one place.
//!
//! Numbers reach this crate from run folders and serial lines. What contradicts itself is refused
//! with the place and the remedy, since a statistic computed from it would look like any other.

use thiserror::Error;

/// A problem, its place, and the remedy.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum StatsError {
    /// The histogram would hold more than 2^64 − 1 samples.
    #[error(
        "a histogram cannot hold more than 2^64 - 1 samples: the counts up to the value {value} \
         exceed it; the record is damaged, measure the cell again"
    )]
    CountOverflow {
        /// The value at which the total overflowed.
        value: u64,
    },

    /// Count, sum and sum of squares cannot belong to the same samples.
    #[error(
        "count {count}, sum {sum} and sum of squares {sum_of_squares} cannot belong to the same \
         samples, or do not fit into 128 bits; the record is damaged, measure the cell again"
    )]
    PowerSums {
        /// Number of samples.
        count: u64,
        /// Their sum.
        sum: u128,
        /// The sum of their squares.
        sum_of_squares: u128,
    },

    /// There are too few values for the method.
    #[error("{method} needs at least {needed} {unit}, there are {got}: measure more of them")]
    TooFew {
        /// The figure to compute.
        method: &'static str,
        /// The things that are counted: samples, blocks, rows.
        unit: &'static str,
        /// The least that the method can work with.
        needed: u64,
        /// The number present.
        got: u64,
    },

    /// Rows of a comparison hold different invocations.
    #[error(
        "row number {row} of the comparison has another number of invocations than the first row: \
         leave out figures that not every invocation has"
    )]
    Rows {
        /// The offending row, counted from 0.
        row: usize,
    },

    /// An input is infinite or not a number, or out of the range that its meaning allows.
    #[error("{what} is {given}, which is not usable: it must be {allowed}")]
    Number {
        /// Which input.
        what: &'static str,
        /// The given value.
        given: f64,
        /// The valid values.
        allowed: &'static str,
    },

    /// A recording holds a value that its own threshold excludes.
    #[error(
        "the recording holds a value of {value} cycles, but recorded only from {smallest} cycles \
         on; its threshold or its samples are damaged, measure the cell again"
    )]
    BelowThreshold {
        /// The value.
        value: u64,
        /// The smallest value that is recorded.
        smallest: u64,
    },

    /// The samples of a recording last longer than the execution that they are part of.
    #[error(
        "the recorded samples last {recorded} cycles, but the execution only {execution}; one of \
         the two is damaged, measure the cell again"
    )]
    LongerThanExecution {
        /// Sum of the recorded samples, in cycles.
        recorded: u128,
        /// Duration of the whole execution, in cycles.
        execution: u128,
    },

    /// A trace of interruptions contradicts itself.
    #[error(
        "gap number {position} of the trace {problem}; the trace is damaged or belongs to another \
         spin, measure the cell again"
    )]
    Trace {
        /// The offending gap, counted from 0.
        position: usize,
        /// The problem.
        problem: &'static str,
    },

    /// The interval between two activations is 0.
    #[error(
        "an interval of 0 between two activations misses endlessly many of them; the record is \
         damaged, measure the cell again"
    )]
    Interval,
}
