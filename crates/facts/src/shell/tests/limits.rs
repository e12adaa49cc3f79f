//! Inputs made to be slow or deep.

use super::super::{MAX_INPUT_BYTES, parse};
use super::parse_any;

fn is_reported(command: &str) -> bool {
    !parse(command).unknown.is_empty()
}

#[test]
fn too_long_is_not_parsed() {
    let facts = parse(&"a ".repeat(MAX_INPUT_BYTES));
    assert!(facts.commands.is_empty());
    assert_eq!(facts.unknown, ["not parsed: the command is longer than 256 KiB"]);
    assert!(parse(&"a;".repeat(MAX_INPUT_BYTES / 2)).unknown.is_empty());
}

#[test]
fn deep_nesting_is_reported_and_cheap() {
    let units = [
        "$(",
        "(",
        "{ ",
        "`",
        "\"",
        "'",
        "${x:-",
        "$((",
        "((",
        "<(",
        "a=(",
        "if ",
        "while ",
        "case x in a) ",
        "\"$(",
        "eval \"$(",
        "sudo ",
        "env ",
        "sh -c '",
        "@(a",
        "$[",
        "\"${x:-'",
        "\\",
        "<<A ",
        "<<A\n",
        "{a,",
        "{a,b}",
        "f() ",
        "! ",
        "time ",
        "[[ ",
        "for x in ",
        "function f ",
        "`\\`",
        "a|",
        "cd a && ",
        "cd a; ",
        "xargs ",
        "coproc ",
        "\n",
        "$'",
        "$",
        "&",
        "|",
        ">",
        "<",
        "#",
        "find . -exec ",
        "ssh h ",
        "trap ",
        "x\\\n",
        "> a ",
    ];
    for unit in units {
        let deep = unit.repeat(100_000.min(MAX_INPUT_BYTES / unit.len()));
        let facts = parse(&deep);
        assert!(facts.commands.len() < 200_000, "{unit:?}");
        parse_any(deep.as_bytes());
    }
    for unit in ["$(", "(", "{ ", "`", "${x:-", "\"$(", "if "] {
        assert!(is_reported(&unit.repeat(87_000.min(MAX_INPUT_BYTES / unit.len()))), "{unit:?}");
    }
}

#[test]
fn commands_before_the_limit_are_found() {
    let facts = parse(&format!("rm x; {}ls", "(".repeat(100)));
    assert_eq!(facts.deletes, ["x"]);
    assert_eq!(facts.unknown, ["not parsed completely: nested deeper than 32 levels"]);
}

#[test]
fn nesting_within_the_limit_is_parsed() {
    let depth = 25;
    let facts = parse(&format!("{}rm x{}", "echo $(".repeat(depth), ")".repeat(depth)));
    assert_eq!(facts.deletes, ["x"]);
    assert!(facts.unknown.is_empty(), "{:?}", facts.unknown);
}

#[test]
fn code_inside_of_code_cannot_multiply_without_bound() {
    // Each level is parsed once as a substitution and once as the argument of `eval`.
    let mut command = "x".to_owned();
    for _ in 0..20 {
        command = format!("eval \"$({command})\" \"$({command})\"");
        if command.len() > 100_000 {
            break;
        }
    }
    assert!(is_reported(&command));
}
