//! Compiles the Protobuf schemas, without protoc.

use std::error::Error;

const SCHEMAS: [&str; 4] = ["status.proto", "rebalance.proto", "dead_letter.proto", "group.proto"];

/// Fields that are not written as the numbers that they are, and what writes them (`src/schemas/json.rs`).
const IN_JSON: [(&str, &str); 4] = [
    (".troupe.status.v1.Session.state", "session_state"),
    (".troupe.status.v1.Session.id", "session_id"),
    (".troupe.status.v1.HealthStatus.state", "health_state"),
    (".troupe.rebalance.v1.RebalanceTrace.outcome", "outcome"),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=schemas");
    let descriptors = protox::compile(SCHEMAS, ["schemas"])?;
    let mut config = prost_build::Config::new();
    // records hand out slices of what was fetched; `Bytes` takes them without a copy
    config.bytes(["."]).message_attribute(".", if_serde("derive(serde::Serialize)"));
    for (field, writer) in IN_JSON {
        let attribute = format!("serde(serialize_with = \"crate::schemas::json::{writer}\")");
        config.field_attribute(field, if_serde(&attribute));
    }
    config.compile_fds(descriptors)?;
    Ok(())
}

fn if_serde(attribute: &str) -> String {
    format!("#[cfg_attr(feature = \"serde\", {attribute})]")
}
