//! Programs that other people's software starts under a name of its own, and that this one is when it is started so.

pub mod attest_engine;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Runs the program that this one was started as, if it is not `proctor` itself.
pub fn run(arguments: &[OsString]) -> Option<ExitCode> {
    let name = Path::new(arguments.first()?).file_name()?.to_str()?;
    let rest = arguments.get(1..).unwrap_or_default();
    match name {
        "attest-engine" => Some(attest_engine::run(rest)),
        _ => None,
    }
}
