//! The sections of the Agent Assembly document: network, tools, data, schedule, capabilities.

use std::collections::BTreeMap;

use proctor_core::quoted;
use proctor_yaml::{Node, Value};
use regex::RegexBuilder;

use super::fields::{self, Fields};
use super::problems::{Problems, listed, suggestion};
use super::{ActiveHours, CapabilitySection, CredentialAction, DataSection, Located, ToolSection, keys};
use crate::expression::Expression;

/// The scanner's own bounds for patterns.
const MAX_PATTERNS: usize = 256;
const MAX_PATTERN_BYTES: usize = 4096;
const MAX_COMPILED_BYTES: usize = 1 << 20;

pub(super) fn read_network(node: &Node, problems: &mut Problems) -> Option<Vec<Located<String>>> {
    let fields = Fields::closed(node, "network", keys::NETWORK, problems)?;
    // The section without a list is the section with an empty one: no host at all.
    Some(fields.texts("allowlist", problems).unwrap_or_default())
}

pub(super) fn read_tools(node: &Node, problems: &mut Problems) -> Vec<ToolSection> {
    let Some(entries) = fields::entries(node, "tools", problems) else { return Vec::new() };
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    let mut tools = Vec::new();
    for (key, value) in entries {
        if key.name.trim() != key.name || key.name.is_empty() {
            problems.add(
                key.at,
                format!("{} is not the name of a tool: it is blank at an end", quoted(&key.name)),
            );
        }
        if let Some(first) = seen.insert(key.name.to_lowercase(), &key.name) {
            let message = format!("tool {} is listed already as {}", quoted(&key.name), quoted(first));
            problems.add(key.at, format!("{message}; names are compared without regard to case"));
        }
        let path = format!("tools.{}", name_in_message(&key.name));
        if let Some(fields) = Fields::closed(value, path, keys::TOOL, problems) {
            tools.push(ToolSection {
                name: key.name.clone(),
                allow: fields.boolean("allow", problems).unwrap_or(false),
                allow_written: fields.get("allow").is_some(),
                limit_per_hour: fields.count("limit_per_hour", problems),
                requires_approval_if: read_expression(&fields, problems),
                at: key.at,
            });
        }
    }
    tools
}

fn name_in_message(name: &str) -> String {
    name.chars().take(64).filter(|character| !character.is_control()).collect()
}

fn read_expression(fields: &Fields<'_>, problems: &mut Problems) -> Option<Expression> {
    let written = fields.nonblank("requires_approval_if", problems)?;
    match Expression::parse(written.value) {
        Ok(expression) => Some(expression),
        Err(error) => {
            problems.add(written.at.inside(written.value, error.column.saturating_sub(1)), error.message);
            None
        }
    }
}

pub(super) fn read_data(node: &Node, problems: &mut Problems) -> Option<DataSection> {
    let fields = Fields::closed(node, "data", keys::DATA, problems)?;
    let credential_action =
        fields.word("credential_action", keys::CREDENTIAL_ACTIONS, problems).map(|word| match word.value {
            "block" => CredentialAction::Block,
            "alert_only" => CredentialAction::AlertOnly,
            "alert_and_redact" => CredentialAction::AlertAndRedact,
            _ => CredentialAction::RedactOnly,
        });
    if let Some(packs) = fields.get("locale_packs")
        && !matches!(&packs.value, Value::List(items) if items.is_empty())
    {
        let message = "`data.locale_packs` is not supported; write what the pack would find as `data.sensitive_patterns`";
        problems.add(packs.at, message);
    }
    let items = fields.list("sensitive_patterns", problems).unwrap_or_default();
    if items.len() > MAX_PATTERNS
        && let Some((_, first_too_many)) = items.get(MAX_PATTERNS)
    {
        let message = format!(
            "`data.sensitive_patterns` has {} entries; at most {MAX_PATTERNS} are allowed",
            items.len()
        );
        problems.add(first_too_many.at, message);
    }
    let patterns = items.into_iter().take(MAX_PATTERNS);
    let sensitive_patterns =
        patterns.filter_map(|(name, item)| read_pattern(item, &name, problems)).collect();
    let at = fields.get("credential_action").map_or(fields.at, |node| node.at);
    Some(DataSection { sensitive_patterns, credential_action, at })
}

