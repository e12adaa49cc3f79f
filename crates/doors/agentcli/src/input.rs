//! Manifests as the command line names them: a file, a registered name, a JSON text, or standard input.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use proctor_core::json::{Json, JsonError};
use proctor_wire::agentcli::finding::Finding;
use proctor_yaml::{Limits, Node, Position, Value};

use crate::home::Surroundings;

/// The longest manifest that is read, in bytes.
pub const MAX_MANIFEST: usize = 8 << 20;

const LIMITS: Limits =
    Limits { source_bytes: MAX_MANIFEST, depth: 64, nodes: 500_000, text_bytes: 16 << 20, errors: 100 };

/// A manifest that was read.
#[derive(Debug)]
pub struct Input {
    /// The manifest as it was written.
    pub manifest: Json,
    /// The file, if it was one.
    pub file: Option<PathBuf>,
    /// The tree with positions, if it was YAML.
    tree: Option<Rc<Node>>,
}

/// Error of reading a manifest.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// Nothing of this name.
    #[error("`{0}` is neither a file nor a registered manifest: `registry list` shows those")]
    NotFound(String),
    /// The file cannot be read.
    #[error("{}: {}", path.display(), proctor_system::describe(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// Not a regular file.
    #[error("{}: not a file", .0.display())]
    NotAFile(PathBuf),
    /// Standard input is a terminal or cannot be read.
    #[error("standard input: {0}")]
    StandardInput(&'static str),
    /// Over the limit.
    #[error("{name}: longer than {} MiB", MAX_MANIFEST >> 20)]
    TooLong {
        /// Name of the input.
        name: String,
    },
    /// Not JSON.
    #[error("{name}: {source}")]
    Json {
        /// Name of the input.
        name: String,
        /// The position and kind of the mistake.
        source: JsonError,
    },
    /// Mistakes in the YAML.
    #[error("{}", errors.iter().map(|error| format!("{name}:{error}")).collect::<Vec<_>>().join("\n"))]
    Yaml {
        /// Name of the input.
        name: String,
        /// Every mistake with its position.
        errors: Vec<proctor_yaml::Error>,
    },
}

/// Reads the manifest that a word of the command line names. `stdin` is read for `-`; `None` stands for a terminal.
pub fn read(
    word: &str,
    surroundings: &Surroundings,
    stdin: Option<&mut dyn Read>,
) -> Result<Input, InputError> {
    if word == "-" {
        let stdin =
            stdin.ok_or(InputError::StandardInput("is a terminal: give a file, or pipe a manifest"))?;
        return parse("standard input", None, &bounded("standard input", stdin)?);
    }
    if word.trim_start().starts_with(['{', '[']) {
        return parse("the JSON text", None, word.as_bytes());
    }
    let path = surroundings.path(word);
    if path.exists() {
        return file(&path);
    }
    match crate::registry::find(surroundings, word) {
        Some(path) => file(&path),
        None => Err(InputError::NotFound(word.to_owned())),
    }
}

/// Reads a manifest from a file.
pub(crate) fn file(path: &Path) -> Result<Input, InputError> {
    let describe = |source| InputError::Read { path: path.to_owned(), source };
    // A FIFO or device would be read for ever.
    if !std::fs::metadata(path).map_err(describe)?.is_file() {
        return Err(InputError::NotAFile(path.to_owned()));
    }
    let name = path.display().to_string();
    let mut opened = File::open(path).map_err(describe)?;
    let bytes = bounded(&name, &mut opened)?;
    parse(&name, Some(path), &bytes)
}

fn bounded(name: &str, reader: &mut dyn Read) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_MANIFEST).unwrap_or(u64::MAX).saturating_add(1);
    let read = reader.take(limit).read_to_end(&mut bytes);
    read.map_err(|source| InputError::Read { path: PathBuf::from(name), source })?;
    if bytes.len() > MAX_MANIFEST {
        return Err(InputError::TooLong { name: name.to_owned() });
    }
    Ok(bytes)
}

/// JSON if the text begins as JSON does and the file is not named otherwise; else YAML.
fn parse(name: &str, file: Option<&Path>, bytes: &[u8]) -> Result<Input, InputError> {
    let extension =
        file.and_then(Path::extension).and_then(|extension| extension.to_str()).unwrap_or_default();
    let begins_as_json =
        bytes.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|byte| b"{[".contains(byte));
    let is_yaml = matches!(extension, "yaml" | "yml") || (extension != "json" && !begins_as_json);
    let file = file.map(Path::to_owned);
    if is_yaml {
        let tree = proctor_yaml::parse(bytes, &LIMITS)
            .map_err(|errors| InputError::Yaml { name: name.to_owned(), errors })?;
        return Ok(Input { manifest: tree.to_json(), file, tree: Some(tree) });
    }
    let json = |source| InputError::Json { name: name.to_owned(), source };
    let manifest = Json::parse_bounded(bytes, LIMITS.nodes).map_err(json)?;
    Ok(Input { manifest, file, tree: None })
}

impl Input {
    /// Position of a finding in the file, if the manifest was YAML.
    pub fn position(&self, finding: &Finding) -> Option<Position> {
        locate(self.tree.as_deref()?, &finding.path)
    }

    /// Whether a YAML manifest says `version: 0.2` without quotes, which is a number.
    pub fn has_unquoted_version(&self) -> bool {
        self.tree.is_some() && matches!(self.manifest.get("version"), Some(Json::Number(_)))
    }
}

/// The node at a finding's path, or the deepest one on the way to it.
fn locate(root: &Node, path: &str) -> Option<Position> {
    let mut node = root;
    let mut at = root.at;
    let mut rest = path.strip_prefix('$')?;
    while !rest.is_empty() {
        let next = if let Some(name) = rest.strip_prefix('.') {
            let end = name.find(['.', '[']).unwrap_or(name.len());
            let (name, after) = name.split_at(end);
            rest = after;
            node.entry(name).map(|(key, node)| (key.at, node))
        } else {
            let (number, after) = rest.strip_prefix('[')?.split_once(']')?;
            rest = after;
            match &node.value {
                Value::List(items) => items.get(number.parse::<usize>().ok()?).map(|item| (item.at, &**item)),
                _ => None,
            }
        };
        match next {
            Some((position, found)) => (at, node) = (position, found),
            None => break,
        }
    }
    Some(at)
}

#[cfg(test)]
mod tests;
