//! Streaming decoders of escapes, which keep the positions of what they decode.

/// Byte of a decoded view, and the range of the original stream that it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) byte: u8,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Whether the byte was written as an escape.
    pub(super) is_escaped: bool,
}

/// Kinds of escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escapes {
    /// `\n`, `\/`, `\u002f` and surrogate pairs; also `\x2f`, and as in shells a backslash before punctuation or a blank.
    Json,
    /// `%2F`, `%2f`.
    Percent,
    /// The same, and `+` for a blank.
    Form,
    /// `&amp;`, `&#39;`, `&#x2F;`.
    Html,
    /// Nothing: line breaks with the indentation that follows, other control characters and terminal sequences are left out.
    Control,
}

impl Escapes {
    /// Whether the byte begins an escape.
    pub(super) fn begins(self, byte: u8) -> bool {
        match self {
            Escapes::Json => byte == b'\\',
            Escapes::Percent => byte == b'%',
            Escapes::Form => byte == b'%' || byte == b'+',
            Escapes::Html => byte == b'&',
            Escapes::Control => byte.is_ascii_control(),
        }
    }
}

/// A value as the view without line breaks and control characters shows it.
pub(super) fn without_controls(value: &str) -> Vec<u8> {
    let mut decoder = Decoder::new(Escapes::Control);
    let mut items = Vec::new();
    for byte in value.bytes() {
        decoder.feed(Item { byte, start: 0, end: 0, is_escaped: false }, &mut items);
    }
    decoder.finish(&mut items);
    items.iter().map(|item| item.byte).collect()
}

/// Decoder of one kind of escapes. Malformed ones pass unchanged.
#[derive(Debug, Clone)]
pub(super) struct Decoder {
    escapes: Escapes,
    /// Beginning of an escape: fewer than [`LONGEST`] bytes.
    pending: Vec<Item>,
    /// Whether nothing but blanks came since a line break, in [`Escapes::Control`].
    is_indentation: bool,
    /// Bytes that were left out since the last one that was passed on.
    left_out: usize,
}

/// Most bytes in a row that are left out: without a bound, line breaks without end would hold back everything before them.
const MAX_LEFT_OUT: usize = 1024;

/// Longest escape: a surrogate pair has 12 bytes, and terminal sequences are looked at up to this length.
const LONGEST: usize = 32;

/// Reading of the bytes that may be an escape.
enum Reading {
    /// More bytes are needed.
    Incomplete,
    /// The first byte stands for itself.
    Plain,
    /// So many bytes stand for these.
    Escape { length: usize, bytes: [u8; 4], count: usize },
    /// So many bytes stand for nothing.
    Nothing { length: usize },
}

impl Decoder {
    pub(super) fn new(escapes: Escapes) -> Decoder {
        Decoder { escapes, pending: Vec::with_capacity(LONGEST), is_indentation: false, left_out: 0 }
    }

    /// Forgets what came before.
    pub(super) fn restart(&mut self) {
        self.pending.clear();
        self.is_indentation = false;
        self.left_out = 0;
    }

    /// Position of the first byte that was not yet passed on.
    pub(super) fn pending_from(&self) -> Option<u64> {
        self.pending.first().map(|item| item.start)
    }

    pub(super) fn feed(&mut self, item: Item, out: &mut Vec<Item>) {
        if self.pending.is_empty() && !self.escapes.begins(item.byte) {
            if self.is_indentation && item.byte == b' ' && self.left_out < MAX_LEFT_OUT {
                self.left_out += 1;
                return;
            }
            self.is_indentation = false;
            out.push(self.passed(item));
            return;
        }
        self.pending.push(item);
        self.drain(out);
    }

    /// Passes on what is left at the end of the stream.
    pub(super) fn finish(&mut self, out: &mut Vec<Item>) {
        out.append(&mut self.pending);
    }

    /// An item that is passed on. One after something that was left out counts as escaped: this view differs from the stream there.
    fn passed(&mut self, item: Item) -> Item {
        Item { is_escaped: item.is_escaped || std::mem::take(&mut self.left_out) > 0, ..item }
    }

    fn drain(&mut self, out: &mut Vec<Item>) {
        while let Some(&first) = self.pending.first() {
            match self.read() {
                Reading::Incomplete => return,
                Reading::Plain => {
                    self.is_indentation = self.is_indentation && first.byte == b' ';
                    if !self.is_indentation {
                        out.push(self.passed(first));
                    }
                    self.pending.remove(0);
                }
                Reading::Nothing { .. } if self.left_out >= MAX_LEFT_OUT => {
                    self.is_indentation = false;
                    out.push(self.passed(first));
                    self.pending.remove(0);
                }
                Reading::Nothing { length } => {
                    self.is_indentation |= matches!(first.byte, b'\n' | b'\r');
                    self.left_out += length;
                    self.pending.drain(..length.min(self.pending.len()));
                }
                Reading::Escape { length, bytes, count } => {
                    let end = self.pending.get(length - 1).map_or(first.end, |item| item.end);
                    for &byte in bytes.iter().take(count) {
                        out.push(Item { byte, start: first.start, end, is_escaped: true });
                    }
                    self.pending.drain(..length.min(self.pending.len()));
                }
            }
        }
    }

