//! Settings of the assertion engine, from environment variables.

use std::path::PathBuf;
use std::time::Duration;

use proctor_providers::store::StoreOptions;
use proctor_providers::vendor::{Endpoint, Key, Limits, Vendor};

/// Default time limit of model calls for one batch, in seconds. Below the 30 seconds that official clients wait: they would take a later
/// answer for that of the next request.
const MODEL_SECONDS: u64 = 25;

/// The parsed environment.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Directory of history and caches; `None` without a home directory.
    pub cache: Option<PathBuf>,
    /// Retention limits of history and caches.
    pub kept: StoreOptions,
    /// The judge model, if one is configured; the error of settings that cannot be used.
    pub judge: Result<Option<JudgeSettings>, SettingsError>,
    /// The embedding model, if one is configured; the error of settings that cannot be used.
    pub embedding: Result<Option<EmbeddingSettings>, SettingsError>,
    /// Time limit of model calls for one batch.
    pub model_time: Duration,
    /// Limit of soft failures in a session; batches beyond it are refused.
    pub soft_failures: Option<u64>,
    /// Whether results are stamped as simulated.
    pub simulated: bool,
    /// Whether drift is reported by notifications. Off by default, because official clients cannot read them.
    pub drift_alerts: bool,
}

/// Settings of the judge model.
#[derive(Debug, Clone)]
pub struct JudgeSettings {
    /// Address and credentials of its provider.
    pub endpoint: Endpoint,
    /// Model name for assertions that name none.
    pub model: String,
    /// Rate limit, retries and reply size.
    pub limits: Limits,
    /// Number of samples for assertions that set none.
    pub samples: u32,
    /// Spending limit of the session, in dollars.
    pub budget_usd: Option<f64>,
    /// Dollars for a million input and output tokens; overrides the built-in price list.
    pub price: Option<(f64, f64)>,
}

/// Settings of the embedding model.
#[derive(Debug, Clone)]
pub enum EmbeddingSettings {
    /// A provider's HTTP API.
    Endpoint {
        /// Address and credentials of the provider.
        endpoint: Endpoint,
        /// Model name for assertions that name none.
        model: String,
        /// Rate limit, retries and reply size.
        limits: Limits,
    },
    /// A model in a local directory.
    Local(PathBuf),
}

/// Error in the environment variables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The judge's vendor is unknown.
    #[error("ATTEST_JUDGE_PROVIDER is `{0}`: use openai, anthropic, gemini or ollama")]
    JudgeProvider(String),
    /// The judge's vendor needs an API key.
    #[error("ATTEST_JUDGE_PROVIDER is {0}, but {key} is not set", key = key_variable(*.0))]
    JudgeKey(Vendor),
    /// A variable is not an amount of dollars.
    #[error("{name} is `{value}`: use an amount in dollars, such as 1.50")]
    Amount {
        /// The variable.
        name: String,
        /// The rejected value.
        value: String,
    },
    /// Only one of the two prices is set.
    #[error("set both ATTEST_JUDGE_PRICE_IN and ATTEST_JUDGE_PRICE_OUT, or neither")]
    OnePrice,
    /// The kind of embedding provider is unknown.
    #[error("ATTEST_EMBEDDING_PROVIDER is `{0}`: use auto, openai or local")]
    EmbeddingProvider(String),
    /// A local embedding model has no directory.
    #[error("ATTEST_EMBEDDING_PROVIDER asks for a local model, but ATTEST_EMBEDDING_MODEL_DIR is not set")]
    EmbeddingFolder,
    /// The embedding provider has neither an API key nor an address.
    #[error(
        "ATTEST_EMBEDDING_PROVIDER is openai, but neither ATTEST_OPENAI_API_KEY nor ATTEST_EMBEDDING_BASE_URL is set"
    )]
    EmbeddingKey,
}

impl Settings {
    /// Parses the environment. Settings of a judge or an embedding model that cannot be used are kept as their error: nothing is guessed, and
    /// assertions that need no model are evaluated.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Settings {
        let text = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let number = |name: &str| text(name).and_then(|value| value.trim().parse::<u64>().ok());
        let cache = text("ATTEST_CACHE_DIR")
            .map(PathBuf::from)
            .or_else(|| text("HOME").map(|home| PathBuf::from(home).join(".attest").join("cache")));
        let usual = StoreOptions::default();
        let megabytes =
            |name: &str, usual: u64| number(name).map_or(usual, |count| count.saturating_mul(1024 * 1024));
        let kept = StoreOptions {
            history_max_rows: number("ATTEST_HISTORY_MAX_ROWS")
                .filter(|rows| *rows > 0)
                .unwrap_or(usual.history_max_rows),
            history_max_age_days: number("ATTEST_HISTORY_MAX_AGE_DAYS")
                .filter(|days| *days > 0)
                .unwrap_or(usual.history_max_age_days),
            embedding_cache_bytes: megabytes("ATTEST_EMBEDDING_CACHE_MAX_MB", usual.embedding_cache_bytes),
            judge_cache_bytes: megabytes("ATTEST_JUDGE_CACHE_MAX_MB", usual.judge_cache_bytes)
                .clamp(10 * 1024 * 1024, 10_000 * 1024 * 1024),
        };
        let yes = |name: &str| {
            text(name)
                .is_some_and(|value| matches!(value.trim().to_lowercase().as_str(), "1" | "true" | "yes"))
        };
        let seconds =
            number("ATTEST_JUDGE_TIMEOUT_S").filter(|seconds| *seconds > 0).unwrap_or(MODEL_SECONDS);
        Settings {
            cache,
            kept,
            judge: judge(&text),
            embedding: embedding(&text),
            model_time: Duration::from_secs(seconds.min(600)),
            soft_failures: number("ATTEST_BUDGET_MAX_COST"),
            simulated: yes("ATTEST_SIMULATION"),
            drift_alerts: yes("ATTEST_DRIFT_ALERTS"),
        }
    }
}

