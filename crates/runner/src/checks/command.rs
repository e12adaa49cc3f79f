//! Checks that run a command: `pytest`, `npm`, `lint`, `custom_command`, `code_exec`.

use proctor_core::json::Json;
use proctor_core::printable::shown;

use super::counts::{self, Counts};
use super::files::WorkspacePath;
use super::pattern::{PatternError, compile};
use super::result::{CheckError, CheckResult};

/// Exit codes of a shell for a program that cannot be run or does not exist.
const NOT_RUN: [i32; 2] = [126, 127];

/// A check that runs a command.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandCheck {
    /// The command and the reading of its result.
    pub kind: CommandKind,
    /// Share of tests that must pass.
    pub threshold: f64,
    /// Time limit.
    pub timeout_seconds: u32,
    /// Directory below the workspace.
    pub working_dir: Option<WorkspacePath>,
}

/// Kinds of commands.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandKind {
    /// Python tests.
    Pytest {
        /// File or directory, with an optional `::NAME`.
        path: WorkspacePath,
        /// Further arguments.
        args: Vec<String>,
    },
    /// JavaScript tests.
    Npm {
        /// The command's words.
        command: Vec<String>,
    },
    /// Any command.
    Custom {
        /// The command's words.
        command: Vec<String>,
        /// Regular expression with named groups `passed`, `failed`, `total`, `skipped`, `errors`.
        pattern: Option<String>,
        /// Regular expression that the output must match.
        success_pattern: Option<String>,
        /// Whether the exit code must be 0.
        expect_zero: bool,
    },
    /// A linter.
    Lint {
        /// The program.
        linter: Linter,
        /// File or directory.
        path: WorkspacePath,
        /// Further arguments.
        args: Vec<String>,
        /// Most violations.
        max_violations: u64,
        /// Most errors among them.
        max_errors: u64,
    },
}

/// Supported linters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linter {
    /// ruff, for Python.
    Ruff,
    /// ESLint, for JavaScript.
    Eslint,
}

impl Linter {
    /// The words in suites.
    pub const WORDS: [&'static str; 2] = ["ruff", "eslint"];

    /// The linter of this name.
    pub fn named(word: &str) -> Option<Linter> {
        match word {
            "ruff" => Some(Linter::Ruff),
            "eslint" => Some(Linter::Eslint),
            _ => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Linter::Ruff => "ruff",
            Linter::Eslint => "eslint",
        }
    }
}

/// A command to run in a sandboxed copy of the workspace, without a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandNeed {
    /// Program and arguments. The program is looked up outside of the workspace, so that an agent cannot replace it.
    pub words: Vec<String>,
    /// Directory below the workspace.
    pub working_dir: Option<WorkspacePath>,
    /// Time limit.
    pub timeout_seconds: u32,
}

/// The end of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandOutcome {
    /// The command ended by itself.
    Exited {
        /// Exit code.
        code: i32,
        /// Standard output.
        stdout: String,
        /// Standard error.
        stderr: String,
    },
    /// A signal ended the command.
    Signalled {
        /// The signal's number.
        signal: i32,
        /// Standard error.
        stderr: String,
    },
    /// The time limit was reached.
    TimedOut,
    /// The program does not exist.
    NotFound {
        /// The program.
        program: String,
    },
    /// The command could not be started.
    NotStarted {
        /// The reason.
        reason: String,
    },
}

impl CommandOutcome {
    /// The same outcome with other texts.
    pub(crate) fn map_texts(self, map: impl Fn(&str) -> String) -> CommandOutcome {
        match self {
            CommandOutcome::Exited { code, stdout, stderr } => {
                CommandOutcome::Exited { code, stdout: map(&stdout), stderr: map(&stderr) }
            }
            CommandOutcome::Signalled { signal, stderr } => {
                CommandOutcome::Signalled { signal, stderr: map(&stderr) }
            }
            CommandOutcome::TimedOut => CommandOutcome::TimedOut,
            CommandOutcome::NotFound { program } => CommandOutcome::NotFound { program: map(&program) },
            CommandOutcome::NotStarted { reason } => CommandOutcome::NotStarted { reason: map(&reason) },
        }
    }
}

/// The exit code and the outputs.
struct Exited<'o> {
    code: i32,
    stdout: &'o str,
    stderr: &'o str,
}

