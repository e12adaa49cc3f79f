//! Reader of the JSON document of a result.
//!
//! Members that follow from others (counts, statistics) are not read: they are computed again. Members that this version does not know
//! are ignored, so that a document of a higher minor version can be a baseline.

use std::sync::Arc;
use std::time::Duration;

use proctor_core::json::{Json, JsonError};
use proctor_core::quoted;
use proctor_core::time::Timestamp;
use proctor_yaml::Position;

use super::isolation::{Isolation, ProtectionState, State};
use super::write::FORMAT;
use super::{SuiteResult, TestResult};
use crate::checks::{AssertionResult, CheckResult, Status};
use crate::execute::ReceivedJson;
use crate::run::{Attempt, MAX_SHOWN_EVENTS, RunResult};
use crate::scoring::{Ending, Measures, Part, Score, Verdict};

/// Bytes of a document: 10,000 tests with ten runs each fit.
pub const MAX_RESULT_BYTES: usize = 256 << 20;

/// Values in a document; each takes some tens of bytes of memory.
const MAX_VALUES: usize = 20_000_000;

/// Errors of documents that are no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReadError {
    /// The document is too large.
    #[error("more than {MAX_RESULT_BYTES} bytes")]
    TooLarge,
    /// The document is not JSON.
    #[error("not JSON: {0}")]
    Json(#[from] JsonError),
    /// The document is something else.
    #[error("not a result of `proctor test`; write one with `--report json=FILE`")]
    NotAResult,
    /// The document has a format of another major version.
    #[error("version {} of the format is not known; this program reads 1.x", quoted(.0))]
    Version(String),
    /// A member is absent.
    #[error("`{path}` is missing")]
    Missing {
        /// JSON path of the member.
        path: String,
    },
    /// A member has another type or value.
    #[error("`{path}` should be {expected}")]
    Wrong {
        /// JSON path of the member.
        path: String,
        /// Description of what it should be.
        expected: &'static str,
    },
}

impl SuiteResult {
    /// Reads the document that [`SuiteResult::to_json`] writes.
    pub fn read(text: &[u8]) -> Result<SuiteResult, ReadError> {
        if text.len() > MAX_RESULT_BYTES {
            return Err(ReadError::TooLarge);
        }
        let json = Json::parse_bounded(text, MAX_VALUES)?;
        if json.get("format").and_then(Json::as_str) != Some(FORMAT) {
            return Err(ReadError::NotAResult);
        }
        let root = Value { json: &json, path: Path::Root };
        let version = root.text("version")?;
        if version.split_once('.').is_none_or(|(major, _)| major != "1") {
            return Err(ReadError::Version(version));
        }
        let isolation = match root.optional("isolation") {
            Some(isolation) => read_isolation(&isolation)?,
            None => Isolation::default(),
        };
        Ok(SuiteResult {
            suite: root.text("suite")?,
            file: root.optional_text("file")?.unwrap_or_default(),
            agent: root.text("agent")?,
            tests: root.member("tests")?.each(read_test)?,
            is_interrupted: root.flag("interrupted")?,
            took: root.duration("duration_seconds")?,
            ended: match root.optional("ended") {
                Some(ended) => {
                    let time = ended.json.as_str().and_then(Timestamp::parse);
                    Some(time.ok_or_else(|| ended.wrong("a time"))?)
                }
                None => None,
            },
            isolation,
        })
    }
}

fn read_isolation(value: &Value<'_>) -> Result<Isolation, ReadError> {
    let protection = |value: &Value<'_>| {
        let state = value.member("state")?;
        Ok(ProtectionState {
            name: value.text("protection")?,
            state: match state.json.as_str() {
                Some("held") => State::Held(value.texts("by")?),
                Some("waived") => State::Waived,
                Some("missing") => State::Missing(value.text("reason")?),
                _ => return Err(state.wrong("`held`, `waived` or `missing`")),
            },
        })
    };
    Ok(Isolation {
        is_outside: value.flag("agent_is_outside")?,
        sandbox: value.optional_text("sandbox")?.unwrap_or_default(),
        protections: value.list("protections", protection)?,
    })
}

fn read_test(value: &Value<'_>) -> Result<TestResult, ReadError> {
    let verdict = value.member("verdict")?;
    let at = match value.optional("at") {
        Some(at) => Position { line: at.count("line")?, column: at.count("column")? },
        None => Position::default(),
    };
    Ok(TestResult {
        id: value.text("id")?,
        name: value.text("name")?,
        tags: value.texts("tags")?.into(),
        at,
        network: value.flag("network")?,
        verdict: match verdict.json.as_str() {
            Some("not_run") => None,
            _ => Some(read_verdict(&verdict)?),
        },
        not_run: value.optional_text("reason")?,
        required: value.count("required_passes")?,
        runs: value.member("runs")?.each(read_run)?,
        took: value.duration("duration_seconds")?,
    })
}

