//! PEM texts (RFC 7468).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// Longest PEM text that is read, in bytes: a 16384-bit RSA key with a long comment needs a fifth of it.
pub(crate) const MAX_PEM: usize = 64 * 1024;

/// Most blocks in one text.
const MAX_BLOCKS: usize = 16;

/// Block of a PEM text: its label and its decoded bytes, which are overwritten when they are dropped.
#[derive(Clone)]
pub(crate) struct Block {
    /// Words between `BEGIN` and the dashes, for example `PUBLIC KEY`.
    pub(crate) label: String,
    /// Decoded content.
    pub(crate) bytes: Zeroizing<Vec<u8>>,
    /// Whether the block has header lines (`Proc-Type: 4,ENCRYPTED`), as encrypted keys of the traditional format do.
    pub(crate) has_headers: bool,
}

/// PEM text that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PemError {
    /// The text is longer than [`MAX_PEM`].
    #[error("the PEM text is longer than {MAX_PEM} bytes")]
    TooLong,
    /// More blocks than any key or certificate needs.
    #[error("the PEM text has more than {MAX_BLOCKS} blocks")]
    TooManyBlocks,
    /// A block without its end line, or with another label in it.
    #[error("a PEM block does not end with its own `-----END …-----` line")]
    Unclosed,
    /// The content is not base64.
    #[error("the content of a PEM block is not base64")]
    NotBase64,
}

/// The blocks of a text. Lines outside of blocks are comments.
pub(crate) fn blocks(text: &str) -> Result<Vec<Block>, PemError> {
    if text.len() > MAX_PEM {
        return Err(PemError::TooLong);
    }
    let mut found = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let Some(label) = boundary(line, "-----BEGIN ") else { continue };
        if found.len() == MAX_BLOCKS {
            return Err(PemError::TooManyBlocks);
        }
        found.push(block(label, &mut lines)?);
    }
    Ok(found)
}

fn block<'a>(label: &str, lines: &mut impl Iterator<Item = &'a str>) -> Result<Block, PemError> {
    let mut encoded = Zeroizing::new(String::new());
    let mut has_headers = false;
    for line in lines {
        if let Some(end) = boundary(line, "-----END ") {
            if end != label {
                return Err(PemError::Unclosed);
            }
            // The content of an encrypted key is of no use to anyone here; its headers are what is reported.
            let bytes = if has_headers {
                Vec::new()
            } else {
                STANDARD.decode(encoded.as_bytes()).map_err(|_| PemError::NotBase64)?
            };
            return Ok(Block { label: label.to_owned(), bytes: Zeroizing::new(bytes), has_headers });
        }
        if line.contains(':') {
            has_headers = true;
        }
        encoded.push_str(line);
    }
    Err(PemError::Unclosed)
}

fn boundary<'a>(line: &'a str, begin: &str) -> Option<&'a str> {
    line.strip_prefix(begin)?.strip_suffix("-----")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_between_comments() {
        let text = "comment\n-----BEGIN A-----\nAAEC\nAw==\n-----END A-----\n\r\n-----BEGIN B C-----\r\n\r\n-----END B C-----\r\n";
        let found = blocks(text).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].label.as_str(), found[0].bytes.as_slice()), ("A", &[0, 1, 2, 3][..]));
        assert_eq!((found[1].label.as_str(), found[1].bytes.len()), ("B C", 0));
    }

    #[test]
    fn broken_blocks_are_errors() {
        for (text, problem) in [
            ("-----BEGIN A-----\nAAEC\n", PemError::Unclosed),
            ("-----BEGIN A-----\nAAEC\n-----END B-----", PemError::Unclosed),
            ("-----BEGIN A-----\nA*\n-----END A-----", PemError::NotBase64),
            (&"x".repeat(MAX_PEM + 1), PemError::TooLong),
            (&"-----BEGIN A-----\n-----END A-----\n".repeat(17), PemError::TooManyBlocks),
        ] {
            assert_eq!(blocks(text).err(), Some(problem));
        }
    }
}
