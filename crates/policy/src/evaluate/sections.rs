//! The sections of the Agent Assembly document, each speaking like a rule.

use proctor_core::action::ActionKind;
use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_facts::tool::{canonical_name, is_unknown_name};
use proctor_facts::{Facts, NO_HOST, TOO_MANY_ENTRIES, UNREADABLE_HOST, UNREADABLE_URL, is_unread};

use super::Gathered;
use crate::calendar;
use crate::condition::CallingAgent;
use crate::document::{CapabilitySection, Document, Position, ToolSection};
use crate::input::Input;
use crate::question::AnswerSource;

pub(super) fn judge(
    document: &Document,
    input: &Input,
    answers: &dyn AnswerSource,
    gathered: &mut Gathered<'_>,
) {
    if let Some(hours) = &document.active_hours
        && !calendar::is_active(hours, input.now)
    {
        gathered.push(Effect::Deny, "schedule", "outside active hours", document, Position::default());
    }
    judge_network(document, input, gathered);
    if let Some(capabilities) = &document.capabilities {
        judge_capabilities(capabilities, document, &input.facts, gathered);
    }
    if let Some(tool) = tool_section(document, &input.facts) {
        judge_tool(tool, document, input, answers, gathered);
    }
    judge_deeds(document, input, answers, gathered);
}

/// Judges the allowlist: every host that the action reaches must be on it. Only an action that does nothing but connect is *allowed* by
/// being on it, whatever kind it claims.
fn judge_network(document: &Document, input: &Input, gathered: &mut Gathered<'_>) {
    let Some(allowlist) = &document.network_allowlist else { return };
    let facts = &input.facts;
    let is_network = facts.kind == ActionKind::NetworkCall;
    let permitted = |host: &str| allowlist.iter().any(|pattern| host_matches(&pattern.value, host));
    let stranger = facts.hosts.iter().find(|host| !permitted(host));
    let unread =
        facts.unknown.iter().find(|unknown| HIDES_HOSTS.contains(&unknown.as_str()) || is_unread(unknown));
    let only_connects = facts.tool == "network"
        && facts.commands.is_empty()
        && facts.command.is_empty()
        && facts.paths.is_empty();
    let mut say = |effect: Effect, reason: String| {
        gathered.push(effect, "network.allowlist", reason, document, Position::default());
    };
    if let Some(host) = stranger {
        say(Effect::Deny, format!("host not in network allowlist: `{host}`"));
    } else if let Some(unread) = unread
        && !permitted("*")
    {
        say(Effect::Deny, format!("host not in network allowlist: there is {unread}"));
    } else if is_network && facts.hosts.is_empty() {
        say(Effect::Deny, "host not in network allowlist: the action names none".to_owned());
    } else if is_network && only_connects {
        say(Effect::Allow, format!("host `{}` is in the network allowlist", facts.host));
    }
}

/// Entries of `unknown` behind which a host may hide.
const HIDES_HOSTS: &[&str] = &[NO_HOST, UNREADABLE_URL, UNREADABLE_HOST, TOO_MANY_ENTRIES];

/// Matches a host: `*` is any host, `*.x` any below x but not x itself, other patterns exactly that host.
pub(crate) fn host_matches(pattern: &str, host: &str) -> bool {
    let pattern = pattern.to_lowercase();
    if pattern == "*" {
        return true;
    }
    match pattern.strip_prefix("*.") {
        Some(parent) => {
            host.strip_suffix(parent).is_some_and(|below| below.len() > 1 && below.ends_with('.'))
        }
        None => pattern == host,
    }
}

