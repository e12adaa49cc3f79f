//! Effects of a program's options and operands, by its entry in the table.

use std::collections::HashSet;

use super::AddressForm;
use super::arguments::{self, Arguments};
use super::collect::{Collector, Effect};
use super::copies;
use super::network;
use super::notes::{FROM_INPUT, looks_like_path};
use super::opaque;
use super::program::{Program, Value};
use super::scripts;
use super::unwrap::{Context, run_code};
use super::word::Word;

/// Records the effects of a program. `words` starts with its name, `rest` are the arguments that its entry describes. Returns
/// whether the program changes files.
pub(super) fn record(
    collector: &mut Collector,
    program: &Program,
    name: &str,
    words: &[Word],
    rest: &[Word],
    context: &Context,
) -> bool {
    let found = arguments::read(rest, program, !program.stops);
    note_expansions(collector, program, &found, rest, context);
    if program.opaque || (!found.unknown.is_empty() && !program.lenient) {
        opaque::record(collector, words);
    }
    let directories = collector.directories.clone();
    for given in found.values.iter().filter(|given| given.kind == Value::Directory) {
        let inside = collector.directories_after(&given.value);
        collector.add_directories(inside);
    }
    let mut recorder = Recorder { collector, name, words, context };
    for given in &found.values {
        recorder.value(given.kind, &given.value);
    }
    let copies = copies::record(&mut recorder, &found, rest);
    let changes = |kind: &Value| matches!(kind, Value::Write | Value::Delete | Value::RemoteTarget);
    let kinds = program.first.iter().chain([&program.rest]).chain(&program.last);
    let writes = copies.changes || kinds.into_iter().any(changes);
    if !copies.handled {
        let has_first = !found.names(program.unless);
        for (index, operand) in found.operands.iter().enumerate() {
            let kind = kind_of(program, found.operands.len(), has_first, index);
            recorder.value(kind, operand);
        }
    }
    network::record(&mut recorder, &found, rest);
    if is_recursive(name, &found) {
        for operand in &found.operands {
            let text = operand.text();
            if text.starts_with(['/', '~']) || text.split('/').any(|part| part == "..") {
                // What is below a directory elsewhere is not known.
                recorder.collector.unknown_word(&format!("{}/**", text.trim_end_matches('/')));
            }
        }
    }
    collector.directories = directories;
    writes || found.values.iter().any(|given| given.kind == Value::Write)
}

/// Whether the program reads everything below the directories that it is given.
fn is_recursive(name: &str, found: &Arguments) -> bool {
    let flags: &[&str] = match name {
        "rg" | "ag" | "ack" | "tar" | "bsdtar" => return true,
        "grep" | "egrep" | "fgrep" => &["r", "R", "recursive", "dereference-recursive"],
        "diff" | "zip" | "rsync" | "scp" => &["r", "a", "recursive", "archive", "recurse-paths"],
        "cp" => &["r", "R", "a", "recursive", "archive"],
        _ => return false,
    };
    found.has(flags)
}

fn kind_of(program: &Program, count: usize, has_first: bool, index: usize) -> Value {
    if let Some(last) = program.last
        && count >= 2
        && index + 1 == count
    {
        return last;
    }
    program.first.get(index).copied().filter(|_| has_first).unwrap_or(program.rest)
}

