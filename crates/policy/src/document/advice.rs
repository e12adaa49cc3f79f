//! `advice`.

use proctor_core::json::Json;
use proctor_core::quoted;
use proctor_yaml::{Node, Value};
use rust_decimal::Decimal;

use super::fields::{self, Fields};
use super::problems::{Problems, listed, suggestion};
use super::rules::to_json;
use super::sections::{read_hours, read_pattern};
use super::{Position, keys};
use crate::advice::{
    AdviceSection, ContextSection, IdleSection, IntentMatch, IntentSection, MemorySection, MemorySessions,
    PathPattern, Phrases, PlanningSection, RateLimitSection, ReasoningSection, TextSection,
};

const MAX_INTENTS: usize = 256;
const MAX_PHRASES: usize = 64;
const MAX_PHRASE_BYTES: usize = 256;
const MAX_HINTS: usize = 64;
const MAX_HINT_BYTES: usize = 1024;
const MAX_NAMES: usize = 64;
const MAX_NAME_BYTES: usize = 128;
const MAX_PATTERNS: usize = 256;
const MAX_CHARS: u32 = 1_000_000;
const MAX_RESULTS: u32 = 1000;
const MAX_BYTES: u32 = 1 << 20;

pub(super) fn read_advice(node: &Node, problems: &mut Problems) -> Option<AdviceSection> {
    let fields = Fields::closed(node, "advice", keys::ADVICE, problems)?;
    Some(AdviceSection {
        idle: fields.get("idle").and_then(|node| read_idle(node, problems)),
        intents: read_intents(&fields, problems),
        planning: fields.get("planning").and_then(|node| read_planning(node, problems)),
        reasoning: fields.get("reasoning").and_then(|node| read_reasoning(node, problems)),
        context: fields.get("context").and_then(|node| read_context(node, problems)),
        memory: fields.get("memory").and_then(|node| read_memory(node, problems)),
        rate_limit: fields.get("rate_limit").and_then(|node| read_rate_limit(node, problems)),
        at: fields.at,
    })
}

fn read_idle(node: &Node, problems: &mut Problems) -> Option<IdleSection> {
    let fields = Fields::closed(node, "advice.idle", keys::ADVICE_IDLE, problems)?;
    let allow = fields.boolean("allow", problems).unwrap_or(true);
    let hours = fields.get("hours").and_then(|node| read_hours(node, &fields.name("hours"), problems));
    let refuses = !allow || fields.get("hours").is_some();
    for key in ["reason", "retry_after"] {
        needs_refusal(&fields, key, refuses, "`allow: false` or `hours`", problems);
    }
    Some(IdleSection {
        allow,
        hours: hours.map(|hours| hours.value),
        reason: short(&fields, "reason", MAX_HINT_BYTES, problems),
        retry_after_ms: fields.duration("retry_after", problems).map(|micros| micros.div_ceil(1000)),
    })
}

fn read_intents(fields: &Fields<'_>, problems: &mut Problems) -> Vec<IntentSection> {
    let items = bounded(fields, "intents", MAX_INTENTS, problems).unwrap_or_default();
    items.into_iter().filter_map(|(name, item)| read_intent(item, &name, problems)).collect()
}

fn read_intent(item: &Node, name: &str, problems: &mut Problems) -> Option<IntentSection> {
    let fields = Fields::closed(item, name, keys::ADVICE_INTENT, problems)?;
    if fields.get("intent").is_none() {
        problems.add(fields.at, format!("`{name}` needs `intent`"));
    }
    if fields.get("any").is_some() == fields.get("regex").is_some() {
        problems.add(
            fields.at,
            format!("`{name}` must have one of `any` and `regex`, which say when it is meant"),
        );
    }
    let any = phrases(&fields, "any", problems);
    if any.as_ref().is_some_and(Vec::is_empty) {
        refuse_empty(&fields, "any", "it would never be meant; write a phrase", problems);
    }
    let regex = fields.get("regex").and_then(|node| read_pattern(node, &fields.name("regex"), problems));
    let intent = short(&fields, "intent", MAX_NAME_BYTES, problems);
    let confidence = read_confidence(&fields, problems);
    let target_type = short(&fields, "target_type", MAX_NAME_BYTES, problems);
    let domain = short(&fields, "domain", MAX_NAME_BYTES, problems);
    let when = any.map(IntentMatch::Any).or(regex.map(|regex| IntentMatch::Regex(regex.value)))?;
    Some(IntentSection { intent: intent?, when, confidence, target_type, domain, at: item.at })
}

/// A number above 0 and at most 1.
fn read_confidence(fields: &Fields<'_>, problems: &mut Problems) -> Option<Decimal> {
    let confidence = fields.amount("confidence", false, problems)?;
    if confidence <= Decimal::ONE {
        return Some(confidence);
    }
    let name = fields.name("confidence");
    problems.add(place(fields, "confidence"), format!("`{name}` must be at most 1, found `{confidence}`"));
    None
}

