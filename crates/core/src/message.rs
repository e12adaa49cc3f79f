//! Parts of error messages.

/// Most characters of user input that [`quoted`] repeats.
const MAX_QUOTED: usize = 64;

/// The known name with the smallest edit distance to `word`, if it is small enough for a typing mistake.
///
/// ```
/// assert_eq!(proctor_core::nearest("allowlst", &["allowlist", "timezone"]), Some("allowlist"));
/// assert_eq!(proctor_core::nearest("zebra", &["allowlist", "timezone"]), None);
/// ```
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(64).collect();
    known
        .iter()
        .map(|name| (distance(&word, &name.chars().collect::<Vec<char>>()), *name))
        .filter(|(distance, name)| *distance <= (name.chars().count().max(word.len()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// User input in backticks, on one line, truncated after 64 characters.
///
/// ```
/// assert_eq!(proctor_core::quoted("a\nb"), "`a\\nb`");
/// ```
pub fn quoted(text: &str) -> String {
    let mut out = String::from("`");
    for (count, character) in text.chars().enumerate() {
        if count == MAX_QUOTED {
            out.push('…');
            break;
        }
        if character.is_control() { out.extend(character.escape_default()) } else { out.push(character) }
    }
    out.push('`');
    out
}

/// Edit distance in which swapping two neighbours counts once.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let mut previous_left = None;
    for (row, left_char) in left.iter().enumerate() {
        let mut current = Vec::with_capacity(last.len());
        current.push(row + 1);
        let mut previous_right = None;
        for (column, right_char) in right.iter().enumerate() {
            let cost = usize::from(!left_char.eq_ignore_ascii_case(right_char));
            let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX / 2);
            let mut best =
                (at(&last, column) + cost).min(at(&last, column + 1) + 1).min(at(&current, column) + 1);
            if column > 0 && previous_left == Some(right_char) && previous_right == Some(left_char) {
                best = best.min(at(&before, column - 1) + 1);
            }
            current.push(best);
            previous_right = Some(right_char);
        }
        before = std::mem::replace(&mut last, current);
        previous_left = Some(left_char);
    }
    last.last().copied().unwrap_or(left.len())
}
