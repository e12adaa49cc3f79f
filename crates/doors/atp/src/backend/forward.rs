//! Forwarding of calls to a tool server, by the document's route.

use std::sync::Arc;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_net::http::client::{HttpClient, HttpOptions, HttpOptionsError, StatusCode};
use proctor_net::tls::ClientTls;
use proctor_wire::atp::ErrorCode;
use proctor_wire::atp::limits::MAX_MESSAGE;
use proctor_wire::atp::tool::{Call, CallShape, Reply};

use super::{CallFuture, Recorder, ToolBackend, ToolInfo, ToolResult, from_reply};

/// Settings of [`Forward`].
pub struct ForwardOptions<'a> {
    /// URL of the tool server; the name of the tool is appended to its path.
    pub url: &'a str,
    /// Task id of the calls.
    pub task_id: &'a str,
    /// The tools that the server is known to have, for listings.
    pub tools: Vec<ToolInfo>,
    /// Time limit of connecting, including TLS.
    pub connect_timeout: Duration,
    /// Trust and client certificate.
    pub tls: ClientTls,
    /// Writer of the calls and their results.
    pub recorder: Option<Arc<Recorder>>,
}

/// A client of a tool server. Redirects are refused, and a server on this machine is never reached through a proxy.
pub struct Forward {
    client: HttpClient,
    task_id: String,
    tools: Vec<ToolInfo>,
    recorder: Option<Arc<Recorder>>,
}

impl Forward {
    /// Checks the settings. Connections are made by the first call.
    pub fn new(options: ForwardOptions<'_>) -> Result<Forward, HttpOptionsError> {
        let client = HttpClient::new(&HttpOptions {
            url: options.url,
            credentials: None,
            connect_timeout: options.connect_timeout,
            max_reply: MAX_MESSAGE,
            tls: &options.tls,
        })?;
        Ok(Forward {
            client,
            task_id: options.task_id.to_owned(),
            tools: options.tools,
            recorder: options.recorder,
        })
    }

    async fn forward(&self, tool: &str, input: &Json) -> ToolResult {
        let Some(client) = self.client.below(tool) else { return ToolResult::UnknownTool };
        let call = Call {
            tool: tool.to_owned(),
            input: Some(input.clone()),
            task_id: Some(self.task_id.clone()),
            shape: CallShape::Document,
        };
        let (status, body) = match client.post(call.to_json().to_string()).await {
            Ok(answer) => answer,
            Err(error) => {
                return ToolResult::failed(
                    format!("the tool server did not answer: {error}"),
                    ErrorCode::ToolError,
                );
            }
        };
        if status.is_redirection() {
            let problem = format!("the tool server answered with a redirect ({status}), which is refused");
            return ToolResult::failed(problem, ErrorCode::ToolError);
        }
        match Reply::read(&body) {
            // A server may say with its status, too, that the tool failed.
            Ok(reply) => match from_reply(reply) {
                ToolResult::Success(_) if !status.is_success() => {
                    let problem = format!("the tool server answered {status} with a success");
                    ToolResult::failed(problem, ErrorCode::ToolError)
                }
                result => result,
            },
            Err(_) if status == StatusCode::NOT_FOUND => ToolResult::UnknownTool,
            Err(_) if !status.is_success() => {
                ToolResult::failed(format!("the tool server answered {status}"), ErrorCode::ToolError)
            }
            Err(error) => ToolResult::failed(
                format!("the tool server's reply cannot be read: {error}"),
                ErrorCode::ToolError,
            ),
        }
    }
}

impl ToolBackend for Forward {
    fn call<'a>(&'a self, tool: &'a str, input: &'a Json) -> CallFuture<'a> {
        Box::pin(async move {
            let result = self.forward(tool, input).await;
            let Some(recorder) = &self.recorder else { return result };
            match recorder.record(tool, input, &result).await {
                Ok(()) => result,
                // A recording with holes would replay another run.
                Err(error) => ToolResult::failed(
                    format!("the call was not recorded: {error}"),
                    ErrorCode::InternalError,
                ),
            }
        })
    }

    fn tools(&self) -> Vec<ToolInfo> {
        self.tools.clone()
    }
}
