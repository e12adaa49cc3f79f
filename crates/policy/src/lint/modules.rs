//! Names of tools in Cedar and Rego modules, as far as their text shows them.

use std::sync::LazyLock;

use proctor_facts::tool::canonical_name;
use regex::Regex;

use super::Warning;
use crate::document::Position;

/// A comparison of the canonical tool with a text. Text that is built, or compared elsewhere, is not found.
static COMPARISON: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"\b(?:context|input)\.action\.tool\s*(?:==|!=)\s*"([^"\\]*)"|"([^"\\]*)"\s*(?:==|!=)\s*(?:context|input)\.action\.tool\b"#).ok()
});

/// Warns where a module compares the tool with a name that normalisation replaces.
pub(crate) fn lint_module(file: &str, text: &str, warnings: &mut Vec<Warning>) {
    let Some(comparison) = COMPARISON.as_ref() else { return };
    for (number, line) in text.lines().enumerate() {
        let code =
            line.find("//").or_else(|| line.find('#')).map_or(line, |end| line.get(..end).unwrap_or(line));
        for found in comparison.captures_iter(code) {
            let Some(name) = found.get(1).or_else(|| found.get(2)) else { continue };
            let canonical = canonical_name(name.as_str());
            if canonical != name.as_str() {
                let column = code.get(..name.start()).unwrap_or_default().chars().count() + 1;
                warnings.push(Warning {
                    file: file.to_owned(),
                    at: Position { line: number + 1, column },
                    message: format!(
                        "`action.tool` is never \"{}\": it is the canonical name; write \"{canonical}\", or compare `action.name`, the name as sent",
                        name.as_str()
                    ),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_modules_are_found_where_they_are_compared() {
        let text = "package x\n# input.action.tool == \"bash\"\ndeny if input.action.tool == \"bash\"\n\
                    forbid when { \"Read\" == context.action.tool }; // context.action.tool == \"sh\"\n\
                    allow if input.action.tool == \"shell\"\nallow if input.action.name == \"bash\"\n";
        let mut warnings = Vec::new();
        lint_module("m", text, &mut warnings);
        let places: Vec<(usize, usize)> =
            warnings.iter().map(|found| (found.at.line, found.at.column)).collect();
        assert_eq!(places, [(3, 31), (4, 16)]);
        assert!(
            warnings[0].message.contains(r#"write "shell""#)
                && warnings[1].message.contains(r#"write "file_read""#)
        );
    }
}
