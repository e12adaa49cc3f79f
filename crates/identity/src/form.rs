//! Bodies of type `application/x-www-form-urlencoded`, and percent-encoding.

use std::fmt;

use zeroize::Zeroizing;

/// Form body under construction. It may hold secrets: `Debug` hides it.
#[derive(Clone, Default)]
pub struct Form(Zeroizing<String>);

impl Form {
    /// An empty form.
    pub fn new() -> Form {
        Form::default()
    }

    /// Appends a field.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Form {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        percent_encode(name.as_bytes(), &mut self.0);
        self.0.push('=');
        percent_encode(value.as_bytes(), &mut self.0);
        self
    }

    /// Appends a field, if there is a value that is not empty.
    #[must_use]
    pub fn with_some(self, name: &str, value: Option<&str>) -> Form {
        match value {
            Some(value) if !value.is_empty() => self.with(name, value),
            _ => self,
        }
    }

    /// The encoded text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Form {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Form([redacted])")
    }
}

/// Appends the bytes, with all but RFC 3986's unreserved characters escaped. Blanks become `%20`, which forms and URLs share.
pub(crate) fn percent_encode(bytes: &[u8], out: &mut String) {
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            for digit in [byte >> 4, byte & 15] {
                out.push(char::from_digit(u32::from(digit), 16).unwrap_or('0').to_ascii_uppercase());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_escaped_so_that_values_cannot_add_fields() {
        let form = Form::new().with("a b", "x&y=z+1").with_some("empty", Some("")).with_some("c", Some("é"));
        assert_eq!(form.as_str(), "a%20b=x%26y%3Dz%2B1&c=%C3%A9");
        assert!(!format!("{form:?}").contains("x%26"));
    }
}
