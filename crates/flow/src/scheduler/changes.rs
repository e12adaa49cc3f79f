//! Differences between compiled jobs and the scheduler's rows.

use std::collections::{HashMap, HashSet};

use proctor_core::json::Json;
use proctor_wire::agentcli::canonical;

use super::capabilities::job_name;
use super::error::ApplyError;
use super::fields::FieldVersion;

/// How compiled jobs are matched with existing ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AdoptBy {
    /// By their compiled id.
    #[default]
    Id,
    /// By id, else by name: for jobs that were made by hand.
    Name,
}

impl AdoptBy {
    /// The word of the parameter `adoptBy`.
    pub fn from_word(word: &str) -> Option<AdoptBy> {
        match word {
            "id" => Some(AdoptBy::Id),
            "name" => Some(AdoptBy::Name),
            _ => None,
        }
    }
}

/// A field whose value differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldChange {
    pub(super) field: &'static str,
    pub(super) old: Json,
    pub(super) new: Json,
}

/// Match of a compiled job with an existing one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Match<'r> {
    /// No row.
    Missing,
    /// The row of the same id.
    SameId(&'r Json),
    /// The only row of the same name.
    SameName { id: &'r str, row: &'r Json },
}

/// Matches every job, in the order given.
pub(super) fn matches<'r>(
    jobs: &[&Json],
    rows: &'r [Json],
    adopt_by: AdoptBy,
) -> Result<Vec<Match<'r>>, ApplyError> {
    let text = |value: &'r Json, name: &str| value.get(name).and_then(Json::as_str);
    let by_id: HashMap<&str, &Json> =
        rows.iter().filter_map(|row| Some((text(row, "id").filter(|id| is_usable(id))?, row))).collect();
    let mut by_name: HashMap<&str, Vec<(&str, &Json)>> = HashMap::new();
    if adopt_by == AdoptBy::Name {
        unique_names(jobs)?;
        // A row that another compiled job owns by its id is never adopted: that would delete it.
        let compiled: HashSet<&str> =
            jobs.iter().filter_map(|job| job.get("id").and_then(Json::as_str)).collect();
        for (id, row) in &by_id {
            if let Some(name) = text(row, "name")
                && !compiled.contains(id)
            {
                by_name.entry(name).or_default().push((id, row));
            }
        }
    }
    let mut found = Vec::with_capacity(jobs.len());
    for job in jobs {
        let id = job.get("id").and_then(Json::as_str).unwrap_or_default();
        let name = job.get("name").and_then(Json::as_str).unwrap_or_default();
        let namesakes = by_name.get(name).map(Vec::as_slice).unwrap_or_default();
        if namesakes.len() > 1 {
            return Err(ApplyError::AmbiguousName("existing", job_name(job)));
        }
        found.push(match (by_id.get(id), namesakes.first()) {
            (Some(row), _) => Match::SameId(row),
            (None, Some((id, row))) => Match::SameName { id, row },
            (None, None) => Match::Missing,
        });
    }
    Ok(found)
}

fn unique_names(jobs: &[&Json]) -> Result<(), ApplyError> {
    let mut names = HashSet::new();
    for job in jobs {
        if !names.insert(job.get("name").and_then(Json::as_str).unwrap_or_default()) {
            return Err(ApplyError::AmbiguousName("compiled", job_name(job)));
        }
    }
    Ok(())
}

/// Fields of the job that an update of the row would change. Columns that the row does not have are not compared: the scheduler
/// ignores them.
pub(super) fn differences(job: &Json, row: &Json, fields: FieldVersion) -> Vec<FieldChange> {
    fields
        .names()
        .filter(|name| !matches!(*name, "id" | "origin"))
        .filter_map(|field| {
            let (old, new) = (row.get(field)?, &job[field]);
            (!is_equal(old, new)).then(|| FieldChange { field, old: old.clone(), new: new.clone() })
        })
        .collect()
}

