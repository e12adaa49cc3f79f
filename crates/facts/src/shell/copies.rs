//! Programs that place files elsewhere: copies, links, archives, edits in place.

use super::AddressForm;
use super::arguments::Arguments;
use super::collect::Effect;
use super::effects::Recorder;
use super::network::is_remote;
use super::word::Word;

/// Result of [`record`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Copies {
    /// Whether the operands are recorded.
    pub(super) handled: bool,
    /// Whether files are changed.
    pub(super) changes: bool,
}

/// Records the operands of programs whose operands depend on each other or on options.
pub(super) fn record(recorder: &mut Recorder, found: &Arguments, rest: &[Word]) -> Copies {
    let name = recorder.name.strip_prefix('g').filter(|bare| GNU.contains(bare)).unwrap_or(recorder.name);
    match name {
        "cp" | "mv" | "install" | "ln" | "rsync" | "scp" => copy(recorder, name, found),
        "dd" => {
            for word in rest {
                match word.text().get(..3) {
                    Some("of=") => recorder.file(Effect::Write, &word.skip(3)),
                    Some("if=") => recorder.file(Effect::Read, &word.skip(3)),
                    _ => {}
                }
            }
        }
        "sed" => edit(recorder, found),
        "tar" | "bsdtar" => tar(recorder, found, rest),
        "unzip" => {
            let target = found.value(&["d"]).map(Word::text);
            if target.is_none() {
                recorder.collector.writes_here();
            }
            return Copies { handled: false, changes: true };
        }
        "gzip" | "bzip2" | "xz" | "zstd" | "gunzip" | "bunzip2" | "unxz" | "unzstd"
            if found.has(&["c", "stdout", "to-stdout", "l", "list", "t", "test"]) =>
        {
            for operand in &found.operands {
                recorder.file(Effect::Read, operand);
            }
            return Copies { handled: true, changes: false };
        }
        "ed" | "ex" | "vi" | "vim" | "nvim" | "view" => {
            if found.has(&["s"]) && !found.has(&["e", "E"]) && !matches!(name, "ed" | "ex") {
                // `-s FILE`: typed input from a file.
                recorder.opaque();
            }
            for operand in &found.operands {
                let text = operand.text();
                if let Some(code) = text.strip_prefix('+') {
                    recorder.value(super::program::Value::Foreign, &Word::literal(code));
                } else {
                    recorder.file(Effect::Write, operand);
                }
            }
        }
        "patch" => {
            // The files that a patch names are not on the command line.
            recorder.collector.writes_here();
            if let Some(directory) = found.value(&["d", "directory"]) {
                recorder.file(Effect::Write, &directory.clone());
            }
            recorder.opaque();
            return Copies { handled: false, changes: true };
        }
        _ => return Copies { handled: false, changes: false },
    }
    Copies { handled: true, changes: name != "tar" || tar_changes(found) }
}

const GNU: &[&str] = &["cp", "mv", "install", "ln", "dd", "sed", "tar"];

fn copy(recorder: &mut Recorder, name: &str, found: &Arguments) {
    let directory = found.value(&["t", "target-directory"]).filter(|_| !matches!(name, "rsync" | "scp"));
    if name == "install" && found.has(&["d", "directory"]) {
        for operand in &found.operands {
            recorder.file(Effect::Write, operand);
        }
        return;
    }
    let (target, sources) = match (directory, found.operands.split_last()) {
        (Some(directory), _) => (directory.clone(), found.operands.as_slice()),
        (None, Some((only, []))) if name == "ln" => {
            let text = only.text();
            let base = Word::literal(last_name(&text));
            recorder.file(Effect::Write, &base);
            return link(recorder, name, &base.text(), only);
        }
        (None, Some((last, sources))) => (last.clone(), sources),
        (None, None) => return,
    };
    let remote_program = matches!(name, "rsync" | "scp");
    let remote = |word: &Word| remote_program && (is_remote(&word.text()) || word.text().contains("://"));
    for word in sources.iter().chain([&target]).filter(|word| remote(word)) {
        recorder.collector.address(AddressForm::Remote, &word.text());
    }
    if !remote(&target) {
        let text = target.text();
        recorder.file(Effect::Write, &target);
        let is_directory = directory.is_some()
            || sources.len() > 1
            || text.ends_with('/')
            || matches!(text.as_str(), "." | ".." | "~")
            || text.ends_with("/.")
            || text.ends_with("/..");
        for source in sources {
            let source_text = source.text();
            let inside = inside(&text, &source_text);
            if is_directory && let Some(path) = &inside {
                recorder.collector.path(Effect::Write, path);
            }
            link(recorder, name, &text, source);
            // The target may be a directory that exists.
            if let Some(path) = &inside {
                link(recorder, name, path, source);
            }
        }
    }
    for source in sources.iter().filter(|source| !remote(source)) {
        match name {
            "mv" => recorder.file(Effect::Delete, source),
            "ln" => recorder.collector.mention(&source.text()),
            _ => recorder.file(Effect::Read, source),
        }
    }
}

