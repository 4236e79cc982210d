//! Compiles the contract: descriptors (as bytes, which keep every option), prost messages, their JSON form,
//! and one row per rpc: `Operation`, or `StreamingOperation` when it streams. Needs no protoc.

use std::{env, fmt::Write, fs, path::PathBuf};

use prost_reflect::prost_types::FileDescriptorSet;

use crate::workload::workload;

#[path = "src/workload.rs"]
mod workload;

const FILES: [&str; 7] = [
    "api/v2/common.proto",
    "api/v2/edge.proto",
    "api/v2/export.proto",
    "api/v2/node_info.proto",
    "api/v2/query.proto",
    "api/v2/tx_relay.proto",
    "google/rpc/status.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed=src/workload.rs");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true).open_files(FILES)?;
    let encoded = compiler.encode_file_descriptor_set();
    fs::write(out.join("contract.bin"), &encoded)?;

    let descriptors: FileDescriptorSet = compiler.file_descriptor_set();
    fs::write(out.join("operations.rs"), operations(&descriptors)?)?;
    prost_build::Config::new().bytes(["."]).compile_fds(descriptors)?;
    pbjson_build::Builder::new()
        .register_descriptors(&encoded)?
        .emit_fields()
        .ignore_unknown_fields()
        .build(&[".api.v2"])?;
    Ok(())
}

/// One `impl Operation` per unary rpc, one `impl StreamingOperation` per stream, which has no reply message.
fn operations(descriptors: &FileDescriptorSet) -> Result<String, std::fmt::Error> {
    let mut code = String::new();
    let services =
        descriptors.file.iter().filter(|file| file.package() == "api.v2").flat_map(|file| &file.service);
    for service in services {
        for method in &service.method {
            let message = |name: &str| name.trim_start_matches(".api.v2.").to_owned();
            let (operation, reply) = match method.server_streaming() {
                true => ("StreamingOperation", String::new()),
                false => ("Operation", format!("    type Reply = v2::{};\n", message(method.output_type()))),
            };
            writeln!(
                code,
                "impl {operation} for v2::{input} {{\n{reply}    const WORKLOAD: &'static str = \"{workload}\";\n    const NAME: &'static str = \"{name}\";\n}}",
                input = message(method.input_type()),
                workload = workload(service.name()),
                name = method.name(),
            )?;
        }
    }
    Ok(code)
}
