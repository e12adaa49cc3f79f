//! Hot reload: polls the policy's files, and hands a changed policy to the engine.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use proctor_policy::policy::{Policy, sources_digest};

use crate::policy_files;
use crate::{Engine, Reload};

/// Polling interval of the policy files.
const INTERVAL: Duration = Duration::from_millis(500);

/// Watches the policy at `path` for as long as the engine lives. `after` runs after each reload, for giving memory back.
pub fn start(path: &Path, engine: &Arc<Engine>, after: impl Fn() + Send + 'static) {
    let path = path.to_owned();
    let engine = Arc::downgrade(engine);
    let spawned =
        std::thread::Builder::new().name("reload".to_owned()).spawn(move || watch(&path, &engine, &after));
    if let Err(error) = spawned {
        log::info!("hot reload is off: {error}");
    }
}

fn watch(path: &Path, engine: &Weak<Engine>, after: &dyn Fn()) {
    let mut last = None;
    loop {
        let Some(engine) = engine.upgrade() else { return };
        let now = Some(look(path, &engine));
        // The first look reads the files once more: they may have changed since the policy was loaded.
        if last != now {
            let outcome = reload(path, &engine);
            // What the ledger did not take is tried again: a stricter policy must not be forgotten.
            last = if matches!(outcome, Reload::NotRecorded(_)) { None } else { now };
            report(&outcome, &engine);
            after();
        }
        drop(engine);
        std::thread::sleep(INTERVAL);
    }
}

/// Reads the policy again at once, for a relay that has seen a later one. A broken one is left to the next look, which reports it.
pub(crate) fn look_again(path: &Path, engine: &Engine) {
    let _reload = engine.begin_reload();
    if let Ok(sources) = policy_files::read_sources(path)
        && sources_digest(&sources) != engine.policy().digest()
        && let Ok(policy) = Policy::compile(sources)
    {
        report(&engine.reload(Ok(policy)), engine);
    }
}

/// Reads the policy again. What is the same as before is not compiled again.
fn reload(path: &Path, engine: &Engine) -> Reload {
    let _reload = engine.begin_reload();
    match policy_files::read_sources(path) {
        Ok(sources) if sources_digest(&sources) == engine.policy().digest() => {
            engine.unchanged();
            Reload::Unchanged
        }
        Ok(sources) => engine.reload(Policy::compile(sources)),
        Err(problems) => engine.reload(Err(problems)),
    }
}

fn report(outcome: &Reload, engine: &Engine) {
    match outcome {
        Reload::Unchanged => {}
        Reload::Loaded => {
            log::info!("policy {} is in force", engine.policy().digest());
            for weakening in engine.policy().weakenings() {
                log::info!("weaker than closed: {weakening}");
            }
        }
        Reload::Refused(problems) => {
            log::info!("the changed policy is refused, {} stays in force:", engine.policy().digest());
            for problem in problems {
                log::info!("{problem}");
            }
        }
        Reload::Weaker(changes) if changes.is_empty() => {}
        Reload::Weaker(changes) => {
            let in_force = engine.policy().digest();
            log::warn!(
                "the changed policy is weaker, so {in_force} stays in force until `proctor policy accept`:"
            );
            for change in changes {
                log::warn!("{change}");
            }
        }
        Reload::NotRecorded(problem) => log::info!("the changed policy is not in force: {problem}"),
    }
}

/// A fingerprint of the watched files: path, length, inode, times of modification and of change. Programs can set the first time, not the second.
type Look = Vec<(PathBuf, u64, u64, [i64; 4])>;

/// The files that make the policy: those in its folder, and the modules that are in force.
fn look(path: &Path, engine: &Engine) -> Look {
    let mut files: Vec<PathBuf> = vec![path.to_owned()];
    if let Ok(entries) = std::fs::read_dir(path) {
        files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
    }
    files.extend(engine.policy().sources().iter().map(|source| PathBuf::from(&source.name)));
    files.sort();
    files.dedup();
    files
        .into_iter()
        .map(|file| match std::fs::metadata(&file) {
            Ok(found) => {
                let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
                (file, found.len(), found.ino(), times)
            }
            Err(_) => (file, 0, 0, [0; 4]),
        })
        .collect()
}

#[cfg(test)]
mod tests;
