//! The JSON document of a result as text, written test by test.

use std::fmt;

use proctor_core::json::Json;

use super::SuiteResult;
use super::write::{MAX_EVENT_BYTES, test_json};

/// Text of a result's document. The JSON of one test exists at a time: that of thousands would take many times the memory of the result.
pub struct Document<'d> {
    result: &'d SuiteResult,
    members: Vec<(&'static str, Json)>,
    results: Vec<(&'static str, &'d SuiteResult)>,
}

impl SuiteResult {
    /// The document as text: the same as that of [`SuiteResult::to_json`].
    pub fn document(&self) -> Document<'_> {
        Document { result: self, members: Vec::new(), results: Vec::new() }
    }
}

impl<'d> Document<'d> {
    /// The document with one more member behind its tests.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Json>) -> Document<'d> {
        self.members.push((name, value.into()));
        self
    }

    /// The document with another result as its last member.
    #[must_use]
    pub fn with_result(mut self, name: &'static str, result: &'d SuiteResult) -> Document<'d> {
        self.results.push((name, result));
        self
    }
}

impl fmt::Display for Document<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("{")?;
        for (name, value) in self.result.header_json().as_object().unwrap_or_default() {
            write!(out, "{}:{value},", Json::from(name.as_str()))?;
        }
        out.write_str("\"tests\":[")?;
        let mut left = MAX_EVENT_BYTES;
        for (index, test) in self.result.tests.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            // One call for each test: a stream that is not buffered gets few large parts.
            out.write_str(&format!("{comma}{}", test_json(test, &mut left)))?;
        }
        out.write_str("]")?;
        for (name, value) in &self.members {
            write!(out, ",{}:{value}", Json::from(*name))?;
        }
        for (name, result) in &self.results {
            write!(out, ",{}:{}", Json::from(*name), result.document())?;
        }
        out.write_str("}")
    }
}
