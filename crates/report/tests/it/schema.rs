//! The documented schema of `summary.json` is the one of the types.
//!
//! `UPDATE_SCHEMA=1 cargo test -p tare-report --test it schema` writes it anew.

use std::fs;
use std::path::Path;

#[test]
fn the_documented_schema_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/summary.schema.json");
    let made = serde_json::to_string_pretty(&tare_report::json::schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "{} is out of date: repeat with UPDATE_SCHEMA=1 and look at the difference",
        path.display()
    );
    assert!(
        !made.contains("[`"),
        "Rust's links mean nothing to readers of a schema"
    );
}