fn limits(text: &dyn Fn(&str) -> Option<String>) -> Limits {
    let number = |name: &str, usual: u32| {
        text(name).and_then(|value| value.trim().parse().ok()).filter(|count| *count > 0).unwrap_or(usual)
    };
    Limits {
        per_minute: number("ATTEST_JUDGE_RPM", 60),
        burst: number("ATTEST_JUDGE_BURST", 10),
        retries: 3,
        attempt: Duration::from_secs(60),
        max_reply_bytes: 4 * 1024 * 1024,
    }
}

/// Environment variable of a vendor's API key.
fn key_variable(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::OpenAi => "ATTEST_OPENAI_API_KEY",
        Vendor::Anthropic => "ATTEST_ANTHROPIC_API_KEY",
        Vendor::Gemini => "ATTEST_GEMINI_API_KEY",
        Vendor::Ollama => "ATTEST_OLLAMA_API_KEY",
    }
}

fn judge(text: &dyn Fn(&str) -> Option<String>) -> Result<Option<JudgeSettings>, SettingsError> {
    let base_url = text("ATTEST_JUDGE_BASE_URL");
    let vendor = match text("ATTEST_JUDGE_PROVIDER") {
        Some(name) => Some(
            name.trim()
                .parse::<Vendor>()
                .map_err(|_| SettingsError::JudgeProvider(name.trim().to_owned()))?,
        ),
        None if base_url.is_some() || text("ATTEST_OPENAI_API_KEY").is_some() => Some(Vendor::OpenAi),
        None if text("ATTEST_ANTHROPIC_API_KEY").is_some() => Some(Vendor::Anthropic),
        None if text("ATTEST_GEMINI_API_KEY").is_some() => Some(Vendor::Gemini),
        None => text("ATTEST_OLLAMA_BASE_URL").map(|_| Vendor::Ollama),
    };
    let Some(vendor) = vendor else { return Ok(None) };
    let key = text("ATTEST_JUDGE_API_KEY").or_else(|| text(key_variable(vendor))).map(Key::new);
    let free = vendor == Vendor::Ollama;
    if key.is_none() && !free && base_url.is_none() {
        return Err(SettingsError::JudgeKey(vendor));
    }
    let own_url = base_url.or_else(|| free.then(|| text("ATTEST_OLLAMA_BASE_URL")).flatten());
    let usual = Endpoint::usual(vendor, key);
    let endpoint = match own_url {
        Some(url) => usual.at(url),
        None => usual,
    };
    let model = text("ATTEST_JUDGE_MODEL").unwrap_or_else(|| {
        let usual = match vendor {
            Vendor::OpenAi => "gpt-4.1",
            Vendor::Anthropic => "claude-sonnet-4-5",
            Vendor::Gemini => "gemini-2.5-flash",
            Vendor::Ollama => "llama3.1",
        };
        usual.to_owned()
    });
    let decimal = |name: &str| match text(name) {
        None => Ok(None),
        Some(value) => match value.trim().parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(Some(number)),
            _ => Err(SettingsError::Amount { name: name.to_owned(), value: value.trim().to_owned() }),
        },
    };
    let price = match (decimal("ATTEST_JUDGE_PRICE_IN")?, decimal("ATTEST_JUDGE_PRICE_OUT")?) {
        (Some(read), Some(written)) => Some((read, written)),
        (None, None) => free.then_some((0.0, 0.0)),
        _ => return Err(SettingsError::OnePrice),
    };
    Ok(Some(JudgeSettings {
        endpoint,
        model,
        limits: limits(text),
        samples: if text("ATTEST_JUDGE_META_EVAL").as_deref() == Some("true") { 3 } else { 1 },
        budget_usd: decimal("ATTEST_BUDGET_USD")?,
        price,
    }))
}

