//! Files that well-known programs write, read and delete.

use super::arguments::{self, Arguments, Options};
use super::collect::{Collector, Effect};
use super::word::Word;

/// Records the files of a known program. Returns whether the program changes files.
pub(super) fn record(collector: &mut Collector, name: &str, rest: &[Word], starts: &[Word]) -> bool {
    let name = name.strip_prefix('g').filter(|bare| COREUTILS.contains(bare)).unwrap_or(name);
    let options = options_of(name);
    let found = arguments::read(rest, &options, true);
    let mut recorder = Recorder { collector, starts };
    match name {
        "tee" | "sponge" | "truncate" | "touch" | "mkdir" | "mkfifo" | "mknod" | "sudoedit" => {
            recorder.all(Effect::Write, &found.operands);
        }
        "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" => {
            let modes = usize::from(found.value(&["reference"]).is_none());
            recorder.all(Effect::Write, found.operands.get(modes..).unwrap_or_default());
        }
        "rm" | "rmdir" | "unlink" | "shred" | "srm" | "trash" => {
            recorder.all(Effect::Delete, &found.operands);
        }
        "dd" => {
            for word in rest {
                match word.text().get(..3) {
                    Some("of=") => recorder.one(Effect::Write, &word.skip(3)),
                    Some("if=") => recorder.one(Effect::Read, &word.skip(3)),
                    _ => {}
                }
            }
        }
        "cp" | "mv" | "install" | "ln" | "rsync" | "scp" => copy(&mut recorder, name, &found),
        "sed" | "perl" => in_place(&mut recorder, name, rest, &found),
        "sort" => {
            recorder.value(Effect::Write, &found, &["o", "output"]);
            recorder.all(Effect::Read, &found.operands);
        }
        "curl" | "wget" => download(&mut recorder, name, &found),
        "cat" | "tac" | "head" | "tail" | "less" | "more" | "nl" | "od" | "xxd" | "hexdump" | "strings"
        | "base64" | "base32" | "md5sum" | "sha1sum" | "sha256sum" | "sha512sum" | "wc" | "uniq" | "diff"
        | "cmp" | "cut" | "bat" => {
            recorder.all(Effect::Read, &found.operands);
            return false;
        }
        "grep" | "egrep" | "fgrep" | "rg" | "awk" | "gawk" | "mawk" | "jq" => {
            let patterns = usize::from(found.value(&["e", "f", "regexp", "file"]).is_none());
            recorder.all(Effect::Read, found.operands.get(patterns..).unwrap_or_default());
            return false;
        }
        _ => return false,
    }
    true
}

/// Names that are also known with a `g` before them, as on systems where the GNU programs are additional.
const COREUTILS: &[&str] = &[
    "tee", "truncate", "touch", "mkdir", "chmod", "chown", "rm", "rmdir", "unlink", "shred", "dd", "cp",
    "mv", "install", "ln", "sed", "sort", "cat", "head", "tail", "grep",
];

