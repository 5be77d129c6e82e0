//! What crosses the border between the laboratory and the measured code, in both directions.
//!
//! *In* goes a plan: words such as `workload=ID key=value`, the same on an
//! agent's command line and on a kernel's ([`words`], [`bounds`], [`cpus`], [`scheduling`], [`phases`], [`image`], [`guest`]). *Out* come records, one line of text each
//! ([`record`], [`line`]), the same over a pipe, a virtio port, a serial line or serial over LAN.
//!
//! # Why text, and why lines
//!
//! A serial line carries firmware chatter, boot messages and sometimes loses bytes. A line that
//! starts with a marker, is numbered and ends with a checksum can be picked out of all that; what
//! is missing or damaged is detected, never believed:
//!
//! ```text
//! tare2: 17 counts BQQAABQB ecaa6fdf
//! marker  |  kind   |       CRC-32 of `17 counts BQQAABQB`
//!      sequence  payload: base64 (no padding) of the record, as `postcard` encodes it
//! ```
//!
//! The payload is [`postcard`](https://postcard.jamesmunns.com/wire-format): variable-length
//! integers, so a histogram entry takes four or five bytes. Long lists are split over several
//! records ([`packed`], [`rows`]), so that no line exceeds [`line::MAX_LINE`] bytes, which is what a
//! terminal in canonical mode passes on.
//!
//! The crate is `no_std` and does not allocate: encoding runs on the unikernel too.
#![no_std]
#![forbid(unsafe_code)]

pub mod bounds;
pub mod cpus;
pub mod guest;
pub mod image;
pub mod line;
pub mod packed;
pub mod phases;
pub mod record;
pub mod rows;
pub mod scheduling;
pub mod trace;
pub mod words;

/// The version of the protocol: the digit in [`line::MARKER`] and a field of
/// [`record::Hello`].
pub const PROTOCOL: u16 = 2;
