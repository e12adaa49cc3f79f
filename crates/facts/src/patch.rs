//! The files that a patch would change, without applying it.

/// The files of a patch, each once, in the order they appear.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchFiles {
    /// Files that would be written or created.
    pub writes: Vec<String>,
    /// Files that would be deleted or moved away.
    pub deletes: Vec<String>,
    /// Parts that could not be determined.
    pub unknown: Vec<String>,
}

/// Finds the files of a unified, context or git diff, or of a text in the `*** Begin Patch` format.
///
/// All formats may occur in one text, behind any other text: a tool may understand either, so all are read.
pub fn files(patch: &str) -> PatchFiles {
    let mut reader = Reader::default();
    let lines: Vec<&str> = lines(patch).collect();
    reader.lines(&lines);
    if reader.miscounted {
        // Counts that do not fit are ignored by some tools: then what they hid are headers.
        reader.trusts_counts = false;
        reader.hunk = (0, 0);
        reader.lines(&lines);
    }
    if reader.files.writes.is_empty() && reader.files.deletes.is_empty() {
        let reason = "the text is neither a unified diff nor a patch of `*** Begin Patch` form";
        reader.files.unknown.push(reason.to_owned());
    }
    reader.files
}

/// Whether a text has a line that only patches have.
pub fn looks_like(text: &str) -> bool {
    let mut after_old = false;
    lines(text).any(|line| {
        let line = unindented(line);
        let is_new = after_old && line.starts_with("+++ ");
        after_old = line.starts_with("--- ");
        is_new || line.starts_with("*** Begin Patch") || line.starts_with("diff --git ")
    })
}

/// The lines of a text, ended by any of the three line endings.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

/// A line without what mail and markdown put in front of it, byte order mark included.
fn unindented(line: &str) -> &str {
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '>'));
    // Mail programs quote a line that starts with a dash.
    line.strip_prefix("- ").filter(|rest| rest.starts_with("---")).unwrap_or(line)
}

struct Reader {
    files: PatchFiles,
    seen: std::collections::HashSet<(bool, String)>,
    /// Lines of the current hunk that are still to come: removed-or-kept, added-or-kept.
    hunk: (u64, u64),
    /// Whether a hunk is as long as its header says.
    trusts_counts: bool,
    /// A hunk had more or fewer lines than its header says.
    miscounted: bool,
    old: Option<String>,
    /// The name on a `*** ` line of a context diff.
    context: Option<String>,
    /// The two names of a `diff --git` line, used when no `---`/`+++` lines follow.
    git: Option<(String, String)>,
    deleted: bool,
    named: bool,
    updated: Option<String>,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            files: PatchFiles::default(),
            seen: std::collections::HashSet::new(),
            hunk: (0, 0),
            trusts_counts: true,
            miscounted: false,
            old: None,
            context: None,
            git: None,
            deleted: false,
            named: false,
            updated: None,
        }
    }
}

impl Reader {
    fn lines(&mut self, lines: &[&str]) {
        for (at, line) in lines.iter().enumerate() {
            let is_pair =
                self.hunk != (0, 0) && starts_section(line, lines.get(at + 1..).unwrap_or_default());
            if is_pair {
                self.hunk = (0, 0);
            }
            self.line(line);
        }
        self.miscounted |= self.hunk != (0, 0);
        self.end_of_file_section();
    }

    fn line(&mut self, line: &str) {
        if let Some(marker) = unindented(line).strip_prefix("***") {
            self.marker(marker);
            return;
        }
        if self.in_hunk(line) {
            return;
        }
        let line = unindented(line);
        let context = self.context.take();
        if let Some(names) = line.strip_prefix("diff --git ") {
            self.end_of_file_section();
            self.git = git_names(names);
            if self.git.is_none() {
                self.files.unknown.push(format!("file names of `{line}`"));
            }
        } else if let Some(name) = line.strip_prefix("--- ") {
            if self.named {
                self.end_of_file_section();
            }
            let name = name_of(name);
            if let Some(old) = context {
                // A context diff has its names on `***` and `---` lines.
                self.old = Some(old);
                self.pair(&name);
            }
            self.old = Some(name);
        } else if let Some(name) = line.strip_prefix("+++ ") {
            self.pair(&name_of(name));
        } else if let Some(name) =
            line.strip_prefix("rename from ").or_else(|| line.strip_prefix("rename old "))
        {
            self.named = true;
            self.delete(&unquote(name));
        } else if let Some(name) =
            ["rename to ", "rename new ", "copy to "].iter().find_map(|start| line.strip_prefix(start))
        {
            self.named = true;
            self.write(&unquote(name));
        } else if line.starts_with("deleted file mode ") {
            self.deleted = true;
        } else if let Some(header) = line.strip_prefix("@@ ") {
            self.hunk = if self.trusts_counts { hunk_size(header).unwrap_or_default() } else { (0, 0) };
        } else if let Some(name) = line.strip_prefix("Index: ") {
            self.git = Some((name.trim().to_owned(), name.trim().to_owned()));
        }
    }

