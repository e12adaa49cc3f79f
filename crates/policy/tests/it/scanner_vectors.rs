//! The scanner against the published credential detection vectors.
use std::path::Path;

use proctor_core::json::Json;
use proctor_policy::scan::{FindingKind, Scanner, redact};

/// Vectors of an earlier algorithm, with what the current one gives: the findings and the redacted text.
type Changed = (&'static str, &'static [(FindingKind, usize)], &'static str);

const CHANGED: [Changed; 4] = [
    // The account key is a second finding.
    (
        "api_keys_azure",
        &[(FindingKind::AzureConnectionString, 11), (FindingKind::AzureConnectionString, 64)],
        "AZURE_CONN=[REDACTED:AzureConnectionString];AccountName=myaccount;[REDACTED:AzureConnectionString]",
    ),
    // The address and the random token start at the variable's name, and are cut together with the URL.
    (
        "db_urls_mongodb",
        &[
            (FindingKind::EmailAddress, 0),
            (FindingKind::GenericHighEntropy, 0),
            (FindingKind::MongodbUrl, 10),
        ],
        "[REDACTED:MongodbUrl]",
    ),
    ("db_urls_mysql", &[(FindingKind::EmailAddress, 0), (FindingKind::MysqlUrl, 3)], "[REDACTED:MysqlUrl]"),
    (
        "db_urls_postgres",
        &[
            (FindingKind::EmailAddress, 0),
            (FindingKind::GenericHighEntropy, 0),
            (FindingKind::PostgresUrl, 13),
        ],
        "[REDACTED:PostgresUrl]",
    ),
];

#[test]
fn published_vectors_give_the_findings_and_the_redacted_text_they_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/vectors")
        .join("assembly/credential_detection");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("not run: shared vectors are absent");
        return;
    };
    let (mut checked, mut changed) = (0, 0);
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let name = path.file_stem().expect("a file name").to_string_lossy().into_owned();
        let vector = Json::parse(&std::fs::read(&path).expect("a readable vector")).expect("a JSON vector");
        let text = string(&vector, "input_text");
        let found = Scanner::standard().scan(text);
        let redacted = redact(text, &found);
        let found: Vec<(FindingKind, usize)> =
            found.iter().map(|finding| (finding.kind, finding.offset)).collect();
        if let Some((_, findings, cut)) = CHANGED.iter().find(|(changed, _, _)| *changed == name) {
            assert_eq!(found, *findings, "{name}");
            assert_eq!(redacted, *cut, "{name}");
            changed += 1;
        } else {
            assert_eq!(found, expected_findings(&vector), "{name}");
            assert_eq!(redacted, string(&vector, "expected_redacted"), "{name}");
            checked += 1;
        }
    }
    assert!(checked >= 19 && changed == CHANGED.len(), "{checked} vectors checked, {changed} changed ones");
}

fn expected_findings(vector: &Json) -> Vec<(FindingKind, usize)> {
    let Some(Json::Array(findings)) = vector.get("expected_findings") else { panic!("no list of findings") };
    findings
        .iter()
        .map(|finding| {
            let Some(Json::Number(offset)) = finding.get("offset") else { panic!("no offset") };
            let kind = FindingKind::from_name(string(finding, "kind")).expect("a known kind");
            (kind, offset.parse().expect("an offset"))
        })
        .collect()
}

fn string<'v>(value: &'v Json, name: &str) -> &'v str {
    match value.get(name) {
        Some(Json::String(text)) => text,
        _ => panic!("no string `{name}`"),
    }
}
