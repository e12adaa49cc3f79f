//! File tree of a run: everything read-only but the writable folders, devices reduced to harmless ones, hidden paths masked.

use crate::error::Step;
use crate::plan::layers::{Layer, Layers};
use crate::sys::mounts::{self, NO_DEVICES, NO_SET_USER_ID, READ_ONLY};
use crate::sys::{Call, Errno, files};
use std::ffi::CStr;

/// Devices that a run keeps. Disks, memory and terminals of the host are not among them: a read-only mount does not stop writes to devices.
const DEVICES: [&CStr; 6] =
    [c"/dev/null", c"/dev/zero", c"/dev/full", c"/dev/random", c"/dev/urandom", c"/dev/tty"];

const DEVICE_LINKS: [(&CStr, &CStr); 5] = [
    (c"/proc/self/fd", c"/dev/fd"),
    (c"/proc/self/fd/0", c"/dev/stdin"),
    (c"/proc/self/fd/1", c"/dev/stdout"),
    (c"/proc/self/fd/2", c"/dev/stderr"),
    (c"pts/ptmx", c"/dev/ptmx"),
];

/// File without any permission, which is mounted over hidden files.
const MASK: &CStr = c"/dev/.hidden";

/// Shared memory of a run. Its pages belong to no process, so that only this bound holds them.
const SHARED_MEMORY: &CStr = c"mode=1777,size=64m";

const NO_EXECUTION: u64 = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

/// Builds the tree up to `/proc`, which stays writable until [`finish`].
pub(super) fn prepare(layers: &Layers) -> Result<(), (Step, Errno)> {
    for tree in &layers.trees {
        tree.copy.set(mounts::clone_tree(&tree.path).map_err(|errno| (Step::Writable, errno))?);
    }
    prepare_base(layers).map_err(|errno| (Step::Mounts, errno))
}

fn prepare_base(layers: &Layers) -> Call<()> {
    mounts::make_private(c"/")?;
    let mut devices = [-1; DEVICES.len()];
    for (device, path) in devices.iter_mut().zip(DEVICES) {
        *device = match mounts::clone_tree(path) {
            Ok(tree) => {
                // Their mode and owner must not be changed either.
                mounts::restrict_tree(tree, READ_ONLY | NO_SET_USER_ID)?;
                tree
            }
            Err(Errno(libc::ENOENT)) => -1,
            Err(errno) => return Err(errno),
        };
    }
    mounts::restrict(c"/", READ_ONLY | NO_SET_USER_ID | NO_DEVICES, true)?;
    mounts::mount_new(c"tmpfs", c"/dev", libc::MS_NOSUID | libc::MS_NOEXEC, c"mode=0755,size=64k")?;
    for (device, path) in devices.into_iter().zip(DEVICES) {
        if device >= 0 {
            files::close(files::open(path, libc::O_CREAT | libc::O_WRONLY, 0o600)?);
            mounts::attach_tree(device, path)?;
            files::close(device);
        }
    }
    for (target, path) in DEVICE_LINKS {
        files::make_symlink(target, path)?;
    }
    files::make_directory(c"/dev/shm", 0o1777)?;
    mounts::mount_new(c"tmpfs", c"/dev/shm", NO_EXECUTION, SHARED_MEMORY)?;
    files::make_directory(c"/dev/pts", 0o755)?;
    // Terminals of its own; programs without any work nearly always, so a kernel that refuses them is no failure.
    let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
    let _ = mounts::mount_new(c"devpts", c"/dev/pts", flags, c"newinstance,ptmxmode=0666,mode=0600");
    files::close(files::open(MASK, libc::O_CREAT | libc::O_WRONLY, 0)?);
    mounts::restrict(c"/dev", READ_ONLY, false)?;
    if layers.has_own_processes {
        // Refused in containers whose own /proc is masked. The old one stays then: processes outside cannot be reached through it,
        // because they are in another user namespace.
        let _ = mounts::mount_new(c"proc", c"/proc", NO_EXECUTION, c"");
    }
    Ok(())
}

