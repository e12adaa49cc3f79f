//! Conversion of event payloads to actions, and of a decision's changes back to payloads.

use std::str::FromStr;

use proctor_core::action::{Action, ActionKind};
use proctor_core::decision::Decision;
use proctor_core::json::{Json, JsonError};
use proctor_policy::scan::json_path_child;
use proctor_wire::ahp::rpc::MAX_VALUES;
use proctor_wire::ahp::{AhpEvent, ConfirmationEvent, EventType};
use rust_decimal::Decimal;

/// The door's name in records.
pub(crate) const DOOR: &str = "ahp";

/// Tool name under which policies see confirmations.
pub(crate) const CONFIRMATION: &str = "confirmation";

/// Action read from a payload, with the source location of each field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParsedAction {
    /// The action.
    pub action: Action,
    /// The arguments alone, as sent: reports are compared with them.
    pub arguments: Json,
    /// Fields of the action, with their locations in the payload.
    sources: Vec<(&'static str, Source)>,
    /// Payload members outside the arguments that rules see merged into them.
    merged: Vec<String>,
}

/// Location in a payload that a field of an action was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The payload itself.
    Whole,
    /// A member.
    Member(&'static str),
    /// A member that holds JSON encoded as a string, as some models write arguments.
    Encoded(&'static str),
}

/// Refusal of a payload that cannot be read as one action.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PayloadError {
    #[error("`{member}` is a text that holds {found}: an object was expected")]
    NotAnObject { member: &'static str, found: &'static str },
    #[error("`{member}` is a text that looks like JSON and is not: {problem}")]
    NotJson { member: &'static str, problem: JsonError },
    #[error("the payload says two different things in `{first}` and `{second}`")]
    Contradiction { first: String, second: String },
    #[error("`{member}` is a string, this is {found}")]
    NotAString { member: &'static str, found: &'static str },
}

/// Change of a decision that cannot be expressed in the payload.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeError {
    #[error("the change at `{0}` has no place in the payload")]
    NoSource(String),
    #[error("the change at `{0}` cannot be made in the payload")]
    NotApplicable(String),
    #[error("the changes cannot be made in `{0}`")]
    NotEncodable(&'static str),
}

/// Synonymous member names; the first is the usual one.
const TOOL: [&str; 2] = ["tool_name", "tool"];
const ARGUMENTS: [&str; 2] = ["arguments", "args"];
const DIRECTORY: [&str; 2] = ["working_directory", "cwd"];
const PATH: [&str; 2] = ["file_path", "path"];
const MODEL: [&str; 2] = ["model", "model_name"];
const TEXTS: [&str; 5] = ["command", "url", "host", "prompt", "operation"];

/// Payload members that describe an action without being part of it.
const DESCRIPTIVE: [&str; 6] =
    ["action_type", "recent_tools", "tokens", "cost_usd", "estimated_tokens", "estimated_cost_usd"];

/// The tool that a payload names; empty if it names none.
pub(crate) fn tool_name(payload: &Json) -> &str {
    TOOL.iter().find_map(|name| payload.get(name)?.as_str()).unwrap_or_default()
}

/// The arguments that a payload holds.
pub(crate) fn arguments(payload: &Json) -> Json {
    let found = ARGUMENTS.iter().find_map(|name| payload.get(name)).unwrap_or(&Json::Null);
    decoded("", found).ok().flatten().unwrap_or_else(|| found.clone())
}

/// Decodes arguments that were sent as a string holding a JSON object, so that rules see the object. A string that looks like JSON but is
/// not exactly one object is refused: the agent's parser may read it differently.
fn decoded(member: &'static str, arguments: &Json) -> Result<Option<Json>, PayloadError> {
    let Some(text) = arguments.as_str() else { return Ok(None) };
    let begins = text.trim_start_matches(|sign: char| sign.is_whitespace() || sign == '\u{feff}');
    if !begins.starts_with(['{', '[', '"']) {
        return Ok(None);
    }
    match Json::parse_bounded(text.as_bytes(), MAX_VALUES) {
        Ok(value @ Json::Object(_)) => Ok(Some(value)),
        Ok(other) => Err(PayloadError::NotAnObject { member, found: other.type_name() }),
        Err(problem) => Err(PayloadError::NotJson { member, problem }),
    }
}

/// Reads the action that a `pre_action` proposes.
pub(crate) fn of_action(event: &AhpEvent) -> Result<ParsedAction, PayloadError> {
    let payload = &event.payload;
    let mut read = ParsedAction {
        action: base(event),
        arguments: arguments(payload),
        sources: Vec::new(),
        merged: Vec::new(),
    };
    if payload.as_object().is_none() {
        read.action.args = payload.clone();
        read.sources.push(("args", Source::Whole));
        return Ok(read);
    }
    if let Some(kind) = payload.get("action_type").and_then(Json::as_str) {
        // An unknown kind is a tool call.
        read.action.kind = kind.parse().unwrap_or_default();
    }
    read.action.name = text_of(payload, &TOOL, "name", &mut read.sources)?;
    read.action.cwd = text_of(payload, &DIRECTORY, "cwd", &mut read.sources)?;
    read.action.path = text_of(payload, &PATH, "path", &mut read.sources)?;
    read.action.model = text_of(payload, &MODEL, "model", &mut read.sources)?;
    read.action.command = text_of(payload, &["command"], "command", &mut read.sources)?;
    read.action.url = text_of(payload, &["url"], "url", &mut read.sources)?;
    read.action.host = text_of(payload, &["host"], "host", &mut read.sources)?;
    read.action.text = text_of(payload, &["prompt"], "text", &mut read.sources)?;
    read.action.operation = text_of(payload, &["operation"], "operation", &mut read.sources)?;
    match unique_member(payload, &ARGUMENTS)? {
        Some((member, arguments)) => {
            let decoded = decoded(member, arguments)?;
            let source = if decoded.is_some() { Source::Encoded(member) } else { Source::Member(member) };
            read.action.args = decoded.unwrap_or_else(|| arguments.clone());
            read.sources.push(("args", source));
            read.merge_unmapped(payload, member)?;
        }
        // Agents name arguments freely: every unmapped member is one, so that rules see it.
        None => {
            read.action.args = unmapped_members(payload);
            read.sources.push(("args", Source::Whole));
        }
    }
    estimates(&mut read.action, payload);
    Ok(read)
}

/// Reads the model call that a `pre_prompt` announces.
pub(crate) fn of_prompt(event: &AhpEvent) -> Result<ParsedAction, PayloadError> {
    let mut read = ParsedAction {
        action: base(event),
        arguments: Json::Null,
        sources: vec![("args", Source::Whole)],
        merged: Vec::new(),
    };
    read.action.kind = ActionKind::LlmCall;
    "llm_call".clone_into(&mut read.action.name);
    read.action.args = event.payload.clone();
    match &event.payload {
        Json::Object(_) => {
            read.action.text = text_of(&event.payload, &["prompt"], "text", &mut read.sources)?;
            read.action.model = text_of(&event.payload, &MODEL, "model", &mut read.sources)?;
            estimates(&mut read.action, &event.payload);
        }
        Json::String(prompt) => read.action.text.clone_from(prompt),
        _ => {}
    }
    Ok(read)
}

/// Reads a requested confirmation as a call of the tool `confirmation`.
pub(crate) fn of_confirmation(event: &AhpEvent, asked: &ConfirmationEvent) -> ParsedAction {
    let mut action = base(event);
    action.kind = ActionKind::Custom;
    CONFIRMATION.clone_into(&mut action.name);
    action.args = event.payload.clone();
    action.text.clone_from(&asked.message);
    let sources = vec![("args", Source::Whole), ("text", Source::Member("message"))];
    ParsedAction { action, arguments: Json::Null, sources, merged: Vec::new() }
}

fn base(event: &AhpEvent) -> Action {
    let mut said = Json::object().with("timestamp", event.timestamp.as_str());
    if let Some(context) = event.context.as_ref().and_then(|context| Json::from_type(context).ok()) {
        said.push("context", context);
    }
    if event.event_type == EventType::PreAction {
        let members = event.payload.as_object().unwrap_or_default().iter();
        let left: Vec<(String, Json)> =
            members.filter(|(name, _)| DESCRIPTIVE.contains(&name.as_str())).cloned().collect();
        if !left.is_empty() {
            said.push("payload", Json::Object(left));
        }
    }
    let mut metadata = event.metadata.clone().unwrap_or_else(Json::object);
    if metadata.get(EVENT).is_none() {
        metadata.push(EVENT, said);
    }
    Action { depth: event.depth, door: DOOR.to_owned(), metadata, ..Action::default() }
}

/// Member of an action's metadata that holds the rest of the event.
const EVENT: &str = "ahp_event";

fn estimates(action: &mut Action, payload: &Json) {
    let number = |names: [&str; 2]| names.iter().find_map(|name| payload.get(name));
    if let Some(tokens) = number(["tokens", "estimated_tokens"]).and_then(Json::as_u64) {
        action.tokens = tokens;
    }
    let cost = match number(["cost_usd", "estimated_cost_usd"]) {
        Some(Json::Number(literal)) => Decimal::from_str(literal).ok(),
        Some(Json::String(literal)) => Decimal::from_str(literal).ok(),
        _ => None,
    };
    if let Some(cost) = cost.filter(|cost| !cost.is_sign_negative()) {
        action.cost_usd = cost;
    }
}

/// Finds the one of several synonymous members that the payload has. Two with different values are refused: the agent may use the other
/// one.
fn unique_member<'a>(
    payload: &'a Json,
    names: &[&'static str],
) -> Result<Option<(&'static str, &'a Json)>, PayloadError> {
    let mut found: Option<(&'static str, &Json)> = None;
    for name in names {
        let Some(value) = payload.get(name).filter(|value| !value.is_null()) else { continue };
        match found {
            Some((first, other)) if other != value => {
                return Err(PayloadError::Contradiction {
                    first: first.to_owned(),
                    second: (*name).to_owned(),
                });
            }
            Some(_) => {}
            None => found = Some((name, value)),
        }
    }
    Ok(found)
}

fn text_of(
    payload: &Json,
    names: &[&'static str],
    field: &'static str,
    sources: &mut Vec<(&'static str, Source)>,
) -> Result<String, PayloadError> {
    match unique_member(payload, names)? {
        None => Ok(String::new()),
        Some((member, Json::String(text))) => {
            sources.push((field, Source::Member(member)));
            Ok(text.clone())
        }
        Some((member, other)) => Err(PayloadError::NotAString { member, found: other.type_name() }),
    }
}

/// Payload members that map to no field of an action; they become arguments.
fn unmapped_members(payload: &Json) -> Json {
    let known =
        ["action_type", "recent_tools", "tokens", "cost_usd", "estimated_tokens", "estimated_cost_usd"];
    let members = payload.as_object().unwrap_or_default().iter().filter(|(name, _)| {
        !known.contains(&name.as_str())
            && !TOOL.contains(&name.as_str())
            && !DIRECTORY.contains(&name.as_str())
    });
    let members: Vec<(String, Json)> = members.cloned().collect();
    if members.is_empty() { Json::Null } else { Json::Object(members) }
}

impl ParsedAction {
    /// Merges unmapped payload members into the arguments, so that rules see them and redaction reaches them.
    fn merge_unmapped(&mut self, payload: &Json, member: &'static str) -> Result<(), PayloadError> {
        let names = [&TOOL[..], &ARGUMENTS, &DIRECTORY, &PATH, &MODEL, &TEXTS, &DESCRIPTIVE];
        let known = |name: &str| names.iter().any(|names| names.contains(&name));
        let members = payload.as_object().unwrap_or_default().iter();
        let unmapped: Vec<&(String, Json)> = members.filter(|(name, _)| !known(name)).collect();
        if unmapped.is_empty() {
            return Ok(());
        }
        if self.action.args.as_object().is_none() {
            self.action.args = unmapped_members(payload);
            self.sources.retain(|(field, _)| *field != "args");
            self.sources.push(("args", Source::Whole));
            return Ok(());
        }
        for (name, value) in unmapped {
            match self.action.args.get(name) {
                Some(other) if other != value => {
                    let second = format!("{member}.{name}");
                    return Err(PayloadError::Contradiction { first: name.clone(), second });
                }
                Some(_) => {}
                None => self.action.args.push(name, value.clone()),
            }
            self.merged.push(name.clone());
        }
        Ok(())
    }

    /// Applies a decision's changes to the arguments alone; `None` if it changes none.
    pub(crate) fn changed_arguments(&self, decision: &Decision) -> Option<Json> {
        let mut args = proctor_policy::judge::changed_args(&self.action, decision)?;
        if let Json::Object(members) = &mut args {
            members.retain(|(name, _)| !self.merged.contains(name) || self.arguments.get(name).is_some());
        }
        Some(args)
    }

    /// Applies a decision's changes to the payload. An error means that a change cannot be expressed there, so the action must be blocked.
    pub(crate) fn changed_payload(&self, payload: &Json, decision: &Decision) -> Result<Json, ChangeError> {
        let mut holder =
            Json::object().with("payload", payload.clone()).with("decoded", self.arguments.clone());
        let mut encoded = None;
        for change in &decision.changes {
            let path = change.path.strip_prefix("$.").unwrap_or(&change.path);
            let end = path.find(['.', '[']).unwrap_or(path.len());
            let (field, inner) = path.split_at(end);
            // Metadata is not executed.
            if field == "metadata" {
                continue;
            }
            let source = self.sources.iter().find(|(name, _)| *name == field).map(|(_, source)| *source);
            // A merged member is changed where it was sent; in both locations if it was sent in both.
            let merged = self.merged.iter().find(|name| is_below(inner, name)).filter(|_| field == "args");
            if let Some(name) = merged {
                let rest = inner.get(json_path_child("", name).len()..).unwrap_or_default();
                let target = format!("{}{rest}", json_path_child("$.payload", name));
                if !proctor_policy::json_path::put(&target, &mut holder, change.replacement.clone()) {
                    return Err(ChangeError::NotApplicable(change.path.clone()));
                }
                if self.arguments.get(name).is_none() {
                    continue;
                }
            }
            let target = match source {
                Some(Source::Member(member)) => format!("$.payload.{member}{inner}"),
                Some(Source::Whole) => format!("$.payload{inner}"),
                Some(Source::Encoded(member)) => {
                    encoded = Some(member);
                    format!("$.decoded{inner}")
                }
                None => return Err(ChangeError::NoSource(change.path.clone())),
            };
            if !proctor_policy::json_path::put(&target, &mut holder, change.replacement.clone()) {
                return Err(ChangeError::NotApplicable(change.path.clone()));
            }
        }
        if let Some(member) = encoded {
            let text = holder.get("decoded").map(ToString::to_string).unwrap_or_default();
            if !holder.set_pointer(&format!("/payload/{member}"), Json::from(text)) {
                return Err(ChangeError::NotEncodable(member));
            }
        }
        let mut changed = holder.get("payload").cloned().unwrap_or_default();
        // A value that was sent under two synonymous names is changed under both.
        for names in [&TOOL[..], &ARGUMENTS, &DIRECTORY, &PATH, &MODEL] {
            let mut present =
                names.iter().filter(|name| payload.get(name).is_some_and(|value| !value.is_null()));
            let Some(value) = present.next().and_then(|first| changed.get(first)).cloned() else { continue };
            for other in present {
                changed.set_pointer(&format!("/{other}"), value.clone());
            }
        }
        Ok(changed)
    }
}

/// Reports whether a path below the arguments begins with this member.
fn is_below(inner: &str, name: &str) -> bool {
    let step = json_path_child("", name);
    inner.strip_prefix(&step).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctor_core::decision::{Change, Effect};
    use proctor_core::digest::Digest;

    fn event(payload: &str) -> AhpEvent {
        AhpEvent {
            event_type: EventType::PreAction,
            session_id: "s".into(),
            agent_id: "a".into(),
            timestamp: "t".into(),
            depth: 2,
            payload: Json::parse(payload.as_bytes()).unwrap(),
            context: None,
            metadata: None,
        }
    }

    fn decision(changes: &[(&str, &str)]) -> Decision {
        let mut decision = Decision::deny("r", "", Digest::of(b""));
        decision.effect = Effect::Modify;
        decision.changes = changes
            .iter()
            .map(|(path, text)| Change { path: (*path).to_owned(), replacement: Json::from(*text) })
            .collect();
        decision
    }

    #[test]
    fn synonymous_members_are_read() {
        let usual = of_action(&event(
            r#"{"tool_name":"bash","arguments":{"command":"ls"},"working_directory":"/w","action_type":"process_exec"}"#,
        ))
        .unwrap()
        .action;
        assert_eq!((usual.name.as_str(), usual.cwd.as_str(), usual.depth), ("bash", "/w", 2));
        assert_eq!(usual.kind, ActionKind::ProcessExec);
        let other =
            of_action(&event(r#"{"tool":"bash","args":{"command":"ls"},"cwd":"/w","action_type":"x"}"#));
        let other = other.unwrap().action;
        assert_eq!((other.name.as_str(), other.kind), ("bash", ActionKind::ToolCall));
        assert_eq!(other.args, usual.args);
        let flat =
            of_action(&event(r#"{"tool":"write","file_path":"/etc/x","content":"y"}"#)).unwrap().action;
        assert_eq!(flat.path, "/etc/x");
        assert_eq!(flat.args.to_string(), r#"{"file_path":"/etc/x","content":"y"}"#);
        assert_eq!(of_action(&event(r#""ls""#)).unwrap().action.args, Json::from("ls"));
    }

    #[test]
    fn contradicting_members_are_refused() {
        for payload in [
            r#"{"tool_name":"ls","tool":"rm"}"#,
            r#"{"tool":"x","arguments":{"a":1},"args":{"a":2}}"#,
            r#"{"tool":"x","path":"/a","file_path":"/b"}"#,
            r#"{"tool":7}"#,
            r#"{"tool":"x","command":["rm"]}"#,
        ] {
            assert!(of_action(&event(payload)).is_err(), "{payload}");
        }
        assert!(of_action(&event(r#"{"tool_name":"ls","tool":"ls"}"#)).is_ok());
    }

    #[test]
    fn arguments_in_a_text_are_seen_and_changed() {
        let event = event(r#"{"tool_name":"bash","arguments":"{\"command\":\"rm -rf /\",\"n\":1}"}"#);
        let read = of_action(&event).unwrap();
        assert_eq!(read.action.args.get("command"), Some(&Json::from("rm -rf /")));
        assert_eq!(arguments(&event.payload), read.action.args);
        let changed = read.changed_payload(&event.payload, &decision(&[("$.args.command", "ls")])).unwrap();
        assert_eq!(changed.to_string(), r#"{"tool_name":"bash","arguments":"{\"command\":\"ls\",\"n\":1}"}"#);
    }

    #[test]
    fn changes_are_applied_at_the_source_or_refused() {
        let event = event(r#"{"tool":"x","args":{"a":{"b":[1,2]}},"command":"c"}"#);
        let read = of_action(&event).unwrap();
        let changed = read
            .changed_payload(
                &event.payload,
                &decision(&[("$.args.a.b[1]", "z"), ("$.command", "d"), ("$.metadata.q", "-")]),
            )
            .unwrap();
        assert_eq!(changed.to_string(), r#"{"tool":"x","args":{"a":{"b":[1,"z"]}},"command":"d"}"#);
        assert!(read.changed_payload(&event.payload, &decision(&[("$.url", "z")])).is_err());
        assert!(read.changed_payload(&event.payload, &decision(&[("$.args.a.b[9]", "z")])).is_err());
    }

    #[test]
    fn unmapped_members_are_merged_and_redacted() {
        let event = event(r#"{"tool":"x","args":{"a":1},"recent_tools":["y"],"stdin":"n","env":{"A":"s"}}"#);
        let read = of_action(&event).unwrap();
        assert!(read.action.metadata.pointer("/ahp_event/payload/recent_tools").is_some());
        assert_eq!(read.action.args.to_string(), r#"{"a":1,"stdin":"n","env":{"A":"s"}}"#);
        assert_eq!(read.arguments.to_string(), r#"{"a":1}"#);
        let changes = decision(&[("$.args.stdin", "-"), ("$.args.env.A", "-"), ("$.args.a", "b")]);
        let changed = read.changed_payload(&event.payload, &changes).unwrap();
        assert_eq!(
            changed.to_string(),
            r#"{"tool":"x","args":{"a":"b"},"recent_tools":["y"],"stdin":"-","env":{"A":"-"}}"#
        );
        assert_eq!(read.changed_arguments(&changes).unwrap().to_string(), r#"{"a":"b"}"#);
    }

    #[test]
    fn synonymous_members_are_changed_together() {
        let event = event(r#"{"tool":"x","args":{"a":"s"},"arguments":{"a":"s"}}"#);
        let read = of_action(&event).unwrap();
        let changed = read.changed_payload(&event.payload, &decision(&[("$.args.a", "-")])).unwrap();
        assert_eq!(changed.to_string(), r#"{"tool":"x","args":{"a":"-"},"arguments":{"a":"-"}}"#);
    }

    #[test]
    fn ambiguous_encoded_arguments_are_refused() {
        for text in [
            r#"{\"command\":\"ls\",\"command\":\"rm\"}"#,
            r#"\ufeff{\"command\":\"rm\"}"#,
            r#" [\"rm\"]"#,
            r#"\"{}\""#,
            r#"{\"a\":"#,
        ] {
            let payload = format!(r#"{{"tool":"bash","arguments":"{text}"}}"#);
            assert!(of_action(&event(&payload)).is_err(), "{payload}");
        }
        assert!(of_action(&event(r#"{"tool":"bash","arguments":"ls -la"}"#)).is_ok());
    }
}
