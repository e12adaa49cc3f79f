//! JSONPath to one value.

use std::fmt::Write as _;

/// The path of the member `name` of the object at `parent`: `parent.name`, or `parent['odd name']` when the
/// name is not a plain identifier.
pub fn json_path_child(parent: &str, name: &str) -> String {
    let mut path = parent.to_owned();
    push_name(&mut path, name);
    path
}

/// The path of the element `index` of the array at `parent`.
pub fn json_path_index(parent: &str, index: usize) -> String {
    format!("{parent}[{index}]")
}

/// The longest path below its prefix, in bytes. Names are the sender's: without a bound, many findings below
/// a long name would multiply it.
const MAX_RENDERED_BYTES: usize = 1024;

/// A path as it is walked, linked to its parents on the stack: it costs nothing until it is rendered.
pub(super) struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Step<'p>,
}

enum Step<'p> {
    Prefix(&'p str),
    Name(&'p str),
    Index(usize),
}

impl<'p> Path<'p> {
    pub(super) fn root(prefix: &'p str) -> Path<'p> {
        Path { parent: None, step: Step::Prefix(prefix) }
    }

    pub(super) fn name<'c>(&'c self, name: &'c str) -> Path<'c> {
        Path { parent: Some(self), step: Step::Name(name) }
    }

    pub(super) fn index(&self, index: usize) -> Path<'_> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    /// The path as text; one that is too long ends in `…` at the last step that fits.
    pub(super) fn render(&self) -> String {
        let mut steps = Vec::new();
        let mut current = Some(self);
        while let Some(path) = current {
            steps.push(&path.step);
            current = path.parent;
        }
        let mut rendered = String::new();
        let mut limit = MAX_RENDERED_BYTES;
        for step in steps.into_iter().rev() {
            let length_before = rendered.len();
            let mut fits = true;
            match step {
                Step::Prefix(prefix) => {
                    rendered.push_str(prefix);
                    limit += prefix.len();
                }
                // Not even written and taken back: the name may be as long as the whole value.
                Step::Name(name) if name.len() > MAX_RENDERED_BYTES => fits = false,
                Step::Name(name) => push_name(&mut rendered, name),
                Step::Index(index) => push_index(&mut rendered, *index),
            }
            if !fits || rendered.len() > limit {
                rendered.truncate(length_before);
                rendered.push('…');
                break;
            }
        }
        rendered
    }
}

fn push_name(path: &mut String, name: &str) {
    if is_identifier(name) {
        path.push('.');
        path.push_str(name);
        return;
    }
    path.push_str("['");
    for character in name.chars() {
        match character {
            '\'' => path.push_str("\\'"),
            '\\' => path.push_str("\\\\"),
            '\u{8}' => path.push_str("\\b"),
            '\t' => path.push_str("\\t"),
            '\n' => path.push_str("\\n"),
            '\u{c}' => path.push_str("\\f"),
            '\r' => path.push_str("\\r"),
            control if control < ' ' => {
                // Writing to a string cannot fail.
                let _ = write!(path, "\\u{:04x}", u32::from(control));
            }
            plain => path.push(plain),
        }
    }
    path.push_str("']");
}

fn push_index(path: &mut String, index: usize) {
    // Writing to a string cannot fail.
    let _ = write!(path, "[{index}]");
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
