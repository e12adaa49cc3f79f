//! Translation of redactions from paths in the action to paths in the request.
//!
//! Rules and the scanner address the action, where the command line of a process is one string, `$.command`. A client redacts the request
//! that it sent, where the words are `$.command` and `$.args[0]`. A redaction without a path in the request cannot be applied, so the
//! request is denied.

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

/// Alarm code for a denial because a redaction has no path in the request.
const NO_REQUEST_PATH: &str = "no_place";

/// Redaction that has no path in the request.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("`{path}` of the action has no place in this request where it can be changed")]
struct NotRedactable {
    /// Path in the action.
    path: String,
}

impl NotRedactable {
    fn new(path: &str) -> NotRedactable {
        NotRedactable { path: path.to_owned() }
    }
}

/// Kind of request, which determines the paths that it has.
#[derive(Debug, Clone, PartialEq)]
enum RequestKind {
    Nothing,
    LlmCall,
    ToolCall,
    ToolResult,
    FileOp,
    NetworkCall(NetworkCallContext),
    ProcessExec(ProcessExecContext),
}

impl RequestKind {
    fn of(request: &CheckActionRequest) -> RequestKind {
        match request.context.as_ref().and_then(|context| context.action.as_ref()) {
            None => RequestKind::Nothing,
            Some(Context::LlmCall(_)) => RequestKind::LlmCall,
            Some(Context::ToolCall(_)) => RequestKind::ToolCall,
            Some(Context::ToolResult(_)) => RequestKind::ToolResult,
            Some(Context::FileOp(_)) => RequestKind::FileOp,
            Some(Context::NetworkCall(call)) => RequestKind::NetworkCall(call.clone()),
            Some(Context::ProcessExec(process)) => RequestKind::ProcessExec(process.clone()),
        }
    }
}

impl AssemblyDoor {
    /// Rewrites the redactions of a response to paths in the request, or denies the request.
    pub(super) async fn address_redactions(
        &self,
        caller: &Caller,
        request: &CheckActionRequest,
        response: &mut CheckActionResponse,
    ) {
        if response.decision() != Decision::Redact {
            return;
        }
        let rules = response.redact.take().map(|redact| redact.rules).unwrap_or_default();
        match in_request(&self.engine().policy(), &RequestKind::of(request), &rules) {
            Ok(rules) => response.redact.get_or_insert_default().rules = rules,
            Err(problem) => {
                let reason = format!("{}, and {problem}", response.reason);
                // The recorded decision lets the action through, so the denial gets a record of its own.
                let about = Json::object().with("decision_id", response.decision_id.as_str());
                // The request is denied even if this record cannot be written.
                if let Some(reservation) = self.engine().reserve(self.engine().due()).await {
                    let queued = self.engine().enqueue_refusal(
                        reservation,
                        caller,
                        DOOR,
                        NO_REQUEST_PATH,
                        &reason,
                        &about,
                    );
                    let _ = self.engine().all_recorded(queued, Wait::Task).await;
                }
                response.reason = reason;
                response.set_decision(Decision::Deny);
            }
        }
    }
}

/// Translates redactions of an action to redactions of its request.
fn in_request(
    policy: &Policy,
    kind: &RequestKind,
    rules: &[RedactRule],
) -> Result<Vec<RedactRule>, NotRedactable> {
    let mut placed: Vec<RedactRule> = Vec::with_capacity(rules.len());
    let mut derived = Vec::new();
    for rule in rules {
        match (kind, rule.field_path.as_str()) {
            (RequestKind::ProcessExec(process), "$.command") if !process.args.is_empty() => {
                let words = in_words(policy, process, &rule.replacement);
                placed.extend(words.ok_or_else(|| NotRedactable::new(&rule.field_path))?);
            }
            // The URL is derived from host and protocol, so it is checked once those are redacted.
            (RequestKind::NetworkCall(_), "$.url") => derived.push(rule),
            (_, path) => {
                let field_path = request_path(kind, path).ok_or_else(|| NotRedactable::new(path))?;
                placed.push(RedactRule { field_path, replacement: rule.replacement.clone() });
            }
        }
    }
    for rule in derived {
        if !matches!(kind, RequestKind::NetworkCall(call) if is_url_clean(policy, call, rule, &placed)) {
            return Err(NotRedactable::new(&rule.field_path));
        }
    }
    Ok(placed)
}

/// Reports whether the redacted host and protocol yield a URL without secrets. Only redactions by the scanner can be replaced in this way.
fn is_url_clean(
    policy: &Policy,
    call: &NetworkCallContext,
    rule: &RedactRule,
    placed: &[RedactRule],
) -> bool {
    let is_by_scanner = redact(policy, &network_url(call)) == rule.replacement;
    let mut changed = call.clone();
    for change in placed {
        match change.field_path.as_str() {
            "$.host" => changed.host.clone_from(&change.replacement),
            "$.protocol" => changed.protocol.clone_from(&change.replacement),
            _ => {}
        }
    }
    let url = network_url(&changed);
    is_by_scanner && redact(policy, &url) == url
}

