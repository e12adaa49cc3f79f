//! Compiled jobs, cut to the fields that a version of the handoff has.

use proctor_core::json::Json;
use proctor_wire::agentcli::compile::handoff;

/// Objects that the scheduler keeps as JSON text.
const DOCUMENTS: [&str; 4] = ["identity", "authorization_proof", "authorization", "evidence"];

/// Version of the handoff: a set of fields, each containing the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FieldVersion {
    /// 41 fields.
    V1,
    /// 67 fields: identity, proof, authorization, evidence, contract, verification.
    V2,
    /// 70 fields: risk level, approver scope, output format.
    V3,
}

impl FieldVersion {
    /// The smallest version that has all fields that are set.
    pub(super) fn required_by(jobs: &[Json]) -> FieldVersion {
        let any = |fields: &[&str]| jobs.iter().any(|job| fields.iter().any(|field| is_declared(job, field)));
        if any(&handoff::V3_ADDED) {
            FieldVersion::V3
        } else if any(&handoff::V2_ADDED) {
            FieldVersion::V2
        } else {
            FieldVersion::V1
        }
    }

    /// The version as it is sent.
    pub(super) const fn word(self) -> &'static str {
        match self {
            FieldVersion::V1 => "1",
            FieldVersion::V2 => "2",
            FieldVersion::V3 => "3",
        }
    }

    /// Names of the fields, in their order.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        let v2: &[&str] = if self >= FieldVersion::V2 { &handoff::V2_ADDED } else { &[] };
        let v3: &[&str] = if self >= FieldVersion::V3 { &handoff::V3_ADDED } else { &[] };
        handoff::V1.iter().chain(v2).chain(v3).copied()
    }

    /// Fields of the job that are set and not part of this version.
    pub(super) fn unsent(self, job: &Json) -> impl Iterator<Item = &'static str> {
        let v2: &[&str] = if self < FieldVersion::V2 { &handoff::V2_ADDED } else { &[] };
        let v3: &[&str] = if self < FieldVersion::V3 { &handoff::V3_ADDED } else { &[] };
        v2.iter().chain(v3).copied().filter(|field| is_declared(job, field))
    }

    /// The member `handoff` of results.
    pub(super) fn to_json(self) -> Json {
        Json::object()
            .with("field_version", self.word())
            .with("projected_fields", self.names().count())
            .with("v02_fields_included", self >= FieldVersion::V2)
    }

    /// The argument of `jobs add`: nulls left out, `enabled` as a boolean, documents as text.
    pub(super) fn creation(self, job: &Json, origin: Option<&str>) -> Json {
        let mut fields = Json::object();
        for name in self.names() {
            let value = match name {
                "origin" => origin.map_or_else(|| job[name].clone(), Json::from),
                "enabled" => Json::Bool(is_set(&job[name])),
                _ => value(job, name),
            };
            if !value.is_null() {
                fields.push(name, value);
            }
        }
        fields
    }

    /// The argument of `jobs update`: everything but id and origin, nulls included.
    pub(super) fn update(self, job: &Json) -> Json {
        let mut fields = Json::object();
        for name in self.names().filter(|name| !matches!(*name, "id" | "origin")) {
            fields.push(name, value(job, name));
        }
        fields
    }
}

fn value(job: &Json, name: &str) -> Json {
    let value = &job[name];
    if DOCUMENTS.contains(&name) && !value.is_null() {
        return Json::String(value.to_string());
    }
    value.clone()
}

/// Whether a field is set for the choice of a version: not null.
fn is_declared(job: &Json, field: &str) -> bool {
    !job[field].is_null()
}

/// Whether a value asks for something: neither null, false, 0 nor empty.
pub(super) fn is_set(value: &Json) -> bool {
    match value {
        Json::Null => false,
        Json::Bool(truth) => *truth,
        Json::Number(text) => text.parse::<f64>().is_ok_and(|number| number != 0.0),
        Json::String(text) => !text.is_empty(),
        Json::Array(_) | Json::Object(_) => true,
    }
}
