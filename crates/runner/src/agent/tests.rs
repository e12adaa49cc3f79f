use super::*;

fn resolved(text: &str) -> Result<Agent, AgentError> {
    let around = Surroundings {
        directory: Path::new("/work"),
        is_file: &|path| path == Path::new("/work/agent.py") || path == Path::new("/work/bin/agent"),
        is_program: &|name| name == "python3",
        configured: Configured::default(),
    };
    resolve(text, &[], &around)
}

fn words(text: &str) -> Vec<String> {
    match resolved(text).unwrap().spec {
        AgentSpec::Process(process) => process.words,
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_of_the_starting_folder_are_made_absolute_and_programs_are_not() {
    assert_eq!(words("stdio:python3 agent.py --fast"), ["python3", "/work/agent.py", "--fast"]);
    assert_eq!(words("stdio:./bin/agent bin/agent"), ["/work/bin/agent", "/work/bin/agent"]);
    assert_eq!(words("plain:agent.py"), ["/work/agent.py"]);
    assert_eq!(words("stdio:sh -c 'cat agent.py'"), ["sh", "-c", "cat agent.py"]);
}

#[test]
fn addresses_of_every_transport_are_known() {
    for url in ["http://127.0.0.1:1", "https://a/b", "ws://a", "wss://a", "grpc://a:1", "grpcs://a:1"] {
        assert!(matches!(resolved(url).unwrap().spec, AgentSpec::Remote(_)), "{url}");
    }
    assert_eq!(resolved("nop").unwrap().spec, AgentSpec::Nop);
    assert_eq!(resolved("reference").unwrap().spec, AgentSpec::Reference);
}

#[test]
fn mistakes_are_explained() {
    let text = resolved("ftp://a").unwrap_err().to_string();
    assert!(
        text.starts_with("there is no agent `ftp://a`; give a name of the suite (it names none)"),
        "{text}"
    );
    assert_eq!(
        resolved("stdio:").unwrap_err().to_string(),
        "the agent `stdio:` has no command; write it like stdio:python3 agent.py"
    );
    assert!(resolved("stdio:sh -c 'open").is_err());
}

#[test]
fn settings_name_agents_that_the_suite_leaves_open() {
    let agents = [("mine".to_owned(), "stdio:./agent.py".to_owned())];
    let around = Surroundings {
        directory: Path::new("/elsewhere"),
        is_file: &|path| path == Path::new("/settings/agent.py"),
        is_program: &|_| false,
        configured: Configured { agents: &agents, directory: Some(Path::new("/settings")) },
    };
    let agent = resolve("mine", &[], &around).unwrap();
    assert_eq!(agent.name, "mine");
    assert!(matches!(&agent.spec, AgentSpec::Process(program) if program.words == ["/settings/agent.py"]));
    let unknown = resolve("other", &[], &around).unwrap_err().to_string();
    assert!(unknown.contains("(mine)"), "{unknown}");
}

#[test]
fn names_of_secrets_are_known_by_their_parts() {
    for secret in ["OPENAI_API_KEY", "github_token", "AWS_REGION", "PASSWORD", "PROCTOR_STATE"] {
        assert!(is_secret_name(secret), "{secret}");
    }
    for plain in ["PATH", "LANG", "KEYBOARD", "TOKENIZERS_PARALLELISM"] {
        assert!(!is_secret_name(plain), "{plain}");
    }
}
