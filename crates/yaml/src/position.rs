//! Positions in a source.

/// A position in a source: line and column from 1, column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

impl Position {
    /// The first character of a source.
    pub const START: Position = Position { line: 1, column: 1 };

    /// The position `characters` into a text that begins here and keeps its lines and indentation, as a literal block
    /// does. In a folded or escaped text the result is only near.
    #[must_use]
    pub fn inside(self, text: &str, characters: usize) -> Position {
        let before = text.chars().take(characters);
        let (mut line, mut column) = (self.line, self.column);
        for character in before {
            if character == '\n' {
                line += 1;
                column = self.column;
            } else {
                column += 1;
            }
        }
        Position { line, column }
    }
}
