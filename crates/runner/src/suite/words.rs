//! Command lines as words.

/// Words of one command.
const MAX_WORDS: usize = 1_000;

/// Problems of a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WordsError {
    /// A quote is not closed.
    #[error("a quote is not closed")]
    OpenQuote,
    /// A backslash at the end.
    #[error("a backslash stands at the end")]
    OpenEscape,
    /// No words.
    #[error("the command is empty")]
    Empty,
    /// A NUL character.
    #[error("the command has a NUL character")]
    Nul,
    /// Too many words.
    #[error("the command has more than {MAX_WORDS} words")]
    TooMany,
}

/// Splits a command line as a shell would, without expansions: quotes and backslashes group, everything else is literal.
///
/// ```
/// use proctor_runner::suite::split_words;
/// assert_eq!(split_words(r#"python3 "my agent.py" --name 'a b'"#).unwrap(), ["python3", "my agent.py", "--name", "a b"]);
/// ```
pub fn split_words(line: &str) -> Result<Vec<String>, WordsError> {
    if line.contains('\0') {
        return Err(WordsError::Nul);
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next().ok_or(WordsError::OpenQuote)? {
                        '\'' => break,
                        other => word.push(other),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next().ok_or(WordsError::OpenQuote)? {
                        '"' => break,
                        '\\' => match characters.next().ok_or(WordsError::OpenQuote)? {
                            escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                            other => word.extend(['\\', other]),
                        },
                        other => word.push(other),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(characters.next().ok_or(WordsError::OpenEscape)?),
            other => word.get_or_insert_default().push(other),
        }
        if words.len() > MAX_WORDS {
            return Err(WordsError::TooMany);
        }
    }
    words.extend(word);
    // An empty first word names no program.
    if words.first().is_none_or(String::is_empty) {
        return Err(WordsError::Empty);
    }
    Ok(words)
}
