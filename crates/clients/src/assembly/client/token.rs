//! The credential token of a registered agent.

use std::fmt;

use tonic::metadata::{Ascii, MetadataValue};
use zeroize::Zeroizing;

/// A credential token: never printed, and wiped when dropped.
///
/// ```
/// use proctor_clients::assembly::client::Token;
///
/// let token = Token::new("3f2a").unwrap();
/// assert_eq!(format!("{token:?}"), "Token([secret])");
/// assert!(Token::new("").is_none() && Token::new("two\nlines").is_none());
/// ```
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

impl Token {
    /// A token; none if the text is empty or is no valid header value.
    pub fn new(text: impl Into<String>) -> Option<Token> {
        let text = Zeroizing::new(text.into());
        let fits = !text.is_empty() && MetadataValue::<Ascii>::try_from(text.as_str()).is_ok();
        fits.then_some(Token(text))
    }

    /// The secret text.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The header value.
    pub(super) fn header(&self) -> Option<MetadataValue<Ascii>> {
        let mut value = MetadataValue::try_from(self.0.as_str()).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token([secret])")
    }
}
