//! Multi-pattern search for words in a text.

use std::collections::HashMap;

use aho_corasick::AhoCorasick;

use super::Views;

/// The most words that one check may have.
pub(super) const MOST: usize = 10_000;

/// Number of words from which on all are searched in one pass.
const MANY: usize = 50;

/// Maximum of bytes of words that are searched in one pass: the automaton takes a multiple of this memory.
const LARGEST: usize = 1024 * 1024;

/// A word as it was written (for people) and as it is searched.
pub(super) struct Word {
    pub(super) written: String,
    pub(super) searched: String,
}

/// The words of one check.
pub(super) struct Words {
    list: Vec<Word>,
    together: Option<WordAutomaton>,
}

/// An automaton over the distinct words, with the positions of each in the list.
struct WordAutomaton {
    machine: AhoCorasick,
    places: Vec<Vec<usize>>,
}

impl Words {
    pub(super) fn new(list: Vec<Word>) -> Words {
        let bytes = list.iter().map(|word| word.searched.len()).fold(0, usize::saturating_add);
        let together = (list.len() > MANY && bytes <= LARGEST).then(|| WordAutomaton::new(&list)).flatten();
        Words { list, together }
    }

    pub(super) fn list(&self) -> &[Word] {
        &self.list
    }

    /// A word that is there, if any is.
    pub(super) fn present(&self, views: &Views<'_>) -> Option<&Word> {
        match &self.together {
            None => self.list.iter().find(|word| word.is_in(views)),
            Some(together) => {
                let found = views.anywhere().find_map(|text| together.machine.find(text))?;
                let place = together.places.get(found.pattern().as_usize())?.first()?;
                self.list.get(*place)
            }
        }
    }

    /// The words that are not there.
    pub(super) fn missing(&self, views: &Views<'_>) -> Vec<&Word> {
        let mut found = vec![false; self.list.len()];
        let complete = self.together.as_ref().is_some_and(|together| together.mark(views, &mut found));
        let missing = self.list.iter().zip(found).filter(|(_, found)| !found).map(|(word, _)| word);
        missing.filter(|word| complete || !word.is_in(views)).collect()
    }
}

impl WordAutomaton {
    fn new(list: &[Word]) -> Option<WordAutomaton> {
        let mut places: Vec<Vec<usize>> = Vec::new();
        let mut known: HashMap<&str, usize> = HashMap::new();
        let mut distinct: Vec<&str> = Vec::new();
        for (place, word) in list.iter().enumerate() {
            let number = *known.entry(word.searched.as_str()).or_insert_with(|| {
                distinct.push(&word.searched);
                places.push(Vec::new());
                distinct.len() - 1
            });
            if let Some(places) = places.get_mut(number) {
                places.push(place);
            }
        }
        AhoCorasick::new(distinct).ok().map(|machine| WordAutomaton { machine, places })
    }

    /// Marks the indices of the words that occur; false if the search was given up, because words that contain each other can occur far
    /// more often than the text is long.
    fn mark(&self, views: &Views<'_>, found: &mut [bool]) -> bool {
        const OFTEN: usize = 16;
        let mut left = found.len();
        for text in views.anywhere() {
            let mut patience = text.len().saturating_mul(OFTEN).saturating_add(found.len());
            for one in self.machine.find_overlapping_iter(text) {
                for place in self.places.get(one.pattern().as_usize()).into_iter().flatten() {
                    match found.get_mut(*place) {
                        Some(found) if !*found => *found = true,
                        // All places of a word are marked together.
                        _ => break,
                    }
                    left = left.saturating_sub(1);
                }
                patience = patience.saturating_sub(1);
                if left == 0 || patience == 0 {
                    return left == 0;
                }
            }
        }
        true
    }
}

impl Word {
    pub(super) fn is_in(&self, views: &Views<'_>) -> bool {
        views.anywhere().any(|text| text.contains(&self.searched))
    }
}
