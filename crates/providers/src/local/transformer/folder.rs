//! Model files: locations, and the configuration they contain.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::tokenizer::Preparation;
use super::{LocalModelError, invalid};

const CONFIG: &str = "config.json";
const VOCABULARY: &str = "vocab.txt";
const WEIGHTS: &str = "model.safetensors";

/// Subfolders, within the folder that was named, that may hold the transformer's own files.
const PLACES: [&str; 4] = ["", "0_Transformer", "0_BERT", "model"];

const LARGEST_SETTINGS: u64 = 64 << 20;
const LARGEST_VOCABULARY: u64 = 64 << 20;
const MOST_VOCABULARY_LINES: usize = 1_000_000;
const MOST_SPECIAL_TOKENS: usize = 4096;
const MOST_LAYERS: usize = 128;
/// Maximum of columns: with the longest sequence, the widest state takes 512 MiB.
const MOST_COLUMNS: usize = 32_768;
const DEFAULT_LONGEST_SEQUENCE: usize = 256;
/// Attention takes memory with the square of the sequence: 64 MiB at this length.
const LONGEST_SEQUENCE: usize = 4096;

/// A folder that has the three files of a model.
#[derive(Debug)]
pub(super) struct Folder {
    /// The folder that was named: what surrounds the transformer is described there.
    root: PathBuf,
    /// Folder of the transformer's own files.
    transformer: PathBuf,
}

/// The shape of the network.
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) vocabulary: usize,
    pub(super) hidden: usize,
    pub(super) layers: usize,
    pub(super) heads: usize,
    pub(super) intermediate: usize,
    pub(super) positions: usize,
    pub(super) token_types: usize,
    pub(super) epsilon: f32,
}

/// Tokenizer settings.
#[derive(Debug)]
pub(super) struct TokenRules {
    pub(super) special: Vec<String>,
    pub(super) preparation: Preparation,
    pub(super) longest_sequence: usize,
}

impl Folder {
    /// The usual folder that has most of a model's files; an error if that still lacks one.
    pub(super) fn find(dir: &Path) -> Result<Folder, LocalModelError> {
        let missing_from = |place: &Path| {
            [CONFIG, VOCABULARY, WEIGHTS]
                .into_iter()
                .filter(|file| !place.join(file).is_file())
                .collect::<Vec<_>>()
        };
        let places =
            PLACES.iter().map(|place| if place.is_empty() { dir.to_owned() } else { dir.join(place) });
        let best = places.map(|place| (missing_from(&place), place)).min_by_key(|(missing, _)| missing.len());
        match best {
            Some((missing, transformer)) => match missing.first() {
                None => Ok(Folder { root: dir.to_owned(), transformer }),
                Some(file) => Err(LocalModelError::Missing { dir: transformer, file }),
            },
            None => Err(LocalModelError::Missing { dir: dir.to_owned(), file: CONFIG }),
        }
    }

    pub(super) fn vocabulary_file(&self) -> PathBuf {
        self.transformer.join(VOCABULARY)
    }

    pub(super) fn weights_file(&self) -> PathBuf {
        self.transformer.join(WEIGHTS)
    }

    /// The vocabulary's text, one entry a line.
    pub(super) fn vocabulary(&self) -> Result<String, LocalModelError> {
        let path = self.vocabulary_file();
        let text = String::from_utf8(read(&path, LARGEST_VOCABULARY)?)
            .map_err(|problem| invalid(&path, format!("it is not UTF-8: {problem}")))?;
        if text.lines().nth(MOST_VOCABULARY_LINES).is_some() {
            return Err(invalid(&path, format!("it has more than {MOST_VOCABULARY_LINES} lines")));
        }
        Ok(text)
    }

