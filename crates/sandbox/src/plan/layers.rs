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
    /// Puts a writable tree at its place.
    Expose { tree: usize, path: CString },
    /// Makes a mask read-only, once everything inside it is in place.
    Seal { path: CString },
}

/// Mounts of a process.
#[derive(Debug)]
pub(crate) struct Layers {
    /// Writable folders with the detached copy that the child makes of each.
    pub(crate) trees: Vec<(CString, Cell<RawFd>)>,
    pub(crate) steps: Vec<Layer>,
    /// Whether a new `/proc` shows only the processes of the run.
    pub(crate) has_own_processes: bool,
}

/// Bound on masks: a mount costs microseconds, and the kernel allows 100,000 in a namespace.
const MASKS: usize = 4096;

impl Layers {
    /// Orders masks and writable folders, which may lie inside each other. All paths are canonical.
    pub(crate) fn new(
        writable: &[PathBuf],
        hidden: &[PathBuf],
        sockets: &[PathBuf],
        has_own_processes: bool,
    ) -> Result<Self, Error> {
        let mut outermost: Vec<&PathBuf> = Vec::new();
        let mut sorted: Vec<&PathBuf> = writable.iter().collect();
        sorted.sort_unstable();
        for folder in sorted {
            if !outermost.iter().any(|outer| folder.starts_with(outer)) {
                outermost.push(folder);
            }
        }
        // The run's own sockets are its own affair.
        let foreign = sockets.iter().filter(|socket| !is_below(socket, writable));
        let mut masks: Vec<&PathBuf> = hidden.iter().chain(foreign).collect();
        masks.sort_unstable();
        masks.dedup();
        if masks.len() > MASKS {
            return Err(Error::InvalidSpec { what: "hidden paths", reason: "there are too many" });
        }
        let mut builder = Builder { covered: Vec::new(), layers: Vec::new() };
        let mut trees = Vec::with_capacity(outermost.len());
        // Sorted paths come parents first, and a mask before the writable folders inside it.
        let mut masks = masks.into_iter().peekable();
        for folder in &outermost {
            while let Some(mask) = masks.next_if(|mask| mask <= folder) {
                if mask != *folder {
                    builder.mask(mask, &outermost)?;
                }
            }
            builder.expose(folder, trees.len())?;
            trees.push((text("writable folder", folder.as_os_str())?, Cell::new(-1)));
        }
        for mask in masks {
            builder.mask(mask, &outermost)?;
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
        if matches!(self.cover_of(path), Some(Cover::Mask(_))) {
            return Ok(());
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
    use super::{Layer, Layers};
    use std::path::PathBuf;

    /// Layers over folders of a temporary tree, as text.
    fn layers(writable: &[&str], hidden: &[&str]) -> Vec<String> {
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
        let (writable, hidden) = (make(writable), make(hidden));
        let plan = Layers::new(&writable, &hidden, &[], true).unwrap();
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
    fn a_path_that_is_both_stays_writable() {
        assert_eq!(layers(&["run"], &["run"]), ["open run"]);
    }
}
