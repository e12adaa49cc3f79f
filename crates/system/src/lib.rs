//! The operating system's side of Proctor's interfaces: clock, randomness, path resolution, and files that only their owner can read.

pub mod private;
pub mod trusted;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use proctor_core::random::Randomness;
use proctor_core::time::{Clock, Timestamp};
use proctor_facts::PathResolver;

/// Error text of the operating system for people: lowercase, without its number.
///
/// ```
/// let error = std::fs::read("nowhere").unwrap_err();
/// assert_eq!(proctor_system::describe(&error), "no such file or folder");
/// ```
pub fn describe(error: &std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::NotFound {
        return "no such file or folder".to_owned();
    }
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or_default();
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(characters).collect()
}

/// Clock of the operating system.
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

/// Randomness of the operating system.
#[derive(Debug, Clone, Copy)]
pub struct SystemRandomness;

impl Randomness for SystemRandomness {
    #[expect(
        clippy::panic,
        reason = "without randomness neither keys nor salts nor ids are safe: stopping is the only answer"
    )]
    fn fill(&self, buffer: &mut [u8]) {
        if let Err(error) = DRAWN.with_borrow_mut(|drawn| drawn.fill(buffer)) {
            panic!("the operating system gives no randomness: {error}");
        }
    }
}

thread_local! {
    static DRAWN: RefCell<Drawn> = const { RefCell::new(Drawn { bytes: [0; 512], used: 512 }) };
}

/// Buffer of random bytes drawn ahead: each call to the operating system costs as much as a good part of a decision.
struct Drawn {
    bytes: [u8; 512],
    used: usize,
}

impl Drawn {
    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), getrandom::Error> {
        if buffer.len() > self.bytes.len() {
            return getrandom::fill(buffer);
        }
        if self.used + buffer.len() > self.bytes.len() {
            getrandom::fill(&mut self.bytes)?;
            self.used = 0;
        }
        let end = self.used + buffer.len();
        if let Some(drawn) = self.bytes.get_mut(self.used..end) {
            buffer.copy_from_slice(drawn);
            // Zeroised, so that drawn bytes exist only at the caller.
            drawn.fill(0);
        }
        self.used = end;
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn randomness_is_never_given_out_twice() {
        let mut seen = std::collections::HashSet::new();
        for size in (16..700).chain(16..700) {
            let mut bytes = vec![0; size];
            SystemRandomness.fill(&mut bytes);
            assert!(seen.insert(bytes.get(..16).unwrap().to_vec()), "size {size}");
            assert!(bytes.as_chunks::<16>().0.iter().all(|part| part.iter().any(|it| *it != 0)));
        }
    }
}
