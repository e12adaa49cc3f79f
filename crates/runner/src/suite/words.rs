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

/// The first sign of a command line that only a shell understands: an operator like `&&`, `|` or `>`, or an expansion like `$HOME`, outside
/// of quotes. Commands are started without a shell, so that it would be an ordinary word.
///
/// ```
/// use proctor_runner::suite::shell_sign;
/// assert_eq!(shell_sign("mkdir out && cp a out").as_deref(), Some("&&"));
/// assert_eq!(shell_sign("echo $HOME").as_deref(), Some("$HOME"));
/// assert_eq!(shell_sign("sh -c 'mkdir out && cp a out'"), None);
/// assert_eq!(shell_sign(r"find . -exec rm {} \;"), None);
/// ```
pub fn shell_sign(line: &str) -> Option<String> {
    unquoted_words(line).into_iter().find_map(|word| {
        let is_operator = |character: char| "&|;<>".contains(character);
        let after_number = word.trim_start_matches(|character: char| character.is_ascii_digit());
        if word.starts_with(is_operator) || after_number.starts_with('>') {
            return Some(word);
        }
        if word.ends_with(';') {
            return Some(";".to_owned());
        }
        let is_expansion = |(_, rest): (&str, &str)| {
            rest.starts_with(|first: char| {
                first == '_' || first == '(' || first == '{' || first.is_ascii_alphabetic()
            })
        };
        (word.contains('`') || word.split_once('$').is_some_and(is_expansion)).then_some(word)
    })
}

/// The words of a command line without their quoted and escaped parts.
fn unquoted_words(line: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\n' | '\r' => words.push(std::mem::take(&mut word)),
            '\\' => drop(characters.next()),
            '\'' => drop(characters.by_ref().find(|other| *other == '\'')),
            '"' => {
                while let Some(inside) = characters.next() {
                    match inside {
                        '\\' => drop(characters.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            other => word.push(other),
        }
    }
    words.push(word);
    words
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
