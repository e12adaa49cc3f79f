//! Results of runs.

use proctor_core::json::Json;
use proctor_wire::agentcli::error::Code;

use super::capture::Output;

/// Run that was started, and has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    /// Whether the process, its verification and its evidence succeeded.
    pub is_ok: bool,
    /// Code of what failed after the process itself.
    pub code: Option<Code>,
    /// Identifier of the run.
    pub execution_id: String,
    /// The result as commands print it.
    pub json: Json,
    /// Captured standard output, masked, for conditions.
    pub(super) stdout: String,
    /// Whether the task failed in a way that another attempt may mend.
    pub(super) may_retry: bool,
}

/// End of a task's process, or of an agent's run.
#[derive(Debug, Clone, Default)]
pub(super) struct Ran {
    pub(super) is_ok: bool,
    pub(super) exit_code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) is_timed_out: bool,
    pub(super) is_cancelled: bool,
    /// Breach of what the manifest promises about output or cost, for people.
    pub(super) violation: Option<String>,
    pub(super) left_behind: u32,
    pub(super) duration_ms: u64,
    pub(super) stdout: Output,
    pub(super) stderr: Output,
    /// Whole captured output, for conditions.
    pub(super) text: String,
    pub(super) tokens: Option<u64>,
    pub(super) cost_usd: Option<rust_decimal::Decimal>,
}

impl Ran {
    /// The result as commands print it.
    pub(super) fn to_json(&self) -> Json {
        let mut out = self.head();
        for (name, output) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            out.push(name, output.text.as_str());
            out.push(&format!("{name}_bytes"), output.bytes);
            out.push(&format!("{name}_truncated"), !output.is_whole);
            out.push(&format!("{name}_path"), output.path.as_ref().map(|path| path.display().to_string()));
        }
        out
    }

    /// The result as it is recorded: previews only if the contract asks for more than decisions and ends.
    pub(super) fn to_record(&self, has_output: bool) -> Json {
        let mut out = self.head();
        for (name, output) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if has_output {
                out.push(name, output.recorded_text());
            }
            out.push(&format!("{name}_bytes"), output.bytes);
        }
        out
    }

    /// The result as evidence has it: digests instead of texts.
    pub(super) fn to_evidence(&self) -> Json {
        let mut out = self.head();
        for (name, output) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            out.push(&format!("{name}_hash"), output.digest.as_str());
            out.push(&format!("{name}_bytes"), output.bytes);
        }
        out
    }

    fn head(&self) -> Json {
        Json::object()
            .with("exit_code", self.exit_code.map(i64::from))
            .with("signal", self.signal.map(signal_name))
            .with("timed_out", self.is_timed_out)
            .with("cancelled", self.is_cancelled)
            .with("left_behind", self.left_behind)
            .with("duration_ms", self.duration_ms)
    }
}

/// Name of a signal, as clients know it; its number where it has none.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        other => return other.to_string(),
    };
    name.to_owned()
}
