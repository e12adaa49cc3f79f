//! `proctor init`: state directory, configuration, starter policy and approver credential.

mod undo;

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::random::Randomness;
use proctor_facts::path::absolute;
use proctor_ledger::keys::{Algorithm, SecretKey, check_key_name};

use super::Context;
use crate::cli::{InitArgs, Starter};
use crate::failure::{Failure, OK, Outcome};
use crate::output;
use proctor_engine::state_dir::{StateDir, read_key};
use proctor_system::SystemRandomness;
use proctor_system::private;
use undo::Undo;

const STRICT: &str = include_str!("../../../../schemas/examples/strict.yaml");
const BALANCED: &str = include_str!("../../../../schemas/examples/balanced.yaml");
const AUDIT_ONLY: &str = include_str!("../../../../schemas/examples/audit-only.yaml");

pub(super) fn run(context: &Context, directory: &Path, arguments: &InitArgs) -> Outcome {
    refuse_below(context, directory)?;
    let mut settings = context.config.engine.clone();
    if !context.config.state_is_named && context.config.file.is_none() {
        settings.state = usual_state(directory)?;
    }
    let state = StateDir::new(&settings.state);
    if let Some(origin) = &context.config.origin {
        state.check_origin(origin)?;
    }
    let credential = match &arguments.credential {
        Some(file) => directory.join(file),
        None => default_credential()?,
    };
    let mut undo = Undo::default();
    let mut did = Vec::new();
    // A directory that has keys may be in use by its owner, whose files must not be taken for ours.
    if !state.exists() {
        undo.folder(state.path());
    }
    if state.create(&SystemRandomness)? {
        did.push(format!("made state directory {}", state.path().display()));
    } else {
        did.push(format!("found state directory {}", state.path().display()));
    }
    proctor_engine::access::create_ledger(&settings)?;
    let policy = directory.join("policy.yaml");
    undo.file(&policy);
    if write_new(&policy, starter(arguments.starter))? {
        did.push(format!("wrote {} ({})", policy.display(), starter_name(arguments.starter)));
    } else {
        did.push(format!("kept {}", policy.display()));
    }
    let key = state.key()?.verifier_key().clone();
    let file = directory.join("proctor.toml");
    if context.config.file.is_none() {
        undo.file(&file);
        if write_new(&file, &settings_text(&state, directory, key.name()))? {
            did.push(format!("wrote {}", file.display()));
        }
    } else if context.config.origin.is_none() && add_origin(&file, key.name())? {
        did.push(format!("wrote the ledger's name into {}", file.display()));
    }
    undo.file(&credential);
    let approver = make_credential(&credential, arguments.approver.as_deref(), &state, directory, &mut did)?;
    undo.keep();
    if context.json {
        output::data(
            Json::object()
                .with("state", state.path().display().to_string())
                .with("policy", policy.display().to_string())
                .with("ledger", key.to_string())
                .with("credential", credential.display().to_string())
                .with("approver", approver.verifier_key().to_string()),
        )?;
        return Ok(OK);
    }
    for line in did {
        output::data(line)?;
    }
    output::data(format!("ledger    {key}"))?;
    output::data(format!("approver  {}", approver.verifier_key()))?;
    output::data("next: echo '{\"tool\":\"bash\",\"args\":{\"command\":\"ls\"}}' | proctor gate")?;
    Ok(OK)
}

/// Refuses a folder below one with settings: those hold here too, and a second state directory would hide from them what happens here.
fn refuse_below(context: &Context, directory: &Path) -> Result<(), Failure> {
    let Some(file) = context.config.file.as_deref() else { return Ok(()) };
    match file.parent() {
        Some(folder) if folder != directory => Err(Failure::from(format!(
            "{} holds for this folder too: run `proctor init` in {}, or make the new folder elsewhere",
            file.display(),
            folder.display()
        ))),
        _ => Ok(()),
    }
}

/// State directory of a folder without settings: outside of it, so that neither an agent that works there nor `git clean` takes the ledger
/// away. One that is inside already stays in use.
fn usual_state(directory: &Path) -> Result<PathBuf, Failure> {
    let inside = directory.join(".proctor");
    if StateDir::new(&inside).exists() {
        return Ok(inside);
    }
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local").join("state")))
        .ok_or_else(|| Failure::from("neither XDG_STATE_HOME nor HOME is set: use `--state FOLDER`"))?;
    let real = directory.canonicalize().map_err(|error| Failure::io(directory, &error))?;
    let is_plain = |character: &char| character.is_ascii_alphanumeric() || "-_.".contains(*character);
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().filter(is_plain).take(40).collect();
    let digest = Digest::of(real.as_os_str().as_encoded_bytes()).to_string();
    let digest: String = digest.chars().take(12).collect();
    Ok(base.join("proctor").join(format!("{}-{digest}", if name.is_empty() { "folder" } else { &name })))
}

