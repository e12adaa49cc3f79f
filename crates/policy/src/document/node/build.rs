//! From events to the tree.

use std::collections::BTreeMap;
use std::rc::Rc;

use saphyr_parser::{Event, ScalarStyle, Tag};

use super::text::block_content;
use super::{Key, MAX_DEPTH, MAX_NODES, MAX_TEXT_BYTES, Node, Value};
use crate::document::Position;
use crate::document::problems::{Problems, quoted};
use crate::document::scalar::{self, Plain};

/// The document cannot be read on; a problem says why.
pub(super) struct Stop;

/// Builds the tree of one document.
pub(super) struct Builder {
    open: Vec<Open>,
    anchors: BTreeMap<usize, Rc<Node>>,
    root: Option<Rc<Node>>,
    nodes: usize,
    text: usize,
}

/// A mapping or list that has not ended yet.
struct Open {
    at: Position,
    anchor: usize,
    is_key: bool,
    holds: Holds,
}

enum Holds {
    List(Vec<Rc<Node>>),
    Map { entries: Vec<(Key, Rc<Node>)>, seen: BTreeMap<String, Position>, pending: Pending },
}

/// What is known of the entry whose value comes next.
enum Pending {
    /// A key comes next.
    Key,
    /// The value of this key comes next.
    Value(Key),
    /// A value comes next and is dropped: its key was refused.
    Dropped,
}

impl Builder {
    pub(super) fn new() -> Builder {
        Builder { open: Vec::new(), anchors: BTreeMap::new(), root: None, nodes: 0, text: 0 }
    }

    pub(super) fn root(self) -> Option<Rc<Node>> {
        self.root
    }