fn read_verdict(value: &Value<'_>) -> Result<Verdict, ReadError> {
    match value.json.as_str() {
        Some("passed") => Ok(Verdict::Passed),
        Some("failed") => Ok(Verdict::Failed),
        Some("error") => Ok(Verdict::Error),
        _ => Err(value.wrong("`passed`, `failed` or `error`")),
    }
}

fn read_ending(value: &Value<'_>) -> Result<Ending, ReadError> {
    Ok(match value.json.as_str() {
        Some("completed") => Ending::Completed,
        Some("partial") => Ending::Partial,
        Some("failed") => Ending::Failed,
        Some("timeout") => Ending::Timeout,
        Some("cancelled") => Ending::Cancelled,
        Some("stopped") => Ending::Stopped,
        Some("error") => Ending::Error,
        _ => return Err(value.wrong("a way in which an agent ends, as `completed`")),
    })
}

fn read_run(value: &Value<'_>) -> Result<RunResult, ReadError> {
    let number = value.member("run")?;
    let assertions = value.list("assertions", read_assertion)?;
    let score = match value.optional("score") {
        Some(score) => Some(Arc::new(read_score(&score, &assertions)?)),
        None => None,
    };
    let mut shown_events = value.list("shown_events", |event| {
        Ok(ReceivedJson { json: event.member("event")?.json.clone(), is_flawed: event.flag("flawed")? })
    })?;
    shown_events.truncate(MAX_SHOWN_EVENTS);
    let earlier_attempts = value.list("earlier_attempts", |attempt| {
        Ok(Attempt {
            task_id: attempt.text("task_id")?,
            error: attempt.text("error")?,
            took: attempt.duration("duration_seconds")?,
        })
    })?;
    Ok(RunResult {
        earlier_attempts,
        number: number
            .json
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .ok_or_else(|| number.wrong("the number of a run"))?,
        task_id: value.optional_text("task_id")?.unwrap_or_default(),
        verdict: read_verdict(&value.member("verdict")?)?,
        ending: read_ending(&value.member("ending")?)?,
        error: value.optional_text("error")?,
        last_lines: value.texts("last_lines")?,
        score,
        assertions: assertions.into(),
        trace_id: value.optional_text("trace_id")?,
        events: value.count("events")?,
        flawed_events: value.count("flawed_events")?,
        shown_events,
        measures: match value.optional("measures") {
            Some(measures) => read_measures(&measures)?,
            None => Measures::default(),
        },
        warnings: value.texts("warnings")?,
        took: value.duration("duration_seconds")?,
    })
}

fn read_measures(value: &Value<'_>) -> Result<Measures, ReadError> {
    let amount = |name: &'static str| match value.optional(name) {
        Some(amount) => amount.json.as_u64().map(Some).ok_or_else(|| amount.wrong("a whole number")),
        None => Ok(None),
    };
    let cost_usd = match value.optional("cost_usd") {
        Some(cost) => Some(cost.number()?),
        None => None,
    };
    Ok(Measures { steps: amount("steps")?, tokens: amount("tokens")?, cost_usd })
}

fn read_assertion(value: &Value<'_>) -> Result<AssertionResult, ReadError> {
    let status = value.member("status")?;
    let score = value.optional("score");
    Ok(AssertionResult {
        name: value.text("name")?,
        status: match status.json.as_str() {
            Some("passed") => Status::Passed,
            Some("failed") => Status::Failed,
            Some("error") => Status::Error,
            _ => return Err(status.wrong("`passed`, `failed` or `error`")),
        },
        score: score.map_or(Ok(0.0), |score| score.number())?,
        critical: value.flag("critical")?,
        optional: value.flag("optional")?,
        checks: value.list("checks", |check| {
            Ok(CheckResult {
                name: check.text("name")?,
                passed: check.flag("passed")?,
                score: check.optional("score").map_or(Ok(0.0), |score| score.number())?,
                message: check.text("message")?,
                details: check.json.get("details").cloned().unwrap_or(Json::Null),
            })
        })?,
    })
}

