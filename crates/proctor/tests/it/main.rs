//! Tests of the binary from outside: command line, doors, crashes, hostile input, documentation.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::needless_pass_by_value,
    clippy::cast_possible_truncation,
    unreachable_pub,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod support;

mod agent_cli;
mod agentcli;
mod agentcli_prompts;
mod ahp_door;
mod ahp_hostile;
mod ahp_serve;
mod assembly_gateway;
mod assembly_runtime;
mod assembly_vectors_policy;
mod assert_cli;
mod atp_cli;
mod attest_client;
mod attest_hostile;
mod attest_models;
mod attest_wire;
mod audit_chain;
mod audit_cli;
mod bundle_compatibility;
mod conformance;
mod crash;
mod docs;
mod endings;
mod fuzz;
mod gate;
mod glossary;
mod guarded;
mod holes;
mod invariants;
mod layers;
mod money;
mod mutations;
mod policy_cli;
mod rederive;
mod relays;
mod snapshots;
mod starters;
mod test_cheats;
mod test_cli;
mod test_defects;
mod test_explanations;
mod test_folders;
mod test_misbehaving;
mod test_reports;
mod test_runs;
mod test_sandbox;
mod test_secrets;
mod test_terminal;
mod test_tool_claims;
mod tiles;
mod tool_server;
