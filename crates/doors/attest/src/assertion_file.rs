//! Files of assertions: read, and refused with all their mistakes at once.
//!
//! ```
//! use proctor_door_attest::assertion_file;
//!
//! let loaded = assertion_file::read("a.yaml", b"- {type: trace, spec: {check: required_tools, tools: [search]}}").unwrap();
//! assert_eq!(loaded.len(), 1);
//! let mistakes = assertion_file::read("a.yaml", b"- {tipe: trace}").unwrap_err();
//! assert!(mistakes.lines[0].starts_with("a.yaml:1:"));
//! ```

mod positions;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proctor_assert::{Assertion, Compiled, Layer, Text, Tools, Verdict, known_members};
use proctor_core::json::Json;
use proctor_core::printable::shown;
use proctor_wire::attest::MAX_ASSERTION_ID;
use proctor_yaml::Position;

use positions::{Located, escaped};

/// Maximum of reported mistakes.
const MAX_MISTAKES: usize = 100;

/// Maximum of assertions in a file.
const MAX_ASSERTIONS: usize = 10_000;

const MEMBERS: &[&str] = &["assertion_id", "type", "spec", "request_id"];

/// Mistakes of a file of assertions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .lines.join("\n"))]
pub struct AssertionFileError {
    /// One line for each mistake, with file, line and column.
    pub lines: Vec<String>,
}

/// An assertion as the file says it.
#[derive(Debug, PartialEq, Eq)]
pub struct Loaded {
    id: String,
    kind: String,
    spec: String,
    request_id: String,
}

impl Loaded {
    /// The assertion as it is evaluated.
    pub fn assertion(&self) -> Result<Assertion<'_>, AssertionFileError> {
        let mut assertion = Assertion::new(&self.id, &self.kind, &self.spec).map_err(|error| {
            AssertionFileError { lines: vec![format!("assertion `{}`: {error}", self.id)] }
        })?;
        assertion.request_id = Text(self.request_id.as_str().into());
        Ok(assertion)
    }
}

/// Reads assertions. What the name of the file does not say about its form, its first character does.
pub fn read(file: &str, source: &[u8]) -> Result<Vec<Loaded>, AssertionFileError> {
    let ends = |ending: &str| file.len() > ending.len() && file.to_lowercase().ends_with(ending);
    let looks_like_json =
        || source.trim_ascii_start().first().is_some_and(|first| matches!(first, b'[' | b'{'));
    let json = ends(".json") || (!ends(".yaml") && !ends(".yml") && looks_like_json());
    let read = if json { Located::read_json } else { Located::read_yaml };
    let located = read(file, source).map_err(|lines| AssertionFileError { lines })?;
    if looks_like_a_trace(&located.value) {
        let line = format!("{file}: this looks like a trace: are the two files swapped?");
        return Err(AssertionFileError { lines: vec![line] });
    }
    let mut reader = Reader {
        file,
        located: &located,
        mistakes: Vec::new(),
        ids: HashMap::new(),
        tools: Tools::default(),
    };
    let loaded = reader.file();
    let mut mistakes = reader.mistakes;
    if mistakes.is_empty() {
        return Ok(loaded);
    }
    mistakes.sort();
    let more = mistakes.len().saturating_sub(MAX_MISTAKES);
    let mut lines: Vec<String> = mistakes
        .into_iter()
        .take(MAX_MISTAKES)
        .map(|(at, problem)| format!("{file}:{}:{}: {problem}", at.line, at.column))
        .collect();
    if more > 0 {
        lines.push(format!("{file}: {more} more mistakes are not listed"));
    }
    Err(AssertionFileError { lines })
}

fn looks_like_a_trace(value: &Json) -> bool {
    let has = |name: &str| value.get(name).is_some();
    has("trace_id") && (has("output") || has("steps"))
}

struct Reader<'a> {
    file: &'a str,
    located: &'a Located,
    mistakes: Vec<(Position, String)>,
    /// Position of each id.
    ids: HashMap<String, Position>,
    tools: Tools,
}

