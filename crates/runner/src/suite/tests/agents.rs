//! Agents of a suite.

use super::*;

fn with_agent(agent: &str) -> String {
    format!("test_suite: s\nagents:\n  - {agent}\ntests: [{{id: a, name: A, task: {{description: d}}}}]\n")
}

#[test]
fn types_and_settings() {
    let suite = loaded(EVERYTHING).suite;
    let kinds: Vec<&AgentKind> = suite.agents.iter().map(|agent| &agent.kind).collect();
    let AgentKind::Cli(cli) = kinds[0] else { panic!("a program") };
    assert_eq!(cli.command, ["python3", "agent.py", "--fast"]);
    assert_eq!(cli.environment[0].1.expose(), "b");
    assert_eq!((suite.agents[0].retry_count, suite.agents[0].retry_delay_seconds), (2, 0.5));
    assert_eq!(suite.agents[0].timeout_seconds, Some(5.0));
    let AgentKind::Http(http) = kinds[1] else { panic!("HTTP") };
    assert_eq!((http.stream_endpoint.as_deref(), http.verify_ssl), (Some("https://h/s"), false));
    assert!(matches!(kinds[2], AgentKind::Ws(_)));
    assert!(matches!(kinds[3], AgentKind::Grpc(_)));
    let AgentKind::Plain(plain) = kinds[4] else { panic!("a program") };
    assert_eq!(plain.command, ["cat", "-n"]);
    assert_eq!(kinds[5..], [&AgentKind::Nop, &AgentKind::Reference, &AgentKind::Named]);
}

#[test]
fn the_type_can_be_told_from_the_configuration() {
    let kind = |agent: &str| loaded(&with_agent(agent)).suite.agents[0].kind.clone();
    assert!(matches!(kind("{name: a, config: {command: x}}"), AgentKind::Cli(_)));
    assert!(matches!(kind("{name: a, config: {endpoint: 'http://h'}}"), AgentKind::Http(_)));
    assert_eq!(kind("{name: a, config: {}}"), AgentKind::Named);
    assert_eq!(
        mistakes(&with_agent("{name: a, config: {x: 1}}"))[0],
        "3:5: $.agents[0]: `type` is missing in an agent with a `config`; known are `cli`, `http`, `ws`, `grpc`, `plain`, `nop`, `reference`"
    );
}

#[test]
fn types_that_are_not_supported_are_named() {
    for (kind, expected) in [
        ("docker", "agents of type `docker` are not supported yet"),
        ("container", "agents of type `container` are not supported yet"),
        ("mcp", "agents of type `mcp` are not supported yet"),
        ("crewai", "agents of type `crewai` are not supported;"),
        ("autogen", "agents of type `autogen` are not supported;"),
        ("sdk", "agents of type `sdk` are not supported;"),
        ("bedrock", "agents of type `bedrock` are not supported;"),
        ("vertex", "agents of type `vertex` are not supported;"),
        ("azure_openai", "agents of type `azure_openai` are not supported;"),
        ("stdio", "did you mean `cli`?"),
    ] {
        let found = mistakes(&with_agent(&format!("{{name: a, type: {kind}, config: {{image: x}}}}")));
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
    }
}

#[test]
fn settings_of_a_wrong_type_are_mistakes() {
    for (config, expected) in [
        ("{command: 5}", "expected a command line or a list of words, found a number"),
        ("{command: ''}", "the command is empty"),
        ("{command: a, args: {x: 1}}", ".config.args: expected a list, found a mapping"),
        ("{command: a, inherit_environment: 1}", "expected `true` or `false`, found a number"),
        ("{command: a, timeout_seconds: 0}", "expected a number from 0.001 to 86400, found `0`"),
        ("{command: a, retry_count: -1}", "expected a whole number from 0 to 100"),
        ("{command: a, environment: {A: {}}}", ".config.environment.A: expected a string, found a mapping"),
    ] {
        let found = mistakes(&with_agent(&format!("{{name: a, type: cli, config: {config}}}")));
        assert!(found.iter().any(|line| line.contains(expected)), "{config}: {found:?}");
    }
    let found =
        mistakes(&with_agent("{name: a, type: http, config: {endpoint: 'http://h', headers: {'a b': x}}}"));
    assert!(found[0].contains("the header `a b` has a name or value that cannot be sent"), "{found:?}");
}
