//! A plot: axes around an area, and what is drawn into it.

use std::fmt::Write;

use super::path::{Path, escape, number};
use super::scale::Scale;

/// The width of a plot in its own pixels; the page scales it.
const WIDTH: f64 = 860.0;
/// The width of one of two plots side by side.
const HALF: f64 = 424.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 66.0;
/// The room at the right for the last label of the axis below.
const NO_AXIS: f64 = 24.0;
const BOTTOM: f64 = 44.0;
const TOP: f64 = 28.0;
const TOP_WITH_AXIS: f64 = 46.0;

/// The height of a line of text, and the room that a label keeps to its mark, in pixels.
const LINE: f64 = 13.0;
const BESIDE: f64 = 7.0;

/// A side of the plot that an axis is drawn at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Beside it, on the left.
    Left,
    /// Beside it, on the right.
    Right,
    /// Below it.
    Bottom,
    /// Above it.
    Top,
}

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    pub value: f64,
    pub label: String,
}

/// An axis with its marks.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Where it stands.
    pub side: Side,
    /// The meaning of its places.
    pub scale: Scale,
    /// The text.
    pub title: String,
    /// Its marks.
    pub ticks: Vec<Tick>,
}

impl Axis {
    /// Makes an axis with a label at each of the figures.
    pub fn new(
        side: Side,
        scale: Scale,
        title: impl Into<String>,
        figures: impl IntoIterator<Item = f64>,
        label: impl Fn(f64) -> String,
    ) -> Self {
        let tick = |value| Tick {
            value,
            label: label(value),
        };
        Self {
            side,
            scale,
            title: title.into(),
            ticks: figures.into_iter().map(tick).collect(),
        }
    }
}

/// A plot under construction.
#[derive(Debug)]
pub struct Plot {
    width: f64,
    height: f64,
    top: f64,
    left: f64,
    right: f64,
    description: String,
    axes: Vec<Axis>,
    content: String,
    /// Where texts are.
    texts: Vec<Area>,
    /// The same for narrow screens.
    narrow: Option<Box<Plot>>,
}

/// A rectangle: its left, upper, right and lower edge.
#[derive(Clone, Copy, Debug)]
struct Area([f64; 4]);

impl Area {
    /// Returns what a text covers that begins at a point of its baseline.
    fn of_text((x, y): (f64, f64), text: &str) -> Self {
        Self([x, y - LINE + 3.0, x + width_of(text), y + 3.0])
    }

    fn meets(self, Self([left, top, right, bottom]): Self) -> bool {
        let Self(own) = self;
        own[0] < right && left < own[2] && own[1] < bottom && top < own[3]
    }

    fn is_within(self, Self([left, top, right, bottom]): Self) -> bool {
        let Self(own) = self;
        own[0] >= left && own[1] >= top && own[2] <= right && own[3] <= bottom
    }
}

/// Estimates the width of a text in pixels. Without a script the reader's font is unknown: it is
/// taken as wide as in DejaVu Sans, the widest of the usual ones.
pub fn width_of(text: &str) -> f64 {
    let em = |c| match c {
        '\u{202f}' => 0.2,
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | ' ' | '\u{a0}' => 0.33,
        'f' | 't' | 'r' | '(' | ')' | '-' | '/' | '·' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '=' | '±' | '…' => 0.98,
        _ => 0.64,
    };
    text.chars().map(em).sum::<f64>() * 12.0
}

/// Shortens a text to a width in pixels by what is in its middle, since targets differ at their
/// ends.
pub fn cut(text: &str, room: f64) -> String {
    if width_of(text) <= room {
        return text.to_owned();
    }
    let all: Vec<char> = text.chars().collect();
    let mut left = room - width_of("…");
    if left < 0.0 {
        return String::new();
    }
    // From both ends in turn.
    let in_turn = (0..all.len()).take_while(|turn| {
        let place = match turn % 2 {
            0 => turn / 2,
            _ => all.len() - 1 - turn / 2,
        };
        left -= width_of(all[place].encode_utf8(&mut [0; 4]));
        left >= 0.0
    });
    let kept = in_turn.count();
    let (head, tail) = (&all[..kept.div_ceil(2)], &all[all.len() - kept / 2..]);
    head.iter().chain(['…'].iter()).chain(tail).collect()
}

impl Plot {
    /// Starts a plot of this height in pixels. The description is read to those who cannot see it.
    pub fn new(height: f64, description: impl Into<String>) -> Self {
        Self {
            width: WIDTH,
            height,
            top: TOP,
            left: LEFT,
            right: NO_AXIS,
            description: description.into(),
            axes: Vec::new(),
            content: String::new(),
            texts: Vec::new(),
            narrow: None,
        }
    }

