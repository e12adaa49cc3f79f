//! Endpoints: vendor, base URL, key and limits.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use zeroize::Zeroizing;

/// A family of HTTP interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Vendor {
    /// OpenAI, and every server that is compatible with its chat completions and embeddings.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini, `generateContent`.
    Gemini,
    /// A local Ollama.
    Ollama,
}

impl Vendor {
    /// Every vendor, in the order of their declaration.
    pub const ALL: [Vendor; 4] = [Vendor::OpenAi, Vendor::Anthropic, Vendor::Gemini, Vendor::Ollama];

    /// The name that settings use.
    pub fn name(self) -> &'static str {
        match self {
            Vendor::OpenAi => "openai",
            Vendor::Anthropic => "anthropic",
            Vendor::Gemini => "gemini",
            Vendor::Ollama => "ollama",
        }
    }

    /// The address the vendor publishes for its interface.
    pub fn usual_base_url(self) -> &'static str {
        match self {
            Vendor::OpenAi => "https://api.openai.com/v1",
            Vendor::Anthropic => "https://api.anthropic.com",
            Vendor::Gemini => "https://generativelanguage.googleapis.com",
            Vendor::Ollama => "http://127.0.0.1:11434",
        }
    }
}

impl fmt::Display for Vendor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A name that belongs to no vendor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown provider `{0}`: expected openai, anthropic, gemini or ollama")]
pub struct UnknownVendor(String);

impl FromStr for Vendor {
    type Err = UnknownVendor;

    fn from_str(name: &str) -> Result<Vendor, UnknownVendor> {
        Vendor::ALL
            .into_iter()
            .find(|vendor| vendor.name() == name)
            .ok_or_else(|| UnknownVendor(name.chars().take(64).collect()))
    }
}

/// An API key: zeroized when dropped, redacted in `Debug`.
///
/// While a call is under way the HTTP library holds copies of its own, which are not overwritten.
#[derive(Clone)]
pub struct Key(Zeroizing<String>);

impl Key {
    /// Creates a key from the secret; white space around it (the line end of a file) is no part of it.
    pub fn new(secret: impl Into<String>) -> Key {
        let secret = Zeroizing::new(secret.into());
        Key(Zeroizing::new(secret.trim().to_owned()))
    }

    /// Whether there is no secret in it at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Key {
    fn from(secret: String) -> Key {
        Key::new(secret)
    }
}

impl From<&str> for Key {
    fn from(secret: &str) -> Key {
        Key::new(secret)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(..)")
    }
}

/// A server and the key for it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Wire format of the server.
    pub vendor: Vendor,
    /// Base URL, for example `https://api.openai.com/v1`; a slash at the end is tolerated.
    pub base_url: String,
    /// The key, if the server wants one; an empty key is none.
    pub key: Option<Key>,
}

impl Endpoint {
    /// The vendor's public address; for Ollama its usual port on this machine.
    pub fn usual(vendor: Vendor, key: Option<Key>) -> Endpoint {
        Endpoint { vendor, base_url: vendor.usual_base_url().to_owned(), key }
    }

    /// The same key and interface at another address.
    #[must_use]
    pub fn at(self, base_url: impl Into<String>) -> Endpoint {
        Endpoint { base_url: base_url.into(), ..self }
    }
}

/// Limits of a client towards a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests a minute, counting retries; zero is no limit.
    pub per_minute: u32,
    /// Burst: requests that may follow each other at once; zero counts as one.
    pub burst: u32,
    /// Number of retries after a failure that may pass by itself.
    pub retries: u32,
    /// Time limit of one HTTP exchange.
    pub attempt: Duration,
    /// Size limit of a reply in bytes.
    pub max_reply_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            per_minute: 60,
            burst: 10,
            retries: 3,
            attempt: Duration::from_secs(60),
            max_reply_bytes: 8 * 1024 * 1024,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vendor_is_read_from_the_name_it_prints() {
        for vendor in Vendor::ALL {
            assert_eq!(vendor.to_string().parse(), Ok(vendor));
        }
        let error = "OpenAI".parse::<Vendor>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown provider `OpenAI`: expected openai, anthropic, gemini or ollama"
        );
    }

    #[test]
    fn a_key_is_never_printed_and_loses_the_line_end_of_its_file() {
        let endpoint = Endpoint::usual(Vendor::OpenAi, Some(Key::new("sk-very-secret\n")));
        assert!(!format!("{endpoint:?}").contains("secret"));
        assert_eq!(endpoint.key.unwrap().expose(), "sk-very-secret");
    }
}
