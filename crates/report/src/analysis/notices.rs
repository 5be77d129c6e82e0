//! Remarks that agents and loads made, each told once.
//!
//! The same remark often holds a measured figure, which is another one in each cell. A reader wants the remark and the
//! range, not one line for each cell.

use super::summary::Notice;

/// Are the units behind which a number is a measured one. Other numbers are names: of phases, processes, options.
const UNITS: [&str; 8] = ["ns", "µs", "us", "ms", "s", "%", "KiB", "MiB"];

/// Joins remarks that differ in measured figures only, and tells the range of these. A remark stands where the first of
/// its kind stood.
pub(super) fn join(notices: Vec<Notice>) -> Vec<Notice> {
    let mut kinds: Vec<Kind> = Vec::new();
    for notice in notices {
        let (words, figures) = split(&notice.text);
        match kinds.iter_mut().find(|kind| kind.words == words) {
            Some(kind) => kind.add(figures, &notice.cells),
            None => kinds.push(Kind {
                words,
                ranges: figures.into_iter().map(|f| (f.clone(), f)).collect(),
                cells: notice.cells,
            }),
        }
    }
    kinds.into_iter().map(Kind::notice).collect()
}

/// Is a measured figure as it was written.
#[derive(Clone, Debug, PartialEq)]
struct Figure {
    text: String,
    value: f64,
}

/// Holds remarks that differ in their figures only.
struct Kind {
    /// Its words; None stands for a figure.
    words: Vec<Option<String>>,
    /// The lowest and the highest of each figure.
    ranges: Vec<(Figure, Figure)>,
    cells: Vec<u32>,
}

impl Kind {
    fn add(&mut self, figures: Vec<Figure>, cells: &[u32]) {
        for ((low, high), figure) in self.ranges.iter_mut().zip(figures) {
            if figure.value < low.value {
                *low = figure;
            } else if figure.value > high.value {
                *high = figure;
            }
        }
        self.cells.extend(cells);
        self.cells.sort_unstable();
        self.cells.dedup();
    }

    fn notice(self) -> Notice {
        let mut ranges = self.ranges.into_iter();
        let words = self.words.into_iter().map(|word| match word {
            Some(word) => word,
            None => ranges.next().map_or_else(String::new, |(low, high)| {
                match low.value == high.value {
                    true => low.text,
                    false => format!("{} to {}", low.text, high.text),
                }
            }),
        });
        Notice {
            text: words.collect::<Vec<_>>().join(" "),
            cells: self.cells,
        }
    }
}

/// Splits a remark into words and figures.
fn split(text: &str) -> (Vec<Option<String>>, Vec<Figure>) {
    let mut words = Vec::new();
    let mut figures = Vec::new();
    let mut rest = text.split(' ').peekable();
    while let Some(word) = rest.next() {
        let unit = rest
            .peek()
            .map(|next| next.trim_end_matches([',', ';', '.', ')', ':']).to_owned());
        let is_measured = unit.is_some_and(|unit| UNITS.contains(&unit.as_str()));
        match word.replace(',', "").parse::<f64>() {
            Ok(value) if is_measured && value.is_finite() => {
                words.push(None);
                figures.push(Figure {
                    text: word.to_owned(),
                    value,
                });
            }
            _ => words.push(Some(word.to_owned())),
        }
    }
    (words, figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(texts: &[&str]) -> Vec<(String, Vec<u32>)> {
        let notices = texts.iter().zip(1..).map(|(text, cell)| Notice {
            text: (*text).to_owned(),
            cells: vec![cell],
        });
        let joined = join(notices.collect());
        joined.into_iter().map(|n| (n.text, n.cells)).collect()
    }

    #[test]
    fn remarks_that_differ_in_a_measured_figure_are_one_with_a_range() {
        assert_eq!(
            joined(&[
                "phase 2 (idle) began 96 ms late, because of ping",
                "the same",
                "phase 2 (idle) began 1,794 ms late, because of ping",
                "phase 0 (idle) began 38 ms late, because of ping",
                "phase 2 (idle) began 9.5 ms late, because of ping",
                "the same",
            ]),
            [
                (
                    "phase 2 (idle) began 9.5 to 1,794 ms late, because of ping".to_owned(),
                    vec![1, 3, 5]
                ),
                ("the same".to_owned(), vec![2, 6]),
                (
                    "phase 0 (idle) began 38 ms late, because of ping".to_owned(),
                    vec![4]
                ),
            ]
        );
    }

    #[test]
    fn names_and_other_units_are_no_figures() {
        let texts = [
            "it ended with status 3",
            "it ended with status 4",
            "after 3 s",
            "after 3 ms",
        ];
        assert_eq!(joined(&texts).len(), 4);
        assert_eq!(
            joined(&["takes 5 ns: much", "takes 7 ns: much"]),
            [("takes 5 to 7 ns: much".to_owned(), vec![1, 2])]
        );
    }
}
