//! The operating system's side of Proctor's interfaces: clock, randomness, path resolution, and files that only their owner can read.

pub mod private;
pub mod trusted;

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

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

/// Real paths on this host: symbolic links followed as the operating system does, also those whose target does not exist yet.
#[derive(Debug, Clone, Copy)]
pub struct RealPaths;

/// Most links that one path may lead through, as in the kernel.
const MAX_LINKS: usize = 40;

impl PathResolver for RealPaths {
    fn real_path(&self, path: &str) -> Option<String> {
        if !path.starts_with('/') {
            return None;
        }
        let mut rest: Vec<OsString> = components(Path::new(path));
        let mut real = PathBuf::from("/");
        let mut links = 0;
        // What does not exist holds no links: the rest of the path is joined as it is.
        let mut exists = true;
        while let Some(part) = rest.pop() {
            if part == ".." {
                real.pop();
                exists = true;
                continue;
            }
            real.push(&part);
            if !exists {
                continue;
            }
            match std::fs::symlink_metadata(&real) {
                Ok(metadata) if metadata.is_symlink() => {
                    links += 1;
                    let target = std::fs::read_link(&real).ok().filter(|_| links <= MAX_LINKS)?;
                    if target.is_absolute() {
                        real = PathBuf::from("/");
                    } else {
                        real.pop();
                    }
                    rest.extend(components(&target));
                }
                Ok(_) => {}
                Err(_) => exists = false,
            }
        }
        let real = real.to_string_lossy().into_owned();
        (real != path).then_some(real)
    }
}

/// The parts of a path from its end, `..` among them.
fn components(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(part) => Some(part.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    let mut parts: Vec<OsString> = parts.collect();
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_through_links_is_the_one_that_the_system_would_open() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("out/deep")).unwrap();
        std::fs::create_dir_all(root.join("app/src")).unwrap();
        std::fs::write(root.join("out/key"), "x").unwrap();
        let link = |from: &str, to: &str| std::os::unix::fs::symlink(to, root.join(from)).unwrap();
        link("app/link", "../out/deep");
        link("app/key", root.join("out/key").to_str().unwrap());
        link("app/dangling", "../out/new");
        link("app/src/chain", "../link");
        link("app/loop", "loop");
        for (path, real) in [
            ("app/src/a", None),
            ("app/key", Some("out/key")),
            ("app/link/new/file", Some("out/deep/new/file")),
            ("app/link/../key", Some("out/key")),
            ("app/dangling", Some("out/new")),
            ("app/dangling/x", Some("out/new/x")),
            ("app/src/chain/x", Some("out/deep/x")),
            ("app/missing/../link/x", Some("out/deep/x")),
            ("app/loop", None),
        ] {
            let found = RealPaths.real_path(root.join(path).to_str().unwrap());
            let expected = real.map(|real| root.join(real).to_str().unwrap().to_owned());
            assert_eq!(found, expected, "{path}");
            if let (Some(found), Ok(canonical)) = (&found, root.join(path).canonicalize()) {
                assert_eq!(Path::new(found), canonical, "{path}");
            }
        }
        assert_eq!(RealPaths.real_path("relative/../x"), None);
    }

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
