//! `summary.json` and its schema.

use schemars::{Schema, schema_for};

use crate::analysis::Summary;
use crate::error::ReportError;

/// Writes the summary as indented JSON with a line feed at its end.
///
/// # Errors
///
/// [`ReportError::Json`] if it cannot be written, which would be a defect.
pub fn render(summary: &Summary) -> Result<String, ReportError> {
    let mut text = serde_json::to_string_pretty(summary)?;
    text.push('\n');
    Ok(text)
}

/// Returns the schema of `summary.json`.
#[must_use]
pub fn schema() -> Schema {
    schema_for!(Summary)
}
