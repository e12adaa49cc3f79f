//! Manifests: validation, compilation, conversion, schemas and descriptions.

use proctor_core::json::Json;
use proctor_flow::lint;
use proctor_wire::agentcli::compile::{self, Target};
use proctor_wire::agentcli::convert;
use proctor_wire::agentcli::error::Failure;
use proctor_wire::agentcli::finding::Validation;
use proctor_wire::agentcli::rpc::MANIFEST_VERSION;
use proctor_wire::agentcli::validate;

use super::{PACKAGE_VERSION, ok};

/// Versions of program and manifests.
pub(crate) fn version() -> Json {
    ok().with("package_version", PACKAGE_VERSION).with("manifest_version", MANIFEST_VERSION)
}

/// Findings of the protocol, and after them ours, which are warnings and leave `ok` as it is.
pub(crate) fn findings(manifest: &Json) -> Validation {
    let mut validation = validate::validate(manifest);
    validation.warnings.extend(lint::findings(manifest));
    validation
}

/// Compiles for a target; without one, for the default of the settings, else `standalone`.
pub(crate) fn compiled(
    manifest: &Json,
    target: Option<&str>,
    default: Option<&str>,
    explain: bool,
) -> Result<(Target, Json), Failure> {
    let word = target.or(default).unwrap_or("standalone");
    let target = Target::of_word(word).ok_or_else(|| {
        let shown: String = word.chars().take(100).collect();
        Failure::invalid_argument(format!(
            "unknown target `{shown}`: use `standalone` or `openclaw-scheduler`"
        ))
    })?;
    Ok((target, compile::compile(manifest, target, explain)?))
}

/// Result of compilation.
pub(crate) fn compile(
    manifest: &Json,
    target: Option<&str>,
    default: Option<&str>,
    explain: bool,
) -> Result<Json, Failure> {
    let (target, output) = compiled(manifest, target, default, explain)?;
    Ok(ok().with("target", target.word()).with("output", output))
}

/// The manifest in version 0.2.
pub(crate) fn converted(manifest: &Json) -> Result<Json, Failure> {
    convert::convert(manifest)
}

/// Result of conversion.
pub(crate) fn convert(manifest: &Json) -> Result<Json, Failure> {
    Ok(ok().with("manifest", converted(manifest)?))
}
