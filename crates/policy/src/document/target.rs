//! Places in an action that rules may change or cut: JSON pointers of `set`, JSONPaths of `paths`.

use proctor_core::quoted;

use super::problems::{listed, suggestion};
use crate::json_path::{self, Segment};

/// Members of an action that hold structured values: a pointer may go deeper.
pub const STRUCTURED: &[&str] = &["args", "result", "metadata"];
/// Members of an action that hold text.
pub const TEXTUAL: &[&str] = &["text", "path", "command", "url", "model"];

/// Checks a JSONPath that begins at the action: `$.args.x`, `$.args['x'][0]`, `$.args.list[*]`. The error says what is
/// wrong.
pub fn check_path(path: &str) -> Result<(), String> {
    let segments =
        json_path::parse(path).map_err(|why| format!("{} is not a JSONPath: {why}", quoted(path)))?;
    match segments.first() {
        Some(Segment::Name(root)) => check_root(root, segments.len() > 1, path),
        _ => Err(format!("{} must name a member of the action first, as in `$.args.password`", quoted(path))),
    }
}

/// Checks the syntax of a JSON pointer that begins at the action, such as `/args/timeout`, and gives its first token. The
/// error says what is wrong.
pub fn check_pointer(pointer: &str) -> Result<&str, String> {
    let Some(rest) = pointer.strip_prefix('/') else {
        return Err(format!(
            "{} is not a JSON pointer: it must begin with `/`, as in `/args/timeout`",
            quoted(pointer)
        ));
    };
    let mut characters = rest.chars();
    while let Some(character) = characters.next() {
        if character == '~' && !matches!(characters.next(), Some('0' | '1')) {
            let message = "is not a JSON pointer: write `~` as `~0` and a `/` in a name as `~1`";
            return Err(format!("{} {message}", quoted(pointer)));
        }
    }
    let (root, deeper) = match rest.split_once('/') {
        Some((root, _)) => (root, true),
        None => (rest, false),
    };
    check_root(root, deeper, pointer)?;
    Ok(root)
}

fn check_root(root: &str, deeper: bool, whole: &str) -> Result<(), String> {
    if STRUCTURED.contains(&root) {
        return Ok(());
    }
    if TEXTUAL.contains(&root) {
        return if deeper {
            Err(format!(
                "{} goes below `{root}`, which is text; only {} have members",
                quoted(whole),
                listed(STRUCTURED)
            ))
        } else {
            Ok(())
        };
    }
    let roots: Vec<&str> = STRUCTURED.iter().chain(TEXTUAL).copied().collect();
    Err(format!(
        "{} does not name a part of the action that can change; {}",
        quoted(whole),
        suggestion(root, &roots)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_checked() {
        for path in [
            "$.args",
            "$.text",
            "$.args.x",
            "$['args'].x[*].y",
            "$.args.*",
            "$.args['a.b]'][10]",
            "$.result.x-y",
        ] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
        for path in [
            "",
            "args.x",
            "$",
            "$.",
            "$..x",
            "$.args.",
            "$.args[",
            "$.args[]",
            "$.args[-1]",
            "$.args['x",
            "$.args['x'",
            "$.args[?(@.x)]",
            "$.args[1:2]",
            "$[0]",
            "$.*",
            "$.kind",
            "$.text.x",
            "$.args[99999999999999999999999]",
            "$args",
        ] {
            assert!(check_path(path).is_err(), "{path}");
        }
    }

    #[test]
    fn pointers_are_checked() {
        for pointer in ["/args", "/args/a/0", "/args/", "/args/a~1b~0c", "/text", "/metadata/x", "/result/x"]
        {
            assert!(check_pointer(pointer).is_ok(), "{pointer}");
        }
        for pointer in ["", "args", "/", "/kind", "/tool", "/text/x", "/args/~", "/args/~2", "#/args"] {
            assert!(check_pointer(pointer).is_err(), "{pointer}");
        }
        assert!(check_pointer("/arg/x").unwrap_err().contains("did you mean `args`?"));
    }
}