/// The options that take values; any other is taken to be a flag.
pub(super) fn options_of(name: &str) -> Options {
    let (values, long_values) = match name {
        "truncate" => ("sr", "size reference"),
        "touch" => ("dtr", "date reference time"),
        "mkdir" | "mkfifo" | "mknod" => ("m", "mode"),
        "chmod" | "chown" | "chgrp" => ("", "reference from"),
        "shred" => ("ns", "iterations size random-source"),
        "cp" | "mv" | "ln" => ("tS", "target-directory suffix"),
        "install" => ("tSgmo", "target-directory suffix group mode owner"),
        "sed" => ("efl", "expression file line-length"),
        "sort" => {
            ("oktST", "output key field-separator buffer-size temporary-directory parallel files0-from")
        }
        "head" | "tail" => ("nc", "lines bytes"),
        "base64" | "base32" => ("w", "wrap"),
        "xxd" => ("clsog", ""),
        "od" => ("AjNtw", ""),
        "cut" => ("bcdf", "bytes characters delimiter fields output-delimiter"),
        "diff" => ("UCLxXW", "label exclude exclude-from width"),
        "grep" | "egrep" | "fgrep" => (
            "efABCmdD",
            "regexp file after-context before-context context max-count include exclude exclude-dir",
        ),
        "rg" => {
            ("efABCmgtTj", "regexp file after-context before-context context max-count glob type type-not")
        }
        "awk" | "gawk" | "mawk" => ("fvF", "file assign field-separator"),
        "rsync" => (
            "efBTM",
            "rsh exclude include filter exclude-from include-from files-from bwlimit port log-file temp-dir",
        ),
        "ssh" | "slogin" | "autossh" | "sftp" | "mosh" | "ssh-copy-id" => ("BbcDEeFIiJLlmOopQRSWw", ""),
        "nc" | "ncat" | "netcat" => ("eicgGIopPqsTVwXxm", "exec sh-exec proxy source-port wait"),
        "nmap" => ("pieoDSgT", "script script-args exclude"),
        "ping" | "ping6" | "traceroute" => ("cWwistIQpmMfqz", ""),
        "dig" => ("bcfkmpqtxy", ""),
        "scp" => ("cFiJloPSDX", ""),
        "curl" => (
            "oDcXHdFuAeTKbExmrwyYzCtQP",
            "output dump-header cookie-jar request header data data-raw data-binary data-urlencode form user \
             user-agent referer upload-file config cookie cert key proxy max-time range write-out continue-at \
             connect-timeout retry cacert capath resolve interface output-dir url json trace trace-ascii stderr \
             etag-save libcurl connect-to preproxy socks5 socks5-hostname proxy-user limit-rate",
        ),
        "wget" => (
            "OoaPUietTwQ",
            "output-document output-file append-output directory-prefix user-agent input-file header post-data \
             post-file body-data method user password timeout tries wait quota execute save-cookies load-cookies",
        ),
        _ => ("", ""),
    };
    Options { values, flags: EVERY_FLAG, long_values, long_flags: "" }
}

/// Programs whose files are recorded do not run others, so an option that is not known is a plain flag.
const EVERY_FLAG: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789#:,.=@%/";

struct Recorder<'a> {
    collector: &'a mut Collector,
    starts: &'a [Word],
}

impl Recorder<'_> {
    fn one(&mut self, effect: Effect, word: &Word) {
        if !self.starts.is_empty() && word.text().contains("{}") {
            // Inside of `find`, the placeholder stands for anything below the start paths.
            for start in self.starts {
                self.collector.file(effect, start);
            }
            return;
        }
        if word.text() != "-" {
            self.collector.file(effect, word);
        }
    }

    fn all(&mut self, effect: Effect, words: &[Word]) {
        for word in words {
            self.one(effect, word);
        }
    }

    fn value(&mut self, effect: Effect, found: &Arguments, names: &[&str]) {
        if let Some(word) = found.value(names) {
            let word = word.clone();
            self.one(effect, &word);
        }
    }

    /// Records a file placed into a directory under the name of its source.
    fn inside(&mut self, directory: &Word, source: &Word) {
        let text = source.text();
        let name = text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        if name.is_empty() || name == "." || name == ".." || name.contains("{}") {
            return;
        }
        let directory = directory.text();
        let path = format!("{}/{name}", directory.trim_end_matches('/'));
        self.collector.path(Effect::Write, &path);
    }
}

fn copy(recorder: &mut Recorder, name: &str, found: &Arguments) {
    let directory = found.value(&["t", "target-directory"]);
    if name == "install" && found.has(&["d", "directory"]) {
        return recorder.all(Effect::Write, &found.operands);
    }
    let (target, sources) = match (directory, found.operands.split_last()) {
        (Some(directory), _) => (directory.clone(), found.operands.as_slice()),
        (None, Some((only, []))) if name == "ln" => {
            let text = only.text();
            let base = text.rsplit('/').next().unwrap_or_default();
            return recorder.one(Effect::Write, &Word::literal(base));
        }
        (None, Some((last, sources))) => (last.clone(), sources),
        (None, None) => return,
    };
    let is_remote = |word: &Word| {
        let text = word.text();
        text.find(':').is_some_and(|colon| !text.get(..colon).unwrap_or_default().contains('/'))
    };
    let remote_program = matches!(name, "rsync" | "scp");
    if !(remote_program && is_remote(&target)) {
        recorder.one(Effect::Write, &target);
        let text = target.text();
        let is_directory = directory.is_some()
            || sources.len() > 1
            || text.ends_with('/')
            || matches!(text.as_str(), "." | ".." | "~")
            || text.ends_with("/.")
            || text.ends_with("/..");
        if is_directory {
            for source in sources {
                recorder.inside(&target, source);
            }
        }
    }
    for source in sources.iter().filter(|source| !(remote_program && is_remote(source))) {
        match name {
            "mv" => recorder.one(Effect::Delete, source),
            "ln" => {}
            _ => recorder.one(Effect::Read, source),
        }
    }
}

