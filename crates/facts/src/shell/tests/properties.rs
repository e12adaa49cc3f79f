//! Laws that hold for all inputs.

use proptest::prelude::*;

use super::super::parse;
use super::parse_any;

/// Writes a word so that a shell reads it back unchanged, switching between the ways of quoting.
fn quoted(word: &str, ways: &[u8]) -> String {
    let mut out = String::new();
    let mut ways = ways.iter().cycle();
    for character in word.chars() {
        let way = ways.next().copied().unwrap_or_default() % 4;
        let piece = match (way, character) {
            (0, c) if c.is_ascii_alphanumeric() => c.to_string(),
            (1, c) if c != '\'' => format!("'{c}'"),
            (2, c) if !matches!(c, '"' | '$' | '`' | '\\') => format!("\"{c}\""),
            (3, c) if c.is_ascii() => format!("$'\\x{:02x}'", u32::from(c)),
            (_, c) => format!("\\{c}"),
        };
        out.push_str(&piece);
    }
    if out.is_empty() { "''".to_owned() } else { out }
}

fn shell_text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "rm x",
        " ",
        "\n",
        ";",
        "&",
        "|",
        "(",
        ")",
        "{",
        "}",
        "$(",
        "`",
        "\"",
        "'",
        "\\",
        "$",
        "${",
        "((",
        "))",
        "<<E\n",
        "E\n",
        "<",
        ">",
        ">&",
        "<(",
        "if",
        "then",
        "fi",
        "case",
        "in",
        "esac",
        ";;",
        "for",
        "do",
        "done",
        "eval",
        "sh -c",
        "sudo",
        "env",
        "A=",
        "=(",
        "[[",
        "]]",
        "#",
        "!",
        "{a,b}",
        "$'",
        "\\x",
        "cd /a",
        "&&",
        "||",
        "find",
        "-exec",
        "xargs",
        "function f",
        "f()",
        "~",
        "*",
        "ä",
        "\0",
        "$[",
        "]",
        "@(",
        "time",
        "coproc",
        "tee",
        "<<<",
    ]);
    prop::collection::vec((pieces, any::<bool>()), 0..40).prop_map(|parts| {
        parts
            .into_iter()
            .map(|(piece, space)| if space { format!("{piece} ") } else { piece.to_owned() })
            .collect()
    })
}

fn wrapped(inner: &str, kind: u8) -> String {
    let single = inner.replace('\'', "'\\''");
    match kind % 16 {
        0 => format!("sudo -u root {inner}"),
        1 => format!("env A=b {inner}"),
        2 => format!("sh -c '{single}'"),
        3 => format!("eval '{single}'"),
        4 => format!("echo $( {inner} )"),
        5 => format!("( {inner} )"),
        6 => format!("{{ {inner}; }}"),
        7 => format!("true && {inner}"),
        8 => format!("if true; then {inner}; fi"),
        9 => format!("timeout 5 {inner}"),
        10 => format!("nohup nice -n 3 {inner}"),
        11 => format!("echo \"$( {inner} )\" <(true)"),
        12 => format!("cat <<E\n$( {inner}\n)\nE\n"),
        13 => format!("case x in a) {inner};; esac"),
        14 => format!("f() {{ {inner}; }}"),
        _ => format!("bash <<'END{len}'\n{inner}\nEND{len}\n", len = inner.len()),
    }
}

/// Wrappers that are programs cannot stand before a construct.
fn is_program_wrapper(kind: u8) -> bool {
    matches!(kind % 16, 0 | 1 | 9 | 10)
}

/// Wrappers that end with a newline cannot stand before more text on the same line.
fn ends_line(kind: u8) -> bool {
    matches!(kind % 16, 12 | 15)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn never_panics_on_any_text(text in any::<String>()) {
        parse(&text);
    }

    #[test]
    fn never_panics_on_any_bytes(data in prop::collection::vec(any::<u8>(), 0..300)) {
        parse_any(&data);
    }

    #[test]
    fn never_panics_on_shell_like_text(text in shell_text()) {
        parse_any(text.as_bytes());
    }

    #[test]
    fn quoting_is_undone(
        words in prop::collection::vec("[ -~ä]{0,8}", 1..6),
        ways in prop::collection::vec(any::<u8>(), 1..20),
    ) {
        let mut line = String::from("words");
        for word in &words {
            line.push(' ');
            line.push_str(&quoted(word, &ways));
        }
        let facts = parse(&line);
        // A program that is not known may be a wrapper of what its words name.
        prop_assert!(facts.commands.iter().skip(1).all(|command| command.wrappers == ["words"]), "{}", line);
        prop_assert_eq!(&facts.commands[0].words[1..], &words[..], "{}", line);
        prop_assert!(facts.unknown.is_empty() || facts.unknown[0].starts_with("quoting"), "{:?}", facts.unknown);
    }

    #[test]
    fn quoting_does_not_hide_the_name(ways in prop::collection::vec(any::<u8>(), 1..9)) {
        let facts = parse(&format!("{} x", quoted("rm", &ways)));
        prop_assert_eq!(facts.deletes, ["x"]);
    }

    #[test]
    fn wrapping_does_not_hide_a_command(kinds in prop::collection::vec(any::<u8>(), 0..6)) {
        let mut line = "rm -rf /precious".to_owned();
        let mut simple = true;
        let mut ended = false;
        for kind in kinds {
            if (is_program_wrapper(kind) && !simple) || (ended && kind % 16 != 2 && kind % 16 != 3) {
                continue;
            }
            line = wrapped(&line, kind);
            simple = is_program_wrapper(kind) || matches!(kind % 16, 2 | 3);
            ended = ends_line(kind);
        }
        let facts = parse(&line);
        prop_assert!(facts.commands.iter().any(|command| command.text == "rm -rf /precious"), "{line}\n{facts:?}");
        prop_assert!(facts.deletes.contains(&"/precious".to_owned()), "{line}");
    }

    #[test]
    fn what_comes_before_and_after_is_found(text in "[a-z ]{0,10}") {
        let facts = parse(&format!("rm a; echo '{text}' \"{text}\"; rm b"));
        prop_assert_eq!(facts.deletes, ["a", "b"]);
    }
}
