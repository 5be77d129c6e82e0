//! The protocol between the laboratory and the measured code.
//!
//! *In* goes a plan: words such as `workload=ID key=value`, on the command line of the agent or of
//! a kernel ([`words`], [`bounds`], [`cpus`], [`scheduling`], [`phases`], [`image`], [`guest`],
//! [`files`]).
//! *Out* come records, one line of text each ([`record`], [`mod@line`]), over a pipe, a virtio port, a
//! serial line or serial over LAN.
//!
//! # Why text, and why lines
//!
//! A serial line carries firmware chatter and boot messages, and sometimes loses bytes. A line that
//! starts with a marker, is numbered and ends with a checksum can be found among all that; missing
//! and damaged records are detected:
//!
//! ```text
//! tare5: 17 counts BQQAABQB ecaa6fdf
//! marker  |  kind   |       CRC-32 of `17 counts BQQAABQB`
//!      sequence  payload: base64 (no padding) of the record, as `postcard` encodes it
//! ```
//!
//! The payload is [`postcard`](https://postcard.jamesmunns.com/wire-format): variable-length
//! integers, so a histogram entry takes four or five bytes. Long lists are split over several
//! records ([`packed`], [`rows`]), so that no line exceeds [`line::MAX_LINE`] bytes, the limit of a
//! terminal in canonical mode.
//!
//! The crate is `no_std` and does not allocate: encoding runs on the unikernel too.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "schema")]
extern crate alloc;

pub mod bounds;
pub mod cpus;
pub mod files;
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
pub const PROTOCOL: u16 = 5;
