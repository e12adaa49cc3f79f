//! Settings from environment variables, under the names that Agent Assembly libraries set.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use proctor_clients::assembly::client::Token;
use proctor_wire::assembly::proto::common::v1::AgentId;

use super::reports::Limits;

/// Default of `AA_RUNTIME_SHUTDOWN_TIMEOUT_SECS`: supervisors kill a program that has not ended some seconds after SIGTERM, and connections that
/// ignore the shutdown are given a second more.
const SHUTDOWN_SECS: u64 = 3;

/// Default of `AA_POLICY_PATH`.
const RULES_FILE: &str = "/etc/aa/policy.toml";

/// Variables that callers may set and that this program ignores; set ones are listed in [`Settings::unused`].
const UNUSED: &[&str] = &[
    "AA_PIPELINE_BROADCAST_CAPACITY",
    "AA_ENFORCEMENT_MAX_FIELD_BYTES",
    "AA_CORRELATION_WINDOW_MS",
    "AA_CORRELATION_INTERVAL_MS",
    "AA_NATS_CONFIG_PATH",
    "AA_DEVINT_ENABLED",
];

/// The parsed environment.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The agent that this runtime serves.
    pub agent_id: String,
    /// The agent's team; may be empty.
    pub team_id: String,
    /// The agent's organisation; may be empty.
    pub org_id: String,
    /// The gateway's endpoint.
    pub gateway: Option<String>,
    /// Whether queries are denied while the gateway is unavailable, instead of being decided by local rules.
    pub fail_closed: bool,
    /// Timeout of connecting to the gateway, and of each call.
    pub timeout: Duration,
    /// Credential token for queries that carry none.
    pub token: Option<Token>,
    /// The agent id that the token was issued to.
    pub gateway_agent_id: Option<String>,
    /// Limit of concurrent connections to the socket.
    pub max_connections: usize,
    /// The rules file; `None` disables local rules.
    pub policy: Option<PathBuf>,
    /// Worker threads of the runtime; `None` uses one for each core.
    pub worker_threads: Option<usize>,
    /// Timeout of a graceful shutdown.
    pub shutdown: Duration,
    /// Queue limits and batching of reported events.
    pub reports: Limits,
    /// File that persists reported events until the gateway acknowledges them.
    pub buffer: Option<PathBuf>,
    /// Address of the metrics; `None` serves none.
    pub metrics: Option<SocketAddr>,
    /// Variables that are set and ignored.
    pub unused: Vec<&'static str>,
}

/// Error in the environment variables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A variable is not a number, or out of range.
    #[error("{name} is `{value}`: a number from {min} to {max} is expected")]
    Number {
        /// The variable.
        name: String,
        /// The rejected value.
        value: String,
        /// The smallest accepted number.
        min: u64,
        /// The largest accepted number.
        max: u64,
    },
    /// The address of the metrics cannot be read.
    #[error("AA_METRICS_ADDR is `{0}`: an address and a port are expected, such as `127.0.0.1:9100`")]
    Metrics(String),
    /// The metrics would be served to other machines.
    #[error(
        "AA_METRICS_ADDR {0} can be reached from other machines: use a loopback address, or set AA_METRICS_ALLOW_REMOTE=1"
    )]
    RemoteMetrics(SocketAddr),
    /// A variable is not a boolean.
    #[error("{name} is `{value}`: use `true` or `false`")]
    Flag {
        /// The variable.
        name: String,
        /// The rejected value.
        value: String,
    },
    /// The credential token has invalid characters. The secret is not repeated.
    #[error("AA_GATEWAY_CREDENTIAL_TOKEN holds characters that a token cannot have")]
    Token,
    /// `AA_AGENT_ID` is unset or blank.
    #[error("AA_AGENT_ID is not set: it names the agent whose runtime this is")]
    AgentIdMissing,
    /// `AA_AGENT_ID` cannot be part of a file name.
    #[error("AA_AGENT_ID `{0}` must not contain `/` or `..`: it is part of the socket's name")]
    AgentId(String),
}

impl Settings {
    /// Parses the environment. An empty variable counts as unset, except `AA_POLICY_PATH`, where empty disables local rules.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Result<Settings, SettingsError> {
        let text = |name: &str| variable(name).filter(|value| !value.is_empty());
        let number = |name: &str, usual: u64, range: std::ops::RangeInclusive<u64>| match text(name) {
            None => Ok(usual),
            Some(value) => match value.trim().parse() {
                Ok(number) if range.contains(&number) => Ok(number),
                _ => Err(SettingsError::Number {
                    name: name.to_owned(),
                    value,
                    min: *range.start(),
                    max: *range.end(),
                }),
            },
        };
        let token = match text("AA_GATEWAY_CREDENTIAL_TOKEN") {
            Some(value) => Some(Token::new(value).ok_or(SettingsError::Token)?),
            None => None,
        };
        let gateway_agent_id = text("AA_GATEWAY_AGENT_ID");
        let threads = number("AA_RUNTIME_WORKER_THREADS", 0, 0..=1024)?;
        let agent_id = agent_id(variable("AA_AGENT_ID"))?;
        Ok(Settings {
            buffer: text("AA_AUDIT_BUFFER_PATH").map(|path| buffer(PathBuf::from(path), &agent_id)),
            reports: Limits {
                events: size(number("AA_PIPELINE_INPUT_BUFFER", 10_000, 1..=1_000_000)?),
                // Gateways accept at most 10,000 events in one request.
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
            // Empty disables local rules.
            policy: match variable("AA_POLICY_PATH") {
                None => Some(PathBuf::from(RULES_FILE)),
                Some(path) => (!path.is_empty()).then(|| PathBuf::from(path)),
            },
            worker_threads: (threads > 0).then(|| size(threads)),
            shutdown: Duration::from_secs(number(
                "AA_RUNTIME_SHUTDOWN_TIMEOUT_SECS",
                SHUTDOWN_SECS,
                0..=3600,
            )?),
            metrics: metrics(text("AA_METRICS_ADDR"), text("AA_METRICS_ALLOW_REMOTE").as_deref())?,
            unused: UNUSED.iter().copied().filter(|name| variable(name).is_some()).collect(),
        })
    }

