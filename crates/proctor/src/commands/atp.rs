//! `proctor atp`: schemas, validation of messages, check of agents.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use owo_colors::OwoColorize;
use proctor_core::json::Json;
use proctor_runner::agent_check::{Around, CheckReport, Outcome as DutyOutcome, check_agent, refuse_unknown};
use proctor_runner::suite::schema::SCHEMA as SUITE_SCHEMA;
use proctor_system::SystemRandomness;
use proctor_wire::atp::validate::{Kind, MAX_FILE, validate};
use proctor_wire::atp::{Strictness, schema};

use super::{Context, test};
use crate::cli::{AtpCommand, SandboxArg};
use crate::failure::{CHECKS_FAILED, Failure, OK, Outcome};
use crate::output::{self, shown};

/// Width of a reason, which repeats what an agent said.
const REASON_WIDTH: usize = 300;

/// Lines of the standard error of an agent that does not work.
const LAST_LINES: usize = 10;

pub(super) fn run(context: &Context, directory: &Path, command: &AtpCommand) -> Outcome {
    match command {
        AtpCommand::Schema { format } => output::data(match format.as_str() {
            "request" => schema::REQUEST.trim_end(),
            "response" => schema::RESPONSE.trim_end(),
            "event" => schema::EVENT.trim_end(),
            _ => SUITE_SCHEMA.trim_end(),
        })?,
        AtpCommand::Proto if context.json => output::data(Json::object().with("proto", schema::PROTO))?,
        AtpCommand::Proto => output::data(schema::PROTO.trim_end())?,
        AtpCommand::Validate { kind, file, strict } => return check_file(context, kind, file, *strict),
        AtpCommand::CheckAgent { address, timeout, sandbox, network } => {
            let settings = (Duration::from_secs((*timeout).into()), *sandbox, *network);
            return check(context, directory, address, settings);
        }
    }
    Ok(OK)
}

fn check_file(context: &Context, kind: &str, file: &Path, strict: bool) -> Outcome {
    let text = read(file)?;
    let strictness = if strict { Strictness::Strict } else { Strictness::Lenient };
    let kind = match kind {
        "request" => Kind::Request,
        "response" => Kind::Response,
        _ => Kind::Event,
    };
    let report = validate(kind, &text, strictness);
    if context.json {
        output::data(report.to_json())?;
    } else {
        output::data(format!("{}: {}", file.display(), report.verdict()))?;
        for line in report.lines() {
            output::data(format!("  {}", shown(&line, REASON_WIDTH)))?;
        }
    }
    Ok(if report.is_valid() { OK } else { CHECKS_FAILED })
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    let most = MAX_FILE as u64 + 1;
    let read = if file == Path::new("-") {
        std::io::stdin().lock().take(most).read_to_end(&mut text)
    } else {
        std::fs::File::open(file).and_then(|opened| opened.take(most).read_to_end(&mut text))
    };
    read.map_err(|error| Failure::io(file, &error))?;
    if text.len() > MAX_FILE {
        return Err(Failure::from(format!("{}: more than {MAX_FILE} bytes", file.display())));
    }
    Ok(text)
}

fn check(
    context: &Context,
    directory: &Path,
    address: &str,
    (timeout, mode, network): (Duration, SandboxArg, bool),
) -> Outcome {
    if !context.config.test_agents.iter().any(|(name, _)| name == address) {
        refuse_unknown(address).map_err(|error| Failure::from(error.to_string()))?;
    }
    let agent = test::resolve_agent(context, address, &[], directory)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::from(format!("the runtime cannot be started: {error}")))?;
    let scratch = test::scratch()?;
    let sandbox = test::sandbox(mode, &scratch, true)?;
    let hidden = test::hidden(context, &context.config.engine.state);
    let variables = std::env::vars_os().collect();
    let around = Around { sandbox: &sandbox, scratch, hidden, variables, network, timeout };
    let report = runtime
        .block_on(check_agent(&agent, &around, &SystemRandomness))
        .map_err(|error| Failure::from(format!("{}: {error}", agent.name)))?;
    if context.json {
        output::data(report.to_json())?;
    } else {
        print(&report)?;
    }
    Ok(if report.has_passed() { OK } else { CHECKS_FAILED })
}

fn print(report: &CheckReport) -> Result<(), Failure> {
    for result in report.results.iter().filter(|result| result.outcome != DutyOutcome::NotTried) {
        let word = format!("{:<14}", result.outcome.word());
        let word = match result.outcome {
            DutyOutcome::Passed => word.green().to_string(),
            DutyOutcome::Failed(_) => word.red().to_string(),
            DutyOutcome::NotApplicable(_) | DutyOutcome::NotTried => output::dim(&word),
        };
        let reason = result.outcome.reason().map(|reason| format!(": {}", shown(reason, REASON_WIDTH)));
        output::data(format!("{word}  {}{}", result.duty.text(), reason.unwrap_or_default()))?;
    }
    for line in report.last_lines.iter().rev().take(LAST_LINES).rev() {
        output::data(format!("  | {}", shown(line, REASON_WIDTH)))?;
    }
    report.not_tried().map_or(Ok(()), output::data)?;
    output::data(report.summary())
}
