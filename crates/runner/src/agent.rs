//! Agents under test: resolution of a name or an address, as `--agent` takes it.
//!
//! ```
//! use proctor_runner::agent::{AgentSpec, Configured, Surroundings, resolve};
//!
//! let directory = std::path::Path::new("/work");
//! let surroundings =
//!     Surroundings { directory, is_file: &|_| false, is_program: &|_| true, configured: Configured::default() };
//! let agent = resolve("stdio:python3 agent.py", &[], &surroundings).unwrap();
//! assert!(matches!(&agent.spec, AgentSpec::Process(process) if process.words == ["python3", "agent.py"]));
//! assert!(resolve("agnet", &[], &surroundings).is_err());
//! ```

use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_core::quoted;

use crate::suite::{self, AgentKind, ProcessAgent, SecretValue, WordsError, split_words};

/// Pause before another attempt, unless the agent's settings say otherwise.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// An agent that can be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Name in reports: the suite's, or the address.
    pub name: String,
    /// Kind and settings.
    pub spec: AgentSpec,
    /// Time limit of the agent itself; the smaller of this and the test's counts.
    pub timeout: Option<Duration>,
    /// Further attempts at a run that ended in an error.
    pub retries: u32,
    /// Pause before another attempt.
    pub retry_delay: Duration,
}

impl Agent {
    /// Files and folders of the command, which the agent needs to run: words that are absolute paths, and its working directory.
    pub fn files(&self) -> Vec<PathBuf> {
        match &self.spec {
            AgentSpec::Process(process) => {
                let words = process.words.iter().map(PathBuf::from).filter(|path| path.is_absolute());
                words.chain(process.working_dir.clone()).collect()
            }
            AgentSpec::Remote(_) | AgentSpec::Nop | AgentSpec::Reference => Vec::new(),
        }
    }
}

/// Kinds of agents that can be run.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentSpec {
    /// A program that is started for each run.
    Process(ProcessSpec),
    /// An endpoint that somebody else runs.
    Remote(RemoteSpec),
    /// An agent that does nothing and says `completed`: every useful test fails it.
    Nop,
    /// An agent that lays down the reference files of the test: every correct test passes it.
    Reference,
}

impl AgentSpec {
    /// Variables that a program gets from the agent's settings and from Proctor's own environment, and headers that an endpoint gets, whose
    /// names are those of secrets.
    pub(crate) fn secrets<'v>(
        &'v self,
        variables: &'v [(std::ffi::OsString, std::ffi::OsString)],
    ) -> impl Iterator<Item = (&'v str, &'v str)> {
        let program = match self {
            AgentSpec::Process(program) => Some(program),
            AgentSpec::Remote(_) | AgentSpec::Nop | AgentSpec::Reference => None,
        };
        let own = program.into_iter().flat_map(|program| &program.environment);
        let own = own.map(|(name, value)| (name.as_str(), value.expose()));
        let passed = program.into_iter().flat_map(|program| &program.inherited).filter_map(|wanted| {
            let (name, value) = variables.iter().find(|(name, _)| name.to_str() == Some(wanted))?;
            Some((name.to_str()?, value.to_str()?))
        });
        let remote = match self {
            AgentSpec::Remote(remote) => Some(remote),
            AgentSpec::Process(_) | AgentSpec::Nop | AgentSpec::Reference => None,
        };
        let headers = remote.into_iter().flat_map(|remote| &remote.headers);
        let headers = headers.filter(|(name, _)| is_secret_header(name)).flat_map(|(name, value)| {
            // `Bearer TOKEN`: the token alone is a secret too.
            let value = value.expose();
            let credentials = value.split_once(' ').map(|(_, credentials)| credentials.trim());
            std::iter::once(value).chain(credentials).map(|value| (name.as_str(), value))
        });
        own.chain(passed).filter(|(name, _)| is_secret_name(name)).chain(headers)
    }
}

/// A program.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessSpec {
    /// Program and arguments.
    pub words: Vec<String>,
    /// Whether it reads the description and writes the artifact, instead of speaking the protocol.
    pub is_plain: bool,
    /// Working directory; the workspace if absent.
    pub working_dir: Option<PathBuf>,
    /// Variables of the process.
    pub environment: Vec<(String, SecretValue)>,
    /// Names of variables that the process gets from Proctor's own environment.
    pub inherited: Vec<String>,
    /// Whether it also gets all others whose names do not look like those of secrets.
    pub inherits_others: bool,
}

