//! `aa-gateway`: the gateway of Agent Assembly, with the flags and variables of the program that scripts start under that name.

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use clap::builder::PossibleValuesParser;

use crate::cli::{AssemblyArgs, AssemblyModeArg};
use crate::commands::serve::{start_gateway, until_stopped};
use crate::config::{Config, Overrides, WebhookConfig};
use crate::failure::Failure;
use crate::output;

/// Default address, where scripts look for the gateway.
const USUAL_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 50051);

/// Variables that callers know, of no use here: prices are part of the evaluator, and there is no HTTP interface, message bus or other store.
const UNUSED: &[&str] = &[
    "AA_PRICING_FILE",
    "AA_GATEWAY_AUTH",
    "AA_JWT_SECRET",
    "AA_API_KEYS_PATH",
    "AA_RATE_LIMIT_RPM",
    "AA_AUDIT_NATS_URL",
    "AA_AUDIT_POSTGRES_URL",
    "AA_SENSITIVE_DATA_PROJECTION_DB",
];
/// Prefixes of such variables.
const UNUSED_FAMILIES: &[&str] = &["AA_OPCONTROL_NATS_", "AAASM_"];

/// Agent Assembly's gateway: agent registry, policy checks, approvals and audit, over gRPC.
#[derive(Debug, Parser)]
#[command(name = "aa-gateway", version, about, disable_help_subcommand = true)]
struct Flags {
    /// Policy document, or a folder of documents; reloaded when it changes.
    #[arg(long, value_name = "FILE|DIR")]
    policy: PathBuf,
    /// TCP address to listen on; port 0 takes a free port (default: 127.0.0.1:50051, unless `--socket` is given).
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Unix socket to listen on, in addition to `--listen`; without `--listen`, no TCP port is opened.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Folder of the chained audit log (default: `aa/audit` in XDG_DATA_HOME or ~/.local/share; no log is written if the state directory
    /// is named and this is not).
    #[arg(long, env = "AA_AUDIT_DIR", value_name = "DIR")]
    audit_dir: Option<PathBuf>,
    /// Location of the state directory: `x/local.db` means `x/local.proctor` (default: ~/.aa/gateway.proctor). The file itself is not
    /// used.
    #[arg(long, env = "AA_GATEWAY_DB_PATH", value_name = "FILE")]
    db_path: Option<PathBuf>,
    /// Identity checks: `strict` denies a check without a known token; `relaxed` accepts agents without a token and with any identifier.
    /// `legacy-grpc`, `local` and `remote` mean `strict`.
    #[arg(long, env = "AA_MODE", value_name = "MODE", default_value = "strict",
          value_parser = PossibleValuesParser::new(["strict", "relaxed", "legacy-grpc", "local", "remote"]))]
    mode: String,
}

/// Runs the program with the arguments after its name.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let flags: Flags = match super::flags("aa-gateway", arguments) {
        Ok(flags) => flags,
        Err(code) => return code,
    };
    let outcome = serve(&flags);
    crate::logging::flush();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, lines }) => {
            for line in &lines {
                output::error(line);
            }
            ExitCode::from(code)
        }
    }
}

fn serve(flags: &Flags) -> Result<(), Failure> {
    let config = config(flags)?;
    let unused = unused(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()));
    if !unused.is_empty() {
        crate::logging::raw(&format!("aa-gateway: not used by this program: {}", unused.join(", ")));
    }
    let signal = until_stopped(&config, async |owner, stop| {
        let (address, serving) = start_gateway(&config, flags.has_address(), owner, stop).await?;
        // Scripts wait for these lines; some read one stream, some the other.
        if let Some(address) = address {
            ready(&format!("gRPC server listening on TCP {address}"))?;
        }
        if let Some(socket) = &config.assembly.socket {
            ready(&format!("gRPC server listening on Unix socket {}", socket.display()))?;
        }
        Ok(serving)
    });
    signal.map(|_| ())
}

fn ready(line: &str) -> Result<(), Failure> {
    output::data(line)?;
    crate::logging::raw(&format!("aa-gateway: {line}"));
    Ok(())
}

impl Flags {
    /// Whether there is an address: a socket alone stands for the usual one.
    fn has_address(&self) -> bool {
        self.listen.is_some() || self.socket.is_none()
    }
}

fn config(flags: &Flags) -> Result<Config, Failure> {
    let directory =
        std::env::current_dir().map_err(|error| Failure::from(format!("working directory: {error}")))?;
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let file = |name: &str| variable(name).map(PathBuf::from);
    let paths = gateway_paths(flags, &variable)?;
    let overrides = Overrides {
        state: Some(paths.state),
        policy: Some(flags.policy.clone()),
        grpc: Some(flags.listen.unwrap_or(USUAL_ADDRESS)),
        tls: (
            file("AA_GATEWAY_GRPC_TLS_CERT"),
            file("AA_GATEWAY_GRPC_TLS_KEY"),
            file("AA_GATEWAY_GRPC_TLS_CLIENT_CA"),
        ),
        assembly: AssemblyArgs {
            assembly_mode: (flags.mode == "relaxed").then_some(AssemblyModeArg::Relaxed),
            assembly_socket: flags.socket.clone(),
            audit_dir: flags.audit_dir.clone(),
        },
        ..Overrides::default()
    };
    if overrides.tls.0.is_some() != overrides.tls.1.is_some() {
        return Err(Failure::from("AA_GATEWAY_GRPC_TLS_CERT and AA_GATEWAY_GRPC_TLS_KEY need each other"));
    }
    let mut config = Config::load(&directory, &overrides)?;
    // As the released gateway does: it has nobody who could accept a policy.
    config.loads_weaker = true;
    if config.assembly.audit_dir.is_none() {
        config.assembly.audit_dir = paths.audit;
    }
    match variable("AA_GATEWAY_OPEN").as_deref().map(OsStr::to_string_lossy).as_deref() {
        Some("1" | "true") => config.assembly.open = true,
        Some("0" | "false") | None => {}
        Some(other) => {
            return Err(Failure::from(format!(
                "AA_GATEWAY_OPEN is `{other}`: it is `1` or `true`, `0` or `false`"
            )));
        }
    }
    match std::env::var("AA_GATEWAY_TENANCY_MODE").as_deref() {
        Ok("tenanted") => config.assembly.door.tenanted = true,
        Ok("untenanted" | "") | Err(_) => {}
        Ok(other) => {
            return Err(Failure::from(format!(
                "AA_GATEWAY_TENANCY_MODE is `{other}`: it is `tenanted` or `untenanted`"
            )));
        }
    }
    if let Ok(url) = std::env::var("AA_WEBHOOK_URL")
        && !url.is_empty()
        && config.webhook.is_none()
    {
        config.webhook = Some(WebhookConfig { url, secret_env: None, secret_file: None, events: None });
    }
    Ok(config)
}

