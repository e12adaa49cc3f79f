//! The forward pass of a BERT-style sentence transformer, on the CPU.

mod characters;
mod encoder;
mod folder;
mod math;
mod tokenizer;
mod weights;

#[cfg(test)]
mod tests;

use std::path::Path;

use encoder::Encoder;
use folder::Folder;
use tokenizer::Tokenizer;
use weights::Weights;

use super::LocalModelError;

/// A model that is in memory and ready to be used, from any number of threads.
#[derive(Debug)]
pub struct LocalModel {
    name: String,
    tokenizer: Tokenizer,
    encoder: Encoder,
}

impl LocalModel {
    /// Looks for the files of a model in a folder and reads its settings, without loading the weights.
    pub fn find(dir: &Path) -> Result<(), LocalModelError> {
        let folder = Folder::find(dir)?;
        folder.config().map(drop)
    }

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
                .map_err(|problem| invalid(&folder.vocabulary_file(), problem.to_string()))?;
        let weights = Weights::read(folder.weights_file())?;
        let encoder = Encoder::new(&config, &weights)?;
        let name = format!("{}:{}", folder_name(dir), weights.fingerprint());
        Ok(LocalModel { name, tokenizer, encoder })
    }

    /// The folder's name and the beginning of the weights' SHA-256: models with the same name make the same vectors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Dimension of the vectors.
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

fn invalid(path: &Path, problem: impl Into<String>) -> LocalModelError {
    LocalModelError::Invalid { path: path.to_owned(), problem: problem.into() }
}

/// The last part of the path; of `.` and the like, that of the folder it stands for.
fn folder_name(dir: &Path) -> String {
    let whole = dir.canonicalize();
    let named = dir.file_name().or_else(|| whole.as_deref().ok().and_then(Path::file_name));
    named.map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned())
}