    /// Starts a plot of rows that is `rows` pixels high without its axis below, with room for their
    /// names at the left; where these stand above their rows, a narrow one.
    pub fn rows(rows: f64, names: Option<f64>, description: impl Into<String>) -> Self {
        let plot = Self {
            top: 2.0,
            right: RIGHT,
            ..Self::new(rows + BOTTOM + 2.0, description)
        };
        match names {
            Some(left) => Self { left, ..plot },
            None => Self {
                width: HALF,
                left: NO_AXIS,
                right: NO_AXIS,
                ..plot
            },
        }
    }

    /// Draws a plot twice: as it is, and for narrow screens.
    pub fn twice(draw: impl Fn(bool) -> Self) -> Self {
        Self {
            narrow: Some(Box::new(draw(true))),
            ..draw(false)
        }
    }

    /// Starts a plot of strips that are `strips` pixels high together, without the axis below.
    pub fn strips(strips: f64, description: impl Into<String>) -> Self {
        let mut plot = Self::new(strips + BOTTOM + TOP, description);
        plot.top = TOP - 8.0;
        plot
    }

    /// Starts a plot that is half as wide, to stand next to another one.
    pub(crate) fn half(height: f64, description: impl Into<String>) -> Self {
        Self {
            width: HALF,
            ..Self::new(height, description)
        }
    }

    /// Draws a line across the area.
    pub fn rule(&mut self, y: f64) {
        let (left, right) = self.across();
        let mut rule = Path::default();
        rule.move_to(left, y);
        rule.line_to(right, y);
        self.path("grid", &rule);
    }

    /// Draws a limit upwards, with its text at its top.
    pub(crate) fn limit(&mut self, x: f64, text: &str) {
        let (bottom, top) = self.upwards();
        let mut line = Path::default();
        line.move_to(x, bottom);
        line.line_to(x, top);
        self.path("limit", &line);
        self.centred("interval", (x, top + 10.0), text);
    }

    /// Writes a text from a point on, shortened to the room that there is.
    pub fn text(&mut self, classes: &str, (x, y): (f64, f64), text: &str) {
        // Names of groups are bold.
        let text = cut(text, (self.width - x) / 1.1);
        self.texts.push(Area::of_text((x, y), &text));
        self.raw(&format!(
            "<text class=\"{classes}\" x=\"{}\" y=\"{}\">{}</text>",
            number(x),
            number(y),
            escape(&text)
        ));
    }

    /// Writes a text with its middle at a point, or as near as the names at the left allow.
    pub(crate) fn centred(&mut self, classes: &str, (x, y): (f64, f64), text: &str) {
        // Figures may be bold.
        let half = width_of(text) * 0.55;
        let x = x.clamp(self.left + half, (self.width - half).max(self.left + half));
        self.raw(&format!(
            "<text class=\"{classes}\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            number(x),
            number(y),
            escape(text)
        ));
    }

    /// Makes room for an axis at the top.
    pub fn with_top_axis(mut self) -> Self {
        self.top = TOP_WITH_AXIS;
        self
    }

    /// Makes room for an axis at the right.
    pub fn with_right_axis(mut self) -> Self {
        self.right = RIGHT;
        self
    }

    /// Returns left and right edge of the area.
    pub fn across(&self) -> (f64, f64) {
        (self.left, self.width - self.right)
    }

    /// Returns bottom and top edge of the area.
    pub fn upwards(&self) -> (f64, f64) {
        (self.height - BOTTOM, self.top)
    }

    /// Adds an axis.
    pub fn axis(&mut self, axis: Axis) {
        self.axes.push(axis);
    }

    /// Draws a path with these classes.
    pub fn path(&mut self, classes: &str, path: &Path) {
        if !path.is_empty() {
            self.raw(&format!(
                "<path class=\"{classes}\" d=\"{}\"/>",
                path.data()
            ));
        }
    }

    /// Draws a circle with these classes; `tooltip` is shown over it.
    pub fn circle(&mut self, classes: &str, (x, y): (f64, f64), radius: f64, tooltip: &str) {
        self.raw(&format!(
            "<circle class=\"{classes}\" cx=\"{}\" cy=\"{}\" r=\"{}\"><title>{}</title></circle>",
            number(x),
            number(y),
            number(radius),
            escape(tooltip)
        ));
    }

    /// Draws a diamond with these classes; `tooltip` is shown over it.
    pub(crate) fn diamond(
        &mut self,
        classes: &str,
        (x, y): (f64, f64),
        radius: f64,
        tooltip: &str,
    ) {
        let mut outline = Path::default();
        outline.move_to(x, y - radius);
        outline.line_to(x + radius, y);
        outline.line_to(x, y + radius);
        outline.line_to(x - radius, y);
        outline.close();
        self.raw(&format!(
            "<path class=\"{classes}\" d=\"{}\"><title>{}</title></path>",
            outline.data(),
            escape(tooltip)
        ));
    }

