//! The JSON Schemas in docs/schema are those of the types.

use std::fs;
use std::path::Path;

use serde_json::Value;

#[test]
fn documented_schemas_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    let update = std::env::var_os("UPDATE_SCHEMA").is_some();
    for (name, schema) in tare_results::schemas() {
        let path = folder.join(name);
        if update {
            let mut text = serde_json::to_string_pretty(&schema).unwrap();
            text.push('\n');
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, text).unwrap();
        }
        // Compared as values: the order of keys has no meaning.
        let documented = fs::read_to_string(&path).unwrap_or_default();
        let documented: Value = serde_json::from_str(&documented).unwrap_or_default();
        assert!(
            documented == *schema.as_value(),
            "docs/schema/{name} is out of date; regenerate it with \
             `UPDATE_SCHEMA=1 cargo test -p tare-results --test it schema`, and raise \
             tare_results::model::SCHEMA if a reader of the old version would misread the new one"
        );
    }
}
