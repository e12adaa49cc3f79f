//! Where changes go in a request.
//!
//! Rules and the scanner speak of actions: there the command line of a process is one text, `$.command`. A client changes the message that
//! it sent: there the words are `$.command` and `$.args[0]`. What has no place in the message cannot be changed, so it must not run.

use proctor_core::action::{Action, ActionKind};
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_policy::policy::Policy;
use proctor_policy::prepare::prepare;
use proctor_policy::scan::REDACTED_WHOLE;
use proctor_wire::assembly::proto::common::v1::Decision;
use proctor_wire::assembly::proto::policy::v1::action_context::Action as Context;
use proctor_wire::assembly::proto::policy::v1::{
    CheckActionRequest, CheckActionResponse, NetworkCallContext, ProcessExecContext, RedactRule,
};

use super::action::{command_line, command_words, network_url};
use super::{AssemblyDoor, DOOR};
use proctor_engine::Wait;

/// The alarm about an action that was denied because a change has no place in its request.
const NO_PLACE: &str = "no_place";

/// The fields that a request has.
#[derive(Debug, Clone, PartialEq)]
enum Form {
    Nothing,
    LlmCall,
    ToolCall,
    ToolResult,
    FileOp,
    NetworkCall(NetworkCallContext),
    ProcessExec(ProcessExecContext),
}

impl Form {
    fn of(request: &CheckActionRequest) -> Form {
        match request.context.as_ref().and_then(|context| context.action.as_ref()) {
            None => Form::Nothing,
            Some(Context::LlmCall(_)) => Form::LlmCall,
            Some(Context::ToolCall(_)) => Form::ToolCall,
            Some(Context::ToolResult(_)) => Form::ToolResult,
            Some(Context::FileOp(_)) => Form::FileOp,
            Some(Context::NetworkCall(call)) => Form::NetworkCall(call.clone()),
            Some(Context::ProcessExec(process)) => Form::ProcessExec(process.clone()),
        }
    }
}

impl AssemblyDoor {
    /// Names the places of the request in a response, or denies it.
    pub(super) async fn put_in_place(
        &self,
        caller: &Caller,
        request: &CheckActionRequest,
        response: &mut CheckActionResponse,
    ) {
        if response.decision() != Decision::Redact {
            return;
        }
        let rules = response.redact.take().map(|redact| redact.rules).unwrap_or_default();
        match in_request(&self.engine().policy(), &Form::of(request), &rules) {
            Ok(rules) => response.redact.get_or_insert_default().rules = rules,
            Err(path) => {
                let reason = format!(
                    "{}, and `{path}` of the action has no place in this request where it can be changed",
                    response.reason
                );
                // The decision is on record as one that lets through; that it was not answered is recorded beside it.
                let about = Json::object().with("decision_id", response.decision_id.as_str());
                // A deny stays one, recorded or not.
                if let Some(room) = self.engine().room(self.engine().due()).await {
                    let filing = self.engine().file_refusal(room, caller, DOOR, NO_PLACE, &reason, &about);
                    let _ = self.engine().filed(filing, Wait::Task).await;
                }
                response.reason = reason;
                response.set_decision(Decision::Deny);
            }
        }
    }
}

/// Changes of an action as changes of its request; the error is one that has no place there.
fn in_request(policy: &Policy, form: &Form, rules: &[RedactRule]) -> Result<Vec<RedactRule>, String> {
    let mut placed: Vec<RedactRule> = Vec::with_capacity(rules.len());
    let mut left = Vec::new();
    for rule in rules {
        match (form, rule.field_path.as_str()) {
            (Form::ProcessExec(process), "$.command") if !process.args.is_empty() => {
                let words = in_words(policy, process, &rule.replacement);
                placed.extend(words.ok_or_else(|| rule.field_path.clone())?);
            }
            // It is made of the host and the protocol: those are where it is changed.
            (Form::NetworkCall(_), "$.url") => left.push(rule),
            (_, path) => {
                let field_path = place(form, path).ok_or_else(|| path.to_owned())?;
                placed.push(RedactRule { field_path, replacement: rule.replacement.clone() });
            }
        }
    }
    for rule in left {
        if !matches!(form, Form::NetworkCall(call) if is_clean_without(policy, call, rule, &placed)) {
            return Err(rule.field_path.clone());
        }
    }
    Ok(placed)
}

