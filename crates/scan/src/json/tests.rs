use proptest::prelude::*;

use super::*;

const TOKEN: &str = concat!("gh", "p_AbCdEf");

fn parse(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap()
}

fn cut(value: &Json) -> (Json, Vec<JsonFinding>) {
    Scanner::standard().redact_json(value, "$.args", &|_| false)
}

/// The cut value as text, and kind and path of every finding.
fn redact_text(text: &str) -> (String, Vec<(FindingKind, String)>) {
    let (value, findings) = cut(&parse(text));
    (value.to_string(), findings.into_iter().map(|finding| (finding.kind, finding.path)).collect())
}

fn at(kind: FindingKind, path: &str) -> (FindingKind, String) {
    (kind, path.to_owned())
}

#[test]
fn every_leaf_has_its_own_path() {
    let text = format!(
        r#"{{"api_key":"{TOKEN}","n":1,"deep":{{"odd name":["clean","x {TOKEN} y"]}},"ok":[true,null]}}"#
    );
    let (cut, found) = redact_text(&text);
    assert_eq!(
        cut,
        r#"{"api_key":"[REDACTED:GitHubPat]","n":1,"deep":{"odd name":["clean","x [REDACTED:GitHubPat] y"]},"ok":[true,null]}"#
    );
    assert_eq!(
        found,
        [
            at(FindingKind::GitHubPat, "$.args.api_key"),
            at(FindingKind::GitHubPat, "$.args.deep['odd name'][1]")
        ]
    );
}