/// Records the words whose value is not known, unless they cannot matter to the program.
fn note_expansions(
    collector: &mut Collector,
    program: &Program,
    found: &Arguments,
    rest: &[Word],
    context: &Context,
) {
    if program.pure {
        return;
    }
    // The value of these is a number.
    let is_number = |text: &str| {
        let rest = ["$(nproc)", "$?", "$$", "$#", "$!"]
            .iter()
            .fold(text.to_owned(), |text, part| text.replace(part, ""));
        program.opaque && !rest.contains(['$', '`'])
    };
    // A quoted value of a message or pattern stays one word, whatever it is.
    let mut texts: HashSet<String> = HashSet::new();
    if rest.iter().any(Word::expands) {
        let has_first = !found.names(program.unless);
        let is_text = |kind: Value| matches!(kind, Value::Text | Value::Pattern);
        texts.extend(found.values.iter().filter(|given| is_text(given.kind)).map(|given| given.value.text()));
        let patterns =
            found.operands.iter().enumerate().filter(|(index, _)| {
                kind_of(program, found.operands.len(), has_first, *index) == Value::Pattern
            });
        texts.extend(patterns.map(|(_, operand)| operand.text()));
    }
    for word in rest {
        // What runs in `<(…)` is judged where it stands.
        if word.is_process() && !word.has_expansion() {
            continue;
        }
        if word.expands() || word.has_sequence() {
            let text = word.text();
            let harmless = !word.splits() && texts.contains(&text) || is_number(&text);
            if !harmless {
                collector.unknown_word(&text);
            }
        } else if word.has_glob() && !word.text().starts_with("--") {
            collector.unknown_word(&word.text());
        } else if !context.starts.is_empty() && word.text().contains(FROM_INPUT) {
            collector.unknown_word(FROM_INPUT);
        }
    }
    if context.from_input {
        collector.unknown_word(FROM_INPUT);
    }
}

/// Records values and operands of one program.
pub(super) struct Recorder<'a, 'b> {
    pub(super) collector: &'a mut Collector,
    /// Name of the program.
    pub(super) name: &'a str,
    /// The whole command.
    pub(super) words: &'a [Word],
    pub(super) context: &'a Context<'b>,
}

impl Recorder<'_, '_> {
    /// Records a file; inside of `find`, the placeholder stands for anything below the start paths.
    pub(super) fn file(&mut self, effect: Effect, word: &Word) {
        if !self.context.starts.is_empty() && word.text().contains(FROM_INPUT) {
            for start in &self.context.starts {
                self.collector.file(effect, start);
            }
            return;
        }
        if word.text() != "-" {
            self.collector.file(effect, word);
        }
    }

    /// Makes the command opaque, though its words are known.
    pub(super) fn opaque(&mut self) {
        self.collector.opaque(self.words);
        self.collector.writes_here();
    }

    pub(super) fn value(&mut self, kind: Value, word: &Word) {
        let text = word.text();
        match kind {
            Value::Flag | Value::Pattern | Value::NamedText | Value::NamedRead => {}
            Value::Text => {
                if looks_like_path(&text) {
                    self.collector.mention(&text);
                }
            }
            Value::Read | Value::Directory => self.file(Effect::Read, word),
            Value::Write => self.file(Effect::Write, word),
            Value::Delete => self.file(Effect::Delete, word),
            Value::Host => self.collector.address(AddressForm::Host, &text),
            Value::Url => network::url(self, word),
            Value::Remote | Value::RemoteTarget => {
                let effect = if kind == Value::Remote { Effect::Read } else { Effect::Write };
                if text.contains("://") {
                    network::helper(self, &text);
                } else if network::is_remote(&text) {
                    network::helper(self, &text);
                    self.collector.address(AddressForm::Remote, &text);
                } else if self.name == "git" && !looks_like_path(&text) {
                    // The name of a remote or a branch.
                } else {
                    self.file(effect, word);
                }
            }
            Value::Code => {
                // A helper gets data from the program: a shell among them would read code.
                let context = Context { piped: true, ..self.context.clone() };
                run_code(self.collector, self.name, std::slice::from_ref(word), &context);
            }
            Value::Foreign => scripts::record(self.collector, self.name, word, self.context),
            Value::List if super::interpreter::is_standard_input(&text) => {
                self.collector.unknown_word(&text);
                self.collector.takes_list();
            }
            Value::List => {
                self.file(Effect::Read, word);
                self.collector.unknown_word(&text);
            }
            Value::Config => {
                self.file(Effect::Read, word);
                self.opaque();
            }
            Value::Ssh => network::ssh_setting(self, &text),
            Value::Git => super::git::setting(self.collector, &text, self.context),
            Value::Assign => self.collector.assign(word),
            Value::Data => network::data(self, word),
            Value::Opaque => {
                self.opaque();
                opaque::scan_word(self.collector, word);
            }
        }
    }
}
