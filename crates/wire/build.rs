//! Compiles the messages of Agent Assembly, without a system `protoc`, and writes down what their lists and maps weigh.

use std::fmt::Write as _;
use std::path::Path;

use protox::prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

/// Messages with a credential token: their `Debug` is written by hand, without it.
const WITH_TOKEN: [&str; 5] = [
    ".assembly.agent.v1.RegisterResponse",
    ".assembly.agent.v1.HeartbeatRequest",
    ".assembly.agent.v1.DeregisterRequest",
    ".assembly.agent.v1.ControlStreamRequest",
    ".assembly.policy.v1.CheckActionRequest",
];

const FILES: [&str; 9] = [
    "agent.proto",
    "approval.proto",
    "audit.proto",
    "common.proto",
    "event.proto",
    "invalidation.proto",
    "ipc.proto",
    "policy.proto",
    "topology.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let mut compiler = protox::Compiler::new(["proto/assembly"])?;
    compiler.include_source_info(true).include_imports(true).open_files(FILES)?;
    // Sorted maps: the same message always gives the same bytes.
    prost_build::Config::new()
        .btree_map(["."])
        .enable_type_names()
        .skip_debug(WITH_TOKEN)
        .compile_fds(compiler.file_descriptor_set())?;
    let shapes = shapes(&compiler.descriptor_pool())?;
    std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("shapes.rs"), shapes)?;
    Ok(())
}

/// The table of `src/assembly/unpack.rs`: for each message, sorted by name, the fields that hold messages or can be many.
fn shapes(pool: &DescriptorPool) -> Result<String, Box<dyn std::error::Error>> {
    let mut messages: Vec<MessageDescriptor> = pool.all_messages().collect();
    messages.sort_by(|one, other| one.full_name().cmp(other.full_name()));
    let mut table = String::from("const SHAPES: &[Shape] = &[");
    for message in &messages {
        write!(table, "Shape {{ name: {:?}, parts: &[", message.full_name())?;
        for field in message.fields() {
            let inside = match field.kind() {
                Kind::Message(inside) => messages.iter().position(|message| *message == inside),
                _ => None,
            };
            let cost = if field.is_list() || field.is_map() { element_cost(&field) } else { 0 };
            if inside.is_some() || cost > 0 {
                let number = field.number();
                write!(table, "Part {{ number: {number}, cost: {cost}, message: {inside:?} }},")?;
            }
        }
        table.push_str("] },");
    }
    table.push_str("];");
    Ok(table)
}

/// Approximate memory of one more element of a list or a map, in bytes: twice its own size, since lists grow by doubling, and the smallest
/// allocation for each text in it.
fn element_cost(field: &FieldDescriptor) -> usize {
    match field.kind() {
        Kind::Message(message) if field.is_map() => 2 * message_size(&message) + 32,
        Kind::Message(message) => 2 * message_size(&message),
        Kind::String | Kind::Bytes => 2 * 24 + 16,
        _ => 2 * 8,
    }
}

/// Approximate size of a message, without the memory of its texts, lists and maps. No message of ours holds itself except in a list.
fn message_size(message: &MessageDescriptor) -> usize {
    let alone = message.fields().filter(|field| field.containing_oneof().is_none());
    let alternatives =
        message.oneofs().map(|oneof| 8 + oneof.fields().map(|field| field_size(&field)).max().unwrap_or(0));
    alone.map(|field| field_size(&field)).sum::<usize>() + alternatives.sum::<usize>()
}

fn field_size(field: &FieldDescriptor) -> usize {
    match field.kind() {
        _ if field.is_list() || field.is_map() => 24,
        Kind::Message(message) => 8 + message_size(&message),
        Kind::String | Kind::Bytes => 24,
        _ => 8,
    }
}
