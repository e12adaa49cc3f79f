//! State of a walk: findings, and members by their tables.

use proctor_core::json::Json;
use proctor_core::nearest;

use super::code;
use super::path::Path;
use crate::agentcli::finding::{Finding, Validation};
use crate::agentcli::structure::{Block, HANDLER, MANIFEST, TASK, WORKFLOW};

/// Limit of errors, and of warnings: a hostile manifest has one for each of its values.
pub const MAX_FINDINGS: usize = 5_000;

/// Unknown keys that get a suggestion; further ones are only named.
pub(super) const MAX_SUGGESTIONS: usize = 100;

/// State of a walk.
#[derive(Debug)]
pub(super) struct Walk {
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
    /// Unknown keys of strict manifests, which are reported after the walk.
    unknown: Vec<Finding>,
    strict: bool,
}

impl Walk {
    pub(super) fn new(strict: bool) -> Walk {
        Walk { errors: Vec::new(), warnings: Vec::new(), unknown: Vec::new(), strict }
    }

    pub(super) fn is_strict(&self) -> bool {
        self.strict
    }

    pub(super) fn error(&mut self, path: &Path<'_>, code: &'static str, message: impl Into<String>) {
        push(&mut self.errors, path, code, message);
    }

    pub(super) fn warning(&mut self, path: &Path<'_>, code: &'static str, message: impl Into<String>) {
        push(&mut self.warnings, path, code, message);
    }

    /// Values of an object's members, in the order of its table; unknown keys are noted. Values that are `null` come too.
    pub(super) fn members<'a, const COUNT: usize>(
        &mut self,
        path: &Path<'_>,
        object: &'a Json,
        block: &Block,
    ) -> [Option<&'a Json>; COUNT] {
        debug_assert_eq!(block.members.len(), COUNT);
        let mut values = [None; COUNT];
        self.fill(path, object, block, &mut values);
        values
    }

    /// [`Walk::members`] for a table of any length: at most as many values as the slice has.
    pub(super) fn fill<'a>(
        &mut self,
        path: &Path<'_>,
        object: &'a Json,
        block: &Block,
        values: &mut [Option<&'a Json>],
    ) {
        let mut next = 0;
        for (key, value) in object.as_object().unwrap_or_default() {
            // Manifests mostly have the order of the table, so the search begins after the last hit.
            let members = block.members;
            let (before, after) = members.split_at(next.min(members.len()));
            let found = match after.iter().position(|member| member.name == key) {
                Some(position) => Some(before.len() + position),
                None => before.iter().position(|member| member.name == key),
            };
            match found {
                Some(position) => {
                    next = position + 1;
                    if let Some(slot) = values.get_mut(position) {
                        *slot = Some(value);
                    }
                }
                None => self.unknown_key(&path.key(key), key, block),
            }
        }
    }

    fn unknown_key(&mut self, path: &Path<'_>, key: &str, block: &Block) {
        // The distance to every key of a table costs more than the rest of the walk: a hostile manifest has thousands of unknown keys.
        let is_early = self.unknown.len().max(self.warnings.len()) < MAX_SUGGESTIONS;
        let close = is_early.then(|| {
            let known: Vec<&str> = block.members.iter().map(|member| member.name).collect();
            nearest(key, &known)
        });
        let message = match close.flatten() {
            Some(close) => format!("unknown key; did you mean `{close}`?"),
            None => "unknown key".to_owned(),
        };
        if self.strict {
            push(&mut self.unknown, path, code::UNKNOWN_KEY, message);
        } else if [&MANIFEST, &WORKFLOW, &TASK, &HANDLER].into_iter().any(|table| block.is(table)) {
            self.warning(path, code::UNKNOWN_KEY, message);
        }
    }

    /// Reports the unknown keys of a strict manifest.
    pub(super) fn flush_unknown_keys(&mut self) {
        let unknown = std::mem::take(&mut self.unknown);
        let capacity = MAX_FINDINGS.saturating_sub(self.errors.len());
        self.errors.extend(unknown.into_iter().take(capacity));
    }

    pub(super) fn finish(self) -> Validation {
        Validation { errors: closed(self.errors), warnings: closed(self.warnings) }
    }
}

fn push(list: &mut Vec<Finding>, path: &Path<'_>, code: &'static str, message: impl Into<String>) {
    if list.len() < MAX_FINDINGS {
        list.push(Finding::new(path.to_string(), code, message));
    }
}

/// Says at the end of a full list that there may be more.
fn closed(mut list: Vec<Finding>) -> Vec<Finding> {
    if list.len() == MAX_FINDINGS {
        let message = format!("only the first {MAX_FINDINGS} findings are listed");
        list.push(Finding::new("$", code::TOO_MANY_FINDINGS, message));
    }
    list
}