    /// Whether the line is content of a hunk: content may look like a header.
    fn in_hunk(&mut self, line: &str) -> bool {
        let (old, new) = &mut self.hunk;
        if *old == 0 && *new == 0 {
            return false;
        }
        match line.chars().next() {
            Some('-') => *old = old.saturating_sub(1),
            Some('+') => *new = new.saturating_sub(1),
            Some(' ') | None => {
                *old = old.saturating_sub(1);
                *new = new.saturating_sub(1);
            }
            Some('\\') => {}
            Some(_) => {
                // The counts are wrong: read on as headers rather than miss one.
                self.miscounted = true;
                self.hunk = (0, 0);
                return false;
            }
        }
        // A tool may trust a header that a wrong count would hide, so a whole header inside of a hunk is read too.
        !line.starts_with("diff --git ")
    }

    /// A line that starts with three stars: a field of the `*** Begin Patch` format, or a name in a context diff.
    fn marker(&mut self, marker: &str) {
        self.context = None;
        let Some((field, name)) = marker.split_once(':').filter(|(field, _)| is_field(field)) else {
            let name = name_of(marker);
            let is_name = marker.starts_with(' ') && !name.is_empty() && !name.ends_with("****");
            let words = ["Begin Patch", "End Patch", "End of File"];
            self.context = (is_name && !words.contains(&name.as_str())).then_some(name);
            return;
        };
        let (field, name) = (field.trim().to_ascii_lowercase(), name.trim());
        if name.is_empty() {
            self.files.unknown.push(format!("`*** {field}:` without a file name"));
        } else if field.starts_with("delete") || field.starts_with("remove") {
            self.delete(name);
        } else if field.ends_with(" to") {
            if let Some(source) = self.updated.take() {
                self.delete(&source);
            }
            self.write(name);
        } else {
            self.updated = field.starts_with("update").then(|| name.to_owned());
            self.write(name);
        }
    }

    /// A `+++` line: with the `---` line before it, the names of a changed file.
    fn pair(&mut self, new: &str) {
        let Some(old) = self.old.take() else { return };
        self.named = true;
        match (old.as_str(), new) {
            ("/dev/null", "/dev/null") => {
                self.files.unknown.push("a change from nothing to nothing".to_owned());
            }
            ("/dev/null", new) => self.write_stripped(new),
            (old, "/dev/null") => self.delete_stripped(old),
            (old, new) => {
                let (old, new) = strip_pair(old, new);
                self.write(new);
                // Tools differ in which of two names they change.
                if old != new && !is_backup_of(old, new) {
                    self.write(old);
                }
            }
        }
    }

    /// The end of what belongs to one `diff --git` line.
    fn end_of_file_section(&mut self) {
        if let Some((old, new)) = self.git.take()
            && !self.named
        {
            if self.deleted {
                self.delete_stripped(&old);
            } else {
                self.write_stripped(&new);
            }
        }
        self.deleted = false;
        self.named = false;
        self.old = None;
    }

    fn write_stripped(&mut self, name: &str) {
        self.write(strip(name));
    }

    fn delete_stripped(&mut self, name: &str) {
        self.delete(strip(name));
    }

    fn write(&mut self, name: &str) {
        // Tools strip the first part of a name or not; with `..` in it, that leads to different folders.
        if let Some((_, stripped)) = name.split_once('/').filter(|(_, rest)| rest.contains("..")) {
            self.add_write(stripped);
        }
        self.add_write(name);
    }

    fn add_write(&mut self, name: &str) {
        if !name.is_empty() && self.seen.insert((true, name.to_owned())) {
            self.files.writes.push(name.to_owned());
        }
    }

    fn delete(&mut self, name: &str) {
        if !name.is_empty() && self.seen.insert((false, name.to_owned())) {
            self.files.deletes.push(name.to_owned());
        }
    }
}

/// Whether a text before a colon is a field that names a file, such as `Add File` or `Move to`.
fn is_field(text: &str) -> bool {
    let text = text.trim().to_ascii_lowercase();
    ["file", "to", "directory", "folder", "path"].iter().any(|last| text.split(' ').next_back() == Some(last))
        && text.len() <= 32
        && text.contains(' ')
}