impl CommandCheck {
    /// The command that the check depends on.
    pub fn need(&self) -> CommandNeed {
        let fixed = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let words = match &self.kind {
            CommandKind::Pytest { path, args } => {
                let mut words = fixed(&["pytest", "--color=no"]);
                words.extend(args.iter().cloned());
                words.push(argument(path));
                words
            }
            CommandKind::Npm { command } | CommandKind::Custom { command, .. } => command.clone(),
            CommandKind::Lint { linter, path, args, .. } => {
                let mut words = match linter {
                    Linter::Ruff => fixed(&["ruff", "check", "--no-cache", "--output-format=json"]),
                    Linter::Eslint => fixed(&["eslint", "--format=json"]),
                };
                words.extend(args.iter().cloned());
                words.push(argument(path));
                words
            }
        };
        CommandNeed { words, working_dir: self.working_dir.clone(), timeout_seconds: self.timeout_seconds }
    }

    fn name(&self) -> &'static str {
        match self.kind {
            CommandKind::Pytest { .. } => "pytest",
            CommandKind::Npm { .. } => "npm",
            CommandKind::Custom { .. } => "custom_command",
            CommandKind::Lint { .. } => "lint",
        }
    }

    pub(super) fn fold(&self, outcome: &CommandOutcome) -> Result<Vec<CheckResult>, CheckError> {
        let failed = |message: String| Ok(vec![CheckResult::new(self.name(), false, message)]);
        let exited = match outcome {
            CommandOutcome::Exited { code, stdout, stderr } => Exited { code: *code, stdout, stderr },
            CommandOutcome::NotFound { program } => return Err(CheckError::ProgramMissing(program.clone())),
            CommandOutcome::NotStarted { reason } => return Err(CheckError::NotStarted(reason.clone())),
            // A test that never ends is a test that does not pass: the code under test is the agent's.
            CommandOutcome::TimedOut => {
                return failed(format!("the command did not end within {} s", self.timeout_seconds));
            }
            CommandOutcome::Signalled { signal, stderr } => {
                return failed(format!("signal {signal} ended the command: {}", shown_output(stderr)));
            }
        };
        let check = match &self.kind {
            CommandKind::Pytest { .. } => {
                // 1 is the exit code for failed tests; others are interruptions and errors of pytest itself.
                self.rated(&exited, counts::pytest(&exited.text()), |code| code == 1)?
            }
            CommandKind::Npm { .. } => self.rated(&exited, counts::javascript(&exited.text()), |_| true)?,
            CommandKind::Custom { pattern, success_pattern, expect_zero, .. } => {
                self.custom(&exited, pattern.as_deref(), success_pattern.as_deref(), *expect_zero)?
            }
            CommandKind::Lint { linter, max_violations, max_errors, .. } => {
                linted(*linter, &exited, *max_violations, *max_errors)?
            }
        };
        Ok(vec![check])
    }

    /// Compares the share of passed tests with the threshold. A failing exit code is only accepted if failed tests explain it.
    fn rated(
        &self,
        exited: &Exited<'_>,
        counts: Option<Counts>,
        explained: impl Fn(i32) -> bool,
    ) -> Result<CheckResult, CheckError> {
        let counts = counts.filter(|counts| counts.total() > 0).ok_or_else(|| self.without_counts(exited))?;
        let rate = counts.rate();
        let enough = rate >= self.threshold - 1e-9;
        let clean = exited.code == 0 || (counts.failed + counts.errors > 0 && explained(exited.code));
        let mut message = format!(
            "{} of {} tests passed ({} failed, {} skipped, {} errors), exit code {}",
            counts.passed,
            counts.total(),
            counts.failed,
            counts.skipped,
            counts.errors,
            exited.code
        );
        if enough && !clean {
            message.push_str("; the exit code says that something else failed");
        }
        Ok(CheckResult::new(self.name(), enough && clean, message).with_details(counts.details(rate)))
    }

    fn without_counts(&self, exited: &Exited<'_>) -> CheckError {
        if NOT_RUN.contains(&exited.code) {
            let program = self.need().words.into_iter().next().unwrap_or_default();
            return CheckError::ProgramMissing(program);
        }
        CheckError::NoCounts { code: exited.code, output: exited.text() }
    }

    fn custom(
        &self,
        exited: &Exited<'_>,
        pattern: Option<&str>,
        success_pattern: Option<&str>,
        expect_zero: bool,
    ) -> Result<CheckResult, CheckError> {
        let failed = |message: String| Ok(CheckResult::new(self.name(), false, message));
        if NOT_RUN.contains(&exited.code) && expect_zero && exited.stdout.trim().is_empty() {
            return Err(self.without_counts(exited));
        }
        if expect_zero && exited.code != 0 {
            return failed(format!("exit code {}: {}", exited.code, shown_output(&exited.text())));
        }
        let text = exited.text();
        if let Some(wanted) = success_pattern
            && !compile(wanted)?.is_match(&text)
        {
            return failed(format!("the output does not match the success pattern: {}", shown_output(&text)));
        }
        let Some(pattern) = pattern else {
            return Ok(CheckResult::new(self.name(), true, format!("exit code {}", exited.code)));
        };
        let counts = counts::by_pattern(&text, pattern)?
            .filter(|counts| counts.total() > 0)
            .ok_or_else(|| self.without_counts(exited))?;
        let rate = counts.rate();
        let message = format!("{} of {} passed, exit code {}", counts.passed, counts.total(), exited.code);
        let passed = rate >= self.threshold - 1e-9;
        Ok(CheckResult::new(self.name(), passed, message).with_details(counts.details(rate)))
    }
}