/// Fields with a value that the scheduler has no column for.
pub(super) fn not_stored(job: &Json, row: &Json, fields: FieldVersion) -> Vec<&'static str> {
    fields.names().filter(|field| !job[field].is_null() && row.get(field).is_none()).collect()
}

/// Equality across representations: the database has numbers for booleans and texts for objects.
fn is_equal(old: &Json, new: &Json) -> bool {
    if old == new {
        return true;
    }
    match (old, new) {
        (Json::Bool(truth), Json::Number(_)) => number(new) == Some(f64::from(u8::from(*truth))),
        (Json::Number(_), Json::Bool(truth)) => number(old) == Some(f64::from(u8::from(*truth))),
        (Json::Number(_), Json::Number(_)) => number(old).is_some() && number(old) == number(new),
        (Json::String(text), Json::Object(_) | Json::Array(_)) => {
            Json::parse(text.as_bytes()).is_ok_and(|parsed| is_same_document(&parsed, new))
        }
        (Json::Object(_) | Json::Array(_), Json::Object(_) | Json::Array(_)) => is_same_document(old, new),
        _ => false,
    }
}

/// Equality of documents whatever the order of their members.
fn is_same_document(left: &Json, right: &Json) -> bool {
    matches!((canonical::text(left), canonical::text(right)), (Ok(left), Ok(right)) if left == right)
}

fn number(value: &Json) -> Option<f64> {
    match value {
        Json::Number(text) => text.parse().ok(),
        _ => None,
    }
}

/// Whether an id of a row can be an argument of a command.
fn is_usable(id: &str) -> bool {
    (1..=256).contains(&id.len()) && !id.starts_with('-') && !id.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn representations_of_the_database_are_equal_to_compiled_values() {
        for (old, new) in [
            ("true", "1"),
            ("0", "false"),
            ("5", "5.0"),
            (r#""{\"b\":1,\"a\":2}""#, r#"{"a":2,"b":1}"#),
            ("null", "null"),
        ] {
            assert!(is_equal(&json(old), &json(new)), "{old} {new}");
        }
        for (old, new) in [("true", "0"), (r#""{}""#, r#"{"a":1}"#), ("null", "0"), (r#""1""#, "1")] {
            assert!(!is_equal(&json(old), &json(new)), "{old} {new}");
        }
    }

    #[test]
    fn rows_of_other_compiled_jobs_are_never_adopted() {
        let jobs = [json(r#"{"id":"a","name":"n"}"#), json(r#"{"id":"b","name":"m"}"#)];
        let rows = [json(r#"{"id":"b","name":"n"}"#)];
        let jobs: Vec<&Json> = jobs.iter().collect();
        let found = matches(&jobs, &rows, AdoptBy::Name).unwrap();
        assert_eq!(found, [Match::Missing, Match::SameId(&rows[0])]);
    }

    #[test]
    fn ids_that_look_like_options_match_nothing() {
        let job = json(r#"{"id":"a","name":"n"}"#);
        let rows = [json(r#"{"id":"--all","name":"n"}"#), json(r#"{"name":"n"}"#), json("7")];
        assert_eq!(matches(&[&job], &rows, AdoptBy::Name).unwrap(), [Match::Missing]);
    }

    #[test]
    fn ambiguous_names_are_refused_on_both_sides() {
        let twice = [json(r#"{"id":"a","name":"n"}"#), json(r#"{"id":"b","name":"n"}"#)];
        let compiled: Vec<&Json> = twice.iter().collect();
        assert!(matches!(
            matches(&compiled, &[], AdoptBy::Name),
            Err(ApplyError::AmbiguousName("compiled", _))
        ));
        let job = json(r#"{"id":"c","name":"n"}"#);
        assert!(matches!(
            matches(&[&job], &twice, AdoptBy::Name),
            Err(ApplyError::AmbiguousName("existing", _))
        ));
        assert_eq!(matches(&[&job], &twice, AdoptBy::Id).unwrap(), [Match::Missing]);
    }
}
