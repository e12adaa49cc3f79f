//! Program, arguments and environment of a process.

use super::Work;
use crate::error::{Error, ProgramProblem, Step};
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
    if spec.program.as_bytes().contains(&b'/') {
        let program = spec.directory.join(name);
        let problem = match program.metadata() {
            Err(_) => ProgramProblem::Missing,
            Ok(found) if !found.is_file() => ProgramProblem::NoFile,
            Ok(found) if found.permissions().mode() & 0o111 == 0 => ProgramProblem::NotExecutable,
            Ok(_) => return Ok(program),
        };
        return Err(unusable(spec, problem));
    }
    let path = spec.environment.get(OsStr::new("PATH")).map_or(OsStr::new(DEFAULT_PATH), OsString::as_os_str);
    std::env::split_paths(path)
        .map(|folder| spec.directory.join(folder).join(name))
        .find(|candidate| is_executable(candidate))
        .ok_or_else(|| unusable(spec, ProgramProblem::NotInPath))
}

fn unusable(spec: &Spec, problem: ProgramProblem) -> Error {
    Error::ProgramNotFound { program: spec.program.to_string_lossy().into_owned(), problem }
}

/// The error of a process that was not started, with its cause if that lies in the program's file: the kernel says only that something was
/// not found, or has a wrong format.
pub(crate) fn explained(spec: &Spec, error: Error) -> Error {
    let Error::Setup { step: Step::Execute, source } = &error else { return error };
    let Ok(program) = find(spec) else { return error };
    let first = first_line(&program).unwrap_or_default();
    let interpreter = first.strip_prefix(b"#!").map(|line| {
        let line = String::from_utf8_lossy(line).trim_start_matches([' ', '\t']).to_owned();
        line.split([' ', '\t']).next().unwrap_or_default().to_owned()
    });
    let problem = match (interpreter, source.kind()) {
        (Some(interpreter), _) if interpreter.ends_with('\r') => {
            ProgramProblem::WindowsLineEnds(interpreter.trim_end_matches('\r').to_owned())
        }
        (Some(interpreter), std::io::ErrorKind::NotFound) if !Path::new(&interpreter).exists() => {
            ProgramProblem::NoInterpreter(interpreter)
        }
        (None, _) if source.raw_os_error() == Some(NO_EXECUTABLE_FORMAT) => ProgramProblem::NoInterpreterLine,
        _ => return error,
    };
    unusable(spec, problem)
}

/// Number of the error that the kernel gives for a file whose format it does not know (`ENOEXEC`).
const NO_EXECUTABLE_FORMAT: i32 = 8;

/// Bytes of a first line that the kernel looks at.
const FIRST_LINE: u64 = 256;

fn first_line(program: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut start = Vec::new();
    std::fs::File::open(program)?.take(FIRST_LINE).read_to_end(&mut start)?;
    let end = start.iter().position(|byte| *byte == b'\n').unwrap_or(start.len());
    start.truncate(end);
    Ok(start)
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