    /// Writes a text next to a point: where there is room, and no other text.
    pub fn label(&mut self, classes: &str, (x, y): (f64, f64), text: &str) {
        let ((left, right), (bottom, top)) = (self.across(), self.upwards());
        let inside = Area([left, top, right - 4.0, bottom]);
        // Labels may be bold.
        let width = width_of(text) * 1.1;
        let level = (y + 4.0).clamp(top + 10.0, bottom - 4.0);
        let places = [
            (x + BESIDE, level),
            (x - BESIDE - width, level),
            (x - width / 2.0, y - BESIDE - 2.0),
            (x - width / 2.0, y + BESIDE + 10.0),
            (x + BESIDE, y - BESIDE - 2.0),
            (x - BESIDE - width, y - BESIDE - 2.0),
            (x + BESIDE, y + BESIDE + 10.0),
            (x - BESIDE - width, y + BESIDE + 10.0),
        ];
        let covered = |at: (f64, f64)| Area([at.0, at.1 - 10.0, at.0 + width, at.1 + 3.0]);
        let fits = places.iter().copied().find(|at| {
            let own = covered(*at);
            own.is_within(inside) && !self.texts.iter().any(|text| own.meets(*text))
        });
        // Where no place is free, the one next to the point that stays inside.
        let [after, before, ..] = places;
        let other = if after.0 + width > inside.0[2] {
            before
        } else {
            after
        };
        let at = fits.unwrap_or(other);
        self.texts.push(covered(at));
        // The text keeps to its point whatever its width is.
        let (anchor, at_x) = match at.0 {
            from if from >= x => ("start", from),
            from if from + width <= x => ("end", from + width),
            from => ("middle", from + width / 2.0),
        };
        self.raw(&format!(
            "<text class=\"{classes}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            number(at_x),
            number(at.1),
            escape(text)
        ));
    }

    /// Draws a tile of a map, the stronger the larger a part from 0 to 1 is.
    pub fn tile(
        &mut self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        part: f64,
        tooltip: &str,
    ) {
        self.raw(&format!(
            "<rect class=\"tile\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill-opacity=\"{}\"><title>{}</title></rect>",
            number(x),
            number(y),
            number(width),
            number(height),
            number(part.clamp(0.0, 1.0) * 0.95 + 0.05),
            escape(tooltip)
        ));
    }

    /// Draws a rectangle over the height of the area.
    pub fn shade(&mut self, classes: &str, from: f64, to: f64) {
        let (bottom, top) = self.upwards();
        self.raw(&format!(
            "<rect class=\"{classes}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            number(from),
            number(top),
            number((to - from).max(0.0)),
            number(bottom - top)
        ));
    }

    /// Returns the markup.
    pub fn markup(&self) -> String {
        match &self.narrow {
            Some(narrow) => self.svg(" class=\"wide\"") + &narrow.svg(" class=\"narrow\""),
            None => self.svg(""),
        }
    }