/// The path as an argument that no program takes for an option.
fn argument(path: &WorkspacePath) -> String {
    if path.as_str().starts_with('-') { format!("./{path}") } else { path.to_string() }
}

impl Exited<'_> {
    /// Both outputs, without colours.
    fn text(&self) -> String {
        counts::without_colours(&format!("{}\n{}", self.stdout, self.stderr))
    }
}

/// Both linters exit with 0 without violations, with 1 with some, and with anything else if they could not run.
fn linted(
    linter: Linter,
    exited: &Exited<'_>,
    max_violations: u64,
    max_errors: u64,
) -> Result<CheckResult, CheckError> {
    let no_report =
        || CheckError::NoReport { linter: linter.word(), code: exited.code, output: exited.text() };
    if NOT_RUN.contains(&exited.code) {
        return Err(CheckError::ProgramMissing(linter.word().to_owned()));
    }
    if !matches!(exited.code, 0 | 1) {
        return Err(no_report());
    }
    let report = Json::parse(exited.stdout.trim().as_bytes()).map_err(|_| no_report())?;
    let items = report.as_array().ok_or_else(no_report)?;
    let count = |item: &Json, name: &str| item.get(name).and_then(Json::as_u64).unwrap_or_default();
    let (violations, errors) = match linter {
        // A violation without a rule is a syntax error.
        Linter::Ruff => {
            let syntax = |item: &&Json| {
                item.get("code").is_none_or(|code| code.is_null() || *code == "invalid-syntax")
            };
            (items.len() as u64, items.iter().filter(syntax).count() as u64)
        }
        Linter::Eslint => {
            let errors: u64 = items.iter().map(|item| count(item, "errorCount")).sum();
            (errors + items.iter().map(|item| count(item, "warningCount")).sum::<u64>(), errors)
        }
    };
    if exited.code == 1 && violations == 0 {
        return Err(no_report());
    }
    let message = format!(
        "{violations} violations (at most {max_violations} allowed), {errors} errors (at most {max_errors})"
    );
    let details = Json::object().with("violations", violations).with("errors", errors);
    let passed = violations <= max_violations && errors <= max_errors;
    Ok(CheckResult::new("lint", passed, message).with_details(details))
}

/// Whether the pattern of a command has a group that counts.
pub(crate) fn check_count_pattern(pattern: &str) -> Result<bool, PatternError> {
    let compiled = compile(pattern)?;
    Ok(compiled.capture_names().flatten().any(|name| matches!(name, "passed" | "failed" | "total")))
}

/// The last line of an output that says something, short enough for a message.
pub(super) fn shown_output(output: &str) -> String {
    const SHOWN: usize = 200;
    let last = output.lines().rev().find(|line| !line.trim().is_empty());
    last.map_or_else(|| "no output".to_owned(), |line| format!("`{}`", shown(line.trim(), SHOWN)))
}
