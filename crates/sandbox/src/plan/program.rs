//! Program, arguments and environment of a process.

use super::Work;
use crate::error::Error;
use crate::spec::Spec;
use crate::sys::process::StringVector;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Bound on arguments and variables: the kernel's own on bytes (2 MiB) comes first for all but empty texts.
const TEXTS: usize = 65_536;

/// Directories that are searched for a program if the process has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Executes the program of a specification.
pub(super) fn execution(spec: &Spec) -> Result<Work, Error> {
    if spec.arguments.len() > TEXTS || spec.environment.len() > TEXTS {
        return Err(Error::InvalidSpec { what: "arguments", reason: "there are too many" });
    }
    let program = find(spec)?;
    let mut arguments = vec![text("program", &spec.program)?];
    for argument in &spec.arguments {
        arguments.push(text("argument", argument)?);
    }
    let mut environment = Vec::with_capacity(spec.environment.len());
    for (name, value) in &spec.environment {
        if name.is_empty() || name.as_bytes().contains(&b'=') {
            return Err(Error::InvalidSpec {
                what: "variable",
                reason: "its name is empty or has an equals sign",
            });
        }
        let mut entry = OsString::from(name);
        entry.push("=");
        entry.push(value);
        environment.push(text("variable", &entry)?);
    }
    Ok(Work::Execute {
        program: text("program", program.as_os_str())?,
        arguments: StringVector::new(arguments),
        environment: StringVector::new(environment),
    })
}

/// Text as a child passes it on.
pub(crate) fn text(what: &'static str, text: &OsStr) -> Result<CString, Error> {
    CString::new(text.as_bytes()).map_err(|_| Error::InvalidSpec { what, reason: "it has a zero byte" })
}

fn find(spec: &Spec) -> Result<PathBuf, Error> {
    let name = Path::new(&spec.program);
    let found = if spec.program.as_bytes().contains(&b'/') {
        Some(spec.directory.join(name))
    } else {
        let path =
            spec.environment.get(OsStr::new("PATH")).map_or(OsStr::new(DEFAULT_PATH), OsString::as_os_str);
        std::env::split_paths(path)
            .map(|folder| spec.directory.join(folder).join(name))
            .find(|candidate| is_executable(candidate))
    };
    found
        .filter(|program| is_executable(program))
        .ok_or_else(|| Error::ProgramNotFound { program: spec.program.to_string_lossy().into_owned() })
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