fn in_place(recorder: &mut Recorder, name: &str, rest: &[Word], found: &Arguments) {
    let is_in_place = |text: &str| {
        let Some(cluster) = text.strip_prefix('-') else { return false };
        if let Some(long) = cluster.strip_prefix('-') {
            return name == "sed"
                && !long.is_empty()
                && "in-place".starts_with(long.split('=').next().unwrap_or_default());
        }
        // The options before `i` in a cluster take no value.
        let before = cluster.split('i').next().unwrap_or_default();
        cluster.contains('i') && !before.contains(['e', 'E', 'f', 'M', 'I'])
            || (name == "sed" && cluster.starts_with("Ei"))
    };
    let edits = rest.iter().any(|word| is_in_place(&word.text()));
    let effect = if edits { Effect::Write } else { Effect::Read };
    let has_script = found.value(&["e", "f", "expression", "file"]).is_some()
        || (name == "perl"
            && rest.iter().any(|word| word.text().starts_with('-') && word.text().contains('e')));
    let operands: Vec<Word> = found.operands.iter().filter(|word| !word.text().is_empty()).cloned().collect();
    // Without an option the first operand is the script; perl's script follows `-e` and is an operand here.
    let skipped = if name == "perl" { 1 } else { usize::from(!has_script) };
    if name == "perl" && !(edits && has_script) {
        return;
    }
    recorder.all(effect, operands.get(skipped..).unwrap_or_default());
}

fn download(recorder: &mut Recorder, name: &str, found: &Arguments) {
    let urls = || found.operands.iter();
    if name == "curl" {
        for (option, value) in &found.values {
            let value_text = value.text();
            match option.as_str() {
                "o" | "output" | "D" | "dump-header" | "c" | "cookie-jar" | "trace" | "trace-ascii"
                | "stderr" | "etag-save" | "libcurl" => recorder.one(Effect::Write, value),
                "T" | "upload-file" | "K" | "config" => recorder.one(Effect::Read, value),
                "d" | "data" | "data-binary" | "json" if value_text.starts_with('@') => {
                    recorder.one(Effect::Read, &value.skip(1));
                }
                "F" | "form" | "data-urlencode" => {
                    if let Some(at) = value_text.chars().position(|c| c == '@') {
                        recorder.one(Effect::Read, &value.skip(at + 1));
                    }
                }
                _ => {}
            }
        }
        if found.has(&["O", "remote-name", "remote-name-all"]) {
            urls().for_each(|url| named_by_url(recorder, url));
        }
        return;
    }
    match found.value(&["O", "output-document"]) {
        Some(file) => recorder.one(Effect::Write, &file.clone()),
        None => urls().for_each(|url| named_by_url(recorder, url)),
    }
    recorder.value(Effect::Write, found, &["o", "output-file", "a", "append-output"]);
    recorder.value(Effect::Write, found, &["P", "directory-prefix"]);
    recorder.value(Effect::Read, found, &["post-file"]);
}

/// A download without a name is stored under the last part of its address.
fn named_by_url(recorder: &mut Recorder, url: &Word) {
    let text = url.text();
    let path = text.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    match path.rsplit_once('/') {
        Some((_, name)) if !name.is_empty() => recorder.one(Effect::Write, &Word::literal(name)),
        _ => {}
    }
}
