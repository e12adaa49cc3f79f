//! Mock tools: answers to tool calls, by input and by number of the call.

use proctor_core::json::Json;
use proctor_core::quoted;
use proctor_yaml::{Node, Value};

use super::keys;
use super::object::{Object, nonblank, text};
use super::path::Path;
use super::reader::Reader;
use crate::checks::TextPattern;

/// Mock tools of one test.
const MAX_TOOLS: usize = 500;

/// Longest delay of an answer.
const MAX_DELAY_MS: u64 = 3_600_000;

/// A mock tool.
#[derive(Debug, Clone, PartialEq)]
pub struct MockTool {
    /// Name.
    pub name: String,
    /// Description; empty if there is none.
    pub description: String,
    /// Rules; the first that matches answers.
    pub responses: Vec<MockRule>,
    /// The answer if no rule matches.
    pub default: MockReply,
}

/// A rule of a mock tool.
#[derive(Debug, Clone, PartialEq)]
pub struct MockRule {
    /// Comparison with the input.
    pub kind: MatchKind,
    /// Member of the input that is compared; the whole input if absent.
    pub field: Option<String>,
    /// The text to compare with; everything matches if absent.
    pub pattern: Option<String>,
    /// The first call of the tool in a run that the rule answers, counted from 1.
    pub from_call: u64,
    /// The last one.
    pub to_call: u64,
    /// The answer.
    pub reply: MockReply,
}

/// Comparisons of a mock rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    /// The same text.
    Exact,
    /// A part of the text.
    Contains,
    /// A regular expression.
    Regex,
    /// Everything.
    Any,
}

/// An answer of a mock tool.
#[derive(Debug, Clone, PartialEq)]
pub struct MockReply {
    /// The output.
    pub output: Json,
    /// The error text.
    pub error: Option<String>,
    /// The status.
    pub status: MockStatus,
    /// Delay before the answer.
    pub delay_ms: u64,
}

/// Status of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MockStatus {
    /// `success`
    Success,
    /// `error`
    Error,
}

impl MockStatus {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            MockStatus::Success => "success",
            MockStatus::Error => "error",
        }
    }
}

impl MockTool {
    /// The answer to a call; `call` is its number among the calls of this tool in the run, from 1.
    pub fn answer(&self, input: &Json, call: u64) -> &MockReply {
        self.responses.iter().find(|rule| rule.matches(input, call)).map_or(&self.default, |rule| &rule.reply)
    }
}

impl MockRule {
    fn matches(&self, input: &Json, call: u64) -> bool {
        if !(self.from_call..=self.to_call).contains(&call) {
            return false;
        }
        let Some(pattern) = &self.pattern else { return true };
        // A field that the input does not have is no text that could match.
        let found = match &self.field {
            Some(field) => match input.get(field) {
                Some(value) => text_form(value),
                None => return self.kind == MatchKind::Any,
            },
            None => text_form(input),
        };
        match self.kind {
            MatchKind::Any => true,
            MatchKind::Exact => found == *pattern,
            MatchKind::Contains => found.contains(pattern.as_str()),
            MatchKind::Regex => {
                // Loading has compiled it once.
                TextPattern { text: pattern.clone(), regex: true }.is_match(&found).unwrap_or_default()
            }
        }
    }
}

/// Strings as they are, everything else as JSON.
fn text_form(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// `mock_tools`: a list of tools, or a mapping with `tools`.
pub(super) fn read_mock_tools(above: &Object<'_, '_>, reader: &mut Reader<'_>) -> Vec<MockTool> {
    let Some(node) = above.get("mock_tools") else { return Vec::new() };
    let path = above.path.key("mock_tools");
    match &node.value {
        Value::List(_) => read_tools(node, &path, 0, reader),
        Value::Map(_) => {
            let Some(object) = Object::read(node, &path, &keys::MOCK_TOOLS, reader) else {
                return Vec::new();
            };
            object.text("name", reader);
            object.text("description", reader);
            let delay = object.whole("default_delay_ms", (0, MAX_DELAY_MS), reader).unwrap_or_default();
            match object.required("tools", reader) {
                Some(tools) => read_tools(tools, &path.key("tools"), delay, reader),
                None => Vec::new(),
            }
        }
        _ => {
            reader.wrong_type(node, &path, "a list of tools, or a mapping with `tools`");
            Vec::new()
        }
    }
}

fn read_tools(node: &Node, path: &Path<'_>, delay: u64, reader: &mut Reader<'_>) -> Vec<MockTool> {
    let Some(items) = super::object::list(node, path, reader) else { return Vec::new() };
    if items.len() > MAX_TOOLS {
        reader.mistake(node.at, path, format!("at most {MAX_TOOLS} mock tools are allowed"), "");
        return Vec::new();
    }
    let mut tools: Vec<MockTool> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let below = path.index(index);
        let Some(tool) = read_tool(item, &below, delay, reader) else { continue };
        if tools.iter().any(|other| other.name == tool.name) {
            let message = format!("the tool {} is there already", quoted(&tool.name));
            reader.mistake(item.at, &below, message, "put all its `responses` into one tool");
        }
        tools.push(tool);
    }
    tools
}

