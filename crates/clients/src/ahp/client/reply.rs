//! Decoding of replies.

use proctor_core::json::Json;
use proctor_wire::ahp::rpc::RpcError;

use super::error::AhpError;

/// The content of a reply: a result, or an error.
pub(super) type Answer = std::result::Result<Json, Fault>;

/// A reply without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// The harness's error.
    Refused(RpcError),
    /// A reply that violates the protocol.
    Malformed(String),
}

impl Fault {
    pub(super) fn into_error(self, method: &'static str) -> AhpError {
        match self {
            Fault::Refused(RpcError { code, message, data }) => AhpError::Rpc { method, code, message, data },
            Fault::Malformed(problem) => AhpError::Protocol(problem),
        }
    }
}

/// The request id of a reply. None for everything else: other messages, log lines, and ids that are no strings, because this client
/// sends only strings.
#[cfg(feature = "ahp-stream")]
pub(super) fn replied_to(message: &Json) -> Option<&str> {
    if message.get("method").is_some() {
        return None;
    }
    message.get("id").and_then(Json::as_str)
}

/// Decodes a reply. An error takes precedence over a result.
pub(super) fn answer(message: Json) -> Answer {
    let Json::Object(members) = message else {
        return Err(Fault::Malformed("the reply is no object".to_owned()));
    };
    let (mut version, mut result, mut error) = (None, None, None);
    for (name, value) in members {
        match name.as_str() {
            "jsonrpc" => version = Some(value),
            "result" => result = Some(value),
            "error" => error = Some(value),
            _ => {}
        }
    }
    if version.as_ref().and_then(Json::as_str) != Some("2.0") {
        return Err(Fault::Malformed("the reply is no JSON-RPC 2.0".to_owned()));
    }
    match (error, result) {
        (Some(error), _) if !error.is_null() => Err(match RpcError::from_json(&error) {
            Ok(error) => Fault::Refused(error),
            Err(problem) => Fault::Malformed(format!("the reply's error cannot be read: {problem}")),
        }),
        (_, Some(result)) if !result.is_null() => Ok(result),
        _ => Err(Fault::Malformed("the reply has no result".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Answer {
        answer(Json::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn replies_are_checked() {
        let broken = |text: &str| match read(text) {
            Err(Fault::Malformed(problem)) => problem,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":"1","result":1,"error":null}"#), Ok(Json::from(1u64)));
        assert!(broken(r#"{"jsonrpc":"1.0","id":"1","result":1}"#).contains("2.0"));
        assert!(broken(r#"{"id":"1","result":1}"#).contains("2.0"));
        assert!(broken(r#"{"jsonrpc":"2.0","id":"1"}"#).contains("no result"));
        assert!(broken(r#"{"jsonrpc":"2.0","id":"1","result":null}"#).contains("no result"));
        assert!(
            broken(r#"{"jsonrpc":"2.0","id":"1","error":{"code":99999999999,"message":"m"}}"#)
                .contains("code")
        );
        assert!(broken("[]").contains("object"));
    }

    #[test]
    fn an_error_wins_and_keeps_code_and_data() {
        let fault =
            read(r#"{"jsonrpc":"2.0","id":"1","result":1,"error":{"code":-7,"message":"m","data":{"a":1}}}"#);
        let Err(Fault::Refused(error)) = fault else { panic!("{fault:?}") };
        assert_eq!((error.code, error.message.as_str()), (-7, "m"));
        assert_eq!(error.data.unwrap().to_string(), r#"{"a":1}"#);
    }
}
