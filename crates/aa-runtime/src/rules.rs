//! Local rules from a TOML file, used without a gateway: approval rules first, then block rules, then allow.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_wire::assembly::proto::common::v1::ActionType;
use proctor_wire::assembly::proto::policy::v1::{CheckActionRequest, action_context::Action};
use serde::Deserialize;

/// Size limit of the rules file, in bytes.
const MAX_FILE: u64 = 1024 * 1024;
/// Upper limit of `approval_timeout_secs`: one week.
const MAX_APPROVAL_SECS: u64 = 7 * 24 * 3600;

/// Error of loading the rules file.
#[derive(Debug, thiserror::Error)]
pub enum LoadRulesError {
    /// The file is over the size limit.
    #[error("rules file `{}` is over {MAX_FILE} bytes", .0.display())]
    TooLarge(PathBuf),
    /// The file is not UTF-8.
    #[error("rules file `{}` is not UTF-8", .0.display())]
    NotUtf8(PathBuf),
    /// The content is not a valid set of rules.
    #[error("rules file `{}`: {source}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The first mistake in it.
        source: ParseRulesError,
    },
}

/// Syntax error in a set of rules.
#[derive(Debug, thiserror::Error)]
pub enum ParseRulesError {
    /// The text is not TOML, or has other members than rules have.
    #[error("{}", .0.to_string().trim_end())]
    Toml(#[from] toml::de::Error),
    /// A rule's name is blank.
    #[error("a rule has an empty name")]
    EmptyName,
    /// An approval timeout is out of range.
    #[error("rule `{rule}`: approval_timeout_secs must be from 1 to {MAX_APPROVAL_SECS}")]
    ApprovalTimeout {
        /// The rule's name.
        rule: String,
    },
    /// An action type is unknown.
    #[error(
        "rule `{rule}`: action `{action}` is not known: use LLM_CALL, TOOL_CALL, FILE_OPERATION, NETWORK_CALL, PROCESS_EXEC, AGENT_SPAWN \
         or TOOL_RESULT"
    )]
    UnknownAction {
        /// The rule's name.
        rule: String,
        /// The unknown word.
        action: String,
    },
}

/// The local rules, or the reason why there are none.
#[derive(Debug)]
pub(crate) enum Rules {
    /// The rules of the file.
    Loaded(Vec<Rule>),
    /// No rules, with the reason for log lines and denials.
    Absent(String),
    /// Rules are disabled in a runtime without a gateway: every action is allowed, as in the released runtime.
    Disabled,
}

/// Outcome of the local rules for one action.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RuleDecision<'a> {
    /// No rule matches.
    Allow,
    /// The named rule blocks the action.
    Block(&'a str),
    /// The named rule requires an approval within this time.
    Ask(&'a str, Duration),
    /// No decision is possible, with the reason.
    Unknown(&'a str),
}

/// A rule of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    name: String,
    blocked: Vec<ActionType>,
    asked: Vec<ActionType>,
    approval: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rules: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    #[serde(default)]
    blocked_actions: Vec<String>,
    #[serde(default)]
    requires_approval_actions: Vec<String>,
    approval_timeout_secs: Option<u64>,
}

/// The declared type of an action and the type of its context. They differ when an agent starts another one through a tool, and when
/// an agent misdeclares an action; a rule applies if it lists either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Types([ActionType; 2]);

impl Types {
    /// Extracts both types from a query.
    pub(crate) fn of(request: &CheckActionRequest) -> Types {
        let action = request.context.as_ref().and_then(|context| context.action.as_ref());
        let context_type = action.map_or(ActionType::ActionUnspecified, |action| match action {
            Action::LlmCall(_) => ActionType::LlmCall,
            Action::ToolCall(_) => ActionType::ToolCall,
            Action::FileOp(_) => ActionType::FileOperation,
            Action::NetworkCall(_) => ActionType::NetworkCall,
            Action::ProcessExec(_) => ActionType::ProcessExec,
            Action::ToolResult(_) => ActionType::ToolResult,
        });
        Types([request.action_type(), context_type])
    }

    fn are_known(self) -> bool {
        self.0.iter().any(|found| *found != ActionType::ActionUnspecified)
    }

    fn any_in(self, listed: &[ActionType]) -> bool {
        self.0.iter().any(|found| *found != ActionType::ActionUnspecified && listed.contains(found))
    }
}

impl Rules {
    /// Placeholder where the gateway alone decides and the file is not read.
    pub(crate) fn unread() -> Rules {
        Rules::Absent("the gateway alone decides".to_owned())
    }

    /// Loads the rules of a runtime without a gateway: an empty path disables them.
    pub(crate) fn load_alone(path: Option<&Path>) -> Result<Rules, LoadRulesError> {
        if path.is_none() { Ok(Rules::Disabled) } else { Rules::load(path) }
    }

    /// Loads the rules file. A missing file gives [`Rules::Absent`]; an invalid one is an error.
    pub(crate) fn load(path: Option<&Path>) -> Result<Rules, LoadRulesError> {
        let Some(path) = path else {
            return Ok(Rules::Absent("AA_POLICY_PATH is empty: there are no local rules".to_owned()));
        };
        let absent = |error: &std::io::Error| {
            Rules::Absent(format!("the rules file `{}` cannot be read ({})", path.display(), error.kind()))
        };
        match std::fs::metadata(path) {
            Err(error) => return Ok(absent(&error)),
            Ok(found) if found.len() > MAX_FILE => {
                return Err(LoadRulesError::TooLarge(path.to_owned()));
            }
            Ok(_) => {}
        }
        match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                Err(LoadRulesError::NotUtf8(path.to_owned()))
            }
            Err(error) => Ok(absent(&error)),
            Ok(text) => parse(&text)
                .map(Rules::Loaded)
                .map_err(|source| LoadRulesError::Invalid { path: path.to_owned(), source }),
        }
    }

    /// Evaluates the rules for an action of these types.
    pub(crate) fn judge(&self, types: Types) -> RuleDecision<'_> {
        let rules = match self {
            Rules::Loaded(rules) => rules,
            Rules::Absent(why) => return RuleDecision::Unknown(why),
            Rules::Disabled => return RuleDecision::Allow,
        };
        if !types.are_known() {
            return RuleDecision::Unknown("the action has no type");
        }
        let asking = rules.iter().find(|rule| types.any_in(&rule.asked));
        let blocking = || rules.iter().find(|rule| types.any_in(&rule.blocked));
        match asking {
            Some(rule) => RuleDecision::Ask(&rule.name, rule.approval),
            None => blocking().map_or(RuleDecision::Allow, |rule| RuleDecision::Block(&rule.name)),
        }
    }
}