pub(super) fn read_pattern(item: &Node, name: &str, problems: &mut Problems) -> Option<Located<String>> {
    let written = fields::text(item, name, problems)?;
    let refused = if written.value.is_empty() {
        "the pattern is empty".to_owned()
    } else if written.value.len() > MAX_PATTERN_BYTES {
        format!("the pattern has {} bytes, at most {MAX_PATTERN_BYTES} allowed", written.value.len())
    } else {
        let built = RegexBuilder::new(written.value)
            .size_limit(MAX_COMPILED_BYTES)
            .dfa_size_limit(MAX_COMPILED_BYTES)
            .build();
        match built {
            Ok(_) => return Some(fields::owned(&written)),
            Err(regex::Error::CompiledTooBig(_)) => "the pattern is too large when compiled".to_owned(),
            // The crate draws the pattern over several lines; its last line says what is wrong.
            Err(error) => {
                let drawn = error.to_string();
                let last = drawn.lines().last().unwrap_or_default();
                last.trim().trim_start_matches("error: ").to_owned()
            }
        }
    };
    problems.add(item.at, format!("`{name}` is not a regular expression: {refused}"));
    None
}

pub(super) fn read_schedule(node: &Node, problems: &mut Problems) -> Option<Located<ActiveHours>> {
    let schedule = Fields::closed(node, "schedule", keys::SCHEDULE, problems)?;
    read_hours(schedule.get("active_hours")?, "schedule.active_hours", problems)
}

/// Hours of the day, with their position.
pub(super) fn read_hours(node: &Node, path: &str, problems: &mut Problems) -> Option<Located<ActiveHours>> {
    let fields = Fields::closed(node, path, keys::ACTIVE_HOURS, problems)?;
    for key in keys::ACTIVE_HOURS {
        if fields.get(key).is_none() {
            problems.add(fields.at, format!("`{path}` needs `{key}`"));
        }
    }
    let start = read_minute(&fields, "start", problems);
    let end = read_minute(&fields, "end", problems);
    let timezone = read_timezone(&fields, "timezone", problems);
    let (start, end, timezone) = (start?, end?, timezone?);
    if start == end {
        let at = fields.get("end").map_or(fields.at, |node| node.at);
        problems
            .add(at, format!("`{path}` begins and ends at the same minute, so that nothing would ever run"));
        return None;
    }
    let end = if end == 23 * 60 + 59 { 24 * 60 } else { end };
    Some(Located { value: ActiveHours { start, end, timezone }, at: fields.at })
}

/// `HH:MM`, as a minute of the day.
fn read_minute(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> Option<u16> {
    let written = fields.text(key, problems)?;
    let two_digits = |text: &str| {
        (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse::<u16>().ok())
    };
    let read = written
        .value
        .split_once(':')
        .and_then(|(hour, minute)| Some((two_digits(hour)??, two_digits(minute)??)));
    match read {
        Some((hour, minute)) if hour < 24 && minute < 60 => Some(hour * 60 + minute),
        _ => {
            let at = fields.get(key).map_or(written.at, |node| node.at);
            let name = fields.name(key);
            problems.add(
                at,
                format!("`{name}` must be a time from 00:00 to 23:59, found {}", quoted(written.value)),
            );
            None
        }
    }
}

/// The name of a time zone that the compiled-in database knows.
pub(super) fn read_timezone(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> Option<String> {
    let written = fields.text(key, problems)?;
    if jiff::tz::TimeZoneDatabase::bundled().get(written.value).is_ok() {
        return Some(written.value.to_owned());
    }
    let at = fields.get(key).map_or(written.at, |node| node.at);
    let name = fields.name(key);
    let advice = "write an IANA name such as `UTC`, `Europe/Berlin` or `America/New_York`";
    problems.add(at, format!("`{name}`: there is no time zone {}; {advice}", quoted(written.value)));
    None
}

pub(super) fn read_capabilities(node: &Node, problems: &mut Problems) -> Option<CapabilitySection> {
    let fields = Fields::closed(node, "capabilities", keys::CAPABILITIES, problems)?;
    let allow = fields.get("allow").map(|_| read_capability_list(&fields, "allow", problems));
    let deny = read_capability_list(&fields, "deny", problems);
    Some(CapabilitySection { allow, deny, at: fields.at })
}

fn read_capability_list(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> Vec<String> {
    let mut names = Vec::new();
    for (path, item) in fields.list(key, problems).unwrap_or_default() {
        let Some(written) = fields::text(item, &path, problems) else { continue };
        let has_parameter = keys::CAPABILITY_PREFIXES
            .iter()
            .any(|prefix| written.value.strip_prefix(prefix).is_some_and(|name| !name.trim().is_empty()));
        if has_parameter || keys::CAPABILITY_NAMES.contains(&written.value) {
            names.push(written.value.to_owned());
        } else if !problems.is_full() {
            let advice = match proctor_core::nearest(written.value, keys::CAPABILITY_NAMES) {
                Some(_) => suggestion(written.value, keys::CAPABILITY_NAMES),
                None => {
                    format!("valid are {}, `mcp_tool:NAME`, `model:NAME`", listed(keys::CAPABILITY_NAMES))
                }
            };
            problems.add(item.at, format!("unknown capability {}; {advice}", quoted(written.value)));
        }
    }
    names
}
