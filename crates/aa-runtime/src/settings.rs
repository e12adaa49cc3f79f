//! The variables that configure the program, as its callers know them.

use std::path::PathBuf;
use std::time::Duration;

use proctor_clients::assembly::client::Token;
use proctor_wire::assembly::proto::common::v1::AgentId;

use super::reports::Limits;

/// Where rules are, if nothing else is said.
const RULES_FILE: &str = "/etc/aa/policy.toml";

/// Known to callers, of no use here.
const UNUSED: &[&str] = &[
    "AA_PIPELINE_BROADCAST_CAPACITY",
    "AA_METRICS_ADDR",
    "AA_METRICS_ALLOW_REMOTE",
    "AA_ENFORCEMENT_MAX_FIELD_BYTES",
    "AA_CORRELATION_WINDOW_MS",
    "AA_CORRELATION_INTERVAL_MS",
    "AA_NATS_CONFIG_PATH",
    "AA_DEVINT_ENABLED",
];

/// What the variables say.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whose runtime this is.
    pub agent_id: String,
    /// The agent's team; may be empty.
    pub team_id: String,
    /// Its organisation; may be empty.
    pub org_id: String,
    /// Where the gateway is.
    pub gateway: Option<String>,
    /// Whether nothing but the gateway decides.
    pub fail_closed: bool,
    /// How long the gateway may take.
    pub timeout: Duration,
    /// The token for queries that have none.
    pub token: Option<Token>,
    /// Whom the token belongs to.
    pub gateway_agent_id: Option<String>,
    /// How many connections there may be.
    pub max_connections: usize,
    /// The file of rules; none: there shall be no rules.
    pub policy: Option<PathBuf>,
    /// How many threads; none: as many as the machine has.
    pub worker_threads: Option<usize>,
    /// How long a stop may take.
    pub shutdown: Duration,
    /// How many reported events wait, and when they go.
    pub reports: Limits,
    /// The file that keeps reported events until the gateway has them.
    pub buffer: Option<PathBuf>,
    /// What was set and is not used.
    pub unused: Vec<&'static str>,
}

