//! Reading a file of policies and refusing what could never apply.

use cedar_policy::ffi::DetailedError;
use cedar_policy::{
    ActionConstraint, Effect as CedarEffect, EntityTypeName, Policy, PolicySet, PrincipalConstraint,
    ResourceConstraint,
};
use serde_json::Value;

use proctor_core::action::ActionKind;
use proctor_core::nearest;

use super::super::bounds::{self, Syntax};
use super::super::record::{ACTION, AGENT, SESSION, TIME};
use super::super::{ModuleProblem, is_rule_id, truncate};
use super::context::Reads;

pub(super) const SYNTAX: Syntax = Syntax { comment: "//", raw_quote: None, statement_end: ';' };

/// A policy that passed, with its position in the text and the members that it reads.
pub(super) struct Checked {
    pub(super) policy: Policy,
    pub(super) offset: usize,
    pub(super) reads: Reads,
}

/// Parses a file; the policies come in the order of the text.
pub(super) fn parse(file: &str, text: &str) -> Result<Vec<Checked>, Vec<ModuleProblem>> {
    bounds::check(file, text, &SYNTAX).map_err(|problem| vec![problem])?;
    let policies: PolicySet = text.parse().map_err(|errors: cedar_policy::ParseErrors| {
        errors.iter().map(|error| syntax_problem(file, text, &DetailedError::from(error))).collect::<Vec<_>>()
    })?;
    let mut problems = Vec::new();
    for template in policies.templates() {
        let offset = text.find(template.to_cedar().trim()).unwrap_or(0);
        problems.push(ModuleProblem::at(
            file,
            text,
            offset,
            "templates are not supported: write the principal and the resource instead of `?principal` and `?resource`".to_owned(),
        ));
    }
    let mut ordered: Vec<&Policy> = policies.policies().collect();
    ordered.sort_by_key(|policy| {
        let id: &str = policy.id().as_ref();
        (id.len(), id.to_owned())
    });
    let mut checked = Vec::new();
    let mut searched = 0;
    for policy in ordered {
        let source = policy.to_cedar().unwrap_or_default();
        let offset = text
            .get(searched..)
            .and_then(|rest| rest.find(source.trim()))
            .map_or(searched, |found| searched + found);
        searched = offset + source.trim().len();
        let mut check = Check { file, text, offset, problems: &mut problems, reads: Reads::default() };
        check.policy(policy);
        let reads = check.reads;
        checked.push(Checked { policy: policy.clone(), offset, reads });
    }
    if problems.is_empty() {
        Ok(checked)
    } else {
        problems.sort_by_key(|problem| (problem.line, problem.column));
        Err(problems)
    }
}

pub(super) fn syntax_problem(file: &str, text: &str, error: &DetailedError) -> ModuleProblem {
    let offset = error.source_locations.first().map_or(0, |label| label.loc.start);
    let mut message = error.message.clone();
    if let Some(help) = &error.help {
        message = format!("{message}; {help}");
    }
    ModuleProblem::at(file, text, offset, truncate(&message))
}

struct Check<'c> {
    file: &'c str,
    text: &'c str,
    offset: usize,
    problems: &'c mut Vec<ModuleProblem>,
    reads: Reads,
}

