//! Operations behind methods and commands. Each gives the result that both print.

pub(crate) mod manifests;
pub(crate) mod records;
pub(crate) mod runs;
pub(crate) mod scheduling;
pub(crate) mod tables;
pub(crate) mod tasks;

use proctor_core::json::Json;

/// Version of the released program whose protocol this door speaks.
pub(crate) const PACKAGE_VERSION: &str = "0.4.0";

/// A result that begins with `ok: true`.
pub(crate) fn ok() -> Json {
    Json::object().with("ok", true)
}
