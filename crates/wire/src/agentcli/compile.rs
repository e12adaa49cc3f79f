//! Compiled forms of a manifest, one for each target.
//!
//! Compilation is a pure function of the manifest: no clock, no environment. All targets are projections of one plan, so that
//! defaults, merges and identifiers cannot differ between them.

mod blocks;
mod digests;
pub mod handoff;
mod plan;
mod profiles;
mod refusal;
mod scheduler;
mod size;
mod standalone;

use proctor_core::json::Json;

use self::plan::{Expanded, Plan};
use super::error::Failure;
use super::finding::Validation;
use super::validate::validate;

/// Version that compiled forms name, whatever the manifest's own is.
const OUTPUT_VERSION: &str = "0.2";

/// Form that a manifest is compiled to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// Portable plan of workflows, tasks and edges.
    Standalone,
    /// Jobs of openclaw-scheduler.
    OpenclawScheduler,
}

impl Target {
    /// All targets, in the order in which they are described.
    pub const ALL: [Target; 2] = [Target::Standalone, Target::OpenclawScheduler];

    /// Name of the target.
    pub const fn word(self) -> &'static str {
        match self {
            Target::Standalone => "standalone",
            Target::OpenclawScheduler => "openclaw-scheduler",
        }
    }

    /// The target of that name.
    pub fn of_word(word: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|target| target.word() == word)
    }
}

/// Compiles a manifest. Validates it first; what the target cannot express is refused as errors of validation, with the index
/// of the task in the expanded list.
pub fn compile(manifest: &Json, target: Target, explain: bool) -> Result<Json, Failure> {
    let validation = validate(manifest);
    if !validation.is_ok() {
        return Err(Failure::invalid_manifest(validation));
    }
    let expanded = Expanded::of(manifest);
    let plan = Plan::of(manifest, &expanded);
    let errors = refusal::refusals(&plan, target);
    if !errors.is_empty() {
        return Err(Failure::invalid_manifest(Validation { errors, warnings: validation.warnings }));
    }
    let output = match target {
        Target::Standalone => standalone::project(&plan, explain),
        Target::OpenclawScheduler => scheduler::project(&plan, explain),
    };
    output.map_err(|error| Failure::invalid_argument(error.to_string()))
}

#[cfg(test)]
mod tests;
