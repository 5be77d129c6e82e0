//! What loads that run in phases and the measurement beside them have to agree on.

/// Is how long before it the time of the first activation is told ([`crate::record::Begins`]): a load whose phases
/// begin then has to hear of it. Where the place's clock is not the laboratory's, that takes the time to be so long
/// after it has read the record; it is wrong by as much as the record was under way, which is some ms over a serial
/// line and less elsewhere.
pub const LEAD_NS: u64 = 250_000_000;

/// Is the greatest number of phases.
pub const MAX_PHASES: u32 = 100;
/// Is the longest duration: 31 days.
pub const MAX_DURATION_NS: u64 = 31 * 24 * 3_600 * 1_000_000_000;
