//! `proctor names`: links under which this program is another one.

use std::path::{Path, PathBuf};

use proctor_core::json::Json;

use super::Context;
use crate::failure::{Failure, OK, Outcome};
use crate::output;

/// Programs that other people's software spawns, and that this build can be. `proctor` itself is always one.
pub const PROGRAMS: &[&str] = &["proctor", "attest-engine", "agentcli", "aa-gateway", "aa-runtime"];

pub(super) fn run(context: &Context, dir: Option<&Path>, attest: Option<&str>) -> Outcome {
    let program = std::env::current_exe().map_err(|error| Failure::from(error.to_string()))?;
    let mut made = Vec::new();
    if let Some(dir) = dir {
        for name in PROGRAMS {
            made.push(link(&program, dir, name)?);
        }
    }
    if let Some(version) = attest {
        made.push(fill_attest_cache(&program, version)?);
    }
    if context.json {
        let links = made.iter().map(|link| Json::from(link.display().to_string())).collect::<Vec<_>>();
        output::data(Json::object().with("links", links))?;
    } else {
        for link in made {
            output::data(link.display())?;
        }
    }
    Ok(OK)
}

/// The folder in which the official Attest SDKs look for an engine before they download one.
fn fill_attest_cache(program: &Path, version: &str) -> Result<PathBuf, Failure> {
    let plain = !version.is_empty()
        && version.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-');
    if !plain {
        return Err(Failure::from(format!("`{version}` is not a version")));
    }
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .filter(|home| home.is_absolute())
        .ok_or_else(|| Failure::from("there is no home folder: set HOME"))?;
    let dir = home.join(".attest").join("bin");
    let made = link(program, &dir, "attest-engine")?;
    let marker = dir.join(".engine-version");
    std::fs::write(&marker, version).map_err(|error| Failure::io(&marker, &error))?;
    Ok(made)
}

/// A link to this program under another name. A link that is there is replaced, a file is not.
fn link(program: &Path, dir: &Path, name: &str) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(dir).map_err(|error| Failure::io(dir, &error))?;
    let link = dir.join(name);
    let describe = |error: std::io::Error| Failure::io(&link, &error);
    match std::fs::read_link(&link) {
        Ok(target) if target == program => {}
        Ok(_) => {
            std::fs::remove_file(&link).map_err(describe)?;
            std::os::unix::fs::symlink(program, &link).map_err(describe)?;
        }
        Err(_) if link.exists() => {
            return Err(Failure::from(format!("{} is in the way: it is not a link", link.display())));
        }
        Err(_) => std::os::unix::fs::symlink(program, &link).map_err(describe)?,
    }
    Ok(link)
}
