//! Layers of mounts over hidden and writable paths.

use super::{is_below, text};
use crate::error::Error;
use std::cell::Cell;
use std::ffi::CString;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

/// Change of the file tree, in the order in which the child makes them.
#[derive(Debug)]
pub(crate) enum Layer {
    /// Covers a folder with an empty one. `is_passed` if a writable folder lies below: it can then be passed through, but not listed.
    MaskFolder { path: CString, is_passed: bool },
    /// Covers a file with one that nobody may open.
    MaskFile { path: CString },
    /// Makes a folder inside a mask.
    MakeFolder { path: CString },
    /// Puts a tree at its place.
    Expose { tree: usize, path: CString },
    /// Makes a folder above a mask a mount point, which cannot be renamed: a mask that moved away with its folder would not be found at its
    /// place by the next run.
    Pin { path: CString },
    /// Makes a file inside a writable tree read-only.
    Keep { path: CString },
    /// Makes a mask read-only, once everything inside it is in place.
    Seal { path: CString },
}

/// Mounts of a process.
#[derive(Debug)]
pub(crate) struct Layers {
    pub(crate) trees: Vec<Tree>,
    pub(crate) steps: Vec<Layer>,
    /// Whether a new `/proc` shows only the processes of the run.
    pub(crate) has_own_processes: bool,
}

/// Folder that stays reachable, with the detached copy that the child makes of it.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) path: CString,
    pub(crate) is_writable: bool,
    pub(crate) copy: Cell<RawFd>,
}

/// Paths that a process may reach, all of them canonical.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reachable<'a> {
    pub(crate) writable: &'a [PathBuf],
    /// Folders that may be read, also inside hidden ones.
    pub(crate) readable: &'a [PathBuf],
    /// Files inside writable folders that stay as they are.
    pub(crate) read_only: &'a [PathBuf],
}

/// Bound on masks: a mount costs microseconds, and the kernel allows 100,000 in a namespace.
const MASKS: usize = 4096;

impl Layers {
    /// Orders masks and writable folders, which may lie inside each other. All paths are canonical.
    pub(crate) fn new(
        reachable: Reachable<'_>,
        hidden: &[PathBuf],
        sockets: &[PathBuf],
        has_own_processes: bool,
    ) -> Result<Self, Error> {
        let Reachable { writable, readable, read_only } = reachable;
        let mut exposed: Vec<&PathBuf> = Vec::new();
        let mut sorted: Vec<&PathBuf> = writable.iter().chain(readable).collect();
        sorted.sort_unstable();
        for folder in sorted {
            // Sorted paths come parents first: the last one that contains the folder is the innermost.
            let outer = exposed.iter().rev().find(|outer| folder.starts_with(outer));
            // A mask in between would cover the folder with the rest.
            let is_covered = |outer: &Path| {
                let is_between = |mask: &PathBuf| mask != outer && mask != folder && mask.starts_with(outer);
                hidden.iter().any(|mask| is_between(mask) && folder.starts_with(mask))
            };
            if outer.is_none_or(|outer| is_covered(outer)) {
                exposed.push(folder);
            }
        }
        // Also those inside writable folders: a socket that is bound before the run belongs to another program.
        let mut masks: Vec<&PathBuf> = hidden.iter().chain(sockets).collect();
        masks.sort_unstable();
        masks.dedup();
        if masks.len() + read_only.len() > MASKS {
            return Err(Error::InvalidSpec { what: "hidden paths", reason: "there are too many" });
        }
        let mut builder = Builder { covered: Vec::new(), pinned: Vec::new(), layers: Vec::new() };
        let mut trees = Vec::with_capacity(exposed.len());
        // Sorted paths come parents first, and a mask before the writable folders inside it.
        let mut masks = masks.into_iter().peekable();
        for folder in &exposed {
            while let Some(mask) = masks.next_if(|mask| mask <= folder) {
                if mask != *folder {
                    builder.mask(mask, &exposed)?;
                }
            }
            builder.expose(folder, trees.len())?;
            trees.push(Tree {
                path: text("writable folder", folder.as_os_str())?,
                is_writable: writable.contains(*folder),
                copy: Cell::new(-1),
            });
        }
        for mask in masks {
            builder.mask(mask, &exposed)?;
        }
        for file in read_only.iter().filter(|file| is_below(file, writable)) {
            builder.layers.push(Layer::Keep { path: text("read-only file", file.as_os_str())? });
        }
        Ok(Self { trees, steps: builder.finish()?, has_own_processes })
    }
}

/// Part of the tree as it will look after the layers so far.
enum Cover<'a> {
    Mask(&'a Path),
    Tree(&'a Path),
}

struct Builder<'a> {
    covered: Vec<Cover<'a>>,
    pinned: Vec<&'a Path>,
    layers: Vec<Layer>,
}

