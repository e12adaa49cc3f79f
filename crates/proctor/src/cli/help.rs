//! Help of the root command: its commands, grouped by task. clap groups options by heading, but not subcommands.

/// The groups in order of display: a heading, and the name and help line of each command in it.
///
/// The help lines repeat those of `Command`, and a test compares them: taking them from clap would build every command a
/// second time at each start.
const GROUPS: &[(&str, &[(&str, &str)])] = &[
    (
        "Start",
        &[
            ("init", "Make a state directory, a starter policy and an approver credential"),
            ("demo", "Show a sample agent under supervision, from start to end"),
        ],
    ),
    (
        "Supervise",
        &[
            ("gate", "Decide actions from stdin, one JSON object per line; print one decision per line"),
            ("serve", "Serve agents over HTTP, WebSocket, Unix socket and gRPC until SIGTERM"),
            ("harness", "Speak the Agent Harness Protocol on stdin and stdout until stdin ends"),
            ("approve", "List the actions that wait for a person, and allow or deny them"),
            ("agent", "List registered agents; suspend, resume, kill and deregister them"),
            ("op", "Pause, resume and terminate operations of agents"),
        ],
    ),
    ("Look", &[("session", "List sessions, and show what happened in one")]),
    ("Prove", &[("audit", "Read, export, prove, verify and check the ledger")]),
    (
        "Test",
        &[
            ("policy", "Lint, try and test policies"),
            (
                "test",
                "Run a suite of tests against an agent; exit 0 if it passes, 10 if not, 13 if undecided, 130 on interrupt",
            ),
            ("runs", "List, show, compare and export suite runs"),
            ("atp", "Validate messages of the Agent Test Protocol, print its schemas, and check agents"),
            (
                "assert",
                "Check a trace or a recorded session against assertions; exit 0 if they hold, 10 if not",
            ),
        ],
    ),
    (
        "Operate",
        &[
            ("manifest", "Validate, compile, plan, apply and run workflow manifests"),
            ("names", "Link this binary under the program names that other tools start"),
            ("completion", "Print a shell completion script"),
            ("help", "Print this message or the help of a command"),
        ],
    ),
];

/// The clap help template of the root command.
pub(super) fn root_template() -> String {
    let mut template = String::from("{about}\n\n{usage-heading} {usage}\n\n");
    for (heading, commands) in GROUPS {
        template.push_str(heading);
        template.push_str(":\n");
        for (name, about) in *commands {
            template.extend([&format!("  {name:<11} "), *about, "\n"]);
        }
        template.push('\n');
    }
    template.push_str("Options:\n{options}{after-help}");
    template
}

/// The end of the help of `manifest`, whose commands clap does not know.
pub(super) fn of_manifest() -> String {
    let commands = proctor_door_agentcli::arguments::overview();
    let more = "Options of one: proctor manifest help COMMAND";
    format!("Words:\n{commands}\n\n{more}\n\nExample:\n  proctor manifest describe manifest")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::{Command, CommandFactory};

    use super::GROUPS;
    use crate::cli::Cli;

    #[test]
    fn every_command_is_in_exactly_one_group_with_its_own_help_line() {
        let mut grouped = BTreeMap::new();
        for (name, about) in GROUPS.iter().flat_map(|(_, commands)| *commands) {
            assert!(
                grouped.insert((*name).to_owned(), (*about).to_owned()).is_none(),
                "`{name}` is grouped twice"
            );
        }
        // clap adds this one, with a help line of its own.
        assert!(grouped.remove("help").is_some());
        let commands: BTreeMap<String, String> = Cli::command()
            .get_subcommands()
            .map(|command| {
                (
                    command.get_name().to_owned(),
                    command.get_about().map(ToString::to_string).unwrap_or_default(),
                )
            })
            .collect();
        assert_eq!(grouped, commands);
    }

    #[test]
    fn the_help_of_every_command_ends_with_an_example_of_it() {
        fn check(command: &Command, path: &str) {
            let example = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(example.contains("Example:\n  ") && example.contains(path), "`{path}`: `{example}`");
            for subcommand in command.get_subcommands() {
                check(subcommand, &format!("{path} {}", subcommand.get_name()));
            }
        }
        check(&Cli::command(), "proctor");
    }
}