impl Reader<'_> {
    fn wrong(&mut self, at: Position, problem: impl Into<String>) {
        self.mistakes.push((at, problem.into()));
    }

    fn file(&mut self) -> Vec<Loaded> {
        let located = self.located;
        let (list, pointer) = match &located.value {
            Json::Array(items) => (items.as_slice(), ""),
            value @ Json::Object(_) => {
                self.known(value, "", &["assertions"], "the file");
                match value.get("assertions") {
                    Some(Json::Array(items)) => (items.as_slice(), "/assertions"),
                    Some(other) => {
                        let at = located.value_at("/assertions");
                        self.wrong(at, format!("`assertions` is a list, not {}", other.type_name()));
                        return Vec::new();
                    }
                    None => {
                        self.wrong(located.value_at(""), "`assertions` is missing");
                        return Vec::new();
                    }
                }
            }
            other => {
                let problem = format!(
                    "a list of assertions, or an object with `assertions`, is needed, not {}",
                    other.type_name()
                );
                self.wrong(located.value_at(""), problem);
                return Vec::new();
            }
        };
        if list.is_empty() {
            self.wrong(located.value_at(pointer), "there is no assertion: nothing would be checked");
        }
        if list.len() > MAX_ASSERTIONS {
            let problem = format!("{} assertions are more than the {MAX_ASSERTIONS} of one file", list.len());
            self.wrong(located.value_at(pointer), problem);
            return Vec::new();
        }
        let read = |(index, item): (usize, &Json)| self.assertion(&format!("{pointer}/{index}"), index, item);
        list.iter().enumerate().filter_map(read).collect()
    }

    fn assertion(&mut self, pointer: &str, index: usize, item: &Json) -> Option<Loaded> {
        let at = self.located.value_at(pointer);
        let mistakes_before = self.mistakes.len();
        if item.as_object().is_none() {
            self.wrong(at, format!("an assertion is an object, not {}", item.type_name()));
            return None;
        }
        self.known(item, pointer, MEMBERS, "an assertion");
        let id = match self.text(item, pointer, "assertion_id") {
            Some((id, at)) => {
                self.check_id(&id, at);
                id
            }
            None => format!("a{}", index + 1),
        };
        let id_at = item
            .get("assertion_id")
            .map_or(at, |_| self.located.value_at(&format!("{pointer}/assertion_id")));
        if let Some(first) = self.ids.insert(id.clone(), id_at) {
            let problem = format!(
                "`{}` is the id of another assertion, at {}:{}:{}",
                shown(&id, 64),
                self.file,
                first.line,
                first.column
            );
            self.wrong(id_at, problem);
        }
        let request_id = self.text(item, pointer, "request_id").map(|(text, _)| text).unwrap_or_default();
        let (kind, layer) = self.kind(item, pointer, at);
        let spec = match item.get("spec") {
            None => {
                self.wrong(at, "`spec` is missing: what the assertion says");
                None
            }
            Some(spec) => {
                let pointer = format!("{pointer}/spec");
                match (spec.as_object(), layer) {
                    (None, _) => {
                        let problem = format!("`spec` is an object, not {}", spec.type_name());
                        self.wrong(self.located.value_at(&pointer), problem);
                    }
                    (Some(_), Some(layer)) => {
                        let what = format!("the spec of `{kind}`");
                        self.known(spec, &pointer, known_members(layer), &what);
                    }
                    (Some(_), None) => {}
                }
                Some(spec.to_string())
            }
        };
        let loaded = Loaded { id, kind, spec: spec?, request_id };
        // What is misspelt would only be said again, as missing.
        if self.mistakes.len() == mistakes_before
            && let Some(problem) = self.unusable(&loaded)
        {
            self.wrong(self.located.value_at(&format!("{pointer}/spec")), problem);
        }
        Some(loaded)
    }

    /// Problem of the spec of an assertion, if it cannot be used.
    fn unusable(&self, loaded: &Loaded) -> Option<String> {
        let assertion = loaded.assertion().ok()?;
        // A defect is the failure of one assertion, when it is evaluated.
        match catch_unwind(AssertUnwindSafe(|| assertion.compile(&self.tools))).ok()? {
            Compiled::Failed(verdict) => Some(format!("`{}`: {}", shown(&loaded.id, 64), mistake(&verdict))),
            _ => None,
        }
    }

    fn check_id(&mut self, id: &str, at: Position) {
        if id.trim().is_empty() {
            self.wrong(at, "`assertion_id` is empty: name the assertion, or leave the member out");
        }
        if id.len() > MAX_ASSERTION_ID {
            self.wrong(at, format!("`assertion_id` is longer than {MAX_ASSERTION_ID} bytes"));
        }
    }

    fn kind(&mut self, item: &Json, pointer: &str, at: Position) -> (String, Option<Layer>) {
        if item.get("type").is_none() {
            self.wrong(at, format!("`type` is missing: {}", Layer::KINDS.join(", ")));
        }
        let Some((kind, at)) = self.text(item, pointer, "type") else { return (String::new(), None) };
        let layer = Layer::of(&kind);
        if layer.is_none() {
            let problem = format!(
                "`{}` is not a type of assertion{}",
                shown(&kind, 64),
                suggestion(&kind, &Layer::KINDS)
            );
            self.wrong(at, problem);
        }
        (kind, layer)
    }

    /// A member that is a text, and where it stands.
    fn text(&mut self, item: &Json, pointer: &str, name: &str) -> Option<(String, Position)> {
        let at = self.located.value_at(&format!("{pointer}/{name}"));
        match item.get(name)? {
            Json::String(text) => Some((text.clone(), at)),
            other => {
                self.wrong(at, format!("`{name}` is a string, not {}", other.type_name()));
                None
            }
        }
    }

    fn known(&mut self, value: &Json, pointer: &str, names: &[&str], what: &str) {
        for (name, _) in value.as_object().unwrap_or_default() {
            if names.contains(&name.as_str()) {
                continue;
            }
            let at = self.located.name_at(&format!("{pointer}/{}", escaped(name)));
            let near =
                if self.mistakes.len() < MAX_MISTAKES { suggestion(name, names) } else { String::new() };
            self.wrong(at, format!("unknown key `{}` in {what}{near}", shown(name, 64)));
        }
    }
}