impl<'a> Builder<'a> {
    /// Innermost cover of a path.
    fn cover_of(&self, path: &Path) -> Option<&Cover<'a>> {
        self.covered
            .iter()
            .filter(|cover| {
                let (Cover::Mask(at) | Cover::Tree(at)) = cover;
                path.starts_with(at)
            })
            .max_by_key(|cover| {
                let (Cover::Mask(at) | Cover::Tree(at)) = cover;
                at.components().count()
            })
    }

    fn mask(&mut self, path: &'a Path, writable: &[&PathBuf]) -> Result<(), Error> {
        match self.cover_of(path) {
            Some(Cover::Mask(_)) => return Ok(()),
            Some(Cover::Tree(root)) => {
                let root = *root;
                self.pin_between(root, path)?;
            }
            None => {}
        }
        let target = text("hidden path", path.as_os_str())?;
        if path.is_dir() {
            let is_passed = writable.iter().any(|folder| folder.starts_with(path));
            self.layers.push(Layer::MaskFolder { path: target, is_passed });
            self.covered.push(Cover::Mask(path));
        } else {
            self.layers.push(Layer::MaskFile { path: target });
        }
        Ok(())
    }

    /// Pins the folders between a tree and a mask inside it, outermost first.
    fn pin_between(&mut self, root: &Path, path: &'a Path) -> Result<(), Error> {
        let mut between: Vec<&'a Path> =
            path.ancestors().skip(1).take_while(|ancestor| *ancestor != root).collect();
        between.reverse();
        for folder in between {
            if !self.pinned.contains(&folder) {
                self.pinned.push(folder);
                self.layers.push(Layer::Pin { path: text("hidden path", folder.as_os_str())? });
            }
        }
        Ok(())
    }

    fn expose(&mut self, folder: &'a Path, tree: usize) -> Result<(), Error> {
        if let Some(Cover::Mask(mask)) = self.cover_of(folder) {
            let mask = *mask;
            let mut missing: Vec<&Path> =
                folder.ancestors().take_while(|ancestor| *ancestor != mask).collect();
            missing.reverse();
            for path in missing {
                self.layers.push(Layer::MakeFolder { path: text("writable folder", path.as_os_str())? });
            }
        }
        self.layers.push(Layer::Expose { tree, path: text("writable folder", folder.as_os_str())? });
        self.covered.push(Cover::Tree(folder));
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<Layer>, Error> {
        for cover in &self.covered {
            if let Cover::Mask(path) = cover {
                self.layers.push(Layer::Seal { path: text("hidden path", path.as_os_str())? });
            }
        }
        Ok(self.layers)
    }
}

#[cfg(test)]
mod tests {
    use super::{Layer, Layers, Reachable};
    use std::path::PathBuf;

    /// Layers over folders of a temporary tree, as text.
    fn layers(writable: &[&str], hidden: &[&str]) -> Vec<String> {
        layers_with_sockets(writable, hidden, &[])
    }

    fn layers_with_sockets(writable: &[&str], hidden: &[&str], sockets: &[&str]) -> Vec<String> {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap();
        let make = |paths: &[&str]| -> Vec<PathBuf> {
            paths
                .iter()
                .map(|path| {
                    let path = root.join(path);
                    if path.extension().is_some() {
                        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                        std::fs::write(&path, "").unwrap();
                    } else {
                        std::fs::create_dir_all(&path).unwrap();
                    }
                    path
                })
                .collect()
        };
        let (writable, hidden, sockets) = (make(writable), make(hidden), make(sockets));
        let reachable = Reachable { writable: &writable, ..Reachable::default() };
        let plan = Layers::new(reachable, &hidden, &sockets, true).unwrap();
        let relative = |path: &std::ffi::CString| {
            path.to_str().unwrap().strip_prefix(root.to_str().unwrap()).unwrap()[1..].to_owned()
        };
        plan.steps
            .iter()
            .map(|layer| match layer {
                Layer::MaskFolder { path, is_passed: true } => format!("pass {}", relative(path)),
                Layer::MaskFolder { path, is_passed: false } => format!("mask {}", relative(path)),
                Layer::MaskFile { path } => format!("file {}", relative(path)),
                Layer::MakeFolder { path } => format!("make {}", relative(path)),
                Layer::Expose { path, .. } => format!("open {}", relative(path)),
                Layer::Pin { path } => format!("pin {}", relative(path)),
                Layer::Keep { path } => format!("keep {}", relative(path)),
                Layer::Seal { path } => format!("seal {}", relative(path)),
            })
            .collect()
    }

    #[test]
    fn a_writable_folder_inside_a_hidden_one_is_rebuilt_in_the_mask() {
        assert_eq!(
            layers(&["state/runs/one"], &["state", "state/runs", "state/key.pem"]),
            ["pass state", "make state/runs", "make state/runs/one", "open state/runs/one", "seal state"]
        );
    }

    #[test]
    fn a_hidden_path_inside_a_writable_folder_is_masked_after_it() {
        assert_eq!(
            layers(&["run", "run/deep"], &["run/secret", "run/a.txt", "aside"]),
            ["mask aside", "open run", "file run/a.txt", "mask run/secret", "seal aside", "seal run/secret"]
        );
    }

    #[test]
    fn a_writable_folder_inside_a_hidden_one_inside_a_writable_one_is_rebuilt_in_the_mask() {
        assert_eq!(
            layers(&["run", "run/deep", "run/state/own", "run/state/own/deep"], &["run/state"]),
            ["open run", "pass run/state", "make run/state/own", "open run/state/own", "seal run/state"]
        );
    }

    #[test]
    fn a_socket_inside_a_writable_folder_is_masked_after_it() {
        assert_eq!(
            layers_with_sockets(
                &["run", "run/state/own"],
                &["run/state"],
                &["run/a.sock", "run/state/own/b.sock"]
            ),
            [
                "open run",
                "file run/a.sock",
                "pass run/state",
                "make run/state/own",
                "open run/state/own",
                "file run/state/own/b.sock",
                "seal run/state"
            ]
        );
    }

    #[test]
    fn folders_above_a_mask_inside_a_writable_folder_are_pinned_once_and_before_it() {
        assert_eq!(
            layers(&["run"], &["run/a/b/state", "run/a/b/a.key", "run/a/c/d.key"]),
            [
                "open run",
                "pin run/a",
                "pin run/a/b",
                "file run/a/b/a.key",
                "mask run/a/b/state",
                "pin run/a/c",
                "file run/a/c/d.key",
                "seal run/a/b/state"
            ]
        );
    }

    #[test]
    fn a_path_that_is_both_stays_writable() {
        assert_eq!(layers(&["run"], &["run"]), ["open run"]);
    }
}