    /// The network's shape, once it is clear that the network is of the one kind that can be computed here.
    pub(super) fn config(&self) -> Result<Config, LocalModelError> {
        self.check_surroundings()?;
        let path = self.transformer.join(CONFIG);
        let file: ConfigFile = parse(&path, &read(&path, LARGEST_SETTINGS)?)?;
        let wanted = |what: &str, is: &str, should: &str| {
            if is == should {
                Ok(())
            } else {
                Err(invalid(&path, format!("`{what}` is `{is}`, only `{should}` is supported")))
            }
        };
        wanted("model_type", &file.model_type, "bert")?;
        wanted("hidden_act", &file.hidden_act, "gelu")?;
        wanted("position_embedding_type", &file.position_embedding_type, "absolute")?;
        let positive = [
            ("vocab_size", file.vocab_size),
            ("hidden_size", file.hidden_size),
            ("num_hidden_layers", file.num_hidden_layers),
            ("num_attention_heads", file.num_attention_heads),
            ("intermediate_size", file.intermediate_size),
            ("max_position_embeddings", file.max_position_embeddings),
            ("type_vocab_size", file.type_vocab_size),
        ];
        if let Some((what, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(invalid(&path, format!("`{what}` is 0")));
        }
        let bounded = [
            ("num_hidden_layers", file.num_hidden_layers, MOST_LAYERS),
            ("hidden_size", file.hidden_size, MOST_COLUMNS),
            ("intermediate_size", file.intermediate_size, MOST_COLUMNS),
        ];
        if let Some((what, value, most)) = bounded.iter().find(|(_, value, most)| value > most) {
            return Err(invalid(&path, format!("`{what}` is {value}, at most {most} is supported")));
        }
        if !file.hidden_size.is_multiple_of(file.num_attention_heads) {
            return Err(invalid(
                &path,
                format!(
                    "`hidden_size` {} is not a multiple of `num_attention_heads` {}",
                    file.hidden_size, file.num_attention_heads
                ),
            ));
        }
        if !(file.layer_norm_eps >= 0.0 && file.layer_norm_eps < 1.0) {
            return Err(invalid(&path, "`layer_norm_eps` is not between 0 and 1"));
        }
        Ok(Config {
            vocabulary: file.vocab_size,
            hidden: file.hidden_size,
            layers: file.num_hidden_layers,
            heads: file.num_attention_heads,
            intermediate: file.intermediate_size,
            positions: file.max_position_embeddings,
            token_types: file.type_vocab_size,
            epsilon: file.layer_norm_eps,
        })
    }

    /// The settings of `sentence_bert_config.json`, `tokenizer_config.json` and `tokenizer.json`, in this order; each
    /// may be missing.
    pub(super) fn token_rules(&self, config: &Config) -> Result<TokenRules, LocalModelError> {
        let sentence: SentenceFile = optional(&self.transformer.join("sentence_bert_config.json"))?;
        let tokenizer: TokenizerConfigFile = optional(&self.transformer.join("tokenizer_config.json"))?;
        let fast_path = self.transformer.join("tokenizer.json");
        let fast: TokenizerFile = optional(&fast_path)?;

        let normalizer = fast.normalizer.unwrap_or_default();
        let lowercase = tokenizer.do_lower_case.or(normalizer.lowercase).unwrap_or(true);
        let preparation = Preparation {
            lowercase_first: sentence.do_lower_case.unwrap_or(false),
            lowercase,
            strip_accents: tokenizer.strip_accents.or(normalizer.strip_accents).unwrap_or(lowercase),
            separate_ideographs: tokenizer
                .tokenize_chinese_chars
                .or(normalizer.handle_chinese_chars)
                .unwrap_or(true),
        };
        let longest = sentence.max_seq_length.or(tokenizer.model_max_length);
        let longest = longest.map_or(DEFAULT_LONGEST_SEQUENCE, whole_number);
        Ok(TokenRules {
            special: special_tokens(&fast_path, fast.added_tokens)?,
            preparation,
            longest_sequence: longest.min(config.positions).clamp(2, LONGEST_SEQUENCE),
        })
    }

    /// Checks that the modules after the transformer are those that are implemented: mean pooling, and at most
    /// normalisation.
    fn check_surroundings(&self) -> Result<(), LocalModelError> {
        for place in [&self.root, &self.transformer] {
            let path = place.join("modules.json");
            let modules: Vec<ModuleEntry> = optional(&path)?;
            let known = ["Transformer", "Pooling", "Normalize"];
            let kind_of =
                |module: &ModuleEntry| module.kind.rsplit('.').next().unwrap_or_default().to_owned();
            if let Some(kind) = modules.iter().map(kind_of).find(|kind| !known.contains(&kind.as_str())) {
                let problem =
                    format!("it has a module of type `{kind}`, only {} are supported", known.join(", "));
                return Err(invalid(&path, problem));
            }
            let path = place.join("1_Pooling").join(CONFIG);
            let pooling: PoolingFile = optional(&path)?;
            let others = pooling.cls_token
                || pooling.max_tokens
                || pooling.mean_sqrt_len_tokens
                || pooling.weightedmean_tokens
                || pooling.lasttoken;
            if others || !pooling.mean_tokens.unwrap_or(true) {
                return Err(invalid(&path, "only `pooling_mode_mean_tokens` is supported"));
            }
        }
        Ok(())
    }
}

/// Reads a file of at most `limit` bytes.
pub(super) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, LocalModelError> {
    let failed = |source| LocalModelError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let too_large = || LocalModelError::TooLarge { path: path.to_owned(), limit };
    if length > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).map_err(|_| too_large())?.saturating_add(1));
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit { Err(too_large()) } else { Ok(bytes) }
}