impl Check<'_> {
    fn policy(&mut self, policy: &Policy) {
        self.annotations(policy);
        self.scope(policy);
        match policy.to_json() {
            Ok(json) => self.walk(&json),
            Err(_) => self.reads.everything = true,
        }
    }

    fn annotations(&mut self, policy: &Policy) {
        for (name, value) in policy.annotations() {
            match name {
                "id" if !is_rule_id(value) => {
                    self.problem(
                        value,
                        format!("the id `{}` may have letters, digits and `:._-`", truncate(value)),
                    );
                }
                "effect" if policy.effect() == CedarEffect::Permit => {
                    self.problem(name, "`@effect` is for forbid: a permit allows".to_owned());
                }
                "effect" if !matches!(value, "ask" | "deny") => {
                    self.problem(
                        name,
                        format!("`@effect` is \"ask\" or \"deny\", not \"{}\"", truncate(value)),
                    );
                }
                "id" | "effect" | "reason" => {}
                _ => {
                    let hint = nearest(name, &["id", "effect", "reason"]).map_or_else(
                        || "known are `@id`, `@effect` and `@reason`".to_owned(),
                        |close| format!("did you mean `@{close}`?"),
                    );
                    self.problem(name, format!("unknown annotation `@{}`; {hint}", truncate(name)));
                }
            }
        }
    }

    /// Types and actions that no request has would make the policy silent forever.
    fn scope(&mut self, policy: &Policy) {
        match policy.principal_constraint() {
            PrincipalConstraint::Any => {}
            PrincipalConstraint::Eq(entity) | PrincipalConstraint::In(entity) => {
                self.entity_type(entity.type_name(), &["Agent"], "principal");
            }
            PrincipalConstraint::Is(name) => self.entity_type(&name, &["Agent"], "principal"),
            PrincipalConstraint::IsIn(name, entity) => {
                self.entity_type(&name, &["Agent"], "principal");
                self.entity_type(entity.type_name(), &["Agent"], "principal");
            }
        }
        let resources = ["Tool", "Path", "Host", "Model"];
        match policy.resource_constraint() {
            ResourceConstraint::Any => {}
            ResourceConstraint::Eq(entity) | ResourceConstraint::In(entity) => {
                self.entity_type(entity.type_name(), &resources, "resource");
            }
            ResourceConstraint::Is(name) => self.entity_type(&name, &resources, "resource"),
            ResourceConstraint::IsIn(name, entity) => {
                self.entity_type(&name, &resources, "resource");
                self.entity_type(entity.type_name(), &resources, "resource");
            }
        }
        let actions = match policy.action_constraint() {
            ActionConstraint::Any => Vec::new(),
            ActionConstraint::Eq(action) => vec![action],
            ActionConstraint::In(actions) => actions,
        };
        let kinds = ActionKind::ALL.map(ActionKind::word);
        for action in actions {
            let word = action.id().unescaped();
            if action.type_name().to_string() != "Action" || !kinds.contains(&word) {
                let hint = match nearest(word, &kinds) {
                    Some(close) => format!("did you mean `Action::\"{close}\"`?"),
                    None => format!("actions are {}", kinds.join(", ")),
                };
                self.problem(word, format!("there is no action `{}`; {hint}", truncate(&action.to_string())));
            }
        }
    }

    fn entity_type(&mut self, name: &EntityTypeName, known: &[&str], what: &str) {
        let name = name.to_string();
        if known.contains(&name.as_str()) {
            return;
        }
        let hint = match nearest(&name, known) {
            Some(close) => format!("did you mean `{close}`?"),
            None => format!("it is {}", known.join(", ")),
        };
        self.problem(&name, format!("the {what} is never a `{}`; {hint}", truncate(&name)));
    }

    /// Finds what is read of the context. Recursion is bounded by the nesting that was checked before parsing.
    fn walk(&mut self, value: &Value) {
        if let Some(path) = context_path(value) {
            self.read(&path);
            return;
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.walk(item)),
            Value::Object(members) => {
                if let Some(test) = members.get("has").filter(|_| members.len() == 1)
                    && let (Some(mut path), Some(name)) =
                        (test.get("left").and_then(context_path), test.get("attr").and_then(Value::as_str))
                {
                    path.push(name);
                    self.read(&path);
                    return;
                }
                members.values().for_each(|member| self.walk(member));
            }
            _ => {}
        }
    }

    fn read(&mut self, path: &[&str]) {
        let mut path = path.iter();
        let Some(first) = path.next() else {
            self.reads.everything = true;
            return;
        };
        let known: &[&'static str] = match *first {
            "action" => &ACTION,
            "agent" => &AGENT,
            "session" => &SESSION,
            "time" => &TIME,
            other => {
                let hint = nearest(other, &["action", "agent", "session", "time"]).map_or_else(
                    || "it has action, agent, session, time".to_owned(),
                    |close| format!("did you mean `context.{close}`?"),
                );
                self.problem(other, format!("`context` has no member `{}`; {hint}", truncate(other)));
                return;
            }
        };
        match *first {
            "agent" => self.reads.agent = true,
            "session" => self.reads.session = true,
            "time" => self.reads.time = true,
            _ => {}
        }
        match path.next() {
            None => self.reads.everything = true,
            Some(member) => match known.iter().find(|name| *name == member) {
                Some(name) if *first == "action" => {
                    self.reads.action.insert(name);
                }
                Some(_) => {}
                None => {
                    let hint = nearest(member, known).map_or_else(
                        || format!("it has {}", known.join(", ")),
                        |close| format!("did you mean `context.{first}.{close}`?"),
                    );
                    self.problem(
                        member,
                        format!("`context.{first}` has no member `{}`; {hint}", truncate(member)),
                    );
                }
            },
        }
    }

    /// Reports a problem where the word stands in the policy.
    fn problem(&mut self, word: &str, message: String) {
        let offset = self
            .text
            .get(self.offset..)
            .and_then(|rest| rest.find(word))
            .map_or(self.offset, |found| self.offset + found);
        self.problems.push(ModuleProblem::at(self.file, self.text, offset, message));
    }
}

/// The members that are followed from `context`, if the expression is only that. Recursion as in `walk`.
fn context_path(value: &Value) -> Option<Vec<&str>> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    if members.get("Var").and_then(Value::as_str) == Some("context") {
        return Some(Vec::new());
    }
    let select = members.get(".")?;
    let mut path = context_path(select.get("left")?)?;
    path.push(select.get("attr")?.as_str()?);
    Some(path)
}
