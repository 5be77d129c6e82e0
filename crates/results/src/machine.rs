//! `machine.json`: what the run was made on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tare_host::{Finding, Machine};

use crate::model::SCHEMA;

/// `machine.json`: the machine as it was when the run was created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineRecord {
    /// Version of the schema, [`SCHEMA`].
    pub schema: u32,
    /// The machine.
    pub machine: Machine,
    /// What disturbed measuring on it.
    pub findings: Vec<Finding>,
}

impl MachineRecord {
    /// Makes the record of a machine in the current version of the schema.
    pub fn new(machine: Machine, findings: Vec<Finding>) -> Self {
        Self {
            schema: SCHEMA,
            machine,
            findings,
        }
    }
}
