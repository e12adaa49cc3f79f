//! Parsed question: search words, a path pattern, a path.

use proctor_policy::glob;
use proctor_wire::ahp::{ContextPerceptionEvent, PerceptionTarget};

use super::words::{Words, beginning};

/// Weights of words from the target, the query and the task.
const TARGET: f32 = 3.0;
const QUERY: f32 = 2.0;
const ASIDE: f32 = 1.0;
/// Longest label, in bytes.
const MAX_LABEL_BYTES: usize = 80;

/// Parsed question.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {
    /// Search words with weights.
    pub words: Words,
    /// Glob that paths must match.
    pub pattern: Option<PathGlob>,
    /// Path of a file or folder, as the agent gave it.
    pub path: Option<String>,
    /// Label for answers; may be empty.
    pub label: String,
}

impl Question {
    /// Parses the question of a perception event.
    pub fn read(asked: &ContextPerceptionEvent) -> Question {
        let mut question = Question::default();
        question.add_target(&asked.target);
        let context = &asked.context;
        if let Some(query) = &context.query {
            question.words.add(query, QUERY);
            if question.label.is_empty() {
                question.label.clone_from(query);
            }
        }
        if let Some(task) = &context.current_task {
            question.words.add(task, ASIDE);
        }
        question.label = beginning(question.label.trim(), MAX_LABEL_BYTES).to_owned();
        question
    }

    fn add_target(&mut self, target: &PerceptionTarget) {
        let words = &mut self.words;
        self.label = match target {
            PerceptionTarget::Entity { name, identifier, .. } => {
                words.add(name, TARGET);
                words.add(identifier.as_deref().unwrap_or_default(), TARGET);
                name.clone()
            }
            PerceptionTarget::Location { path, .. } => {
                self.path = Some(path.clone());
                path.clone()
            }
            PerceptionTarget::Event { description, event_type, .. } => {
                words.add(description, QUERY);
                words.add(event_type, ASIDE);
                description.clone()
            }
            PerceptionTarget::Relation { entities, relation_type } => {
                entities.iter().take(16).for_each(|entity| words.add(entity, TARGET));
                words.add(relation_type, ASIDE);
                entities.iter().take(16).cloned().collect::<Vec<_>>().join(", ")
            }
            PerceptionTarget::Rule { name, scope, .. } => {
                words.add(name, TARGET);
                words.add(scope.as_deref().unwrap_or_default(), ASIDE);
                name.clone()
            }
            PerceptionTarget::State { target, aspect, .. } => {
                words.add(target, TARGET);
                words.add(aspect, QUERY);
                target.clone()
            }
            PerceptionTarget::Resource { name, .. } => {
                words.add(name, TARGET);
                name.clone()
            }
            PerceptionTarget::Pattern { pattern, pattern_type } => {
                if is_for_paths(pattern, pattern_type) {
                    self.pattern = Some(PathGlob::new(pattern));
                } else {
                    words.add_pattern(pattern, TARGET);
                }
                pattern.clone()
            }
        };
    }

    /// Replaces the path by search words made of its names, for a path that does not exist.
    pub fn path_to_words(&mut self) {
        if let Some(path) = self.path.take() {
            // The ending of a name is what most other files have too.
            let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
            let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
            self.words.add(stem, TARGET);
            self.words.add(folders, ASIDE);
        }
    }

    /// Whether the question has no words, no pattern and no path.
    pub fn is_vague(&self) -> bool {
        self.words.is_empty() && self.pattern.is_none() && self.path.is_none()
    }
}

/// Whether a pattern is a path glob rather than a text pattern.
fn is_for_paths(pattern: &str, pattern_type: &str) -> bool {
    let kind = pattern_type.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    if says(&["glob", "path", "file"]) {
        return true;
    }
    !says(&["text", "word", "literal", "regex", "content"]) && !glob::is_literal(pattern)
}

/// Path glob: `*` and `**` match any text, `?` one character. A glob without a slash matches the file name in any folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGlob {
    whole: String,
    /// `**/` may also stand for no folder at all.
    without_folders: String,
}

