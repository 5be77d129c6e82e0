//! The JSON files: plan, machine, cells.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::model::{OLDEST_SCHEMA, SCHEMA};

/// Says why a JSON file cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// Its schema is none that this crate reads.
    OtherSchema {
        found: u32,
        written_by: Option<String>,
    },
    /// It is damaged.
    Broken(String),
}

impl Unusable {
    /// Says the same as the reason of a damage.
    pub(crate) fn reason(self) -> String {
        match self {
            Self::OtherSchema { found, .. } => {
                format!(
                    "has version {found} of the schema, this tare reads {OLDEST_SCHEMA} to {SCHEMA}"
                )
            }
            Self::Broken(reason) => reason,
        }
    }
}

/// Reads only what every version of every file has.
#[derive(Deserialize)]
struct Version {
    schema: u32,
    tare_version: Option<String>,
}

/// Writes a record as JSON, indented or in one line, and makes sure that it reads back as the same.
///
/// JSON has no infinity and no NaN, and would hold null in their place.
pub(crate) fn encode<T>(record: &T, is_indented: bool) -> Result<Vec<u8>, String>
where
    T: Serialize + DeserializeOwned + PartialEq,
{
    let written = match is_indented {
        true => serde_json::to_vec_pretty(record),
        false => serde_json::to_vec(record),
    };
    let mut content = written.map_err(|error| error.to_string())?;
    content.push(b'\n');
    match serde_json::from_slice::<T>(&content) {
        Ok(same) if same == *record => Ok(content),
        _ => Err("one of its figures is infinite or not a number".to_owned()),
    }
}

/// Reads a record, its version first: another schema must not be reported as damage.
pub(crate) fn decode<T: DeserializeOwned>(content: &[u8]) -> Result<T, Unusable> {
    let broken = |error: serde_json::Error| Unusable::Broken(format!("is damaged: {error}"));
    let version: Version = serde_json::from_slice(content).map_err(broken)?;
    if version.schema == 0 {
        let reason = "is damaged: there never was a version 0 of the schema";
        return Err(Unusable::Broken(reason.to_owned()));
    }
    if !(OLDEST_SCHEMA..=SCHEMA).contains(&version.schema) {
        return Err(Unusable::OtherSchema {
            found: version.schema,
            written_by: version.tare_version,
        });
    }
    serde_json::from_slice(content).map_err(broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Figures {
        schema: u32,
        hz: f64,
        ppm: Option<f64>,
    }

    fn figures(hz: f64, ppm: Option<f64>) -> Figures {
        let schema = SCHEMA;
        Figures { schema, hz, ppm }
    }

    #[test]
    fn figures_keep_their_last_bit() {
        // Read back without care, this one changes.
        let made = figures(5.100_000_000_000_001e-250, Some(0.1 + 0.2));
        let content = encode(&made, true).unwrap();
        assert!(content.ends_with(b"}\n"));
        assert_eq!(decode::<Figures>(&content).unwrap(), made);
    }

    #[test]
    fn what_json_cannot_hold_is_refused() {
        assert!(encode(&figures(f64::NAN, None), true).is_err());
        assert!(encode(&figures(1.0, Some(f64::INFINITY)), true).is_err());
    }

    #[test]
    fn another_schema_is_not_damage() {
        for schema in [1, 99] {
            let other =
                format!(r#"{{"schema": {schema}, "tare_version": "9.0.0", "all": "different"}}"#);
            let found = decode::<Figures>(other.as_bytes()).unwrap_err();
            let written_by = Some("9.0.0".to_owned());
            assert_eq!(
                found,
                Unusable::OtherSchema {
                    found: schema,
                    written_by
                }
            );
        }
    }

    #[test]
    fn damage_says_where() {
        let content = encode(&figures(1.0, None), true).unwrap();
        let Unusable::Broken(reason) = decode::<Figures>(&content[..20]).unwrap_err() else {
            panic!("damage expected");
        };
        assert!(reason.contains("line 3"), "{reason}");
        assert!(matches!(
            decode::<Figures>(b"{\"schema\": 0}"),
            Err(Unusable::Broken(_))
        ));
    }
}
