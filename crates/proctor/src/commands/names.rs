//! `proctor names`: links under which this program is another one.

use std::path::Path;

use super::Context;
use crate::failure::{Failure, OK, Outcome};
use crate::output;

/// Programs that other people's software spawns, and that this build can be. `proctor` itself is always one.
pub const PROGRAMS: &[&str] = &["proctor"];

/// Names under which other people's software starts a program. A build that cannot be one of them says so instead of guessing.
const KNOWN_NAMES: &[&str] = &["attest-engine", "agentcli", "aa-gateway", "aa-runtime"];

/// The name of a program that this build was started as but cannot be.
pub fn called_as(arguments: &[std::ffi::OsString]) -> Option<&'static str> {
    let name = Path::new(arguments.first()?).file_name()?.to_str()?;
    KNOWN_NAMES.iter().find(|known| **known == name && !PROGRAMS.contains(known)).copied()
}

pub(super) fn run(context: &Context, dir: &Path) -> Outcome {
    let program = std::env::current_exe().map_err(|error| Failure::from(error.to_string()))?;
    std::fs::create_dir_all(dir).map_err(|error| Failure::from(format!("{}: {error}", dir.display())))?;
    let mut made = Vec::new();
    for name in PROGRAMS {
        let link = dir.join(name);
        let describe = |error: std::io::Error| Failure::from(format!("{}: {error}", link.display()));
        match std::fs::read_link(&link) {
            Ok(target) if target == program => {}
            Ok(_) => {
                std::fs::remove_file(&link).map_err(describe)?;
                std::os::unix::fs::symlink(&program, &link).map_err(describe)?;
            }
            Err(_) if link.exists() => {
                return Err(Failure::from(format!("{} is in the way: it is not a link", link.display())));
            }
            Err(_) => std::os::unix::fs::symlink(&program, &link).map_err(describe)?,
        }
        made.push(link.display().to_string());
    }
    if context.json {
        let links = made.iter().map(|link| proctor_core::json::Json::from(link.as_str())).collect::<Vec<_>>();
        output::data(proctor_core::json::Json::object().with("links", links))?;
    } else {
        for link in made {
            output::data(link)?;
        }
    }
    Ok(OK)
}
