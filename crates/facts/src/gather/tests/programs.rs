//! Tests of what stands beside a command: the program that runs it, and its variables.

use super::of;

#[test]
fn a_program_beside_a_command_is_a_command() {
    for (args, command) in [
        (r#"{"command":"ls","shell":"/tmp/x"}"#, "/tmp/x"),
        (r#"{"command":"ls","shellPath":"src/x"}"#, "src/x"),
        (r#"{"command":"ls","shell":["/tmp/x","-c"]}"#, "/tmp/x -c"),
        (r#"{"command":"ls","program":"git","args":["push","-f"]}"#, "git push -f"),
        (r#"{"executable":"git","args":["push","-f"]}"#, "git push -f"),
        (r#"{"command":"true","interpreter":"git","args":["push","-f"]}"#, "git push -f"),
        (r#"{"command":"ls","shell":"bash","args":["-c","git push -f"]}"#, "git push -f"),
        (r#"{"command":"git","args":["push","-f"],"shell":"bash"}"#, "git push -f"),
    ] {
        let found = of("bash", args);
        assert!(found.commands.iter().any(|found| found == command), "{args}: {:?}", found.commands);
    }
    for shell in ["bash", "/bin/bash", "zsh", "/usr/bin/sh", "powershell", "default"] {
        let found = of("bash", &format!(r#"{{"command":"ls -l","shell":"{shell}"}}"#));
        assert_eq!(
            (found.commands.as_slice(), found.opaque.len()),
            (&["ls -l".to_owned()][..], 0),
            "{shell}"
        );
    }
}

#[test]
fn variables_of_a_call_are_assignments_in_every_form() {
    for args in [
        r#"{"command":"ls","environment":"LD_PRELOAD=src/x.so"}"#,
        r#"{"command":"ls","env":"A=b LD_PRELOAD=src/x.so"}"#,
        r#"{"command":"ls","env":"A=b\nexport LD_PRELOAD=src/x.so"}"#,
        r#"{"command":"ls","env":"{\"LD_PRELOAD\":\"src/x.so\"}"}"#,
        r#"{"command":"ls","vars":{"LD_PRELOAD":"src/x.so"}}"#,
        r#"{"command":"ls","variables":["LD_PRELOAD=src/x.so"]}"#,
        r#"{"command":"ls","set_env":"LD_PRELOAD=src/x.so"}"#,
    ] {
        let found = of("bash", args);
        assert!(
            found.assignments.iter().any(|found| found == "LD_PRELOAD=src/x.so"),
            "{args}: {:?}",
            found.assignments
        );
    }
}
