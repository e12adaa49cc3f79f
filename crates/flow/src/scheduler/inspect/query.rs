//! Parameters of an inspection.

use proctor_core::json::Json;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

/// Rows that are read when no limit is given.
const DEFAULT_LIMIT: u32 = 20;
/// Most fields of one query.
const MAX_FIELDS: usize = 256;
/// Deepest dotted path.
const MAX_FIELD_DEPTH: usize = 16;

/// Kinds of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Entity {
    /// Jobs.
    #[default]
    Jobs,
    /// Runs of jobs.
    Runs,
    /// Dispatches that wait or were done.
    Queue,
    /// Approvals.
    Approvals,
}

impl Entity {
    const ALL: [Entity; 4] = [Entity::Jobs, Entity::Runs, Entity::Queue, Entity::Approvals];

    /// The word of the parameter.
    pub const fn word(self) -> &'static str {
        match self {
            Entity::Jobs => "jobs",
            Entity::Runs => "runs",
            Entity::Queue => "queue",
            Entity::Approvals => "approvals",
        }
    }

    pub(super) const fn table(self) -> &'static str {
        match self {
            Entity::Queue => "job_dispatch_queue",
            other => other.word(),
        }
    }

    /// Column by which rows are ordered, the latest first.
    pub(super) const fn order(self) -> &'static str {
        match self {
            Entity::Jobs | Entity::Queue => "created_at",
            Entity::Runs => "started_at",
            Entity::Approvals => "requested_at",
        }
    }
}

/// Treatment of texts in the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sanitize {
    /// Texts as they are.
    #[default]
    None,
    /// Without colours and control characters, and with broken code fences.
    Basic,
}

/// A parameter that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// No such entity.
    #[error("`entity` is one of jobs, runs, queue, approvals")]
    Entity,
    /// The limit is no positive integer.
    #[error("`limit` is a positive integer")]
    Limit,
    /// The fields are no list of names.
    #[error("`fields` is an array of column names, or a text with commas between them")]
    Fields,
    /// No such treatment.
    #[error("`sanitize` is `none` or `basic`")]
    Sanitize,
}

/// An inspection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Kind of rows.
    pub entity: Entity,
    /// Most rows.
    pub limit: u32,
    /// Columns, or dotted paths into columns that hold JSON; `None` means all columns.
    pub fields: Option<Vec<String>>,
    /// Treatment of texts.
    pub sanitize: Sanitize,
}

impl Default for Query {
    fn default() -> Query {
        Query { entity: Entity::Jobs, limit: DEFAULT_LIMIT, fields: None, sanitize: Sanitize::None }
    }
}

impl Query {
    /// Reads the parameters `entity`, `limit`, `fields`, `sanitize`; null is absent.
    pub fn from_params(params: &Json) -> Result<Query, QueryError> {
        let mut query = Query::default();
        match &params["entity"] {
            Json::Null => {}
            value => {
                let word = value.as_str().ok_or(QueryError::Entity)?;
                query.entity =
                    Entity::ALL.into_iter().find(|entity| entity.word() == word).ok_or(QueryError::Entity)?;
            }
        }
        query.limit = match &params["limit"] {
            Json::Null => DEFAULT_LIMIT,
            value => read_limit(value).ok_or(QueryError::Limit)?,
        };
        query.fields = match &params["fields"] {
            Json::Null => None,
            value => Some(read_fields(value).ok_or(QueryError::Fields)?),
        };
        query.sanitize = match &params["sanitize"] {
            Json::Null => Sanitize::None,
            value if *value == "none" => Sanitize::None,
            value if *value == "basic" => Sanitize::Basic,
            _ => return Err(QueryError::Sanitize),
        };
        Ok(query)
    }

    /// Columns that the fields begin with; `None` means all.
    pub(super) fn columns(&self) -> Option<Vec<&str>> {
        let fields = self.fields.as_ref()?;
        Some(
            fields
                .iter()
                .map(|field| field.split_once('.').map_or(field.as_str(), |(column, _)| column))
                .collect(),
        )
    }

    /// The fields of a row, as nested objects. Unknown ones are left out.
    pub(super) fn project(&self, row: Json) -> Json {
        let Some(fields) = &self.fields else { return row };
        let mut item = Json::object();
        for field in fields {
            let path: Vec<&str> = field.split('.').collect();
            if let Some(value) = follow(&row, &path) {
                put(&mut item, &path, value);
            }
        }
        item
    }
}

