//! The shared manifests, with their expected results.

use std::path::PathBuf;

use super::*;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/agentcli")
}

#[test]
fn shared_manifests_have_the_expected_findings() {
    let Ok(entries) = std::fs::read_dir(folder().join("manifests")) else {
        println!("not run: the shared vectors are not there");
        return;
    };
    let mut count = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let manifest = Json::parse(&std::fs::read(&path).unwrap()).unwrap();
        let expected = folder().join("expected").join(format!("{name}.validate.json"));
        let expected = Json::parse(&std::fs::read(expected).unwrap()).unwrap();
        let validation = validate(&manifest);
        for (list, findings) in [("errors", &validation.errors), ("warnings", &validation.warnings)] {
            let expected: Vec<_> = expected["result"][list]
                .as_array()
                .unwrap()
                .iter()
                .map(|finding| finding["path"].as_str().unwrap())
                .collect();
            let found: Vec<_> = findings.iter().map(|finding| finding.path.as_str()).collect();
            assert_eq!(found, expected, "{name} {list}");
        }
        assert_eq!(expected["result"]["ok"].as_bool(), Some(validation.is_ok()), "{name}");
        count += 1;
    }
    assert!(count >= 10);
    let worked = Json::parse(&std::fs::read(folder().join("worked.json")).unwrap()).unwrap();
    assert_eq!(validate(&worked), Validation::default());
}
