//! `artifact_exists`, `contains`, `schema`, `sections`.

use proctor_assert::{Assertion, Status, Tools, Trace};
use proctor_core::json::Json;
use proctor_core::quoted;

use super::evidence::Evidence;
use super::files::{EntryKind, WorkspacePath};
use super::pattern::TextPattern;
use super::result::{CheckError, CheckResult};

pub(super) fn exists(path: &str, evidence: &Evidence<'_>) -> Result<Vec<CheckResult>, CheckError> {
    let check = |passed, message| vec![CheckResult::new("artifact_exists", passed, message)];
    let named = evidence.artifacts(Some(path));
    if named.iter().any(|artifact| artifact.is_delivered()) {
        return Ok(check(true, format!("the response has {}", quoted(path))));
    }
    if let Ok(inside) = WorkspacePath::parse(path)
        && evidence.files.entry(&inside)? == Some(EntryKind::File)
    {
        return Ok(check(true, format!("the workspace has {}", quoted(path))));
    }
    if !named.is_empty() {
        let message = "the response names {}, but has no content for it, and the workspace has no such file";
        return Ok(check(false, message.replace("{}", &quoted(path))));
    }
    let found = identities(evidence);
    Ok(check(
        false,
        format!("neither the response nor the workspace has {}; artifacts: {found}", quoted(path)),
    ))
}

pub(super) fn contains(
    pattern: &TextPattern,
    path: Option<&str>,
    evidence: &Evidence<'_>,
) -> Result<Vec<CheckResult>, CheckError> {
    let check = |passed, message| vec![CheckResult::new("contains", passed, message)];
    let artifacts = evidence.artifacts(path);
    let mut first: Option<String> = None;
    for artifact in &artifacts {
        let Some(text) = artifact.text(evidence.files)? else { continue };
        first.get_or_insert_with(|| evidence.excerpt(&text));
        if pattern.is_match(&text)? {
            let name = artifact.identity().unwrap_or("an artifact");
            return Ok(check(true, format!("{} matches {}", quoted(name), quoted(&pattern.text))));
        }
    }
    if first.is_none()
        && let Some(text) = evidence.text(path)?
    {
        first = Some(evidence.excerpt(&text));
        if pattern.is_match(&text)? {
            let name = path.unwrap_or_default();
            return Ok(check(true, format!("{} matches {}", quoted(name), quoted(&pattern.text))));
        }
    }
    let place = path.map_or_else(|| "any artifact".to_owned(), quoted);
    Ok(check(
        false,
        match first {
            None => format!("there is no text of {place}; artifacts: {}", identities(evidence)),
            Some(first) => format!("{} was not found in {place}, which {first}", quoted(&pattern.text)),
        },
    ))
}

/// Validates the data of the first artifact that has some. Other artifacts are not tried.
pub(super) fn schema(
    schema: &Json,
    path: Option<&str>,
    evidence: &Evidence<'_>,
) -> Result<Vec<CheckResult>, CheckError> {
    let artifacts = evidence.artifacts(path);
    let Some((artifact, data)) = artifacts.iter().find_map(|artifact| Some((artifact, artifact.data()?)))
    else {
        if let Some(path) = path
            && let Some(text) = evidence.text(Some(path))?
        {
            return file_schema(schema, path, &text);
        }
        let place = path.map_or_else(|| "any artifact".to_owned(), quoted);
        let message = format!("there is no structured data in {place}; artifacts: {}", identities(evidence));
        return Ok(vec![CheckResult::new("schema", false, message)]);
    };
    let name = artifact.identity().unwrap_or("the artifact");
    let message = violation(schema, data)?;
    Ok(vec![match message {
        None => CheckResult::new("schema", true, format!("{} satisfies the schema", quoted(name))),
        Some(message) => CheckResult::new("schema", false, format!("{}: {message}", quoted(name))),
    }])
}

/// Validates the JSON text of a file.
fn file_schema(schema: &Json, path: &str, text: &str) -> Result<Vec<CheckResult>, CheckError> {
    let problem = match Json::parse(text.trim().as_bytes()) {
        Ok(data) => violation(schema, &data)?,
        Err(error) => Some(format!("no JSON: {error}")),
    };
    let message = match &problem {
        None => format!("{} satisfies the schema", quoted(path)),
        Some(problem) => format!("{}: {problem}", quoted(path)),
    };
    Ok(vec![CheckResult::new("schema", problem.is_none(), message)])
}

/// Problem of the data, by the bounded validator of the `assert` crate: it reads neither files nor the network.
fn violation(schema: &Json, data: &Json) -> Result<Option<String>, CheckError> {
    let unusable = |error: &dyn std::fmt::Display| CheckError::Schema(error.to_string());
    let trace = trace_with_output(data);
    let trace = Trace::parse(&trace).map_err(|error| unusable(&error))?;
    let spec = schema_spec(schema);
    let assertion = Assertion::new("schema", "schema", &spec).map_err(|error| unusable(&error))?;
    let verdict = proctor_assert::evaluate(&trace, &assertion, &Tools::default());
    match verdict.status {
        Status::Pass => Ok(None),
        Status::SoftFail | Status::HardFail => Ok(Some(verdict.explanation)),
        Status::Error => Err(CheckError::Schema(verdict.explanation)),
    }
}

/// The spec of an Attest assertion that validates the whole output.
pub(crate) fn schema_spec(schema: &Json) -> String {
    Json::object().with("target", "output.data").with("schema", schema.clone()).to_string()
}

fn trace_with_output(data: &Json) -> String {
    let output = Json::object().with("data", data.clone());
    Json::object().with("trace_id", "evaluation").with("output", output).to_string()
}

pub(super) fn sections(
    sections: &[String],
    path: Option<&str>,
    evidence: &Evidence<'_>,
) -> Result<Vec<CheckResult>, CheckError> {
    let Some(text) = evidence.text(path)? else {
        let place = path.map_or_else(|| "any artifact".to_owned(), quoted);
        let message = format!("there is no text of {place}; artifacts: {}", identities(evidence));
        return Ok(vec![CheckResult::new("sections", false, message)]);
    };
    let has = evidence.excerpt(&text);
    let text = text.to_lowercase();
    let missing: Vec<&String> =
        sections.iter().filter(|section| !text.contains(&section.to_lowercase())).collect();
    let listed: Vec<String> = missing.iter().map(|section| quoted(section)).collect();
    let message = if missing.is_empty() {
        format!("all {} sections are there", sections.len())
    } else {
        let (number, listed) = (missing.len(), listed.join(", "));
        format!("{number} of {} sections are missing: {listed}; the text {has}", sections.len())
    };
    let details = Json::object()
        .with("missing", missing.iter().map(|section| Json::from(section.as_str())).collect::<Vec<Json>>());
    Ok(vec![CheckResult::new("sections", missing.is_empty(), message).with_details(details)])
}

/// The artifacts' names for messages.
fn identities(evidence: &Evidence<'_>) -> String {
    const SHOWN: usize = 5;
    let artifacts = evidence.artifacts(None);
    if artifacts.is_empty() {
        return "none".to_owned();
    }
    let mut names: Vec<String> = artifacts
        .iter()
        .take(SHOWN)
        .map(|artifact| artifact.identity().map_or_else(|| "one without name".to_owned(), quoted))
        .collect();
    if artifacts.len() > SHOWN {
        names.push(format!("{} more", artifacts.len() - SHOWN));
    }
    names.join(", ")
}
