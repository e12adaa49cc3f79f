use super::*;

use proctor_core::json::Json;
use proctor_runner::results::SuiteResult;

/// A test that ended with this verdict.
fn test(id: &str, verdict: &str) -> TestResult {
    let test = Json::object().with("id", id).with("name", id).with("verdict", verdict);
    let document = Json::object()
        .with("format", "proctor test")
        .with("version", "1.0")
        .with("suite", "s")
        .with("agent", "a")
        .with("tests", vec![test.with("runs", Vec::<Json>::new())]);
    SuiteResult::read(document.to_string().as_bytes()).unwrap().tests.remove(0)
}

/// Rows that a terminal shows after this output. The last one is where the cursor is.
fn rows(output: &str) -> Vec<String> {
    let mut rows = vec![Vec::new()];
    let mut column = 0;
    let mut rest = output;
    while let Some(character) = rest.chars().next() {
        let row: &mut Vec<char> = rows.last_mut().unwrap();
        if let Some(after) = rest.strip_prefix(ERASE) {
            row.truncate(column);
            rest = after;
            continue;
        }
        rest = &rest[character.len_utf8()..];
        match character {
            '\r' => column = 0,
            '\n' => {
                rows.push(Vec::new());
                column = 0;
            }
            other => {
                if column < row.len() {
                    row[column] = other;
                } else {
                    row.push(other);
                }
                column += 1;
            }
        }
    }
    rows.into_iter().map(|row| row.into_iter().collect::<String>().trim_end().to_owned()).collect()
}

fn sample() -> LiveLine {
    let mut live = LiveLine::new(12);
    for (id, verdict) in [("a", "passed"), ("b", "failed"), ("c", "error"), ("d", "not_run"), ("e", "passed")]
    {
        live.started(id, id, (1, 1));
        live.ended(&test(id, verdict));
    }
    live.started("hello", "Says hello", (1, 1));
    live.started("file", "Writes a file", (2, 30));
    live.started("wide", "日本語のテスト\u{1b}[2J", (1, 1));
    live.started("hearts", "❤️❤️❤️", (1, 1));
    live
}

#[test]
fn the_line_is_cut_to_every_width_of_a_terminal() {
    let live = sample();
    let elapsed = Duration::from_secs(3723);
    let shown: Vec<String> = [200, 100, 88, 60, 24, 10]
        .map(|columns| format!("{columns:>3}|{}", live.line(columns, elapsed)))
        .into();
    let expected = [
        r"200|5/12 tests, 2 passed, 1 failed, 1 error, 1 not run, 1:02:03: Says hello, Writes a file (2 of 30), 日本語のテスト\u{1b}[2J, ❤️❤️❤️",
        r"100|5/12 tests, 2 passed, 1 failed, 1 error, 1 not run, 1:02:03: Says hello, Writes a file (2 of 30),…",
        r" 88|5/12 tests, 2 passed, 1 failed, 1 error, 1 not run, 1:02:03: Says hello, Writes a fil…",
        r" 60|5/12 tests, 2 passed, 1 failed, 1 error, 1 not run, 1:02:…",
        r" 24|5/12 tests, 2 passed,…",
        r" 10|5/12 te…",
    ];
    assert_eq!(shown, expected);
    for columns in 0..300 {
        let line = live.line(columns, elapsed);
        assert!(line.width_cjk() < columns.max(1), "{columns}: {line}");
        assert!(!line.contains('\u{1b}'), "{line}");
    }
}

#[test]
fn lines_stand_above_the_live_line_and_nothing_of_it_remains() {
    let mut live = sample();
    let mut output = live.frame(80, Duration::from_secs(1));
    live.print_above("failed  one\n        because");
    output.push_str(&live.frame(80, Duration::from_secs(2)));
    live.ended(&test("file", "passed"));
    live.ended(&test("wide", "passed"));
    live.ended(&test("hearts", "passed"));
    output.push_str(&live.frame(80, Duration::from_secs(3)));
    let shown = rows(&output);
    assert_eq!(
        shown,
        [
            "failed  one",
            "        because",
            "8/12 tests, 5 passed, 1 failed, 1 error, 1 not run, 0:03: Says hello"
        ]
    );
    live.print_above("failed  two");
    live.interrupt();
    assert!(live.line(80, Duration::ZERO).contains(", stopping"), "{live:?}");
    output.push_str(&live.end());
    assert_eq!(rows(&output), ["failed  one", "        because", "failed  two", ""]);
}

#[test]
fn nothing_is_written_unless_the_text_has_changed() {
    let mut live = sample();
    assert_ne!(live.frame(80, Duration::from_millis(1000)), "");
    assert_eq!(live.frame(80, Duration::from_millis(1900)), "");
    assert_ne!(live.frame(80, Duration::from_millis(2000)), "");
    assert_ne!(live.frame(40, Duration::from_millis(2000)), "");
    // A suite that ended before its first frame leaves the terminal as it was.
    assert_eq!(LiveLine::new(1).end(), "");
}

#[test]
fn lines_for_a_terminal_that_does_not_read_are_bounded_and_counted() {
    let mut live = LiveLine::new(1);
    for _ in 0..20_000 {
        live.print_above(&"x".repeat(99));
    }
    let output = live.frame(80, Duration::ZERO);
    assert!(output.len() < MAX_WAITING + 1000, "{}", output.len());
    assert!(output.contains("9515 more lines are not shown here"), "{}", &output[output.len() - 200..]);
}