    pub(super) fn take(
        &mut self,
        event: Event<'_>,
        at: Position,
        problems: &mut Problems,
    ) -> Result<(), Stop> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                refuse_tag(tag.as_deref(), at, problems);
                self.scalar(&text, style, anchor, at, problems)
            }
            Event::SequenceStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), at, problems);
                self.start(Holds::List(Vec::new()), anchor, at, problems)
            }
            Event::MappingStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), at, problems);
                let holds = Holds::Map { entries: Vec::new(), seen: BTreeMap::new(), pending: Pending::Key };
                self.start(holds, anchor, at, problems)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(problems),
            Event::Alias(anchor) => self.alias(anchor, at, problems),
            _ => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        at: Position,
        problems: &mut Problems,
    ) -> Result<(), Stop> {
        let plain = if style == ScalarStyle::Plain { scalar::resolve(text) } else { Plain::Text };
        let value = match plain {
            Plain::Null => Value::Null,
            Plain::Bool(value) => Value::Bool(value),
            Plain::Number => Value::Number(text.to_owned()),
            Plain::Text => Value::Text(text.to_owned()),
        };
        let content = match style {
            ScalarStyle::Plain => at,
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
                Position { line: at.line, column: at.column + 1 }
            }
            ScalarStyle::Literal | ScalarStyle::Folded => block_content(at, text),
        };
        let node = Rc::new(Node { at, content, value, nodes: 1, text: text.len(), height: 0 });
        if anchor > 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        if self.key_comes_next() {
            self.spend(0, text.len(), at, problems)?;
            self.scalar_key(&node, style, problems);
            return Ok(());
        }
        self.spend(1, text.len(), at, problems)?;
        self.place(node);
        Ok(())
    }

    fn scalar_key(&mut self, node: &Node, style: ScalarStyle, problems: &mut Problems) {
        let Some(Open { holds: Holds::Map { seen, pending, .. }, .. }) = self.open.last_mut() else { return };
        *pending = Pending::Dropped;
        let name = match &node.value {
            Value::Text(name) => name,
            Value::Number(literal) => {
                problems.add(node.at, format!("keys must be strings: put {} in quotes", quoted(literal)));
                return;
            }
            Value::Bool(value) => {
                problems.add(node.at, format!("keys must be strings: put `{value}` in quotes"));
                return;
            }
            _ => {
                problems.add(node.at, "keys must be strings, and this one is null; put it in quotes");
                return;
            }
        };
        if name == "<<" && style == ScalarStyle::Plain {
            problems.add(
                node.at,
                "merge keys (`<<`) are not supported; write the keys out (an alias can stand for a whole value)",
            );
        } else if let Some(first) = seen.get(name) {
            problems
                .add(node.at, format!("duplicate key {}, first given at line {}", quoted(name), first.line));
        } else {
            seen.insert(name.clone(), node.at);
            *pending = Pending::Value(Key { name: name.clone(), at: node.at });
        }
    }

    fn start(
        &mut self,
        holds: Holds,
        anchor: usize,
        at: Position,
        problems: &mut Problems,
    ) -> Result<(), Stop> {
        if self.open.len() >= MAX_DEPTH {
            return too_deep(at, problems);
        }
        self.spend(1, 0, at, problems)?;
        let is_key = self.key_comes_next();
        self.open.push(Open { at, anchor, is_key, holds });
        Ok(())
    }

    fn end(&mut self, problems: &mut Problems) -> Result<(), Stop> {
        let Some(Open { at, anchor, is_key, holds }) = self.open.pop() else { return Err(Stop) };
        let (mut nodes, mut text, mut height) = (1, 0, 0);
        let mut add = |node: &Node| {
            nodes += node.nodes;
            text += node.text;
            height = height.max(node.height);
        };
        let value = match holds {
            Holds::List(items) => {
                for node in &items {
                    add(node);
                }
                Value::List(items)
            }
            Holds::Map { entries, .. } => {
                for (_, node) in &entries {
                    add(node);
                }
                text += entries.iter().map(|(key, _)| key.name.len()).sum::<usize>();
                Value::Map(entries)
            }
        };
        let node = Rc::new(Node { at, content: at, value, nodes, text, height: height + 1 });
        if anchor > 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        if is_key {
            self.refuse_key(at, problems);
        } else {
            self.place(node);
        }
        Ok(())
    }

    fn alias(&mut self, anchor: usize, at: Position, problems: &mut Problems) -> Result<(), Stop> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            problems.add(at, "this alias stands inside the value that it repeats");
            return Err(Stop);
        };
        if self.open.len() + node.height > MAX_DEPTH {
            return too_deep(at, problems);
        }
        self.spend(node.nodes, node.text, at, problems)?;
        if self.key_comes_next() {
            self.refuse_key(at, problems);
        } else {
            self.place(node);
        }
        Ok(())
    }

    fn refuse_key(&mut self, at: Position, problems: &mut Problems) {
        if let Some(Open { holds: Holds::Map { pending, .. }, .. }) = self.open.last_mut() {
            *pending = Pending::Dropped;
        }
        problems.add(at, "keys must be strings written in place, not lists, mappings or aliases");
    }

    fn key_comes_next(&self) -> bool {
        matches!(self.open.last(), Some(Open { holds: Holds::Map { pending: Pending::Key, .. }, .. }))
    }

    fn place(&mut self, node: Rc<Node>) {
        match self.open.last_mut().map(|open| &mut open.holds) {
            Some(Holds::List(items)) => items.push(node),
            Some(Holds::Map { entries, pending, .. }) => {
                if let Pending::Value(key) = std::mem::replace(pending, Pending::Key) {
                    entries.push((key, node));
                }
            }
            None => self.root = Some(node),
        }
    }

    /// Counts before anything is copied, so that an alias bomb costs no more than the counting.
    fn spend(
        &mut self,
        nodes: usize,
        text: usize,
        at: Position,
        problems: &mut Problems,
    ) -> Result<(), Stop> {
        self.nodes = self.nodes.saturating_add(nodes);
        self.text = self.text.saturating_add(text);
        if self.nodes > MAX_NODES {
            problems.add(at, format!("more than {MAX_NODES} values, aliases counted as what they stand for"));
            return Err(Stop);
        }
        if self.text > MAX_TEXT_BYTES {
            problems.add(
                at,
                format!("more than {MAX_TEXT_BYTES} bytes of text, aliases counted as what they stand for"),
            );
            return Err(Stop);
        }
        Ok(())
    }
}

fn too_deep(at: Position, problems: &mut Problems) -> Result<(), Stop> {
    problems.add(at, format!("nested more than {MAX_DEPTH} deep"));
    Err(Stop)
}

fn refuse_tag(tag: Option<&Tag>, at: Position, problems: &mut Problems) {
    if let Some(tag) = tag {
        let prefix = if tag.is_yaml_core_schema() { "!!" } else { tag.handle.as_str() };
        let tag = quoted(&format!("{prefix}{}", tag.suffix));
        problems.add(at, format!("tags are not supported: remove {tag} (a quoted scalar is a string)"));
    }
}