fn read_tool(node: &Node, path: &Path<'_>, delay: u64, reader: &mut Reader<'_>) -> Option<MockTool> {
    let object = Object::read(node, path, &keys::MOCK_TOOL, reader)?;
    let name = object.required_text("name", reader).map(str::to_owned);
    if name.as_ref().is_some_and(|name| name.contains('/')) {
        let at = object.get("name").map_or(object.at, |node| node.at);
        reader.mistake(
            at,
            &path.key("name"),
            "the name of a tool has no `/`: it is a part of an address",
            "",
        );
    }
    let description = object.text("description", reader).unwrap_or_default().to_owned();
    let mut responses = Vec::new();
    let list = path.key("responses");
    for (index, item) in object.list("responses", reader).unwrap_or_default().iter().enumerate() {
        responses.extend(read_rule(item, &list.index(index), delay, reader));
    }
    let default = match object.get("default") {
        Some(node) => read_reply(node, &path.key("default"), delay, reader),
        None => Some(MockReply {
            output: Json::object(),
            error: None,
            status: MockStatus::Success,
            delay_ms: delay,
        }),
    };
    Some(MockTool { name: name?, description, responses, default: default? })
}

fn read_rule(node: &Node, path: &Path<'_>, delay: u64, reader: &mut Reader<'_>) -> Option<MockRule> {
    let object = Object::read(node, path, &keys::MOCK_RESPONSE, reader)?;
    let reply =
        object.required("then", reader).and_then(|node| read_reply(node, &path.key("then"), delay, reader));
    let any = |reply| MockRule {
        kind: MatchKind::Any,
        field: None,
        pattern: None,
        from_call: 1,
        to_call: u64::MAX,
        reply,
    };
    let Some(when) = object.given("when") else { return reply.map(any) };
    let below = path.key("when");
    let when = Object::read(when, &below, &keys::MOCK_WHEN, reader)?;
    let pattern = match when.given("pattern") {
        Some(node) => Some(text(node, &below.key("pattern"), reader)?.to_owned()),
        None => None,
    };
    if pattern.is_some() && when.get("type").is_none() {
        let message = "`type` is missing beside `pattern`";
        reader.mistake(when.at, &below, message, super::problem::suggestion("", keys::MATCH_KINDS));
    }
    let kind = when.word("type", keys::MATCH_KINDS, reader).map_or(MatchKind::Any, |word| match word {
        "exact" => MatchKind::Exact,
        "contains" => MatchKind::Contains,
        "regex" => MatchKind::Regex,
        _ => MatchKind::Any,
    });
    if let (MatchKind::Regex, Some(pattern), Some(node)) = (kind, &pattern, when.get("pattern")) {
        reader.pattern(node, &below.key("pattern"), pattern, true)?;
    }
    let field = match when.given("field") {
        Some(node) => Some(nonblank(node, &below.key("field"), reader)?.to_owned()),
        None => None,
    };
    let (from_call, to_call) = read_calls(&when, reader);
    Some(MockRule { kind, field, pattern, from_call, to_call, reply: reply? })
}

/// `call: N`, or `from_call: N` and `to_call: M`.
fn read_calls(when: &Object<'_, '_>, reader: &mut Reader<'_>) -> (u64, u64) {
    let mut number = |key: &str| when.whole(key, (1, u64::MAX), reader);
    let (call, from, to) = (number("call"), number("from_call"), number("to_call"));
    match (call, from, to) {
        (Some(call), None, None) => (call, call),
        (Some(_), _, _) => {
            let message = "`call` stands for one call; write `from_call` and `to_call` for several";
            reader.mistake(when.key_at("call"), when.path, message, "");
            (1, u64::MAX)
        }
        (None, from, to) => {
            let (from, to) = (from.unwrap_or(1), to.unwrap_or(u64::MAX));
            if from > to {
                let message = "`from_call` is behind `to_call`: the rule would never match";
                reader.mistake(when.key_at("from_call"), when.path, message, "");
            }
            (from, to)
        }
    }
}

fn read_reply(node: &Node, path: &Path<'_>, delay: u64, reader: &mut Reader<'_>) -> Option<MockReply> {
    let object = Object::read(node, path, &keys::MOCK_THEN, reader)?;
    let output = object.get("output").map_or_else(Json::object, Node::to_json);
    let error = match object.given("error") {
        Some(node) => Some(text(node, &path.key("error"), reader)?.to_owned()),
        None => None,
    };
    let status = match object.word("status", keys::MOCK_STATUSES, reader) {
        Some("success") => MockStatus::Success,
        Some(_) => MockStatus::Error,
        None if error.is_some() => MockStatus::Error,
        None => MockStatus::Success,
    };
    let delay_ms = object.whole("delay_ms", (0, MAX_DELAY_MS), reader).unwrap_or(delay);
    Some(MockReply { output, error, status, delay_ms })
}
