//! A sentence transformer that runs in this process: a folder with the weights and the vocabulary of a BERT-style model (such
//! as all-MiniLM-L6-v2) turns a text into a vector, with no service and no other runtime.

mod characters;
mod encoder;
mod folder;
mod math;
mod tokenizer;
mod weights;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use encoder::Encoder;
use folder::Folder;
use tokenizer::Tokenizer;
use weights::Weights;

/// A model that is in memory and ready to be used, from any number of threads.
#[derive(Debug)]
pub struct LocalModel {
    name: String,
    tokenizer: Tokenizer,
    encoder: Encoder,
}

impl LocalModel {
    /// Reads the model in a folder: `config.json`, `vocab.txt` and `model.safetensors`, in the folder itself or where a
    /// sentence transformer's folder usually has them. Everything that could go wrong with the model goes wrong here: with a
    /// model that opens, embedding cannot fail.
    pub fn open(dir: &Path) -> Result<LocalModel, LocalModelError> {
        let folder = Folder::find(dir)?;
        let config = folder.config()?;
        let rules = folder.token_rules(&config)?;
        let vocabulary = folder.vocabulary()?;
        let words = vocabulary.lines().count();
        if words > config.vocabulary {
            return Err(invalid(
                &folder.vocabulary_file(),
                format!("it has {words} lines, but config.json says `vocab_size` {}", config.vocabulary),
            ));
        }
        let tokenizer =
            Tokenizer::new(&vocabulary, &rules.special, rules.preparation, rules.longest_sequence)
                .map_err(|problem| invalid(&folder.vocabulary_file(), problem))?;
        let weights = Weights::read(folder.weights_file())?;
        let encoder = Encoder::new(&config, &weights)?;
        let name = format!("{}:{}", folder_name(dir), weights.fingerprint());
        Ok(LocalModel { name, tokenizer, encoder })
    }

    /// The folder's name and the beginning of the weights' SHA-256: two models with the same name give the same vectors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many numbers a vector has.
    pub fn dimensions(&self) -> usize {
        self.encoder.dimensions()
    }

    /// The text as the model sees it: numbers of vocabulary lines, between `[CLS]` and `[SEP]`. What is beyond the longest
    /// sequence that the model takes is left out.
    pub fn token_ids(&self, text: &str) -> Vec<u32> {
        self.tokenizer.encode(text)
    }

    /// The text's vector: the mean over its tokens, with length 1 (or all zeros if the weights are such that it has no
    /// direction).
    pub fn embed(&self, text: &str) -> Vec<f32> {
        self.encoder.embed(&self.tokenizer.encode(text))
    }
}

/// Why a folder cannot be used as a model.
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
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file is larger than any model that is supported.
    #[error("`{}` is larger than {limit} bytes: this is not the file of a sentence transformer", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most bytes that it may have.
        limit: u64,
    },
    /// A settings file is not the JSON that is expected there.
    #[error("`{}` is not a model's settings file: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: serde_json::Error,
    },
    /// The weights file is damaged.
    #[error("`{}` is not a whole safetensors file: {source}; download it again", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: safetensors::SafeTensorError,
    },
    /// A file says something that does not go together with the others, or that is not supported.
    #[error("`{}` cannot be used: {problem}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what was expected.
        problem: String,
    },
}

fn invalid(path: &Path, problem: impl Into<String>) -> LocalModelError {
    LocalModelError::Invalid { path: path.to_owned(), problem: problem.into() }
}

/// The last part of the path; of `.` and the like, that of the folder it stands for.
fn folder_name(dir: &Path) -> String {
    let whole = dir.canonicalize();
    let named = dir.file_name().or_else(|| whole.as_deref().ok().and_then(Path::file_name));
    named.map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned())
}