fn judge_capabilities(
    section: &CapabilitySection,
    document: &Document,
    facts: &Facts,
    gathered: &mut Gathered<'_>,
) {
    let mut needed = needed_capabilities(facts);
    if hides_deeds(facts) {
        // Whatever the part that was not read does, it may do this.
        let hidden = ["terminal_exec", "file_read", "file_write", "file_delete", "network_outbound"];
        needed.extend(hidden.map(|name| vec![name.to_owned()]));
    }
    let named = |list: &[String], names: &[String]| {
        list.iter().any(|entry| names.iter().any(|name| same_capability(entry, name)))
    };
    let touched = touched_capabilities(facts);
    let denied = needed.iter().chain(&touched).find(|names| {
        // Who may not write may not delete either.
        let deletes = names.first().is_some_and(|name| name == "file_delete");
        named(&section.deny, names) || (deletes && named(&section.deny, &["file_write".to_owned()]))
    });
    if let Some(capability) = denied.and_then(|names| names.first()) {
        let reason = format!("capability denied by policy: `{capability}`");
        gathered.push(Effect::Deny, "capabilities.deny", reason, document, Position::default());
    }
    let Some(allow) = &section.allow else { return };
    // Only the name that was sent is allowed: another name of the tool may be another tool.
    let allowed = |names: &[String]| {
        allow.iter().any(|entry| names.iter().any(|name| entry.eq_ignore_ascii_case(name)))
    };
    let missing = needed.iter().find(|names| !allowed(names)).and_then(|names| names.first());
    if let Some(capability) = missing {
        let reason = format!("capability not in allow list: `{capability}`");
        gathered.push(Effect::Deny, "capabilities.allow", reason, document, Position::default());
    } else if let Some(capability) = needed.first().and_then(|names| names.first()) {
        let reason = format!("capability `{capability}` is allowed");
        gathered.push(Effect::Allow, "capabilities.allow", reason, document, Position::default());
    }
}

/// Whether a denied capability is this one. Names are compared without case; a tool is the same under all its names.
fn same_capability(entry: &str, name: &str) -> bool {
    if entry.eq_ignore_ascii_case(name) {
        return true;
    }
    match (entry.strip_prefix("mcp_tool:"), name.strip_prefix("mcp_tool:")) {
        (Some(entry), Some(name)) => canonical_name(entry) == canonical_name(name),
        _ => false,
    }
}

/// The capabilities that an action needs, all of them, whatever kind it claims. Each is a list of the names under which a document
/// may speak about it; the first is the proper one.
fn needed_capabilities(facts: &Facts) -> Vec<Vec<String>> {
    let tool = || format!("mcp_tool:{}", facts.name);
    let one = |name: &str| vec![name.to_owned()];
    let mut needed = match facts.kind {
        ActionKind::FileOperation => vec![one(match facts.operation.as_str() {
            "read" => "file_read",
            "delete" => "file_delete",
            _ => "file_write",
        })],
        ActionKind::NetworkCall => vec![one("network_outbound")],
        ActionKind::ProcessExec => vec![one("terminal_exec")],
        ActionKind::AgentSpawn => vec![one("agent_spawn")],
        ActionKind::LlmCall => vec![vec![format!("model:{}", facts.model), "mcp_tool:llm_call".to_owned()]],
        ActionKind::ToolCall | ActionKind::ToolResult | ActionKind::Prompt | ActionKind::Custom => Vec::new(),
    };
    let by_tool = match facts.tool.as_str() {
        "shell" => Some(vec!["terminal_exec".to_owned(), tool()]),
        "file_read" | "file_write" | "file_delete" => Some(vec![facts.tool.clone(), tool()]),
        "network" => Some(vec!["network_outbound".to_owned(), tool()]),
        "agent_spawn" => Some(vec!["agent_spawn".to_owned(), tool()]),
        "llm_call" | "prompt" | "" => None,
        _ => Some(vec![tool()]),
    };
    needed.extend(by_tool.filter(|names| !needed.iter().any(|known| known.first() == names.first())));
    let runs = !facts.commands.is_empty() || !facts.command.is_empty();
    if runs && !needed.iter().any(|names| names.first().is_some_and(|name| name == "terminal_exec")) {
        needed.push(vec!["terminal_exec".to_owned(), tool()]);
    }
    needed
}

/// Whether a part of a command line was not read at all, so that any command, path or host may be in it.
fn hides_deeds(facts: &Facts) -> bool {
    facts.unknown.iter().any(|unknown| is_unread(unknown))
}

/// Further capabilities that an action uses: a deny of one denies the action, but they need not be allowed.
fn touched_capabilities(facts: &Facts) -> Vec<Vec<String>> {
    let mut touched = Vec::new();
    // What a tool that nobody knows does with a path is not known either.
    let is_tool = matches!(facts.kind, ActionKind::ToolCall | ActionKind::Custom);
    let may_write =
        is_tool && !facts.paths.is_empty() && facts.commands.is_empty() && is_unknown_name(&facts.name);
    if !facts.writes.is_empty() || may_write {
        touched.push(vec!["file_write".to_owned()]);
    }
    if !facts.hosts.is_empty() {
        touched.push(vec!["network_outbound".to_owned()]);
    }
    touched
}

