//! Calls of openclaw-scheduler's command line: one process a call, without a shell, bounded in time and output.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use proctor_core::json::Json;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::error::{CallError, CallProblem, InvocationError};
use crate::text::readable;

/// Time that one call may take.
pub const CALL_TIME: Duration = Duration::from_secs(30);
/// Largest answer of `jobs list`: rows have about two kilobytes, so that thousands of jobs fit, and a hostile answer fits into memory.
pub const MAX_LIST_BYTES: usize = 16 << 20;
/// Largest answer of every other call.
pub const MAX_ANSWER_BYTES: usize = 1 << 20;
/// Most JSON values in the answer of `jobs list`. A row has 86 columns.
const MAX_LIST_VALUES: usize = 400_000;
const MAX_ANSWER_VALUES: usize = 50_000;
/// Part of the standard error that is kept, for the message of a failed call.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Longest standard error that is read: a program that writes more would keep the call busy until its time is over.
const MAX_DRAINED_BYTES: usize = 16 << 20;
/// Longest argument that Linux passes to a program (`MAX_ARG_STRLEN`, the final NUL included).
const MAX_ARGUMENT_BYTES: usize = 131_071;

/// Options that say how the scheduler is started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invocation {
    /// Folder of an npm installation; takes precedence over `bin`.
    pub prefix: Option<String>,
    /// Program, or a `.js` file for node.
    pub bin: Option<String>,
    /// Database, passed as `SCHEDULER_DB`.
    pub db_path: Option<String>,
}

/// Client of one scheduler.
#[derive(Debug, Clone)]
pub struct Client {
    program: String,
    leading: Vec<String>,
    db_path: Option<String>,
    time: Duration,
}

impl Client {
    /// A client for that way of starting the scheduler. Nothing is started yet.
    pub fn new(invocation: &Invocation) -> Result<Client, InvocationError> {
        for (name, value) in [
            ("schedulerPrefix", &invocation.prefix),
            ("schedulerBin", &invocation.bin),
            ("dbPath", &invocation.db_path),
        ] {
            // A value that begins like an option would be read as one by npm or node.
            if let Some(value) = value
                && (value.trim().is_empty() || value.starts_with('-') || value.contains('\0'))
            {
                return Err(InvocationError { name, value: readable(value) });
            }
        }
        let (program, leading) = match (&invocation.prefix, &invocation.bin) {
            (Some(prefix), _) => (
                "npm".to_owned(),
                ["exec", "--prefix", prefix, "openclaw-scheduler", "--"].map(str::to_owned).to_vec(),
            ),
            (None, Some(bin)) if Path::new(bin).extension().is_some_and(|kind| kind == "js") => {
                ("node".to_owned(), vec![bin.clone()])
            }
            (None, Some(bin)) => (bin.clone(), Vec::new()),
            (None, None) => ("openclaw-scheduler".to_owned(), Vec::new()),
        };
        Ok(Client { program, leading, db_path: invocation.db_path.clone(), time: CALL_TIME })
    }

    /// The client with another bound on the time of a call.
    #[must_use]
    pub fn with_time(mut self, time: Duration) -> Client {
        self.time = time;
        self
    }

    /// Program and leading arguments, for people.
    pub fn label(&self) -> String {
        let mut label = self.program.clone();
        for argument in &self.leading {
            label.push(' ');
            label.push_str(argument);
        }
        label
    }

    /// The member `scheduler` of results.
    pub fn to_json(&self) -> Json {
        Json::object().with("command", self.label()).with("db_path", self.db_path.clone())
    }

    /// Answer of `capabilities`.
    pub async fn capabilities(&self) -> Result<Json, CallError> {
        Ok(self.call("capabilities", &["capabilities"], MAX_ANSWER_BYTES, MAX_ANSWER_VALUES).await?.value)
    }

    /// Rows of `jobs list`. An answer that is no array counts as empty, as the protocol says.
    pub async fn jobs(&self) -> Result<Vec<Json>, CallError> {
        Ok(self.rows().await?.unwrap_or_default())
    }

