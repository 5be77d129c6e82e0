//! Tables for other programs, as RFC 4180 has them but with the line ends of this system.
//!
//! Labels and names come from outside. Those who look at such a file in a terminal must not see
//! what was never written, so what a terminal would obey is made visible, and a row is one line.

use tare_host::visible_in_line;

/// Writes a table: its head, `a,b,c`, then rows of as many fields. What needs quotes gets them.
///
/// # Panics
///
/// If a row has more or fewer fields than the head, which is a defect.
pub fn table<R: IntoIterator<Item = String>>(
    head: &str,
    rows: impl IntoIterator<Item = R>,
) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record(head.split(','))
        .expect("memory takes all");
    for row in rows {
        let row = row.into_iter();
        let row = row.map(|field| visible_in_line(&field).into_owned());
        writer.write_record(row).expect("a field for each column");
    }
    let bytes = writer.into_inner().expect("memory takes all");
    String::from_utf8(bytes).expect("heads and fields are text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_line_of_text() {
        let row = ["a\n\rb", "\u{1b}[31m\u{202e}\u{2028}\"ü\""].map(str::to_owned);
        assert_eq!(
            table("x,y", [row]),
            "x,y\na\\n\\u000db,\"\\u001b[31m\\u202e\\u2028\"\"ü\"\"\"\n"
        );
    }
}
