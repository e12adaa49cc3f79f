//! Policies that tests use: the published examples, and small ones.

/// The published example of a strict policy.
pub const STRICT: &str = include_str!("../../../schemas/examples/strict.yaml");

/// The published example of a balanced policy.
pub const BALANCED: &str = include_str!("../../../schemas/examples/balanced.yaml");

/// The published example of a policy that stops nothing.
pub const AUDIT_ONLY: &str = include_str!("../../../schemas/examples/audit-only.yaml");

/// The published example for the conformance queries.
pub const CONFORMANCE: &str = include_str!("../../../schemas/examples/conformance.yaml");

/// Allows everything.
pub const OPEN: &str = "version: \"1\"\ndefault: allow\n";

/// Asks a person about everything.
pub const ASKING: &str = "version: \"1\"\ndefault: ask\napproval_timeout_secs: 60\n";
