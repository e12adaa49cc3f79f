//! `aa-gateway`: the gateway of Agent Assembly, with the flags and variables of the program that scripts start under that name.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use clap::builder::PossibleValuesParser;

use crate::cli::AssemblyArgs;
use crate::commands::serve::{start_gateway, until_stopped};
use crate::config::{Config, Overrides, WebhookConfig};
use crate::doors::assembly::AssemblyMode;
use crate::failure::Failure;
use crate::{log, output};

/// Agent Assembly's gateway: registry, policy checks, approvals and audit over gRPC.
#[derive(Debug, Parser)]
#[command(name = "aa-gateway", version, about, disable_help_subcommand = true)]
struct Flags {
    /// A policy document, or a folder of them.
    #[arg(long, value_name = "FILE|DIR")]
    policy: PathBuf,
    /// Address for gRPC; port 0 is the kernel's choice.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:50051")]
    listen: SocketAddr,
    /// A Unix socket to listen on as well.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Folder of the chained audit log.
    #[arg(long, env = "AA_AUDIT_DIR", value_name = "DIR")]
    audit_dir: Option<PathBuf>,
    /// Where state is kept: beside this file, in a folder of its name that ends in `.proctor`.
    #[arg(long, env = "AA_GATEWAY_DB_PATH", value_name = "FILE")]
    db_path: Option<PathBuf>,
    /// `strict` (default; `legacy-grpc`, `local` and `remote` mean the same here): every check needs a token. `relaxed`: agents may have free
    /// identifiers and ask without a token.
    #[arg(long, env = "AA_MODE", value_name = "MODE", default_value = "strict",
          value_parser = PossibleValuesParser::new(["strict", "relaxed", "legacy-grpc", "local", "remote"]))]
    mode: String,
}

/// Runs it.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let flags: Flags = match super::flags("aa-gateway", arguments) {
        Ok(flags) => flags,
        Err(code) => return code,
    };
    let outcome = serve(&flags);
    log::flush();
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
    let signal = until_stopped(&config, async |owner, stop| {
        let (address, serving) = start_gateway(&config, owner, stop).await?;
        let ready = format!("gRPC server listening on TCP {address}");
        // Scripts wait for this line; some read one stream, some the other.
        output::data(&ready)?;
        log::raw(&format!("aa-gateway: {ready}"));
        if let Some(socket) = &config.assembly.socket {
            log::raw(&format!("aa-gateway: gRPC server listening on Unix socket {}", socket.display()));
        }
        Ok(serving)
    });
    signal.map(|_| ())
}

fn config(flags: &Flags) -> Result<Config, Failure> {
    let directory =
        std::env::current_dir().map_err(|error| Failure::from(format!("working directory: {error}")))?;
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let file = |name: &str| variable(name).map(PathBuf::from);
    let overrides = Overrides {
        state: Some(state(flags)?),
        policy: Some(flags.policy.clone()),
        grpc: Some(flags.listen),
        tls: (
            file("AA_GATEWAY_GRPC_TLS_CERT"),
            file("AA_GATEWAY_GRPC_TLS_KEY"),
            file("AA_GATEWAY_GRPC_TLS_CLIENT_CA"),
        ),
        assembly: AssemblyArgs {
            assembly_mode: (flags.mode == "relaxed").then_some(AssemblyMode::Relaxed),
            assembly_socket: flags.socket.clone(),
            audit_dir: flags.audit_dir.clone(),
        },
        ..Overrides::default()
    };
    if overrides.tls.0.is_some() != overrides.tls.1.is_some() {
        return Err(Failure::from("AA_GATEWAY_GRPC_TLS_CERT and AA_GATEWAY_GRPC_TLS_KEY need each other"));
    }
    let mut config = Config::load(&directory, &overrides)?;
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

/// `--db-path x/local.db` keeps its state in `x/local.proctor`; without it, `~/.aa/gateway.proctor`.
fn state(flags: &Flags) -> Result<PathBuf, Failure> {
    if let Some(file) = &flags.db_path {
        return Ok(file.with_extension("proctor"));
    }
    if let Some(state) = std::env::var_os("PROCTOR_STATE").filter(|state| !state.is_empty()) {
        return Ok(PathBuf::from(state));
    }
    let home = std::env::var_os("HOME").filter(|home| Path::new(home).is_absolute());
    let home = home.ok_or_else(|| Failure::from("there is no home folder: set HOME, or give `--db-path`"))?;
    Ok(PathBuf::from(home).join(".aa").join("gateway.proctor"))
}
