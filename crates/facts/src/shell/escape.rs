//! The escapes of `$'…'`.

/// Decodes the text between the quotes of `$'…'`.
pub(super) fn decode(source: &[char]) -> String {
    let mut bytes: Vec<u8> = Vec::with_capacity(source.len());
    let mut rest = source;
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != '\\' {
            push_char(&mut bytes, *first);
            continue;
        }
        let Some((escape, tail)) = rest.split_first() else {
            bytes.push(b'\\');
            break;
        };
        rest = tail;
        match escape {
            'a' => bytes.push(7),
            'b' => bytes.push(8),
            'e' | 'E' => bytes.push(27),
            'f' => bytes.push(12),
            'n' => bytes.push(10),
            'r' => bytes.push(13),
            't' => bytes.push(9),
            'v' => bytes.push(11),
            '\\' | '\'' | '"' | '?' => push_char(&mut bytes, *escape),
            'x' => {
                let braced = rest.first() == Some(&'{');
                let digits_from = if braced { rest.get(1..).unwrap_or_default() } else { rest };
                let (value, used) = digits(digits_from, 16, if braced { 8 } else { 2 });
                if used == 0 {
                    bytes.extend_from_slice(b"\\x");
                } else {
                    bytes.push((value & 0xff) as u8);
                    rest = digits_from.get(used..).unwrap_or_default();
                    if braced && rest.first() == Some(&'}') {
                        rest = rest.get(1..).unwrap_or_default();
                    }
                }
            }
            'u' | 'U' => {
                let (value, used) = digits(rest, 16, if *escape == 'u' { 4 } else { 8 });
                rest = rest.get(used..).unwrap_or_default();
                match char::from_u32(value) {
                    Some(character) if used > 0 => push_char(&mut bytes, character),
                    _ => push_char(&mut bytes, char::REPLACEMENT_CHARACTER),
                }
            }
            '0'..='7' => {
                let mut all = vec![*escape];
                all.extend(rest.iter().take(2));
                let (value, used) = digits(&all, 8, 3);
                bytes.push((value & 0xff) as u8);
                rest = rest.get(used.saturating_sub(1)..).unwrap_or_default();
            }
            'c' => {
                if let Some((control, tail)) = rest.split_first() {
                    bytes.push((*control as u32 & 0x1f) as u8);
                    rest = tail;
                }
            }
            other => {
                bytes.push(b'\\');
                push_char(&mut bytes, *other);
            }
        }
    }
    // A NUL ends the string in the shells that know this quoting.
    if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
        bytes.truncate(end);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn push_char(bytes: &mut Vec<u8>, character: char) {
    let mut buffer = [0; 4];
    bytes.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
}

/// Reads at most `limit` digits; returns the value and how many were read.
fn digits(source: &[char], radix: u32, limit: usize) -> (u32, usize) {
    let mut value: u32 = 0;
    let mut used = 0;
    for digit in source.iter().take(limit).map_while(|c| c.to_digit(radix)) {
        value = value.wrapping_mul(radix).wrapping_add(digit);
        used += 1;
    }
    (value, used)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn decodes_every_escape_form() {
        let cases = [
            (r"\x72m", "rm"),
            (r"\162\155", "rm"),
            (r"\u0072\U0000006d", "rm"),
            (r"a\tb\n", "a\tb\n"),
            (r"\'", "'"),
            (r"\xc3\xa4", "ä"),
            (r"\x{72}m", "rm"),
            (r"\q", r"\q"),
            (r"rm\0zz", "rm"),
            (r"\cA", "\u{1}"),
            ("\\", "\\"),
            (r"\xzz", r"\xzz"),
        ];
        for (source, expected) in cases {
            assert_eq!(decode(&source.chars().collect::<Vec<_>>()), expected, "{source}");
        }
    }
}