fn embedding(text: &dyn Fn(&str) -> Option<String>) -> Result<Option<EmbeddingSettings>, SettingsError> {
    let folder = ["ATTEST_EMBEDDING_MODEL_DIR", "ATTEST_ONNX_MODEL_DIR", "ATTEST_MODEL_DIR"]
        .iter()
        .find_map(|name| text(name));
    let base_url = text("ATTEST_EMBEDDING_BASE_URL");
    let key = text("ATTEST_EMBEDDING_API_KEY").or_else(|| text("ATTEST_OPENAI_API_KEY"));
    let asked = text("ATTEST_EMBEDDING_PROVIDER")
        .map_or_else(|| "auto".to_owned(), |name| name.trim().to_lowercase());
    let local = match asked.as_str() {
        "auto" => folder.is_some() && base_url.is_none(),
        "local" | "onnx" => true,
        "openai" => false,
        other => return Err(SettingsError::EmbeddingProvider(other.to_owned())),
    };
    if local {
        let folder = folder.ok_or(SettingsError::EmbeddingFolder)?;
        return Ok(Some(EmbeddingSettings::Local(PathBuf::from(folder))));
    }
    if key.is_none() && base_url.is_none() {
        return match asked.as_str() {
            "openai" => Err(SettingsError::EmbeddingKey),
            _ => Ok(None),
        };
    }
    let usual = Endpoint::usual(Vendor::OpenAi, key.map(Key::new));
    Ok(Some(EmbeddingSettings::Endpoint {
        endpoint: match base_url {
            Some(url) => usual.at(url),
            None => usual,
        },
        model: text("ATTEST_EMBEDDING_MODEL").unwrap_or_else(|| "text-embedding-3-small".to_owned()),
        limits: limits(text),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Settings {
        Settings::read(&|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_set_means_no_models_and_no_cache() {
        let settings = read(&[]);
        assert!(matches!(
            (&settings.judge, &settings.embedding, &settings.cache),
            (Ok(None), Ok(None), None)
        ));
        assert!(!settings.simulated && !settings.drift_alerts);
        assert_eq!(settings.model_time, Duration::from_secs(25));
    }

    #[test]
    fn the_vendor_follows_from_the_key() {
        for (variable, vendor) in [
            ("ATTEST_OPENAI_API_KEY", Vendor::OpenAi),
            ("ATTEST_ANTHROPIC_API_KEY", Vendor::Anthropic),
            ("ATTEST_GEMINI_API_KEY", Vendor::Gemini),
            ("ATTEST_OLLAMA_BASE_URL", Vendor::Ollama),
            ("ATTEST_JUDGE_BASE_URL", Vendor::OpenAi),
        ] {
            let judge = read(&[(variable, "http://127.0.0.1:1")]).judge.unwrap().unwrap();
            assert_eq!(judge.endpoint.vendor, vendor, "{variable}");
        }
    }

    #[test]
    fn a_model_that_cannot_be_used_is_told_and_the_other_can_be() {
        for (pairs, is_judge, says) in [
            (vec![("ATTEST_JUDGE_PROVIDER", "acme")], true, "`acme`"),
            (
                vec![("ATTEST_JUDGE_PROVIDER", "anthropic"), ("ATTEST_OPENAI_API_KEY", "k")],
                true,
                "ATTEST_ANTHROPIC_API_KEY",
            ),
            (vec![("ATTEST_EMBEDDING_PROVIDER", "word2vec")], false, "`word2vec`"),
            (vec![("ATTEST_EMBEDDING_PROVIDER", "local")], false, "ATTEST_EMBEDDING_MODEL_DIR"),
            (vec![("ATTEST_EMBEDDING_PROVIDER", "openai")], false, "ATTEST_OPENAI_API_KEY"),
            (vec![("ATTEST_OPENAI_API_KEY", "k"), ("ATTEST_BUDGET_USD", "a lot")], true, "ATTEST_BUDGET_USD"),
            (
                vec![("ATTEST_OPENAI_API_KEY", "k"), ("ATTEST_JUDGE_PRICE_IN", "1")],
                true,
                "ATTEST_JUDGE_PRICE_OUT",
            ),
        ] {
            let settings = read(&pairs);
            let (judge, embedding) = (settings.judge.err(), settings.embedding.err());
            assert_eq!((judge.is_some(), embedding.is_some()), (is_judge, !is_judge), "{says}");
            let error = judge.or(embedding).unwrap().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn odd_numbers_fall_back_and_keys_are_not_shown() {
        let settings = read(&[
            ("ATTEST_HISTORY_MAX_ROWS", "many"),
            ("ATTEST_BUDGET_MAX_COST", "1.00"),
            ("ATTEST_OPENAI_API_KEY", "sk-very-secret"),
            ("ATTEST_SIMULATION", "Yes"),
        ]);
        assert_eq!(settings.kept.history_max_rows, 10_000);
        assert_eq!(settings.soft_failures, None);
        assert!(settings.simulated);
        assert!(!format!("{settings:?}").contains("very-secret"));
    }
}
