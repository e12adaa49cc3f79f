//! Filters of jq and yq: those that read files or variables besides their input are code.

use super::arguments;
use super::collect::Collector;
use super::opaque;
use super::program;
use super::word::Word;

/// Names in a filter that reach what is not its input.
const REACHING: &[&str] = &[
    "import",
    "include",
    "modulemeta",
    "env",
    "$ENV",
    "$__prog_args",
    "get_search_list",
    "strenv",
    "envsubst",
    "eval",
    "system",
];

/// Notes filters that reach more than their input.
pub(super) fn record(collector: &mut Collector, name: &str, rest: &[Word]) {
    let Some(entry) = program::find(name) else { return };
    let found = arguments::read(rest, entry, true);
    let mut texts: Vec<String> = found.values.iter().map(|given| given.value.text()).collect();
    if !found.unknown.is_empty() {
        // An unknown option may take what looks like the filter.
        texts.extend(found.operands.iter().map(Word::text));
    } else if !found.names(&["f", "from-file"]) {
        let first = found.operands.first().map(Word::text).unwrap_or_default();
        let has_verb = matches!(first.as_str(), "eval" | "e" | "eval-all" | "ea");
        let count = if name == "yq" && has_verb { 2 } else { 1 };
        let skipped = usize::from(count == 2);
        texts.extend(found.operands.iter().take(count).skip(skipped).map(Word::text));
    }
    for text in texts.iter().filter(|text| reaches(text)) {
        collector.note("code", name);
        opaque::scan_code(collector, text);
    }
}

/// Whether a filter names what is not its input. A field (`.env`), a key (`env:`) and a string (`"env"`) are none.
fn reaches(filter: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let mut rest = filter;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        if !is_name(first) {
            before = first;
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            continue;
        }
        let end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let is_text = before == '"' && after.starts_with('"');
        let is_known = REACHING.contains(&name) || name.starts_with("load");
        if is_known && before != '.' && !is_text && !after.starts_with(':') {
            return true;
        }
        before = name.chars().last().unwrap_or(' ');
        rest = after;
    }
    false
}
