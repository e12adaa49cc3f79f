//! Input that a command line writes itself: `echo … | sh`, `echo … | xargs …`.
//!
//! Which command reads what is not followed. If some command takes code or words from its input, every printed text counts as
//! that: the larger reading.

use super::collect::Collector;
use super::notes::FROM_INPUT;
use super::opaque;
use super::unwrap::{Context, analyse, run_text};
use super::word::Word;

/// Entries of `unknown` that say that a command takes code from its input.
const TAKES_CODE: &[&str] = &["script from pipe", "code", "command from input"];

/// Judges printed texts as the input of commands that take code or words from it.
pub(super) fn feed(collector: &mut Collector) {
    let printed = std::mem::take(&mut collector.printed);
    let fed = std::mem::take(&mut collector.fed);
    if printed.is_empty() {
        return;
    }
    let context = Context::default();
    let takes_code = collector
        .facts
        .unknown
        .iter()
        .any(|entry| entry.split(':').next().is_some_and(|kind| TAKES_CODE.contains(&kind)));
    let directories = collector.directories.clone();
    for text in &printed {
        if takes_code {
            opaque::scan_code(collector, text);
            run_text(collector, "input", text, &context);
        }
        for command in &fed {
            let mut words: Vec<Word> = Vec::new();
            let mut replaced = false;
            for word in command {
                if word.text().contains(FROM_INPUT) {
                    replaced = true;
                    words.push(Word::literal(&word.text().replace(FROM_INPUT, text)));
                } else {
                    words.push(word.clone());
                }
            }
            if !replaced {
                words.extend(text.split_whitespace().map(Word::literal));
            }
            analyse(collector, &words, &context);
            collector.directory_change = None;
        }
    }
    // What is printed while the texts are judged was judged with them.
    collector.printed.clear();
    collector.fed.clear();
    collector.directories = directories;
}
