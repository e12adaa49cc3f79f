//! Reading of provider configuration.

use std::io::Read as _;
use std::path::Path;

use proctor_core::json::Json;

/// Largest policy, schema or certificate file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A key is missing, or has the wrong type.
    #[error("`provider_config.{0}` has to be a text that is not blank")]
    Text(&'static str),
    /// A key has a value that is not known.
    #[error("`provider_config.{key}` is one of {known}")]
    Choice {
        /// The key.
        key: &'static str,
        /// Known values.
        known: &'static str,
    },
    /// A key is not an object.
    #[error("`provider_config.{0}` has to be an object")]
    Object(&'static str),
    /// A file cannot be read.
    #[error("the file of `provider_config.{key}` cannot be read: {problem}")]
    File {
        /// The key.
        key: &'static str,
        /// The problem.
        problem: String,
    },
    /// The session has no token to send.
    #[error("`provider_config.identity_type` is `jwt`, and the identity has no token")]
    NoToken,
}

/// A required text.
pub(super) fn text<'c>(config: &'c Json, key: &'static str) -> Result<&'c str, ConfigError> {
    optional_text(config, key)?.ok_or(ConfigError::Text(key))
}

/// An optional text.
pub(super) fn optional_text<'c>(config: &'c Json, key: &'static str) -> Result<Option<&'c str>, ConfigError> {
    match &config[key] {
        Json::Null => Ok(None),
        Json::String(text) if !text.trim().is_empty() => Ok(Some(text)),
        _ => Err(ConfigError::Text(key)),
    }
}

/// A text that stands in the configuration, or in the file that it names. Blocks on the file.
pub(super) fn text_or_file(
    config: &Json,
    key: &'static str,
    file_key: &'static str,
    folder: &Path,
) -> Result<String, ConfigError> {
    if let Some(text) = optional_text(config, key)? {
        return Ok(text.to_owned());
    }
    match optional_text(config, file_key)? {
        Some(path) => file(file_key, &folder.join(path)),
        None => Err(ConfigError::Text(key)),
    }
}

/// The text of a file of bounded size. Blocks on the file.
pub(super) fn file(key: &'static str, path: &Path) -> Result<String, ConfigError> {
    let fault = |problem: String| ConfigError::File { key, problem };
    // Opening a pipe would wait for a writer.
    let about = std::fs::metadata(path).map_err(|error| fault(error.to_string()))?;
    if !about.is_file() {
        return Err(fault("it is not a file".to_owned()));
    }
    let opened = std::fs::File::open(path).map_err(|error| fault(error.to_string()))?;
    let mut text = String::new();
    opened.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(|error| fault(error.to_string()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(fault(format!("it is larger than {MAX_FILE_BYTES} bytes")));
    }
    Ok(text)
}
