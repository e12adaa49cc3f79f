//! From the payload of an event to an action, and from a decision's changes back to a payload.

use std::str::FromStr;

use proctor_core::action::{Action, ActionKind};
use proctor_core::decision::Decision;
use proctor_core::json::Json;
use proctor_policy::scan::json_path_child;
use proctor_wire::ahp::rpc::MAX_VALUES;
use proctor_wire::ahp::{AhpEvent, ConfirmationEvent, EventType};
use rust_decimal::Decimal;

/// The door's name in records.
pub(crate) const DOOR: &str = "ahp";

/// The tool that confirmations are for policies.
pub(crate) const CONFIRMATION: &str = "confirmation";

/// An action, with where in the payload its parts came from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Read {
    /// The action.
    pub action: Action,
    /// The arguments alone, as sent: reports are compared with them.
    pub arguments: Json,
    /// For each field of the action that was read: its name, and where it was.
    places: Vec<(&'static str, Place)>,
    /// Members of the payload beside the arguments that stand among them for rules.
    beside: Vec<String>,
}

/// Where in a payload a field of an action was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The payload itself.
    Whole,
    /// A member.
    Member(&'static str),
    /// A member that holds JSON as text, as some models write arguments.
    Encoded(&'static str),
}

/// Members of a payload that name the tool, its arguments, and so on. The first is the usual one.
const TOOL: [&str; 2] = ["tool_name", "tool"];
const ARGUMENTS: [&str; 2] = ["arguments", "args"];
const DIRECTORY: [&str; 2] = ["working_directory", "cwd"];
const PATH: [&str; 2] = ["file_path", "path"];
const MODEL: [&str; 2] = ["model", "model_name"];
const TEXTS: [&str; 5] = ["command", "url", "host", "prompt", "operation"];

/// Members that say something about an action and are no part of it.
const ASIDE: [&str; 6] =
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

/// Arguments that were sent as a text that holds a JSON object: rules must see the object, not the text. A text that looks like JSON
/// and cannot be read as one object in one way may be read in another way by the agent.
fn decoded(member: &str, arguments: &Json) -> Result<Option<Json>, String> {
    let Some(text) = arguments.as_str() else { return Ok(None) };
    let begins = text.trim_start_matches(|sign: char| sign.is_whitespace() || sign == '\u{feff}');
    if !begins.starts_with(['{', '[', '"']) {
        return Ok(None);
    }
    match Json::parse_bounded(text.as_bytes(), MAX_VALUES) {
        Ok(value @ Json::Object(_)) => Ok(Some(value)),
        Ok(other) => {
            Err(format!("`{member}` is a text that holds {}: an object was expected", other.type_name()))
        }
        Err(problem) => Err(format!("`{member}` is a text that looks like JSON and is not: {problem}")),
    }
}

/// The action that a `pre_action` proposes.
pub(crate) fn of_action(event: &AhpEvent) -> Result<Read, String> {
    let payload = &event.payload;
    let mut read =
        Read { action: base(event), arguments: arguments(payload), places: Vec::new(), beside: Vec::new() };
    if payload.as_object().is_none() {
        read.action.args = payload.clone();
        read.places.push(("args", Place::Whole));
        return Ok(read);
    }
    if let Some(kind) = payload.get("action_type").and_then(Json::as_str) {
        // A word that is no kind of ours leaves it a call of a tool.
        read.action.kind = kind.parse().unwrap_or_default();
    }
    read.action.name = text_of(payload, &TOOL, "name", &mut read.places)?;
    read.action.cwd = text_of(payload, &DIRECTORY, "cwd", &mut read.places)?;
    read.action.path = text_of(payload, &PATH, "path", &mut read.places)?;
    read.action.model = text_of(payload, &MODEL, "model", &mut read.places)?;
    read.action.command = text_of(payload, &["command"], "command", &mut read.places)?;
    read.action.url = text_of(payload, &["url"], "url", &mut read.places)?;
    read.action.host = text_of(payload, &["host"], "host", &mut read.places)?;
    read.action.text = text_of(payload, &["prompt"], "text", &mut read.places)?;
    read.action.operation = text_of(payload, &["operation"], "operation", &mut read.places)?;
    match only(payload, &ARGUMENTS)? {
        Some((member, arguments)) => {
            let decoded = decoded(member, arguments)?;
            let place = if decoded.is_some() { Place::Encoded(member) } else { Place::Member(member) };
            read.action.args = decoded.unwrap_or_else(|| arguments.clone());
            read.places.push(("args", place));
            read.place_beside(payload, member)?;
        }
        // Whatever the agent calls them: what is not known is an argument, so that rules see it.
        None => {
            read.action.args = rest(payload);
            read.places.push(("args", Place::Whole));
        }
    }
    estimates(&mut read.action, payload);
    Ok(read)
}

/// The call to a model that a `pre_prompt` announces.
pub(crate) fn of_prompt(event: &AhpEvent) -> Result<Read, String> {
    let mut read = Read {
        action: base(event),
        arguments: Json::Null,
        places: vec![("args", Place::Whole)],
        beside: Vec::new(),
    };
    read.action.kind = ActionKind::LlmCall;
    "llm_call".clone_into(&mut read.action.name);
    read.action.args = event.payload.clone();
    match &event.payload {
        Json::Object(_) => {
            read.action.text = text_of(&event.payload, &["prompt"], "text", &mut read.places)?;
            read.action.model = text_of(&event.payload, &MODEL, "model", &mut read.places)?;
            estimates(&mut read.action, &event.payload);
        }
        Json::String(prompt) => read.action.text.clone_from(prompt),
        _ => {}
    }
    Ok(read)
}

/// The confirmation that an agent asks for, as an action: policies speak of the tool `confirmation`.
pub(crate) fn of_confirmation(event: &AhpEvent, asked: &ConfirmationEvent) -> Read {
    let mut action = base(event);
    action.kind = ActionKind::Custom;
    CONFIRMATION.clone_into(&mut action.name);
    action.args = event.payload.clone();
    action.text.clone_from(&asked.message);
    let places = vec![("args", Place::Whole), ("text", Place::Member("message"))];
    Read { action, arguments: Json::Null, places, beside: Vec::new() }
}

fn base(event: &AhpEvent) -> Action {
    let mut said = Json::object().with("timestamp", event.timestamp.as_str());
    if let Some(context) = event.context.as_ref().and_then(|context| Json::from_type(context).ok()) {
        said.push("context", context);
    }
    // Of the payload, what says something about the action and is no part of it.
    if event.event_type == EventType::PreAction {
        let members = event.payload.as_object().unwrap_or_default().iter();
        let left: Vec<(String, Json)> =
            members.filter(|(name, _)| ASIDE.contains(&name.as_str())).cloned().collect();
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

/// The member of an action's metadata that holds the rest of the event.
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

/// The one member of these that the payload has. Two that differ could mean two different things to the agent and to us.
fn only<'a>(payload: &'a Json, names: &[&'static str]) -> Result<Option<(&'static str, &'a Json)>, String> {
    let mut found: Option<(&'static str, &Json)> = None;
    for name in names {
        let Some(value) = payload.get(name).filter(|value| !value.is_null()) else { continue };
        match found {
            Some((first, other)) if other != value => {
                return Err(format!("the payload says two different things in `{first}` and `{name}`"));
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
    places: &mut Vec<(&'static str, Place)>,
) -> Result<String, String> {
    match only(payload, names)? {
        None => Ok(String::new()),
        Some((member, Json::String(text))) => {
            places.push((field, Place::Member(member)));
            Ok(text.clone())
        }
        Some((member, other)) => Err(format!("`{member}` is a string, this is {}", other.type_name())),
    }
}

/// The members that have no meaning of their own.
fn rest(payload: &Json) -> Json {
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

impl Read {
    /// Puts what stands beside the arguments among them: rules must see it, and what is cut must be cut there, too.
    fn place_beside(&mut self, payload: &Json, member: &'static str) -> Result<(), String> {
        let names = [&TOOL[..], &ARGUMENTS, &DIRECTORY, &PATH, &MODEL, &TEXTS, &ASIDE];
        let known = |name: &str| names.iter().any(|names| names.contains(&name));
        let members = payload.as_object().unwrap_or_default().iter();
        let beside: Vec<&(String, Json)> = members.filter(|(name, _)| !known(name)).collect();
        if beside.is_empty() {
            return Ok(());
        }
        if self.action.args.as_object().is_none() {
            self.action.args = rest(payload);
            self.places.retain(|(field, _)| *field != "args");
            self.places.push(("args", Place::Whole));
            return Ok(());
        }
        for (name, value) in beside {
            match self.action.args.get(name) {
                Some(other) if other != value => {
                    return Err(format!(
                        "the payload says two different things in `{name}` and `{member}.{name}`"
                    ));
                }
                Some(_) => {}
                None => self.action.args.push(name, value.clone()),
            }
            self.beside.push(name.clone());
        }
        Ok(())
    }

    /// The arguments alone, with a decision's changes; none if it changes none.
    pub(crate) fn changed_arguments(&self, decision: &Decision) -> Option<Json> {
        let mut args = proctor_policy::judge::changed_args(&self.action, decision)?;
        if let Json::Object(members) = &mut args {
            members.retain(|(name, _)| !self.beside.contains(name) || self.arguments.get(name).is_some());
        }
        Some(args)
    }

    /// The payload with a decision's changes. An error if one of them has no place in it: then it must not run at all.
    pub(crate) fn changed_payload(&self, payload: &Json, decision: &Decision) -> Result<Json, String> {
        let mut holder =
            Json::object().with("payload", payload.clone()).with("decoded", self.arguments.clone());
        let mut encoded = None;
        for change in &decision.changes {
            let path = change.path.strip_prefix("$.").unwrap_or(&change.path);
            let end = path.find(['.', '[']).unwrap_or(path.len());
            let (field, inner) = path.split_at(end);
            // What the agent said besides is not acted on.
            if field == "metadata" {
                continue;
            }
            let place = self.places.iter().find(|(name, _)| *name == field).map(|(_, place)| *place);
            // What stood beside the arguments is changed there; and in both places where it stood in both.
            let beside = self.beside.iter().find(|name| is_below(inner, name)).filter(|_| field == "args");
            if let Some(name) = beside {
                let rest = inner.get(json_path_child("", name).len()..).unwrap_or_default();
                let target = format!("{}{rest}", json_path_child("$.payload", name));
                if !proctor_policy::json_path::put(&target, &mut holder, change.replacement.clone()) {
                    return Err(format!("the change at `{}` cannot be made in the payload", change.path));
                }
                if self.arguments.get(name).is_none() {
                    continue;
                }
            }
            let target = match place {
                Some(Place::Member(member)) => format!("$.payload.{member}{inner}"),
                Some(Place::Whole) => format!("$.payload{inner}"),
                Some(Place::Encoded(member)) => {
                    encoded = Some(member);
                    format!("$.decoded{inner}")
                }
                None => return Err(format!("the change at `{}` has no place in the payload", change.path)),
            };
            if !proctor_policy::json_path::put(&target, &mut holder, change.replacement.clone()) {
                return Err(format!("the change at `{}` cannot be made in the payload", change.path));
            }
        }
        if let Some(member) = encoded {
            let text = holder.get("decoded").map(ToString::to_string).unwrap_or_default();
            if !holder.set_pointer(&format!("/payload/{member}"), Json::from(text)) {
                return Err(format!("the changes cannot be made in `{member}`"));
            }
        }
        let mut changed = holder.get("payload").cloned().unwrap_or_default();
        // What was said under two names is changed under both.
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

/// Whether a path below the arguments begins with this member.
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
    fn payloads_are_read_in_all_their_spellings() {
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
    fn what_says_two_things_is_refused() {
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
    fn changes_go_where_the_payload_had_it_or_nowhere() {
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
    fn everything_that_was_said_is_kept_and_seen() {
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
    fn what_is_said_twice_is_changed_twice() {
        let event = event(r#"{"tool":"x","args":{"a":"s"},"arguments":{"a":"s"}}"#);
        let read = of_action(&event).unwrap();
        let changed = read.changed_payload(&event.payload, &decision(&[("$.args.a", "-")])).unwrap();
        assert_eq!(changed.to_string(), r#"{"tool":"x","args":{"a":"-"},"arguments":{"a":"-"}}"#);
    }

    #[test]
    fn a_text_that_can_be_read_in_two_ways_is_refused() {
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