impl PathGlob {
    fn new(pattern: &str) -> PathGlob {
        let pattern = beginning(pattern.trim(), 512);
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern).trim_start_matches('/');
        PathGlob { whole: pattern.to_owned(), without_folders: pattern.replace("**/", "") }
    }

    /// Whether a path matches.
    pub fn matches(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        glob::matches(&self.whole, path)
            || glob::matches(&self.without_folders, path)
            || (!self.without_folders.contains('/') && glob::matches(&self.without_folders, name))
    }
}

/// Splits a path with a line number, such as `src/main.rs:12`.
pub(crate) fn path_and_line(named: &str) -> Option<(&str, usize)> {
    let (path, line) = named.rsplit_once(':')?;
    Some((path, line.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use proctor_core::json::Json;

    use super::*;

    fn question(target: &str, context: &str) -> Question {
        let text = format!(r#"{{"session_id":"s","intent":"locate","target":{target},"context":{context}}}"#);
        Question::read(&Json::parse(text.as_bytes()).unwrap().read().unwrap())
    }

    fn words(question: &Question) -> Vec<&str> {
        question.words.texts().collect()
    }

    #[test]
    fn every_target_says_what_is_looked_for() {
        let context = r#"{"workspace":""}"#;
        for (target, expected, label) in [
            (
                r#"{"entity":{"name":"parse_frame","entity_type":"function"}}"#,
                &["parse_frame"][..],
                "parse_frame",
            ),
            (
                r#"{"event":{"description":"Disk full","event_type":"failure"}}"#,
                &["disk", "full", "failure"],
                "Disk full",
            ),
            (
                r#"{"relation":{"entities":["Codec","Frame"],"relation_type":"calls"}}"#,
                &["codec", "frame", "calls"],
                "Codec, Frame",
            ),
            (r#"{"rule":{"name":"no-unwrap","rule_type":"lint"}}"#, &["no", "unwrap"], "no-unwrap"),
            (
                r#"{"state":{"target":"queue","aspect":"length","include_history":false}}"#,
                &["queue", "length"],
                "queue",
            ),
            (
                r#"{"resource":{"name":"schema.sql","resource_type":"file"}}"#,
                &["schema", "sql"],
                "schema.sql",
            ),
            (r#"{"pattern":{"pattern":"parse_*","pattern_type":"text"}}"#, &["parse_*"], "parse_*"),
            (r#"{"pattern":{"pattern":"*.rs","pattern_type":"glob"}}"#, &[], "*.rs"),
            (r#"{"location":{"path":"src","location_type":"folder"}}"#, &[], "src"),
        ] {
            let question = question(target, context);
            assert_eq!(words(&question), expected, "{target}");
            assert_eq!(question.label, label);
            assert!(!question.is_vague());
        }
    }

    #[test]
    fn a_question_without_words_is_vague() {
        let entity = r#"{"entity":{"name":"","entity_type":""}}"#;
        assert!(question(entity, r#"{"workspace":"","query":"what is it?"}"#).is_vague());
        let asked = question(entity, r#"{"workspace":"","query":"retry loop","current_task":"fix it"}"#);
        assert_eq!(words(&asked), ["retry", "loop", "fix"]);
        assert_eq!(asked.label, "retry loop");
    }

    #[test]
    fn a_place_that_is_not_there_is_looked_for_by_its_name() {
        let mut asked = question(
            r#"{"location":{"path":"src/wire/codec.rs","location_type":"file"}}"#,
            r#"{"workspace":""}"#,
        );
        asked.path_to_words();
        assert_eq!(words(&asked), ["codec", "src", "wire"]);
        assert_eq!(asked.path, None);
    }

    #[test]
    fn patterns_match_paths() {
        for (pattern, path, expected) in [
            ("*.rs", "src/a/b.rs", true),
            ("src/**/*.rs", "src/b.rs", true),
            ("src/**/*.rs", "src/a/b.rs", true),
            ("**/tests/*", "a/tests/b.rs", true),
            ("**/codec.rs", "codec.rs", true),
            ("./docs/*", "docs/a.md", true),
            ("codec.rs", "src/codec.rs", true),
            ("src/*.md", "docs/a.md", false),
            ("*.md", "a.mdx", false),
        ] {
            assert_eq!(PathGlob::new(pattern).matches(path), expected, "{pattern} {path}");
        }
        assert_eq!(path_and_line("src/main.rs:12"), Some(("src/main.rs", 12)));
        assert_eq!(path_and_line("src/main.rs"), None);
    }
}