    /// Rows of `jobs list`; `None` if the answer is no array.
    pub async fn rows(&self) -> Result<Option<Vec<Json>>, CallError> {
        let answer = self.call("jobs list", &["jobs", "list"], MAX_LIST_BYTES, MAX_LIST_VALUES).await?;
        match answer.value {
            Json::Array(rows) => Ok(Some(rows)),
            // The protocol counts other values as no jobs, but a failure or silence is no list.
            Json::Null => Err(answer.problem(CallProblem::NotConfirmed)),
            ref value if value.get("ok") == Some(&Json::Bool(false)) => {
                answer.confirm()?;
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Creates a job.
    pub async fn add(&self, id: &str, job: &Json) -> Result<(), CallError> {
        let text = job.to_string();
        let answer =
            self.call("jobs add", &["jobs", "add", &text], MAX_ANSWER_BYTES, MAX_ANSWER_VALUES).await?;
        answer.confirm()?;
        // Children name their parent by its id: a job that got another one would have none.
        match answer.value.pointer("/job/id") {
            Some(Json::String(given)) if given != id => Err(answer.problem(CallProblem::OtherId)),
            _ => Ok(()),
        }
    }

    /// Changes fields of a job.
    pub async fn update(&self, id: &str, fields: &Json) -> Result<(), CallError> {
        let text = fields.to_string();
        self.call("jobs update", &["jobs", "update", id, &text], MAX_ANSWER_BYTES, MAX_ANSWER_VALUES)
            .await?
            .confirm()
    }

    /// Deletes a job: whether the scheduler says that it did. It says so for an unknown one too.
    pub async fn delete(&self, id: &str) -> Result<bool, CallError> {
        let answer =
            self.call("jobs delete", &["jobs", "delete", id], MAX_ANSWER_BYTES, MAX_ANSWER_VALUES).await?;
        answer.confirm()?;
        Ok(answer.value.get("deleted") == Some(&Json::Bool(true)))
    }

    async fn call(
        &self,
        name: &'static str,
        arguments: &[&str],
        bytes: usize,
        values: usize,
    ) -> Result<Answer, CallError> {
        let problem = |problem| CallError { command: name, problem };
        if let Some(longest) = arguments.iter().map(|argument| argument.len()).max()
            && longest > MAX_ARGUMENT_BYTES
        {
            return Err(problem(CallProblem::Argument { bytes: longest, limit: MAX_ARGUMENT_BYTES }));
        }
        let output = self.run(arguments, bytes).await.map_err(problem)?;
        let text = output.out.trim_ascii();
        if !output.success {
            return Err(problem(CallProblem::Failed(failure_text(text, &output.error))));
        }
        let value = if text.is_empty() {
            Json::Null
        } else {
            Json::parse_bounded(text, values).map_err(|error| problem(CallProblem::NotJson(error)))?
        };
        Ok(Answer { command: name, value })
    }

    async fn run(&self, arguments: &[&str], bytes: usize) -> Result<Output, CallProblem> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.leading)
            .arg("--json")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own, because npm starts the scheduler as a child.
            .process_group(0)
            .kill_on_drop(true);
        if let Some(path) = &self.db_path {
            command.env("SCHEDULER_DB", OsString::from(path));
        }
        let mut child = command.spawn().map_err(|error| CallProblem::Start { label: self.label(), error })?;
        let mut group = Group::of(&child);
        let (Some(out), Some(error)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(CallProblem::Read(std::io::Error::other("the pipes are missing")));
        };
        let work = async {
            tokio::try_join!(read_within(out, bytes), read_start(error), async {
                child.wait().await.map_err(CallProblem::Read)
            },)
        };
        let (out, error, status) =
            tokio::time::timeout(self.time, work).await.map_err(|_| CallProblem::Time(self.time))??;
        group.ended();
        Ok(Output { out, error, success: status.success() })
    }
}

struct Output {
    out: Vec<u8>,
    error: Vec<u8>,
    success: bool,
}

/// Parsed answer of a call that ended well.
struct Answer {
    command: &'static str,
    value: Json,
}

impl Answer {
    /// Only `ok: true` confirms a write.
    fn confirm(&self) -> Result<(), CallError> {
        match self.value.get("ok") {
            Some(Json::Bool(true)) => Ok(()),
            Some(Json::Bool(false)) => {
                let text = self.value.get("error").and_then(Json::as_str).unwrap_or("no reason given");
                Err(self.problem(CallProblem::Failed(readable(text))))
            }
            _ => Err(self.problem(CallProblem::NotConfirmed)),
        }
    }

