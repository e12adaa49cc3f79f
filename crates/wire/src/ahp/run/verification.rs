//! Consistency rules of verification reports.

use std::collections::HashSet;

use super::bounds::{MAX_ITEMS, MAX_REFERENCES, cut};
use super::problem::{Problems, quote};
use crate::ahp::{ArtifactRef, EvidenceRef, VerificationEvent, VerificationStatus};

pub(super) fn check(event: &VerificationEvent, problems: &mut Problems) {
    let mut ids = HashSet::new();
    for check in event.checks.iter().take(MAX_ITEMS) {
        if !ids.insert(cut(&check.id)) {
            problems.add("duplicate_check", || format!("two checks have the id {}", quote(&check.id)));
        }
        digests("check", &check.id, &check.evidence, &check.artifacts, problems);
    }
    if event.status == VerificationStatus::Passed {
        // Also those that are not kept: a check that failed is not to be hidden behind a thousand others.
        for check in event.checks.iter().filter(|check| check.status.contradicts_passed()) {
            problems.add("passed_without_checks", || {
                format!(
                    "the verification passed, but check {} is `{}`",
                    quote(&check.id),
                    check.status.name()
                )
            });
        }
    }
}

/// Digests that cannot be SHA-256 in hexadecimal.
pub(super) fn digests(
    owner: &str,
    id: &str,
    evidence: &[EvidenceRef],
    artifacts: &[ArtifactRef],
    problems: &mut Problems,
) {
    let shown = evidence.iter().take(MAX_REFERENCES).filter_map(|item| item.artifact.as_ref());
    for artifact in shown.chain(artifacts.iter().take(MAX_REFERENCES)) {
        if let Some(digest) = artifact.sha256.as_ref().filter(|digest| !is_sha256(digest)) {
            problems.add("bad_digest", || {
                format!(
                    "`sha256` of artifact {} of {owner} {} is not 64 hexadecimal digits: {}",
                    quote(&artifact.id),
                    quote(id),
                    quote(digest)
                )
            });
        }
    }
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
