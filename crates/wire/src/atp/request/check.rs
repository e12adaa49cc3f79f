//! The rules of requests.

use proctor_core::json::Json;

use super::Request;
use crate::atp::artifact::check_path;
use crate::atp::check::{Basis, Checker, Fields, is_longer, shortened, wrong_type};
use crate::atp::findings::{ProblemKind, WarningKind};
use crate::atp::format::is_uri;
use crate::atp::limits::{
    MAX_ARTIFACTS, MAX_DESCRIPTION, MAX_DESCRIPTION_STRICT, MAX_ENVIRONMENT, MAX_METADATA, MAX_PATH,
    MAX_STEPS, MAX_TIMEOUT_SECONDS, MAX_TOKENS,
};
use crate::atp::object::{member_mut, remove_nulls};
use crate::atp::path::Path;
use crate::atp::read::Message;

const TOP: [&str; 4] = ["version", "constraints", "context", "metadata"];
const TASK: [&str; 2] = ["input_data", "expected_artifacts"];
const EXPECTED: [&str; 3] = ["type", "format", "name"];
const CONSTRAINTS: [&str; 5] = ["max_steps", "max_tokens", "timeout_seconds", "allowed_tools", "budget_usd"];
const CONTEXT: [&str; 3] = ["tools_endpoint", "workspace_path", "environment"];
const EXPECTED_TYPES: &[&str] = &["file", "structured"];

impl Message for Request {
    fn check(json: &Json, checker: &mut Checker) {
        let Some(mut fields) = checker.object(Basis::Schema, json, &Path::Root) else { return };
        fields.version();
        fields.task_id();
        let task = fields.required("task");
        let constraints = fields.optional("constraints");
        let context = fields.optional("context");
        if let Some(metadata) = fields.object("metadata") {
            fields.at_most("metadata", metadata.len(), MAX_METADATA);
        }
        check_part(checker, task, "task", check_task);
        check_part(checker, constraints, "constraints", check_constraints);
        check_part(checker, context, "context", check_context);
    }

    fn normalise(json: &mut Json) {
        remove_nulls(json, &TOP);
        for (name, known) in [("constraints", &CONSTRAINTS[..]), ("context", &CONTEXT), ("task", &TASK)] {
            if let Some(part) = member_mut(json, name) {
                remove_nulls(part, known);
            }
        }
        let task = member_mut(json, "task");
        if let Some(Json::Array(items)) = task.and_then(|task| member_mut(task, "expected_artifacts")) {
            for item in items {
                remove_nulls(item, &EXPECTED);
            }
        }
    }

    fn from_valid(json: Json) -> Request {
        Request { json }
    }
}

fn check_part(checker: &mut Checker, value: Option<&Json>, name: &str, check: fn(Fields<'_, '_, '_>)) {
    let path = Path::Root.member(name);
    if let Some(value) = value
        && let Some(fields) = checker.object(Basis::Schema, value, &path)
    {
        check(fields);
    }
}

fn check_task(mut task: Fields<'_, '_, '_>) {
    if let Some(value) = task.required("description")
        && let Some(description) = task.as_text("description", value)
    {
        let path = task.path.member("description");
        let most = MAX_DESCRIPTION_STRICT;
        if description.is_empty() {
            task.checker.problem(Basis::Schema, &path, ProblemKind::Empty);
        } else if is_longer(description, MAX_DESCRIPTION) {
            task.checker.problem(Basis::Schema, &path, ProblemKind::TooLong { most: MAX_DESCRIPTION });
        } else if is_longer(description, most) {
            task.checker.tolerate(&path, WarningKind::LongDescription, ProblemKind::TooLong { most });
        }
    }
    task.object("input_data");
    let Some(items) = task.array("expected_artifacts") else { return };
    task.at_most("expected_artifacts", items.len(), MAX_ARTIFACTS);
    let list = task.path.member("expected_artifacts");
    for (index, item) in items.iter().enumerate() {
        check_expected(task.checker, item, &list.index(index));
    }
}

fn check_expected(checker: &mut Checker, item: &Json, path: &Path<'_>) {
    if let Json::String(text) = item {
        checker.tolerate(path, WarningKind::ExpectedArtifactAsText, wrong_type("an object", item));
        if let Err(problem) = check_path(text) {
            checker.problem(Basis::Rule, path, problem.into());
        }
        return;
    }
    let Some(mut fields) = checker.object(Basis::Schema, item, path) else { return };
    if let Some(kind) = fields.text("type", usize::MAX)
        && !EXPECTED_TYPES.contains(&kind)
    {
        let problem = ProblemKind::NotOneOf { found: shortened(kind), allowed: EXPECTED_TYPES };
        fields.problem_at("type", Basis::Schema, problem);
    }
    fields.text("format", MAX_PATH);
    fields.text("name", MAX_PATH);
}

fn check_constraints(mut constraints: Fields<'_, '_, '_>) {
    constraints.integer("max_steps", 1, MAX_STEPS);
    constraints.integer("max_tokens", 1, MAX_TOKENS);
    constraints.integer("timeout_seconds", 1, MAX_TIMEOUT_SECONDS);
    constraints.amount("budget_usd", Basis::Schema);
    let Some(tools) = constraints.array("allowed_tools") else { return };
    let list = constraints.path.member("allowed_tools");
    for (index, tool) in tools.iter().enumerate() {
        if tool.as_str().is_none() {
            constraints.checker.problem(Basis::Schema, &list.index(index), wrong_type("a string", tool));
        }
    }
}

fn check_context(mut context: Fields<'_, '_, '_>) {
    if let Some(endpoint) = context.text("tools_endpoint", MAX_PATH) {
        if !is_uri(endpoint) {
            context.problem_at("tools_endpoint", Basis::Schema, ProblemKind::NotUri);
        } else if !is_http(endpoint) {
            context.problem_at("tools_endpoint", Basis::Rule, ProblemKind::NotHttp);
        }
    }
    if context.text("workspace_path", MAX_PATH).is_some_and(|path| path.contains('\0')) {
        context.problem_at("workspace_path", Basis::Rule, ProblemKind::Nul);
    }
    let Some(environment) = context.object("environment") else { return };
    context.at_most("environment", environment.len(), MAX_ENVIRONMENT);
    let parent = context.path.member("environment");
    for (name, value) in environment {
        let path = parent.member(name);
        if !is_environment_name(name) {
            context.checker.problem(Basis::Rule, &path, ProblemKind::EnvironmentName);
        }
        match value.as_str() {
            None => context.checker.problem(Basis::Schema, &path, wrong_type("a string", value)),
            Some(text) if text.contains('\0') => {
                context.checker.problem(Basis::Rule, &path, ProblemKind::Nul);
            }
            Some(_) => {}
        }
    }
}

fn is_http(uri: &str) -> bool {
    uri.split_once("://").is_some_and(|(scheme, _)| {
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    })
}

fn is_environment_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
