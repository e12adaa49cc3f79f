//! The sections of the Agent Assembly document, each speaking like a rule.

use proctor_core::action::ActionKind;
use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_core::normalise::Facts;

use super::Gathered;
use crate::calendar;
use crate::document::{CapabilitySection, Document, Position, ToolSection};
use crate::input::Input;

pub(super) fn judge(document: &Document, input: &Input, gathered: &mut Gathered<'_>) {
    if let Some(hours) = &document.active_hours
        && !calendar::is_active(hours, input.now)
    {
        gathered.say(Effect::Deny, "schedule", "outside active hours", document, Position::default());
    }
    judge_network(document, input, gathered);
    if let Some(capabilities) = &document.capabilities {
        judge_capabilities(capabilities, document, &input.facts, gathered);
    }
    if let Some(tool) = tool_section(document, &input.facts) {
        judge_tool(tool, document, input, gathered);
    }
}

/// Every host that the action reaches must be on the list. Only a `network_call` is allowed by being on it: another action
/// does more than connect.
fn judge_network(document: &Document, input: &Input, gathered: &mut Gathered<'_>) {
    let Some(allowlist) = &document.network_allowlist else { return };
    let facts = &input.facts;
    let is_network = facts.kind == ActionKind::NetworkCall;
    let permitted = |host: &str| allowlist.iter().any(|pattern| host_matches(&pattern.value, host));
    let stranger = facts.hosts.iter().find(|host| !permitted(host));
    if let Some(host) = stranger {
        let reason = format!("host not in network allowlist: `{host}`");
        gathered.say(Effect::Deny, "network.allowlist", reason, document, Position::default());
    } else if is_network && facts.hosts.is_empty() {
        let reason = "host not in network allowlist: the action names none";
        gathered.say(Effect::Deny, "network.allowlist", reason, document, Position::default());
    } else if is_network {
        let reason = format!("host `{}` is in the network allowlist", facts.host);
        gathered.say(Effect::Allow, "network.allowlist", reason, document, Position::default());
    }
}

/// `*` is any host, `*.x` any below x but not x itself, anything else exactly that host.
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
    let names = capability_names(facts);
    let Some(capability) = names.first() else { return };
    let named =
        |list: &[String]| list.iter().any(|entry| names.iter().any(|name| entry.eq_ignore_ascii_case(name)));
    // Who may not write may not delete either.
    let denied = named(&section.deny)
        || (capability == "file_delete"
            && section.deny.iter().any(|entry| entry.eq_ignore_ascii_case("file_write")));
    if denied {
        let reason = format!("capability denied by policy: `{capability}`");
        gathered.say(Effect::Deny, "capabilities.deny", reason, document, Position::default());
    }
    match &section.allow {
        Some(allow) if named(allow) => {
            let reason = format!("capability `{capability}` is allowed");
            gathered.say(Effect::Allow, "capabilities.allow", reason, document, Position::default());
        }
        Some(_) => {
            let reason = format!("capability not in allow list: `{capability}`");
            gathered.say(Effect::Deny, "capabilities.allow", reason, document, Position::default());
        }
        None => {}
    }
}

/// The names under which a document may speak about the capability that an action needs; the first is the proper one.
fn capability_names(facts: &Facts) -> Vec<String> {
    let tool = || format!("mcp_tool:{}", facts.name);
    match facts.kind {
        ActionKind::FileOperation => vec![match facts.operation.as_str() {
            "read" => "file_read".to_owned(),
            "delete" => "file_delete".to_owned(),
            _ => "file_write".to_owned(),
        }],
        ActionKind::NetworkCall => vec!["network_outbound".to_owned()],
        ActionKind::ProcessExec => vec!["terminal_exec".to_owned()],
        ActionKind::AgentSpawn => vec!["agent_spawn".to_owned()],
        ActionKind::LlmCall => vec![format!("model:{}", facts.model), "mcp_tool:llm_call".to_owned()],
        ActionKind::ToolCall | ActionKind::ToolResult => match facts.tool.as_str() {
            // A tool that is one of these under another name needs the same capability, whatever kind it claims.
            "shell" => vec!["terminal_exec".to_owned(), tool()],
            "file_read" | "file_write" | "file_delete" => vec![facts.tool.clone(), tool()],
            "network" => vec!["network_outbound".to_owned(), tool()],
            "agent_spawn" => vec!["agent_spawn".to_owned(), tool()],
            _ => vec![tool()],
        },
        ActionKind::Prompt | ActionKind::Custom => Vec::new(),
    }
}

/// The entry for a tool: the one of its name (either one), else `*`.
pub(super) fn tool_section<'a>(document: &'a Document, facts: &Facts) -> Option<&'a ToolSection> {
    if facts.kind == ActionKind::Prompt {
        return None;
    }
    let named = |name: &str| document.tools.iter().find(|tool| tool.name.eq_ignore_ascii_case(name));
    let by_either = |section: &&ToolSection| {
        proctor_core::normalise::tool::canonical_name(&section.name) == facts.tool && section.name != "*"
    };
    named(&facts.name)
        .or_else(|| named(&facts.tool))
        .or_else(|| document.tools.iter().find(by_either))
        .or_else(|| named("*"))
}

fn judge_tool(tool: &ToolSection, document: &Document, input: &Input, gathered: &mut Gathered<'_>) {
    let rule = format!("tool:{}", tool.name);
    if !tool.allow {
        gathered.say(Effect::Deny, rule, "tool denied by policy", document, tool.at);
        return;
    }
    if let Some(expression) = &tool.requires_approval_if
        && expression.requires_approval(&input.facts, &|field| context_field(field, input))
    {
        let reason = format!("tool `{}` requires approval here", tool.name);
        gathered.say(Effect::Ask, "requires_approval", reason, document, tool.at);
        return;
    }
    gathered.say(Effect::Allow, rule, format!("tool `{}` is allowed", tool.name), document, tool.at);
}

/// What an approval expression can know besides the action. What is not listed is unknown here.
fn context_field(field: &str, input: &Input) -> Option<Json> {
    match field {
        "agent.depth" => Some(Json::from(input.facts.depth)),
        "agent.is_root" => Some(Json::Bool(input.facts.depth == 0)),
        "agent.team_id" | "source.team_id" if !input.caller.team.is_empty() => {
            Some(Json::from(input.caller.team.as_str()))
        }
        _ => None,
    }
}