/// Maps a path in the action to a path in the request. The contents of `args_json` and `result_json` are addressed as `args` and `result`,
/// as in the protocol's own examples.
fn request_path(kind: &RequestKind, path: &str) -> Option<String> {
    let rest = path.strip_prefix("$.")?;
    let (root, below) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
    let field = match (kind, root, below) {
        (RequestKind::ToolCall, "args", _) => "args",
        (RequestKind::ToolCall, "url", "") => "target_url",
        (RequestKind::ToolResult, "result", _) => "result",
        (RequestKind::ToolResult, "url", "") => "source_url",
        (RequestKind::ToolCall | RequestKind::ToolResult, "name", "") => "tool_name",
        (RequestKind::ToolCall | RequestKind::ToolResult, "metadata", ".tool_source") => {
            return Some("$.tool_source".into());
        }
        (RequestKind::NetworkCall(_), "metadata", ".protocol") => return Some("$.protocol".into()),
        (RequestKind::NetworkCall(_), "host", "") => "host",
        (RequestKind::FileOp, "path", "") => "path",
        (RequestKind::LlmCall, "model", "") => "model",
        // With arguments the action's command line is a join of all words, which `in_words` handles.
        (RequestKind::ProcessExec(process), "command", "") if process.args.is_empty() => "command",
        _ => return None,
    };
    Some(format!("$.{field}{below}"))
}

/// Translates a redaction of the command line to redactions of its words. `None` if a rule replaced the line by another one.
fn in_words(policy: &Policy, process: &ProcessExecContext, replacement: &str) -> Option<Vec<RedactRule>> {
    let mut changed = process.clone();
    if replacement == REDACTED_WHOLE {
        words_mut(&mut changed).for_each(|word| REDACTED_WHOLE.clone_into(word));
    } else {
        let action =
            Action { kind: ActionKind::ProcessExec, command: command_line(process), ..Action::default() };
        // Only redactions by the scanner can be repeated word by word.
        if prepare(policy, &action, None).facts.command != replacement {
            return None;
        }
        words_mut(&mut changed).for_each(|word| *word = redact(policy, word));
        redact_across_words(policy, &mut changed);
        let line = command_line(&changed);
        if redact(policy, &line) != line {
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

/// Replaces words that only together match a secret, such as the groups of a card number.
fn redact_across_words(policy: &Policy, process: &mut ProcessExecContext) {
    let line = command_line(process);
    let clean = redact(policy, &line);
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

/// Redacts a text with the policy's scanner.
fn redact(policy: &Policy, text: &str) -> String {
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
    fn a_secret_is_redacted_in_the_word_that_holds_it() {
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
    fn a_secret_across_words_redacts_all_of_them() {
        let card = words(&["pay", "4111", "1111", "1111", "1111", "now"]).unwrap();
        let places: Vec<&str> = card.iter().map(|(place, _)| place.as_str()).collect();
        assert_eq!(places, ["$.args[0]", "$.args[1]", "$.args[2]", "$.args[3]"]);
        assert!(card.iter().all(|(_, text)| text == REDACTED_WHOLE));
    }

    #[test]
    fn a_replaced_line_has_no_redaction_by_words() {
        let process = process(&["rm", "-rf", "/"]);
        assert_eq!(in_words(&policy(), &process, "echo no"), None);
        let whole = in_words(&policy(), &process, REDACTED_WHOLE).unwrap();
        assert_eq!(whole.len(), 3, "a rule that cuts the line cuts every word");
    }

    #[test]
    fn action_paths_map_to_request_paths() {
        for (kind, path, expected) in [
            (RequestKind::ToolCall, "$.args.a[0]['b c']", Some("$.args.a[0]['b c']")),
            (RequestKind::ToolCall, "$.args", Some("$.args")),
            (RequestKind::ToolCall, "$.url", Some("$.target_url")),
            (RequestKind::ToolCall, "$.name", Some("$.tool_name")),
            (RequestKind::ToolCall, "$.metadata.tool_source", Some("$.tool_source")),
            (RequestKind::ToolCall, "$.metadata", None),
            (RequestKind::ToolCall, "$.command", None),
            (RequestKind::ToolResult, "$.result", Some("$.result")),
            (RequestKind::ToolResult, "$.result.key[1]", Some("$.result.key[1]")),
            (RequestKind::ToolResult, "$.url", Some("$.source_url")),
            (RequestKind::FileOp, "$.path", Some("$.path")),
            (RequestKind::NetworkCall(connection("tcp", "db")), "$.host", Some("$.host")),
            (RequestKind::NetworkCall(connection("tcp", "db")), "$.metadata.protocol", Some("$.protocol")),
            (RequestKind::LlmCall, "$.model", Some("$.model")),
            (RequestKind::LlmCall, "$.text", None),
            (RequestKind::ProcessExec(process(&["ls"])), "$.command", Some("$.command")),
            (RequestKind::ProcessExec(process(&["ls", "-l"])), "$.command", None),
            (RequestKind::Nothing, "$.args", None),
        ] {
            assert_eq!(request_path(&kind, path).as_deref(), expected, "{kind:?} {path}");
        }
    }

    #[test]
    fn the_url_of_a_connection_is_redacted_at_its_source() {
        let rule = |path: &str, text: &str| RedactRule { field_path: path.into(), replacement: text.into() };
        let placed = |protocol: &str, host: &str| {
            let call = connection(protocol, host);
            let url = rule("$.url", &redact(&policy(), &network_url(&call)));
            let host = rule("$.host", &redact(&policy(), host));
            in_request(&policy(), &RequestKind::NetworkCall(call), &[host, url])
        };
        let host = "AKIAQ7W3ERTY5UIOP2XZ.example.org";
        let [only] = placed("tcp", host).unwrap().try_into().unwrap();
        assert!(only.field_path == "$.host" && only.replacement.contains("[REDACTED:"), "{only:?}");
        // The password is one only in the URL.
        let host = "user:hunter22@db1";
        assert_eq!(placed("postgres", host).unwrap_err().path, "$.url");
        let other = RequestKind::NetworkCall(connection("tcp", "db"));
        assert_eq!(
            in_request(&policy(), &other, &[rule("$.url", "https://else")]).unwrap_err().path,
            "$.url"
        );
    }
}
