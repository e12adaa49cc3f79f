//! Encoding of messages to the harness.

use serde::Serialize;

use super::error::{AhpError, Result};

/// An encoded request or notification.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    /// The request id; none for a notification.
    pub(super) id: Option<String>,
    pub(super) method: &'static str,
    /// The params, as JSON text.
    pub(super) params: String,
}

impl Outgoing {
    pub(super) fn new<P: Serialize + ?Sized>(
        id: Option<String>,
        method: &'static str,
        params: &P,
    ) -> Result<Outgoing> {
        let params = serde_json::to_string(params)
            .map_err(|error| AhpError::Serialization(format!("the message is no JSON: {error}")))?;
        Ok(Outgoing { id, method, params })
    }

    /// The whole message, on one line without a newline.
    #[cfg(any(feature = "ahp-stream", feature = "http"))]
    pub(super) fn text(&self) -> String {
        let Outgoing { id, method, params } = self;
        match id {
            Some(id) => {
                let id = proctor_core::json::Json::from(id.as_str());
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
            }
            None => format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#),
        }
    }
}

#[cfg(all(test, any(feature = "ahp-stream", feature = "http")))]
mod tests {
    use super::*;

    #[test]
    fn requests_are_one_line_with_string_ids() {
        let request = Outgoing::new(Some("a\"\n".to_owned()), "ahp/event", &["x\ny"]).unwrap();
        assert_eq!(
            request.text(),
            r#"{"jsonrpc":"2.0","id":"a\"\n","method":"ahp/event","params":["x\ny"]}"#
        );
        let notification = Outgoing::new(None, "ahp/event", &()).unwrap();
        assert_eq!(notification.text(), r#"{"jsonrpc":"2.0","method":"ahp/event","params":null}"#);
    }
}
