//! Fields of clauses.

use std::fmt;

/// A field of a clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// `tool`: either name of the tool.
    Tool,
    /// `path`: any path that the action concerns.
    Path,
    /// `url`: the URL that the action concerns, or one made of any host found in it.
    Url,
    /// `method`: the method of a request.
    Method,
    /// `command`: the command line or any command found in it.
    Command,
    /// `args.a.b`: an argument; the names on the way to it.
    Args(Vec<String>),
    /// `tool_result`, `tool_result.a.b`: the result or a part of it.
    ToolResult(Vec<String>),
    /// A property of the agent rather than of the action.
    Context(&'static str, ContextType),
}

/// The type of a context field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextType {
    /// A number; of `agent.age`, in seconds.
    Number,
    /// `L0` to `L3`.
    Level,
    /// `Low`, `Medium`, `High`, `Critical`.
    Tier,
    /// A string.
    Text,
    /// `true` or `false`.
    Truth,
}

/// The governance levels, from the lowest.
pub(super) const LEVELS: &[&str] = &["L0", "L1", "L2", "L3"];
/// The risk tiers, from the lowest.
pub(super) const TIERS: &[&str] = &["Low", "Medium", "High", "Critical"];

const CONTEXT: &[(&str, ContextType)] = &[
    ("governance_level", ContextType::Level),
    ("agent.depth", ContextType::Number),
    ("agent.risk_tier", ContextType::Tier),
    ("agent.age", ContextType::Number),
    ("agent.parent_agent_id", ContextType::Text),
    ("agent.team_id", ContextType::Text),
    ("agent.children_count", ContextType::Number),
    ("agent.is_root", ContextType::Truth),
    ("agent.is_leaf", ContextType::Truth),
    ("team.active_agents", ContextType::Number),
    ("team.parallel_agents", ContextType::Number),
    ("team.budget_remaining", ContextType::Number),
    ("child.tool", ContextType::Text),
    ("child.risk_tier", ContextType::Tier),
    ("parent.risk_tier", ContextType::Tier),
    ("source.team_id", ContextType::Text),
    ("target.team_id", ContextType::Text),
    ("target.channel_id", ContextType::Text),
];

const ACTION: &[&str] = &[
    "tool",
    "path",
    "url",
    "method",
    "command",
    "tool_result",
    "estimated_cost_usd",
    "args.estimated_cost_usd",
];

/// Most names of a path into arguments.
const MAX_NAMES: usize = 32;

/// A name that is no field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FieldError {
    #[error("`args` needs the name of an argument, as in `args.amount`")]
    NoArgument,
    #[error("a name is missing between, before or after the dots")]
    EmptyName,
    #[error("a variable may have at most {MAX_NAMES} names")]
    TooManyNames,
    #[error("unknown variable `{name}`; did you mean `{near}`?")]
    Misspelt { name: String, near: String },
    #[error(
        "unknown variable `{0}`; valid are `tool`, `path`, `url`, `method`, `command`, `args.NAME`, `tool_result` \
         and the fields of `agent`, `team`, `child`, `parent`, `source`, `target`"
    )]
    Unknown(String),
}

impl Field {
    /// The field of that name.
    pub(super) fn named(name: &str) -> Result<Field, FieldError> {
        match name {
            "tool" => return Ok(Field::Tool),
            "path" => return Ok(Field::Path),
            "url" => return Ok(Field::Url),
            "method" => return Ok(Field::Method),
            "command" => return Ok(Field::Command),
            "tool_result" => return Ok(Field::ToolResult(Vec::new())),
            // The first documents of this family wrote the argument bare.
            "estimated_cost_usd" => return Ok(Field::Args(vec!["estimated_cost_usd".to_owned()])),
            "args" => return Err(FieldError::NoArgument),
            _ => {}
        }
        if let Some(rest) = name.strip_prefix("args.") {
            return names(rest).map(Field::Args);
        }
        if let Some(rest) = name.strip_prefix("tool_result.") {
            return names(rest).map(Field::ToolResult);
        }
        if let Some((name, kind)) = CONTEXT.iter().find(|(known, _)| *known == name) {
            return Ok(Field::Context(name, *kind));
        }
        let known: Vec<&str> = ACTION.iter().copied().chain(CONTEXT.iter().map(|(name, _)| *name)).collect();
        let shown: String = name.chars().take(64).collect();
        Err(match proctor_core::nearest(name, &known) {
            Some(near) => FieldError::Misspelt { name: shown, near: near.to_owned() },
            None => FieldError::Unknown(shown),
        })
    }
}

fn names(dotted: &str) -> Result<Vec<String>, FieldError> {
    let names: Vec<String> = dotted.split('.').map(str::to_owned).collect();
    if names.iter().any(String::is_empty) {
        return Err(FieldError::EmptyName);
    }
    if names.len() > MAX_NAMES {
        return Err(FieldError::TooManyNames);
    }
    Ok(names)
}

impl fmt::Display for Field {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (root, names) = match self {
            Field::Tool => return out.write_str("tool"),
            Field::Path => return out.write_str("path"),
            Field::Url => return out.write_str("url"),
            Field::Method => return out.write_str("method"),
            Field::Command => return out.write_str("command"),
            Field::Context(name, _) => return out.write_str(name),
            Field::Args(names) => ("args", names),
            Field::ToolResult(names) => ("tool_result", names),
        };
        out.write_str(root)?;
        names.iter().try_for_each(|name| write!(out, ".{name}"))
    }
}
