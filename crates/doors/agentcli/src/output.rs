//! JSON as the program prints it: indented for people, or a line for each item.

use proctor_core::json::Json;

/// Form of what is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Indented by two spaces.
    #[default]
    Pretty,
    /// One line for each item of the result's list, or one line for the result.
    Lines,
}

/// Members that hold a result's list, in the order in which they are looked for.
const LISTS: &[&str] = &["items", "records", "actions", "entries", "providers", "methods", "targets"];

/// Text of a result, without a final newline.
pub fn text(value: &Json, format: Format) -> String {
    match format {
        Format::Pretty => pretty(value),
        Format::Lines => {
            let list = LISTS.iter().find_map(|name| value.get(name)?.as_array());
            let one = std::slice::from_ref(value);
            list.unwrap_or(one).iter().map(Json::to_string).collect::<Vec<_>>().join("\n")
        }
    }
}

/// JSON indented by two spaces.
pub fn pretty(value: &Json) -> String {
    let mut out = String::new();
    write(&mut out, value, 0);
    out
}

// The depth of a value is bounded by the parser.
fn write(out: &mut String, value: &Json, depth: usize) {
    match value {
        Json::Array(items) if !items.is_empty() => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                begin(out, position, depth + 1);
                write(out, item, depth + 1);
            }
            end(out, depth, ']');
        }
        Json::Object(members) if !members.is_empty() => {
            out.push('{');
            for (position, (name, member)) in members.iter().enumerate() {
                begin(out, position, depth + 1);
                out.push_str(&Json::from(name.as_str()).to_string());
                out.push_str(": ");
                write(out, member, depth + 1);
            }
            end(out, depth, '}');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn begin(out: &mut String, position: usize, depth: usize) {
    out.push_str(if position == 0 { "\n" } else { ",\n" });
    out.push_str(&"  ".repeat(depth));
}

fn end(out: &mut String, depth: usize, bracket: char) {
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
    out.push(bracket);
}

#[cfg(test)]
mod tests {
    use super::{Format, pretty, text};
    use proctor_core::json::Json;

    #[test]
    fn json_is_indented_and_reads_back_the_same() {
        let value = Json::parse(br#"{"ok":true,"a":[],"b":{},"items":[1,{"x":"\u0001"}]}"#).unwrap();
        let printed = pretty(&value);
        assert!(printed.starts_with("{\n  \"ok\": true,\n  \"a\": [],\n"), "{printed}");
        assert_eq!(Json::parse(printed.as_bytes()).unwrap(), value);
        assert_eq!(text(&value, Format::Lines), "1\n{\"x\":\"\\u0001\"}");
        assert_eq!(text(&Json::object().with("ok", true), Format::Lines), "{\"ok\":true}");
    }
}
