//! The documented schemas of `summary.json`, of what stories add to it, and of comparisons are
//! those of the types.
//!
//! `UPDATE_SCHEMA=1 cargo test -p tare-experiments --test it schema` regenerates them.

use std::fs;
use std::path::Path;

#[test]
fn the_documented_schemas_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    for (name, schema) in [
        ("summary.schema.json", tare_figures::json::schema()),
        ("comparison.schema.json", tare_figures::compare::schema()),
        ("noise.schema.json", tare_experiments::noise::schema()),
        (
            "wakeup.schema.json",
            schemars::schema_for!(tare_experiments::wakeup::WakeupStory),
        ),
    ] {
        let path = folder.join(name);
        let made = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
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
}
