//! Comma brace expansion: `{a,b}` becomes two words before the command runs.

use super::collect::Collector;
use super::word::{Kind, Word};

/// A word that would expand to more words than this is left as it is.
const MAX_RESULTS: usize = 64;

/// Characters that the expansion of one word may produce, on the way and in the end.
const MAX_CHARACTERS: usize = 256 * 1024;

type Marked = Vec<(char, Kind)>;

/// Expands comma braces. `None` means there are too many results, or too large ones. What a step produces is charged before it is made.
pub(super) fn expand(collector: &mut Collector, word: &Word) -> Option<Vec<Word>> {
    if !(word.plain_contains(&['{']) && word.plain_contains(&[','])) {
        return Some(vec![word.clone()]);
    }
    let mut characters = word.characters();
    collector.charge(characters);
    if characters > MAX_CHARACTERS {
        return None;
    }
    let mut done: Vec<Marked> = Vec::new();
    // Depth first with the leftmost alternative on top keeps the order that shells produce.
    let mut open: Vec<Marked> = vec![word.marked()];
    while let Some(current) = open.pop() {
        if let Some((start, end, commas)) = first_group(&current) {
            let alternatives_count = commas.len().saturating_add(1);
            if done.len().saturating_add(open.len()).saturating_add(alternatives_count) > MAX_RESULTS {
                return None;
            }
            // Each keeps what is around the group.
            let around = current.len().saturating_sub(end.saturating_sub(start));
            let produced = around.saturating_mul(alternatives_count).saturating_add(current.len());
            characters = characters.saturating_add(produced);
            collector.charge(produced);
            if characters > MAX_CHARACTERS || collector.is_stopped() {
                return None;
            }
            for alternative in alternatives(&current, start, end, &commas).into_iter().rev() {
                open.push(alternative);
            }
        } else {
            done.push(current);
        }
    }
    Some(done.iter().map(|marked| Word::from_marked(marked, false)).collect())
}

/// The first `{ … }` with a comma at its own level: its start, end and commas.
fn first_group(marked: &Marked) -> Option<(usize, usize, Vec<usize>)> {
    let mut stack: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut best: Option<(usize, usize, Vec<usize>)> = None;
    for (index, (character, kind)) in marked.iter().enumerate() {
        if *kind != Kind::Plain {
            continue;
        }
        match character {
            '{' => stack.push((index, Vec::new())),
            ',' => {
                if let Some((_, commas)) = stack.last_mut() {
                    commas.push(index);
                }
            }
            '}' => {
                if let Some((start, commas)) = stack.pop()
                    && !commas.is_empty()
                    && best.as_ref().is_none_or(|(best_start, ..)| start < *best_start)
                {
                    best = Some((start, index, commas));
                }
            }
            _ => {}
        }
    }
    best
}

fn alternatives(marked: &Marked, start: usize, end: usize, commas: &[usize]) -> Vec<Marked> {
    let prefix = marked.get(..start).unwrap_or_default();
    let suffix = marked.get(end + 1..).unwrap_or_default();
    let mut from = start + 1;
    let mut results = Vec::new();
    for stop in commas.iter().copied().chain([end]) {
        let middle = marked.get(from..stop).unwrap_or_default();
        results.push([prefix, middle, suffix].concat());
        from = stop + 1;
    }
    results
}

#[cfg(test)]
mod tests {
    use super::expand;
    use crate::shell::collect::Collector;
    use crate::shell::word::{Kind, Word};

    fn expanded(source: &str) -> Option<Vec<String>> {
        let mut word = Word::default();
        word.push_all(Kind::Plain, &source.chars().collect::<Vec<_>>());
        expand(&mut Collector::default(), &word).map(|words| words.iter().map(Word::text).collect())
    }

    #[test]
    fn expands_in_shell_order() {
        let cases: [(&str, &[&str]); 6] = [
            ("{a,b}", &["a", "b"]),
            ("x{a,b}y{c,d}", &["xayc", "xayd", "xbyc", "xbyd"]),
            ("{a,b{c,d}}", &["a", "bc", "bd"]),
            ("{a}", &["{a}"]),
            ("{,x}y", &["y", "xy"]),
            ("{a,b", &["{a,b"]),
        ];
        for (source, words) in cases {
            assert_eq!(expanded(source).unwrap(), words, "{source}");
        }
    }

    #[test]
    fn refuses_too_many_results() {
        assert!(expanded(&"{a,b}".repeat(7)).is_none());
        assert!(expanded(&format!("{{{}}}", "a,".repeat(5000))).is_none());
    }
}
