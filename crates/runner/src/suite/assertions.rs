//! Assertions of a test.

use proctor_assert::{Assertion as AttestAssertion, Compiled};
use proctor_core::printable::shown;
use proctor_yaml::{Node, Value};

use super::behavior::{read_behavior, read_behavior_rule};
use super::commands::{read_command_check, threshold};
use super::composite::read_composite;
use super::keys;
use super::object::{Object, nonblank, text};
use super::path::Path;
use super::problem::suggestion;
use super::reader::Reader;
use super::settings::workspace_path;
use crate::checks::{
    Assertion, CRITERIA, Check, Checker, CountOperator, FileCheck, Language, LlmEval, SecurityScan, Severity,
    TextPattern, WorkspacePath, schema_spec,
};

/// Samples of a judgement.
const MAX_SAMPLES: u64 = 10;

/// Score that a judgement must reach if the suite does not say.
const DEFAULT_THRESHOLD: f64 = 0.7;

pub(super) fn read_assertions(test: &Object<'_, '_>, reader: &mut Reader<'_>) -> Vec<Assertion> {
    let Some(items) = test.list("assertions", reader) else { return Vec::new() };
    let list = test.path.key("assertions");
    let read = |(index, item): (usize, &std::rc::Rc<Node>)| read_assertion(item, &list.index(index), reader);
    items.iter().enumerate().filter_map(read).collect()
}

