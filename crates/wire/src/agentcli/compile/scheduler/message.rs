//! Shell line of a command, with every word quoted.

use proctor_core::json::Json;

/// `cd 'cwd' && 'program' 'argument' …`
pub(super) fn shell_line(program: &str, args: &[Json], cwd: Option<&str>) -> String {
    let mut line = String::new();
    if let Some(cwd) = cwd {
        line.push_str("cd ");
        push_quoted(&mut line, cwd);
        line.push_str(" && ");
    }
    push_quoted(&mut line, program);
    for argument in args.iter().filter_map(Json::as_str) {
        line.push(' ');
        push_quoted(&mut line, argument);
    }
    line
}

/// Single quotes keep every character but themselves: each of those is closed, put in double quotes, and reopened.
fn push_quoted(line: &mut String, word: &str) {
    line.push('\'');
    for (index, part) in word.split('\'').enumerate() {
        if index > 0 {
            line.push_str(r#"'"'"'"#);
        }
        line.push_str(part);
    }
    line.push('\'');
}
