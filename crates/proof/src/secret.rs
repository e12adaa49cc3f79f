//! Text that must never be printed.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Secret text: a token, key or password. `Debug` hides it, dropping overwrites it, and comparing takes constant time.
#[derive(Clone, Default)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes over the text.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(Zeroizing::new(text.into()))
    }

    /// The text itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text without white space at both ends.
    #[must_use]
    pub fn trimmed(&self) -> Secret {
        Secret::new(self.0.trim())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret([redacted])")
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Secret) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl Eq for Secret {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_compared_and_never_printed() {
        let secret = Secret::new(" hunter2\n");
        assert_eq!(secret.trimmed(), Secret::new("hunter2"));
        assert_ne!(secret, Secret::new("hunter2"));
        assert!(!format!("{secret:?} {:?}", Some(&secret)).contains("hunter2"));
    }
}
