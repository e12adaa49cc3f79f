//! `attest-engine`: what official clients of the Attest protocol start.

mod calibrate;
mod log;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use proctor_providers::store;

use self::log::{Level, Log};
use crate::access::{Access, COMMAND};
use crate::config::{Config, ConfigError, Overrides};
use crate::output;
use proctor_door_attest::{AttestDoor, ENGINE_VERSION, Evaluator, Recorder, Settings, serve};
use proctor_engine::access::AccessError;
use proctor_system::{SystemClock, SystemRandomness};

/// Error of starting the engine.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("working directory: {0}")]
    WorkingDirectory(#[source] std::io::Error),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    State(#[from] AccessError),
}

/// Called wrongly, as the program of this name says it.
const USAGE_CODE: u8 = 2;

const FAILED: u8 = 1;

const USAGE: &str = "usage: attest-engine [--log-level=debug|info|warn|error] [--debug]
       attest-engine version
       attest-engine cache stats|clear
       attest-engine calibrate --labels FILE [--rubric NAME] [--threshold T] [--persist]

Without a command it reads requests from standard input, one JSON object a line, and answers on standard output.";

/// Runs the program with the arguments after its name.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let words: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    ExitCode::from(match words.first().map(String::as_str) {
        Some("version") => {
            say(&format!("attest-engine {ENGINE_VERSION} (proctor {})", env!("CARGO_PKG_VERSION")))
        }
        Some("cache") => cache(words.get(1).map(String::as_str)),
        Some("calibrate") => calibrate::run(words.get(1..).unwrap_or_default()),
        _ => match Flags::read(&words) {
            Ok(Some(level)) => engine(level),
            Ok(None) => {
                output::note_plain(USAGE);
                0
            }
            Err(problem) => {
                output::note_plain(&format!("attest-engine: {problem}"));
                problem.exit_code()
            }
        },
    })
}

fn say(text: &str) -> u8 {
    output::data(text).map_or_else(|failure| failure.code, |()| 0)
}

/// Error in the flags.
#[derive(Debug, thiserror::Error)]
enum FlagError {
    #[error("log level `{0}` is not known: use debug, info, warn or error")]
    LogLevel(String),
    #[error("flag `-{0}` is not known\n{USAGE}")]
    Unknown(String),
}

impl FlagError {
    fn exit_code(&self) -> u8 {
        match self {
            FlagError::LogLevel(_) => FAILED,
            FlagError::Unknown(_) => USAGE_CODE,
        }
    }
}

struct Flags;

impl Flags {
    /// The level of the log, or nothing if only help was asked for. One or two dashes, `=` or a space, as its callers know it; words
    /// that are no flags are ignored.
    fn read(words: &[String]) -> Result<Option<Level>, FlagError> {
        let mut level = Level::Info;
        let mut debug = false;
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let Some(flag) =
                word.strip_prefix("--").or_else(|| word.strip_prefix('-')).filter(|flag| !flag.is_empty())
            else {
                // Flags end at the first word that is none.
                break;
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (flag, None),
            };
            match name {
                "log-level" => {
                    let value = value.or_else(|| rest.next().cloned()).unwrap_or_default();
                    level = value.parse().map_err(|()| FlagError::LogLevel(value))?;
                }
                "debug" => debug = value.as_deref().is_none_or(|value| value != "false"),
                "help" | "h" => return Ok(None),
                other => return Err(FlagError::Unknown(other.to_owned())),
            }
        }
        Ok(Some(if debug { Level::Debug } else { level }))
    }
}

fn engine(level: Level) -> u8 {
    let log = Log::new(level);
    // What a defect says goes to the log, which never waits: nobody may be reading standard error.
    std::panic::set_hook(Box::new(|defect| {
        let place = defect.location().map_or_else(String::new, ToString::to_string);
        Log::new(Level::Debug).write(Level::Error, &format!("a defect at {place}"));
    }));
    let opened = open(&log);
    let door = match opened {
        Ok(door) => door,
        Err(problem) => {
            log.write(Level::Error, &problem.to_string());
            output::note_plain(&format!("attest-engine: {problem}"));
            crate::logging::flush();
            return FAILED;
        }
    };
    let door = Arc::new(door);
    end_on_signal(Arc::clone(&door));
    log.write(Level::Info, "ready");
    let well = serve(&door, std::io::stdin().lock(), std::io::stdout());
    door.flush();
    log.write(Level::Info, if well { "ended" } else { "nobody reads the replies" });
    crate::logging::flush();
    u8::from(!well)
}

