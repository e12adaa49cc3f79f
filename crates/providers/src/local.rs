//! A sentence transformer that runs in this process: a folder with the weights and the vocabulary of a BERT-style model (such
//! as all-MiniLM-L6-v2) turns a text into a vector, with no service and no other runtime.
//!
//! The model needs the cargo feature `local-embeddings`. Without it, [`LocalModel::open`] is an error that says so, so that
//! callers need no features of their own.

#[cfg(feature = "local-embeddings")]
mod transformer;
#[cfg(not(feature = "local-embeddings"))]
mod unavailable;

use std::path::PathBuf;

#[cfg(feature = "local-embeddings")]
pub use transformer::LocalModel;
#[cfg(not(feature = "local-embeddings"))]
pub use unavailable::LocalModel;

/// Error of loading a model folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalModelError {
    /// A file that every model needs is not there.
    #[error(
        "no `{file}` in `{}`: a model's folder holds config.json, vocab.txt and model.safetensors, \
         directly or in `0_Transformer`",
        dir.display()
    )]
    Missing {
        /// The folder that was searched.
        dir: PathBuf,
        /// The file's name.
        file: &'static str,
    },
    /// A file is there but could not be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A file is larger than any model that is supported.
    #[error("`{}` is larger than {limit} bytes: this is not the file of a sentence transformer", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Size limit, in bytes.
        limit: u64,
    },
    /// A settings file is not the JSON that is expected there.
    #[error("`{}` is not a model's settings file: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// The build has no local models.
    #[error(
        "the local model in `{}` cannot be used: this program was built without the feature `local-embeddings`",
        dir.display()
    )]
    NotBuilt {
        /// The model's folder.
        dir: PathBuf,
    },
    /// The weights file is damaged.
    #[cfg(feature = "local-embeddings")]
    #[error("`{}` is not a whole safetensors file: {source}; download it again", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// The reader's error.
        source: safetensors::SafeTensorError,
    },
    /// A file contradicts the others, or is not supported.
    #[error("`{}` cannot be used: {problem}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The mismatch, and the expectation.
        problem: String,
    },
}
