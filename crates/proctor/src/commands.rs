//! The commands.

mod action_args;
mod agent;
mod approve;
mod assert;
mod atp;
mod audit;
mod bench;
mod demo;
pub mod follow;
mod gate;
mod harness;
mod init;
mod manifest;
pub mod names;
mod policy;
mod policy_accept;
mod policy_test;
mod records;
mod runs;
pub mod serve;
pub mod session;
mod test;
mod tiles;
mod verify;
mod verify_chain;
mod witness;

use clap::CommandFactory;

use crate::cli::{Cli, Command};
use crate::config::Config;
use crate::failure::{Failure, OK, Outcome};

/// Context of every command.
pub struct Context {
    /// The settings in force.
    pub config: Config,
    /// `--json`
    pub json: bool,
}

/// Runs a command.
pub fn run(cli: Cli) -> Outcome {
    if let Command::Completion { shell } = &cli.command {
        let mut script = Vec::new();
        clap_complete::generate(*shell, &mut Cli::command(), "proctor", &mut script);
        let script = String::from_utf8_lossy(&script);
        if cli.common.json {
            let json = proctor_core::json::Json::object().with("script", script.as_ref());
            crate::output::data(json)?;
        } else {
            crate::output::data(script.trim_end())?;
        }
        return Ok(OK);
    }
    let directory =
        std::env::current_dir().map_err(|error| Failure::from(format!("working directory: {error}")))?;
    let mut overrides = cli.common.overrides();
    if let Command::Serve(arguments) = &cli.command {
        overrides.http = arguments.http;
        overrides.grpc = arguments.grpc;
        overrides.ahp_socket.clone_from(&arguments.ahp_socket);
        overrides.tls =
            (arguments.tls_certificate.clone(), arguments.tls_key.clone(), arguments.tls_client_ca.clone());
        overrides.ahp = arguments.ahp.clone();
        overrides.assembly = arguments.assembly.clone();
    }
    if let Command::Harness(arguments) = &cli.command {
        overrides.ahp = arguments.clone();
    }
    let config = Config::load(&directory, &overrides)?;
    let context = Context { config, json: cli.common.json };
    match cli.command {
        Command::Init(arguments) => init::run(&context, &directory, &arguments),
        Command::Gate => gate::run(&context),
        Command::Manifest { words } => manifest::run(&context, &words),
        Command::Serve(_) => serve::run(&context),
        Command::Harness(_) => harness::run(&context),
        Command::Demo => demo::run(&context),
        Command::Policy(command) => policy::run(&context, command),
        Command::Session(command) => session::run(&context, &command),
        Command::Audit(command) => audit::run(&context, command),
        Command::Approve(command) => approve::run(&context, command),
        Command::Agent(command) => agent::run(&context, &command),
        Command::Op(command) => agent::run_op(&context, &command),
        Command::Test(arguments) => test::run(&context, &directory, &arguments),
        Command::Runs(command) => runs::run(&context, &command),
        Command::Atp(command) => atp::run(&context, &directory, &command),
        Command::Assert(arguments) => assert::run(&context, &arguments),
        Command::Names { dir, attest } => names::run(&context, dir.as_deref(), attest.as_deref()),
        Command::Completion { .. } => Ok(OK),
    }
}
