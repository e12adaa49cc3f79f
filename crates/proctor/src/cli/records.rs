//! `proctor session` and `proctor audit`: reading and proving the ledger.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// List sessions, newest first.
    #[command(after_help = "Example:\n  proctor session list --limit 10")]
    List {
        /// Number of sessions.
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Show the records of a session.
    #[command(after_help = "Example:\n  proctor session show fix-42")]
    Show {
        /// The session's id, a unique prefix of it, or the id that the agent claimed.
        id: String,
        /// Print the session as a trace, for assertions.
        #[arg(long)]
        trace: bool,
    },
}

/// Filters of records; those given must all match.
#[derive(Debug, Clone, Args, Default)]
pub struct FilterArgs {
    /// Records of this session.
    #[arg(long)]
    pub session: Option<String>,
    /// Records of this principal.
    #[arg(long)]
    pub principal: Option<String>,
    /// Records of this agent, as claimed.
    #[arg(long = "of-agent", value_name = "AGENT")]
    pub of_agent: Option<String>,
    /// Records of this kind: decision, outcome, observation, approval, alarm, policy, …
    #[arg(long)]
    pub kind: Option<String>,
    /// First sequence.
    #[arg(long)]
    pub from: Option<u64>,
    /// End of the range of sequences, exclusive.
    #[arg(long)]
    pub to: Option<u64>,
    /// Earliest time (RFC 3339).
    #[arg(long)]
    pub since: Option<String>,
    /// End of the range of times, exclusive (RFC 3339).
    #[arg(long)]
    pub until: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Print the newest records.
    #[command(after_help = "Example:\n  proctor audit tail --kind decision --session fix-42")]
    Tail {
        #[command(flatten)]
        filter: FilterArgs,
        /// Number of records.
        #[arg(short = 'n', long, default_value_t = 20)]
        lines: usize,
        /// Print new records as they are committed, until interrupted.
        #[arg(short, long)]
        follow: bool,
    },
    /// Export records with everything that verifying them needs, as one file (a bundle).
    #[command(after_help = "Example:\n  proctor audit export --output ledger.bundle")]
    Export {
        #[command(flatten)]
        filter: FilterArgs,
        /// The file to write.
        #[arg(short, long, required_unless_present = "tiles")]
        output: Option<PathBuf>,
        /// Write the whole ledger in the tlog-tiles layout into this folder instead: checkpoint, tiles and entries, without bodies.
        #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "session", "principal", "of_agent", "kind", "from", "to", "since", "until"])]
        tiles: Option<PathBuf>,
    },
    /// Verify a bundle offline: hashes, proofs, signatures, and every decision derived again.
    #[command(after_help = "Example:\n  proctor audit verify ledger.bundle --trust trust.txt")]
    Verify {
        /// The bundle.
        bundle: PathBuf,
        /// Refuse a bundle whose checkpoint covers fewer records than this.
        #[arg(long, default_value_t = 0)]
        at_least: u64,
        /// Verify hashes, proofs and signatures only.
        #[arg(long)]
        no_derivation: bool,
    },
    /// Verify the hash chain of an Agent Assembly audit log, offline.
    #[command(after_help = "Example:\n  proctor audit verify-chain gateway-default.jsonl")]
    VerifyChain {
        /// The log, one JSON object per line; `-` reads stdin.
        file: PathBuf,
    },
    /// Print an inclusion proof of a record, or a consistency proof of two checkpoints.
    #[command(after_help = "Example:\n  proctor audit prove 2 > proof.txt")]
    Prove {
        /// Sequence or decision id.
        #[arg(required_unless_present_any = ["consistency", "check"])]
        record: Option<String>,
        /// Prove that the present ledger continues the one of this size.
        #[arg(long, value_name = "SIZE")]
        consistency: Option<u64>,
        /// Check the proof on stdin instead of making one.
        #[arg(long, conflicts_with_all = ["record", "consistency"])]
        check: bool,
    },
    /// Check the state directory for damage: database, hashes, signatures, bodies and derived state.
    #[command(after_help = "Example:\n  proctor audit fsck")]
    Fsck,
    /// Erase the body of a record; its envelope stays, and stays provable.
    #[command(after_help = "Example:\n  proctor audit erase 2 --reason \"personal data\"")]
    Erase {
        /// Sequence or decision id.
        record: String,
        /// Reason, recorded with the erasure.
        #[arg(long)]
        reason: String,
    },
    /// Cosign the ledger's checkpoint as a witness, after checking that it continues the last one seen.
    #[command(after_help = "Example:\n  proctor audit witness --witness ../witness --name archive")]
    Witness {
        /// The witness's folder: its key, and the last checkpoint that it has seen.
        #[arg(long, value_name = "DIR")]
        witness: PathBuf,
        /// Name of the witness, when its key is made.
        #[arg(long, default_value = "witness")]
        name: String,
        /// The verifier key of the ledger, when it is first seen.
        #[arg(long, value_name = "KEY")]
        ledger_key: Option<String>,
    },
    /// Measure this machine: fsync, SQLite commit, hashing, and the ledger's own appends.
    #[command(after_help = "Example:\n  proctor audit bench --records 1000")]
    Bench {
        /// Number of records to append.
        #[arg(long, default_value_t = 100_000)]
        records: u64,
    },
}