/// The entry for a tool: the one of its name (either one), else `*`. A prompt is no tool, unless it claims to be one.
pub(super) fn tool_section<'a>(document: &'a Document, facts: &Facts) -> Option<&'a ToolSection> {
    if facts.kind == ActionKind::Prompt && facts.tool == "prompt" {
        return None;
    }
    own_section(document, &facts.name, &facts.tool)
        .or_else(|| document.tools.iter().find(|section| section.name == "*"))
}

/// The entry that names a tool, under any of its names.
fn own_section<'a>(document: &'a Document, name: &str, tool: &str) -> Option<&'a ToolSection> {
    let named = |name: &str| document.tools.iter().find(|section| section.name.eq_ignore_ascii_case(name));
    named(name).or_else(|| named(tool)).or_else(|| {
        document.tools.iter().find(|section| section.name != "*" && canonical_name(&section.name) == tool)
    })
}

/// Tools that an action uses besides the one that it names: its commands are judged by the entry for the shell, its writes by that
/// for writing files. They can forbid and ask; they do not allow.
fn judge_deeds(document: &Document, input: &Input, answers: &dyn AnswerSource, gathered: &mut Gathered<'_>) {
    let facts = &input.facts;
    let hides = hides_deeds(facts);
    let runs = facts.kind == ActionKind::ProcessExec || !facts.commands.is_empty() || hides;
    for (does, tool) in [(runs, "shell"), (!facts.writes.is_empty() || hides, "file_write")] {
        if !does || facts.tool == tool {
            continue;
        }
        let Some(section) = own_section(document, tool, tool) else { continue };
        if !section.allow {
            let rule = format!("tool:{}", section.name);
            gathered.push(Effect::Deny, rule, "tool denied by policy", document, section.at);
        } else if asks(section, input, answers) {
            let reason = format!("tool `{}` requires approval here", section.name);
            gathered.push(Effect::Ask, "requires_approval", reason, document, section.at);
        }
    }
}

fn asks(section: &ToolSection, input: &Input, answers: &dyn AnswerSource) -> bool {
    let expression = section.requires_approval_if.as_ref();
    expression.is_some_and(|expression| {
        expression.requires_approval(&input.facts, &|field| context_field(field, input, answers))
    })
}

fn judge_tool(
    tool: &ToolSection,
    document: &Document,
    input: &Input,
    answers: &dyn AnswerSource,
    gathered: &mut Gathered<'_>,
) {
    let rule = format!("tool:{}", tool.name);
    if !tool.allow {
        gathered.push(Effect::Deny, rule, "tool denied by policy", document, tool.at);
        return;
    }
    if asks(tool, input, answers) {
        let reason = format!("tool `{}` requires approval here", tool.name);
        gathered.push(Effect::Ask, "requires_approval", reason, document, tool.at);
        return;
    }
    gathered.push(Effect::Allow, rule, format!("tool `{}` is allowed", tool.name), document, tool.at);
}

/// Context fields of approval expressions. What is not listed, or what only a registered agent or one with a team
/// has, is unknown here: then guards on numbers and truths fire, and those on texts and tiers do not.
fn context_field(field: &str, input: &Input, answers: &dyn AnswerSource) -> Option<Json> {
    if matches!(field, "agent.team_id" | "source.team_id") {
        return text(&input.caller.team);
    }
    let acting = CallingAgent::ask(input, answers)?;
    let of_registered = |value: Json| acting.is_registered().then_some(value);
    match field {
        "agent.depth" => Some(Json::from(acting.depth(input))),
        "agent.is_root" => Some(Json::Bool(acting.depth(input) == 0)),
        "agent.is_leaf" => of_registered(Json::Bool(acting.children() == 0)),
        "agent.children_count" => of_registered(Json::from(acting.children())),
        "agent.age" => of_registered(Json::from(acting.age_micros(input) / 1_000_000)),
        "agent.risk_tier" => text(acting.risk()),
        "agent.parent_agent_id" => text(acting.parent()),
        "parent.risk_tier" => text(acting.parent_risk()),
        "team.active_agents" if !input.caller.team.is_empty() => Some(Json::from(acting.team_agents())),
        _ => None,
    }
}

fn text(text: &str) -> Option<Json> {
    (!text.is_empty()).then(|| Json::from(text))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod unread_tests;