/// Strips git's usual prefix.
fn strip(name: &str) -> &str {
    name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name)
}

/// Strips git's prefixes, which differ between the two sides; equal first parts are a directory.
fn strip_pair<'a>(old: &'a str, new: &'a str) -> (&'a str, &'a str) {
    const PREFIXES: [&str; 6] = ["a/", "b/", "i/", "w/", "c/", "o/"];
    let rest = |name: &'a str| PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    match (rest(old), rest(new)) {
        (Some(old_rest), Some(new_rest)) if old.get(..2) != new.get(..2) => (old_rest, new_rest),
        _ => (old, new),
    }
}

/// Whether the old name is the usual name of a saved copy, which no tool would write.
fn is_backup_of(old: &str, new: &str) -> bool {
    old.strip_prefix(new).is_some_and(|suffix| matches!(suffix, ".orig" | ".old" | "~" | ".bak"))
}

/// The name on a `---` or `+++` line: before a tab comes the name, after it a time.
fn name_of(field: &str) -> String {
    let field = field.trim_start_matches(' ');
    if field.starts_with('"') {
        return unquote(field);
    }
    field.split('\t').next().unwrap_or_default().trim_end().to_owned()
}

/// The two names of a `diff --git` line.
fn git_names(names: &str) -> Option<(String, String)> {
    if names.starts_with('"') {
        let (first, rest) = quoted(names)?;
        return Some((first, unquote(rest.trim_start())));
    }
    if let Some((first, second)) = names.split_once(" \"") {
        return Some((first.to_owned(), unquote(&format!("\"{second}"))));
    }
    // Names may hold spaces; without a rename both sides are the same name.
    let same = names.match_indices(' ').map(|(index, _)| names.split_at(index));
    let mut pairs = same.map(|(first, second)| (first, second.trim_start_matches(' ')));
    let equal = pairs.find(|(first, second)| strip(first) == strip(second));
    let pair = equal.or_else(|| {
        names.split_once(" b/").map(|(first, _)| (first, names.get(first.len() + 1..).unwrap_or_default()))
    });
    pair.or_else(|| names.split_once(' ')).map(|(first, second)| (first.to_owned(), second.to_owned()))
}

/// The text of a git name: as it is, or decoded if it is in quotes.
fn unquote(name: &str) -> String {
    let name = name.trim_end_matches('\r');
    if name.starts_with('"') {
        quoted(name).map_or_else(|| name.to_owned(), |(text, _)| text)
    } else {
        name.to_owned()
    }
}

/// Decodes a quoted name; returns it and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut rest = text.strip_prefix('"')?.as_bytes();
    loop {
        let (first, tail) = rest.split_first()?;
        rest = tail;
        match first {
            b'"' => {
                let after = text.get(text.len() - rest.len()..)?;
                return Some((String::from_utf8_lossy(&bytes).into_owned(), after));
            }
            b'\\' => {
                let (escape, tail) = rest.split_first()?;
                rest = tail;
                match escape {
                    b'a' => bytes.push(7),
                    b'b' => bytes.push(8),
                    b't' => bytes.push(9),
                    b'n' => bytes.push(10),
                    b'v' => bytes.push(11),
                    b'f' => bytes.push(12),
                    b'r' => bytes.push(13),
                    b'0'..=b'7' => {
                        let mut value = u32::from(escape - b'0');
                        for _ in 0..2 {
                            if let Some((digit @ b'0'..=b'7', tail)) = rest.split_first() {
                                value = value * 8 + u32::from(digit - b'0');
                                rest = tail;
                            }
                        }
                        bytes.push((value & 0xff) as u8);
                    }
                    other => bytes.push(*other),
                }
            }
            other => bytes.push(*other),
        }
    }
}

/// The line counts of `-1,2 +3,4 @@`.
fn hunk_size(header: &str) -> Option<(u64, u64)> {
    let mut fields = header.split(' ');
    let mut count = |sign: char| -> Option<u64> {
        let range = fields.next()?.strip_prefix(sign)?;
        range.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok())
    };
    Some((count('-')?, count('+')?))
}

/// Whether a line in a hunk starts the changes of another file all the same: the two names, and a hunk.
fn starts_section(line: &str, rest: &[&str]) -> bool {
    line.starts_with("--- ")
        && rest.first().is_some_and(|next| next.starts_with("+++ "))
        && rest.get(1).is_some_and(|next| next.starts_with("@@ "))
}

#[cfg(test)]
mod tests;
