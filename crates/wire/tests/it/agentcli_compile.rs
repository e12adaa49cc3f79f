//! Compilation and conversion of agentcli manifests against the shared vectors.

use std::path::{Path, PathBuf};

use proctor_core::json::Json;
use proctor_wire::agentcli::canonical;
use proctor_wire::agentcli::compile::{Target, compile};
use proctor_wire::agentcli::convert::convert;

/// Members whose text is ours; the vectors hide theirs.
const TEXTS: [&str; 2] = ["notes", "delivery_opt_out_reason"];

#[test]
fn shared_manifests_compile_to_the_expected_values() {
    let Some(folder) = vectors() else { return };
    let mut compared = 0;
    for file in std::fs::read_dir(folder.join("expected")).expect("the folder of expected answers") {
        let path = file.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let parts: Vec<&str> = name.trim_end_matches(".json").split('.').collect();
        let (manifest, expected) = match parts.as_slice() {
            [manifest, rest @ ..] if rest.first() != Some(&"validate") => {
                (read(&folder.join("manifests").join(format!("{manifest}.json"))), read(&path))
            }
            _ => continue,
        };
        let (actual, expected) = match &parts[1..] {
            ["convert"] => (convert(&manifest), expected.pointer("/result/manifest")),
            ["compile", target, rest @ ..] => {
                let target = Target::of_word(target).expect("a target");
                (compile(&manifest, target, *rest == ["explain"]), expected.pointer("/result/output"))
            }
            other => panic!("{name}: unknown kind {other:?}"),
        };
        let actual = actual.unwrap_or_else(|failure| panic!("{name}: {failure}"));
        // The expected files are sorted, so that only values can be compared here; the worked example has the order.
        assert_eq!(sorted(actual), sorted(expected.expect("a result").clone()), "{name}");
        compared += 1;
    }
    assert!(compared >= 33, "{compared} vectors");
}

#[test]
fn the_worked_example_has_the_expected_order_of_members() {
    let Some(folder) = vectors() else { return };
    let manifest = read(&folder.join("worked.json"));
    for target in Target::ALL {
        let expected = read(&folder.join(format!("worked.{}.json", target.word())));
        let actual = compile(&manifest, target, true).expect("compiles");
        assert_eq!(masked(actual).to_string(), masked(expected).to_string());
    }
}

fn sorted(value: Json) -> String {
    canonical::text(&masked(value)).expect("canonical text")
}

/// The value without the texts that are ours.
fn masked(value: Json) -> Json {
    match value {
        Json::Array(items) => Json::Array(items.into_iter().map(masked).collect()),
        Json::Object(members) => {
            let mask = |(name, value): (String, Json)| {
                let hidden = TEXTS.contains(&name.as_str()) && !value.is_null();
                (name, if hidden { "<text>".into() } else { masked(value) })
            };
            Json::Object(members.into_iter().map(mask).collect())
        }
        other => other,
    }
}

fn read(path: &Path) -> Json {
    let text = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Json::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn vectors() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/agentcli");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("not run: {} is absent", folder.display());
    None
}
