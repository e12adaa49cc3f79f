//! Workspace files: bounded walk, and opening without following symbolic links.
//!
//! The agent may change the workspace during a walk. So every name is opened relative to its parent's handle with `O_NOFOLLOW`:
//! a folder that is replaced by a link between two steps is not entered.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use proctor_ledger::store::DATABASE_FILE;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};

/// Most directory entries of one walk.
pub(crate) const MAX_ENTRIES: usize = 20_000;
/// Deepest level of folders of a walk.
pub(crate) const MAX_DEPTH: usize = 12;
/// Largest file that is read, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Longest path that an agent may name, in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// Folders of version control, dependencies and build output, which are skipped.
const SKIPPED: &[&str] =
    &[".git", ".hg", ".svn", ".jj", ".proctor", "node_modules", "target", "__pycache__", ".venv"];
/// Files that identify a state directory under any name: it holds keys, so it is never shown.
const STATE_FILES: &[&str] = &[DATABASE_FILE, "ledger.key", "digest.key"];

/// Open folder of the workspace that a question is about.
#[derive(Debug)]
pub struct Folder {
    /// Canonical path.
    base: PathBuf,
    /// Path relative to the configured workspace; empty if it is the workspace.
    below: String,
    handle: OwnedFd,
}

/// Result of a walk.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// File paths relative to the folder, shallow ones first, with `/` between names.
    pub files: Vec<String>,
    /// Whether a limit or the deadline ended the walk early.
    pub cut_short: bool,
}

impl Folder {
    /// Opens the folder that an agent claims to work in. None unless it is the configured workspace or below it.
    pub fn open(workspace: &Path, claimed: &str) -> Option<Folder> {
        let workspace = workspace.canonicalize().ok()?;
        if !could_be_path(claimed) {
            return None;
        }
        let base = workspace.join(claimed).canonicalize().ok()?;
        let below = below(&workspace, &base)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let workspace = rustix::fs::open(&workspace, flags, Mode::empty()).ok()?;
        let handle =
            if below.is_empty() { workspace } else { open_below(&workspace, &below, OFlags::DIRECTORY)? };
        Some(Folder { base, below, handle })
    }

    /// Last component of the path.
    pub fn name(&self) -> String {
        self.base.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Absolute path, as policy rules see it.
    pub fn path(&self) -> String {
        self.base.to_string_lossy().into_owned()
    }

    /// Absolute path of a file, as policy rules see it.
    pub fn path_of(&self, file: &str) -> String {
        self.base.join(file).to_string_lossy().into_owned()
    }

    /// Path of a file relative to the configured workspace.
    pub fn path_from_workspace(&self, file: &str) -> String {
        if self.below.is_empty() { file.to_owned() } else { format!("{}/{file}", self.below) }
    }

    /// Canonical path relative to this folder of a path that an agent names; empty for the folder itself, none outside of it.
    pub fn locate(&self, named: &str) -> Option<String> {
        if !could_be_path(named) {
            return None;
        }
        below(&self.base, &self.base.join(named).canonicalize().ok()?)
    }

    /// Walks through the folder, breadth first and by name, until the deadline.
    pub fn walk(&self, deadline: Instant) -> Walk {
        let mut walk = Walk::default();
        let mut left = MAX_ENTRIES;
        let mut folders = VecDeque::from([(String::new(), 0_usize)]);
        while let Some((folder, depth)) = folders.pop_front() {
            if left == 0 || Instant::now() >= deadline {
                walk.cut_short = true;
                break;
            }
            let Some(entries) = self.entries(&folder, &mut left) else { continue };
            for (name, is_folder) in entries {
                let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                if !is_folder {
                    walk.files.push(path);
                } else if SKIPPED.contains(&name.as_str()) {
                } else if depth + 1 < MAX_DEPTH {
                    folders.push_back((path, depth + 1));
                } else {
                    walk.cut_short = true;
                }
            }
        }
        walk
    }

    /// Files and folders of one folder, sorted by name; links and special files are left out.
    fn entries(&self, folder: &str, left: &mut usize) -> Option<Vec<(String, bool)>> {
        let handle = match folder {
            "" => {
                openat(&self.handle, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                    .ok()?
            }
            folder => open_below(&self.handle, folder, OFlags::DIRECTORY)?,
        };
        let mut found = Vec::new();
        for entry in Dir::read_from(&handle).ok()? {
            let Ok(entry) = entry else { break };
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            if *left == 0 {
                break;
            }
            *left -= 1;
            // A name that is no text cannot be asked for.
            let Ok(text) = name.to_str() else { continue };
            if STATE_FILES.contains(&text) {
                return None;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => match statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(_) => continue,
                },
                known => known,
            };
            match kind {
                FileType::RegularFile => found.push((text.to_owned(), false)),
                FileType::Directory => found.push((text.to_owned(), true)),
                _ => {}
            }
        }
        found.sort();
        Some(found)
    }

    /// Text of a file. None for special files, too large files and binary ones.
    pub fn read(&self, file: &str) -> Option<String> {
        // Opening a FIFO or a device must not block.
        let handle = open_below(&self.handle, file, OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let file = File::from(handle);
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
            return None;
        }
        let mut bytes = Vec::new();
        // It may grow while it is read.
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).ok()?;
        let fits = u64::try_from(bytes.len()).is_ok_and(|length| length <= MAX_FILE_BYTES);
        (fits && !bytes.contains(&0)).then(|| String::from_utf8(bytes).ok()).flatten()
    }
}

fn could_be_path(text: &str) -> bool {
    text.len() <= MAX_PATH_BYTES && !text.contains('\0')
}

