//! Construction of the tree from the parser's events.

use std::collections::BTreeMap;
use std::rc::Rc;

use saphyr_parser::{Event, ScalarStyle, Tag};

use crate::error::{ErrorKind, Errors};
use crate::node::{Key, Node, Value};
use crate::scalar::{self, Plain};
use crate::source::block_content;
use crate::{Limits, Position};

/// An error after which parsing cannot continue; the builder has recorded it.
pub(crate) struct Stop;

/// Builder of one document's tree.
pub(crate) struct Builder<'p> {
    limits: Limits,
    errors: Errors,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Rc<Node>>,
    root: Option<Rc<Node>>,
    nodes: usize,
    text: usize,
    /// Key of the root whose list gives its items away.
    streamed: Option<&'p str>,
    /// The last of these items, until it is taken.
    item: Option<Rc<Node>>,
    /// Number of these items.
    items: usize,
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
    /// A list whose items are given away.
    Streamed,
    Map {
        entries: Vec<(Key, Rc<Node>)>,
        seen: BTreeMap<String, Position>,
        pending: Pending,
    },
}

/// State of a mapping between its events.
enum Pending {
    /// A key comes next.
    Key,
    /// The value of this key comes next.
    Value(Key),
    /// A value comes next and is dropped: its key was refused.
    Dropped,
}

