//! Many dots in few bytes, without losing the highest of any column.
//!
//! Dots that would overlap on the page are joined to one stroke. That loses nothing that could be
//! seen. Only if the path is still too long are dots snapped to coarser rows; the highest of each
//! column keeps its place whatever happens.

use super::path::Path;

/// The height of a row of dots in pixels at first: less than a dot, so that neighbours overlap.
const FINEST: f64 = 1.0;
/// The height beyond which rows do not grow: a picture then has some dozens.
const COARSEST: f64 = 16.0;

/// Draws dots at (x, y) with y growing downwards into at most about `budget` bytes.
pub fn scatter(mut dots: Vec<(f64, f64)>, budget: usize) -> Path {
    dots.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut row = FINEST;
    loop {
        let path = strokes(&dots, row);
        if path.data().len() <= budget || row >= COARSEST {
            return path;
        }
        row *= 2.0;
    }
}

/// Joins the dots of each column that are at most a row apart.
fn strokes(dots: &[(f64, f64)], row: f64) -> Path {
    let mut path = Path::default();
    for column in dots.chunk_by(|a, b| a.0 == b.0) {
        let x = column[0].0;
        let mut rest = column
            .iter()
            .map(|dot| dot.1)
            .enumerate()
            .map(|(place, y)| {
                // The first is the highest.
                if place == 0 || row == FINEST {
                    y
                } else {
                    ((y / row).round() * row).max(column[0].1)
                }
            });
        let Some(mut top) = rest.next() else { continue };
        let mut bottom = top;
        for y in rest {
            if y - bottom > row {
                path.stroke(x, top, bottom - top);
                top = y;
            }
            bottom = bottom.max(y);
        }
        path.stroke(x, top, bottom - top);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_dots_are_one_stroke() {
        let path = scatter(
            vec![(5.0, 10.0), (5.0, 10.5), (5.0, 11.4), (5.0, 20.0)],
            1_000,
        );
        assert_eq!(path.data(), "M5 10v1.4m0 8.6v0");
    }

    #[test]
    fn the_highest_dot_of_every_column_keeps_its_place() {
        let mut random = fastrand::Rng::with_seed(3);
        let dots: Vec<(f64, f64)> = (0..100_000)
            .map(|_| (f64::from(random.u32(..100)), random.f64() * 300.0))
            .collect();
        let mut highest = [300.0_f64; 100];
        for (x, y) in &dots {
            highest[*x as usize] = highest[*x as usize].min(*y);
        }
        let path = scatter(dots, 20_000);
        assert!(path.data().len() <= 20_000, "{}", path.data().len());
        for (x, y) in drawn(path.data()) {
            let column = &mut highest[x as usize];
            if (*column - y).abs() < 0.051 {
                *column = f64::NAN;
            }
        }
        assert!(highest.iter().all(|y| y.is_nan()));
    }

    /// Reads back where strokes begin.
    fn drawn(data: &str) -> Vec<(f64, f64)> {
        let (mut x, mut y) = (0.0, 0.0);
        let mut starts = Vec::new();
        for piece in data.split_inclusive('v').flat_map(|p| p.split(['M', 'm'])) {
            let piece = piece.trim_end_matches('v');
            let spaced = piece.replace('-', " -");
            let numbers: Vec<f64> = spaced
                .split_whitespace()
                .map(|n| n.parse().unwrap())
                .collect();
            match numbers[..] {
                [down] => y += down,
                [dx, dy] => {
                    x += dx;
                    y += dy;
                    starts.push((x, y));
                }
                _ => assert!(numbers.is_empty()),
            }
        }
        starts
    }
}
