//! Properties of loading.

use proptest::prelude::*;

use super::*;

/// Text that is near enough to a suite to reach the readers.
fn fragments() -> impl Strategy<Value = String> {
    let words: Vec<String> = EVERYTHING
        .split(|character: char| character.is_whitespace())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .chain(
            [
                "\n", "\n  ", "\n    - ", "&a", "*a", "[", "]", "{", "}", "null", "-1", "1e9", "${X}",
                "${X:y}", "'", "\"",
            ]
            .map(str::to_owned),
        )
        .collect();
    prop::collection::vec(prop::sample::select(words), 0..60).prop_map(|words| words.join(" "))
}

/// EVERYTHING with one line changed or removed.
fn mutated() -> impl Strategy<Value = String> {
    let lines: Vec<&'static str> = EVERYTHING.lines().collect();
    let count = lines.len();
    (0..count, 0..count, any::<bool>(), "[ -~]{0,8}").prop_map(move |(at, other, swap, text)| {
        let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        if swap {
            lines.swap(at, other);
        } else {
            let cut = lines[at].len() / 2;
            let cut = (0..=cut).rev().find(|index| lines[at].is_char_boundary(*index)).unwrap_or(0);
            lines[at].replace_range(cut.., &text);
        }
        lines.join("\n")
    })
}

fn check(source: &[u8]) {
    let options = LoadOptions::new(&|name| (name == "X").then(|| "value".to_owned()), &|_| None);
    match load(source, &options) {
        Ok(loaded) => {
            assert!(!loaded.suite.tests.is_empty());
            for test in &loaded.suite.tests {
                assert!((test.settings.weights.sum() - 1.0).abs() < 0.0011);
                assert!(
                    test.settings.runs >= 1
                        && test.settings.pass_rate > 0.0
                        && test.settings.constraints.timeout_seconds >= 1
                );
            }
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            assert!(problems.iter().all(|problem| problem.at.line >= 1 && problem.path.starts_with('$')));
            assert!(problems.windows(2).all(|pair| pair[0].at <= pair[1].at));
            assert!(problems.iter().all(|problem| !problem.to_string().contains('\n')));
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_loaded_or_refused(source in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&source);
    }

    #[test]
    fn any_text_is_loaded_or_refused(source in fragments()) {
        check(source.as_bytes());
    }

    #[test]
    fn any_damaged_suite_is_loaded_or_refused(source in mutated()) {
        check(source.as_bytes());
    }

    #[test]
    fn command_lines_survive_quoting(words in prop::collection::vec("[^\0]{0,12}", 1..6)) {
        prop_assume!(!words[0].is_empty());
        let line: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
        prop_assert_eq!(split_words(&line.join(" ")).unwrap(), words);
    }
}