/// Whether a variable's name looks like that of a secret.
pub fn is_secret_name(name: &str) -> bool {
    const ENDINGS: [&str; 9] = [
        "_KEY",
        "_TOKEN",
        "_SECRET",
        "_PASSWORD",
        "_PASSWD",
        "_PWD",
        "_CREDENTIAL",
        "_CREDENTIALS",
        "_APIKEY",
    ];
    const BEGINNINGS: [&str; 12] = [
        "AWS_",
        "AZURE_",
        "GCP_",
        "GOOGLE_",
        "ANTHROPIC_",
        "OPENAI_",
        "HF_",
        "HUGGING_FACE_",
        "HUGGINGFACE_",
        "DATABASE_",
        "DB_",
        "PRIVATE_",
    ];
    let name = name.to_ascii_uppercase();
    // Settings of Proctor itself name its state directory and credentials.
    name.starts_with("PROCTOR_")
        || ENDINGS.iter().any(|ending| name.ends_with(ending) || ending.strip_prefix('_') == Some(&name))
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// Whether a header's name looks like that of a secret.
fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('-', "_");
    is_secret_name(&name) || name.contains("AUTH") || name.contains("COOKIE")
}

/// An endpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteSpec {
    /// Address with its scheme.
    pub url: String,
    /// Whether the address is used as it is, also without a path.
    pub is_exact: bool,
    /// Additional headers.
    pub headers: Vec<(String, SecretValue)>,
}

/// The surroundings that an address is resolved in.
#[derive(Clone, Copy)]
pub struct Surroundings<'s> {
    /// The folder where Proctor was started.
    pub directory: &'s Path,
    /// Whether a file exists.
    pub is_file: &'s dyn Fn(&Path) -> bool,
    /// Whether a program of this name is on the search path.
    pub is_program: &'s dyn Fn(&str) -> bool,
    /// Agents of the settings, by name, and the folder that their commands start from.
    pub configured: Configured<'s>,
}

/// Agents of the settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Configured<'s> {
    /// Names and addresses.
    pub agents: &'s [(String, String)],
    /// The folder of the settings.
    pub directory: Option<&'s Path>,
}

/// A mistake in the name or address of an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// There is no such agent.
    #[error("there is no agent {}; give a name of the suite ({known}), or an address: stdio:COMMAND, plain:COMMAND, http://…, ws://…, grpc://…, nop, reference", quoted(.name))]
    Unknown {
        /// The name as given.
        name: String,
        /// Names that the suite has.
        known: String,
    },
    /// The suite only names the agent.
    #[error("the suite names the agent {} without its settings; give them under `[test.agents]` or as an address", quoted(.0))]
    NotDefined(String),
    /// The command cannot be split into words.
    #[error("the command of the agent cannot be read: {0}")]
    Words(#[from] WordsError),
    /// The command is empty.
    #[error("the agent {} has no command; write it like stdio:python3 agent.py", quoted(.0))]
    NoCommand(String),
    /// The address has no host, or a port that is none.
    #[error("the address {} cannot be used: {problem}", quoted(.address))]
    Address {
        /// The address as given.
        address: String,
        /// The problem.
        problem: AddressProblem,
    },
    /// Certificates would not be verified.
    #[error("the agent {} has `verify_ssl: false`, but certificates are always verified; trust its authority instead", quoted(.0))]
    Unverified(String),
}

/// The request to name an agent, with those that the suite has.
pub fn unnamed(named: &[suite::Agent]) -> String {
    let names: Vec<String> = named.iter().take(20).map(|agent| quoted(&agent.name)).collect();
    let known =
        if names.is_empty() { String::new() } else { format!(" (the suite has {})", names.join(", ")) };
    format!("name the agent under test: `--agent NAME`{known} or `--agent stdio:COMMAND`")
}

/// A mistake in the host and port of an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressProblem {
    /// There is no host.
    #[error("it names no host")]
    NoHost,
    /// The port is no number of a port.
    #[error("the port {} is no number from 1 to 65535", quoted(.0))]
    Port(String),
}