/// Problem of a spec, and what to do about it.
fn mistake(verdict: &Verdict) -> String {
    let problem = shown(without_place(&verdict.explanation), 400);
    let names: Vec<&str> = verdict.expected.split(", ").collect();
    if let Some(near) = proctor_core::nearest(&verdict.actual, &names).filter(|_| !verdict.actual.is_empty())
    {
        return format!("{problem}; did you mean `{near}`?");
    }
    // Of a list of names the list itself is the better advice.
    let advice = if names.len() > 1 && !verdict.suggestion.contains("use one of:") {
        format!("known are {}", verdict.expected)
    } else {
        verdict.suggestion.clone()
    };
    if advice.is_empty() { problem } else { format!("{problem}; {}", shown(&advice, 400)) }
}

/// A problem without the position at its end, which is one in the spec as it was read, not in the file.
fn without_place(problem: &str) -> &str {
    let Some((before, place)) = problem.rsplit_once(" at line ") else { return problem };
    let numbers = place.split_once(" column ");
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match numbers {
        Some((line, column)) if is_number(line) && is_number(column) => before,
        _ => problem,
    }
}

/// The end of a message about an unknown name: the nearest valid one, or all of them.
fn suggestion(word: &str, names: &[&str]) -> String {
    match proctor_core::nearest(word, names) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => format!("; known are {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(file: &str, text: &str) -> Vec<String> {
        read(file, text.as_bytes()).unwrap_err().lines
    }

    #[test]
    fn lists_and_objects_in_both_forms_are_the_same() {
        let json = r#"[{"type":"content","spec":{"check":"contains","value":"1.50"}},{"assertion_id":"b","type":"constraint","spec":{"field":"metadata.cost_usd","operator":"lte","value":1.50},"request_id":"r"}]"#;
        let yaml = "assertions:\n  - type: content\n    spec: { check: contains, value: \"1.50\" }\n  - assertion_id: b\n    type: constraint\n    spec: { field: metadata.cost_usd, operator: lte, value: 1.50 }\n    request_id: r\n";
        let from_json = read("a.json", json.as_bytes()).unwrap();
        assert_eq!(from_json, read("a.yaml", yaml.as_bytes()).unwrap());
        assert_eq!(from_json, read("-", json.as_bytes()).unwrap());
        assert_eq!(from_json, read("-", yaml.as_bytes()).unwrap());
        assert_eq!((from_json[0].id.as_str(), from_json[1].id.as_str()), ("a1", "b"));
        assert_eq!(from_json[1].spec, r#"{"field":"metadata.cost_usd","operator":"lte","value":1.50}"#);
        assert_eq!(from_json[1].assertion().unwrap().request_id.as_str(), "r");
    }

    #[test]
    fn all_mistakes_are_said_at_once_with_their_places() {
        let text = "- type: contnt\n  spec: {}\n- tpye: trace\n  spec: { chek: x }\n- type: content\n  spec: { chek: contains }\n- 5\n- assertion_id: a1\n  type: schema\n  spec: []\n";
        let lines = mistakes("a.yaml", text);
        assert_eq!(
            lines,
            [
                "a.yaml:1:9: `contnt` is not a type of assertion; did you mean `content`?",
                "a.yaml:3:3: `type` is missing: schema, constraint, trace, content, embedding, llm_judge, trace_tree, plugin",
                "a.yaml:3:3: unknown key `tpye` in an assertion; did you mean `type`?",
                "a.yaml:6:11: unknown key `chek` in the spec of `content`; did you mean `check`?",
                "a.yaml:7:3: an assertion is an object, not a number",
                "a.yaml:8:17: `a1` is the id of another assertion, at a.yaml:1:3",
                "a.yaml:10:9: `spec` is an object, not an array",
            ]
        );
    }

    #[test]
    fn specs_that_cannot_be_used_are_mistakes_like_all_others() {
        let text = "- { type: content, spec: { check: contians, value: x } }\n\
                    - { assertion_id: pattern, type: content, spec: { check: regex_match, value: '(' } }\n\
                    - type: constraint\n  spec: { field: metadata.cost_usd, operator: lte, value: '0.05' }\n\
                    - { type: constraint, spec: { field: metadata.cost_usd, operator: lte } }\n\
                    - { type: constraint, spec: { field: metadata.cost_usd, operator: less, value: 1 } }\n\
                    - { type: trace, spec: { check: zebra } }\n\
                    - { type: schema, spec: { target: output, schema: { type: 5 } } }\n\
                    - { type: llm_judge, spec: { criteria: x, rubric: safty } }\n\
                    - { type: llm_judge, spec: { criteria: x } }\n\
                    - { type: plugin, spec: { plugin_id: x } }\n";
        let lines = mistakes("a.yaml", text);
        let expected = [
            ("a.yaml:1:26: `a1`: `contians` is not a check of content", "did you mean `contains`?"),
            ("a.yaml:2:49: `pattern`: the pattern `(` cannot be used: ", ""),
            ("a.yaml:4:9: `a3`: `value` is not a number: it is `\"0.05\"`", "write `value` as a number"),
            ("a.yaml:5:29: `a4`: the spec has no `value`, which `lte` needs", "add `value` to the spec"),
            (
                "a.yaml:6:29: `a5`: `less` is not an operator",
                "use one of: lt, lte, gt, gte, eq, neq, between",
            ),
            ("a.yaml:7:24: `a6`: `zebra` is not a check on traces; known are contains_in_order, ", ""),
            ("a.yaml:8:25: `a7`: the schema is not valid at ", ""),
            ("a.yaml:9:28: `a8`: there is no rubric `safty`", ""),
        ];
        for (line, (begins, ends)) in lines.iter().zip(expected) {
            assert!(line.starts_with(begins) && line.ends_with(ends), "{line}");
        }
        assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    }

    #[test]
    fn places_that_are_not_in_the_file_are_left_out() {
        assert_eq!(without_place("invalid type at line 1 column 60"), "invalid type");
        assert_eq!(without_place("stands at line 7 of column x"), "stands at line 7 of column x");
        assert_eq!(without_place("x at line 1 column "), "x at line 1 column ");
    }

    #[test]
    fn a_trace_is_told_from_assertions() {
        for (file, text) in
            [("a.json", r#"{"trace_id":"t","steps":[]}"#), ("a.yaml", "trace_id: t\noutput: {message: x}\n")]
        {
            assert_eq!(
                mistakes(file, text),
                [format!("{file}: this looks like a trace: are the two files swapped?")]
            );
        }
    }

    #[test]
    fn nothing_to_check_is_a_mistake() {
        for text in ["[]", r#"{"assertions": []}"#] {
            assert!(mistakes("a.json", text)[0].contains("nothing would be checked"), "{text}");
        }
        for text in ["{}", "5", "null", r#"{"assertions": {}}"#, "", "[{}]", r#"[{"type": 1, "spec": {}}]"#] {
            assert!(mistakes("a.json", text)[0].starts_with("a.json:1:"), "{text}");
        }
        let long = format!(r#"[{{"assertion_id":"{}","type":"plugin","spec":{{}}}}]"#, "x".repeat(100_000));
        assert!(mistakes("a.json", &long)[0].contains("longer than"));
    }

    #[test]
    fn mistakes_without_end_are_bounded() {
        let text = format!("[{}]", vec![r#"{"tpe":1}"#; 5000].join(","));
        assert!(mistakes("a.json", &text).len() <= MAX_MISTAKES + 1);
    }
}