#[test]
fn a_published_key_is_cut_under_its_own_label() {
    let key = concat!("sk-", "1234567890abcdefghij");
    let (cut, found) = redact_text(&format!(r#"{{"api_key":"{key}"}}"#));
    assert_eq!(cut, r#"{"api_key":"[REDACTED:OpenAiKey]"}"#);
    assert_eq!(leading_kind(found.iter().map(|(kind, _)| *kind)), Some(FindingKind::OpenAiKey));
    assert!(found.iter().all(|(_, path)| path == "$.args.api_key"));
}

#[test]
fn a_clean_value_is_unchanged() {
    let value = parse(r#"{"a":[1,2.5,"text",{"b":null}],"c":{},"d":[],"e":false}"#);
    assert_eq!(cut(&value), (value, Vec::new()));
}

#[test]
fn kept_kinds_are_reported_and_stay_visible() {
    let value = parse(&format!(r#"{{"to":"me@host.tld","token":"{TOKEN}","me@host.tld":1}}"#));
    let (cut, found) =
        Scanner::standard().redact_json(&value, "$", &|kind| kind == FindingKind::EmailAddress);
    assert_eq!(cut.to_string(), r#"{"to":"me@host.tld","token":"[REDACTED:GitHubPat]","me@host.tld":1}"#);
    let found: Vec<_> = found.iter().map(|f| (f.kind, f.path.as_str(), f.in_name)).collect();
    assert_eq!(
        found,
        [
            (FindingKind::EmailAddress, "$['me@host.tld']", true),
            (FindingKind::EmailAddress, "$.to", false),
            (FindingKind::GitHubPat, "$.token", false)
        ]
    );
    let (all_kept, found) = Scanner::standard().redact_json(&value, "$", &|_| true);
    assert_eq!(all_kept, value);
    assert_eq!(found.len(), 3);
}

#[test]
fn a_kept_finding_does_not_save_what_it_overlaps() {
    let text = format!("{TOKEN}@host.tld");
    let keep = |kind| kind == FindingKind::EmailAddress;
    let (cut, found) = Scanner::standard().redact_text(&format!("to {text}"), "$.result", &keep);
    assert_eq!(cut, "to [REDACTED:GitHubPat]");
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].path.as_str(), found[0].offset, found[0].end), ("$.result", 3, 3 + text.len()));
}

#[test]
fn a_secret_in_a_name_is_cut_and_not_repeated_in_any_path() {
    let (cut, found) = redact_text(&format!(r#"{{"{TOKEN}":{{"inner":"{TOKEN}"}}}}"#));
    assert_eq!(cut, r#"{"[REDACTED:GitHubPat]":{"inner":"[REDACTED:GitHubPat]"}}"#);
    assert_eq!(
        found,
        [
            at(FindingKind::GitHubPat, "$.args['[REDACTED:GitHubPat]']"),
            at(FindingKind::GitHubPat, "$.args['[REDACTED:GitHubPat]'].inner")
        ]
    );
}

#[test]
fn names_that_become_equal_are_told_apart() {
    let text = format!(
        r#"{{"{TOKEN}a":1,"[REDACTED:GitHubPat]~2":2,"{TOKEN}b":3,"{TOKEN}c":4,"[REDACTED:GitHubPat]":5}}"#
    );
    assert_eq!(
        redact_text(&text).0,
        r#"{"[REDACTED:GitHubPat]~3":1,"[REDACTED:GitHubPat]~2":2,"[REDACTED:GitHubPat]~4":3,"[REDACTED:GitHubPat]~5":4,"[REDACTED:GitHubPat]":5}"#
    );
}

#[test]
fn many_equal_names_do_not_cost_time_beyond_their_number() {
    let members = (0..50_000).map(|index| (format!("{TOKEN}{index}"), Json::Null)).collect();
    let (cut, found) = cut(&Json::Object(members));
    let Json::Object(cut) = cut else { panic!("no object") };
    assert_eq!(cut[49_999].0, "[REDACTED:GitHubPat]~50000");
    assert_eq!(found.len(), MAX_REPORTED_FINDINGS);
}

#[test]
fn a_service_account_is_found_by_its_type_and_its_key_cut_whole() {
    let key =
        concat!("-----BEGIN ", "PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG\\n-----END ", "PRIVATE KEY-----\\n");
    let text = format!(r#"{{"x":[{{"type":"service_account","project_id":"p","private_key":"{key}"}}]}}"#);
    let (cut, found) = redact_text(&text);
    assert_eq!(
        cut,
        r#"{"x":[{"type":"[REDACTED:GcpServiceAccount]","project_id":"p","private_key":"[REDACTED:PrivateKey]"}]}"#
    );
    assert_eq!(
        found,
        [
            at(FindingKind::GcpServiceAccount, "$.args.x[0].type"),
            at(FindingKind::PrivateKey, "$.args.x[0].private_key")
        ]
    );

    let (cut, _) = redact_text(r#"{"private_key":"anything at all","type":"service_account"}"#);
    assert_eq!(
        cut,
        r#"{"private_key":"[REDACTED:GcpServiceAccount]","type":"[REDACTED:GcpServiceAccount]"}"#
    );

    let other = r#"{"private_key":"anything at all","type":"other"}"#;
    assert_eq!(redact_text(other), (other.to_owned(), Vec::new()));
}

#[test]
fn a_card_sent_as_a_number_becomes_a_label() {
    for number in [
        "4532015112830366",
        "-4532015112830366",
        "4532015112830366.0",
        "4532015112830366.000",
        "4.532015112830366e15",
        "4.532015112830366E+15",
        "45320151128303660e-1",
        "0.4532015112830366e16",
    ] {
        let (cut, found) = redact_text(&format!("[{number}]"));
        assert_eq!(cut, r#"["[REDACTED:CreditCardLuhn]"]"#, "{number}");
        assert_eq!(found, [at(FindingKind::CreditCardLuhn, "$.args[0]")], "{number}");
    }
    for number in [
        "4532015112830367",
        "0.4532015112830366",
        "4532.015112830366",
        "4532015112830366e99999999999",
        "4532015112830366e2147483647",
        "4532015112830366e-2147483648",
        "0e9999",
        "123456789",
        "0.0000000000000",
    ] {
        assert_eq!(redact_text(&format!("[{number}]")), (format!("[{number}]"), Vec::new()), "{number}");
    }
    let long = "7".repeat(64);
    assert_eq!(redact_text(&format!("[{long}]")).0, r#"["[REDACTED:GenericHighEntropy]"]"#);
}

#[test]
fn patterns_of_the_operator_see_numbers_of_any_length() {
    let scanner = Scanner::new(&["^[0-9]{9}$".to_owned()]).unwrap();
    let (cut, found) = scanner.redact_json(&parse("[123456789,12]"), "$", &|_| false);
    assert_eq!(cut.to_string(), r#"["[REDACTED:Custom]",12]"#);
    assert_eq!((found[0].path.as_str(), found[0].offset, found[0].end), ("$[0]", 0, 9));
}

/// `depth` arrays around one text.
fn nested(depth: usize) -> Json {
    (0..depth).fold(Json::String("x".to_owned()), |inner, _| Json::Array(vec![inner]))
}

/// A deep value must not be dropped by recursion.
fn dismantle(value: Json) {
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        if let Json::Array(elements) = value {
            rest.extend(elements);
        }
    }
}

#[test]
fn what_is_nested_too_deep_is_cut_unseen() {
    let fits = nested(MAX_JSON_DEPTH);
    assert_eq!(cut(&fits), (fits, Vec::new()));

    for depth in [MAX_JSON_DEPTH + 1, 100_000] {
        let deep = nested(depth);
        let (cut, found) = Scanner::standard().redact_json(&deep, "$", &|_| true);
        dismantle(deep);
        let place = "[0]".repeat(MAX_JSON_DEPTH);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].kind, &found[0].path), (FindingKind::Custom, &format!("${place}")));
        assert_eq!(cut.to_string(), format!("{}\"[REDACTED]\"{}", "[".repeat(128), "]".repeat(128)));
    }
}

#[test]
fn reports_are_bounded_but_no_kind_is_missed_and_everything_is_cut() {
    let mut elements = vec![Json::String(TOKEN.to_owned()); 3000];
    elements.push(Json::String("me@host.tld".to_owned()));
    let (cut, found) = cut(&Json::Array(elements));
    assert_eq!(found.len(), MAX_REPORTED_FINDINGS + 1);
    assert_eq!(found[MAX_REPORTED_FINDINGS].kind, FindingKind::EmailAddress);
    assert_eq!(found[MAX_REPORTED_FINDINGS].path, "$.args[3000]");
    assert!(!cut.to_string().contains(TOKEN));
}

#[test]
fn paths_below_long_names_are_bounded() {
    let inner = Json::Object(vec![("token".to_owned(), Json::String(TOKEN.to_owned()))]);
    let path_below = |name: String| cut(&Json::Object(vec![(name, inner.clone())])).1[0].path.clone();
    assert_eq!(path_below("n ".repeat(600)), "$.args…");
    assert_eq!(path_below("n ".repeat(508)), format!("$.args['{}']…", "n ".repeat(508)));
    assert!(path_below("n ".repeat(500)).ends_with("'].token"));
}

fn any_json() -> impl Strategy<Value = Json> {
    let text = prop_oneof![
        "\\PC{0,12}",
        prop::sample::select(vec![TOKEN, "a@b.c", "type", "private_key", "service_account", "123-45-6789"])
            .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,3})?".prop_map(|number| Json::Number(number.into())),
        text.clone().prop_map(Json::String),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::Array),
            prop::collection::btree_map(text.clone(), inner, 0..5)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_cut_value_is_json_of_the_same_shape_and_holds_no_literal(value in any_json()) {
        let (cut_once, found) = cut(&value);
        let text = cut_once.to_string();
        prop_assert!(!text.contains(TOKEN));
        prop_assert_eq!(&Json::parse(text.as_bytes()).unwrap(), &cut_once);
        prop_assert_eq!(found.is_empty(), cut_once == value);
        prop_assert!(found.iter().all(|finding| finding.path.starts_with("$.args")));
        prop_assert!(found.iter().all(|finding| !finding.path.contains(TOKEN)));
        // What was cut once is clean.
        prop_assert_eq!(cut(&cut_once), (cut_once, Vec::new()));
    }

    #[test]
    fn keeping_everything_changes_nothing(value in any_json()) {
        let (kept, _) = Scanner::standard().redact_json(&value, "$", &|_| true);
        prop_assert_eq!(kept, value);
    }
}
