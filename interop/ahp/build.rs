//! Compiles the gRPC service from the file that the server publishes, as any other client would.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=../../crates/clients/proto");
    let files = protox::compile(["proctor/ahp/v1/harness.proto"], ["../../crates/clients/proto"])?;
    tonic_prost_build::configure().compile_fds(files)?;
    Ok(())
}
