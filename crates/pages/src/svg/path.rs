//! Path data in few bytes: whole tenths of a pixel, relative to the point before.

use std::fmt::Write;

/// Builds the `d` attribute of a path.
#[derive(Clone, Debug, Default)]
pub struct Path {
    data: String,
    /// Where the pen is, in tenths of a pixel.
    at: (i64, i64),
}

impl Path {
    /// Lifts the pen and puts it down at a point.
    pub fn move_to(&mut self, x: f64, y: f64) {
        let to = (tenths(x), tenths(y));
        if self.data.is_empty() {
            self.push("M", &[to.0, to.1]);
        } else {
            self.push("m", &[to.0 - self.at.0, to.1 - self.at.1]);
        }
        self.at = to;
    }

    /// Draws a line to a point.
    pub fn line_to(&mut self, x: f64, y: f64) {
        let to = (tenths(x), tenths(y));
        let (dx, dy) = (to.0 - self.at.0, to.1 - self.at.1);
        match (dx, dy) {
            (0, 0) => {}
            (dx, 0) => self.push("h", &[dx]),
            (0, dy) => self.push("v", &[dy]),
            (dx, dy) => self.push("l", &[dx, dy]),
        }
        self.at = to;
    }

    /// Draws a line to a point, or begins there.
    pub fn go_to(&mut self, x: f64, y: f64) {
        match self.is_empty() {
            true => self.move_to(x, y),
            false => self.line_to(x, y),
        }
    }

    /// Draws a dot, which is a line of no length with round ends, or a vertical line.
    pub(crate) fn stroke(&mut self, x: f64, y: f64, down: f64) {
        self.move_to(x, y);
        let dy = tenths(y + down) - self.at.1;
        self.push("v", &[dy]);
        self.at.1 += dy;
    }

    /// Closes the outline.
    pub fn close(&mut self) {
        self.data.push('z');
    }

    /// Returns the path data.
    pub fn data(&self) -> &str {
        &self.data
    }

    /// Says whether nothing was drawn.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    fn push(&mut self, command: &str, tenths: &[i64]) {
        self.data.push_str(command);
        for (place, value) in tenths.iter().enumerate() {
            // A minus sign sets numbers apart by itself.
            if place > 0 && *value >= 0 {
                self.data.push(' ');
            }
            let sign = if *value < 0 { "-" } else { "" };
            let (whole, tenth) = (value.abs() / 10, value.abs() % 10);
            // Writing to a String cannot fail.
            let _ = match (whole, tenth) {
                (whole, 0) => write!(self.data, "{sign}{whole}"),
                (0, tenth) => write!(self.data, "{sign}.{tenth}"),
                (whole, tenth) => write!(self.data, "{sign}{whole}.{tenth}"),
            };
        }
    }
}

/// Writes a place on the page with at most one digit behind the point.
pub fn number(value: f64) -> String {
    let tenths = tenths(value);
    if tenths % 10 == 0 {
        (tenths / 10).to_string()
    } else {
        format!("{:.1}", tenths as f64 / 10.0)
    }
}

/// Makes a text safe within markup.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c => safe.push(c),
        }
    }
    safe
}

fn tenths(value: f64) -> i64 {
    (value * 10.0).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_relative_and_does_not_drift() {
        let mut path = Path::default();
        path.move_to(10.04, 20.0);
        path.line_to(10.5, 20.0);
        path.line_to(10.5, 19.7);
        path.line_to(12.0, 25.0);
        path.line_to(12.0, 25.0);
        path.close();
        assert_eq!(path.data(), "M10 20h.5v-.3l1.5 5.3z");
        let mut dots = Path::default();
        for step in 0..1_000 {
            dots.stroke(f64::from(step) * 0.333, 5.0, 0.0);
        }
        assert_eq!(dots.at, (3327, 50));
    }

    #[test]
    fn texts_are_safe() {
        assert_eq!(escape("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
        assert_eq!(number(12.0), "12");
        assert_eq!(number(12.34), "12.3");
    }
}