/// Adds the ledger's name to settings that name its state directory, in front of everything: behind a table it would belong to that.
fn add_origin(file: &Path, origin: &str) -> Result<bool, Failure> {
    let failed = |error: std::io::Error| Failure::io(file, &error);
    let before = std::fs::read_to_string(file).map_err(failed)?;
    let has = |key: &str| before.lines().any(|line| line.starts_with(key));
    // With `--state` the name in the file does not count, but it is there.
    if !has("state") || has("origin") {
        return Ok(false);
    }
    // A file that is written half would be no settings any more.
    let new = file.with_extension("toml.new");
    std::fs::write(&new, format!("origin = {}\n{before}", Json::from(origin))).map_err(failed)?;
    let replaced = std::fs::metadata(file)
        .and_then(|metadata| std::fs::set_permissions(&new, metadata.permissions()))
        .and_then(|()| std::fs::rename(&new, file));
    replaced.map(|()| true).map_err(|error| {
        let _ = std::fs::remove_file(&new);
        failed(error)
    })
}

fn settings_text(state: &StateDir, directory: &Path, origin: &str) -> String {
    // Relative where it can be, so that the folder can be moved.
    let own = state.path().strip_prefix(directory).unwrap_or(state.path());
    format!(
        "# Settings of Proctor for this folder and those below it. Flags and PROCTOR_… variables override them.\n\
         state = {}\n\
         # The ledger that has to be there: when it is gone, Proctor refuses to begin another one.\n\
         origin = {}\n\
         policy = \"policy.yaml\"\n\
         # The folder that agents work in: the policy asks about files outside of it.\n\
         workspace = \".\"\n",
        Json::from(own.to_string_lossy().as_ref()),
        Json::from(origin)
    )
}

/// The starter policy's text.
pub fn starter(starter: Starter) -> &'static str {
    match starter {
        Starter::Strict => STRICT,
        Starter::Balanced => BALANCED,
        Starter::AuditOnly => AUDIT_ONLY,
    }
}

fn starter_name(starter: Starter) -> &'static str {
    match starter {
        Starter::Strict => "strict",
        Starter::Balanced => "balanced",
        Starter::AuditOnly => "audit-only",
    }
}

/// Folder of approver credentials: outside every workspace and state directory.
pub fn default_credential() -> Result<PathBuf, Failure> {
    let folder = std::env::var_os("XDG_CONFIG_HOME")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")))
        .ok_or_else(|| Failure::from("neither XDG_CONFIG_HOME nor HOME is set: use `--credential FILE`"))?;
    Ok(folder.join("proctor").join("approver.key"))
}

/// Creates the approver's key, or takes the one that is there, and registers it with the ledger.
pub(super) fn make_credential(
    file: &Path,
    name: Option<&str>,
    state: &StateDir,
    directory: &Path,
    did: &mut Vec<String>,
) -> Result<SecretKey, Failure> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    // Cleaned lexically: `work/../x` is not inside `work`.
    let clean = |path: &Path| absolute(&path.to_string_lossy(), &directory.to_string_lossy());
    let inside = |outer: &Path| Path::new(&clean(file)).starts_with(clean(outer));
    if inside(directory) || inside(state.path()) {
        let place = file.display();
        return Err(Failure::from(format!(
            "{place} is inside the workspace or the state directory, where agents work: use another place"
        )));
    }
    let key = if file.exists() {
        let key = read_key(file)?;
        if let Some(name) = name.filter(|name| *name != key.name()) {
            return Err(Failure::from(format!(
                "{} is the credential of `{}`; for `{name}` name another file with `--credential`",
                file.display(),
                key.name()
            )));
        }
        did.push(format!("found approver credential {} of `{}`", file.display(), key.name()));
        key
    } else {
        let name = match name {
            Some(name) => name.to_owned(),
            None => std::env::var("USER")
                .ok()
                .filter(|user| check_key_name(user).is_ok())
                .unwrap_or_else(|| "approver".to_owned()),
        };
        let mut seed = [0u8; 32];
        SystemRandomness.fill(&mut seed);
        let key = SecretKey::from_seed(&name, Algorithm::Ed25519, &seed)
            .map_err(|error| Failure::from(format!("approver `{name}`: {error}")))?;
        fs::create_dir_all(folder).map_err(|error| Failure::io(folder, &error))?;
        private::write(file, &key.encode())?;
        did.push(format!("made approver credential {}", file.display()));
        key
    };
    register(&key, state)?;
    Ok(key)
}

fn register(key: &SecretKey, state: &StateDir) -> Result<(), Failure> {
    let file = state.approvers_file();
    let line = format!("approver {}\n", key.verifier_key());
    let known = fs::read_to_string(&file).unwrap_or_default();
    if known.lines().any(|known| known == line.trim_end()) {
        return Ok(());
    }
    let describe = |error: std::io::Error| Failure::io(&file, &error);
    let mut handle = fs::OpenOptions::new().create(true).append(true).open(&file).map_err(describe)?;
    handle.write_all(line.as_bytes()).map_err(describe)
}

/// Writes a file that is not there yet. True if it was written.
fn write_new(file: &Path, text: &str) -> Result<bool, Failure> {
    // Never writable for others, whatever the umask says: such a file would be refused.
    let opened = fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(file);
    let describe = |error: std::io::Error| Failure::io(file, &error);
    match opened {
        Ok(mut handle) => handle.write_all(text.as_bytes()).map(|()| true).map_err(describe),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(describe(error)),
    }
}
