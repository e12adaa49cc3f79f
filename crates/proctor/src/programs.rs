//! Multi-call entry points, chosen by `argv[0]`.

pub mod aa_gateway;
pub mod aa_runtime;
pub mod agentcli;
pub mod attest_engine;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Runs the program that this one was started as, if it is not `proctor` itself.
pub fn run(arguments: &[OsString]) -> Option<ExitCode> {
    let name = Path::new(arguments.first()?).file_name()?.to_str()?;
    let rest = arguments.get(1..).unwrap_or_default();
    match name {
        "aa-gateway" => Some(aa_gateway::run(rest)),
        "aa-runtime" => Some(aa_runtime::run(rest)),
        "agentcli" => Some(agentcli::run(rest)),
        "attest-engine" => Some(attest_engine::run(rest)),
        _ => None,
    }
}

/// The text in front of each log line: only `aa-runtime` goes by its own name there.
pub fn log_prefix(arguments: &[OsString]) -> &'static str {
    let name = arguments.first().map(Path::new).and_then(Path::file_name);
    if name.is_some_and(|name| name == "aa-runtime") { "aa-runtime: " } else { "proctor: " }
}

/// Whether `--version` is asked of a program that answers it by itself.
pub fn says_its_version(name: &OsString) -> bool {
    Path::new(name)
        .file_name()
        .is_some_and(|name| name == "aa-gateway" || name == "aa-runtime" || name == "agentcli")
}

/// The flags of a program, or the exit code: after help, version, or invalid flags.
fn flags<F: clap::Parser>(name: &str, arguments: &[OsString]) -> Result<F, ExitCode> {
    let named = std::iter::once(OsString::from(name)).chain(arguments.iter().cloned());
    F::try_parse_from(named).map_err(|error| {
        let code = if error.use_stderr() { crate::failure::FAILED } else { 0 };
        let _ = error.print();
        ExitCode::from(code)
    })
}
