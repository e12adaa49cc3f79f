//! Compiles the gRPC services, without a system `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed=../wire/proto");
    println!("cargo:rerun-if-changed=../../schemas/atp");
    #[cfg(feature = "grpc")]
    {
        let files =
            protox::compile(["proctor/ahp/v1/harness.proto", "grpc/health/v1/health.proto"], ["proto"])?;
        tonic_prost_build::configure().compile_fds(files)?;
        // The definition that other people generate their agents from.
        let files = protox::compile(["agent.proto"], ["../../schemas/atp/v1"])?;
        tonic_prost_build::configure().compile_fds(files)?;
        assembly()?;
    }
    Ok(())
}

/// The services of Agent Assembly; their messages are those of the wire crate.
#[cfg(feature = "grpc")]
fn assembly() -> Result<(), Box<dyn std::error::Error>> {
    let services = [
        "agent.proto",
        "approval.proto",
        "audit.proto",
        "invalidation.proto",
        "policy.proto",
        "topology.proto",
    ];
    let mut stubs = tonic_prost_build::configure().codec_path("crate::assembly::codec::BoundedCodec");
    for package in ["agent", "approval", "audit", "common", "gateway", "policy", "topology"] {
        stubs = stubs.extern_path(
            format!(".assembly.{package}.v1"),
            format!("::proctor_wire::assembly::proto::{package}::v1"),
        );
    }
    stubs.compile_fds(protox::compile(services, ["../wire/proto/assembly"])?)?;
    Ok(())
}
