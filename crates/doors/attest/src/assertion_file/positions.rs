//! Positions of values in a file of assertions, written in JSON or YAML.

use std::collections::HashMap;

use proctor_core::json::Json;
use proctor_policy::document::YAML_LIMITS;
use proctor_yaml::{Node, Position, Value};

/// Depth to which positions are kept; deeper values are never reported.
const DEEPEST: usize = 4;

/// A JSON value with the positions of its members.
pub(super) struct Located {
    pub(super) value: Json,
    positions: HashMap<String, MemberPosition>,
}

#[derive(Clone, Copy)]
struct MemberPosition {
    name: Position,
    value: Position,
}

impl Located {
    /// Start of the value at this pointer; the start of the file if that is not known.
    pub(super) fn value_at(&self, pointer: &str) -> Position {
        self.positions.get(pointer).map_or(Position::START, |position| position.value)
    }

    /// Start of the member name at this pointer.
    pub(super) fn name_at(&self, pointer: &str) -> Position {
        self.positions.get(pointer).map_or(Position::START, |position| position.name)
    }

    /// Reads JSON.
    pub(super) fn read_json(file: &str, source: &[u8]) -> Result<Located, Vec<String>> {
        let source = source.strip_prefix("\u{feff}".as_bytes()).unwrap_or(source);
        let value = Json::parse(source)
            .map_err(|error| vec![format!("{file}:{}:{}: {}", error.line, error.column, error.problem)])?;
        let text = String::from_utf8_lossy(source);
        Ok(Located { value, positions: json_positions(&text) })
    }

    /// Reads YAML.
    pub(super) fn read_yaml(file: &str, source: &[u8]) -> Result<Located, Vec<String>> {
        let root = proctor_yaml::parse(source, &YAML_LIMITS)
            .map_err(|errors| errors.iter().map(|error| format!("{file}:{error}")).collect::<Vec<_>>())?;
        let mut positions = HashMap::new();
        yaml_positions(&root, String::new(), 0, None, &mut positions);
        Ok(Located { value: root.to_json(), positions })
    }
}

/// Cursor over values in source order, which builds pointers.
#[derive(Default)]
struct Walker {
    around: Vec<Around>,
    positions: HashMap<String, MemberPosition>,
}

enum Around {
    List { next: usize },
    Map { name: Option<(String, Position)> },
}

impl Walker {
    /// Visits a scalar or a member name.
    fn single(&mut self, text: impl FnOnce() -> String, at: Position) {
        match self.around.last_mut() {
            Some(Around::Map { name: name @ None }) => *name = Some((text(), at)),
            _ => {
                self.begin(at);
                self.end();
            }
        }
    }

    fn open(&mut self, inside: Around, at: Position) {
        self.begin(at);
        self.around.push(inside);
    }

    fn close(&mut self) {
        self.around.pop();
        self.end();
    }

    /// Records the position of a value that begins here.
    fn begin(&mut self, at: Position) {
        if self.around.len() > DEEPEST {
            return;
        }
        let mut pointer = String::new();
        let mut name_at = at;
        for around in &self.around {
            pointer.push('/');
            match around {
                Around::List { next } => pointer.push_str(&next.to_string()),
                Around::Map { name: Some((name, at)) } => {
                    pointer.push_str(&escaped(name));
                    name_at = *at;
                }
                Around::Map { name: None } => {}
            }
        }
        self.positions.insert(pointer, MemberPosition { name: name_at, value: at });
    }

    /// Advances to the next sibling.
    fn end(&mut self) {
        match self.around.last_mut() {
            Some(Around::List { next }) => *next += 1,
            Some(Around::Map { name }) => *name = None,
            None => {}
        }
    }
}

