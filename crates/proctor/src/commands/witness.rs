//! `proctor audit witness`: a small witness of its own. It remembers what it has seen, and cosigns only what continues it.

use std::fs;
use std::path::Path;

use proctor_core::json::Json;
use proctor_core::random::Randomness;
use proctor_core::time::Clock;
use proctor_ledger::keys::{Algorithm, SecretKey, VerifierKey};
use proctor_ledger::merkle::consistency_proof;
use proctor_ledger::note::Note;
use proctor_ledger::witness::Witness;

use super::Context;
use super::records::Owner;
use crate::failure::{Failure, NOT_VERIFIED, OK, Outcome};
use crate::output;
use proctor_engine::access::open_reader;
use proctor_engine::state_dir::read_key;
use proctor_system::private;
use proctor_system::{SystemClock, SystemRandomness};

pub(super) fn run(context: &Context, folder: &Path, name: &str, ledger_key: Option<&str>) -> Outcome {
    fs::create_dir_all(folder).map_err(|error| Failure::io(folder, &error))?;
    let _lock = lock(folder)?;
    let key = witness_key(folder, name)?;
    let ledger = known_ledger(folder, ledger_key, context)?;
    let seen_file = folder.join("seen");
    // A witness that cannot read what it has seen must not sign anything.
    let seen = fs::read_to_string(&seen_file).map_err(|error| {
        let (file, problem) = (seen_file.display(), proctor_system::describe(&error));
        Failure::from(format!("{file}: {problem}; restore it: a witness must know what it has cosigned"))
    })?;
    let verifier = key.verifier_key().clone();
    let describe = |error: String| Failure::from(format!("{}: {error}", seen_file.display()));
    let mut witness = Witness::with_state(key, &seen).map_err(|error| describe(error.to_string()))?;
    // The ledger signs what it has now, and shows that it continues what this witness saw last.
    let mut owner = Owner::open(context)?;
    let signed = owner.command(&Json::object().with("op", "checkpoint"))?;
    let note = Note::parse(output::member(&signed, "note").as_bytes())
        .map_err(|error| Failure::from(error.to_string()))?;
    let checkpoint = proctor_ledger::checkpoint::Checkpoint::verify(&note, &ledger)
        .map_err(|error| Failure::with_code(NOT_VERIFIED, error.to_string()))?;
    let old_size = witness.known(ledger.name()).map_or(0, |known| known.size);
    let reader = open_reader(&context.config.engine.state)?;
    let proof = if old_size == 0 || old_size > checkpoint.size {
        Vec::new()
    } else {
        consistency_proof(old_size, checkpoint.size, &reader.tree(checkpoint.size))
            .map_err(|error| Failure::with_code(NOT_VERIFIED, error.to_string()))?
    };
    let time = u64::try_from(SystemClock.now().micros() / 1_000_000).unwrap_or(0);
    let line = witness
        .cosign(old_size, &proof, &note, &ledger, time)
        .map_err(|refusal| Failure::with_code(NOT_VERIFIED, format!("the witness refuses: {refusal}")))?;
    // Saved before the cosignature is handed out: what was signed once can never be forgotten.
    replace(&seen_file, &witness.state_text())?;
    let command = Json::object()
        .with("op", "cosign")
        .with("size", checkpoint.size)
        .with("line", line.to_string())
        .with("witness", verifier.to_string());
    owner.command(&command)?;
    if context.json {
        output::data(
            Json::object()
                .with("size", checkpoint.size)
                .with("witness", verifier.to_string())
                .with("ledger", ledger.to_string())
                .with("line", line.to_string()),
        )?;
    } else {
        output::data(format!("cosigned {} records of {}", checkpoint.size, ledger.name()))?;
        output::data(format!("trust file lines:\nlog {ledger}\nwitness {verifier}"))?;
    }
    Ok(OK)
}

fn witness_key(folder: &Path, name: &str) -> Result<SecretKey, Failure> {
    let file = folder.join("witness.key");
    if !file.exists() {
        let mut seed = [0u8; 32];
        SystemRandomness.fill(&mut seed);
        let key = SecretKey::from_seed(name, Algorithm::CosignatureV1, &seed)
            .map_err(|error| Failure::from(error.to_string()))?;
        let memory = Witness::new(key.clone()).map_err(|error| Failure::from(error.to_string()))?;
        replace(&folder.join("seen"), &memory.state_text())?;
        private::write(&file, &key.encode())?;
    }
    Ok(read_key(&file)?)
}

/// The ledger's key: as it was first seen. Another key later is a refusal, not a surprise.
fn known_ledger(folder: &Path, given: Option<&str>, context: &Context) -> Result<VerifierKey, Failure> {
    let file = folder.join("ledger");
    let read = |text: &str| {
        text.trim()
            .parse::<VerifierKey>()
            .map_err(|error| Failure::from(format!("`{}`: {error}", text.trim())))
    };
    let known = match fs::read_to_string(&file) {
        Ok(known) => Some(known),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(Failure::io(&file, &error)),
    };
    if let Some(known) = known {
        let known = read(&known)?;
        if let Some(given) = given
            && read(given)?.to_string() != known.to_string()
        {
            return Err(Failure::with_code(
                NOT_VERIFIED,
                format!("this witness knows the ledger as {known}"),
            ));
        }
        return Ok(known);
    }
    let key = match given {
        Some(given) => read(given)?,
        None => read(
            &open_reader(&context.config.engine.state)?
                .key()
                .map_err(|error| Failure::from(error.to_string()))?,
        )?,
    };
    replace(&file, &format!("{key}\n"))?;
    Ok(key)
}

/// Replaces a file in one step: a crash leaves the old or the new one.
fn replace(file: &Path, text: &str) -> Result<(), Failure> {
    let describe = |error: std::io::Error| Failure::io(file, &error);
    let next = file.with_extension("next");
    fs::write(&next, text).map_err(describe)?;
    fs::File::open(&next).and_then(|handle| handle.sync_all()).map_err(describe)?;
    fs::rename(&next, file).map_err(describe)?;
    // The new name must survive a power cut too.
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::File::open(folder).and_then(|handle| handle.sync_all()).map_err(describe)
}

/// Locks the folder: only one process at a time is this witness.
fn lock(folder: &Path) -> Result<fs::File, Failure> {
    let handle = fs::File::open(folder).map_err(|error| Failure::io(folder, &error))?;
    rustix::fs::flock(&handle, rustix::fs::FlockOperation::LockExclusive)
        .map_err(|error| Failure::io(folder, &error.into()))?;
    Ok(handle)
}
