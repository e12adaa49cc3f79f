//! The local model of a build without the feature `local-embeddings`: it cannot be opened.

use std::path::Path;

use super::LocalModelError;

/// A model that does not exist in this build.
#[derive(Debug)]
pub enum LocalModel {}

impl LocalModel {
    /// Always [`LocalModelError::NotBuilt`].
    pub fn open(dir: &Path) -> Result<LocalModel, LocalModelError> {
        Err(LocalModelError::NotBuilt { dir: dir.to_owned() })
    }

    /// Always [`LocalModelError::NotBuilt`].
    pub fn find(dir: &Path) -> Result<(), LocalModelError> {
        LocalModel::open(dir).map(drop)
    }

    /// The name of the model.
    pub fn name(&self) -> &str {
        match *self {}
    }

    /// The length of a vector.
    pub fn dimensions(&self) -> usize {
        match *self {}
    }

    /// The tokens of a text.
    pub fn token_ids(&self, _text: &str) -> Vec<u32> {
        match *self {}
    }

    /// The vector of a text.
    pub fn embed(&self, _text: &str) -> Vec<f32> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_model_is_refused_with_the_name_of_the_feature() {
        let refused = LocalModel::open(Path::new("models/minilm")).unwrap_err();
        assert!(matches!(&refused, LocalModelError::NotBuilt { dir } if dir == Path::new("models/minilm")));
        assert!(refused.to_string().contains("`local-embeddings`"), "{refused}");
    }
}
