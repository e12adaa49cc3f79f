//! Findings about a manifest beyond those of the protocol.
//!
//! They are warnings that follow the documented ones, and never make a manifest invalid. Any JSON value can be looked at, a manifest
//! with errors too. Work is linear in the size of the manifest; where it is cut short, a finding says so.
//!
//! | Code | Finding |
//! |---|---|
//! | `proctor_target_kind` | the scheduler refuses this kind of payload for this target |
//! | `proctor_cron_invalid` | the cron expression cannot be parsed |
//! | `proctor_cron_never_fires` | no date matches the cron expression |
//! | `proctor_timezone_unknown` | the time zone is not in the IANA database |
//! | `proctor_cycle` | tasks trigger each other in a circle, so that none of them ever runs |
//! | `proctor_secret` | a text holds a secret |
//! | `proctor_unchecked` | a check was cut short |

mod cron;
mod cycle;
mod secret;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use jiff::tz::TimeZoneDatabase;
use proctor_core::json::Json;
use proctor_wire::agentcli::finding::Finding;

use crate::text::readable;

/// Most findings of one code, so that a hostile manifest does not multiply itself.
const MAX_FINDINGS: usize = 1000;

/// Findings about a manifest, in the order of the document; those about secrets come last.
pub fn findings(manifest: &Json) -> Vec<Finding> {
    let mut lint = Lint::default();
    for (index, workflow) in items(manifest, "workflows").iter().enumerate() {
        let path = format!("$.workflows[{index}]");
        for (index, task) in items(workflow, "tasks").iter().enumerate() {
            lint.task(task, &format!("{path}.tasks[{index}]"));
        }
        cycle::find(workflow, &path, &mut lint.found);
    }
    if lint.schedules.is_exhausted() {
        lint.found.add("$.workflows", "proctor_unchecked", || {
            format!("more than {} different cron expressions: the rest was not checked", cron::MAX_PARSED)
        });
    }
    secret::find(manifest, &mut lint.found);
    lint.found.list
}

fn items<'j>(value: &'j Json, name: &str) -> &'j [Json] {
    value.get(name).and_then(Json::as_array).unwrap_or_default()
}

/// Findings, bounded for each code.
#[derive(Default)]
struct Found {
    list: Vec<Finding>,
    counts: HashMap<&'static str, usize>,
}

impl Found {
    fn add(&mut self, path: &str, code: &'static str, message: impl FnOnce() -> String) {
        let count = self.counts.entry(code).or_default();
        *count += 1;
        if *count < MAX_FINDINGS {
            self.list.push(Finding::new(path, code, message()));
        } else if *count == MAX_FINDINGS {
            let message = format!("further findings `{code}` are not listed");
            self.list.push(Finding::new(path, "proctor_unchecked", message));
        }
    }
}

#[derive(Default)]
struct Lint<'m> {
    found: Found,
    schedules: cron::Schedules<'m>,
    zones: HashMap<&'m str, bool>,
}

impl<'m> Lint<'m> {
    fn task(&mut self, task: &'m Json, path: &str) {
        self.target(&task["target"], task, path);
        let schedule = &task["schedule"];
        if let Some(expression) = schedule["cron"].as_str() {
            self.cron(expression, path);
        }
        if let Some(zone) = schedule["tz"].as_str() {
            self.zone(zone, path);
        }
        if let handler @ Json::Object(_) = &task["on_failure"] {
            self.target(&handler["target"], handler, &format!("{path}.on_failure"));
        }
    }

    fn target(&mut self, target: &Json, task: &Json, path: &str) {
        let inferred = if task["shell"].as_object().is_some() { "shell" } else { "isolated" };
        let session = target["session_target"].as_str().unwrap_or(inferred);
        let Some(kind) = target["payload_kind"].as_str() else { return };
        let fitting = match (session, kind) {
            ("main", "agentTurn" | "shellCommand") => "systemEvent",
            ("isolated", "shellCommand") => "agentTurn or systemEvent",
            _ => return,
        };
        self.found.add(&format!("{path}.target.payload_kind"), "proctor_target_kind", || {
            format!("the scheduler refuses `{kind}` for the target `{session}`: use {fitting}")
        });
    }

    fn cron(&mut self, expression: &'m str, path: &str) {
        // Blank texts are errors of the protocol.
        if expression.trim().is_empty() {
            return;
        }
        let (code, message) = match self.schedules.judge(expression) {
            cron::Verdict::Fires | cron::Verdict::Unchecked => return,
            cron::Verdict::Invalid => (
                "proctor_cron_invalid",
                "cannot be parsed: give minute, hour, day of month, month and day of week",
            ),
            cron::Verdict::Never => ("proctor_cron_never_fires", "never fires: no date matches it"),
        };
        self.found
            .add(&format!("{path}.schedule.cron"), code, || format!("`{}` {message}", readable(expression)));
    }

    fn zone(&mut self, zone: &'m str, path: &str) {
        if zone.trim().is_empty() {
            return;
        }
        let is_known = *self.zones.entry(zone).or_insert_with(|| is_zone(zone));
        if !is_known {
            self.found.add(&format!("{path}.schedule.tz"), "proctor_timezone_unknown", || {
                format!(
                    "`{}` is no time zone of the IANA database: use a name such as Europe/Berlin",
                    readable(zone)
                )
            });
        }
    }
}

fn is_zone(name: &str) -> bool {
    name.len() <= 64 && (name.eq_ignore_ascii_case("utc") || TimeZoneDatabase::bundled().get(name).is_ok())
}
