//! Communication between processes of one machine: round trips and bandwidth.

use crate::primitives::bench::{Bench, Why, why};
use crate::primitives::{Area, Context, Need, Primitive};
use libc::c_int;
use tare_workloads::timing::{Fenced, Timing};

use super::kernel::{Pair, Partner, placements, put, take};

const IPC: Primitive = Primitive {
    area: Area::Ipc,
    needs: &[Need::Kernel],
    method: "one byte there and one back, many in a row and each between two stamps; there and back are a round trip",
    ..Primitive::NEW
};
const BANDWIDTH: Primitive = Primitive {
    method: "blocks of 64 KiB, until the other side confirms that it has read 16 MiB",
    tags: &["bandwidth"],
    ..IPC
};
/// The bytes of a pass.
pub(crate) const BYTES: usize = 16 << 20;
/// The bytes of a block.
const BLOCK: usize = 64 << 10;

/// The primitives.
pub(crate) const TABLE: &[Primitive] = &[
    IPC.named("pipe-round-trip", "round trip through pipes")
        .by(|bench, around| {
            round_trips(bench, around, || {
                let ([a, b], [c, d]) = (Pair::pipe()?.keep(), Pair::pipe()?.keep());
                Ok([(c, b), (a, d)])
            })
        }),
    IPC.named("unix-round-trip", "round trip through a UNIX stream socket")
        .by(|bench, around| {
            round_trips(bench, around, || {
                let [a, b] = Pair::sockets(libc::SOCK_STREAM)?.keep();
                Ok([(a, a), (b, b)])
            })
        }),
    IPC.named(
        "unix-datagram-round-trip",
        "round trip through a UNIX datagram socket",
    )
    .by(|bench, around| {
        round_trips(bench, around, || {
            let [a, b] = Pair::sockets(libc::SOCK_DGRAM)?.keep();
            Ok([(a, a), (b, b)])
        })
    }),
    BANDWIDTH
        .named("pipe-bandwidth", "bandwidth of a pipe")
        .by(|bench, around| {
            bandwidth(bench, around, || {
                let [from, to] = Pair::pipe()?.keep();
                Ok((from, to))
            })
        }),
    BANDWIDTH
        .named("unix-bandwidth", "bandwidth of a UNIX stream socket")
        .by(|bench, around| {
            bandwidth(bench, around, || {
                let [from, to] = Pair::sockets(libc::SOCK_STREAM)?.keep();
                Ok((from, to))
            })
        }),
];

/// The descriptors that one side reads from and writes to.
type Ends = (c_int, c_int);

/// Sends a byte there and back, for each placement of the other side. Descriptors are closed when
/// the process ends.
fn round_trips(
    bench: &mut Bench<'_>,
    around: &Context<'_>,
    ends: impl Fn() -> Result<[Ends; 2], Why>,
) -> Result<(), Why> {
    for (label, cpu) in placements(around.plan) {
        let [own, other] = ends()?;
        let _partner = Partner::start(cpu, || echo(other))?;
        round_trip(bench, format_args!("cpu={label}"), own)?;
    }
    Ok(())
}

/// Sends each byte back.
pub(crate) fn echo((from, to): Ends) {
    while take(from) && put(to) {}
}

/// Measures the time from sending a byte to receiving one.
pub(crate) fn round_trip(
    bench: &mut Bench<'_>,
    labels: impl std::fmt::Display + Copy,
    (from, to): Ends,
) -> Result<(), Why> {
    if !(put(to) && take(from)) {
        return Err(why("the other side does not answer"));
    }
    bench.whole(|bench| {
        let mut answers = true;
        bench.each(labels, || answers &= put(to) && take(from))?;
        match answers {
            true => Ok(()),
            false => Err(why("the other side no longer answers")),
        }
    })
}

fn bandwidth(
    bench: &mut Bench<'_>,
    around: &Context<'_>,
    ends: impl Fn() -> Result<Ends, Why>,
) -> Result<(), Why> {
    for (label, cpu) in placements(around.plan) {
        let (from, to) = ends()?;
        let answers = Pair::pipe()?;
        let [answer, told] = answers.0;
        let _partner = Partner::start(cpu, || while drain(from, BYTES) && put(told) {})?;
        pour(bench, format_args!("cpu={label}"), to, answer)?;
    }
    Ok(())
}

/// Reads `bytes` bytes, and returns whether they came.
pub(crate) fn drain(from: c_int, bytes: usize) -> bool {
    let mut block = vec![0_u8; BLOCK];
    let mut left = bytes;
    while left > 0 {
        // SAFETY: there is room for a block.
        let got = unsafe { libc::read(from, block.as_mut_ptr().cast(), BLOCK.min(left)) };
        match usize::try_from(got) {
            Ok(got) if got > 0 => left -= got,
            _ => return false,
        }
    }
    true
}

/// Measures the time to write 16 MiB, until the other side acknowledges them.
pub(crate) fn pour(
    bench: &mut Bench<'_>,
    labels: impl std::fmt::Display + Copy,
    to: c_int,
    answer: c_int,
) -> Result<(), Why> {
    let block = vec![1_u8; BLOCK];
    bench.passes(labels, BYTES as u64, || {
        let begin = Fenced::before();
        let mut left = BYTES;
        while left > 0 {
            // SAFETY: a block is there.
            let put = unsafe { libc::write(to, block.as_ptr().cast(), BLOCK.min(left)) };
            match usize::try_from(put) {
                Ok(put) if put > 0 => left -= put,
                _ => return Err(super::kernel::error("the other side does not read")),
            }
        }
        match take(answer) {
            true => Ok(Fenced::after().wrapping_sub(begin)),
            false => Err(why("the other side did not acknowledge the data")),
        }
    })
}
