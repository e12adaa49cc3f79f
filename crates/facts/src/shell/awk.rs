//! Programs of awk: the commands, files and code in them.

/// Effect of an awk program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AwkEffect {
    /// Runs a command line; `None` if its text is not known.
    Runs(Option<String>),
    Writes(Option<String>),
    Reads(Option<String>),
    /// Text in quotes that is written as a path.
    Names(String),
    /// A directive, or text that cannot be followed.
    Unreadable,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Text(String),
    Name(String),
    Sign(char),
    End,
}

/// The effects of a program, in order.
pub(super) fn effects(program: &str) -> Vec<AwkEffect> {
    let mut found = Vec::new();
    let tokens = tokens(program, &mut found);
    let mut prints = false;
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        let at = |offset: usize| tokens.get(index + offset);
        let before = index.checked_sub(1).and_then(|index| tokens.get(index));
        let text_at = |offset: usize| match (at(offset), at(offset + 1)) {
            // A string that is joined with something else is not the whole name.
            (Some(Token::Text(text)), None | Some(Token::Sign(')' | '}' | '>' | '|') | Token::End)) => {
                Some(text.clone())
            }
            _ => None,
        };
        match token {
            Token::Text(text)
                if text.starts_with(['/', '~']) || text.contains("/.") || text.starts_with('.') =>
            {
                found.push(AwkEffect::Names(text.clone()));
            }
            Token::End => (prints, depth) = (false, 0),
            Token::Name(name) => match name.as_str() {
                "print" | "printf" => prints = true,
                "system" => found.push(AwkEffect::Runs(
                    at(1).filter(|token| **token == Token::Sign('(')).and_then(|_| text_at(2)),
                )),
                "getline" if before != Some(&Token::Sign('|')) => {
                    let skipped = usize::from(matches!(at(1), Some(Token::Name(_))));
                    if at(1 + skipped) == Some(&Token::Sign('<')) {
                        found.push(AwkEffect::Reads(text_at(2 + skipped)));
                    }
                }
                "ARGV" => found.push(AwkEffect::Reads(None)),
                _ => {}
            },
            Token::Sign('@') => found.push(AwkEffect::Unreadable),
            Token::Sign('|') => {
                if at(1) == Some(&Token::Sign('|')) || before == Some(&Token::Sign('|')) {
                    continue;
                }
                let coprocess = usize::from(at(1) == Some(&Token::Sign('&')));
                if matches!(at(1 + coprocess), Some(Token::Name(name)) if name == "getline") {
                    let code = match before {
                        Some(Token::Text(text)) => Some(text.clone()),
                        _ => None,
                    };
                    found.push(AwkEffect::Runs(code));
                } else {
                    found.push(AwkEffect::Runs(text_at(1 + coprocess)));
                }
            }
            Token::Sign('>') if prints && depth == 0 => {
                let appends = usize::from(at(1) == Some(&Token::Sign('>')));
                if before != Some(&Token::Sign('>')) {
                    found.push(AwkEffect::Writes(text_at(1 + appends)));
                }
            }
            Token::Sign('(') => depth += 1,
            Token::Sign(')') => depth = depth.saturating_sub(1),
            Token::Text(_) | Token::Sign(_) => {}
        }
    }
    found
}

fn tokens(program: &str, found: &mut Vec<AwkEffect>) -> Vec<Token> {
    let characters: Vec<char> = program.chars().collect();
    let mut tokens: Vec<Token> = Vec::new();
    let mut position = 0;
    while let Some(character) = characters.get(position).copied() {
        position += 1;
        match character {
            '"' => {
                let mut text = String::new();
                loop {
                    match characters.get(position) {
                        None => {
                            found.push(AwkEffect::Unreadable);
                            break;
                        }
                        Some('"') => break,
                        Some('\\') => {
                            position += 1;
                            let escaped = characters.get(position).copied().unwrap_or('\\');
                            if !matches!(escaped, '"' | '\\' | '/' | 'n' | 't') {
                                found.push(AwkEffect::Unreadable);
                            }
                            text.push(match escaped {
                                'n' => '\n',
                                't' => '\t',
                                other => other,
                            });
                        }
                        Some(other) => text.push(*other),
                    }
                    position += 1;
                }
                position += 1;
                tokens.push(Token::Text(text));
            }
            '#' => {
                while characters.get(position).is_some_and(|c| *c != '\n') {
                    position += 1;
                }
            }
            '/' if starts_pattern(tokens.last()) => {
                let start = position;
                while characters.get(position).is_some_and(|c| *c != '/') {
                    position += if characters.get(position) == Some(&'\\') { 2 } else { 1 };
                }
                let pattern: String = characters
                    .get(start..position.min(characters.len()))
                    .unwrap_or_default()
                    .iter()
                    .collect();
                // A division that was taken for a pattern must not hide what is behind it.
                if pattern.contains(['"', '\n']) || pattern.contains("system") || pattern.contains("getline")
                {
                    found.push(AwkEffect::Unreadable);
                }
                position += 1;
                tokens.push(Token::Name(String::new()));
            }
            '\n' | ';' | '{' | '}' => {
                if matches!(character, '{' | '}') {
                    tokens.push(Token::Sign(character));
                }
                tokens.push(Token::End);
            }
            c if c.is_whitespace() => {}
            c if c.is_alphanumeric() || c == '_' => {
                let mut name = String::from(c);
                while let Some(next) = characters.get(position).filter(|c| c.is_alphanumeric() || **c == '_')
                {
                    name.push(*next);
                    position += 1;
                }
                tokens.push(Token::Name(name));
            }
            other => tokens.push(Token::Sign(other)),
        }
    }
    tokens
}

/// Whether a slash starts a pattern here rather than dividing.
fn starts_pattern(before: Option<&Token>) -> bool {
    match before {
        None | Some(Token::End) => true,
        Some(Token::Sign(sign)) => !matches!(sign, ')' | ']' | '$'),
        Some(Token::Name(name)) => matches!(name.as_str(), "print" | "printf" | "return" | "in"),
        Some(Token::Text(_)) => false,
    }
}