    fn read(&self) -> Reading {
        let byte = |index: usize| self.pending.get(index).map(|item| item.byte);
        match (self.escapes, byte(0)) {
            (Escapes::Json, Some(b'\\')) => read_json(&byte),
            (Escapes::Form, Some(b'+')) => one(1, b' '),
            (Escapes::Percent | Escapes::Form, Some(b'%')) => match (byte(1), byte(2)) {
                (None, _) => Reading::Incomplete,
                (Some(high), None) if high.is_ascii_hexdigit() => Reading::Incomplete,
                (Some(high), Some(low)) => match (hex_digit(high), hex_digit(low)) {
                    (Some(high), Some(low)) => one(3, high * 16 + low),
                    _ => Reading::Plain,
                },
                _ => Reading::Plain,
            },
            (Escapes::Html, Some(b'&')) => read_html(&byte),
            (Escapes::Control, Some(0x1b)) => read_terminal(&byte),
            (Escapes::Control, Some(control)) if control.is_ascii_control() => Reading::Nothing { length: 1 },
            _ => Reading::Plain,
        }
    }
}

/// A sequence `ESC [ … letter`; of all others only the escape character is left out.
fn read_terminal(byte: &impl Fn(usize) -> Option<u8>) -> Reading {
    match byte(1) {
        None => return Reading::Incomplete,
        Some(b'[') => {}
        Some(_) => return Reading::Nothing { length: 1 },
    }
    for index in 2..LONGEST {
        match byte(index) {
            None => return Reading::Incomplete,
            Some(0x20..=0x3f) => {}
            Some(0x40..=0x7e) => return Reading::Nothing { length: index + 1 },
            Some(_) => break,
        }
    }
    Reading::Nothing { length: 1 }
}

/// Longest character reference: `&#x10FFFF;`.
const LONGEST_REFERENCE: usize = 10;

fn read_html(byte: &impl Fn(usize) -> Option<u8>) -> Reading {
    let mut name = [0_u8; LONGEST_REFERENCE];
    for (index, place) in name.iter_mut().enumerate().skip(1) {
        match byte(index) {
            None => return Reading::Incomplete,
            Some(b';') => {
                let length = index + 1;
                let text =
                    name.get(1..index).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default();
                let scalar = match text {
                    "amp" => Some(u32::from('&')),
                    "lt" => Some(u32::from('<')),
                    "gt" => Some(u32::from('>')),
                    "quot" => Some(u32::from('"')),
                    "apos" => Some(u32::from('\'')),
                    _ => match text.strip_prefix('#') {
                        Some(digits) => match digits.strip_prefix(['x', 'X']) {
                            Some(digits) => u32::from_str_radix(digits, 16).ok(),
                            None => digits.parse().ok(),
                        },
                        None => None,
                    },
                };
                return scalar.map_or(Reading::Plain, |scalar| character(length, scalar));
            }
            Some(own) if own == b'#' || own.is_ascii_alphanumeric() => *place = own,
            Some(_) => return Reading::Plain,
        }
    }
    Reading::Plain
}

fn read_json(byte: &impl Fn(usize) -> Option<u8>) -> Reading {
    match byte(1) {
        None => Reading::Incomplete,
        Some(own @ (b'"' | b'\\' | b'/')) => one(2, own),
        Some(b'b') => one(2, 8),
        Some(b'f') => one(2, 12),
        Some(b'n') => one(2, b'\n'),
        Some(b'r') => one(2, b'\r'),
        Some(b't') => one(2, b'\t'),
        Some(b'u') => match code_unit(byte, 2) {
            Unit::Incomplete => Reading::Incomplete,
            Unit::Malformed => Reading::Plain,
            Unit::Is(high @ 0xD800..=0xDBFF) => match (byte(6), byte(7)) {
                (None, _) | (Some(b'\\'), None) => Reading::Incomplete,
                (Some(b'\\'), Some(b'u')) => match code_unit(byte, 8) {
                    Unit::Incomplete => Reading::Incomplete,
                    Unit::Is(low @ 0xDC00..=0xDFFF) => {
                        let scalar =
                            0x1_0000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(low) - 0xDC00);
                        character(12, scalar)
                    }
                    _ => Reading::Plain,
                },
                _ => Reading::Plain,
            },
            Unit::Is(unit) => character(6, u32::from(unit)),
        },
        Some(b'x') => match (byte(2), byte(3)) {
            (Some(high), Some(low)) => match (hex_digit(high), hex_digit(low)) {
                (Some(high), Some(low)) => one(4, high * 16 + low),
                _ => Reading::Plain,
            },
            (Some(high), None) if !high.is_ascii_hexdigit() => Reading::Plain,
            _ => Reading::Incomplete,
        },
        Some(own) if own.is_ascii_punctuation() || own == b' ' => one(2, own),
        _ => Reading::Plain,
    }
}

enum Unit {
    Incomplete,
    Malformed,
    Is(u16),
}

/// Four hexadecimal digits from `start`.
fn code_unit(byte: &impl Fn(usize) -> Option<u8>, start: usize) -> Unit {
    let mut unit = 0_u16;
    for index in start..start + 4 {
        match byte(index) {
            None => return Unit::Incomplete,
            Some(digit) => match hex_digit(digit) {
                Some(digit) => unit = (unit << 4) | u16::from(digit),
                None => return Unit::Malformed,
            },
        }
    }
    Unit::Is(unit)
}

fn character(length: usize, scalar: u32) -> Reading {
    let Some(character) = char::from_u32(scalar) else { return Reading::Plain };
    let mut bytes = [0; 4];
    let count = character.encode_utf8(&mut bytes).len();
    Reading::Escape { length, bytes, count }
}

fn one(length: usize, byte: u8) -> Reading {
    Reading::Escape { length, bytes: [byte, 0, 0, 0], count: 1 }
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}
