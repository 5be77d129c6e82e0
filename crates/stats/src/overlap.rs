//! Which gaps hold given spans of time.
//!
//! A load that knows when it ran gives the detector a check from outside: a thread that took the CPU
//! writes down the time stamps between which it had it, and the gaps that hold those spans must add
//! up to its own CPU time. A gap is longer than the span inside it, by two context switches.

use crate::error::StatsError;
use crate::trace::Gap;

/// A stretch of time from `start` to just before `end`, on the time stamp counter.
///
/// The counter may wrap in between. A span of no length is the moment `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Time stamp counter at its start.
    pub start: u64,
    /// Time stamp counter at its end.
    pub end: u64,
}

/// How gaps and spans coincide. Spans that touch or overlap each other count as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// Sum of the whole lengths of the gaps that share time with at least one span, in cycles.
    pub gap_cycles: u128,
    /// Number of spans that share no time with any gap.
    pub missed_spans: u64,
}

/// Finds the gaps that share time with given spans, in any order.
///
/// All time stamps must lie within 2^63 cycles of the first gap, which is decades. O(n log n).
///
/// # Errors
///
/// [`StatsError::Span`] if a span ends before it starts.
pub fn overlap(gaps: &[Gap], spans: &[Span]) -> Result<Overlap, StatsError> {
    // Times are signed distances from one of them, so that the counter's wrap disappears.
    let first_gap = gaps.first().map(|gap| gap.start);
    let Some(origin) = first_gap.or(spans.first().map(|span| span.start)) else {
        return Ok(Overlap::default());
    };
    let spans = joined(spans, origin)?;
    let mut gaps: Vec<Stretch> = gaps
        .iter()
        .map(|gap| Stretch::new(gap.start, gap.length, origin))
        .collect();
    gaps.sort_unstable_by_key(|gap| gap.start);

    let mut gap_cycles = 0;
    let mut touched = vec![false; spans.len()];
    let mut first_open = 0;
    for gap in &gaps {
        while spans
            .get(first_open)
            .is_some_and(|span| span.is_over_before(gap))
        {
            first_open += 1;
        }
        let mut meets = false;
        let open = spans.iter().zip(&mut touched).skip(first_open);
        for (_, touched) in open.take_while(|(span, _)| span.start < gap.end) {
            (meets, *touched) = (true, true);
        }
        if meets {
            gap_cycles += gap.end.abs_diff(gap.start);
        }
    }
    let missed_spans = touched.iter().filter(|&&touched| !touched).count() as u64;
    Ok(Overlap {
        gap_cycles,
        missed_spans,
    })
}

/// A stretch of time relative to a common origin; the end is outside and never before the start.
#[derive(Clone, Copy)]
struct Stretch {
    start: i128,
    end: i128,
}

impl Stretch {
    fn new(start: u64, length: u64, origin: u64) -> Self {
        let start = i128::from(start.wrapping_sub(origin).cast_signed());
        Self {
            start,
            end: start + i128::from(length),
        }
    }

    /// Says whether a span shares no time with this gap or later ones.
    fn is_over_before(&self, gap: &Self) -> bool {
        self.end <= gap.start && self.start < gap.start
    }
}

/// Sorts spans and joins those that touch.
fn joined(spans: &[Span], origin: u64) -> Result<Vec<Stretch>, StatsError> {
    let mut stretches = Vec::with_capacity(spans.len());
    for (position, span) in spans.iter().enumerate() {
        let length = span.end.wrapping_sub(span.start);
        if length >= 1 << 63 {
            return Err(StatsError::Span { position });
        }
        stretches.push(Stretch::new(span.start, length, origin));
    }
    stretches.sort_unstable_by_key(|span| span.start);
    stretches.dedup_by(|next, kept| {
        let touches = next.start <= kept.end;
        if touches {
            kept.end = kept.end.max(next.end);
        }
        touches
    });
    Ok(stretches)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(start: u64, length: u64) -> Gap {
        Gap {
            index: 0,
            start,
            length,
        }
    }

    fn span(start: u64, end: u64) -> Span {
        Span { start, end }
    }

    #[test]
    fn gaps_that_hold_spans_are_summed_whole_and_once() {
        let gaps = [gap(100, 50), gap(200, 50), gap(300, 50)];
        // Two spans in one gap, one across the edge of another, one between gaps.
        let spans = [
            span(310, 360),
            span(105, 110),
            span(120, 130),
            span(260, 270),
        ];
        let expected = Overlap {
            gap_cycles: 100,
            missed_spans: 1,
        };
        assert_eq!(overlap(&gaps, &spans).unwrap(), expected);
    }

    #[test]
    fn a_span_across_several_gaps_meets_all_of_them() {
        let gaps = [gap(100, 50), gap(150, 50), gap(300, 50)];
        let found = overlap(&gaps, &[span(0, 1_000)]).unwrap();
        assert_eq!((found.gap_cycles, found.missed_spans), (150, 0));
    }

    #[test]
    fn ends_are_outside() {
        let gaps = [gap(100, 50)];
        for (spans, gaps_met) in [
            ([span(90, 100)], 0),
            ([span(150, 160)], 0),
            ([span(90, 101)], 1),
            ([span(149, 160)], 1),
            ([span(100, 100)], 1),
            ([span(149, 149)], 1),
            ([span(150, 150)], 0),
            ([span(99, 99)], 0),
        ] {
            let found = overlap(&gaps, &spans).unwrap();
            assert_eq!(found.gap_cycles, 50 * gaps_met, "{spans:?}");
        }
    }

    #[test]
    fn spans_that_overlap_each_other_count_once() {
        let spans = [span(10, 30), span(20, 40), span(40, 50)];
        let found = overlap(&[gap(0, 1_000)], &spans).unwrap();
        assert_eq!((found.gap_cycles, found.missed_spans), (1_000, 0));
        assert_eq!(overlap(&[], &spans).unwrap().missed_spans, 1);
    }

    #[test]
    fn the_counters_wrap_changes_nothing() {
        let gaps = [gap(100, 50), gap(200, 50), gap(300, 50)];
        let spans = [span(90, 110), span(240, 320), span(500, 600)];
        let plain = overlap(&gaps, &spans).unwrap();
        for shift in [
            u64::MAX - 90,
            u64::MAX - 120,
            u64::MAX - 210,
            u64::MAX - 550,
        ] {
            let moved_gaps = gaps.map(|g| gap(g.start.wrapping_add(shift), g.length));
            let moved_spans =
                spans.map(|s| span(s.start.wrapping_add(shift), s.end.wrapping_add(shift)));
            assert_eq!(overlap(&moved_gaps, &moved_spans).unwrap(), plain);
        }
    }

    #[test]
    fn nothing_overlaps_nothing() {
        assert_eq!(overlap(&[], &[]).unwrap(), Overlap::default());
        assert_eq!(overlap(&[gap(1, 1)], &[]).unwrap(), Overlap::default());
    }

    #[test]
    fn a_span_that_ends_before_it_starts_is_refused() {
        let refused = overlap(&[gap(1, 1)], &[span(1, 2), span(9, 5)]);
        assert_eq!(refused, Err(StatsError::Span { position: 1 }));
    }
}
