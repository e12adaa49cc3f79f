//! Loading of a suite: parsing, substitution, reading, checks across tests.

use std::borrow::Cow;
use std::collections::HashMap;

use proctor_core::quoted;
use proctor_yaml::{Position, parse_recovering};

use super::agents::read_agents;
use super::case::{Shared, read_case};
use super::object::Object;
use super::path::Path;
use super::problem::{Problem, sorted};
use super::reader::Reader;
use super::substitute::Substitution;
use super::{LoadOptions, Loaded, Suite, keys};

/// Loads a suite. All mistakes are reported at once, by position.
pub fn load(source: &[u8], options: &LoadOptions<'_>) -> Result<Loaded, Vec<Problem>> {
    let mut reader = Reader::new(options);
    let source = joined_surrogates(source);
    let parsed = parse_recovering(&source, &options.limits);
    for error in parsed.errors {
        reader.mistake(error.at, &Path::Root, error.kind.to_string(), "");
    }
    let suite = parsed.root.and_then(|root| {
        let mut substitution = Substitution::new(options.environment, options.limits.text_bytes);
        let root = substitution.apply(&root, &Path::Root, &mut reader);
        read_suite(&root, &mut reader)
    });
    match suite {
        Some(suite) if reader.problems.is_empty() => Ok(Loaded { suite, warnings: sorted(reader.warnings) }),
        _ => Err(sorted(reader.problems)),
    }
}

fn read_suite(root: &proctor_yaml::Node, reader: &mut Reader<'_>) -> Option<Suite> {
    let path = Path::Root;
    let object = Object::read(root, &path, &keys::SUITE, reader)?;
    let name = object.required_text("test_suite", reader);
    let version = object.text("version", reader).unwrap_or("1.0").to_owned();
    let description = object.text("description", reader).unwrap_or_default().to_owned();
    let agents = read_agents(&object, reader);
    let shared = Shared::read(&object, agents.names, reader);
    let mut tests = Vec::new();
    if object.required("tests", reader).is_some() {
        let items = object.list("tests", reader).unwrap_or_default();
        if items.is_empty() && reader.problems.is_empty() {
            let message = "there is no test: nothing would be run";
            reader.mistake(object.key_at("tests"), &path.key("tests"), message, "");
        }
        let above = path.key("tests");
        let mut seen: HashMap<String, Position> = HashMap::new();
        for (index, item) in items.iter().enumerate() {
            let below = above.index(index);
            let Some(test) = read_case(item, &below, &shared, reader) else { continue };
            if let Some(first) = seen.insert(test.id.clone(), test.at) {
                let message =
                    format!("the id {} is that of another test, at line {}", quoted(&test.id), first.line);
                reader.mistake(test.at, &below, message, "give each test its own id");
            }
            tests.push(test);
        }
    }
    Some(Suite { name: name?.to_owned(), version, description, agents: agents.agents, tests })
}

/// JSON writes characters beyond U+FFFF as two escapes (`\ud83d\ude00`), which YAML refuses. They become YAML's one (`\U0001F600`).
fn joined_surrogates(source: &[u8]) -> Cow<'_, [u8]> {
    let is_json = source.trim_ascii_start().first() == Some(&b'{');
    let has_surrogates = || {
        source.windows(4).any(|part| {
            part.eq_ignore_ascii_case(b"\\ud8")
                || part.eq_ignore_ascii_case(b"\\ud9")
                || part.eq_ignore_ascii_case(b"\\uda")
                || part.eq_ignore_ascii_case(b"\\udb")
        })
    };
    if !is_json || !has_surrogates() {
        return Cow::Borrowed(source);
    }
    let mut out = Vec::with_capacity(source.len());
    let mut rest = source;
    while let Some((first, after)) = rest.split_first() {
        if *first != b'\\' {
            out.push(*first);
            rest = after;
        } else if let (Some(high @ 0xD800..=0xDBFF), Some(low @ 0xDC00..=0xDFFF)) =
            (escape(rest), rest.get(6..).and_then(escape))
        {
            let character = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
            out.extend(format!("\\U{character:08X}").bytes());
            rest = rest.get(12..).unwrap_or_default();
        } else {
            // A backslash and what it escapes, which may be another backslash.
            out.extend(rest.iter().take(2));
            rest = rest.get(2..).unwrap_or_default();
        }
    }
    Cow::Owned(out)
}

/// The number of a `\uXXXX` escape at the start.
fn escape(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
