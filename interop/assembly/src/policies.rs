//! Policies that tests use: the published examples, small ones, and the hours in them.

use std::time::{SystemTime, UNIX_EPOCH};

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

/// A time zone in which it is about this hour now. Zones of this kind have the sign the other way round.
#[expect(clippy::disallowed_methods, reason = "the gateway goes by the machine's clock")]
pub fn zone_where_it_is(hour: i64) -> String {
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs())
        .expect("a time");
    let offset = (hour - now / 3600 % 24 + 36) % 24 - 12;
    if offset > 0 { format!("Etc/GMT-{offset}") } else { format!("Etc/GMT+{}", -offset) }
}
