//! Feeds the name server with queries, and compares its answers as the test `differential` of
//! tare-net does.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the test uses all of it")]
#[path = "../net/tests/oracle/mod.rs"]
mod oracle;

static ORACLE: LazyLock<oracle::Oracle> = LazyLock::new(oracle::Oracle::new);

fuzz_target!(|query: &[u8]| ORACLE.check(query));