fn read_assertion(node: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<Assertion> {
    let object = Object::read(node, path, &keys::ASSERTION, reader)?;
    let critical = object.boolean("critical", reader).unwrap_or_default();
    let optional = object.boolean("optional", reader).unwrap_or_default();
    let (name, check) = read_check(&object, reader)?;
    Some(Assertion { name, check, critical, optional })
}

/// The type and configuration of an assertion, or of a leaf of a composite.
pub(super) fn read_check(object: &Object<'_, '_>, reader: &mut Reader<'_>) -> Option<(&'static str, Check)> {
    let node = object.required("type", reader)?;
    let word = text(node, &object.path.key("type"), reader)?;
    let Some(name) = keys::ASSERTION_TYPES.iter().find(|name| **name == word) else {
        refuse_type(node, &object.path.key("type"), word, reader);
        return None;
    };
    let path = object.path.key("config");
    let check = match object.given("config") {
        Some(config) => read_config(word, config, &path, reader),
        None => {
            let empty = empty_mapping(node);
            read_config(word, &empty, &path, reader)
        }
    };
    Some((name, check?))
}

/// A mapping without entries, at the position of the type: where a missing configuration is reported.
fn empty_mapping(at: &Node) -> Node {
    let mut empty = at.clone();
    empty.value = Value::Map(Vec::new());
    empty
}

fn refuse_type(node: &Node, path: &Path<'_>, word: &str, reader: &mut Reader<'_>) {
    let (message, advice) = if keys::LATER_ASSERTION_TYPES.contains(&word) {
        (format!("assertions of type `{word}` are not supported yet"), "remove it until then".to_owned())
    } else if keys::REFUSED_ASSERTION_TYPES.contains(&word) {
        (
            format!("assertions of type `{word}` are not supported"),
            "remove it, or ask a judge with `llm_eval`".to_owned(),
        )
    } else if let Some((_, meant)) = keys::MISNAMED_ASSERTION_TYPES.iter().find(|(name, _)| *name == word) {
        (format!("unknown type of assertion `{word}`"), format!("did you mean `{meant}`?"))
    } else {
        (format!("unknown type of assertion {}", reader.shown(node)), suggestion(word, keys::ASSERTION_TYPES))
    };
    reader.mistake(node.at, path, message, advice);
}

fn read_config(word: &str, config: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<Check> {
    match word {
        "artifact_exists" => {
            let object = Object::read(config, path, &keys::ARTIFACT_EXISTS, reader)?;
            Some(Check::ArtifactExists { path: object.required_text("path", reader)?.to_owned() })
        }
        "contains" => {
            let object = Object::read(config, path, &keys::CONTAINS, reader)?;
            let pattern = read_pattern(&object, reader);
            let path = object.nonblank("path", reader).map(str::to_owned);
            Some(Check::Contains { pattern: pattern?, path })
        }
        "schema" => read_schema(config, path, reader),
        "sections" => {
            let object = Object::read(config, path, &keys::SECTIONS, reader)?;
            object.required("sections", reader);
            let sections = object.some_texts("sections", reader);
            let path = object.nonblank("path", reader).map(str::to_owned);
            Some(Check::Sections { sections: sections?, path })
        }
        "behavior" => read_behavior(config, path, reader).map(Check::Behavior),
        "must_use_tools" | "forbidden_tools" | "max_tool_calls" | "min_tool_calls" | "no_errors" => {
            read_behavior_rule(word, config, path, reader).map(Check::Behavior)
        }
        "llm_eval" => read_llm_eval(config, path, reader).map(Check::LlmEval),
        "security" => read_security(config, path, reader).map(Check::Security),
        "composite" => {
            read_composite(config, path, reader).map(|condition| Check::Composite(Box::new(condition)))
        }
        "file_exists" | "file_not_exists" | "dir_exists" | "file_contains" | "file_count" => {
            read_file_check(word, config, path, reader).map(Check::File)
        }
        _ => read_command_check(word, config, path, reader),
    }
}

fn read_pattern(object: &Object<'_, '_>, reader: &mut Reader<'_>) -> Option<TextPattern> {
    let regex = object.boolean("regex", reader).unwrap_or_default();
    let node = object.required("pattern", reader)?;
    let path = object.path.key("pattern");
    let written = text(node, &path, reader)?;
    if written.is_empty() {
        reader.mistake(node.at, &path, "an empty pattern matches everything", "write what must be there");
        return None;
    }
    reader.pattern(node, &path, written, regex)
}

fn read_schema(config: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<Check> {
    let object = Object::read(config, path, &keys::SCHEMA, reader)?;
    let artifact = object.nonblank("path", reader).map(str::to_owned);
    let node = object.required("schema", reader)?;
    let below = path.key("schema");
    if !matches!(node.value, Value::Map(_)) {
        reader.wrong_type(node, &below, "a mapping: a JSON Schema");
        return None;
    }
    let schema = node.to_json();
    let spec = schema_spec(&schema);
    if let Ok(assertion) = AttestAssertion::new("schema", "schema", &spec)
        && let Compiled::Failed(verdict) = assertion.compile(&reader.tools)
    {
        let message = if reader.has_variables(node) {
            "the schema cannot be used with these values of its variables".to_owned()
        } else {
            shown(&verdict.explanation, 400)
        };
        reader.mistake(node.at, &below, message, verdict.suggestion);
        return None;
    }
    Some(Check::Schema { schema, path: artifact })
}

fn read_llm_eval(config: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<LlmEval> {
    let object = Object::read(config, path, &keys::LLM_EVAL, reader)?;
    let names: Vec<&str> = CRITERIA.iter().map(|(name, _)| *name).collect();
    let criteria = object.word("criteria", &names, reader).map(str::to_owned);
    let prompt = object.nonblank("prompt", reader).map(str::to_owned);
    if object.get("criteria").is_none() && object.get("prompt").is_none() {
        reader.mistake(
            object.at,
            path,
            "`criteria` or `prompt` is missing in the config of `llm_eval`",
            suggestion("", &names),
        );
        return None;
    }
    let threshold = threshold(&object, DEFAULT_THRESHOLD, reader);
    let artifact = object.nonblank("path", reader).map(str::to_owned);
    let num_runs = object.whole("num_runs", (1, MAX_SAMPLES), reader).unwrap_or(1);
    Some(LlmEval {
        criteria,
        prompt,
        threshold,
        path: artifact,
        num_runs: u32::try_from(num_runs).unwrap_or(1),
    })
}

fn read_security(config: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<SecurityScan> {
    let object = Object::read(config, path, &keys::SECURITY, reader)?;
    let all: Vec<&'static str> = Checker::ALL
        .into_iter()
        .flat_map(|checker| std::iter::once(checker.word()).chain(checker.subtypes().iter().copied()))
        .collect();
    let before = reader.problems.len();
    let chosen = read_words(&object, "checks", &all, reader);
    let mut subtypes: Vec<&'static str> = Vec::new();
    for checker in Checker::ALL {
        let listed = read_words(&object, checker.subtypes_key(), checker.subtypes(), reader);
        let whole = match &chosen {
            Some(chosen) => chosen.contains(&checker.word()),
            // Without `checks`, a list of subtypes chooses its checker; without any, personal data is searched for.
            None => match &listed {
                Some(_) => true,
                None => checker == Checker::PiiExposure && !has_subtypes(&object),
            },
        };
        match (whole, listed) {
            (true, Some(listed)) => subtypes.extend(listed),
            (true, None) => subtypes.extend(checker.subtypes()),
            (false, Some(_)) => {
                let key = checker.subtypes_key();
                let message =
                    format!("`{key}` has no effect, because `checks` does not have `{}`", checker.word());
                reader.warn(object.key_at(key), path, message, "");
            }
            (false, None) => {}
        }
        let single = chosen.iter().flatten().filter(|word| checker.subtypes().contains(word));
        subtypes.extend(single);
    }
    subtypes.sort_unstable();
    subtypes.dedup();
    let sensitivity = object.word("sensitivity", &Severity::WORDS, reader).and_then(Severity::named);
    let fail_on_warning = object.boolean("fail_on_warning", reader).unwrap_or_default();
    let languages = read_words(&object, "code_languages", &Language::WORDS, reader);
    if subtypes.is_empty() && reader.problems.len() == before {
        reader.mistake(object.at, path, "no check is chosen: nothing would be searched for", "");
    }
    Some(SecurityScan {
        subtypes,
        sensitivity: sensitivity.unwrap_or(Severity::Medium),
        fail_on_warning,
        languages: languages.unwrap_or_default().into_iter().filter_map(Language::named).collect(),
    })
}

fn has_subtypes(object: &Object<'_, '_>) -> bool {
    Checker::ALL.iter().any(|checker| object.get(checker.subtypes_key()).is_some())
}

/// A list of known words.
fn read_words(
    object: &Object<'_, '_>,
    key: &str,
    words: &[&'static str],
    reader: &mut Reader<'_>,
) -> Option<Vec<&'static str>> {
    let items = object.list(key, reader)?;
    let list = object.path.key(key);
    let mut found = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(word) = nonblank(item, &list.index(index), reader) else { continue };
        match words.iter().find(|known| **known == word) {
            Some(known) => found.push(*known),
            None => {
                let message = format!("unknown value {}", reader.shown(item));
                reader.mistake(item.at, &list.index(index), message, suggestion(word, words));
            }
        }
    }
    Some(found)
}

fn read_file_check(word: &str, config: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<FileCheck> {
    let table = match word {
        "file_exists" => &keys::FILE_EXISTS,
        "file_not_exists" => &keys::FILE_NOT_EXISTS,
        "dir_exists" => &keys::DIR_EXISTS,
        "file_contains" => &keys::FILE_CONTAINS,
        _ => &keys::FILE_COUNT,
    };
    let object = Object::read(config, path, table, reader)?;
    let inside = |key: &str, reader: &mut Reader<'_>| {
        let node = object.get(key)?;
        let written = nonblank(node, &path.key(key), reader)?;
        workspace_path(node, &path.key(key), written, reader)
    };
    let root = match object.get("workspace_path") {
        Some(_) => inside("workspace_path", reader)?,
        None => WorkspacePath::root(),
    };
    if word == "file_count" {
        let directory = match object.get("path") {
            Some(_) => inside("path", reader)?,
            None => WorkspacePath::root(),
        };
        let count = object.whole("count", (0, u64::MAX), reader).unwrap_or_default();
        let operator = object.word("operator", &CountOperator::WORDS, reader).and_then(CountOperator::named);
        let operator = match object.get("operator") {
            Some(_) => operator?,
            None => CountOperator::Eq,
        };
        return Some(FileCheck::FileCount { path: root.join(&directory), count, operator });
    }
    object.required("path", reader);
    let pattern = if word == "file_contains" { Some(read_pattern(&object, reader)) } else { None };
    let file = root.join(&inside("path", reader)?);
    Some(match (word, pattern) {
        ("file_exists", _) => FileCheck::FileExists(file),
        ("file_not_exists", _) => FileCheck::FileNotExists(file),
        (_, Some(pattern)) => FileCheck::FileContains { path: file, pattern: pattern? },
        (_, None) => FileCheck::DirExists(file),
    })
}
