//! Extraction of a secret from a query string, into memory that is wiped.

use zeroize::Zeroizing;

/// The first parameter of that name, decoded as `application/x-www-form-urlencoded`.
pub(super) fn parameter(query: &str, name: &str) -> Option<Zeroizing<String>> {
    let encoded = query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then_some(value)
    })?;
    let mut out = Zeroizing::new(Vec::with_capacity(encoded.len()));
    let mut bytes = encoded.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    std::str::from_utf8(&out).ok().map(|text| Zeroizing::new(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_as_forms_are() {
        let read = |query: &str| parameter(query, "token").map(|text| text.to_string());
        assert_eq!(read("a=b&token=x%2By+z%C3%A9&token=second").as_deref(), Some("x+y zé"));
        assert_eq!(read("token").as_deref(), Some(""));
        for bad in ["", "tokens=1", "token=%", "token=%1", "token=%zz", "token=%ff"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
