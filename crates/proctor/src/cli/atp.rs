//! `proctor atp`: messages and agents of the Agent Test Protocol.

use std::path::PathBuf;

use clap::Subcommand;

use super::SandboxArg;

/// A kind of message that can be validated.
fn message_kind(word: &str) -> Result<String, &'static str> {
    match word {
        "request" | "response" | "event" => Ok(word.to_owned()),
        "suite" => Err("suites are checked by `proctor test FILE --check`"),
        _ => Err("known are request, response and event"),
    }
}

#[derive(Debug, Subcommand)]
pub enum AtpCommand {
    /// Print the JSON Schema of requests, responses, events or suites.
    #[command(after_help = "Example:\n  proctor atp schema response > response.schema.json")]
    Schema {
        /// The format.
        #[arg(value_parser = ["request", "response", "event", "suite"])]
        format: String,
    },
    /// Print the gRPC definition of agents.
    #[command(after_help = "Example:\n  proctor atp proto > agent.proto")]
    Proto,
    /// Check a message; exit 0 if it is valid, with or without warnings, 10 if not.
    #[command(after_help = "Example:\n  proctor atp validate response response.json")]
    Validate {
        /// The kind of message: request, response or event.
        #[arg(value_parser = message_kind)]
        kind: String,
        /// File with the message, `-` for stdin. Events may be several, one a line.
        file: PathBuf,
        /// Refuse what released agents send and the document's schemas do not allow.
        #[arg(long)]
        strict: bool,
    },
    /// Check an agent against the duties of the protocol; exit 0 if none is violated, 10 if one is.
    #[command(after_help = "Example:\n  proctor atp check-agent stdio:./agent.sh")]
    CheckAgent {
        // Not named `agent`, which is a flag of every command.
        /// Agent: stdio:COMMAND, http://…, ws://… or grpc://….
        #[arg(value_name = "AGENT")]
        address: String,
        /// Time limit of each request.
        #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=86_400))]
        timeout: u32,
        /// Strength of the sandbox that a program is started in.
        #[arg(long, value_enum, default_value = "auto")]
        sandbox: SandboxArg,
        /// Let a program use the network, for example to reach its model.
        #[arg(long)]
        network: bool,
    },
}