impl Settings {
    /// Reads them. An empty variable is like none, except where empty means something.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Result<Settings, String> {
        let text = |name: &str| variable(name).filter(|value| !value.is_empty());
        let number = |name: &str, usual: u64, range: std::ops::RangeInclusive<u64>| match text(name) {
            None => Ok(usual),
            Some(value) => match value.trim().parse() {
                Ok(number) if range.contains(&number) => Ok(number),
                _ => Err(format!(
                    "{name} is `{value}`: a number from {} to {} is expected",
                    range.start(),
                    range.end()
                )),
            },
        };
        let token = match text("AA_GATEWAY_CREDENTIAL_TOKEN") {
            // The secret is not repeated.
            Some(value) => Some(
                Token::new(value)
                    .ok_or("AA_GATEWAY_CREDENTIAL_TOKEN holds characters that a token cannot have")?,
            ),
            None => None,
        };
        let gateway_agent_id = text("AA_GATEWAY_AGENT_ID");
        let threads = number("AA_RUNTIME_WORKER_THREADS", 0, 0..=1024)?;
        let agent_id = agent_id(variable("AA_AGENT_ID"))?;
        Ok(Settings {
            buffer: text("AA_AUDIT_BUFFER_PATH").map(|path| buffer(PathBuf::from(path), &agent_id)),
            reports: Limits {
                events: size(number("AA_PIPELINE_INPUT_BUFFER", 10_000, 1..=1_000_000)?),
                // Gateways take no more at once.
                batch: size(number("AA_PIPELINE_BATCH_SIZE", 100, 1..=10_000)?),
                age: Duration::from_millis(number("AA_PIPELINE_FLUSH_INTERVAL_MS", 100, 1..=60_000)?),
            },
            agent_id,
            team_id: text("AA_AGENT_TEAM_ID").unwrap_or_default(),
            org_id: text("AA_AGENT_ORG_ID").unwrap_or_default(),
            gateway: text("AA_GATEWAY_ENDPOINT"),
            fail_closed: is_true("AA_GATEWAY_FAIL_CLOSED", text("AA_GATEWAY_FAIL_CLOSED").as_deref())?,
            timeout: Duration::from_millis(number("AA_GATEWAY_TIMEOUT_MS", 5000, 1..=600_000)?),
            token,
            gateway_agent_id,
            max_connections: size(number("AA_IPC_MAX_CONNECTIONS", 64, 1..=65_536)?),
            // Empty: there shall be none.
            policy: match variable("AA_POLICY_PATH") {
                None => Some(PathBuf::from(RULES_FILE)),
                Some(path) => (!path.is_empty()).then(|| PathBuf::from(path)),
            },
            worker_threads: (threads > 0).then(|| size(threads)),
            shutdown: Duration::from_secs(number("AA_RUNTIME_SHUTDOWN_TIMEOUT_SECS", 30, 0..=3600)?),
            unused: UNUSED.iter().copied().filter(|name| variable(name).is_some()).collect(),
        })
    }

    /// The socket that an agent's library looks for.
    pub fn default_socket(&self) -> PathBuf {
        PathBuf::from(format!("/tmp/aa-runtime-{}.sock", self.agent_id))
    }

    /// Whether commands to this agent can be listened to.
    pub fn has_pair(&self) -> bool {
        self.token.is_some() && self.gateway_agent_id.is_some()
    }

    /// Who the agent is for the gateway.
    pub fn agent(&self) -> AgentId {
        AgentId {
            org_id: self.org_id.clone(),
            team_id: self.team_id.clone(),
            agent_id: self.gateway_agent_id.clone().unwrap_or_else(|| self.agent_id.clone()),
        }
    }

    /// The names under which operations of this agent are stopped.
    pub fn names(&self) -> Vec<String> {
        std::iter::once(self.agent_id.clone()).chain(self.gateway_agent_id.clone()).collect()
    }
}

/// A folder may be shared by the runtimes of several agents.
fn buffer(path: PathBuf, agent_id: &str) -> PathBuf {
    if path.is_dir() { path.join(format!("aa-runtime-{agent_id}.events")) } else { path }
}

/// The name is also that of a file.
fn agent_id(value: Option<String>) -> Result<String, String> {
    let value = value.unwrap_or_default();
    if value.trim().is_empty() {
        return Err("AA_AGENT_ID is not set: it names the agent whose runtime this is".to_owned());
    }
    if value.contains('/') || value.contains("..") || value.contains('\0') {
        return Err(format!(
            "AA_AGENT_ID `{value}` must not contain `/` or `..`: it is part of the socket's name"
        ));
    }
    Ok(value)
}