/// Masks hidden paths, opens the writable folders, and makes `/proc` read-only.
pub(super) fn finish(layers: &Layers) -> Result<(), (Step, Errno)> {
    for layer in &layers.steps {
        let (step, result) = match layer {
            Layer::MaskFolder { path, is_passed } => (Step::Masks, mask_folder(path, *is_passed)),
            Layer::MaskFile { path } => (Step::Masks, masked(path, mounts::bind(MASK, path))),
            Layer::MakeFolder { path } => (Step::Masks, make_folder(path)),
            Layer::Seal { path } => (Step::Masks, gone_is_fine(mounts::restrict(path, READ_ONLY, false))),
            Layer::Expose { tree, path } => (Step::Writable, expose(layers, *tree, path)),
            Layer::Pin { path } => (Step::Masks, pin(path)),
            Layer::Keep { path } => (Step::Writable, keep(path)),
        };
        result.map_err(|errno| (step, errno))?;
    }
    mounts::restrict(c"/proc", READ_ONLY, true).map_err(|errno| (Step::Mounts, errno))
}

fn expose(layers: &Layers, tree: usize, path: &CStr) -> Call<()> {
    let Some(tree) = layers.trees.get(tree) else { return Err(Errno(libc::EINVAL)) };
    let writing = if tree.is_writable { 0 } else { READ_ONLY };
    let tree = tree.copy.get();
    mounts::restrict_tree(tree, NO_SET_USER_ID | NO_DEVICES | writing)?;
    mounts::attach_tree(tree, path)?;
    files::close(tree);
    Ok(())
}

/// Makes a file read-only, and its place its own: what is a mount point is neither removed nor replaced.
fn keep(path: &CStr) -> Call<()> {
    mounts::bind(path, path)?;
    mounts::restrict(path, READ_ONLY | NO_SET_USER_ID | NO_DEVICES, false)
}

/// Makes a folder a mount point of its own. A folder that has gone, or that is closed to the run, has nothing to move.
fn pin(path: &CStr) -> Call<()> {
    match gone_is_fine(mounts::bind(path, path)) {
        Err(Errno(libc::EACCES)) => Ok(()),
        other => other,
    }
}

fn make_folder(path: &CStr) -> Call<()> {
    match files::make_directory(path, 0o111) {
        // Two writable folders below the same one.
        Err(Errno(libc::EEXIST)) => Ok(()),
        other => other,
    }
}

fn mask_folder(path: &CStr, is_passed: bool) -> Call<()> {
    let options = if is_passed { c"mode=0111,size=64k" } else { c"mode=0000,size=4k" };
    masked(path, mounts::mount_new(c"tmpfs", path, NO_EXECUTION, options))
}

/// Result of masking a path. A path inside a folder of another user that is closed to everybody else cannot be masked by itself: capabilities of a
/// user namespace do not count for files of users outside of it. The folder itself is masked then, since its owner may open it during the run.
fn masked(path: &CStr, result: Call<()>) -> Call<()> {
    match gone_is_fine(result) {
        Err(Errno(libc::EACCES)) => mask_closed_folder(path),
        other => other,
    }
}

/// Masks the outermost folder above a path that cannot be entered. Nothing that stays reachable can lie inside.
fn mask_closed_folder(path: &CStr) -> Call<()> {
    const REFUSED: Call<()> = Err(Errno(libc::EACCES));
    // On the stack: nothing is allocated between fork and exec.
    let mut buffer = [0; libc::PATH_MAX as usize];
    let bytes = path.to_bytes();
    let Some(copy) = buffer.get_mut(..bytes.len()) else { return REFUSED };
    copy.copy_from_slice(bytes);
    let mut length = bytes.len();
    while let Some(slash) = buffer.iter().take(length).rposition(|byte| *byte == b'/').filter(|at| *at > 0) {
        length = slash;
        let Some(end) = buffer.get_mut(length) else { return REFUSED };
        *end = 0;
        let Ok(folder) = CStr::from_bytes_until_nul(&buffer) else { return REFUSED };
        match gone_is_fine(mounts::mount_new(c"tmpfs", folder, NO_EXECUTION, c"mode=0000,size=4k")) {
            REFUSED => {}
            Ok(()) => return gone_is_fine(mounts::restrict(folder, READ_ONLY, false)),
            other => return other,
        }
    }
    REFUSED
}

/// A hidden path may have gone since the plan was made: there is nothing left to hide.
fn gone_is_fine(result: Call<()>) -> Call<()> {
    match result {
        Err(Errno(libc::ENOENT | libc::ENOTDIR)) => Ok(()),
        other => other,
    }
}