fn read_planning(node: &Node, problems: &mut Problems) -> Option<PlanningSection> {
    let fields = Fields::closed(node, "advice.planning", keys::ADVICE_PLANNING, problems)?;
    let known = (keys::STRATEGIES, keys::STRATEGY_PREFIX);
    Some(PlanningSection {
        text: read_text(&fields, "strategies", problems),
        strategies: read_names(&fields, "strategies", "strategy", known, problems),
        template: read_template(&fields, problems),
    })
}

fn read_template(fields: &Fields<'_>, problems: &mut Problems) -> Option<Json> {
    let node = fields.get("template")?;
    if matches!(node.value, Value::Null) {
        fields::wrong_type(node, &fields.name("template"), "a value", problems);
        return None;
    }
    to_json(node, problems)
}

fn read_reasoning(node: &Node, problems: &mut Problems) -> Option<ReasoningSection> {
    let fields = Fields::closed(node, "advice.reasoning", keys::ADVICE_REASONING, problems)?;
    let known = (keys::REASONING_TYPES, keys::REASONING_PREFIX);
    Some(ReasoningSection {
        text: read_text(&fields, "types", problems),
        types: read_names(&fields, "types", "type of reasoning", known, problems),
    })
}

/// Reads the part that planning and reasoning share. `names` is the key of the list that differs.
fn read_text(fields: &Fields<'_>, names: &str, problems: &mut Problems) -> TextSection {
    let allow = fields.boolean("allow", problems).unwrap_or(true);
    let refuses = !allow || [names, "deny", "max_chars"].iter().any(|key| fields.get(key).is_some());
    let needed = format!("`allow: false`, `{names}`, `deny` or `max_chars`");
    needs_refusal(fields, "reason", refuses, &needed, problems);
    TextSection {
        allow,
        reason: short(fields, "reason", MAX_HINT_BYTES, problems),
        deny: phrases(fields, "deny", problems).unwrap_or_default(),
        max_chars: at_most(fields, "max_chars", MAX_CHARS, problems),
        hints: texts(fields, "hints", MAX_HINTS, MAX_HINT_BYTES, problems).unwrap_or_default(),
    }
}

/// A list of names, each one of the known ones or a name of the author's own behind the prefix.
fn read_names(
    fields: &Fields<'_>,
    key: &str,
    noun: &str,
    (known, prefix): (&[&str], &str),
    problems: &mut Problems,
) -> Option<Vec<String>> {
    let items = bounded(fields, key, MAX_NAMES, problems)?;
    if items.is_empty() {
        refuse_empty(fields, key, "nothing would be left; write `allow: false` or a name", problems);
    }
    let mut names = Vec::new();
    for (path, item) in items {
        let Some(written) = fields::text(item, &path, problems) else { continue };
        let own = written.value.strip_prefix(prefix);
        if known.contains(&written.value)
            || own.is_some_and(|own| !own.trim().is_empty() && own.len() <= MAX_NAME_BYTES)
        {
            names.push(written.value.to_owned());
        } else if !problems.is_full() {
            let advice = match proctor_core::nearest(written.value, known) {
                Some(_) => suggestion(written.value, known),
                None => format!("valid are {}, `{prefix}NAME`", listed(known)),
            };
            problems.add(item.at, format!("unknown {noun} {}; {advice}", quoted(written.value)));
        }
    }
    Some(names)
}

fn read_context(node: &Node, problems: &mut Problems) -> Option<ContextSection> {
    let fields = Fields::closed(node, "advice.context", keys::ADVICE_CONTEXT, problems)?;
    let allow = fields.boolean("allow", problems).unwrap_or(true);
    needs_refusal(&fields, "reason", !allow, "`allow: false`", problems);
    let files = patterns(&fields, "files", problems);
    if files.as_ref().is_some_and(Vec::is_empty) {
        refuse_empty(&fields, "files", "no file would be shown; write `allow: false` or a pattern", problems);
    }
    Some(ContextSection {
        allow,
        reason: short(&fields, "reason", MAX_HINT_BYTES, problems),
        files,
        never: patterns(&fields, "never", problems).unwrap_or_default(),
        max_results: at_most(&fields, "max_results", MAX_RESULTS, problems),
        max_bytes: at_most(&fields, "max_bytes", MAX_BYTES, problems),
    })
}

