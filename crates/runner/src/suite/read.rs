//! Loading of a suite: parsing, substitution, reading, checks across tests.

use std::borrow::Cow;
use std::collections::HashMap;

use proctor_core::quoted;
use proctor_yaml::{Items, Node, Position, items, parse_without_items};

use super::agents::read_agents;
use super::case::{Shared, read_case};
use super::object::Object;
use super::path::Path;
use super::problem::{Problem, sorted};
use super::reader::Reader;
use super::substitute::Substitution;
use super::{LoadOptions, Loaded, Suite, TestCase, keys};

/// Loads a suite. All mistakes are reported at once, by position.
///
/// The source is parsed twice: once for everything but the tests, which tests inherit from and which may stand behind them, then test by test. The
/// tree of a whole suite would take twenty times the bytes of its source.
pub fn load(source: &[u8], options: &LoadOptions<'_>) -> Result<Loaded, Vec<Problem>> {
    let mut reader = Reader::new(options);
    let source = joined_surrogates(source);
    let (parsed, count) = parse_without_items(&source, &options.limits, TESTS);
    for error in parsed.errors {
        reader.mistake(error.at, &Path::Root, error.kind.to_string(), "");
    }
    let suite = parsed.root.and_then(|root| {
        let mut substitution = Substitution::new(options.environment, options.limits.text_bytes);
        let root = substitution.apply(&root, &Path::Root, &mut reader);
        let items = items(&source, &options.limits, TESTS);
        let tests = Tests { count, items, substitution: &mut substitution };
        read_suite(&root, tests, &mut reader)
    });
    match suite {
        Some(suite) if reader.problems.is_empty() => Ok(Loaded { suite, warnings: sorted(reader.warnings) }),
        _ => Err(sorted(reader.problems)),
    }
}

/// Key of the tests.
const TESTS: &str = "tests";

/// Tests that are parsed one after the other.
struct Tests<'t, 'o> {
    count: usize,
    items: Items<'t>,
    substitution: &'t mut Substitution<'o>,
}

fn read_suite(root: &Node, tests: Tests<'_, '_>, reader: &mut Reader<'_>) -> Option<Suite> {
    let path = Path::Root;
    let object = Object::read(root, &path, &keys::SUITE, reader)?;
    let name = object.required_text("test_suite", reader);
    let version = object.text("version", reader).unwrap_or("1.0").to_owned();
    let description = object.text("description", reader).unwrap_or_default().to_owned();
    let agents = read_agents(&object, reader);
    let shared = Shared::read(&object, agents.names, reader);
    let tests = if object.required(TESTS, reader).is_some() {
        read_tests(&object, &shared, tests, reader)
    } else {
        Vec::new()
    };
    Some(Suite { name: name?.to_owned(), version, description, agents: agents.agents, tests })
}

fn read_tests(
    object: &Object<'_, '_>,
    shared: &Shared,
    tests: Tests<'_, '_>,
    reader: &mut Reader<'_>,
) -> Vec<TestCase> {
    let Tests { count, items, substitution } = tests;
    // Tests of a list that has an anchor, or that an alias stands for, are in the tree, with their variables replaced.
    let whole = object.list(TESTS, reader).unwrap_or_default();
    let above = object.path.key(TESTS);
    let number = count + whole.len();
    if number == 0 && reader.problems.is_empty() {
        let message = "there is no test: nothing would be run";
        reader.mistake(object.key_at(TESTS), &above, message, "");
    }
    let mut found = Vec::with_capacity(number);
    let mut seen: HashMap<String, Position> = HashMap::new();
    let mut add = |index: usize, item: &Node, reader: &mut Reader<'_>| {
        let below = above.index(index);
        let Some(test) = read_case(item, &below, shared, reader) else { return };
        if let Some(first) = seen.insert(test.id.clone(), test.at) {
            let message =
                format!("the id {} is that of another test, at line {}", quoted(&test.id), first.line);
            reader.mistake(test.at, &below, message, "give each test its own id");
        }
        // A suite with mistakes is refused: its tests are read for their mistakes only.
        if reader.problems.is_empty() {
            found.push(test);
        }
    };
    for (index, item) in whole.iter().enumerate() {
        add(index, item, reader);
    }
    for (index, item) in items.enumerate() {
        let item = substitution.apply(&item, &above.index(index), reader);
        add(index, &item, reader);
    }
    found
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