/// Whether the changes of a connection's parts leave nothing to change in the URL that is made of them. Only the scanner's own cut can be
/// made there.
fn is_clean_without(
    policy: &Policy,
    call: &NetworkCallContext,
    rule: &RedactRule,
    placed: &[RedactRule],
) -> bool {
    let is_own_cut = cut(policy, &network_url(call)) == rule.replacement;
    let mut changed = call.clone();
    for change in placed {
        match change.field_path.as_str() {
            "$.host" => changed.host.clone_from(&change.replacement),
            "$.protocol" => changed.protocol.clone_from(&change.replacement),
            _ => {}
        }
    }
    let url = network_url(&changed);
    is_own_cut && cut(policy, &url) == url
}

/// The request's name for a place in the action. What `args_json` and `result_json` hold is called `args` and `result`, as in the protocol's
/// own examples.
fn place(form: &Form, path: &str) -> Option<String> {
    let rest = path.strip_prefix("$.")?;
    let (root, below) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
    let field = match (form, root, below) {
        (Form::ToolCall, "args", _) => "args",
        (Form::ToolCall, "url", "") => "target_url",
        (Form::ToolResult, "result", _) => "result",
        (Form::ToolResult, "url", "") => "source_url",
        (Form::ToolCall | Form::ToolResult, "name", "") => "tool_name",
        (Form::ToolCall | Form::ToolResult, "metadata", ".tool_source") => {
            return Some("$.tool_source".into());
        }
        (Form::NetworkCall(_), "metadata", ".protocol") => return Some("$.protocol".into()),
        (Form::NetworkCall(_), "host", "") => "host",
        (Form::FileOp, "path", "") => "path",
        (Form::LlmCall, "model", "") => "model",
        // With words of their own it is a line made of them.
        (Form::ProcessExec(process), "command", "") if process.args.is_empty() => "command",
        _ => return None,
    };
    Some(format!("$.{field}{below}"))
}

/// A change of the command line as changes of its words. None if the line was changed into another one, which words cannot say.
fn in_words(policy: &Policy, process: &ProcessExecContext, replacement: &str) -> Option<Vec<RedactRule>> {
    let mut changed = process.clone();
    if replacement == REDACTED_WHOLE {
        words_mut(&mut changed).for_each(|word| REDACTED_WHOLE.clone_into(word));
    } else {
        let action =
            Action { kind: ActionKind::ProcessExec, command: command_line(process), ..Action::default() };
        // Only the scanner's own cut can be made word by word.
        if prepare(policy, &action, None).facts.command != replacement {
            return None;
        }
        words_mut(&mut changed).for_each(|word| *word = cut(policy, word));
        cut_across(policy, &mut changed);
        let line = command_line(&changed);
        if cut(policy, &line) != line {
            return None;
        }
    }
    let places = std::iter::once("$.command".to_owned())
        .chain((0..process.args.len()).map(|place| format!("$.args[{place}]")));
    let before = std::iter::once(&process.command).chain(&process.args);
    let after = std::iter::once(&changed.command).chain(&changed.args);
    let rules: Vec<RedactRule> = places
        .zip(before.zip(after))
        .filter(|(_, (before, after))| before != after)
        .map(|(field_path, (_, after))| RedactRule { field_path, replacement: after.clone() })
        .collect();
    (!rules.is_empty()).then_some(rules)
}

/// Replaces the words that only together are a secret, such as the groups of a card's number.
fn cut_across(policy: &Policy, process: &mut ProcessExecContext) {
    let line = command_line(process);
    let clean = cut(policy, &line);
    if clean == line {
        return;
    }
    let same = |(one, other): &(u8, u8)| one == other;
    let from = line.bytes().zip(clean.bytes()).take_while(same).count();
    let tail = line.bytes().rev().zip(clean.bytes().rev()).take_while(same).count();
    let to = line.len().saturating_sub(tail).max(from + 1);
    let mut begin = 0;
    let written = command_words(process);
    for (word, written) in words_mut(process).zip(written) {
        let end = begin + written.len();
        if begin < to && from < end {
            REDACTED_WHOLE.clone_into(word);
        }
        begin = end + 1;
    }
}

fn words_mut(process: &mut ProcessExecContext) -> impl Iterator<Item = &mut String> {
    std::iter::once(&mut process.command).chain(&mut process.args)
}

