//! Operations that are paused or terminated.

use std::collections::BTreeMap;

use proctor_core::json::Json;

use super::super::row::{Items, Row, Text, quoted, unquote};
use super::{Bounds, FOLD};
use crate::question::Stop;

/// Prefix of their rows' keys; those of agents begin with a quote.
const PREFIX: &str = "op";

#[derive(Debug, Default)]
pub(super) struct Operations {
    /// Stopped operations, and whether they are terminated.
    stopped: BTreeMap<Box<str>, bool>,
    /// Number of them that have the form `trace:span`.
    spans: usize,
}

impl Operations {
    pub(super) fn apply(&mut self, bounds: Bounds, change: &str, operation: &str, rows: &mut Vec<Row>) {
        let before = self.stopped.get(operation).copied();
        let after = match (change, before) {
            ("paused", None) => Some(false),
            ("terminated", _) => Some(true),
            ("resumed", Some(false)) => None,
            _ => return,
        };
        let is_new = before.is_none();
        if operation.is_empty() || before == after || (is_new && !self.has_room(bounds, operation)) {
            return;
        }
        match after {
            Some(is_terminated) => {
                rows.push(row(operation, is_terminated));
                self.put(operation, is_terminated);
            }
            None => {
                rows.push(Row::delete(FOLD, &key(operation)));
                self.stopped.remove(operation);
                self.spans -= usize::from(is_span(operation));
            }
        }
    }

    fn has_room(&self, bounds: Bounds, operation: &str) -> bool {
        if is_span(operation) {
            self.spans < bounds.operations
        } else {
            // Only people name agents, so that this bound is for mistakes; stopping everything is always possible.
            operation == "*" || self.stopped.len() - self.spans <= bounds.agents
        }
    }

    fn put(&mut self, operation: &str, is_terminated: bool) -> bool {
        let is_new = self.stopped.insert(operation.into(), is_terminated).is_none();
        self.spans += usize::from(is_new && is_span(operation));
        is_new
    }

    pub(super) fn is_empty(&self) -> bool {
        self.stopped.is_empty()
    }

    pub(super) fn list(&self) -> impl Iterator<Item = (&str, bool)> {
        self.stopped.iter().map(|(operation, is_terminated)| (&**operation, *is_terminated))
    }

    /// Stop of one of these operations, if any; termination takes precedence over a pause.
    pub(super) fn stop(&self, operations: &[&str]) -> Option<Stop> {
        let found = operations.iter().filter_map(|name| Some((*name, *self.stopped.get(*name)?)));
        // The last of equal ones would be found, so they are looked through from the end: the first of them is named.
        let (name, is_terminated) = found.rev().max_by_key(|(_, is_terminated)| *is_terminated)?;
        let word = if is_terminated { "terminated" } else { "paused" };
        Some(Stop { rule: format!("operation.{word}"), reason: format!("operation `{name}` is {word}") })
    }

    pub(super) fn rows(&self, rows: &mut Vec<Row>) {
        rows.extend(self.list().map(|(operation, is_terminated)| row(operation, is_terminated)));
    }

    pub(super) fn load(&mut self, key: &str, value: &Json) -> Option<()> {
        let (operation, rest) = unquote(key.strip_prefix(PREFIX)?)?;
        let mut items = Items::of(value)?;
        let is_terminated = match items.int::<u8>()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        items.end()?;
        (rest.is_empty() && self.put(&operation, is_terminated)).then_some(())
    }
}

fn is_span(operation: &str) -> bool {
    operation != "*" && !operation.starts_with("agent:")
}

fn key(operation: &str) -> String {
    format!("{PREFIX}{}", quoted(operation))
}

fn row(operation: &str, is_terminated: bool) -> Row {
    Row::put(FOLD, &key(operation), Text::new().int(u8::from(is_terminated)))
}
