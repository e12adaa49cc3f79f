//! Results of pytest, from the report that it writes at its end. Its output alone can be forged: the code under test runs in the same
//! process, may print a summary of its own and end the process.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use crate::checks::CommandOutcome;

/// Bytes of a report that are read: those of about 100,000 tests.
const MAX_REPORT: u64 = 64 << 20;

/// Exit code of pytest if tests failed.
const FAILED: i32 = 1;

/// Place of further options among the words of a command, if it runs pytest, as a program or as a module of Python.
pub(super) fn option_place(words: &[String]) -> Option<usize> {
    let program = words.first()?.rsplit('/').next()?;
    if matches!(program, "pytest" | "py.test") {
        return Some(1);
    }
    let is_python = program.starts_with("python") || program.starts_with("pypy");
    // Options of Python come before; its first plain word is a script, whose own options may look the same.
    let mut rest = words.iter().enumerate().skip(1);
    while let (true, Some((_, word))) = (is_python, rest.next()) {
        match word.as_str() {
            "-m" => return rest.next().filter(|(_, module)| *module == "pytest").map(|(at, _)| at + 1),
            "-W" | "-X" => drop(rest.next()),
            "-c" | "-" => return None,
            word if word.starts_with('-') => {}
            _ => return None,
        }
    }
    None
}

/// The option that makes pytest write its report.
pub(super) fn option(report: &Path) -> String {
    format!("--junitxml={}", report.display())
}

/// The outcome that the report tells. Without one, an exit code of 0 is no success.
pub(super) fn corrected(outcome: CommandOutcome, report: &Path) -> CommandOutcome {
    let CommandOutcome::Exited { code, stdout, stderr } = outcome else { return outcome };
    let text = proctor_sandbox::read_left_file(report, MAX_REPORT).unwrap_or_default();
    let text = String::from_utf8(text).unwrap_or_default();
    match Counts::read(&text) {
        Some(counts) => {
            let code = if code == 0 && counts.failed + counts.errors > 0 { FAILED } else { code };
            CommandOutcome::Exited {
                code,
                stdout: format!("{stdout}\n{}\n", counts.summary()),
                stderr: String::new(),
            }
        }
        None if code == 0 => CommandOutcome::NotStarted {
            reason: "pytest ended with exit code 0, but without its report: something else ended it"
                .to_owned(),
        },
        None => CommandOutcome::Exited { code, stdout, stderr },
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    errors: u64,
    skipped: u64,
}

impl Counts {
    /// The attributes of the first suite. Texts of tests cannot imitate them: quotes in them are escaped.
    fn read(report: &str) -> Option<Counts> {
        static SUITE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"<testsuite\s[^>]*>").ok());
        let suite = SUITE.as_ref()?.find(report)?.as_str();
        // A report that was cut off is none.
        if !report.trim_end().ends_with('>') || !report.contains("</testsuite>") {
            return None;
        }
        let number = |name: &str| {
            let (_, rest) = suite.split_once(&format!(" {name}=\""))?;
            rest.split('"').next()?.parse::<u64>().ok()
        };
        let (tests, failed, errors) = (number("tests")?, number("failures")?, number("errors")?);
        let all_skipped = number("skipped")?;
        let expected = u64::try_from(report.matches("type=\"pytest.xfail\"").count()).unwrap_or(u64::MAX);
        let passed = tests.saturating_sub(failed.saturating_add(errors).saturating_add(all_skipped));
        Some(Counts { passed, failed, errors, skipped: all_skipped.saturating_sub(expected) })
    }

    /// The same as the last line of pytest's own output.
    fn summary(&self) -> String {
        let Counts { passed, failed, errors, skipped } = self;
        format!("{failed} failed, {passed} passed, {skipped} skipped, {errors} errors in 0s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" errors="1" failures="2" skipped="3" tests="10" time="0.1"><testcase name="a"><skipped type="pytest.xfail" message=""/></testcase></testsuite></testsuites>"#;

    fn exited(code: i32, stdout: &str) -> CommandOutcome {
        CommandOutcome::Exited { code, stdout: stdout.to_owned(), stderr: String::new() }
    }

    #[test]
    fn counts_come_from_the_report() {
        let counts = Counts::read(REPORT);
        assert_eq!(counts, Some(Counts { passed: 4, failed: 2, errors: 1, skipped: 2 }));
        assert_eq!(Counts::read(&REPORT[..REPORT.len() - 30]), None);
        assert_eq!(Counts::read("<testsuite tests=\"x\"></testsuite>"), None);
        assert_eq!(Counts::read(""), None);
    }

    #[test]
    fn pytest_is_found_as_a_program_and_as_a_module() {
        let place = |line: &str| option_place(&line.split(' ').map(str::to_owned).collect::<Vec<String>>());
        assert_eq!(place("pytest tests"), Some(1));
        assert_eq!(place("/opt/bin/pytest tests"), Some(1));
        assert_eq!(place("python3 -m pytest -q"), Some(3));
        assert_eq!(place("python3.12 -B -W error -m pytest"), Some(6));
        for line in ["python3 check.py -m pytest", "python3 -m unittest", "sh -c pytest", "python3 -c pytest"]
        {
            assert_eq!(place(line), None, "{line}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_report_that_is_no_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.xml"), folder.path().join("link.xml"));
        std::fs::write(&real, REPORT).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert!(matches!(corrected(exited(0, ""), &link), CommandOutcome::NotStarted { .. }));
    }

    #[test]
    fn a_summary_without_a_report_or_against_it_is_no_success() {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report.xml");
        let forged = exited(0, "===== 10 passed in 0.01s =====");
        assert!(matches!(corrected(forged.clone(), &report), CommandOutcome::NotStarted { .. }));
        assert_eq!(corrected(exited(4, "usage"), &report), exited(4, "usage"));
        std::fs::write(&report, REPORT).unwrap();
        let CommandOutcome::Exited { code, stdout, .. } = corrected(forged, &report) else {
            panic!("exited")
        };
        assert_eq!(code, 1);
        assert!(stdout.ends_with("2 failed, 4 passed, 2 skipped, 1 errors in 0s\n"), "{stdout}");
        assert_eq!(corrected(CommandOutcome::TimedOut, &report), CommandOutcome::TimedOut);
    }
}
