//! Surroundings of a resolution: environment variables and the folder of relative paths, given by the caller.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use proctor_proof::secret::Secret;
use proctor_proof::sources::SourceError;

/// Longest value that a variable, file or command may give: tokens and keys are far shorter.
pub const MAX_VALUE_BYTES: usize = 64 * 1024;

/// Variables that every child process inherits, besides those that begin with `LC_`.
const OPERATIONAL: &[&str] = &[
    "PATH",
    "HOME",
    "TMPDIR",
    "TMP",
    "TEMP",
    "LANG",
    "SHELL",
    "USER",
    "LOGNAME",
    "TZ",
    "TERM",
    "SystemRoot",
    "WINDIR",
    "ComSpec",
    "PATHEXT",
];

/// Whether a variable is operational: a path, the locale, the user or the terminal, which child processes inherit.
pub fn is_operational(name: &OsStr) -> bool {
    OPERATIONAL.iter().any(|known| name == *known) || name.as_encoded_bytes().starts_with(b"LC_")
}

/// Environment variables, and the folder that relative paths of manifests belong to.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, Secret>,
    folder: PathBuf,
}

impl Environment {
    /// Takes the variables and the folder. Only the binary reads the process's own.
    pub fn new<N, V>(variables: impl IntoIterator<Item = (N, V)>, folder: impl Into<PathBuf>) -> Environment
    where
        N: Into<String>,
        V: Into<String>,
    {
        let variables =
            variables.into_iter().map(|(name, value)| (name.into(), Secret::new(value.into()))).collect();
        Environment { variables, folder: folder.into() }
    }

    /// The variable, if it is set and not blank.
    pub fn variable(&self, name: &str) -> Option<&Secret> {
        self.variables.get(name).filter(|value| !value.expose().trim().is_empty())
    }

    /// The folder of relative paths.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Operational variables that a child process inherits: paths, locale, user, terminal. No credentials.
    pub fn inherited(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables
            .iter()
            .filter(|(name, _)| is_operational(OsStr::new(name)))
            .map(|(name, value)| (name.as_str(), value.expose()))
    }

    /// Reads a text file of at most [`MAX_VALUE_BYTES`], white space at its ends removed.
    pub(crate) fn read_text(&self, path: &str) -> Result<Secret, SourceError> {
        let text = self.read_untrimmed(path)?.trimmed();
        if text.is_empty() { Err(SourceError::FileEmpty(shown_path(path))) } else { Ok(text) }
    }

    fn read_untrimmed(&self, path: &str) -> Result<Secret, SourceError> {
        let unreadable = |problem: String| SourceError::FileUnreadable { path: shown_path(path), problem };
        // A pipe without a writer would block the open, so it must not wait; other kinds of files are refused.
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let opened =
            std::fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(self.folder.join(path));
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(SourceError::FileNotFound(shown_path(path)));
            }
            Err(error) => return Err(unreadable(describe(&error))),
        };
        let metadata = file.metadata().map_err(|error| unreadable(describe(&error)))?;
        if !metadata.is_file() {
            return Err(unreadable("a file was expected".to_owned()));
        }
        let mut bytes = Vec::new();
        let limit = MAX_VALUE_BYTES as u64 + 1;
        file.take(limit).read_to_end(&mut bytes).map_err(|error| unreadable(describe(&error)))?;
        text(bytes)
    }
}

/// The bytes as text, within the limit.
pub(crate) fn text(bytes: Vec<u8>) -> Result<Secret, SourceError> {
    if bytes.len() > MAX_VALUE_BYTES {
        return Err(SourceError::TooLong(MAX_VALUE_BYTES));
    }
    String::from_utf8(bytes).map(Secret::new).map_err(|_| SourceError::NotText)
}

/// Name of a variable for messages. Names that do not look like one may be a secret in the wrong member.
pub(crate) fn shown_variable(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    if name.len() <= 64 && name.contains('_') && name.bytes().all(is_plain) {
        format!("`{name}`")
    } else {
        "that the manifest names".to_owned()
    }
}

/// Path for messages. Texts that do not look like one may be a secret in the wrong member.
pub(crate) fn shown_path(path: &str) -> String {
    let is_path = ["/", "./", "../"].iter().any(|start| path.starts_with(start));
    if is_path && path.len() <= 256 && !path.contains(char::is_control) {
        format!("`{path}`")
    } else {
        "that the manifest names".to_owned()
    }
}

/// Text of an operating system's error, without its number.
pub(crate) fn describe(error: &std::io::Error) -> String {
    error.kind().to_string()
}

impl fmt::Debug for Environment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Environment")
            .field("variables", &self.variables.len())
            .field("folder", &self.folder)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_bounded_regular_text() {
        let folder = tempfile::tempdir().unwrap();
        let environment = Environment::new([("A_B", "x")], folder.path());
        std::fs::write(folder.path().join("good"), " token\n").unwrap();
        std::fs::write(folder.path().join("empty"), " \n").unwrap();
        std::fs::write(folder.path().join("binary"), [0xff, 0xfe]).unwrap();
        std::fs::write(folder.path().join("large"), vec![b'x'; MAX_VALUE_BYTES + 1]).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            folder.path().join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        assert_eq!(environment.read_text("good"), Ok(Secret::new("token")));
        let hidden = "that the manifest names".to_owned();
        assert_eq!(environment.read_text("none"), Err(SourceError::FileNotFound(hidden.clone())));
        assert_eq!(environment.read_text("empty"), Err(SourceError::FileEmpty(hidden)));
        assert_eq!(environment.read_text("binary"), Err(SourceError::NotText));
        assert_eq!(environment.read_text("large"), Err(SourceError::TooLong(MAX_VALUE_BYTES)));
        assert!(matches!(environment.read_text("pipe"), Err(SourceError::FileUnreadable { .. })));
        assert!(matches!(environment.read_text("."), Err(SourceError::FileUnreadable { .. })));
    }

    #[test]
    fn names_that_may_be_secrets_are_not_shown() {
        assert_eq!(shown_variable("AWS_SESSION_TOKEN"), "`AWS_SESSION_TOKEN`");
        for secret in ["sk_live_51Habc", "ghp_abcdefghijklmnop", "AKIAIOSFODNN7EXAMPLE", ""] {
            assert_eq!(shown_variable(secret), "that the manifest names");
        }
        assert_eq!(shown_path("/run/secrets/token"), "`/run/secrets/token`");
        assert_eq!(shown_path("eyJhbGciOi.eyJzdWIi.c2ln"), "that the manifest names");
    }

    #[test]
    fn children_inherit_no_credentials() {
        let all =
            [("PATH", "/bin"), ("LC_ALL", "C"), ("AWS_SECRET_ACCESS_KEY", "hunter2"), ("HTTP_PROXY", "x")];
        let environment = Environment::new(all, "/");
        assert_eq!(environment.inherited().collect::<Vec<_>>(), [("LC_ALL", "C"), ("PATH", "/bin")]);
        assert!(!format!("{environment:?}").contains("hunter2"));
    }
}
