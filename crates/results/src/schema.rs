//! JSON Schemas of the JSON files, for those who read a run folder with other tools.
//!
//! They are made from the types themselves and kept in `docs/schema`; a test fails when they are
//! out of date.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use crate::machine::MachineRecord;
use crate::model::{Cell, Plan};

/// Returns the schema of each JSON file, with the name of the file in `docs/schema`.
pub fn schemas() -> [(&'static str, Schema); 3] {
    [
        ("plan.schema.json", schema_of::<Plan>()),
        ("machine.schema.json", schema_of::<MachineRecord>()),
        ("cell.schema.json", schema_of::<Cell>()),
    ]
}

fn schema_of<T: JsonSchema>() -> Schema {
    let mut schema = SchemaGenerator::default().into_root_schema_for::<T>();
    for (key, value) in schema.ensure_object() {
        unlink(key, value);
    }
    schema
}

/// Takes the brackets off Rust's links in descriptions: nobody can follow them there.
fn unlink(key: &str, value: &mut Value) {
    match value {
        Value::String(text) if key == "description" => {
            *text = text.replace("[`", "`").replace("`]", "`");
        }
        Value::Object(members) => {
            for (key, value) in members {
                unlink(key, value);
            }
        }
        Value::Array(items) => {
            for item in items {
                unlink("", item);
            }
        }
        _ => {}
    }
}