impl<'p> Builder<'p> {
    pub(crate) fn new(limits: Limits, streamed: Option<&'p str>) -> Builder<'p> {
        Builder {
            limits,
            errors: Errors::new(limits.errors),
            open: Vec::new(),
            anchors: BTreeMap::new(),
            root: None,
            nodes: 0,
            text: 0,
            streamed,
            item: None,
            items: 0,
        }
    }

    /// The root, the number of items that were given away, and the errors.
    pub(crate) fn finish(self) -> (Option<Rc<Node>>, usize, Errors) {
        (self.root, self.items, self.errors)
    }

    /// The item of the streamed list that has just ended.
    pub(crate) fn take_item(&mut self) -> Option<Rc<Node>> {
        self.item.take()
    }

    pub(crate) fn refuse(&mut self, at: Position, kind: ErrorKind) {
        self.errors.add(at, kind);
    }

    pub(crate) fn take(&mut self, event: Event<'_>, at: Position) -> Result<(), Stop> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), at);
                self.scalar(&text, style, anchor, at)
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_tag(tag.as_deref(), at);
                let is_streamed = anchor == 0 && self.streamed_comes_next();
                let holds = if is_streamed { Holds::Streamed } else { Holds::List(Vec::new()) };
                self.start(holds, anchor, at)
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_tag(tag.as_deref(), at);
                let holds = Holds::Map { entries: Vec::new(), seen: BTreeMap::new(), pending: Pending::Key };
                self.start(holds, anchor, at)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => self.alias(anchor, at),
            _ => Ok(()),
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, anchor: usize, at: Position) -> Result<(), Stop> {
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
        let node = Rc::new(Node { at, content, alias: None, value, nodes: 1, text: text.len(), height: 0 });
        if anchor > 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        if self.key_comes_next() {
            self.spend(0, text.len(), at)?;
            self.scalar_key(&node, style);
            return Ok(());
        }
        self.spend(1, text.len(), at)?;
        self.insert(node);
        Ok(())
    }

    fn scalar_key(&mut self, node: &Node, style: ScalarStyle) {
        let Some(Open { holds: Holds::Map { seen, pending, .. }, .. }) = self.open.last_mut() else { return };
        *pending = Pending::Dropped;
        let error = match &node.value {
            Value::Text(name) if name == "<<" && style == ScalarStyle::Plain => ErrorKind::MergeKey,
            Value::Text(name) => match seen.get(name) {
                Some(first) => ErrorKind::DuplicateKey { name: name.clone(), first_line: first.line },
                None => {
                    seen.insert(name.clone(), node.at);
                    *pending = Pending::Value(Key { name: name.clone(), at: node.at });
                    return;
                }
            },
            Value::Number(literal) => ErrorKind::KeyNotString(literal.clone()),
            Value::Bool(value) => ErrorKind::KeyNotString(value.to_string()),
            _ => ErrorKind::KeyNull,
        };
        self.refuse(node.at, error);
    }

    fn start(&mut self, holds: Holds, anchor: usize, at: Position) -> Result<(), Stop> {
        if self.open.len() >= self.limits.depth {
            return self.stop(at, ErrorKind::TooDeep(self.limits.depth));
        }
        self.spend(1, 0, at)?;
        let is_key = self.key_comes_next();
        self.open.push(Open { at, anchor, is_key, holds });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Stop> {
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
            Holds::Streamed => Value::List(Vec::new()),
            Holds::Map { entries, .. } => {
                for (_, node) in &entries {
                    add(node);
                }
                text += entries.iter().map(|(key, _)| key.name.len()).sum::<usize>();
                Value::Map(entries)
            }
        };
        let node = Rc::new(Node { at, content: at, alias: None, value, nodes, text, height: height + 1 });
        if anchor > 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        if is_key {
            self.refuse_key(at);
        } else {
            self.insert(node);
        }
        Ok(())
    }

    fn alias(&mut self, anchor: usize, at: Position) -> Result<(), Stop> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            return self.stop(at, ErrorKind::RecursiveAlias);
        };
        if self.open.len() + node.height > self.limits.depth {
            return self.stop(at, ErrorKind::TooDeep(self.limits.depth));
        }
        self.spend(node.nodes, node.text, at)?;
        if self.key_comes_next() {
            self.refuse_key(at);
        } else {
            // The copy is shallow, and what it copies was counted.
            self.insert(Rc::new(Node { alias: Some(at), ..Node::clone(&node) }));
        }
        Ok(())
    }

    fn refuse_key(&mut self, at: Position) {
        if let Some(Open { holds: Holds::Map { pending, .. }, .. }) = self.open.last_mut() {
            *pending = Pending::Dropped;
        }
        self.refuse(at, ErrorKind::KeyNotScalar);
    }

    fn key_comes_next(&self) -> bool {
        matches!(self.open.last(), Some(Open { holds: Holds::Map { pending: Pending::Key, .. }, .. }))
    }

    /// Whether the value of the streamed key of the root comes next.
    fn streamed_comes_next(&self) -> bool {
        match (self.open.as_slice(), self.streamed) {
            ([Open { holds: Holds::Map { pending: Pending::Value(key), .. }, .. }], Some(streamed)) => {
                key.name == streamed
            }
            _ => false,
        }
    }

    fn insert(&mut self, node: Rc<Node>) {
        match self.open.last_mut().map(|open| &mut open.holds) {
            Some(Holds::List(items)) => items.push(node),
            Some(Holds::Streamed) => {
                self.items += 1;
                self.item = Some(node);
            }
            Some(Holds::Map { entries, pending, .. }) => {
                if let Pending::Value(key) = std::mem::replace(pending, Pending::Key) {
                    entries.push((key, node));
                }
            }
            None => self.root = Some(node),
        }
    }

    /// Counts nodes before they are copied, so that an alias bomb costs no more than the counting.
    fn spend(&mut self, nodes: usize, text: usize, at: Position) -> Result<(), Stop> {
        self.nodes = self.nodes.saturating_add(nodes);
        self.text = self.text.saturating_add(text);
        if self.nodes > self.limits.nodes {
            return self.stop(at, ErrorKind::TooManyNodes(self.limits.nodes));
        }
        if self.text > self.limits.text_bytes {
            return self.stop(at, ErrorKind::TooMuchText(self.limits.text_bytes));
        }
        Ok(())
    }

    fn refuse_tag(&mut self, tag: Option<&Tag>, at: Position) {
        if let Some(tag) = tag {
            let prefix = if tag.is_yaml_core_schema() { "!!" } else { tag.handle.as_str() };
            self.refuse(at, ErrorKind::Tag(format!("{prefix}{}", tag.suffix)));
        }
    }

    fn stop(&mut self, at: Position, kind: ErrorKind) -> Result<(), Stop> {
        self.refuse(at, kind);
        Err(Stop)
    }
}