/// Ends the process on a signal, after all results are stored.
fn end_on_signal(door: Arc<AttestDoor>) {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) else { return };
    let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if signals.forever().next().is_some() {
            door.flush();
            std::process::exit(i32::from(FAILED));
        }
    });
}

fn open(log: &Log) -> Result<AttestDoor, StartError> {
    let settings = Settings::read(&variable);
    let warn = |problem: &str| Log::new(Level::Debug).write(Level::Warn, problem);
    let warn = if log.shows(Level::Warn) { warn } else { |_: &str| () };
    let evaluator = Evaluator::new(&settings, Arc::new(SystemClock), Arc::new(SystemRandomness), warn);
    let recorder = open_recorder(log)?;
    Ok(AttestDoor::new(evaluator, recorder, &settings))
}

/// A variable of the environment.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Batches are recorded only if a state directory is named.
fn open_recorder(log: &Log) -> Result<Recorder, StartError> {
    let directory = std::env::current_dir().map_err(StartError::WorkingDirectory)?;
    let named = variable("PROCTOR_STATE").filter(|value| !value.is_empty()).map(PathBuf::from);
    let text = |name: &str| variable(name).filter(|value| !value.is_empty());
    let overrides = Overrides {
        state: named.clone(),
        policy: text("PROCTOR_POLICY").map(PathBuf::from),
        agent: text("PROCTOR_AGENT"),
        team: text("PROCTOR_TEAM"),
        org: text("PROCTOR_ORG"),
        ..Overrides::default()
    };
    let config = Config::load(&directory, &overrides)?;
    if named.is_none() && !config.state_is_named {
        return Ok(Recorder::NOWHERE);
    }
    let access = Access::open(&config, COMMAND)?;
    log.write(Level::Info, &format!("batches are recorded in {}", config.engine.state.display()));
    Ok(recorder(&config, access))
}

/// A recorder on an open state directory. It opens the directory again when its owner ends.
pub fn recorder(config: &Config, access: Access) -> Recorder {
    let (settings, caller) = (config.engine.clone(), config.ahp.this_user.clone());
    let config = config.clone();
    let reopen = move || Access::open(&config, COMMAND).map(Access::into_engine);
    Recorder::new(settings, caller, access.into_engine(), Box::new(reopen))
}

fn cache(what: Option<&str>) -> u8 {
    let Some(folder) = Settings::read(&variable).cache else {
        output::note_plain("attest-engine: there is no cache: set ATTEST_CACHE_DIR or HOME");
        return FAILED;
    };
    match what {
        Some("stats") => match store::stats(&folder) {
            Ok(stats) if !stats.exists => {
                say(&format!("cache directory {} does not exist", folder.display()))
            }
            Ok(stats) => say(&format!(
                "cache_dir: {}\nexists: {}\nis_dir: {}\nfiles: {}\nsize_bytes: {}",
                folder.display(),
                stats.exists,
                stats.is_dir,
                stats.files,
                stats.size_bytes
            )),
            Err(error) => fail(&format!("{}: {error}", folder.display())),
        },
        Some("clear") => match store::clear(&folder) {
            Ok(count) => say(&format!("removed {count} files")),
            Err(error) => fail(&format!("{}: {error}", folder.display())),
        },
        Some(other) => fail(&format!("`{other}` is not known: use `cache stats` or `cache clear`")),
        None => fail("use `cache stats` or `cache clear`"),
    }
}

fn fail(problem: &str) -> u8 {
    output::note_plain(&format!("attest-engine: {problem}"));
    FAILED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(words: &[&str]) -> Result<Option<Level>, u8> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Flags::read(&words).map_err(|error| error.exit_code())
    }

    #[test]
    fn flags_in_every_form_that_callers_use() {
        assert_eq!(level(&[]), Ok(Some(Level::Info)));
        assert_eq!(level(&["--log-level=warn"]), Ok(Some(Level::Warn)));
        assert_eq!(level(&["-log-level", "error"]), Ok(Some(Level::Error)));
        assert_eq!(level(&["--log-level=warn", "--debug"]), Ok(Some(Level::Debug)));
        assert_eq!(level(&["word", "--nonsense"]), Ok(Some(Level::Info)));
        assert_eq!(level(&["--log-level=loud"]), Err(1));
        assert_eq!(level(&["--nonsense"]), Err(2));
        assert_eq!(level(&["--help"]), Ok(None));
    }
}
