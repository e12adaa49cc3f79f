//! Errors of a call, and whether it may be retried.

use std::time::Duration;

/// Length limit of a server's own words in an error.
const QUOTED_CHARACTERS: usize = 300;

/// The statuses that may pass by themselves; so does 429, which is [`ProviderError::RateLimited`].
const PASSING_STATUSES: [u16; 6] = [408, 500, 502, 503, 504, 529];

/// Error of a call. No text of it contains the key, even if the server repeats the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The server said no; or it withheld its answer, then the status is that of a success.
    #[error("{}", refusal(*status, message))]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The server's own words, shortened.
        message: String,
    },
    /// The server wants fewer requests.
    #[error("the provider limits how often it is asked{}", later(*retry_after))]
    RateLimited {
        /// Retry delay, if the vendor sent one.
        retry_after: Option<Duration>,
    },
    /// The configured limit of requests a minute has no capacity before the deadline.
    #[error("too many questions for the limit of requests a minute: the next one may be asked in {} s", wait.as_secs_f64().ceil())]
    Throttled {
        /// Length of the refused wait.
        wait: Duration,
    },
    /// No answer came in time.
    #[error("the provider did not answer in time")]
    TimedOut,
    /// No connection, or it broke.
    #[error("the provider cannot be reached: {0}")]
    Unreachable(String),
    /// The reply is malformed.
    #[error("the provider's answer cannot be used: {0}")]
    Unreadable(String),
    /// The reply has more bytes than allowed.
    #[error("the provider's answer has more than the {limit} bytes allowed")]
    TooLong {
        /// Limit.
        limit: usize,
    },
    /// The call cannot be made as it was asked for.
    #[error("{0}")]
    Invalid(String),
}

impl ProviderError {
    /// Whether the same call may succeed at another time.
    pub fn retryable(&self) -> bool {
        match self {
            // A rate limit has a kind of its own; with its status and a message, money is what is missing.
            ProviderError::Refused { status, .. } => PASSING_STATUSES.contains(status),
            ProviderError::RateLimited { .. }
            | ProviderError::Throttled { .. }
            | ProviderError::TimedOut
            | ProviderError::Unreachable(_) => true,
            ProviderError::Unreadable(_) | ProviderError::TooLong { .. } | ProviderError::Invalid(_) => false,
        }
    }

    /// The error without the key, truncated for people.
    pub(super) fn presentable(self, key: Option<&str>) -> ProviderError {
        let clean = |text: String| presentable(&text, key);
        match self {
            ProviderError::Refused { status, message } => {
                ProviderError::Refused { status, message: clean(message) }
            }
            ProviderError::Unreachable(text) => ProviderError::Unreachable(clean(text)),
            ProviderError::Unreadable(text) => ProviderError::Unreadable(clean(text)),
            ProviderError::Invalid(text) => ProviderError::Invalid(clean(text)),
            other @ (ProviderError::RateLimited { .. }
            | ProviderError::Throttled { .. }
            | ProviderError::TimedOut
            | ProviderError::TooLong { .. }) => other,
        }
    }
}

fn refusal(status: u16, message: &str) -> String {
    let what = match status {
        200..=299 => "the provider withheld its answer".to_owned(),
        401 | 403 => format!("the provider refused the key (status {status})"),
        _ => format!("the provider refused (status {status})"),
    };
    if message.is_empty() { what } else { format!("{what}: {message}") }
}

fn later(retry_after: Option<Duration>) -> String {
    match retry_after {
        Some(wait) => format!(": ask again in {} s", wait.as_secs_f64().ceil()),
        None => ": ask again later".to_owned(),
    }
}

/// A single line without control characters and without the key, truncated.
///
/// The key goes before the text is cut: half a key would no longer be recognised.
fn presentable(text: &str, key: Option<&str>) -> String {
    let mut line = String::with_capacity(text.len().min(4 * QUOTED_CHARACTERS));
    for word in text.split(|letter: char| letter.is_whitespace() || letter.is_control()) {
        if !word.is_empty() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    let line = without(&line, key.unwrap_or_default());
    let mut letters = line.chars();
    let mut short: String = letters.by_ref().take(QUOTED_CHARACTERS).collect();
    if letters.next().is_some() {
        short.push('…');
    }
    short
}

/// The text with every occurrence of the key replaced, in whatever case of letters the server repeated it.
pub(super) fn without(text: &str, key: &str) -> String {
    if key.is_empty() {
        return text.to_owned();
    }
    // ASCII lower case keeps every byte's place.
    let (haystack, needle) = (text.to_ascii_lowercase(), key.to_ascii_lowercase());
    let mut clean = String::with_capacity(text.len());
    let mut done = 0;
    for (start, found) in haystack.match_indices(&needle) {
        clean.push_str(text.get(done..start).unwrap_or_default());
        clean.push_str("[key]");
        done = start + found.len();
    }
    clean.push_str(text.get(done..).unwrap_or_default());
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_key_is_removed_also_in_other_letters_and_at_the_cut() {
        let key = "sk-AbCdEf123456";
        let long = format!("{}{key}", "x".repeat(QUOTED_CHARACTERS - 5));
        for text in [format!("wrong key {key}!"), format!("{key}{key}"), key.to_uppercase(), long] {
            let error = ProviderError::Refused { status: 401, message: text }.presentable(Some(key));
            let shown = error.to_string().to_ascii_lowercase();
            assert!(!shown.contains("sk-abcdef"), "{shown}");
        }
    }

    #[test]
    fn the_texts_are_one_short_line() {
        let error = ProviderError::Unreadable("a\n\n\u{1b}[31m b\t".repeat(500)).presentable(None);
        let text = error.to_string();
        assert!(text.chars().count() < QUOTED_CHARACTERS + 60);
        assert!(!text.contains(char::is_control));
    }

    #[test]
    fn what_may_pass_by_itself_is_retryable() {
        let refused = |status| ProviderError::Refused { status, message: String::new() };
        for status in [408, 500, 502, 503, 504, 529] {
            assert!(refused(status).retryable(), "{status}");
        }
        for status in [200, 301, 400, 401, 403, 404, 422, 429, 501] {
            assert!(!refused(status).retryable(), "{status}");
        }
        assert!(ProviderError::RateLimited { retry_after: None }.retryable());
        assert!(ProviderError::TimedOut.retryable());
        assert!(!ProviderError::TooLong { limit: 1 }.retryable());
    }

    proptest! {
        #[test]
        fn no_text_shows_the_key(before in ".{0,400}", after in ".{0,80}", key in "[a-zA-Z0-9_-]{8,40}") {
            let text = format!("{before}{key}{after}");
            let shown = ProviderError::Unreachable(text).presentable(Some(&key)).to_string();
            prop_assert!(!shown.to_ascii_lowercase().contains(&key.to_ascii_lowercase()));
        }
    }
}