fn is_true(name: &str, value: Option<&str>) -> Result<bool, String> {
    match value.map(str::trim) {
        None | Some("true" | "1" | "yes" | "on" | "TRUE" | "True") => Ok(true),
        Some("false" | "0" | "no" | "off" | "FALSE" | "False") => Ok(false),
        // Whoever wrote it meant something; guessing could open a door.
        Some(other) => Err(format!("{name} is `{other}`: use `true` or `false`")),
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, String> {
        Settings::read(&|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn what_is_not_said_is_as_callers_expect() {
        let settings = read(&[("AA_AGENT_ID", "agent-001")]).unwrap();
        assert_eq!(settings.default_socket().to_str(), Some("/tmp/aa-runtime-agent-001.sock"));
        assert!(settings.fail_closed && settings.gateway.is_none() && !settings.has_pair());
        assert_eq!(settings.timeout, Duration::from_secs(5));
        assert_eq!((settings.max_connections, settings.worker_threads), (64, None));
        assert_eq!(settings.policy.as_deref().unwrap().to_str(), Some("/etc/aa/policy.toml"));
        assert_eq!(settings.shutdown, Duration::from_secs(30));
        assert_eq!(read(&[("AA_AGENT_ID", "a"), ("AA_POLICY_PATH", "")]).unwrap().policy, None);
        assert_eq!((settings.reports, settings.buffer), (Limits::default(), None));
        let unused = [("AA_AGENT_ID", "a"), ("AA_METRICS_ADDR", "0.0.0.0:8080"), ("AA_DEVINT_ENABLED", "")];
        assert_eq!(read(&unused).unwrap().unused, ["AA_METRICS_ADDR", "AA_DEVINT_ENABLED"]);
    }

    #[test]
    fn reports_wait_as_long_and_where_it_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let with_path = |path: &std::path::Path| {
            let settings = [
                ("AA_AGENT_ID", "a"),
                ("AA_PIPELINE_INPUT_BUFFER", "7"),
                ("AA_PIPELINE_BATCH_SIZE", "3"),
                ("AA_PIPELINE_FLUSH_INTERVAL_MS", "20"),
                ("AA_AUDIT_BUFFER_PATH", path.to_str().unwrap()),
            ];
            read(&settings).unwrap()
        };
        let settings = with_path(&folder.path().join("events"));
        assert_eq!(settings.reports, Limits { events: 7, batch: 3, age: Duration::from_millis(20) });
        assert_eq!(settings.buffer, Some(folder.path().join("events")));
        assert!(settings.unused.is_empty());
        assert_eq!(with_path(folder.path()).buffer, Some(folder.path().join("aa-runtime-a.events")));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        for name in ["", "  ", "a/b", "..", "a..b"] {
            assert!(read(&[("AA_AGENT_ID", name)]).unwrap_err().contains("AA_AGENT_ID"), "{name}");
        }
        assert!(read(&[]).is_err());
        let wrong = [
            ("AA_GATEWAY_FAIL_CLOSED", "maybe"),
            ("AA_GATEWAY_TIMEOUT_MS", "0"),
            ("AA_GATEWAY_TIMEOUT_MS", "5s"),
            ("AA_IPC_MAX_CONNECTIONS", "0"),
            ("AA_IPC_MAX_CONNECTIONS", "-1"),
            ("AA_RUNTIME_WORKER_THREADS", "many"),
            ("AA_PIPELINE_INPUT_BUFFER", "0"),
            ("AA_PIPELINE_BATCH_SIZE", "10001"),
            ("AA_PIPELINE_FLUSH_INTERVAL_MS", "soon"),
            ("AA_GATEWAY_CREDENTIAL_TOKEN", "two\nlines"),
        ];
        for (name, value) in wrong {
            let problem = read(&[("AA_AGENT_ID", "a"), (name, value)]).unwrap_err();
            assert!(problem.contains(name), "{problem}");
        }
        let secret =
            read(&[("AA_AGENT_ID", "a"), ("AA_GATEWAY_CREDENTIAL_TOKEN", "secret\u{1}")]).unwrap_err();
        assert!(!secret.contains("secret\u{1}"));
    }

    #[test]
    fn the_token_and_its_owner_are_a_pair() {
        let pair = [
            ("AA_AGENT_ID", "a"),
            ("AA_GATEWAY_CREDENTIAL_TOKEN", "3f2a"),
            ("AA_GATEWAY_AGENT_ID", "did:key:z6"),
            ("AA_AGENT_TEAM_ID", "t"),
            ("AA_GATEWAY_FAIL_CLOSED", "false"),
        ];
        let settings = read(&pair).unwrap();
        assert!(settings.has_pair() && !settings.fail_closed);
        assert_eq!(
            (settings.agent().agent_id.as_str(), settings.agent().team_id.as_str()),
            ("did:key:z6", "t")
        );
        assert_eq!(settings.names(), ["a", "did:key:z6"]);
        assert!(!format!("{settings:?}").contains("3f2a"));
        assert!(!read(&pair[..2]).unwrap().has_pair());
        assert!(!read(&[pair[0], pair[2]]).unwrap().has_pair());
    }
}
