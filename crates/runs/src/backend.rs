//! Tools behind the endpoints of a suite run: mock tools of the suite, then a tool server or a recording of one.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proctor_core::json::Json;
use proctor_door_atp::SecretCutter;
use proctor_door_atp::backend::{
    CallFuture, Forward, ForwardOptions, Recorder, Replay, ReplayError, ToolBackend, ToolInfo, ToolResult,
};
use proctor_net::http::client::HttpOptionsError;
use proctor_net::tls::ClientTls;
use proctor_runner::suite::{MockReply, MockStatus, MockTool};

/// Time limit of connecting to a tool server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Tools that are not mock tools.
#[derive(Clone, Default)]
pub struct ToolSource {
    kind: Kind,
}

#[derive(Clone, Default)]
enum Kind {
    /// There are none.
    #[default]
    None,
    /// A tool server, and a file that its answers are written to.
    Server { url: String, file: Option<Arc<Mutex<File>>> },
    /// A recording.
    Replay { file: Arc<[u8]> },
}

/// Error of preparing the tools.
#[derive(Debug, thiserror::Error)]
pub enum ToolSourceError {
    /// The address of the tool server is wrong.
    #[error("the address of the tools: {0}")]
    Url(#[from] HttpOptionsError),
    /// A file cannot be used.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The recording cannot be read.
    #[error("{path}: {source}")]
    Replay {
        /// The file.
        path: String,
        /// The mistake.
        source: ReplayError,
    },
}

impl ToolSource {
    /// Tools of a server; `recording` is a file that calls and answers are written to.
    pub fn server(url: &str, recording: Option<&Path>) -> Result<ToolSource, ToolSourceError> {
        let file = recording.map(File::create).transpose().map_err(|source| {
            let path = recording.map(|path| path.display().to_string()).unwrap_or_default();
            ToolSourceError::Io { path, source }
        })?;
        let source = ToolSource {
            kind: Kind::Server { url: url.to_owned(), file: file.map(|file| Arc::new(Mutex::new(file))) },
        };
        // The address is checked here, not at the first call.
        forward(url, "", None)?;
        Ok(source)
    }

    /// Whether calls go to a server.
    pub(crate) fn is_server(&self) -> bool {
        matches!(self.kind, Kind::Server { .. })
    }

    /// Answers of a recording; a call that is not in it is an error.
    pub fn replay(path: &Path) -> Result<ToolSource, ToolSourceError> {
        let name = || path.display().to_string();
        let bytes = std::fs::read(path).map_err(|source| ToolSourceError::Io { path: name(), source })?;
        Replay::read(bytes.as_slice(), Arc::new(|json| json))
            .map_err(|source| ToolSourceError::Replay { path: name(), source })?;
        Ok(ToolSource { kind: Kind::Replay { file: bytes.into() } })
    }

    /// The tools of one run.
    pub(crate) fn backend(
        &self,
        mock_tools: &Arc<[MockTool]>,
        task_id: &str,
        cut_secrets: &SecretCutter,
    ) -> Result<Arc<dyn ToolBackend>, ToolSourceError> {
        let others: Option<Arc<dyn ToolBackend>> = match &self.kind {
            Kind::None => None,
            Kind::Server { url, file } => {
                let recorder = match file {
                    None => None,
                    Some(file) => {
                        let file = file.lock().unwrap_or_else(PoisonError::into_inner).try_clone();
                        let file = file.map_err(|source| ToolSourceError::Io {
                            path: "--record-tools".to_owned(),
                            source,
                        })?;
                        Some(Arc::new(Recorder::new(Box::new(file), Arc::clone(cut_secrets))))
                    }
                };
                Some(Arc::new(forward(url, task_id, recorder)?))
            }
            Kind::Replay { file } => {
                let replay = Replay::read(BufReader::new(&file[..]), Arc::clone(cut_secrets));
                let replay = replay.map_err(|source| ToolSourceError::Replay {
                    path: "--replay-tools".to_owned(),
                    source,
                })?;
                Some(Arc::new(replay))
            }
        };
        Ok(Arc::new(RunTools { mock_tools: Arc::clone(mock_tools), calls: Mutex::default(), others }))
    }
}

fn forward(url: &str, task_id: &str, recorder: Option<Arc<Recorder>>) -> Result<Forward, HttpOptionsError> {
    Forward::new(ForwardOptions {
        url,
        task_id,
        tools: Vec::new(),
        connect_timeout: CONNECT_TIMEOUT,
        tls: ClientTls::default(),
        recorder,
    })
}

/// Mock tools, and other tools for all other names.
struct RunTools {
    mock_tools: Arc<[MockTool]>,
    /// Number of calls of each mock tool.
    calls: Mutex<HashMap<String, u64>>,
    others: Option<Arc<dyn ToolBackend>>,
}

impl ToolBackend for RunTools {
    fn call<'a>(&'a self, tool: &'a str, input: &'a Json) -> CallFuture<'a> {
        let Some(mock) = self.mock_tools.iter().find(|mock| mock.name == tool) else {
            return match &self.others {
                Some(others) => others.call(tool, input),
                None => Box::pin(async { ToolResult::UnknownTool }),
            };
        };
        Box::pin(async move {
            let number = {
                let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
                let number = calls.entry(tool.to_owned()).or_default();
                *number += 1;
                *number
            };
            let reply = mock.answer(input, number);
            if reply.delay_ms > 0 {
                tokio::time::sleep(Duration::from_millis(reply.delay_ms)).await;
            }
            result(reply)
        })
    }

    fn tools(&self) -> Vec<ToolInfo> {
        let mut tools: Vec<ToolInfo> = self
            .mock_tools
            .iter()
            .map(|mock| ToolInfo {
                name: mock.name.clone(),
                description: Some(mock.description.clone()).filter(|text| !text.is_empty()),
            })
            .collect();
        if let Some(others) = &self.others {
            let more = others.tools().into_iter();
            tools.extend(more.filter(|tool| !self.mock_tools.iter().any(|mock| mock.name == tool.name)));
        }
        tools
    }
}

fn result(reply: &MockReply) -> ToolResult {
    let error = reply.error.clone();
    match (reply.status, error) {
        (MockStatus::Success, _) => ToolResult::Success(reply.output.clone()),
        (MockStatus::Error, error) => ToolResult::Failed {
            error: error.unwrap_or_else(|| "the tool failed".to_owned()),
            code: None,
            details: None,
            output: Some(reply.output.clone()).filter(|output| !output.is_null()),
        },
    }
}
