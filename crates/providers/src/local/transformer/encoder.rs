//! The encoder: embeddings, then layers of self-attention and feed-forward networks.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView1, s};

use super::LocalModelError;
use super::folder::Config;
use super::math::{gelu, layer_norm, normalize, softmax};
use super::weights::{Tensors, Weights};

/// A network whose parts fit together: every shape was checked against the others when it was made.
#[derive(Debug)]
pub(super) struct Encoder {
    hidden: usize,
    heads: usize,
    words: Vec<f32>,
    /// The embedding of each position, with that of the first token type (the only one in use) already added.
    positions: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    /// Query, key and value in one matrix: one large product is faster than three.
    attention: Linear,
    attention_output: Linear,
    attention_norm: Norm,
    intermediate: Linear,
    output: Linear,
    output_norm: Norm,
}

/// A matrix with one row for each input, and a bias.
#[derive(Debug)]
struct Linear {
    weight: Array2<f32>,
    bias: Vec<f32>,
}

#[derive(Debug)]
struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

impl Encoder {
    pub(super) fn new(config: &Config, weights: &Weights) -> Result<Encoder, LocalModelError> {
        let tensors = weights.tensors()?;
        let hidden = config.hidden;
        let words = tensors.numbers("embeddings.word_embeddings.weight", &[config.vocabulary, hidden])?;
        let mut positions =
            tensors.numbers("embeddings.position_embeddings.weight", &[config.positions, hidden])?;
        let types =
            tensors.numbers("embeddings.token_type_embeddings.weight", &[config.token_types, hidden])?;
        for position in positions.chunks_exact_mut(hidden) {
            add(position, &types);
        }
        let norm = Norm::new(&tensors, "embeddings.LayerNorm", config)?;
        let layers = (0..config.layers)
            .map(|number| Layer::new(&tensors, &format!("encoder.layer.{number}"), config))
            .collect::<Result<_, _>>()?;
        Ok(Encoder { hidden, heads: config.heads, words, positions, norm, layers })
    }

    pub(super) fn dimensions(&self) -> usize {
        self.hidden
    }

    /// The normalised mean of what the last layer says of each token. A token without an embedding, or beyond the last
    /// position, is left out; the tokenizer makes none.
    pub(super) fn embed(&self, tokens: &[u32]) -> Vec<f32> {
        let mut state = self.embeddings(tokens);
        for layer in &self.layers {
            state = layer.apply(&state, self.heads);
        }
        let mut mean = vec![0.0; self.hidden];
        for row in rows(&mut state) {
            add(&mut mean, row);
        }
        normalize(&mut mean);
        mean
    }

    fn embeddings(&self, tokens: &[u32]) -> Array2<f32> {
        let words = tokens.iter().filter_map(|&token| {
            self.words.chunks_exact(self.hidden).nth(usize::try_from(token).unwrap_or(usize::MAX))
        });
        let pairs: Vec<_> = words.zip(self.positions.chunks_exact(self.hidden)).collect();
        let mut state = Array2::zeros((pairs.len(), self.hidden));
        for (row, (word, position)) in rows(&mut state).zip(pairs) {
            add(row, word);
            add(row, position);
        }
        self.norm.apply(&mut state);
        state
    }
}

