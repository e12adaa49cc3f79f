//! Error codes of responses and tool replies.

use std::fmt;

/// An error code: one of the document's, or another text that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// Malformed request.
    InvalidRequest,
    /// The requested tool is not available.
    ToolNotFound,
    /// The tool failed, or the call was denied.
    ToolError,
    /// A call of a model failed.
    LlmError,
    /// The time limit was exceeded.
    Timeout,
    /// The cost budget was exceeded.
    BudgetExceeded,
    /// Unexpected internal error.
    InternalError,
    /// A code that the document does not have.
    Other(String),
}

impl ErrorCode {
    /// The document's codes.
    pub const STANDARD: [ErrorCode; 7] = [
        ErrorCode::InvalidRequest,
        ErrorCode::ToolNotFound,
        ErrorCode::ToolError,
        ErrorCode::LlmError,
        ErrorCode::Timeout,
        ErrorCode::BudgetExceeded,
        ErrorCode::InternalError,
    ];

    /// The code as it is written in messages.
    pub fn as_str(&self) -> &str {
        match self {
            ErrorCode::InvalidRequest => "INVALID_REQUEST",
            ErrorCode::ToolNotFound => "TOOL_NOT_FOUND",
            ErrorCode::ToolError => "TOOL_ERROR",
            ErrorCode::LlmError => "LLM_ERROR",
            ErrorCode::Timeout => "TIMEOUT",
            ErrorCode::BudgetExceeded => "BUDGET_EXCEEDED",
            ErrorCode::InternalError => "INTERNAL_ERROR",
            ErrorCode::Other(text) => text,
        }
    }
}

impl From<&str> for ErrorCode {
    fn from(text: &str) -> ErrorCode {
        let standard = ErrorCode::STANDARD.into_iter().find(|code| code.as_str() == text);
        standard.unwrap_or_else(|| ErrorCode::Other(text.to_owned()))
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_survives() {
        for code in ErrorCode::STANDARD {
            assert_eq!(ErrorCode::from(code.as_str()), code);
        }
        assert_eq!(ErrorCode::from("tool_error"), ErrorCode::Other("tool_error".to_owned()));
        assert_eq!(ErrorCode::from("X").to_string(), "X");
    }
}