fn parse(text: &str) -> Result<Vec<Rule>, ParseRulesError> {
    let file: File = toml::from_str(text)?;
    file.rules.into_iter().map(rule).collect()
}

fn rule(entry: Entry) -> Result<Rule, ParseRulesError> {
    let Entry { name, blocked_actions, requires_approval_actions, approval_timeout_secs } = entry;
    if name.trim().is_empty() {
        return Err(ParseRulesError::EmptyName);
    }
    let types = |listed: Vec<String>| {
        listed.into_iter().map(|word| action_type(&name, &word)).collect::<Result<Vec<_>, _>>()
    };
    let (blocked, asked) = (types(blocked_actions)?, types(requires_approval_actions)?);
    let seconds = approval_timeout_secs.unwrap_or(300);
    if seconds == 0 || seconds > MAX_APPROVAL_SECS {
        return Err(ParseRulesError::ApprovalTimeout { rule: name });
    }
    Ok(Rule { name, blocked, asked, approval: Duration::from_secs(seconds) })
}

/// Parses an action type. Unknown words are errors, because a misspelt block rule would silently block nothing.
fn action_type(rule: &str, word: &str) -> Result<ActionType, ParseRulesError> {
    ActionType::from_str_name(&word.to_ascii_uppercase())
        .filter(|found| *found != ActionType::ActionUnspecified)
        .ok_or_else(|| ParseRulesError::UnknownAction { rule: rule.to_owned(), action: word.to_owned() })
}

#[cfg(test)]
mod tests {
    use proctor_wire::assembly::proto::policy::v1::{ActionContext, ProcessExecContext, ToolCallContext};

    use super::*;

    const TEXT: &str = r#"
        [[rules]]
        name = "no-shell"
        blocked_actions = ["PROCESS_EXEC", "AGENT_SPAWN"]

        [[rules]]
        name = "ask"
        requires_approval_actions = ["AGENT_SPAWN"]
        approval_timeout_secs = 7
    "#;

    fn query(says: ActionType, looks: Option<Action>) -> Types {
        let context = Some(ActionContext { action: looks });
        Types::of(&CheckActionRequest { action_type: says.into(), context, ..Default::default() })
    }

    #[test]
    fn approvals_come_first_then_blocks_then_allow() {
        let rules = Rules::Loaded(parse(TEXT).unwrap());
        let tool = || Some(Action::ToolCall(ToolCallContext::default()));
        let exec = || Some(Action::ProcessExec(ProcessExecContext::default()));
        let seven = Duration::from_secs(7);
        assert_eq!(rules.judge(query(ActionType::AgentSpawn, tool())), RuleDecision::Ask("ask", seven));
        assert_eq!(rules.judge(query(ActionType::ProcessExec, exec())), RuleDecision::Block("no-shell"));
        assert_eq!(rules.judge(query(ActionType::ToolCall, tool())), RuleDecision::Allow);
        // An action is what it looks like, whatever it says.
        assert_eq!(rules.judge(query(ActionType::ToolCall, exec())), RuleDecision::Block("no-shell"));
        assert_eq!(
            rules.judge(query(ActionType::ActionUnspecified, exec())),
            RuleDecision::Block("no-shell")
        );
        assert!(matches!(rules.judge(query(ActionType::ActionUnspecified, None)), RuleDecision::Unknown(_)));
    }

    #[test]
    fn a_file_that_is_wrong_is_refused_and_one_that_is_not_there_decides_nothing() {
        for (text, problem) in [
            ("[[rules]]\nname = \"a\"\nblocked_actions = [\"PROCES_EXEC\"]", "PROCES_EXEC"),
            ("[[rules]]\nname = \"a\"\nblocked = []", "blocked"),
            ("[[rules]]\nblocked_actions = []", "name"),
            ("[[rules]]\nname = \" \"", "empty name"),
            ("[[rules]]\nname = \"a\"\napproval_timeout_secs = 0", "approval_timeout_secs"),
            ("rules = 3", "rules"),
        ] {
            assert!(parse(text).unwrap_err().to_string().contains(problem), "{text}");
        }
        assert!(parse("").unwrap().is_empty());
        let folder = tempfile::tempdir().unwrap();
        let missing = Rules::load(Some(&folder.path().join("none.toml"))).unwrap();
        assert!(
            matches!(missing.judge(query(ActionType::ToolCall, None)), RuleDecision::Unknown(why) if why.contains("none.toml"))
        );
        assert!(matches!(Rules::load(None).unwrap(), Rules::Absent(_)));
        let wrong = folder.path().join("wrong.toml");
        std::fs::write(&wrong, "rules = 3").unwrap();
        assert!(Rules::load(Some(&wrong)).unwrap_err().to_string().contains("wrong.toml"));
    }
}
