//! The program, and an agent's library.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use proctor_wire::assembly::frames::{ClientFrame, ServerDecoder, ServerFrame};
use proctor_wire::assembly::handshake;
use proctor_wire::assembly::proto::common::v1::{ActionType, Decision};
use proctor_wire::assembly::proto::policy::v1::{CheckActionRequest, CheckActionResponse};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::assembly_runtime::AGENT;

/// The program under its name, in a folder of its own.
pub(crate) struct Program {
    child: Child,
    pub(crate) socket: PathBuf,
    pub(crate) said: watch::Receiver<String>,
    pub(crate) folder: tempfile::TempDir,
}

pub(crate) fn command(folder: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Command {
    let link = folder.join("aa-runtime");
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_proctor"), &link).unwrap();
    }
    let mut command = Command::new(link);
    command.env_clear().envs(variables.iter().copied()).args(arguments).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

impl Program {
    pub(crate) async fn start(
        folder: tempfile::TempDir,
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> Program {
        let socket = folder.path().join("runtime.sock");
        let mut all = vec![("AA_AGENT_ID", AGENT), ("AA_POLICY_PATH", "")];
        all.extend(variables.iter().copied());
        let mut command = command(folder.path(), &all, &["--socket", socket.to_str().unwrap()]);
        let mut child = command.args(arguments).spawn().unwrap();
        let (sender, said) = watch::channel(String::new());
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                sender.send_modify(|said| said.push_str(&(line + "\n")));
            }
        });
        let program = Program { child, socket, said, folder };
        program.says("listening on").await;
        program
    }

    /// Waits until the program has said this.
    pub(crate) async fn says(&self, text: &str) {
        let mut said = self.said.clone();
        let found =
            tokio::time::timeout(Duration::from_secs(30), said.wait_for(|said| said.contains(text))).await;
        assert!(matches!(found, Ok(Ok(_))), "`{text}` was not said, but: {}", *self.said.borrow());
    }

    pub(crate) async fn library(&self) -> Library {
        let mut library = self.first_library().await;
        let challenge = library.frame().await;
        library.send(&handshake::answer(AGENT, "0.0.1", &challenge).unwrap()).await;
        library.send(&ClientFrame::Heartbeat).await;
        library
    }

    /// A library that sends no proof, and expects no challenge.
    pub(crate) async fn first_library(&self) -> Library {
        Library { stream: UnixStream::connect(&self.socket).await.unwrap(), decoder: ServerDecoder::new() }
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.id().unwrap()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    pub(crate) async fn ends(&mut self) -> ExitStatus {
        tokio::time::timeout(Duration::from_secs(30), self.child.wait()).await.unwrap().unwrap()
    }
}

pub(crate) struct Library {
    stream: UnixStream,
    decoder: ServerDecoder,
}

impl Library {
    pub(crate) async fn send(&mut self, frame: &ClientFrame) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes).unwrap();
        self.stream.write_all(&bytes).await.unwrap();
    }

    /// Sends bytes as they are.
    pub(crate) async fn bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    pub(crate) async fn frame(&mut self) -> ServerFrame {
        loop {
            if let Some(frame) = self.decoder.next_frame().unwrap() {
                return frame;
            }
            let mut chunk = vec![0; 65536];
            let read = tokio::time::timeout(Duration::from_secs(30), self.stream.read(&mut chunk)).await;
            let length = read.expect("the runtime says nothing").unwrap();
            assert!(length > 0, "the runtime closed the connection");
            assert!(self.decoder.feed(&chunk[..length]).is_empty());
        }
    }

    pub(crate) async fn answer(&mut self) -> CheckActionResponse {
        match self.frame().await {
            ServerFrame::PolicyResponse(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn ask(&mut self, request: CheckActionRequest) -> CheckActionResponse {
        self.send(&ClientFrame::PolicyQuery(request)).await;
        self.answer().await
    }

    pub(crate) async fn trace(&mut self, trace_id: &str) -> CheckActionResponse {
        self.ask(tracing(trace_id)).await
    }
}

pub(crate) fn tracing(trace_id: &str) -> CheckActionRequest {
    CheckActionRequest {
        trace_id: trace_id.into(),
        span_id: "s".into(),
        action_type: ActionType::ToolCall.into(),
        ..Default::default()
    }
}

pub(crate) fn denied_by(answer: &CheckActionResponse) -> &str {
    assert_eq!(answer.decision(), Decision::Deny, "{answer:?}");
    assert!(!answer.reason.is_empty(), "{answer:?}");
    &answer.policy_rule
}
