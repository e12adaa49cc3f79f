//! Patterns of expected answers; `conformance/README.md` describes them.

use proctor_core::json::Json;
use regex::Regex;

/// An answer that differs from its pattern, or a pattern that cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Mismatch {
    #[error("at `{at}`: expected {expected}, found {found}")]
    Different { at: String, expected: String, found: String },
    #[error("at `{at}`: `{matcher}` is no matcher")]
    UnknownMatcher { at: String, matcher: String },
}

/// Compares an answer with a pattern.
pub fn compare(pattern: &Json, found: &Json) -> Result<(), Mismatch> {
    compare_at("", pattern, Some(found))
}

fn compare_at(at: &str, pattern: &Json, found: Option<&Json>) -> Result<(), Mismatch> {
    if let Some(word) = matcher_word(pattern) {
        return match_word(at, word, found);
    }
    let different = |expected: &dyn ToString| {
        Err(Mismatch::Different { at: at.to_owned(), expected: expected.to_string(), found: shown(found) })
    };
    let Some(value) = found else { return different(pattern) };
    match (pattern, value) {
        (Json::Object(members), _) if matcher_member(members).is_some() => match_member(at, members, value),
        (Json::Object(members), Json::Object(_)) => members
            .iter()
            .try_for_each(|(name, wanted)| compare_at(&format!("{at}/{name}"), wanted, value.get(name))),
        (Json::Array(wanted), Json::Array(items)) if wanted.len() == items.len() => {
            wanted.iter().zip(items).enumerate().try_for_each(|(index, (wanted, item))| {
                compare_at(&format!("{at}/{index}"), wanted, Some(item))
            })
        }
        (Json::Array(wanted), Json::Array(_)) => different(&format!("{} elements: {pattern}", wanted.len())),
        (Json::Number(wanted), Json::Number(number)) if same_number(wanted, number) => Ok(()),
        _ if pattern == value => Ok(()),
        _ => different(pattern),
    }
}

/// The text of a pattern that is a matcher: `$`, and a letter. `$.args` and `${name}` are ordinary text.
fn matcher_word(pattern: &Json) -> Option<&str> {
    let rest = pattern.as_str()?.strip_prefix('$')?;
    rest.starts_with(|first: char| first.is_ascii_alphabetic()).then_some(rest)
}

fn match_word(at: &str, word: &str, found: Option<&Json>) -> Result<(), Mismatch> {
    let unknown = || Mismatch::UnknownMatcher { at: at.to_owned(), matcher: format!("${word}") };
    let (name, argument) = word.split_once(' ').unwrap_or((word, ""));
    let holds = match (name, argument) {
        ("any", "") => found.is_some(),
        ("present", "") => found.is_some_and(|value| !value.is_null() && value.as_str() != Some("")),
        ("absent", "") => found.is_none(),
        ("match", pattern) if !pattern.is_empty() => {
            let pattern = Regex::new(pattern).map_err(|_| unknown())?;
            found.and_then(Json::as_str).is_some_and(|text| pattern.is_match(text))
        }
        ("above", least) => {
            let least: f64 = least.parse().map_err(|_| unknown())?;
            matches!(found, Some(Json::Number(literal)) if literal.parse().is_ok_and(|number: f64| number > least))
        }
        ("count", count) => {
            let count: usize = count.parse().map_err(|_| unknown())?;
            found.and_then(Json::as_array).is_some_and(|items| items.len() == count)
        }
        _ => return Err(unknown()),
    };
    if holds {
        return Ok(());
    }
    Err(Mismatch::Different { at: at.to_owned(), expected: format!("${word}"), found: shown(found) })
}

fn matcher_member(members: &[(String, Json)]) -> Option<(&str, &Json)> {
    match members {
        [(name, pattern)] => name.strip_prefix('$').map(|name| (name, pattern)),
        _ => None,
    }
}