/// The mistake in the host and port of a URL, if it has one.
///
/// ```
/// use proctor_runner::agent::{AddressProblem, address_problem};
/// assert_eq!(address_problem("http://127.0.0.1:8080/execute"), None);
/// assert_eq!(address_problem("ws://[::1]"), None);
/// assert_eq!(address_problem("http://127.0.0.1:99999"), Some(AddressProblem::Port("99999".to_owned())));
/// ```
pub fn address_problem(url: &str) -> Option<AddressProblem> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    // The colons of an IPv6 address stand in brackets.
    let (host, port) = match place.rsplit_once(']') {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Some(AddressProblem::NoHost);
    }
    let is_port = |port: &&str| port.parse::<u16>().is_ok_and(|port| port > 0);
    port.filter(|port| !is_port(port)).map(|port| AddressProblem::Port(port.to_owned()))
}

/// Scheme, host and port of a URL, for messages. Credentials, path and query may hold secrets.
pub(crate) fn shown_address(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    format!("{scheme}://{place}")
}

/// Doubtful parts of an agent's command that do not prevent its use: signs that only a shell understands, and scripts that are not there.
/// Agents of a suite are looked at when it is loaded.
pub fn warnings(given: &str, agent: &Agent, around: &Surroundings<'_>) -> Vec<String> {
    let AgentSpec::Process(program) = &agent.spec else { return Vec::new() };
    let mut warnings = Vec::new();
    let configured = around.configured.agents.iter().find(|(name, _)| name == given);
    let address = configured.map_or(given, |(_, address)| address.as_str());
    let command = address.strip_prefix("stdio:").or_else(|| address.strip_prefix("plain:"));
    if let Some(sign) = command.and_then(suite::shell_sign) {
        warnings.push(format!("{} is an ordinary word: there is no shell; write `sh -c '…'`", quoted(&sign)));
    }
    let in_workspace = program.working_dir.is_none();
    for word in program.words.iter().skip(1).filter(|word| in_workspace && looks_like_script(word)) {
        warnings.push(format!("{} is no file in the working directory", quoted(word)));
    }
    warnings
}

/// Whether an argument is a relative path of a script. One that is there was made absolute.
fn looks_like_script(word: &str) -> bool {
    const ENDINGS: [&str; 12] =
        ["py", "js", "mjs", "cjs", "ts", "tsx", "sh", "bash", "rb", "pl", "php", "jar"];
    let path = Path::new(word);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    path.is_relative()
        && !word.starts_with('-')
        && !word.contains(char::is_whitespace)
        && ENDINGS.contains(&ending)
}

/// Resolves a name of the suite, or an address.
pub fn resolve(text: &str, named: &[suite::Agent], around: &Surroundings<'_>) -> Result<Agent, AgentError> {
    let configured = around.configured.agents.iter().find(|(name, _)| name == text);
    match (named.iter().find(|agent| agent.name == text), configured) {
        // A suite may leave the settings of an agent to the machine that it is run on.
        (Some(agent), None) => return from_suite(agent, around),
        (Some(agent), Some(_)) if agent.kind != AgentKind::Named => return from_suite(agent, around),
        (_, Some((name, address))) => {
            let directory = around.configured.directory.unwrap_or(around.directory);
            let inside = Surroundings { directory, configured: Configured::default(), ..*around };
            let agent = resolve(address, &[], &inside)?;
            return Ok(Agent { name: name.clone(), ..agent });
        }
        (None, None) => {}
    }
    let spec = match text {
        "nop" => AgentSpec::Nop,
        "reference" => AgentSpec::Reference,
        _ => match text.split_once(':') {
            Some(("stdio" | "plain", command)) if command.trim().is_empty() => {
                return Err(AgentError::NoCommand(text.to_owned()));
            }
            Some(("stdio", command)) => process(text, &split_words(command)?, false, around)?,
            Some(("plain", command)) => process(text, &split_words(command)?, true, around)?,
            Some(("http" | "https" | "ws" | "wss" | "grpc" | "grpcs", rest)) if rest.starts_with("//") => {
                if let Some(problem) = address_problem(text) {
                    return Err(AgentError::Address { address: text.to_owned(), problem });
                }
                AgentSpec::Remote(RemoteSpec { url: text.to_owned(), is_exact: false, headers: Vec::new() })
            }
            _ => {
                let configured = around.configured.agents.iter().map(|(name, _)| name.as_str());
                let names: Vec<&str> =
                    named.iter().map(|agent| agent.name.as_str()).chain(configured).collect();
                let known = if names.is_empty() { "it names none".to_owned() } else { names.join(", ") };
                return Err(AgentError::Unknown { name: text.to_owned(), known });
            }
        },
    };
    Ok(Agent { name: text.to_owned(), spec, timeout: None, retries: 0, retry_delay: RETRY_DELAY })
}

