//! The tool protocol: calls of tools that an agent makes over HTTP, in the document's shape and in that of released platforms.
//!
//! ```
//! use proctor_wire::atp::tool::{Call, Reply, Route};
//!
//! let route = Route::parse("POST", "/web_search", "").unwrap();
//! let call = Call::read(&route, br#"{"task_id": "t", "input": {"query": "q"}}"#).unwrap();
//! assert_eq!((call.tool.as_str(), call.task_id.as_deref()), ("web_search", Some("t")));
//! let reply = Reply::success("found".into()).with_duration_ms(3);
//! assert_eq!(reply.to_json(&call).to_string(), r#"{"status":"success","output":"found","duration_ms":3}"#);
//! ```

mod call;
mod listing;
mod reply;
mod route;

pub use call::{Call, CallShape};
pub use listing::{Record, ToolInfo, cleared, healthy, not_found, records, tools};
pub use reply::{Outcome, Reply};
pub use route::{RecordFilter, Route, RouteError};

#[cfg(test)]
mod tests;
