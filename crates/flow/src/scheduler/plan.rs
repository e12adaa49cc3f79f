//! Plan: the difference that an apply would make, as JSON and as text. Nothing is written, and no proof is verified.

use std::fmt::Write as _;

use proctor_core::json::Json;
use proctor_policy::scan::Scanner;

use super::apply::{ActionKind, Options, Prepared, action, invocation_mode};
use super::changes::{self, FieldChange, Match};
use super::client::Client;
use super::error::ApplyError;
use crate::text::readable;

/// Longest value in the text of a plan, in characters.
const MAX_VALUE_CHARACTERS: usize = 120;

/// Differences between a manifest and the scheduler's jobs, without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    scheduler: Json,
    capabilities: Json,
    handoff: Json,
    warnings: Vec<String>,
    jobs: Vec<PlannedJob>,
}

/// One job of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PlannedJob {
    change: Change,
    job_id: String,
    adopted_from: Option<String>,
    name: String,
    is_triggered: bool,
    fields: Vec<FieldChange>,
    not_stored: Vec<&'static str>,
}

/// Kind of a planned change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Action(ActionKind),
    Unchanged,
}

impl Change {
    const fn word(self) -> &'static str {
        match self {
            Change::Action(kind) => kind.word(),
            Change::Unchanged => "unchanged",
        }
    }

    const fn sign(self) -> char {
        match self {
            Change::Action(ActionKind::Created) => '+',
            Change::Action(ActionKind::Updated) => '~',
            Change::Action(ActionKind::Adopted) => '>',
            Change::Unchanged => ' ',
        }
    }
}

/// Compares a manifest with the scheduler's jobs.
pub async fn plan(client: &Client, manifest: &Json, options: Options) -> Result<Plan, ApplyError> {
    let prepared = Prepared::of(client, manifest, options).await?;
    let jobs = prepared.jobs();
    let rows = client.jobs().await?;
    let matches = changes::matches(&jobs, &rows, options.adopt_by)?;
    let fields = prepared.capabilities.fields;
    let planned = jobs.iter().zip(&matches).map(|(job, found)| {
        let action = action(job, found, None);
        let row = match found {
            Match::Missing => None,
            Match::SameId(row) | Match::SameName { row, .. } => Some(*row),
        };
        let differences = match row {
            Some(row) => changes::differences(job, row, fields),
            None => fields
                .names()
                .filter(|name| *name != "id" && !job[name].is_null())
                .map(|field| FieldChange { field, old: Json::Null, new: job[field].clone() })
                .collect(),
        };
        let is_unchanged = matches!(found, Match::SameId(_)) && differences.is_empty();
        PlannedJob {
            change: if is_unchanged { Change::Unchanged } else { Change::Action(action.kind) },
            job_id: action.job_id,
            adopted_from: action.adopted_from,
            name: readable(&action.name),
            is_triggered: action.is_triggered,
            fields: differences.iter().map(without_secrets).collect(),
            not_stored: row.map(|row| changes::not_stored(job, row, fields)).unwrap_or_default(),
        }
    });
    Ok(Plan {
        scheduler: client.to_json(),
        capabilities: prepared.capabilities.to_json(),
        handoff: fields.to_json(),
        warnings: prepared.capabilities.warnings().to_vec(),
        jobs: planned.collect(),
    })
}

fn without_secrets(change: &FieldChange) -> FieldChange {
    let cut = |value: &Json| Scanner::standard().redact_json(value, "$", &|_| false).0;
    FieldChange { field: change.field, old: cut(&change.old), new: cut(&change.new) }
}

impl Plan {
    /// Whether an apply would change anything.
    pub fn changes_anything(&self) -> bool {
        self.jobs.iter().any(|job| job.change != Change::Unchanged)
    }

    /// The plan as JSON.
    pub fn to_json(&self) -> Json {
        Json::object()
            .with("ok", true)
            .with("target", "openclaw-scheduler")
            .with("scheduler", self.scheduler.clone())
            .with("capabilities", self.capabilities.clone())
            .with("handoff", self.handoff.clone())
            .with("job_count", self.jobs.len())
            .with("summary", self.summary())
            .with("changes", self.jobs.iter().map(PlannedJob::to_json).collect::<Vec<Json>>())
    }

    fn summary(&self) -> Json {
        let mut summary = Json::object();
        for (change, count) in self.counts() {
            summary.push(change.word(), count);
        }
        summary
    }

    fn counts(&self) -> [(Change, usize); 4] {
        [
            Change::Action(ActionKind::Created),
            Change::Action(ActionKind::Updated),
            Change::Action(ActionKind::Adopted),
            Change::Unchanged,
        ]
        .map(|change| (change, self.jobs.iter().filter(|job| job.change == change).count()))
    }

    /// The plan for people: one line a job, one line a changed field.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for job in &self.jobs {
            job.write(&mut text);
        }
        for warning in &self.warnings {
            // Writing to a string does not fail, here and below.
            let _infallible = writeln!(text, "warning: {warning}");
        }
        let counts: Vec<String> =
            self.counts().iter().map(|(change, count)| format!("{count} {}", change.word())).collect();
        let _infallible = writeln!(text, "{}", counts.join(", "));
        text
    }
}

impl PlannedJob {
    fn to_json(&self) -> Json {
        let mut json = Json::object().with("action", self.change.word()).with("job_id", self.job_id.as_str());
        if let Some(from) = &self.adopted_from {
            json.push("adopted_from_job_id", readable(from));
        }
        json.push("name", self.name.as_str());
        json.push("invocation_mode", invocation_mode(self.is_triggered));
        let fields = self.fields.iter().map(|change| {
            Json::object()
                .with("field", change.field)
                .with("old", change.old.clone())
                .with("new", change.new.clone())
        });
        json.push("fields", fields.collect::<Vec<Json>>());
        if !self.not_stored.is_empty() {
            json.push(
                "not_stored",
                self.not_stored.iter().map(|name| Json::from(*name)).collect::<Vec<Json>>(),
            );
        }
        json
    }

    fn write(&self, text: &mut String) {
        let from = self.adopted_from.as_ref().map(|id| format!(" from {}", readable(id))).unwrap_or_default();
        let _infallible = writeln!(
            text,
            "{} {} {} ({}, {}){from}",
            self.change.sign(),
            self.change.word(),
            self.name,
            self.job_id,
            invocation_mode(self.is_triggered)
        );
        for change in &self.fields {
            let _infallible = match self.change {
                Change::Action(ActionKind::Created) => {
                    writeln!(text, "    {}: {}", change.field, short(&change.new))
                }
                _ => writeln!(text, "    {}: {} -> {}", change.field, short(&change.old), short(&change.new)),
            };
        }
        if !self.not_stored.is_empty() {
            let _infallible =
                writeln!(text, "    not stored by this scheduler: {}", self.not_stored.join(", "));
        }
    }
}

/// A value on one line, truncated. Secrets were cut before.
fn short(value: &Json) -> String {
    let text = value.to_string();
    if text.chars().count() <= MAX_VALUE_CHARACTERS {
        return text;
    }
    text.chars().take(MAX_VALUE_CHARACTERS).chain(['…']).collect()
}
