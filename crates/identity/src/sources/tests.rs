use std::sync::Mutex;

use super::*;

struct Gate {
    refusal: Option<&'static str>,
    seen: Mutex<Vec<CommandLine>>,
}

impl Gate {
    fn new(refusal: Option<&'static str>) -> Gate {
        Gate { refusal, seen: Mutex::new(Vec::new()) }
    }
}

impl CommandGate for Gate {
    fn permit<'a>(&'a self, command: &'a CommandLine) -> BoxFuture<'a, Result<(), CommandRefusal>> {
        self.seen.lock().unwrap().push(command.clone());
        let refusal = self.refusal;
        Box::pin(
            async move { refusal.map_or(Ok(()), |reason| Err(CommandRefusal { reason: reason.to_owned() })) },
        )
    }
}

fn environment(folder: &std::path::Path) -> Environment {
    let variables = [("PATH", "/usr/bin:/bin"), ("MY_TOKEN", " hunter2\n"), ("BLANK_ONE", " ")];
    Environment::new(variables, folder)
}

async fn resolve(commands: Commands<'_>, source: &str) -> Result<Secret, SourceError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "from file\n").unwrap();
    let environment = environment(folder.path());
    let sources = Sources::new(&environment, commands);
    let source = Json::parse(source.as_bytes()).unwrap();
    sources.resolve(&source, &[("AGENTCLI_MANIFEST_DIGEST", "sha256:1")]).await
}