/// Paths of the gateway's files.
#[derive(Debug, PartialEq, Eq)]
struct GatewayPaths {
    state: PathBuf,
    /// The folder of the audit log, if nothing names one.
    audit: Option<PathBuf>,
}

/// `--db-path x/local.db` keeps its state in `x/local.proctor`; without it, `~/.aa/gateway.proctor`. Only for that one there is an audit log where
/// the user's data is: others could not write it at the same time.
fn gateway_paths(
    flags: &Flags,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<GatewayPaths, Failure> {
    if let Some(file) = &flags.db_path {
        return Ok(GatewayPaths { state: file.with_extension("proctor"), audit: None });
    }
    if let Some(state) = variable("PROCTOR_STATE") {
        return Ok(GatewayPaths { state: PathBuf::from(state), audit: None });
    }
    let folder = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = folder("HOME")
        .ok_or_else(|| Failure::from("there is no home folder: set HOME, or give `--db-path`"))?;
    let data = folder("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local").join("share"));
    Ok(GatewayPaths {
        state: home.join(".aa").join("gateway.proctor"),
        audit: Some(data.join("aa").join("audit")),
    })
}

/// Variables of the released gateway that have no effect here.
fn unused(names: impl Iterator<Item = String>) -> Vec<String> {
    let is_unused =
        |name: &str| UNUSED.contains(&name) || UNUSED_FAMILIES.iter().any(|family| name.starts_with(family));
    let mut unused: Vec<String> = names.filter(|name| is_unused(name)).collect();
    unused.sort();
    unused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(arguments: &[&str]) -> Flags {
        Flags::try_parse_from([&["aa-gateway", "--policy", "p.yaml"], arguments].concat()).unwrap()
    }

    #[test]
    fn a_socket_alone_stands_for_the_usual_address() {
        for (arguments, has_address) in [
            (&[][..], true),
            (&["--socket", "x.sock"], false),
            (&["--listen", "127.0.0.1:0"], true),
            (&["--socket", "x.sock", "--listen", "127.0.0.1:0"], true),
        ] {
            assert_eq!(flags(arguments).has_address(), has_address, "{arguments:?}");
        }
        assert_eq!(USUAL_ADDRESS.to_string(), "127.0.0.1:50051");
    }

    #[test]
    fn state_and_log_are_where_scripts_look_for_them() {
        type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a str, Option<&'a str>);
        let home = ("HOME", "/home/u");
        let cases: [Case<'_>; 6] = [
            (&[], &[home], "/home/u/.aa/gateway.proctor", Some("/home/u/.local/share/aa/audit")),
            (&[], &[home, ("XDG_DATA_HOME", "/data")], "/home/u/.aa/gateway.proctor", Some("/data/aa/audit")),
            (
                &[],
                &[home, ("XDG_DATA_HOME", "data")],
                "/home/u/.aa/gateway.proctor",
                Some("/home/u/.local/share/aa/audit"),
            ),
            (&["--db-path", "x/local.db"], &[home], "x/local.proctor", None),
            (&["--db-path", "x/local.db"], &[], "x/local.proctor", None),
            (&[], &[home, ("PROCTOR_STATE", "/state")], "/state", None),
        ];
        for (arguments, variables, state, audit) in cases {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
            };
            let expected = GatewayPaths { state: PathBuf::from(state), audit: audit.map(PathBuf::from) };
            let found = gateway_paths(&flags(arguments), &variable).map_err(|failure| failure.lines);
            assert_eq!(found, Ok(expected), "{arguments:?} {variables:?}");
        }
        let homeless = gateway_paths(&flags(&[]), &|_| None).map_err(|failure| failure.lines);
        assert!(homeless.unwrap_err().concat().contains("set HOME"));
    }

    #[test]
    fn variables_that_do_nothing_are_told_by_name() {
        let names = [
            "PATH",
            "AA_RATE_LIMIT_RPM",
            "AA_AUDIT_DIR",
            "AAASM_TLS_CERT",
            "AA_PRICING_FILE",
            "AA_OPCONTROL_NATS_URL",
        ];
        let unused = unused(names.into_iter().map(str::to_owned));
        assert_eq!(
            unused,
            ["AAASM_TLS_CERT", "AA_OPCONTROL_NATS_URL", "AA_PRICING_FILE", "AA_RATE_LIMIT_RPM"]
        );
    }
}