/// Member name escaped for a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Positions of the members of a JSON text. The text is valid JSON already, so punctuation is not checked.
fn json_positions(text: &str) -> HashMap<String, MemberPosition> {
    let mut walker = Walker::default();
    let mut at = Position::START;
    let mut characters = text.char_indices().peekable();
    while let Some((offset, character)) = characters.next() {
        let here = at;
        at = after(at, character);
        match character {
            '{' => walker.open(Around::Map { name: None }, here),
            '[' => walker.open(Around::List { next: 0 }, here),
            '}' | ']' => walker.close(),
            '"' => {
                let mut end = offset + 1;
                let mut masked = false;
                for (offset, character) in characters.by_ref() {
                    at = after(at, character);
                    end = offset + character.len_utf8();
                    if character == '"' && !masked {
                        break;
                    }
                    masked = character == '\\' && !masked;
                }
                let written = text.get(offset..end).unwrap_or_default();
                walker.single(|| serde_json::from_str(written).unwrap_or_default(), here);
            }
            ',' | ':' => {}
            space if space.is_ascii_whitespace() => {}
            _ => {
                let part =
                    |character: char| !matches!(character, ',' | '}' | ']') && !character.is_whitespace();
                while let Some((_, character)) = characters.next_if(|(_, character)| part(*character)) {
                    at = after(at, character);
                }
                walker.single(String::new, here);
            }
        }
    }
    walker.positions
}

fn after(at: Position, character: char) -> Position {
    match character {
        '\n' => Position { line: at.line + 1, column: 1 },
        _ => Position { line: at.line, column: at.column + 1 },
    }
}

/// Collects the positions of a YAML tree, down to `DEEPEST`.
fn yaml_positions(
    node: &Node,
    pointer: String,
    depth: usize,
    name: Option<Position>,
    positions: &mut HashMap<String, MemberPosition>,
) {
    let at = node.alias.unwrap_or(node.at);
    // What an alias stands for was written elsewhere; only the alias itself is here.
    if depth < DEEPEST && node.alias.is_none() {
        match &node.value {
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    yaml_positions(item, format!("{pointer}/{index}"), depth + 1, name, positions);
                }
            }
            Value::Map(entries) => {
                for (key, value) in entries {
                    let pointer = format!("{pointer}/{}", escaped(&key.name));
                    yaml_positions(value, pointer, depth + 1, Some(key.at), positions);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => {}
        }
    }
    positions.insert(pointer, MemberPosition { name: name.unwrap_or(at), value: at });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(located: &Located) -> Vec<String> {
        let mut list: Vec<String> = located
            .positions
            .iter()
            .map(|(pointer, position)| {
                format!(
                    "{pointer} {}:{} {}:{}",
                    position.name.line, position.name.column, position.value.line, position.value.column
                )
            })
            .collect();
        list.sort();
        list
    }

    #[test]
    fn json_and_yaml_have_the_same_places_for_the_same_text() {
        let text = "[\n {\"type\": \"a\", \"spec\": {\"x/y\": [1, true], \"\\\"ö\": null}},\n {}, -1.5e3 ]\n";
        let json = Located::read_json("f", text.as_bytes()).unwrap();
        let yaml = Located::read_yaml("f", text.as_bytes()).unwrap();
        assert_eq!(positions(&json), positions(&yaml));
        assert_eq!(json.name_at("/0/spec/x~1y"), Position { line: 2, column: 25 });
        assert_eq!(json.value_at("/0/spec/\"ö"), Position { line: 2, column: 50 });
        assert_eq!(json.value_at("/2"), Position { line: 3, column: 6 });
        assert_eq!(json.value_at("/nowhere"), Position::START);
    }

    #[test]
    fn block_style_and_aliases() {
        let text =
            "assertions:\n  - &one\n    type: content\n    spec: {check: contains}\n  - *one\n  - type: x\n";
        let yaml = Located::read_yaml("f", text.as_bytes()).unwrap();
        assert_eq!(yaml.name_at("/assertions/0/spec/check"), Position { line: 4, column: 12 });
        assert_eq!(yaml.value_at("/assertions/1").line, 5);
        assert_eq!(yaml.value_at("/assertions/2/type"), Position { line: 6, column: 11 });
    }

    #[test]
    fn what_python_writes_is_read_as_json() {
        let located = Located::read_json("f", br#"[{"type":"\ud83d\ude00"}]"#).unwrap();
        assert_eq!(located.value.pointer("/0/type").and_then(Json::as_str), Some("😀"));
        assert!(Located::read_json("f", b"[1,\n 2,]").err().unwrap()[0].starts_with("f:2:4: "));
    }
}