/// A text as the policy cuts it.
fn cut(policy: &Policy, text: &str) -> String {
    prepare(policy, &Action { text: text.to_owned(), ..Action::default() }, None).facts.text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctor_policy::policy::Source;

    fn policy() -> Policy {
        Policy::compile(vec![Source::document("policy.yaml", "default: allow\nrules: []\n")]).unwrap()
    }

    fn connection(protocol: &str, host: &str) -> NetworkCallContext {
        NetworkCallContext { host: host.into(), protocol: protocol.into(), ..NetworkCallContext::default() }
    }

    fn process(words: &[&str]) -> ProcessExecContext {
        let mut words = words.iter().map(|&word| word.to_owned());
        ProcessExecContext { command: words.next().unwrap(), args: words.collect() }
    }

    fn words(words: &[&str]) -> Option<Vec<(String, String)>> {
        let process = process(words);
        let action =
            Action { kind: ActionKind::ProcessExec, command: command_line(&process), ..Action::default() };
        let cut = prepare(&policy(), &action, None).facts.command;
        let rules = in_words(&policy(), &process, &cut)?;
        Some(rules.into_iter().map(|rule| (rule.field_path, rule.replacement)).collect())
    }

    fn pair(place: &str, text: &str) -> (String, String) {
        (place.to_owned(), text.to_owned())
    }

    #[test]
    fn a_secret_is_cut_from_the_word_that_holds_it() {
        assert_eq!(
            words(&["curl", "-H", "x-key: AKIAQ7W3ERTY5UIOP2XZ", "https://example.com/it's"]).unwrap(),
            [pair("$.args[1]", "x-key: [REDACTED:AwsAccessKey]")]
        );
        assert_eq!(
            words(&["AKIAQ7W3ERTY5UIOP2XZ", "-l"]).unwrap(),
            [pair("$.command", "[REDACTED:AwsAccessKey]")]
        );
    }

    #[test]
    fn words_that_only_together_are_a_secret_all_go() {
        let card = words(&["pay", "4111", "1111", "1111", "1111", "now"]).unwrap();
        let places: Vec<&str> = card.iter().map(|(place, _)| place.as_str()).collect();
        assert_eq!(places, ["$.args[0]", "$.args[1]", "$.args[2]", "$.args[3]"]);
        assert!(card.iter().all(|(_, text)| text == REDACTED_WHOLE));
    }

    #[test]
    fn another_line_is_nothing_that_words_can_say() {
        let process = process(&["rm", "-rf", "/"]);
        assert_eq!(in_words(&policy(), &process, "echo no"), None);
        let whole = in_words(&policy(), &process, REDACTED_WHOLE).unwrap();
        assert_eq!(whole.len(), 3, "a rule that cuts the line cuts every word");
    }

    #[test]
    fn every_field_has_the_name_that_it_has_in_the_request() {
        for (form, path, expected) in [
            (Form::ToolCall, "$.args.a[0]['b c']", Some("$.args.a[0]['b c']")),
            (Form::ToolCall, "$.args", Some("$.args")),
            (Form::ToolCall, "$.url", Some("$.target_url")),
            (Form::ToolCall, "$.name", Some("$.tool_name")),
            (Form::ToolCall, "$.metadata.tool_source", Some("$.tool_source")),
            (Form::ToolCall, "$.metadata", None),
            (Form::ToolCall, "$.command", None),
            (Form::ToolResult, "$.result", Some("$.result")),
            (Form::ToolResult, "$.result.key[1]", Some("$.result.key[1]")),
            (Form::ToolResult, "$.url", Some("$.source_url")),
            (Form::FileOp, "$.path", Some("$.path")),
            (Form::NetworkCall(connection("tcp", "db")), "$.host", Some("$.host")),
            (Form::NetworkCall(connection("tcp", "db")), "$.metadata.protocol", Some("$.protocol")),
            (Form::LlmCall, "$.model", Some("$.model")),
            (Form::LlmCall, "$.text", None),
            (Form::ProcessExec(process(&["ls"])), "$.command", Some("$.command")),
            (Form::ProcessExec(process(&["ls", "-l"])), "$.command", None),
            (Form::Nothing, "$.args", None),
        ] {
            assert_eq!(place(&form, path).as_deref(), expected, "{form:?} {path}");
        }
    }

    #[test]
    fn the_url_of_a_connection_is_changed_where_it_comes_from() {
        let rule = |path: &str, text: &str| RedactRule { field_path: path.into(), replacement: text.into() };
        let placed = |protocol: &str, host: &str| {
            let call = connection(protocol, host);
            let url = rule("$.url", &cut(&policy(), &network_url(&call)));
            let host = rule("$.host", &cut(&policy(), host));
            in_request(&policy(), &Form::NetworkCall(call), &[host, url])
        };
        let host = "AKIAQ7W3ERTY5UIOP2XZ.example.org";
        let [only] = placed("tcp", host).unwrap().try_into().unwrap();
        assert!(only.field_path == "$.host" && only.replacement.contains("[REDACTED:"), "{only:?}");
        // The password is one only in the URL.
        let host = "user:hunter22@db1";
        assert_eq!(placed("postgres", host).unwrap_err(), "$.url");
        let other = Form::NetworkCall(connection("tcp", "db"));
        assert_eq!(in_request(&policy(), &other, &[rule("$.url", "https://else")]).unwrap_err(), "$.url");
    }
}