fn read_limit(value: &Json) -> Option<u32> {
    let number = match value {
        // A whole number is one in every spelling: `2.0`, `2e0`.
        Json::Number(text) => value.as_u64().or_else(|| whole(text.as_ref()))?,
        Json::String(text) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse::<u64>().ok()?
        }
        _ => return None,
    };
    (number > 0).then(|| u32::try_from(number).unwrap_or(u32::MAX))
}

fn whole(number: &str) -> Option<u64> {
    let number = number.parse().or_else(|_| Decimal::from_scientific(number)).ok()?;
    number.is_integer().then(|| number.to_u64())?
}

fn read_fields(value: &Json) -> Option<Vec<String>> {
    let names: Vec<&str> = match value {
        Json::String(text) => text.split(',').collect(),
        Json::Array(items) => items.iter().map(Json::as_str).collect::<Option<Vec<&str>>>()?,
        _ => return None,
    };
    let names: Vec<String> =
        names.into_iter().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let is_fit = (1..=MAX_FIELDS).contains(&names.len())
        && names.iter().all(|name| name.len() <= 512 && name.split('.').count() <= MAX_FIELD_DEPTH);
    is_fit.then_some(names)
}

/// The value at a path. Text that holds a JSON object or array is followed into.
fn follow(value: &Json, path: &[&str]) -> Option<Json> {
    let Some((name, rest)) = path.split_first() else { return Some(value.clone()) };
    match value {
        Json::Object(_) => follow(value.get(name)?, rest),
        Json::String(text) if text.starts_with(['{', '[']) => {
            follow(&Json::parse_bounded(text.as_bytes(), 10_000).ok()?, path)
        }
        _ => None,
    }
}

/// Puts a value at a path; a shorter path that is there already stays as it is.
fn put(item: &mut Json, path: &[&str], value: Json) {
    let (Json::Object(members), Some((name, rest))) = (item, path.split_first()) else { return };
    let position = members.iter().position(|(key, _)| key == name).unwrap_or_else(|| {
        let empty = if rest.is_empty() { Json::Null } else { Json::object() };
        members.push(((*name).to_owned(), empty));
        members.len() - 1
    });
    let Some((_, member)) = members.get_mut(position) else { return };
    if rest.is_empty() {
        *member = value;
    } else {
        put(member, rest, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn parameters_are_read_as_documented() {
        assert_eq!(Query::from_params(&json("{}")).unwrap(), Query::default());
        let query = Query::from_params(&json(
            r#"{"entity":"queue","limit":"7","fields":" id , identity.subject.kind,","sanitize":"basic"}"#,
        ))
        .unwrap();
        assert_eq!((query.entity, query.limit, query.sanitize), (Entity::Queue, 7, Sanitize::Basic));
        assert_eq!(query.fields.unwrap(), ["id", "identity.subject.kind"]);
        for (bad, error) in [
            (r#"{"entity":"messages"}"#, QueryError::Entity),
            (r#"{"entity":1}"#, QueryError::Entity),
            (r#"{"limit":0}"#, QueryError::Limit),
            (r#"{"limit":1e400}"#, QueryError::Limit),
            (r#"{"limit":1.5}"#, QueryError::Limit),
            (r#"{"limit":-1}"#, QueryError::Limit),
            (r#"{"limit":"2x"}"#, QueryError::Limit),
            (r#"{"limit":""}"#, QueryError::Limit),
            (r#"{"fields":[1]}"#, QueryError::Fields),
            (r#"{"fields":" , "}"#, QueryError::Fields),
            (r#"{"fields":{}}"#, QueryError::Fields),
            (r#"{"sanitize":"all"}"#, QueryError::Sanitize),
        ] {
            assert_eq!(Query::from_params(&json(bad)).unwrap_err(), error, "{bad}");
        }
    }

    #[test]
    fn dotted_fields_build_nested_objects() {
        let row = json(r#"{"id":"a","identity":"{\"subject\":{\"kind\":\"agent\",\"x\":1}}","name":"n"}"#);
        let query = |fields: &[&str]| Query {
            fields: Some(fields.iter().map(|name| (*name).to_owned()).collect()),
            ..Query::default()
        };
        assert_eq!(
            query(&["identity.subject.kind", "identity.subject.x", "id", "gone", "name.x"])
                .project(row.clone())
                .to_string(),
            r#"{"identity":{"subject":{"kind":"agent","x":1}},"id":"a"}"#
        );
        assert_eq!(query(&["id"]).project(row).to_string(), r#"{"id":"a"}"#);
    }
}