/// A settings file that a model need not have.
fn optional<T: DeserializeOwned + Default>(path: &Path) -> Result<T, LocalModelError> {
    if path.is_file() { parse(path, &read(path, LARGEST_SETTINGS)?) } else { Ok(T::default()) }
}

fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, LocalModelError> {
    serde_json::from_slice(bytes).map_err(|source| LocalModelError::Json { path: path.to_owned(), source })
}

/// Tokens that are found in a text as they are written. Without a list of them, the five of every BERT model.
fn special_tokens(path: &Path, added: Option<Vec<AddedToken>>) -> Result<Vec<String>, LocalModelError> {
    let Some(added) = added else {
        return Ok(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(str::to_owned).to_vec());
    };
    if added.len() > MOST_SPECIAL_TOKENS {
        return Err(invalid(path, format!("it has more than {MOST_SPECIAL_TOKENS} added tokens")));
    }
    if let Some(token) = added.iter().find(|token| token.single_word || token.normalized) {
        return Err(invalid(
            path,
            format!(
                "added token `{}` is `single_word` or `normalized`, which is not supported",
                token.content
            ),
        ));
    }
    Ok(added.into_iter().map(|token| token.content).filter(|content| !content.is_empty()).collect())
}

/// Lengths are sometimes written as 1e30, for "no limit".
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "such a cast stops at the type's ends"
)]
fn whole_number(value: f64) -> usize {
    value as usize
}

#[derive(Deserialize)]
struct ConfigFile {
    model_type: String,
    #[serde(default = "gelu")]
    hidden_act: String,
    #[serde(default = "absolute")]
    position_embedding_type: String,
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    max_position_embeddings: usize,
    #[serde(default = "two")]
    type_vocab_size: usize,
    #[serde(default = "tiny")]
    layer_norm_eps: f32,
}

fn gelu() -> String {
    "gelu".to_owned()
}

fn absolute() -> String {
    "absolute".to_owned()
}

fn two() -> usize {
    2
}

fn tiny() -> f32 {
    1e-12
}

#[derive(Default, Deserialize)]
struct SentenceFile {
    max_seq_length: Option<f64>,
    do_lower_case: Option<bool>,
}

#[derive(Default, Deserialize)]
struct TokenizerConfigFile {
    do_lower_case: Option<bool>,
    strip_accents: Option<bool>,
    tokenize_chinese_chars: Option<bool>,
    model_max_length: Option<f64>,
}

#[derive(Default, Deserialize)]
struct TokenizerFile {
    added_tokens: Option<Vec<AddedToken>>,
    normalizer: Option<Normalizer>,
}

#[derive(Default, Deserialize)]
struct Normalizer {
    lowercase: Option<bool>,
    strip_accents: Option<bool>,
    handle_chinese_chars: Option<bool>,
}

#[derive(Deserialize)]
struct AddedToken {
    content: String,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    normalized: bool,
}

#[derive(Deserialize)]
struct ModuleEntry {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PoolingFile {
    #[serde(rename = "pooling_mode_mean_tokens")]
    mean_tokens: Option<bool>,
    #[serde(rename = "pooling_mode_cls_token")]
    cls_token: bool,
    #[serde(rename = "pooling_mode_max_tokens")]
    max_tokens: bool,
    #[serde(rename = "pooling_mode_mean_sqrt_len_tokens")]
    mean_sqrt_len_tokens: bool,
    #[serde(rename = "pooling_mode_weightedmean_tokens")]
    weightedmean_tokens: bool,
    #[serde(rename = "pooling_mode_lasttoken")]
    lasttoken: bool,
}