fn match_member(at: &str, members: &[(String, Json)], value: &Json) -> Result<(), Mismatch> {
    let (name, pattern) = matcher_member(members).unwrap_or(("", &Json::Null));
    let holds = match name {
        "some" => value
            .as_array()
            .is_some_and(|items| items.iter().any(|item| compare_at(at, pattern, Some(item)).is_ok())),
        "not" => compare_at(at, pattern, Some(value)).is_err(),
        _ => return Err(Mismatch::UnknownMatcher { at: at.to_owned(), matcher: format!("${name}") }),
    };
    if holds {
        return Ok(());
    }
    let expected = format!("{name} {pattern}");
    Err(Mismatch::Different { at: at.to_owned(), expected, found: value.to_string() })
}

/// Numbers are equal by value: `1` and `1.0` are.
fn same_number(one: &str, other: &str) -> bool {
    one == other
        || matches!((one.parse::<f64>(), other.parse::<f64>()), (Ok(one), Ok(other)) if one.total_cmp(&other).is_eq())
}

fn shown(found: Option<&Json>) -> String {
    found.map_or_else(|| "nothing".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("`{text}`: {error}"))
    }

    fn holds(pattern: &str, found: &str) -> bool {
        compare(&json(pattern), &json(found)).is_ok()
    }

    #[test]
    fn every_pattern_accepts_its_answer_and_fails_on_another_one() {
        for (pattern, accepted, refused) in [
            (r#""allow""#, r#""allow""#, r#""block""#),
            ("1", "1.0", "1.5"),
            ("true", "true", "false"),
            ("null", "null", "0"),
            (r#""1""#, r#""1""#, "1"),
            (r#"{"code":-32602}"#, r#"{"code":-32602,"message":"m"}"#, r#"{"code":-32603}"#),
            (r#"{"a":{"b":1}}"#, r#"{"a":{"b":1,"c":2}}"#, r#"{"a":{}}"#),
            (r#"{"a":"$any"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"$present"}"#, r#"{"a":0}"#, r#"{"a":null}"#),
            (r#"{"a":"$present"}"#, r#"{"a":"x"}"#, r#"{"a":""}"#),
            (r#"{"a":"$absent"}"#, "{}", r#"{"a":null}"#),
            (r#"{"a":"$match ^x+$"}"#, r#"{"a":"xx"}"#, r#"{"a":"xy"}"#),
            (r#""$match 1""#, r#""1""#, "1"),
            (r#""$above 0""#, "0.5", "0"),
            (r#""$count 2""#, "[1,2]", "[1]"),
            (r#"["allow","$any"]"#, r#"["allow",7]"#, r#"["allow"]"#),
            ("[]", "[]", "[1]"),
            (r#"{"$some":{"a":1}}"#, r#"[{"a":2},{"a":1}]"#, r#"[{"a":2}]"#),
            (r#"{"$not":"x"}"#, r#""y""#, r#""x""#),
            (r#""$.args.key""#, r#""$.args.key""#, r#""$.args""#),
        ] {
            assert!(holds(pattern, accepted), "{pattern} refuses {accepted}");
            assert!(!holds(pattern, refused), "{pattern} accepts {refused}");
        }
    }

    #[test]
    fn a_mismatch_names_its_position() {
        let pattern = json(r#"{"decisions":[{"decision":"allow"},{"decision":"block"}]}"#);
        let found = json(r#"{"decisions":[{"decision":"allow"},{"decision":"allow"}]}"#);
        let mismatch = compare(&pattern, &found).unwrap_err();
        assert_eq!(mismatch.to_string(), "at `/decisions/1/decision`: expected \"block\", found \"allow\"");
    }

    #[test]
    fn a_misspelt_matcher_is_an_error_whatever_the_answer_is() {
        for pattern in [r#""$presnt""#, r#""$count x""#, r#""$match (""#, r#""$any thing""#, r#"{"$sme":1}"#]
        {
            let mismatch = compare(&json(pattern), &Json::Null).unwrap_err();
            assert!(matches!(mismatch, Mismatch::UnknownMatcher { .. }), "{pattern}: {mismatch}");
        }
    }
}
