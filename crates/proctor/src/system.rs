//! What only a program has: the real clock, real randomness, real paths.

use std::path::{Path, PathBuf};

use proctor_core::normalise::PathResolver;
use proctor_core::random::Randomness;
use proctor_core::time::{Clock, Timestamp};

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everybody else is given")]
    fn now(&self) -> Timestamp {
        let since_1970 =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
    }
}

/// The machine's randomness.
#[derive(Debug, Clone, Copy)]
pub struct SystemRandomness;

impl Randomness for SystemRandomness {
    #[expect(
        clippy::panic,
        reason = "without randomness neither keys nor salts nor ids are safe: stopping is the only answer"
    )]
    fn fill(&self, buffer: &mut [u8]) {
        if let Err(error) = getrandom::fill(buffer) {
            panic!("the operating system gives no randomness: {error}");
        }
    }
}

/// Real paths on this host: symbolic links followed, for the longest part of the path that exists.
#[derive(Debug, Clone, Copy)]
pub struct RealPaths;

impl PathResolver for RealPaths {
    fn real_path(&self, path: &str) -> Option<String> {
        let path = Path::new(path);
        if !path.is_absolute() {
            return None;
        }
        // A file that is about to be created does not exist yet, but its folder may be a link.
        // Looked for from the root: a path of which nothing exists costs one look.
        let mut existing = PathBuf::from("/");
        for part in path.components().skip(1) {
            let next = existing.join(part);
            if !next.exists() {
                break;
            }
            existing = next;
        }
        let real = existing.canonicalize().ok()?;
        let rest = path.strip_prefix(&existing).ok()?;
        let real = if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        (real != path).then(|| real.to_string_lossy().into_owned())
    }
}