fn patterns(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> Option<Vec<String>> {
    let items = bounded(fields, key, MAX_PATTERNS, problems)?;
    let mut patterns = Vec::with_capacity(items.len());
    for (path, item) in items {
        let Some(written) = fields::nonblank(item, &path, problems) else { continue };
        match PathPattern::read(written.value) {
            Ok(_) => patterns.push(written.value.to_owned()),
            Err(why) => {
                problems.add(item.at, format!("`{path}`: {} is not a pattern: {why}", quoted(written.value)));
            }
        }
    }
    Some(patterns)
}

fn read_memory(node: &Node, problems: &mut Problems) -> Option<MemorySection> {
    let fields = Fields::closed(node, "advice.memory", keys::ADVICE_MEMORY, problems)?;
    let allow = fields.boolean("allow", problems).unwrap_or(true);
    needs_refusal(&fields, "reason", !allow, "`allow: false`", problems);
    let sessions = fields.word("sessions", keys::MEMORY_SESSIONS, problems);
    Some(MemorySection {
        allow,
        reason: short(&fields, "reason", MAX_HINT_BYTES, problems),
        sessions: sessions.map(|word| match word.value {
            "principal" => MemorySessions::Principal,
            _ => MemorySessions::Own,
        }),
        max_results: at_most(&fields, "max_results", MAX_RESULTS, problems),
    })
}

fn read_rate_limit(node: &Node, problems: &mut Problems) -> Option<RateLimitSection> {
    let fields = Fields::closed(node, "advice.rate_limit", keys::ADVICE_RATE_LIMIT, problems)?;
    Some(RateLimitSection {
        // Rounded down: a wait that is let through must not be longer than what was written.
        max_wait_ms: fields.duration("max_wait", problems).map(|micros| micros / 1000),
        skip_when_spent: fields.boolean("skip_when_spent", problems),
    })
}

/// Requires a refusal in the section: a key about refusals would otherwise be ignored in silence.
fn needs_refusal(fields: &Fields<'_>, key: &str, refuses: bool, needed: &str, problems: &mut Problems) {
    if let Some(at) = fields.key_at(key).filter(|_| !refuses) {
        let name = fields.name(key);
        problems.add(at, format!("`{name}` is never told, because nothing is refused; it needs {needed}"));
    }
}

fn refuse_empty(fields: &Fields<'_>, key: &str, why: &str, problems: &mut Problems) {
    // A list whose items were all wrong is not an empty list.
    if let Some(Node { value: Value::List(items), at, .. }) = fields.get(key)
        && items.is_empty()
    {
        problems.add(*at, format!("`{}` is empty, so that {why}", fields.name(key)));
    }
}

/// The items of a list that may have so many.
fn bounded<'node>(
    fields: &Fields<'node>,
    key: &str,
    most: usize,
    problems: &mut Problems,
) -> Option<Vec<(String, &'node Node)>> {
    let mut items = fields.list(key, problems)?;
    if let Some((_, first_too_many)) = items.get(most) {
        let message =
            format!("`{}` has {} entries; at most {most} are allowed", fields.name(key), items.len());
        problems.add(first_too_many.at, message);
        items.truncate(most);
    }
    Some(items)
}

/// A list of strings, each more than white space and at most so long.
fn texts(
    fields: &Fields<'_>,
    key: &str,
    most: usize,
    most_bytes: usize,
    problems: &mut Problems,
) -> Option<Vec<String>> {
    let items = bounded(fields, key, most, problems)?;
    Some(
        items
            .into_iter()
            .filter_map(|(path, item)| {
                let written = fields::nonblank(item, &path, problems)?;
                fitting(written.value, item.at, &path, most_bytes, problems)
            })
            .collect(),
    )
}

fn phrases(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> Option<Vec<String>> {
    let phrases = texts(fields, key, MAX_PHRASES, MAX_PHRASE_BYTES, problems)?;
    if let Err(why) = Phrases::compile(&phrases) {
        problems.add(place(fields, key), format!("`{}`: {why}", fields.name(key)));
    }
    Some(phrases)
}

/// A string that is more than white space and at most so long.
fn short(fields: &Fields<'_>, key: &str, most_bytes: usize, problems: &mut Problems) -> Option<String> {
    let written = fields.nonblank(key, problems)?;
    fitting(written.value, place(fields, key), &fields.name(key), most_bytes, problems)
}

fn fitting(
    written: &str,
    at: Position,
    path: &str,
    most_bytes: usize,
    problems: &mut Problems,
) -> Option<String> {
    if written.len() <= most_bytes {
        return Some(written.to_owned());
    }
    problems.add(at, format!("`{path}` has {} bytes; at most {most_bytes} are allowed", written.len()));
    None
}

/// A whole number from 1 to a bound.
fn at_most(fields: &Fields<'_>, key: &str, most: u32, problems: &mut Problems) -> Option<u32> {
    let number = fields.count(key, problems)?;
    if number <= most {
        return Some(number);
    }
    problems
        .add(place(fields, key), format!("`{}` must be at most {most}, found `{number}`", fields.name(key)));
    None
}

fn place(fields: &Fields<'_>, key: &str) -> Position {
    fields.get(key).map_or(fields.at, |node| node.at)
}
