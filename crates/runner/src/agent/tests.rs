use super::*;

fn resolved(text: &str) -> Result<Agent, AgentError> {
    let around = Surroundings {
        directory: Path::new("/srv"),
        is_file: &|path| path == Path::new("/srv/agent.py") || path == Path::new("/srv/bin/agent"),
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
    assert_eq!(words("stdio:python3 agent.py --fast"), ["python3", "/srv/agent.py", "--fast"]);
    assert_eq!(words("stdio:./bin/agent bin/agent"), ["/srv/bin/agent", "/srv/bin/agent"]);
    assert_eq!(words("plain:agent.py"), ["/srv/agent.py"]);
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
fn impossible_ports_are_named() {
    for (address, problem) in [
        ("http://127.0.0.1:99999", "the port `99999` is no number from 1 to 65535"),
        ("grpc://h:0", "the port `0` is no number from 1 to 65535"),
        ("ws://[::1]:x/", "the port `x` is no number from 1 to 65535"),
        ("http://", "it names no host"),
    ] {
        let text = resolved(address).unwrap_err().to_string();
        assert_eq!(text, format!("the address `{address}` cannot be used: {problem}"));
    }
    assert!(resolved("http://user:99999@h:80/a:b").is_ok());
    assert_eq!(shown_address("http://user:99999@h:80/a:b?token=x"), "http://h:80");
}

#[test]
fn doubtful_commands_are_pointed_out() {
    let around = Surroundings {
        directory: Path::new("/srv"),
        is_file: &|path| path == Path::new("/srv/agent.py"),
        is_program: &|_| true,
        configured: Configured::default(),
    };
    let warnings_of = |text: &str| warnings(text, &resolve(text, &[], &around).unwrap(), &around);
    assert_eq!(warnings_of("stdio:python3 agent.py --out x"), Vec::<String>::new());
    assert_eq!(warnings_of("stdio:python3 missing.py"), ["`missing.py` is no file in the working directory"]);
    let piped = warnings_of("plain:cat | tr a-z A-Z");
    assert_eq!(piped, ["`|` is an ordinary word: there is no shell; write `sh -c '…'`"]);
    assert_eq!(warnings_of("plain:sh -c 'cat | tr a-z A-Z'"), Vec::<String>::new());
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