fn from_suite(agent: &suite::Agent, around: &Surroundings<'_>) -> Result<Agent, AgentError> {
    let remote = |url: &str, headers: &[(String, SecretValue)], verified: bool| {
        if !verified {
            return Err(AgentError::Unverified(agent.name.clone()));
        }
        Ok(AgentSpec::Remote(RemoteSpec { url: url.to_owned(), is_exact: true, headers: headers.to_vec() }))
    };
    let spec = match &agent.kind {
        AgentKind::Cli(program) => with_settings(agent, program, false, around)?,
        AgentKind::Plain(program) => with_settings(agent, program, true, around)?,
        AgentKind::Http(http) => {
            let url = http.stream_endpoint.as_ref().unwrap_or(&http.endpoint);
            remote(url, &http.headers, http.verify_ssl)?
        }
        AgentKind::Ws(socket) => remote(&socket.endpoint, &socket.headers, socket.verify_ssl)?,
        AgentKind::Grpc(service) => remote(&service.endpoint, &service.headers, service.verify_ssl)?,
        AgentKind::Nop => AgentSpec::Nop,
        AgentKind::Reference => AgentSpec::Reference,
        AgentKind::Named => return Err(AgentError::NotDefined(agent.name.clone())),
    };
    let timeout = agent.timeout_seconds.filter(|seconds| *seconds > 0.0);
    let timeout = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let retry_delay = Duration::try_from_secs_f64(agent.retry_delay_seconds).unwrap_or(RETRY_DELAY);
    Ok(Agent { name: agent.name.clone(), spec, timeout, retries: agent.retry_count, retry_delay })
}

fn with_settings(
    agent: &suite::Agent,
    program: &ProcessAgent,
    is_plain: bool,
    around: &Surroundings<'_>,
) -> Result<AgentSpec, AgentError> {
    let spec = process(&agent.name, &program.command, is_plain, around)?;
    let AgentSpec::Process(mut spec) = spec else { return Ok(spec) };
    spec.working_dir = program.working_dir.as_ref().map(|folder| around.directory.join(folder));
    spec.environment.clone_from(&program.environment);
    spec.inherited.clone_from(&program.allowed_env_vars);
    spec.inherits_others = program.inherit_environment;
    Ok(AgentSpec::Process(spec))
}

fn process(
    name: &str,
    words: &[String],
    is_plain: bool,
    around: &Surroundings<'_>,
) -> Result<AgentSpec, AgentError> {
    if words.first().is_none_or(String::is_empty) {
        return Err(AgentError::NoCommand(name.to_owned()));
    }
    let words = words.iter().enumerate().map(|(index, word)| absolute(word, index == 0, around)).collect();
    Ok(AgentSpec::Process(ProcessSpec {
        words,
        is_plain,
        working_dir: None,
        environment: Vec::new(),
        inherited: Vec::new(),
        inherits_others: false,
    }))
}

/// Makes a word absolute that names a file where Proctor was started: the agent runs in another folder. A program without a slash is one
/// of the search path, if there is one.
fn absolute(word: &str, is_program: bool, around: &Surroundings<'_>) -> String {
    if Path::new(word).is_absolute() || (is_program && !word.contains('/') && (around.is_program)(word)) {
        return word.to_owned();
    }
    let path = around.directory.join(word.strip_prefix("./").unwrap_or(word));
    match (around.is_file)(&path).then(|| path.to_str().map(str::to_owned)).flatten() {
        Some(path) => path,
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests;
