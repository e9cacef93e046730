//! Compiles the Protobuf schemas, without protoc.

use std::error::Error;

const SCHEMAS: [&str; 3] = ["status.proto", "rebalance.proto", "dead_letter.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=schemas");
    let descriptors = protox::compile(SCHEMAS, ["schemas"])?;
    // records hand out slices of what was fetched; `Bytes` takes them without a copy
    prost_build::Config::new().bytes(["."]).compile_fds(descriptors)?;
    Ok(())
}
