//! A thumbnail: decodes a picture and scales it down, as an image service does for each request.
//!
//! The picture, 256 × 256 pixels in three colours, is part of the program, so that no file system
//! is measured. The decoder is the crate `minipng`, which allocates nothing, so the unikernel runs
//! the same code.

use minipng::decode_png;

/// The picture.
const PICTURE: &[u8] = include_bytes!("picture.png");

/// The length of its sides in pixels, and of the thumbnail's.
const SIDE: usize = 256;
const SMALL: usize = 64;

/// Bytes per pixel.
const COLOURS: usize = 3;

/// The buffer size for decoding: the lines of the picture, each with a byte for its filter.
pub(super) const ROOM: usize = SIDE * (SIDE * COLOURS + 1);

/// The result of [`checksum`] for the picture, computed by another program.
pub(super) const KNOWN: u32 = 0x75e0_cf66;

/// Decodes the picture, scales it down, and returns the CRC-32 of the thumbnail's pixels; 0 if the
/// buffer is too small.
pub(super) fn checksum(room: &mut [u8]) -> u32 {
    let Ok(picture) = decode_png(PICTURE, room) else {
        return 0;
    };
    crc32(thumbnail(picture.pixels()))
}

/// Returns the bytes of the thumbnail: each pixel is the mean of a square of the picture.
fn thumbnail(pixels: &[u8]) -> impl Iterator<Item = u8> {
    const EDGE: usize = SIDE / SMALL;
    let places = (0..SMALL * SMALL * COLOURS).map(|place| {
        let (pixel, colour) = (place / COLOURS, place % COLOURS);
        (pixel / SMALL, pixel % SMALL, colour)
    });
    places.map(|(row, column, colour)| {
        let square = (0..EDGE * EDGE).map(|at| {
            let (y, x) = (row * EDGE + at / EDGE, column * EDGE + at % EDGE);
            u32::from(pixels[(y * SIDE + x) * COLOURS + colour])
        });
        (square.sum::<u32>() / (EDGE * EDGE) as u32) as u8
    })
}

/// Returns the CRC-32 of ISO 3309, as used by PNG.
fn crc32(bytes: impl Iterator<Item = u8>) -> u32 {
    let crc = bytes.fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 * (crc & 1))
        })
    });
    !crc
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    #[test]
    fn the_sum_is_the_known_one() {
        assert_eq!(crc32(b"123456789".iter().copied()), 0xcbf4_3926);
        assert_eq!(checksum(&mut vec![0; ROOM]), KNOWN);
        assert_eq!(checksum(&mut vec![0; ROOM / 2]), 0);
    }
}
