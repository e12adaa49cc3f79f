//! A shell word that remembers which parts were quoted and which are expansions.

/// Origin of a piece of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Unquoted text: globs and braces in it are active.
    Plain,
    /// Text that was quoted or escaped.
    Quoted,
    /// The source text of an expansion whose value is not known.
    Expansion,
    /// The source text of `<( )` or `>( )`.
    Process,
}

/// A word as a list of pieces.
#[derive(Debug, Clone, Default)]
pub(super) struct Word {
    pieces: Vec<(Kind, String)>,
    quoted: bool,
    /// Whether an expansion in it is not quoted, so that it may become several words.
    splits: bool,
}

impl Word {
    /// A word whose text is known exactly.
    pub(super) fn literal(text: &str) -> Self {
        Self { pieces: vec![(Kind::Quoted, text.to_owned())], quoted: true, splits: false }
    }

    /// A word from characters that know their kind.
    pub(super) fn from_marked(marked: &[(char, Kind)], quoted: bool) -> Self {
        let mut word = Self { pieces: Vec::new(), quoted, splits: false };
        for (character, kind) in marked {
            word.push(*kind, *character);
        }
        word
    }

    /// Adds one character.
    pub(super) fn push(&mut self, kind: Kind, character: char) {
        if let Some((last, text)) = self.pieces.last_mut()
            && *last == kind
        {
            text.push(character);
            return;
        }
        self.pieces.push((kind, character.to_string()));
    }

    /// Adds a piece of text.
    pub(super) fn push_all(&mut self, kind: Kind, text: &[char]) {
        for character in text {
            self.push(kind, *character);
        }
    }

    /// Records that quotes were seen: an empty quoted word is a word.
    pub(super) fn mark_quoted(&mut self) {
        self.quoted = true;
    }

    /// Records an expansion outside of quotes.
    pub(super) fn mark_split(&mut self) {
        self.splits = true;
    }

    /// Whether the word may become several: an expansion outside of quotes, `"$@"`, or all elements of an array.
    pub(super) fn splits(&self) -> bool {
        let is_list = |text: &str| text.contains("$@") || text.contains("@]") || text.contains("${@");
        self.splits
            || (!self.quoted && self.expands())
            || self.pieces.iter().any(|(kind, text)| *kind == Kind::Expansion && is_list(text))
    }

    /// Whether nothing at all was read.
    pub(super) fn is_absent(&self) -> bool {
        self.pieces.is_empty() && !self.quoted
    }

    /// The text with quotes removed and expansions as written.
    pub(super) fn text(&self) -> String {
        self.pieces.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// The text if no part was quoted or expanded: only such words can be keywords or operators.
    pub(super) fn plain(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [(Kind::Plain, text)] if !self.quoted => Some(text),
            _ => None,
        }
    }

    /// Whether a quote or backslash was part of the word.
    pub(super) fn is_quoted(&self) -> bool {
        self.quoted || self.pieces.iter().any(|(kind, _)| *kind == Kind::Quoted)
    }

    /// Whether quoted text holds what an evaluation of it would expand.
    pub(super) fn hides_expansions(&self) -> bool {
        self.pieces.iter().any(|(kind, text)| *kind == Kind::Quoted && text.contains(['$', '`']))
    }

    /// Whether quoted text holds what could be a part of an expansion.
    pub(super) fn quotes_active_text(&self) -> bool {
        self.pieces.iter().any(|(kind, text)| *kind == Kind::Quoted && text.contains(['$', '`', '\\']))
    }

    /// Whether a part of the value comes from an expansion.
    pub(super) fn expands(&self) -> bool {
        self.pieces.iter().any(|(kind, _)| matches!(kind, Kind::Expansion | Kind::Process))
    }

    /// Whether a part of the value comes from an expansion that is no process substitution.
    pub(super) fn has_expansion(&self) -> bool {
        self.pieces.iter().any(|(kind, _)| *kind == Kind::Expansion)
    }

    /// Whether the word is a process substitution, that is, no file of its own.
    pub(super) fn is_process(&self) -> bool {
        self.pieces.iter().any(|(kind, _)| *kind == Kind::Process)
    }

    /// Whether the shell would match the word against file names.
    pub(super) fn has_glob(&self) -> bool {
        // A parenthesis outside of quotes belongs to an extended glob.
        self.plain_contains(&['*', '?', '[', '('])
    }

    /// Whether unquoted text contains one of the characters.
    pub(super) fn plain_contains(&self, characters: &[char]) -> bool {
        self.pieces.iter().any(|(kind, text)| *kind == Kind::Plain && text.contains(characters))
    }

    /// Whether a brace sequence such as `{a..z}` remains in the word.
    pub(super) fn has_sequence(&self) -> bool {
        self.plain_contains(&['{']) && self.text().contains("..") && self.plain_contains(&['}'])
    }

    /// Whether a brace may be expanded in the word.
    pub(super) fn has_brace(&self) -> bool {
        self.plain_contains(&['{'])
    }

    /// Whether the word is a sequence of numbers: `{1..9}`.
    pub(super) fn is_number_sequence(&self) -> bool {
        let inside = self.plain().and_then(|text| text.strip_prefix('{')?.strip_suffix('}'));
        inside.is_some_and(|inside| {
            inside.contains("..") && inside.split("..").all(|part| part.parse::<i64>().is_ok())
        })
    }

    /// Whether a brace sequence may produce characters that are active: `{!..(}`.
    pub(super) fn has_odd_sequence(&self) -> bool {
        self.has_sequence()
            && !self.text().chars().all(|c| c.is_ascii_alphanumeric() || "{}.-,_/".contains(c))
    }

    /// Whether the word is an assignment (`name=`, `name+=`, `name[index]=`). The name must be unquoted.
    pub(super) fn is_assignment(&self) -> bool {
        let Some((Kind::Plain, first)) = self.pieces.first() else { return false };
        let name_end = first.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(first.len());
        let (name, rest) = first.split_at(name_end);
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return false;
        }
        if rest.starts_with('[') {
            // The index may hold quotes and expansions, so look for its end in the whole text.
            return self.text().contains("]=") || self.text().contains("]+=");
        }
        rest.starts_with('=') || rest.starts_with("+=")
    }

    /// Number of characters.
    pub(super) fn characters(&self) -> usize {
        self.pieces.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// The name and the value of an assignment without an index, whose name is not quoted.
    pub(super) fn split_plain_assignment(&self) -> Option<(Self, Option<Self>)> {
        let ((Kind::Plain, first), rest) = self.pieces.split_first()? else { return None };
        let (name, value) = first.split_once('=')?;
        if name.contains('[') {
            return None;
        }
        let name = Self::literal(name.strip_suffix('+').unwrap_or(name));
        let mut pieces = Vec::with_capacity(self.pieces.len());
        if !value.is_empty() {
            pieces.push((Kind::Plain, value.to_owned()));
        }
        pieces.extend_from_slice(rest);
        Some((name, Some(Self { pieces, quoted: true, splits: false })))
    }

    /// The characters with their kinds.
    pub(super) fn marked(&self) -> Vec<(char, Kind)> {
        self.pieces.iter().flat_map(|(kind, text)| text.chars().map(move |c| (c, *kind))).collect()
    }

    /// The word without its first characters.
    pub(super) fn skip(&self, count: usize) -> Self {
        let marked = self.marked();
        let mut rest = Self::from_marked(marked.get(count..).unwrap_or_default(), true);
        rest.splits = self.splits;
        rest
    }
}