/// Path of `inner` relative to `folder`; empty if they are the same.
fn below(folder: &Path, inner: &Path) -> Option<String> {
    inner.strip_prefix(folder).ok()?.to_str().map(str::to_owned)
}

/// Opens a path below a folder component by component, refusing links.
fn open_below(folder: &OwnedFd, path: &str, flags: OFlags) -> Option<OwnedFd> {
    let base = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (folders, last) = match path.rsplit_once('/') {
        Some((folders, last)) => (Some(folders), last),
        None => (None, path),
    };
    let mut inner: Option<OwnedFd> = None;
    for name in folders.into_iter().flat_map(|folders| folders.split('/')) {
        let next = open_name(inner.as_ref().unwrap_or(folder), name, base | OFlags::DIRECTORY)?;
        inner = Some(next);
    }
    open_name(inner.as_ref().unwrap_or(folder), last, base | flags)
}

fn open_name(folder: &OwnedFd, name: &str, flags: OFlags) -> Option<OwnedFd> {
    if name.is_empty() || name == "." || name == ".." {
        return None;
    }
    openat(folder, OsStr::from_bytes(name.as_bytes()), flags, Mode::empty()).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    fn workspace() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("work/src/main.rs", "fn main() {}\n"),
            ("work/README.md", "# hello\n"),
            ("work/node_modules/x/index.js", "x"),
            ("work/.git/config", "x"),
            ("work/kept/ledger.key", "secret"),
            ("work/kept/notes.txt", "x"),
            ("outside/secret.txt", "secret"),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn only_the_workspace_and_what_is_below_it_is_a_workspace() {
        let folder = workspace();
        let work = folder.path().join("work");
        symlink(folder.path().join("outside"), work.join("way_out")).unwrap();
        symlink(work.join("src"), work.join("way_in")).unwrap();
        let absolute = work.join("src").to_string_lossy().into_owned();
        for claimed in ["", ".", "src", "way_in", absolute.as_str(), "src/.."] {
            assert!(Folder::open(&work, claimed).is_some(), "{claimed}");
        }
        let outside = folder.path().join("outside").to_string_lossy().into_owned();
        let long = "x/".repeat(10_000);
        for claimed in
            ["..", "way_out", "/", "/etc", outside.as_str(), "missing", "README.md", "a\0b", long.as_str()]
        {
            assert!(Folder::open(&work, claimed).is_none(), "{claimed}");
        }
        let inner = Folder::open(&work, "src").unwrap();
        assert_eq!(inner.path_from_workspace("main.rs"), "src/main.rs");
        assert_eq!(inner.walk(soon()).files, ["main.rs"]);
        assert_eq!(inner.locate("../README.md"), None);
        assert_eq!(inner.locate("main.rs").as_deref(), Some("main.rs"));
        assert_eq!(inner.locate(".").as_deref(), Some(""));
    }

    #[test]
    fn links_state_and_made_files_are_not_walked() {
        let folder = workspace();
        let work = folder.path().join("work");
        symlink(folder.path().join("outside"), work.join("way_out")).unwrap();
        symlink(folder.path().join("outside/secret.txt"), work.join("link.txt")).unwrap();
        let opened = Folder::open(&work, "").unwrap();
        assert_eq!(
            opened.walk(soon()),
            Walk { files: vec!["README.md".into(), "src/main.rs".into()], cut_short: false }
        );
        for path in
            ["link.txt", "way_out/secret.txt", "../outside/secret.txt", "src", "", "/etc/passwd", "missing"]
        {
            assert_eq!(opened.read(path), None, "{path}");
        }
        assert_eq!(opened.read("README.md").as_deref(), Some("# hello\n"));
    }

    #[test]
    fn what_is_no_text_or_too_large_is_not_read() {
        let folder = workspace();
        let work = folder.path().join("work");
        fs::write(work.join("binary"), b"ab\0c").unwrap();
        fs::write(work.join("latin"), b"gr\xfc\xdfe").unwrap();
        let limit = usize::try_from(MAX_FILE_BYTES).unwrap();
        fs::write(work.join("large"), vec![b'x'; limit + 1]).unwrap();
        fs::write(work.join("fits"), vec![b'x'; limit]).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, work.join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .unwrap();
        let opened = Folder::open(&work, "").unwrap();
        for path in ["binary", "latin", "large", "pipe"] {
            assert_eq!(opened.read(path), None, "{path}");
        }
        assert!(opened.read("fits").is_some());
        assert!(!opened.walk(soon()).files.contains(&"pipe".to_owned()));
    }

    #[test]
    fn a_big_tree_is_walked_in_part() {
        let folder = tempfile::tempdir().unwrap();
        let mut deep = folder.path().to_owned();
        for _ in 0..MAX_DEPTH + 3 {
            deep.push("d");
            fs::create_dir(&deep).unwrap();
            fs::write(deep.join("f"), "x").unwrap();
        }
        let walk = Folder::open(folder.path(), "").unwrap().walk(soon());
        assert_eq!((walk.files.len(), walk.cut_short), (MAX_DEPTH - 1, true));

        let wide = tempfile::tempdir().unwrap();
        for number in 0..MAX_ENTRIES + 10 {
            fs::File::create(wide.path().join(number.to_string())).unwrap();
        }
        fs::create_dir(wide.path().join("later")).unwrap();
        let opened = Folder::open(wide.path(), "").unwrap();
        assert!(opened.walk(soon()).files.len() <= MAX_ENTRIES);
        let late = opened.walk(Instant::now());
        assert_eq!(late, Walk { files: Vec::new(), cut_short: true });
    }
}