/// The score of a run. Numbers of failures and errors follow from the assertions, as when the run was scored.
fn read_score(value: &Value<'_>, assertions: &[AssertionResult]) -> Result<Score, ReadError> {
    let components = value.member("components")?;
    let part = |name: &'static str| {
        let part = components.member(name)?;
        Ok::<Part, ReadError>(Part {
            normalized: part.member("normalized")?.number()?,
            weight: part.member("weight")?.number()?,
            details: part.json.get("details").cloned().unwrap_or(Json::Null),
        })
    };
    let is_left_out = |result: &&AssertionResult| result.status == Status::Error && result.optional;
    let left_out = assertions.iter().filter(is_left_out).count();
    let count = |status| assertions.iter().filter(|result| result.status == status).count();
    let critical = assertions
        .iter()
        .filter(|result| !is_left_out(result) && result.critical && result.status != Status::Passed);
    Ok(Score {
        points: value.member("final_score")?.number()?,
        quality: part("quality")?,
        completeness: part("completeness")?,
        efficiency: part("efficiency")?,
        cost: part("cost")?,
        failures: count(Status::Failed),
        errors: count(Status::Error) - left_out,
        left_out,
        critical: critical.map(|result| result.name.clone()).collect(),
    })
}

/// A value of the document and its path, for messages.
#[derive(Clone, Copy)]
struct Value<'v> {
    json: &'v Json,
    path: Path<'v>,
}

#[derive(Clone, Copy)]
enum Path<'v> {
    Root,
    Member(&'v Path<'v>, &'static str),
    Item(&'v Path<'v>, usize),
}

impl std::fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Path::Root => out.write_str("$"),
            Path::Member(parent, name) => write!(out, "{parent}.{name}"),
            Path::Item(parent, index) => write!(out, "{parent}[{index}]"),
        }
    }
}

impl Value<'_> {
    fn wrong(&self, expected: &'static str) -> ReadError {
        ReadError::Wrong { path: self.path.to_string(), expected }
    }

    /// A member; absent and null are the same.
    fn optional(&self, name: &'static str) -> Option<Value<'_>> {
        let json = self.json.get(name).filter(|json| !json.is_null())?;
        Some(Value { json, path: Path::Member(&self.path, name) })
    }

    fn member(&self, name: &'static str) -> Result<Value<'_>, ReadError> {
        let path = || Path::Member(&self.path, name).to_string();
        self.optional(name).ok_or_else(|| ReadError::Missing { path: path() })
    }

    fn text(&self, name: &'static str) -> Result<String, ReadError> {
        let value = self.member(name)?;
        value.json.as_str().map(ToOwned::to_owned).ok_or_else(|| value.wrong("a text"))
    }

    fn optional_text(&self, name: &'static str) -> Result<Option<String>, ReadError> {
        self.optional(name).map(|_| self.text(name)).transpose()
    }

    fn flag(&self, name: &'static str) -> Result<bool, ReadError> {
        let Some(value) = self.optional(name) else { return Ok(false) };
        value.json.as_bool().ok_or_else(|| value.wrong("true or false"))
    }

    fn count(&self, name: &'static str) -> Result<usize, ReadError> {
        let Some(value) = self.optional(name) else { return Ok(0) };
        let count = value.json.as_u64().and_then(|count| usize::try_from(count).ok());
        count.ok_or_else(|| value.wrong("a whole number"))
    }

    fn number(&self) -> Result<f64, ReadError> {
        let number = match self.json {
            Json::Number(literal) => literal.parse::<f64>().ok().filter(|number| number.is_finite()),
            _ => None,
        };
        number.ok_or_else(|| self.wrong("a number"))
    }

    fn duration(&self, name: &'static str) -> Result<Duration, ReadError> {
        let Some(value) = self.optional(name) else { return Ok(Duration::ZERO) };
        Duration::try_from_secs_f64(value.number()?).map_err(|_| value.wrong("a number of seconds"))
    }

    fn texts(&self, name: &'static str) -> Result<Vec<String>, ReadError> {
        self.list(name, |item| item.json.as_str().map(ToOwned::to_owned).ok_or_else(|| item.wrong("a text")))
    }

    /// The items of a list that may be absent.
    fn list<T>(
        &self,
        name: &'static str,
        read: impl Fn(&Value<'_>) -> Result<T, ReadError>,
    ) -> Result<Vec<T>, ReadError> {
        self.optional(name).map_or_else(|| Ok(Vec::new()), |value| value.each(read))
    }

    fn each<T>(&self, read: impl Fn(&Value<'_>) -> Result<T, ReadError>) -> Result<Vec<T>, ReadError> {
        let items = self.json.as_array().ok_or_else(|| self.wrong("a list"))?;
        let item = |(index, json)| read(&Value { json, path: Path::Item(&self.path, index) });
        items.iter().enumerate().map(item).collect()
    }
}
