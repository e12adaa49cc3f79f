//! Last steps of the program's own process, after which it can only execute.

use crate::error::Step;
use crate::plan::Plan;
use crate::sys::{Errno, files, landlock, process};
use std::os::fd::AsRawFd as _;

/// Confines the calling process. The order matters: each step may need what a later one takes away.
pub(super) fn enter(plan: &Plan) -> Result<(), (Step, Errno)> {
    process::new_session();
    let [stdin, stdout, stderr] = plan.streams;
    for (fd, target) in [(stdin, 0), (stdout, 1), (stderr, 2)] {
        files::duplicate_onto(fd, target).map_err(|errno| (Step::Streams, errno))?;
    }
    files::close_on_exec_from(3).map_err(|errno| (Step::Descriptors, errno))?;
    files::change_directory(&plan.directory).map_err(|errno| (Step::Directory, errno))?;
    if !plan.watch.is_first {
        // The main process at least goes if its supervisor is killed from outside.
        process::die_with_parent().map_err(|errno| (Step::Privileges, errno))?;
    }
    if !plan.is_confined {
        return Ok(());
    }
    for (resource, value) in &plan.resources {
        process::limit(*resource, *value).map_err(|errno| (Step::ResourceLimits, errno))?;
    }
    process::forbid_new_privileges().map_err(|errno| (Step::Privileges, errno))?;
    if let Some(ruleset) = &plan.ruleset {
        landlock::restrict_self(ruleset.descriptor.as_raw_fd()).map_err(|errno| (Step::Landlock, errno))?;
    }
    process::drop_capabilities().map_err(|errno| (Step::Capabilities, errno))?;
    if let Some(filter) = &plan.filter {
        process::filter_system_calls(filter).map_err(|errno| (Step::Filter, errno))?;
    }
    Ok(())
}
