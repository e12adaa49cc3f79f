//! Placeholders for text that differs between runs or machines.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

use regex::Regex;

/// Text that differs between runs or machines, and the placeholder that stands for it in a snapshot.
pub struct Varying {
    /// Name of the placeholder, and of the pattern's capturing group; `[name]` in a snapshot.
    pub name: &'static str,
    /// Pattern with one capturing group of that name, which is replaced.
    pub pattern: String,
    /// Whether each distinct text gets a number, `[name-1]`: then links between lines stay visible.
    pub is_numbered: bool,
    /// Cause of the difference.
    pub reason: &'static str,
}

/// The patterns, in order of precedence. `root` is the scratch folder of the transcript.
pub fn table(root: &Path) -> Vec<Varying> {
    let row = |name: &'static str, pattern: &str, is_numbered: bool, reason: &'static str| Varying {
        name,
        pattern: pattern.to_owned(),
        is_numbered,
        reason,
    };
    let root = regex::escape(root.to_str().unwrap());
    let version = regex::escape(env!("CARGO_PKG_VERSION"));
    let uid = rustix::process::getuid().as_raw();
    vec![
        row("folder", &format!("(?<folder>{root}/work)"), false, "the working directory is a temporary one"),
        row("root", &format!("(?<root>{root})"), false, "home, credentials and witness are beside it"),
        row("random", "proctor-demo-(?<random>[0-9a-f]{12})", false, "`demo` makes a folder of its own"),
        row(
            "state",
            "proctor/work-(?<state>[0-9a-f]{12})",
            false,
            "a state directory is named after its folder's path",
        ),
        row(
            "id",
            r"\b(?<id>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b",
            true,
            "ids of records, sessions and approvals hold time and random bits",
        ),
        row(
            "time",
            r"\b(?<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d{3,6}Z?)",
            false,
            "the clock of the machine; not numbered, because two records may share a millisecond",
        ),
        row("ms", r#""(?:started|ended)_at_ms":(?<ms>\d+)"#, false, "the clock of the machine, in traces"),
        row("micros", r#""(?:time|expires|now)":(?<micros>\d{16})\b"#, false, "the clock, in envelopes"),
        row("byte", r"byte (?<byte>\d+), frame", false, "the user's id has more or fewer digits"),
        // These begin with what may stand in front of base64, so that they are found before it.
        row(
            "digest",
            r"[\s\x22]?\b(?<digest>[0-9a-f]{64})\b",
            true,
            "digests of actions are keyed with a random key",
        ),
        row("ledger", r"[\s\x22]?\b(?<ledger>proctor-[0-9a-f]{12})\b", true, "a ledger's name is random"),
        row(
            "key",
            r"(?:[\s\x22][A-Za-z0-9._/-]*)?\+(?<key>[0-9a-f]{8}\+[A-Za-z0-9+/]{43,}=*)",
            true,
            "keys are random",
        ),
        row(
            "base64",
            r"(?:^|[\s\x22])(?<base64>[A-Za-z0-9+/]{43,}=*)",
            true,
            "hashes and signatures cover ids, times and keys",
        ),
        row("own", &format!(r"\buid:(?<own>{uid})\b"), false, "the user who runs the tests"),
        row("port", r"(?:asked |://)127\.0\.0\.1:(?<port>\d+)", false, "the system picks a free port"),
        row("version", &format!(r"\b(?<version>{version})\b"), false, "it changes with each release"),
        row("duration", r#"(?:duration|latency)_ms":(?<duration>[\d.]+)"#, false, "the speed of the machine"),
    ]
}

/// Replaces everything that the table lists. A placeholder in front of two or more spaces is padded to the width of the text that it
/// stands for, so that columns stay aligned.
pub fn replace(text: &str, table: &[Varying]) -> String {
    let patterns: Vec<String> = table.iter().map(|row| format!("(?:{})", row.pattern)).collect();
    let pattern = Regex::new(&format!("(?m){}", patterns.join("|"))).unwrap();
    let mut numbers: HashMap<(&str, &str), usize> = HashMap::new();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut replaced = String::new();
    let mut done = 0;
    for found in pattern.captures_iter(text) {
        let (row, part) = table.iter().find_map(|row| found.name(row.name).map(|part| (row, part))).unwrap();
        replaced.push_str(&text[done..part.start()]);
        done = part.end();
        let before = replaced.len();
        if row.is_numbered {
            let number = *numbers.entry((row.name, part.as_str())).or_insert_with(|| {
                let count = counts.entry(row.name).or_default();
                *count += 1;
                *count
            });
            write!(replaced, "[{}-{number}]", row.name).unwrap();
        } else {
            write!(replaced, "[{}]", row.name).unwrap();
        }
        let spaces = text[done..].len() - text[done..].trim_start_matches(' ').len();
        if spaces >= 2 {
            let width = part.as_str().chars().count() + spaces;
            let padded = width.saturating_sub(replaced.len() - before).max(2);
            replaced.push_str(&" ".repeat(padded));
            done += spaces;
        }
    }
    replaced.push_str(&text[done..]);
    replaced
}

#[test]
fn the_same_id_gets_the_same_number_and_columns_stay_aligned() {
    let (one, two) = ("01a1e3c7-2352-7669-b3c8-ce9e6edaccda", "01a1e3c7-2352-7669-b3c8-ce9e6edaccdb");
    let text = format!("{one}  first\n{two}  second\nasked by {one}: /scratch/work/policy.yaml\n");
    let expected = format!(
        "[id-1]{spaces}  first\n[id-2]{spaces}  second\nasked by [id-1]: [folder]/policy.yaml\n",
        spaces = " ".repeat(30)
    );
    assert_eq!(replace(&text, &table(Path::new("/scratch"))), expected);
}

#[test]
fn every_row_has_a_reason_and_its_own_group() {
    for row in table(Path::new("/scratch")) {
        assert!(!row.reason.is_empty(), "{}", row.name);
        let names: Vec<String> =
            Regex::new(&row.pattern).unwrap().capture_names().flatten().map(str::to_owned).collect();
        assert_eq!(names, [row.name]);
    }
}