/// Records that what is reached through a new name is the source.
fn link(recorder: &mut Recorder, name: &str, link: &str, source: &Word) {
    let target = source.text();
    if recorder.context.starts.is_empty() || !target.contains("{}") {
        recorder.collector.link(link, &target, name != "ln");
    }
    if name == "ln" && !target.starts_with(['/', '~', '$']) {
        // The target of a symbolic link starts where the link is.
        let directory = link.rsplit_once('/').map_or("", |(directory, _)| directory);
        if !directory.is_empty() {
            recorder.collector.link(link, &format!("{directory}/{target}"), false);
        }
    }
}

/// The path of a file placed into a directory under the name of its source.
fn inside(directory: &str, source: &str) -> Option<String> {
    let name = last_name(source.trim_end_matches('/'));
    let has_name = !name.is_empty() && name != "." && name != ".." && !name.contains("{}");
    has_name.then(|| format!("{}/{name}", directory.trim_end_matches('/')))
}

fn last_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn edit(recorder: &mut Recorder, found: &Arguments) {
    let edits = found.names(&["i", "in-place"]);
    let effect = if edits { Effect::Write } else { Effect::Read };
    let has_script = found.value(&["e", "f", "expression", "file"]).is_some();
    // `-i ''` of BSD: the suffix is a word of its own.
    let mut operands = found.operands.iter().filter(|word| !word.text().is_empty());
    if !has_script && let Some(script) = operands.next() {
        recorder.value(super::program::Value::Foreign, script);
    }
    for operand in operands {
        recorder.file(effect, operand);
    }
}

fn tar_changes(found: &Arguments) -> bool {
    found.has(&["x", "extract", "get", "c", "create", "r", "append", "u", "update", "A", "delete"])
}

fn tar(recorder: &mut Recorder, found: &Arguments, rest: &[Word]) {
    // The first word may be a cluster without its dash, whose values follow in order.
    let mut operands = found.operands.clone();
    let mut letters = String::new();
    let mut values: Vec<(char, Word)> = Vec::new();
    if let Some(first) = rest.first().map(Word::text).filter(|text| !text.starts_with('-')) {
        letters.clone_from(&first);
        operands.remove(0);
        for letter in first.chars().filter(|letter| "bfgCTXFILNVKH".contains(*letter)) {
            if !operands.is_empty() {
                values.push((letter, operands.remove(0)));
            }
        }
    }
    let mode = |names: &[&str], letter: char| found.has(names) || letters.contains(letter);
    let extracts = mode(&["x", "extract", "get"], 'x');
    let lists = mode(&["t", "list"], 't') || mode(&["d", "diff", "compare"], 'd');
    let archive_effect = if extracts || lists { Effect::Read } else { Effect::Write };
    let mut directories: Vec<Word> = found
        .values
        .iter()
        .filter(|given| matches!(given.name.as_str(), "C" | "directory" | "cd"))
        .map(|given| given.value.clone())
        .collect();
    let mut archive = found.value(&["f", "file"]).cloned();
    for (letter, word) in values {
        match letter {
            'f' => archive = Some(word),
            'C' => {
                let inside = recorder.collector.directories_after(&word);
                recorder.collector.add_directories(inside);
                directories.push(word);
            }
            'F' | 'I' => recorder.value(super::program::Value::Code, &word),
            'T' | 'X' => recorder.value(super::program::Value::List, &word),
            'g' => recorder.file(Effect::Write, &word),
            _ => {}
        }
    }
    if let Some(archive) = archive {
        if is_remote(&archive.text()) && !found.has(&["force-local"]) {
            recorder.collector.address(AddressForm::Remote, &archive.text());
        } else {
            recorder.file(archive_effect, &archive);
        }
    }
    let to_output = mode(&["O", "to-stdout"], 'O');
    for directory in &directories {
        let effect = if extracts && !to_output { Effect::Write } else { Effect::Read };
        recorder.file(effect, directory);
    }
    if extracts && !to_output && directories.is_empty() {
        recorder.collector.writes_here();
    }
    if mode(&["P", "absolute-names"], 'P') && extracts {
        // The archive says where its files go.
        recorder.opaque();
    }
    for operand in &operands {
        if extracts || lists {
            // Members of the archive.
            recorder.value(super::program::Value::Text, operand);
        } else {
            recorder.file(if found.has(&["remove-files"]) { Effect::Delete } else { Effect::Read }, operand);
        }
    }
}
