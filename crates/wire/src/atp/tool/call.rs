//! Calls of tools.

use proctor_core::json::Json;

use super::Route;
use super::route::is_tool_name;
use crate::atp::Strictness;
use crate::atp::check::{Basis, Checker, shortened};
use crate::atp::findings::ProblemKind;
use crate::atp::limits::{MAX_TASK_ID, MAX_TOOL_NAME};
use crate::atp::path::Path;
use crate::atp::read::{ReadError, parse_json};

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Name of the tool.
    pub tool: String,
    /// Arguments; none if they are absent. The document has an object, released agents also send a text.
    pub input: Option<Json>,
    /// Task of the caller.
    pub task_id: Option<String>,
    /// The shape of the call, which the reply follows.
    pub shape: CallShape,
}

/// The shape of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallShape {
    /// `POST {endpoint}/{tool}` with `{task_id, input}`.
    Document,
    /// `POST {endpoint}/tools/call` with `{tool, input, task_id}`.
    Released,
}

impl Call {
    /// Reads the body of a call. Routes that are no call are refused as if the tool were missing.
    pub fn read(route: &Route, body: &[u8]) -> Result<Call, ReadError> {
        let json = parse_json(body)?;
        let mut checker = Checker::new(Strictness::Lenient);
        let mut call = Call { tool: String::new(), input: None, task_id: None, shape: CallShape::Released };
        if let Some(mut fields) = checker.object(Basis::Schema, &json, &Path::Root) {
            let named = match route {
                Route::CallNamed { tool } => Some(tool),
                _ => None,
            };
            // The route names the tool; a body that names it too must agree.
            let tool = match named {
                Some(_) => fields.text("tool", MAX_TOOL_NAME),
                None => fields.required_text("tool", MAX_TOOL_NAME),
            };
            match (named, tool) {
                (Some(named), Some(tool)) if named != tool => {
                    fields.problem_at("tool", Basis::Schema, ProblemKind::OtherTool(shortened(tool)));
                }
                (None, Some(tool)) if !tool.is_empty() && !is_tool_name(tool) => {
                    fields.problem_at("tool", Basis::Schema, ProblemKind::Control);
                }
                _ => {}
            }
            if named.is_some() {
                call.shape = CallShape::Document;
            }
            call.tool = named.cloned().or_else(|| tool.map(str::to_owned)).unwrap_or_default();
            call.task_id = fields.text("task_id", MAX_TASK_ID).map(str::to_owned);
        }
        if !checker.findings.is_valid() {
            return Err(ReadError::Invalid(Box::new(checker.findings)));
        }
        if let Json::Object(members) = json {
            let input = members.into_iter().find(|(name, _)| name == "input");
            call.input = input.map(|(_, value)| value).filter(|value| !value.is_null());
        }
        Ok(call)
    }

    /// The body of this call, for forwarding it in its own shape.
    pub fn to_json(&self) -> Json {
        let mut json = Json::object();
        if self.shape == CallShape::Released {
            json.push("tool", self.tool.as_str());
        }
        crate::atp::object::put(&mut json, "task_id", self.task_id.as_deref());
        crate::atp::object::put(&mut json, "input", self.input.clone());
        json
    }
}
