//! Tables for other programs, as RFC 4180 has them but with the line ends of this system.

/// Writes a table: its head, `a,b,c`, then rows of as many fields. What needs quotes gets them.
///
/// # Panics
///
/// If a row has more or fewer fields than the head, which is a defect.
#[must_use]
pub fn table<R: IntoIterator<Item = String>>(
    head: &str,
    rows: impl IntoIterator<Item = R>,
) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record(head.split(','))
        .expect("memory takes all");
    for row in rows {
        writer.write_record(row).expect("a field for each column");
    }
    let bytes = writer.into_inner().expect("memory takes all");
    String::from_utf8(bytes).expect("heads and fields are text")
}