impl Layer {
    fn new(tensors: &Tensors<'_>, name: &str, config: &Config) -> Result<Layer, LocalModelError> {
        let (hidden, intermediate) = (config.hidden, config.intermediate);
        let part = |part: &str| format!("{name}.{part}");
        let linear = |name: &str, outputs, inputs| {
            let weight = tensors.matrix(&part(&format!("{name}.weight")), outputs, inputs)?;
            let bias = tensors.vector(&part(&format!("{name}.bias")), outputs)?;
            Ok::<_, LocalModelError>(Linear::new(&weight, bias))
        };
        let (mut weights, mut bias) = (Vec::new(), Vec::new());
        for kind in ["query", "key", "value"] {
            weights
                .extend(tensors.numbers(&part(&format!("attention.self.{kind}.weight")), &[hidden, hidden])?);
            bias.extend(tensors.vector(&part(&format!("attention.self.{kind}.bias")), hidden)?);
        }
        let stacked = tensors.stack(&part("attention.self"), bias.len(), hidden, weights)?;
        Ok(Layer {
            attention: Linear::new(&stacked, bias),
            attention_output: linear("attention.output.dense", hidden, hidden)?,
            attention_norm: Norm::new(tensors, &part("attention.output.LayerNorm"), config)?,
            intermediate: linear("intermediate.dense", intermediate, hidden)?,
            output: linear("output.dense", hidden, intermediate)?,
            output_norm: Norm::new(tensors, &part("output.LayerNorm"), config)?,
        })
    }

    fn apply(&self, state: &Array2<f32>, heads: usize) -> Array2<f32> {
        let context = self.attend(state, heads);
        let mut attended = self.attention_output.apply(&context);
        attended += state;
        self.attention_norm.apply(&mut attended);

        let mut inner = self.intermediate.apply(&attended);
        inner.mapv_inplace(gelu);
        let mut output = self.output.apply(&inner);
        output += &attended;
        self.output_norm.apply(&mut output);
        output
    }

    /// Attention: each head reads its own columns of query, key and value, and writes its own columns of the result.
    fn attend(&self, state: &Array2<f32>, heads: usize) -> Array2<f32> {
        let (length, hidden) = state.dim();
        let width = hidden / heads;
        let scale = 1.0 / (width as f32).sqrt();
        let projected = self.attention.apply(state);
        let mut context = Array2::zeros((length, hidden));
        let mut scores = Array2::zeros((length, length));
        for head in 0..heads {
            let (from, to) = (head * width, (head + 1) * width);
            let query = projected.slice(s![.., from..to]);
            let key = projected.slice(s![.., hidden + from..hidden + to]);
            let value = projected.slice(s![.., 2 * hidden + from..2 * hidden + to]);
            general_mat_mul(scale, &query, &key.t(), 0.0, &mut scores);
            rows(&mut scores).for_each(softmax);
            general_mat_mul(1.0, &scores, &value, 0.0, &mut context.slice_mut(s![.., from..to]));
        }
        context
    }
}

impl Linear {
    /// The file has one row for each output. The other way round the product reads memory in order, which for a short text
    /// is most of its time.
    fn new(weight: &Array2<f32>, bias: Vec<f32>) -> Linear {
        Linear { weight: weight.t().as_standard_layout().into_owned(), bias }
    }

    fn apply(&self, input: &Array2<f32>) -> Array2<f32> {
        let mut output = Array2::zeros((input.nrows(), self.bias.len()));
        output += &ArrayView1::from(self.bias.as_slice());
        general_mat_mul(1.0, input, &self.weight, 1.0, &mut output);
        output
    }
}

impl Norm {
    fn new(tensors: &Tensors<'_>, name: &str, config: &Config) -> Result<Norm, LocalModelError> {
        Ok(Norm {
            weight: tensors.vector(&format!("{name}.weight"), config.hidden)?,
            bias: tensors.vector(&format!("{name}.bias"), config.hidden)?,
            epsilon: config.epsilon,
        })
    }

    fn apply(&self, state: &mut Array2<f32>) {
        for row in rows(state) {
            layer_norm(row, &self.weight, &self.bias, self.epsilon);
        }
    }
}

/// The rows of a matrix as slices. Ours all lie in memory row by row.
fn rows(matrix: &mut Array2<f32>) -> impl Iterator<Item = &mut [f32]> {
    let width = matrix.ncols().max(1);
    matrix.as_slice_mut().unwrap_or_default().chunks_exact_mut(width)
}

fn add(to: &mut [f32], from: &[f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}
