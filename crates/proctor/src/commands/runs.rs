//! `proctor runs`: suite runs on record.

use proctor_core::json::Json;
use proctor_engine::access::open_reader;
use proctor_runner::results::Counts;
use proctor_runs::SuiteRun;
use proctor_runs::history::{self, SuiteRunEnd};

use super::{Context, records, test};
use crate::cli::RunsCommand;
use crate::failure::{OK, Outcome};
use crate::output;

pub(super) fn run(context: &Context, command: &RunsCommand) -> Outcome {
    let result = |named: &str| test::store::recorded(context, named);
    match command {
        RunsCommand::List { limit } => {
            let state = &context.config.engine.state;
            // Before the first suite run there may be no state directory.
            let runs = if state.exists() { history::list(&open_reader(state)?, *limit)? } else { Vec::new() };
            if context.json {
                output::data(Json::from(runs.iter().map(SuiteRun::to_json).collect::<Vec<_>>()))?;
                return Ok(OK);
            }
            if runs.is_empty() {
                output::note("no suite run yet: `proctor test` records them");
            }
            for run in &runs {
                output::data(line(run))?;
            }
            Ok(OK)
        }
        RunsCommand::Show { run } => {
            let result = result(run)?;
            if context.json {
                output::data(result.document())?;
            } else {
                test::listing::print(&result)?;
            }
            Ok(OK)
        }
        RunsCommand::Export { run, report } => {
            let result = result(run)?;
            if report.is_empty() {
                output::data(result.document())?;
            }
            test::report::write(report, &result)?;
            Ok(OK)
        }
        RunsCommand::Compare { baseline, run, margin, fail_on_regression } => {
            let (before, after) = (result(baseline)?, result(run)?);
            test::report::compare(context, (baseline, &before), &after, *margin, *fail_on_regression)
        }
    }
}

fn line(run: &SuiteRun) -> String {
    let state = match run.end {
        None => "not ended".to_owned(),
        Some(SuiteRunEnd { passed, failed, errors, not_run, is_interrupted, .. }) => {
            let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
            let counts = Counts {
                passed: number(passed),
                failed: number(failed),
                errors: number(errors),
                not_run: number(not_run),
            };
            format!("{}{}", counts.sentence(), if is_interrupted { ", interrupted" } else { "" })
        }
    };
    let time = output::dim(&records::clock_time(run.started));
    let (suite, agent) = (output::shown(&run.suite, 30), output::shown(&run.agent, 30));
    format!("{}  {time}  {suite} with {agent}: {state}", run.id)
}
