//! Registered manifests: files in the program's own folder, by name.

use std::path::PathBuf;

use proctor_core::json::Json;
use proctor_system::private::{self, PrivateError};

use crate::home::Surroundings;
use crate::input::{self, InputError};

/// The most entries that are listed.
const MAX_ENTRIES: usize = 10_000;

/// Error of the registry.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Not a name.
    #[error(
        "`{0}` is not a name for the registry: use letters, digits, `.`, `_` and `-`, beginning with a letter or digit"
    )]
    Name(String),
    /// No manifest of this name.
    #[error("there is no registered manifest `{0}`: `registry list` shows them")]
    NotFound(String),
    /// The name is taken.
    #[error("`{0}` is registered already: remove it first")]
    Taken(String),
    /// The manifest cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The file cannot be written.
    #[error(transparent)]
    Private(#[from] PrivateError),
    /// The folder or file cannot be read or removed.
    #[error("{}: {}", path.display(), proctor_system::describe(source))]
    Io {
        /// The path.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
}

/// A name without `.json`, if it can be one: no separators, no leading dot.
fn plain_name(name: &str) -> Option<&str> {
    let name = name.strip_suffix(".json").unwrap_or(name);
    let is_plain = (1..=128).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    is_plain.then_some(name)
}

fn checked(name: &str) -> Result<&str, RegistryError> {
    plain_name(name).ok_or_else(|| RegistryError::Name(name.to_owned()))
}

/// The file of a registered manifest.
pub(crate) fn find(surroundings: &Surroundings, name: &str) -> Option<PathBuf> {
    let path = surroundings.manifests().join(format!("{}.json", plain_name(name)?));
    path.is_file().then_some(path)
}

/// Names and files, sorted by name.
pub fn list(surroundings: &Surroundings) -> Result<Json, RegistryError> {
    let folder = surroundings.manifests();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Json::Array(Vec::new())),
        Err(source) => return Err(RegistryError::Io { path: folder, source }),
    };
    let mut found: Vec<(String, PathBuf)> = entries
        .filter_map(Result::ok)
        .take(MAX_ENTRIES)
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let name = plain_name(name.strip_suffix(".json")?)?.to_owned();
            Some((name, entry.path()))
        })
        .collect();
    found.sort();
    let entry = |(name, path): (String, PathBuf)| {
        Json::object().with("name", name).with("path", path.display().to_string())
    };
    Ok(Json::Array(found.into_iter().map(entry).collect()))
}

/// A registered manifest.
pub fn show(surroundings: &Surroundings, name: &str) -> Result<Json, RegistryError> {
    let path = find(surroundings, checked(name)?).ok_or_else(|| RegistryError::NotFound(name.to_owned()))?;
    Ok(input::file(&path)?.manifest)
}

/// Registers a manifest; an existing one is not replaced.
pub fn add(surroundings: &Surroundings, name: &str, manifest: &Json) -> Result<PathBuf, RegistryError> {
    let name = checked(name)?;
    let folder = surroundings.manifests();
    private::create_folder(&folder)?;
    let path = folder.join(format!("{name}.json"));
    if path.symlink_metadata().is_ok() {
        return Err(RegistryError::Taken(name.to_owned()));
    }
    private::write(&path, &format!("{manifest}\n"))?;
    Ok(path)
}

/// Removes a registered manifest.
pub fn remove(surroundings: &Surroundings, name: &str) -> Result<PathBuf, RegistryError> {
    let path = find(surroundings, checked(name)?).ok_or_else(|| RegistryError::NotFound(name.to_owned()))?;
    std::fs::remove_file(&path).map_err(|source| RegistryError::Io { path: path.clone(), source })?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::{RegistryError, add, list, remove, show};
    use crate::home::Surroundings;
    use proctor_core::json::Json;

    #[test]
    fn manifests_are_registered_once_shown_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let surroundings = Surroundings { home: folder.path().join("home"), ..Surroundings::default() };
        assert_eq!(list(&surroundings).unwrap().to_string(), "[]");
        let manifest = Json::object().with("version", "0.2");
        add(&surroundings, "nightly", &manifest).unwrap();
        assert!(matches!(add(&surroundings, "nightly.json", &manifest), Err(RegistryError::Taken(_))));
        assert_eq!(show(&surroundings, "nightly").unwrap(), manifest);
        assert_eq!(list(&surroundings).unwrap().as_array().unwrap().len(), 1);
        remove(&surroundings, "nightly").unwrap();
        assert!(matches!(show(&surroundings, "nightly"), Err(RegistryError::NotFound(_))));
    }

    #[test]
    fn names_stay_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let surroundings = Surroundings { home: folder.path().join("home"), ..Surroundings::default() };
        for name in ["../x", "a/b", "", ".hidden", "a\nb", "x\0"] {
            assert!(
                matches!(add(&surroundings, name, &Json::object()), Err(RegistryError::Name(_))),
                "{name:?}"
            );
            assert!(matches!(show(&surroundings, name), Err(RegistryError::Name(_))), "{name:?}");
        }
    }
}
