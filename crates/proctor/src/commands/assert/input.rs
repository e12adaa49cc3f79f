//! Inputs of a check: a trace and assertions, each from a file, from stdin or from the ledger.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use proctor_engine::traces::{find_session, read_trace};

use super::{Context, Failure, open_reader};
use crate::cli::AssertArgs;

/// The most bytes of a trace.
const MAX_TRACE: u64 = 256 << 20;

/// The most bytes of a file of assertions.
const MAX_ASSERTIONS: u64 = 4 << 20;

/// The inputs as read.
pub(super) struct Input {
    pub(super) trace_text: String,
    pub(super) trace_source: Source,
    /// The trace is a session on record: it need not be recorded again.
    pub(super) from_ledger: bool,
    pub(super) assertions_file: String,
    pub(super) assertions_text: Vec<u8>,
}

/// Origin of a trace.
pub(super) struct Source {
    /// Name in messages.
    pub(super) shown: String,
    /// Name in reports, which leave this machine.
    pub(super) uri: String,
}

/// Reads everything.
pub(super) fn read(context: &Context, arguments: &AssertArgs) -> Result<Input, Failure> {
    let stdin = Path::new("-");
    if arguments.trace.as_deref() == Some(stdin) && arguments.assertions == stdin {
        return Err(Failure::from("`-` can be the trace or the assertions, not both"));
    }
    let (assertions_file, assertions_text) = read_bounded(&arguments.assertions, MAX_ASSERTIONS)?;
    let (trace_text, trace_source, from_ledger) = match (&arguments.trace, &arguments.session) {
        (Some(path), _) => {
            let (shown, bytes) = read_bounded(path, MAX_TRACE)?;
            let text = String::from_utf8(bytes)
                .map_err(|error| Failure::from(format!("{shown}: is not UTF-8: {}", error.utf8_error())))?;
            // A mark of byte order is no part of the text.
            let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
            (text, Source { uri: uri(path), shown }, false)
        }
        (None, Some(text)) => {
            let reader = open_reader(&context.config.engine.state)?;
            let id = find_session(&reader, text)?;
            let trace = read_trace(&reader, id)?.to_json().to_string();
            (trace, Source { shown: format!("session {id}"), uri: format!("session:{id}") }, true)
        }
        (None, None) => return Err(Failure::from("`--trace` or `--session` is needed")),
    };
    Ok(Input { trace_text, trace_source, from_ledger, assertions_file, assertions_text })
}

/// Reads a file, or stdin for `-`; returns the name for messages too.
fn read_bounded(path: &Path, most: u64) -> Result<(String, Vec<u8>), Failure> {
    let stdin = path == Path::new("-");
    let name = if stdin { "stdin".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let read = if stdin {
        std::io::stdin().lock().take(most + 1).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
    };
    match read {
        Err(error) => Err(Failure::from(format!("{name}: {}", proctor_system::describe(&error)))),
        Ok(_) if bytes.len() as u64 > most => {
            Err(Failure::from(format!("{name}: has more than the {most} bytes that are read")))
        }
        Ok(_) => Ok((name, bytes)),
    }
}

/// The file's name as given; of an absolute one only the last part, because the rest describes this machine.
fn uri(path: &Path) -> String {
    if path == Path::new("-") {
        return "stdin".to_owned();
    }
    let given = if path.is_absolute() { Path::new(path.file_name().unwrap_or_default()) } else { path };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'-' | b'_' | b'~');
    let bytes = given.as_os_str().as_encoded_bytes().iter();
    bytes
        .map(|byte| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_do_not_speak_of_this_machine() {
        assert_eq!(uri(Path::new("/home/ann/runs/trace.json")), "trace.json");
        assert_eq!(uri(Path::new("runs/my trace ö.json")), "runs/my%20trace%20%C3%B6.json");
        assert_eq!(uri(Path::new("-")), "stdin");
    }
}
