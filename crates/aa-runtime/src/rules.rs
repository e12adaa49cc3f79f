//! A file of rules, for when there is no gateway: approvals first, then blocks, then everything is allowed.

use std::path::Path;
use std::time::Duration;

use proctor_wire::assembly::proto::common::v1::ActionType;
use proctor_wire::assembly::proto::policy::v1::{CheckActionRequest, action_context::Action};
use serde::Deserialize;

/// A file larger than this is none of rules.
const MAX_FILE: u64 = 1024 * 1024;
/// The longest that a person may take.
const MAX_APPROVAL_SECS: u64 = 7 * 24 * 3600;

/// What there is of rules.
#[derive(Debug)]
pub(crate) enum Rules {
    /// These.
    These(Vec<Rule>),
    /// None, and why.
    Absent(String),
}

/// What rules say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict<'a> {
    /// No rule is against it.
    Allow,
    /// The rule of this name is against it.
    Block(&'a str),
    /// The rule of this name wants a person to decide, within this time.
    Ask(&'a str, Duration),
    /// Nobody can decide, and why.
    Unknown(&'a str),
}

/// One rule.
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

/// The types that an action has: what it says it is, and what it looks like. They differ for an agent that starts another through a
/// tool, and for one that hides what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Types([ActionType; 2]);

impl Types {
    /// Those of a query.
    pub(crate) fn of(request: &CheckActionRequest) -> Types {
        let action = request.context.as_ref().and_then(|context| context.action.as_ref());
        let looks = action.map_or(ActionType::ActionUnspecified, |action| match action {
            Action::LlmCall(_) => ActionType::LlmCall,
            Action::ToolCall(_) => ActionType::ToolCall,
            Action::FileOp(_) => ActionType::FileOperation,
            Action::NetworkCall(_) => ActionType::NetworkCall,
            Action::ProcessExec(_) => ActionType::ProcessExec,
            Action::ToolResult(_) => ActionType::ToolResult,
        });
        Types([request.action_type(), looks])
    }

    fn are_known(self) -> bool {
        self.0.iter().any(|found| *found != ActionType::ActionUnspecified)
    }

    fn any_in(self, listed: &[ActionType]) -> bool {
        self.0.iter().any(|found| *found != ActionType::ActionUnspecified && listed.contains(found))
    }
}

impl Rules {
    /// Rules that are not needed.
    pub(crate) fn unread() -> Rules {
        Rules::Absent("the gateway alone decides".to_owned())
    }

    /// Reads the file. That there is none is no error; that it is wrong is one.
    pub(crate) fn load(path: Option<&Path>) -> Result<Rules, String> {
        let Some(path) = path else {
            return Ok(Rules::Absent("AA_POLICY_PATH is empty: there are no local rules".to_owned()));
        };
        let absent = |error: &std::io::Error| {
            Rules::Absent(format!("the rules file `{}` cannot be read ({})", path.display(), error.kind()))
        };
        match std::fs::metadata(path) {
            Err(error) => return Ok(absent(&error)),
            Ok(found) if found.len() > MAX_FILE => {
                return Err(format!("rules file `{}` is over {MAX_FILE} bytes", path.display()));
            }
            Ok(_) => {}
        }
        match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                Err(format!("rules file `{}` is not UTF-8", path.display()))
            }
            Err(error) => Ok(absent(&error)),
            Ok(text) => parse(&text)
                .map(Rules::These)
                .map_err(|problem| format!("rules file `{}`: {problem}", path.display())),
        }
    }

    /// What they say about an action of these types.
    pub(crate) fn judge(&self, types: Types) -> Verdict<'_> {
        let rules = match self {
            Rules::These(rules) => rules,
            Rules::Absent(why) => return Verdict::Unknown(why),
        };
        if !types.are_known() {
            return Verdict::Unknown("the action has no type");
        }
        let asking = rules.iter().find(|rule| types.any_in(&rule.asked));
        let blocking = || rules.iter().find(|rule| types.any_in(&rule.blocked));
        match asking {
            Some(rule) => Verdict::Ask(&rule.name, rule.approval),
            None => blocking().map_or(Verdict::Allow, |rule| Verdict::Block(&rule.name)),
        }
    }
}

fn parse(text: &str) -> Result<Vec<Rule>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    file.rules.into_iter().map(rule).collect()
}

fn rule(entry: Entry) -> Result<Rule, String> {
    let Entry { name, blocked_actions, requires_approval_actions, approval_timeout_secs } = entry;
    if name.trim().is_empty() {
        return Err("a rule has an empty name".to_owned());
    }
    let types = |listed: Vec<String>| {
        listed.into_iter().map(|word| action_type(&name, &word)).collect::<Result<Vec<_>, _>>()
    };
    let (blocked, asked) = (types(blocked_actions)?, types(requires_approval_actions)?);
    let seconds = approval_timeout_secs.unwrap_or(300);
    if seconds == 0 || seconds > MAX_APPROVAL_SECS {
        return Err(format!("rule `{name}`: approval_timeout_secs must be from 1 to {MAX_APPROVAL_SECS}"));
    }
    Ok(Rule { name, blocked, asked, approval: Duration::from_secs(seconds) })
}

/// A word that means nothing would block nothing, and nobody would notice.
fn action_type(rule: &str, word: &str) -> Result<ActionType, String> {
    const NAMES: &str =
        "LLM_CALL, TOOL_CALL, FILE_OPERATION, NETWORK_CALL, PROCESS_EXEC, AGENT_SPAWN or TOOL_RESULT";
    ActionType::from_str_name(&word.to_ascii_uppercase())
        .filter(|found| *found != ActionType::ActionUnspecified)
        .ok_or_else(|| format!("rule `{rule}`: action `{word}` is not known: use {NAMES}"))
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
        let rules = Rules::These(parse(TEXT).unwrap());
        let tool = || Some(Action::ToolCall(ToolCallContext::default()));
        let exec = || Some(Action::ProcessExec(ProcessExecContext::default()));
        let seven = Duration::from_secs(7);
        assert_eq!(rules.judge(query(ActionType::AgentSpawn, tool())), Verdict::Ask("ask", seven));
        assert_eq!(rules.judge(query(ActionType::ProcessExec, exec())), Verdict::Block("no-shell"));
        assert_eq!(rules.judge(query(ActionType::ToolCall, tool())), Verdict::Allow);
        // An action is what it looks like, whatever it says.
        assert_eq!(rules.judge(query(ActionType::ToolCall, exec())), Verdict::Block("no-shell"));
        assert_eq!(rules.judge(query(ActionType::ActionUnspecified, exec())), Verdict::Block("no-shell"));
        assert!(matches!(rules.judge(query(ActionType::ActionUnspecified, None)), Verdict::Unknown(_)));
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
            assert!(parse(text).unwrap_err().contains(problem), "{text}");
        }
        assert!(parse("").unwrap().is_empty());
        let folder = tempfile::tempdir().unwrap();
        let missing = Rules::load(Some(&folder.path().join("none.toml"))).unwrap();
        assert!(
            matches!(missing.judge(query(ActionType::ToolCall, None)), Verdict::Unknown(why) if why.contains("none.toml"))
        );
        assert!(matches!(Rules::load(None).unwrap(), Rules::Absent(_)));
        let wrong = folder.path().join("wrong.toml");
        std::fs::write(&wrong, "rules = 3").unwrap();
        assert!(Rules::load(Some(&wrong)).unwrap_err().contains("wrong.toml"));
    }
}