    fn svg(&self, class: &str) -> String {
        let (width, height) = (number(self.width), number(self.height));
        let mut svg = format!(
            "<svg{class} viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\" aria-label=\"{}\">",
            escape(&self.description)
        );
        let (left, right) = self.across();
        let (bottom, top) = self.upwards();
        let mut grid = Path::default();
        for axis in self.axes.iter().filter(|axis| axis.side == Side::Left) {
            for tick in &axis.ticks {
                let y = axis.scale.at(tick.value);
                grid.move_to(left, y);
                grid.line_to(right, y);
            }
        }
        let mut frame = Path::default();
        frame.move_to(left, bottom);
        frame.line_to(right, bottom);
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"{}\"/><path class=\"frame\" d=\"{}\"/>",
            grid.data(),
            frame.data()
        );
        // Marks lie below what is drawn, texts above.
        let mut texts = String::new();
        for axis in &self.axes {
            self.draw(axis, (&mut svg, &mut texts), (left, right), (bottom, top));
        }
        svg + &self.content + &texts + "</svg>"
    }

    fn raw(&mut self, markup: &str) {
        self.content.push_str(markup);
    }

    /// Writes the marks of an axis into one string and its texts into another.
    fn draw(
        &self,
        axis: &Axis,
        (svg, texts): (&mut String, &mut String),
        (left, right): (f64, f64),
        (bottom, top): (f64, f64),
    ) {
        let mut marks = Path::default();
        let (mut free_from, mut before) = (f64::NEG_INFINITY, f64::INFINITY);
        texts.push_str("<g class=\"axis\">");
        for tick in &axis.ticks {
            let at = axis.scale.at(tick.value);
            let (x, y, anchor) = match axis.side {
                Side::Left | Side::Right => {
                    // A label that would touch the one before it is dropped.
                    if (before - at).abs() < LINE {
                        continue;
                    }
                    before = at;
                    match axis.side {
                        Side::Left => (left - 8.0, at + 4.0, "end"),
                        _ => (right + 8.0, at + 4.0, "start"),
                    }
                }
                Side::Bottom | Side::Top => {
                    let half = width_of(&tick.label) / 2.0;
                    let is_bottom = axis.side == Side::Bottom;
                    let (edge, end) = if is_bottom {
                        (bottom, bottom + 4.0)
                    } else {
                        (top, top - 4.0)
                    };
                    marks.move_to(at, edge);
                    marks.line_to(at, end);
                    // Likewise; its mark stays. The last one may not leave the picture.
                    let middle = at.min(self.width - half);
                    if middle - half < free_from {
                        continue;
                    }
                    free_from = middle + half + 4.0;
                    let y = if is_bottom { bottom + 17.0 } else { top - 8.0 };
                    (middle, y, "middle")
                }
            };
            let _ = write!(
                texts,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
                number(x),
                number(y),
                escape(&tick.label)
            );
        }
        if !marks.is_empty() {
            let _ = write!(svg, "<path class=\"frame\" d=\"{}\"/>", marks.data());
        }
        let (x, y, anchor) = match axis.side {
            Side::Left => (0.0, 12.0, "start"),
            Side::Right => (self.width, 12.0, "end"),
            Side::Bottom => ((left + right) / 2.0, bottom + 37.0, "middle"),
            Side::Top => {
                // Where the title of the axis at the left is long, it stands at the right.
                let mut lefts = self.axes.iter().filter(|axis| axis.side == Side::Left);
                let middle = (left + right) / 2.0;
                let from = middle - width_of(&axis.title);
                match lefts.any(|axis| width_of(&axis.title) > from) {
                    true => (self.width, 12.0, "end"),
                    false => (middle, 12.0, "middle"),
                }
            }
        };
        let _ = write!(
            texts,
            "<text class=\"title\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text></g>",
            number(x),
            number(y),
            escape(&axis.title)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_on_the_horizontal_axis_do_not_touch() {
        let mut plot = Plot::new(200.0, "test");
        let scale = Scale::linear((0.0, 100.0), plot.across());
        let figures = (0..=100).map(f64::from);
        plot.axis(Axis::new(Side::Bottom, scale, "x", figures, |v| {
            format!("{v} units")
        }));
        let labels = plot.markup().matches(" units</text>").count();
        assert!((5..=20).contains(&labels), "{labels}");
    }

    #[test]
    fn labels_on_an_upright_axis_do_not_touch() {
        let mut plot = Plot::new(100.0, "test");
        let scale = Scale::linear((0.0, 100.0), plot.upwards());
        let figures = (0..=100).map(f64::from);
        plot.axis(Axis::new(Side::Left, scale, "y", figures, |v| {
            format!("{v} units")
        }));
        let labels = plot.markup().matches(" units</text>").count();
        assert!((2..=3).contains(&labels), "{labels}");
    }

    #[test]
    fn a_label_at_the_right_edge_stays_inside() {
        let mut plot = Plot::new(200.0, "test");
        plot.label("peak", (820.0, 100.0), "183 µs");
        assert!(plot.content.contains("text-anchor=\"end\""));
    }

    #[test]
    fn a_label_goes_out_of_the_way_of_others() {
        let mut plot = Plot::new(200.0, "test");
        for number in 0..4 {
            plot.label("peak", (400.0, 100.0), &format!("{number}83 µs"));
        }
        for (place, own) in plot.texts.iter().enumerate() {
            let mut others = plot.texts[place + 1..].iter();
            assert!(!others.any(|other| own.meets(*other)), "{:?}", plot.texts);
        }
    }

    #[test]
    fn a_text_is_cut_where_the_picture_ends() {
        let long = "linux,kernel=debian,".repeat(12) + "run 3";
        let short = cut(&long, 300.0);
        assert!(short.starts_with("linux,kernel=") && short.ends_with("run 3"));
        assert!(width_of(&short) <= 300.0, "{short}");
        assert_eq!(cut("run 3", 300.0), "run 3");
        assert_eq!(cut("run 3", 1.0), "");
        assert_eq!(cut("mmmm", 3.1 * width_of("m")), "m…m");
        // A forged name takes no longer than its length.
        assert!(cut(&"x".repeat(5_000_000), 300.0).contains('…'));
        let mut plot = Plot::new(200.0, "test");
        plot.text("row", (76.0, 40.0), &long);
        assert!(plot.content.contains('…'));
    }
}
