//! Secrets in the texts of a manifest.

use std::collections::HashMap;

use proctor_core::json::Json;
use proctor_policy::scan::{FindingKind, Scanner};

use super::Found;

/// Members whose values are public and look random.
const PUBLIC: [&str; 6] =
    ["public_key", "public_key_pem", "ca_certificate", "allowed_signers", "jwks", "policies"];

/// Reports each place with a secret once, by its most telling kind. Addresses of people are none.
pub(super) fn find(manifest: &Json, found: &mut Found) {
    let findings = Scanner::standard().scan_json(manifest, "$");
    let mut places: Vec<(&str, FindingKind)> = Vec::new();
    let mut positions: HashMap<&str, usize> = HashMap::new();
    for finding in &findings {
        let is_public = finding.kind == FindingKind::GenericHighEntropy && is_public(&finding.path);
        if finding.kind == FindingKind::EmailAddress || is_public {
            continue;
        }
        let path = finding.path.as_str();
        let position = *positions.entry(path).or_insert_with(|| {
            places.push((path, finding.kind));
            places.len() - 1
        });
        if let Some((_, kind)) = places.get_mut(position)
            && finding.kind.priority() > kind.priority()
        {
            *kind = finding.kind;
        }
    }
    for (path, kind) in places {
        found.add(path, "proctor_secret", || {
            let kind = kind.name();
            format!(
                "looks like a secret ({kind}): take it from the environment or a file, through an identity"
            )
        });
    }
}

fn is_public(path: &str) -> bool {
    path.split(['.', '[']).any(|name| PUBLIC.contains(&name))
}