#[tokio::test]
async fn exactly_one_kind_gives_the_value() {
    let value = |source| resolve(Commands::Forbidden, source);
    assert_eq!(value(r#"{"env":"MY_TOKEN"}"#).await, Ok(Secret::new("hunter2")));
    assert_eq!(value(r#"{"file":"token","env":null}"#).await, Ok(Secret::new("from file")));
    assert_eq!(value(r#"{"literal":"x"}"#).await, Ok(Secret::new("x")));
    assert_eq!(
        value(r#"{"env":"BLANK_ONE"}"#).await,
        Err(SourceError::VariableUnset("`BLANK_ONE`".to_owned()))
    );
    for malformed in [
        "{}",
        "[]",
        r#""x""#,
        r#"{"env":"A","file":"b"}"#,
        r#"{"env":" "}"#,
        r#"{"env":1}"#,
        r#"{"vault":"x"}"#,
        r#"{"command":[]}"#,
        r#"{"command":[1]}"#,
    ] {
        assert_eq!(value(malformed).await, Err(SourceError::Malformed), "{malformed}");
    }
}

#[tokio::test]
async fn commands_run_only_when_allowed_and_permitted() {
    let source = r#"{"command":"echo secret"}"#;
    assert_eq!(resolve(Commands::Forbidden, source).await, Err(SourceError::CommandsNotAllowed));
    let refusing = Gate::new(Some("no rule allows it"));
    assert_eq!(
        resolve(Commands::Gated(&refusing), source).await,
        Err(SourceError::CommandRefused("no rule allows it".to_owned()))
    );
    let gate = Gate::new(None);
    assert_eq!(resolve(Commands::Gated(&gate), source).await, Ok(Secret::new("secret")));
    assert_eq!(*gate.seen.lock().unwrap(), [CommandLine::Shell("echo secret".to_owned())]);
}

#[tokio::test]
async fn a_list_runs_without_a_shell() {
    let gate = Gate::new(None);
    let listed = resolve(Commands::Gated(&gate), r#"{"command":["echo","$HOME; echo 2"]}"#).await;
    assert_eq!(listed, Ok(Secret::new("$HOME; echo 2")));
}

#[tokio::test]
async fn commands_see_no_credentials_of_the_process() {
    let gate = Gate::new(None);
    let seen =
        resolve(Commands::Gated(&gate), r#"{"command":"env | sort | tr '\n' ' '; cat"}"#).await.unwrap();
    let seen = seen.expose();
    assert!(
        seen.contains("AGENTCLI_MANIFEST_DIGEST=sha256:1") && seen.contains("PATH=/usr/bin:/bin"),
        "{seen}"
    );
    assert!(!seen.contains("MY_TOKEN") && !seen.contains("hunter2"), "{seen}");
}

#[tokio::test]
async fn failures_say_nothing_of_the_output() {
    let gate = Gate::new(None);
    let commands = Commands::Gated(&gate);
    let failed =
        resolve(commands, r#"{"command":"echo hunter2; echo hunter2 >&2; exit 7"}"#).await.unwrap_err();
    assert_eq!(failed, SourceError::CommandFailed("exit code 7".to_owned()));
    let missing = resolve(commands, r#"{"command":["/nowhere/program"]}"#).await.unwrap_err();
    assert!(matches!(missing, SourceError::CommandFailed(_)));
    assert_eq!(resolve(commands, r#"{"command":"true"}"#).await, Err(SourceError::Empty));
    let endless = resolve(commands, r#"{"command":"yes hunter2"}"#).await;
    assert_eq!(endless, Err(SourceError::TooLong(MAX_VALUE_BYTES_OF_TEST)));
}

const MAX_VALUE_BYTES_OF_TEST: usize = crate::environment::MAX_VALUE_BYTES;

#[tokio::test]
async fn a_command_that_hangs_is_ended_with_its_children() {
    let gate = Gate::new(None);
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("pid");
    let path = ready.display();
    let source = Json::object()
        .with("command", format!("sleep 600 & echo $! > {path}.new; mv {path}.new {path}; wait"));
    let environment = environment(folder.path());
    let limit = Duration::from_millis(700);
    let sources = Sources::new(&environment, Commands::Gated(&gate)).with_command_time(limit);
    assert_eq!(sources.resolve(&source, &[]).await, Err(SourceError::CommandTimeout(limit)));
    assert_ended(&ready);
}

/// Fails if the process whose number is in the file still runs.
fn assert_ended(file: &std::path::Path) {
    let child = std::fs::read_to_string(file).expect("the shell started its child within the limit");
    let status = format!("/proc/{}/stat", child.trim());
    // A killed process stays as a zombie until somebody collects it.
    let runs = || std::fs::read_to_string(&status).is_ok_and(|stat| !stat.contains(") Z "));
    let is_over = (0..1_000_000).any(|_| {
        std::thread::yield_now();
        !runs()
    });
    assert!(is_over, "the child of the command still runs");
}

#[tokio::test]
async fn daemons_of_a_command_end_with_it() {
    let gate = Gate::new(None);
    let folder = tempfile::tempdir().unwrap();
    let environment = environment(folder.path());
    let sources = Sources::new(&environment, Commands::Gated(&gate));
    // Out of the session, the process group and, with a second fork, the tree of the command; the second also holds its output open.
    for (name, streams) in [("quiet", "</dev/null >/dev/null 2>&1"), ("holding", "</dev/null 2>&1")] {
        let daemon = format!("echo $$ > {name}.new; mv {name}.new {name}; exec sleep 600");
        let line = format!(
            "(setsid sh -c '{daemon}' {streams} &); while [ ! -e {name} ]; do sleep 0.01; done; echo value"
        );
        let source = Json::object().with("command", line);
        assert_eq!(sources.resolve(&source, &[]).await, Ok(Secret::new("value")), "{name}");
        assert_ended(&folder.path().join(name));
    }
    let failing = Json::object().with(
        "command",
        "(setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 600' &); while [ ! -e pid ]; do sleep 0.01; done; exit 3",
    );
    assert_eq!(
        sources.resolve(&failing, &[]).await,
        Err(SourceError::CommandFailed("exit code 3".to_owned()))
    );
    assert_ended(&folder.path().join("pid"));
}

#[tokio::test]
async fn a_resolution_that_is_given_up_ends_its_command() {
    let gate = Gate::new(None);
    let folder = tempfile::tempdir().unwrap();
    let environment = environment(folder.path());
    let sources = Sources::new(&environment, Commands::Gated(&gate));
    let source =
        Json::object().with("command", "echo $$ > pid.new; mv pid.new pid; exec setsid -w sleep 600");
    let ready = folder.path().join("pid");
    let started = async {
        while !ready.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        ended = sources.resolve(&source, &[]) => panic!("{ended:?}"),
        () = started => {}
    }
    assert_ended(&ready);
}