    fn problem(&self, problem: CallProblem) -> CallError {
        CallError { command: self.command, problem }
    }
}

/// Process group of a call, killed when the call is given up.
struct Group(Option<rustix::process::Pid>);

impl Group {
    fn of(child: &tokio::process::Child) -> Group {
        Group(child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw))
    }

    /// The first process of the group was reaped: its number may belong to others now.
    fn ended(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // The group may have ended already.
            let _ended = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

async fn read_within(mut pipe: impl AsyncRead + Unpin, limit: usize) -> Result<Vec<u8>, CallProblem> {
    let mut bytes = Vec::new();
    let wanted = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    (&mut pipe).take(wanted).read_to_end(&mut bytes).await.map_err(CallProblem::Read)?;
    if bytes.len() > limit { Err(CallProblem::Size(limit)) } else { Ok(bytes) }
}

/// Keeps the start of a stream and reads the rest, so that the writer does not block.
async fn read_start(mut pipe: impl AsyncRead + Unpin) -> Result<Vec<u8>, CallProblem> {
    let mut kept = Vec::new();
    (&mut pipe).take(MAX_ERROR_BYTES as u64).read_to_end(&mut kept).await.map_err(CallProblem::Read)?;
    let mut rest = pipe.take(MAX_DRAINED_BYTES as u64);
    tokio::io::copy(&mut rest, &mut tokio::io::sink()).await.map_err(CallProblem::Read)?;
    if rest.limit() == 0 { Err(CallProblem::Size(MAX_DRAINED_BYTES)) } else { Ok(kept) }
}

/// Message of a failed call: the scheduler's own `error`, else the line of its trace that names the error, else the first line.
fn failure_text(out: &[u8], error: &[u8]) -> String {
    if let Ok(answer) = Json::parse_bounded(out, MAX_ANSWER_VALUES)
        && let Some(text) = answer.get("error").and_then(Json::as_str)
    {
        return readable(text);
    }
    let error = String::from_utf8_lossy(error);
    let mut lines = error.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.clone().next();
    let named = lines.find(|line| {
        line.split_once(':').is_some_and(|(class, _)| class.ends_with("Error") && !class.contains(' '))
    });
    readable(named.or(first).unwrap_or("no message"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(prefix: Option<&str>, bin: Option<&str>) -> Result<Client, InvocationError> {
        Client::new(&Invocation {
            prefix: prefix.map(str::to_owned),
            bin: bin.map(str::to_owned),
            db_path: None,
        })
    }

    #[test]
    fn prefix_script_program_and_path_are_started_as_the_protocol_says() {
        assert_eq!(
            client(Some("/opt/p"), Some("x")).unwrap().label(),
            "npm exec --prefix /opt/p openclaw-scheduler --"
        );
        assert_eq!(client(None, Some("/a/b.js")).unwrap().label(), "node /a/b.js");
        assert_eq!(client(None, Some("/a/b")).unwrap().label(), "/a/b");
        assert_eq!(client(None, None).unwrap().label(), "openclaw-scheduler");
    }

    #[test]
    fn values_that_would_be_read_as_options_are_refused() {
        assert!(client(None, Some("--eval=1.js")).is_err());
        assert!(client(Some("-g"), None).is_err());
        assert!(client(None, Some("a\0b")).is_err());
        assert!(client(None, Some(" ")).is_err());
    }

    #[test]
    fn the_reason_is_found_in_the_answer_or_in_the_trace() {
        assert_eq!(failure_text(br#"{"ok":false,"error":"bad JSON"}"#, b"noise"), "bad JSON");
        let trace = b"/app/jobs.js:10\n    throw e\n    ^\n\nValidationError: cron is wrong\n    at create (jobs.js:1:2)\n";
        assert_eq!(failure_text(b"", trace), "ValidationError: cron is wrong");
        assert_eq!(failure_text(b"", b"\n\nkilled\n"), "killed");
        assert_eq!(failure_text(b"", b""), "no message");
    }
}
