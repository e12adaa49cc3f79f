//! Help texts at a width of 100 columns. The help of subcommands is in `docs/cli.md`, which `docs.rs` compares with the program.

use super::Transcript;

/// Commands, each with its snapshot.
const COMMANDS: &[(&str, &str)] = &[
    ("init", "help_init"),
    ("demo", "help_demo"),
    ("gate", "help_gate"),
    ("serve", "help_serve"),
    ("harness", "help_harness"),
    ("approve", "help_approve"),
    ("agent", "help_agent"),
    ("op", "help_op"),
    ("session", "help_session"),
    ("audit", "help_audit"),
    ("policy", "help_policy"),
    ("atp", "help_atp"),
    ("assert", "help_assert"),
    ("names", "help_names"),
    ("completion", "help_completion"),
];

#[test]
fn the_program() {
    let mut transcript = Transcript::empty();
    transcript.run_all(&["--version", "--help"]);
    transcript.check("help");
}

#[test]
fn every_command() {
    for (command, snapshot) in COMMANDS {
        let mut transcript = Transcript::empty();
        transcript.run(&format!("{command} -h"));
        transcript.check(snapshot);
    }
}
