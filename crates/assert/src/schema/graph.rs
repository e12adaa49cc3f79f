//! The reference graph of a schema: which subschema applies which other one, to the same value or to one inside it.

use std::collections::HashMap;

use jsonschema::{Draft, ReferencingError, Registry, Uri};
use serde_json::{Map, Value};

use super::build::NoExternalSchemas;

/// The parts of a schema; the first is the whole.
#[derive(Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// Whether a node has `unevaluated…` keywords, which walk the other subschemas once more.
    pub(super) tracks_unevaluated: bool,
}

/// A schema node, with the indices of its subschemas.
#[derive(Default, Clone)]
pub(super) struct Node {
    /// Subschemas of the same value.
    pub(super) same: Vec<usize>,
    /// Subschemas of a contained value.
    pub(super) inside: Vec<(usize, Inside)>,
}

/// Selector of a value inside.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Inside {
    /// The member that has this name.
    Member(String),
    /// The item at this index.
    Item(usize),
    /// Any item or member.
    Any,
}

/// Base URI of schemas without a name of their own.
const BASE: &str = "json-schema:///";

/// Maximum of subschemas: compiling more takes too long.
pub(super) const MAX_NODES: usize = 10_000;

impl Graph {
    /// Reads the parts of a schema and follows its references. Those that lead nowhere are left for the compiler to complain of.
    pub(super) fn read(schema: &Value, draft: Draft) -> Result<Graph, ReferencingError> {
        let resource = draft.create_resource_ref(schema);
        let base = match resource.id() {
            Some(id) => jsonschema::uri::resolve_against(&jsonschema::uri::from_str(BASE)?.borrow(), id)?,
            None => jsonschema::uri::from_str(BASE)?,
        };
        let registry = Registry::new()
            .retriever(NoExternalSchemas)
            .draft(draft)
            .add(base.as_str(), resource)?
            .prepare()?;
        let mut reader = Reader {
            registry: &registry,
            found: Vec::new(),
            places: HashMap::new(),
            graph: Graph::default(),
            dynamic: Vec::new(),
            anchors: Vec::new(),
        };
        reader.place(Part { value: schema, base, draft });
        reader.run();
        Ok(reader.finish())
    }
}

struct Part<'r> {
    value: &'r Value,
    base: Uri<String>,
    draft: Draft,
}

struct Reader<'r> {
    registry: &'r Registry<'r>,
    found: Vec<Part<'r>>,
    /// Indices by address: a subschema is the same wherever it is referred from.
    places: HashMap<*const Value, usize>,
    graph: Graph,
    /// References that depend on the way that led to them, by the name that they look for.
    dynamic: Vec<(usize, String)>,
    /// Parts that such references can lead to.
    anchors: Vec<(String, usize)>,
}

/// The name under which recursive references look for their target; no anchor can have it.
const RECURSIVE: &str = "#";

impl<'r> Reader<'r> {
    fn place(&mut self, part: Part<'r>) -> usize {
        let next = self.found.len();
        *self.places.entry(std::ptr::from_ref(part.value)).or_insert_with(|| {
            self.found.push(part);
            self.graph.nodes.push(Node::default());
            next
        })
    }

    fn run(&mut self) {
        let mut at = 0;
        while let Some(part) = self.found.get(at) {
            if self.found.len() > MAX_NODES {
                return;
            }
            let Part { value, draft, .. } = *part;
            let resource = draft.create_resource_ref(value);
            let resolver = self.registry.resolver(part.base.clone());
            let base = resolver
                .in_subresource(resource)
                .map_or_else(|_| part.base.clone(), |inner| inner.base_uri().as_ref().clone());
            if let Value::Object(members) = value {
                let node = self.node(at, members, &base, draft);
                if let Some(place) = self.graph.nodes.get_mut(at) {
                    *place = node;
                }
                // Subschemas without a static reference can still be the target of a dynamic one.
                for below in draft.subresources_of(value) {
                    self.below(below, &base, draft);
                }
            }
            at += 1;
        }
    }

    fn below(&mut self, value: &'r Value, base: &Uri<String>, draft: Draft) -> usize {
        let draft = match draft.detect(value) {
            Draft::Unknown => draft,
            said => said,
        };
        self.place(Part { value, base: base.clone(), draft })
    }

    fn node(&mut self, at: usize, members: &'r Map<String, Value>, base: &Uri<String>, draft: Draft) -> Node {
        let mut node = Node::default();
        if let Some(name) = members.get("$dynamicAnchor").and_then(Value::as_str) {
            self.anchors.push((name.to_owned(), at));
        }
        if members.get("$recursiveAnchor") == Some(&Value::Bool(true)) {
            self.anchors.push((RECURSIVE.to_owned(), at));
        }
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(reference) = members.get(keyword).and_then(Value::as_str) {
                node.same.extend(self.target(reference, base));
                match keyword {
                    "$dynamicRef" => {
                        let name = reference.rsplit_once('#').map_or("", |(_, name)| name);
                        self.dynamic.push((at, name.to_owned()));
                    }
                    "$recursiveRef" => self.dynamic.push((at, RECURSIVE.to_owned())),
                    // What stands beside a reference did not count in these drafts.
                    _ if matches!(draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7) => return node,
                    _ => {}
                }
            }
        }
        for (keyword, value) in members {
            self.graph.tracks_unevaluated |= keyword.starts_with("unevaluated");
            match keyword.as_str() {
                "allOf" | "anyOf" | "oneOf" => {
                    for below in value.as_array().into_iter().flatten() {
                        node.same.push(self.below(below, base, draft));
                    }
                }
                "not" | "if" | "then" | "else" => node.same.push(self.below(value, base, draft)),
                "dependentSchemas" | "dependencies" => {
                    for below in value.as_object().into_iter().flat_map(Map::values) {
                        node.same.push(self.below(below, base, draft));
                    }
                }
                "properties" => {
                    for (name, below) in value.as_object().into_iter().flatten() {
                        node.inside.push((self.below(below, base, draft), Inside::Member(name.clone())));
                    }
                }
                "patternProperties" => {
                    for below in value.as_object().into_iter().flat_map(Map::values) {
                        node.inside.push((self.below(below, base, draft), Inside::Any));
                    }
                }
                "items" | "prefixItems" if value.is_array() => {
                    for (index, below) in value.as_array().into_iter().flatten().enumerate() {
                        node.inside.push((self.below(below, base, draft), Inside::Item(index)));
                    }
                }
                "items"
                | "additionalItems"
                | "unevaluatedItems"
                | "contains"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "propertyNames" => {
                    node.inside.push((self.below(value, base, draft), Inside::Any));
                }
                _ => {}
            }
        }
        node
    }

    fn target(&mut self, reference: &str, base: &Uri<String>) -> Option<usize> {
        let resolved = self.registry.resolver(base.clone()).lookup(reference).ok()?;
        let (value, resolver, draft) = resolved.into_inner();
        Some(self.place(Part { value, base: resolver.base_uri().as_ref().clone(), draft }))
    }

    /// The path to a dynamic reference is not known here, so it may lead to every part that has the name.
    fn finish(self) -> Graph {
        let mut graph = self.graph;
        for (from, name) in &self.dynamic {
            for (_, to) in self.anchors.iter().filter(|(anchor, _)| anchor == name) {
                if let Some(node) = graph.nodes.get_mut(*from)
                    && !node.same.contains(to)
                {
                    node.same.push(*to);
                }
            }
        }
        graph
    }
}
