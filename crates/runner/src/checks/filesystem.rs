//! Checks of the workspace: `file_exists`, `file_not_exists`, `file_contains`, `file_count`, `dir_exists`.

use proctor_core::json::Json;
use proctor_core::quoted;

use super::evidence::{Evidence, MAX_FILE_BYTES};
use super::files::{EntryKind, WorkspacePath};
use super::pattern::TextPattern;
use super::result::{CheckError, CheckResult};

/// Entries of a directory that are counted.
const MAX_ENTRIES: usize = 100_000;

/// A check of the workspace.
#[derive(Debug, Clone, PartialEq)]
pub enum FileCheck {
    /// A regular file is there.
    FileExists(WorkspacePath),
    /// Nothing is there.
    FileNotExists(WorkspacePath),
    /// A directory is there.
    DirExists(WorkspacePath),
    /// A file whose content matches.
    FileContains {
        /// The file.
        path: WorkspacePath,
        /// The pattern.
        pattern: TextPattern,
    },
    /// A number of files, directly in a directory.
    FileCount {
        /// The directory.
        path: WorkspacePath,
        /// The number to compare with.
        count: u64,
        /// The comparison.
        operator: CountOperator,
    },
}

/// Comparisons of a number of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CountOperator {
    /// Equal.
    #[default]
    Eq,
    /// More.
    Gt,
    /// As many or more.
    Gte,
    /// Fewer.
    Lt,
    /// As many or fewer.
    Lte,
}

impl CountOperator {
    /// The words in suites.
    pub const WORDS: [&'static str; 5] = ["eq", "gt", "gte", "lt", "lte"];

    /// The operator of this word.
    pub fn named(word: &str) -> Option<CountOperator> {
        Some(match word {
            "eq" => CountOperator::Eq,
            "gt" => CountOperator::Gt,
            "gte" => CountOperator::Gte,
            "lt" => CountOperator::Lt,
            "lte" => CountOperator::Lte,
            _ => return None,
        })
    }

    fn holds(self, found: u64, count: u64) -> bool {
        match self {
            CountOperator::Eq => found == count,
            CountOperator::Gt => found > count,
            CountOperator::Gte => found >= count,
            CountOperator::Lt => found < count,
            CountOperator::Lte => found <= count,
        }
    }

    fn phrase(self) -> &'static str {
        match self {
            CountOperator::Eq => "exactly",
            CountOperator::Gt => "more than",
            CountOperator::Gte => "at least",
            CountOperator::Lt => "fewer than",
            CountOperator::Lte => "at most",
        }
    }
}

impl FileCheck {
    pub(super) fn evaluate(&self, evidence: &Evidence<'_>) -> Result<Vec<CheckResult>, CheckError> {
        let entry = |path: &WorkspacePath| evidence.files.entry(path);
        let check = match self {
            FileCheck::FileExists(path) => {
                present("file_exists", path, entry(path)?, EntryKind::File, "a file")
            }
            FileCheck::DirExists(path) => {
                present("dir_exists", path, entry(path)?, EntryKind::Directory, "a directory")
            }
            FileCheck::FileNotExists(path) => {
                let found = entry(path)?;
                let word = if found.is_none() { "does not exist" } else { "exists" };
                CheckResult::new("file_not_exists", found.is_none(), format!("`{path}` {word}"))
            }
            FileCheck::FileContains { path, pattern } => {
                if entry(path)? == Some(EntryKind::File) {
                    let bytes = evidence.files.read(path, MAX_FILE_BYTES)?;
                    let text = String::from_utf8_lossy(&bytes);
                    let found = pattern.is_match(&text)?;
                    let wanted = quoted(&pattern.text);
                    let message = if found {
                        format!("`{path}` contains {wanted}")
                    } else {
                        format!("`{path}` does not contain {wanted}, but {}", evidence.excerpt(&text))
                    };
                    CheckResult::new("file_contains", found, message)
                } else {
                    CheckResult::new("file_contains", false, format!("`{path}` is not a file"))
                }
            }
            FileCheck::FileCount { path, count, operator } => {
                if entry(path)? == Some(EntryKind::Directory) {
                    let entries = evidence.files.list(path, MAX_ENTRIES)?;
                    let found = entries.iter().filter(|entry| entry.kind == EntryKind::File).count() as u64;
                    let message =
                        format!("`{path}` has {found} files, {} {count} expected", operator.phrase());
                    let details = Json::object().with("count", found).with("expected", *count);
                    CheckResult::new("file_count", operator.holds(found, *count), message)
                        .with_details(details)
                } else {
                    CheckResult::new("file_count", false, format!("`{path}` is not a directory"))
                }
            }
        };
        Ok(vec![check])
    }
}

fn present(
    name: &str,
    path: &WorkspacePath,
    found: Option<EntryKind>,
    wanted: EntryKind,
    what: &str,
) -> CheckResult {
    let message = match found {
        Some(kind) if kind == wanted => format!("`{path}` is {what}"),
        Some(_) => format!("`{path}` is not {what}"),
        None => format!("`{path}` does not exist"),
    };
    CheckResult::new(name, found == Some(wanted), message)
}
