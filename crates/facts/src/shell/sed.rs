//! Scripts of sed: the commands, files and code in them.

/// Effect of a sed script.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SedEffect {
    /// Runs this command line; empty if it is the text that sed edits.
    Runs(String),
    Writes(String),
    Reads(String),
    /// The script cannot be followed.
    Unreadable,
}

/// The effects of a script, in order.
pub(super) fn effects(script: &str) -> Vec<SedEffect> {
    let mut reader = Script { characters: script.chars().collect(), position: 0, found: Vec::new() };
    while reader.position < reader.characters.len() {
        if reader.command().is_none() {
            reader.found.push(SedEffect::Unreadable);
            break;
        }
    }
    reader.found
}

struct Script {
    characters: Vec<char>,
    position: usize,
    found: Vec<SedEffect>,
}

impl Script {
    fn peek(&self) -> Option<char> {
        self.characters.get(self.position).copied()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.position += 1;
        Some(character)
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&is_skipped) {
            self.position += 1;
        }
    }

    fn line(&mut self) -> String {
        let rest = self.characters.get(self.position..).unwrap_or_default();
        let line: String = rest.iter().take_while(|c| **c != '\n').collect();
        self.position += line.chars().count() + 1;
        line.trim_start().to_owned()
    }

    /// Text up to the delimiter, which a backslash or a bracket expression hides.
    fn until(&mut self, delimiter: char, is_pattern: bool) -> Option<()> {
        loop {
            match self.next()? {
                '\\' => {
                    self.next()?;
                }
                '[' if is_pattern => self.bracket(delimiter)?,
                c if c == delimiter => return Some(()),
                '\n' if is_pattern => return None,
                _ => {}
            }
        }
    }

    /// Skips a bracket expression. `None` if versions of sed differ in where it ends.
    fn bracket(&mut self, delimiter: char) -> Option<()> {
        let rest = self.characters.get(self.position..).unwrap_or_default();
        let from = usize::from(rest.first() == Some(&'^'));
        let Some(length) = rest.iter().skip(from + 1).position(|c| *c == ']') else { return Some(()) };
        let inside = rest.get(..from + 1 + length).unwrap_or_default();
        if inside.contains(&delimiter) {
            if inside.contains(&'\\') || inside.contains(&'[') || inside.contains(&'\n') {
                return None;
            }
            self.position += inside.len() + 1;
        } else if !inside.contains(&'\\') && !inside.contains(&'[') {
            self.position += inside.len() + 1;
        }
        Some(())
    }

    fn address(&mut self) -> Option<()> {
        match self.peek() {
            Some('/') => {
                self.position += 1;
                self.until('/', true)?;
            }
            Some('\\') => {
                self.position += 1;
                let delimiter = self.next()?;
                self.until(delimiter, true)?;
            }
            _ => self.skip(|c| c.is_ascii_digit() || matches!(c, '$' | '~' | '+')),
        }
        self.skip(|c| matches!(c, 'I' | 'M'));
        self.skip(|c| c == ' ' || c == '\t');
        Some(())
    }

    fn command(&mut self) -> Option<()> {
        self.skip(|c| c.is_whitespace() || c == ';');
        if self.peek().is_none() {
            return Some(());
        }
        self.address()?;
        if self.peek() == Some(',') {
            self.position += 1;
            self.skip(char::is_whitespace);
            self.address()?;
        }
        self.skip(|c| c == '!' || c.is_whitespace());
        match self.next()? {
            '{' | '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {
            }
            'l' | 'L' | 'q' | 'Q' => self.skip(|c| c.is_ascii_digit() || c == ' '),
            '#' => {
                self.line();
            }
            ':' | 'b' | 't' | 'T' | 'v' => {
                let rest = self.characters.get(self.position..).unwrap_or_default();
                self.position += rest.iter().take_while(|c| !matches!(c, '\n' | ';')).count();
            }
            'a' | 'i' | 'c' => loop {
                if !self.line().ends_with('\\') || self.peek().is_none() {
                    break;
                }
            },
            'r' | 'R' => {
                let file = self.line();
                self.found.push(SedEffect::Reads(file));
            }
            'w' | 'W' => {
                let file = self.line();
                self.found.push(SedEffect::Writes(file));
            }
            'e' => {
                let code = self.line();
                self.found.push(SedEffect::Runs(code));
            }
            's' => {
                let delimiter = self.next()?;
                self.until(delimiter, true)?;
                self.until(delimiter, false)?;
                self.flags();
            }
            'y' => {
                let delimiter = self.next()?;
                self.until(delimiter, false)?;
                self.until(delimiter, false)?;
            }
            _ => return None,
        }
        Some(())
    }

    fn flags(&mut self) {
        while let Some(flag) = self.peek() {
            match flag {
                'w' => {
                    self.position += 1;
                    let file = self.line();
                    return self.found.push(SedEffect::Writes(file));
                }
                'e' => self.found.push(SedEffect::Runs(String::new())),
                'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' => {}
                _ => return,
            }
            self.position += 1;
        }
    }
}
