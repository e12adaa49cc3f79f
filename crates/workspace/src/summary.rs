//! Project summary: the folder's name and the visible names of its top level.

use std::collections::BTreeMap;
use std::time::Instant;

use proctor_wire::ahp::ProjectSummary;

use super::folder::Folder;
use super::search::View;

/// Most names of folders and of files in the description.
const MAX_NAMES: usize = 20;
/// Most files per folder that are checked until one is visible.
const MAX_ASKED: usize = 32;
/// Longest project name, in characters.
const MAX_NAME_CHARS: usize = 100;

/// Builds the summary from visible files only.
pub(crate) fn summary(folder: &Folder, files: &[String], view: &View<'_>) -> ProjectSummary {
    ProjectSummary {
        project_name: (view.cut)(&folder.name()).chars().take(MAX_NAME_CHARS).collect(),
        language: None,
        key_files: None,
        structure_description: layout(files, view),
    }
}

/// Visible folders and files of the top level.
pub(crate) fn top(files: &[String], view: &View<'_>) -> (Vec<String>, Vec<String>) {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut beside = Vec::new();
    for file in files {
        match file.split_once('/') {
            Some((folder, _)) => {
                let inner = folders.entry(folder).or_default();
                if inner.len() < MAX_ASKED {
                    inner.push(file);
                }
            }
            None if beside.len() <= MAX_NAMES && seen(file, view) => beside.push((view.cut)(file)),
            None => {}
        }
    }
    let folders = folders
        .iter()
        .filter(|(_, inner)| inner.iter().any(|file| seen(file, view)))
        .map(|(folder, _)| (view.cut)(folder))
        .take(MAX_NAMES + 1)
        .collect();
    (folders, beside)
}

fn layout(files: &[String], view: &View<'_>) -> String {
    let (folders, beside) = top(files, view);
    let named = |kind: &str, mut names: Vec<String>| {
        let more = if names.len() > MAX_NAMES { ", …" } else { "" };
        names.truncate(MAX_NAMES);
        (!names.is_empty()).then(|| format!("{kind} {}{more}", names.join(", ")))
    };
    let parts: Vec<String> =
        [named("folders", folders), named("files", beside)].into_iter().flatten().collect();
    if parts.is_empty() { "no files that may be seen".to_owned() } else { parts.join("; ") }
}

fn seen(file: &str, view: &View<'_>) -> bool {
    Instant::now() < view.until && (view.sees)(file)
}