    /// Default socket path of the tagged framings, which agents' libraries connect to.
    pub fn default_socket(&self) -> PathBuf {
        PathBuf::from(format!("/tmp/aa-runtime-{}.sock", self.agent_id))
    }

    /// Whether both the token and its agent id are configured, which the operation control stream needs.
    pub fn has_pair(&self) -> bool {
        self.token.is_some() && self.gateway_agent_id.is_some()
    }

    /// The agent id that is sent to the gateway.
    pub fn agent(&self) -> AgentId {
        AgentId {
            org_id: self.org_id.clone(),
            team_id: self.team_id.clone(),
            agent_id: self.gateway_agent_id.clone().unwrap_or_else(|| self.agent_id.clone()),
        }
    }

    /// Agent ids under which the gateway may pause or terminate this agent.
    pub fn names(&self) -> Vec<String> {
        std::iter::once(self.agent_id.clone()).chain(self.gateway_agent_id.clone()).collect()
    }
}

/// Resolves `AA_AUDIT_BUFFER_PATH`: in a directory, each agent gets a file of its own, so that several runtimes can share it.
fn buffer(path: PathBuf, agent_id: &str) -> PathBuf {
    if path.is_dir() { path.join(format!("aa-runtime-{agent_id}.events")) } else { path }
}

/// Parses the address of the metrics, which have no credentials: other machines see them only if that is asked for.
fn metrics(address: Option<String>, remote: Option<&str>) -> Result<Option<SocketAddr>, SettingsError> {
    let Some(text) = address else { return Ok(None) };
    let numeric = text.trim().replace("localhost:", "127.0.0.1:");
    let address: SocketAddr = numeric.parse().map_err(|_| SettingsError::Metrics(text))?;
    let is_remote = !address.ip().to_canonical().is_loopback();
    if is_remote && !matches!(remote.map(str::trim), Some("1" | "true")) {
        return Err(SettingsError::RemoteMetrics(address));
    }
    Ok(Some(address))
}

/// Validates `AA_AGENT_ID`, which becomes part of the socket's file name.
fn agent_id(value: Option<String>) -> Result<String, SettingsError> {
    let value = value.unwrap_or_default();
    if value.trim().is_empty() {
        return Err(SettingsError::AgentIdMissing);
    }
    if value.contains('/') || value.contains("..") || value.contains('\0') {
        return Err(SettingsError::AgentId(value));
    }
    Ok(value)
}

fn is_true(name: &str, value: Option<&str>) -> Result<bool, SettingsError> {
    match value.map(str::trim) {
        None | Some("true" | "1" | "yes" | "on" | "TRUE" | "True") => Ok(true),
        Some("false" | "0" | "no" | "off" | "FALSE" | "False") => Ok(false),
        // No default for a typo: guessing could turn fail-closed off.
        Some(other) => Err(SettingsError::Flag { name: name.to_owned(), value: other.to_owned() }),
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
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
        assert_eq!(settings.shutdown, Duration::from_secs(3));
        assert_eq!(read(&[("AA_AGENT_ID", "a"), ("AA_POLICY_PATH", "")]).unwrap().policy, None);
        assert_eq!((settings.reports, settings.buffer), (Limits::default(), None));
        let unused = [("AA_AGENT_ID", "a"), ("AA_NATS_CONFIG_PATH", "x"), ("AA_DEVINT_ENABLED", "")];
        assert_eq!(read(&unused).unwrap().unused, ["AA_NATS_CONFIG_PATH", "AA_DEVINT_ENABLED"]);
        assert_eq!(settings.metrics, None);
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
            assert!(
                read(&[("AA_AGENT_ID", name)]).unwrap_err().to_string().contains("AA_AGENT_ID"),
                "{name}"
            );
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
            let problem = read(&[("AA_AGENT_ID", "a"), (name, value)]).unwrap_err().to_string();
            assert!(problem.contains(name), "{problem}");
        }
        let secret =
            read(&[("AA_AGENT_ID", "a"), ("AA_GATEWAY_CREDENTIAL_TOKEN", "secret\u{1}")]).unwrap_err();
        assert!(!secret.to_string().contains("secret\u{1}"));
    }

    #[test]
    fn metrics_are_for_this_machine_unless_others_are_let_in() {
        let at = |address: &str, remote: &str| {
            let variables =
                [("AA_AGENT_ID", "a"), ("AA_METRICS_ADDR", address), ("AA_METRICS_ALLOW_REMOTE", remote)];
            read(&variables).map(|settings| settings.metrics.map(|address| address.to_string()))
        };
        for (address, expected) in [
            ("127.0.0.1:9100", "127.0.0.1:9100"),
            ("localhost:0", "127.0.0.1:0"),
            ("[::1]:9100", "[::1]:9100"),
        ] {
            assert_eq!(at(address, "").unwrap().as_deref(), Some(expected));
        }
        assert_eq!(at("", "").unwrap(), None);
        for address in ["0.0.0.0:8080", "192.0.2.1:80", "[::]:80", "[::ffff:192.0.2.1]:80"] {
            assert!(matches!(at(address, "0"), Err(SettingsError::RemoteMetrics(_))), "{address}");
            assert!(at(address, "1").unwrap().is_some(), "{address}");
        }
        assert_eq!(at("8080", "1"), Err(SettingsError::Metrics("8080".to_owned())));
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
