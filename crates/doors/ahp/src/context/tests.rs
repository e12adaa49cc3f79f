use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use proctor_clients::ahp::{ContextPerceptionDecision, InjectedContext, PerceptionIntent};
use proctor_core::json::Json;

use super::fixture::Fixture;
use proctor_workspace::{Folder, Limits, Question, View, search};

/// Reads are allowed, with exceptions of every kind.
const POLICY: &str = r#"
version: "1"
default: deny
rules:
  - id: reading-is-fine
    when: action.tool == "file_read" && action.operation == "read" && action.door == "ahp"
    then: allow
  - id: denied
    when: action.paths.exists(p, p.endsWith("/denied.rs"))
    then: deny
    reason: Not this one.
  - id: asked
    when: action.paths.exists(p, p.endsWith("/asked.rs"))
    then: ask
  - id: marked
    when: action.paths.exists(p, p.endsWith("/customers.rs"))
    then: allow
    taint: customer_data
advice:
  context: {never: [hidden], max_results: 10, max_bytes: 20000}
"#;

const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", "[package]\nname = \"loom\"\n"),
    ("README.md", "# Loom\nA weaver of threads.\n"),
    ("src/main.rs", "mod codec;\nfn main() {\n    codec::parse_frame(b\"x\");\n}\n"),
    (
        "src/codec.rs",
        "//! Frames.\n\n/// Reads one.\npub fn parse_frame(bytes: &[u8]) -> usize {\n    bytes.len()\n}\n",
    ),
    ("src/denied.rs", "fn parse_frame() {}\n"),
    ("src/asked.rs", "fn parse_frame() {}\n"),
    ("src/customers.rs", "fn parse_frame() {}\n"),
    ("hidden/never.rs", "fn parse_frame() {}\n"),
    ("node_modules/x.js", "parse_frame"),
];

const EVERYWHERE: &str = r#"{"workspace":""}"#;

fn fixture() -> Fixture {
    Fixture::new(POLICY, FILES)
}

fn allowed(decision: ContextPerceptionDecision) -> InjectedContext {
    match decision {
        ContextPerceptionDecision::Allow { injected_context, .. } => injected_context,
        other => panic!("{other:?}"),
    }
}

fn paths(context: &InjectedContext) -> Vec<&str> {
    context.file_contents.iter().flatten().map(|file| file.path.as_str()).collect()
}

fn entity(name: &str) -> String {
    format!(r#"{{"entity":{{"name":"{name}","entity_type":"function"}}}}"#)
}

fn location(path: &str) -> String {
    format!(r#"{{"location":{{"path":{},"location_type":"any"}}}}"#, Json::from(path))
}

#[test]
fn only_what_rules_and_advice_let_the_agent_see_is_shown() {
    let fixture = fixture();
    let context = allowed(fixture.perceive("locate", &entity("parse_frame"), EVERYWHERE, "{}"));
    assert_eq!(paths(&context), ["src/codec.rs", "src/main.rs"]);
    let said = Json::from_type(&context).unwrap().to_string();
    for hidden in ["denied", "asked", "customers", "never", "hidden", "node_modules"] {
        assert!(!said.contains(hidden), "{said}");
    }
    let facts: Vec<&str> = context.facts.iter().map(|fact| fact.content.as_str()).collect();
    assert_eq!(
        facts,
        [
            "2 files answer to `parse_frame`",
            "`parse_frame` is found in `src/codec.rs`, line 4",
            "`parse_frame` is found in `src/main.rs`, line 3",
        ]
    );
    assert_eq!(context.facts[1].source, "src/codec.rs:4");
    let summary = context.project_summary.unwrap();
    assert_eq!((summary.project_name.as_str(), summary.language, summary.key_files), ("work", None, None));
    assert_eq!(summary.structure_description, "folders src; files Cargo.toml, README.md");
}

#[test]
fn nothing_is_recorded_by_looking() {
    let fixture = fixture();
    let size = || fixture.door.engine().ledger().reader().size().unwrap();
    let before = size();
    fixture.perceive("locate", &entity("parse_frame"), EVERYWHERE, "{}");
    assert_eq!(size(), before);
}

#[test]
fn secrets_are_cut_and_cannot_be_asked_for() {
    let fixture = fixture();
    let secret = "sk-proj-Zq8vTn3Lw5Rk1Yp7Xc2Mb9Dh4Jf6Gs0AaEeUuIiOo";
    fixture.write("src/config.rs", &format!("// endpoint\nconst ENDPOINT: &str = \"{secret}\";\n"));
    let context = allowed(fixture.perceive("locate", &entity("endpoint"), EVERYWHERE, "{}"));
    assert_eq!(paths(&context), ["src/config.rs"]);
    let said = Json::from_type(&context).unwrap().to_string();
    assert!(!said.contains("Zq8vTn3"), "{said}");
    // A guess is answered like any other word that is nowhere.
    let guessed = fixture.perceive("locate", &entity("Zq8vTn3Lw5"), EVERYWHERE, "{}");
    assert!(matches!(guessed, ContextPerceptionDecision::Refine { .. }), "{guessed:?}");
}

#[test]
fn other_folders_are_no_workspace() {
    let fixture = fixture();
    std::fs::create_dir(fixture.folder.path().join("outside")).unwrap();
    std::fs::write(fixture.folder.path().join("outside/parse_frame.rs"), "fn parse_frame() {}").unwrap();
    symlink(fixture.folder.path().join("outside"), fixture.path("way_out")).unwrap();
    let mut reasons = Vec::new();
    for workspace in ["/", "..", "../outside", "way_out", "/nowhere/at/all", "../nowhere"] {
        match fixture.perceive(
            "locate",
            &entity("parse_frame"),
            &format!(r#"{{"workspace":"{workspace}"}}"#),
            "{}",
        ) {
            ContextPerceptionDecision::Block { reason, .. } => reasons.push(reason),
            other => panic!("{workspace}: {other:?}"),
        }
    }
    reasons.dedup();
    assert_eq!(reasons.len(), 1, "what is there is not told from what is not: {reasons:?}");
    assert!(!reasons[0].contains(fixture.folder.path().to_str().unwrap()), "{reasons:?}");
    let absolute = fixture.path("src").to_string_lossy().into_owned();
    for workspace in ["src", "./src", absolute.as_str()] {
        let asked = format!(r#"{{"workspace":"{workspace}"}}"#);
        let context = allowed(fixture.perceive("locate", &entity("parse_frame"), &asked, "{}"));
        assert_eq!(paths(&context), ["codec.rs", "main.rs"], "{workspace}");
    }
    let context = allowed(fixture.perceive("locate", &entity("parse_frame"), EVERYWHERE, "{}"));
    assert!(!paths(&context).iter().any(|path| path.contains("way_out")));
}

#[test]
fn a_place_narrows_the_search() {
    let fixture = fixture();
    fixture.write("docs/guide.md", "How parse_frame works.\n");
    let asked = r#"{"workspace":"","query":"parse_frame"}"#;
    let context = allowed(fixture.perceive("understand", &location("docs"), asked, "{}"));
    assert_eq!(paths(&context), ["docs/guide.md"]);
    let file = allowed(fixture.perceive("retrieve", &location("src/codec.rs"), EVERYWHERE, "{}"));
    assert_eq!(paths(&file), ["src/codec.rs"]);
    assert!(file.file_contents.unwrap()[0].snippet.starts_with("//! Frames."));
    let line = allowed(fixture.perceive("retrieve", &location("src/codec.rs:5"), EVERYWHERE, "{}"));
    assert!(line.file_contents.unwrap()[0].snippet.contains("bytes.len()"));
    let listed = allowed(fixture.perceive("explore", &location("src"), EVERYWHERE, "{}"));
    assert_eq!(listed.facts[0].content, "`src` has src/codec.rs, src/main.rs");
    let whole = allowed(fixture.perceive("locate", &location("."), EVERYWHERE, "{}"));
    assert_eq!(whole.project_summary.unwrap().project_name, "work");
}

#[test]
fn a_place_that_may_not_be_seen_is_like_none() {
    let fixture = fixture();
    std::fs::write(fixture.folder.path().join("beside.txt"), "x").unwrap();
    let answer = |path: &str| match fixture.perceive("retrieve", &location(path), EVERYWHERE, "{}") {
        ContextPerceptionDecision::Refine { reason, .. } => reason.unwrap().replace(path, "PLACE"),
        other => panic!("{path}: {other:?}"),
    };
    let none = answer("hidden/xyzzy.xx");
    for path in ["hidden/never.rs", "hidden", "../beside.txt", "/etc/hostname", "../nowhere.txt"] {
        assert_eq!(answer(path), none, "{path}");
    }
}

#[test]
fn patterns_find_files_and_words() {
    let fixture = fixture();
    let pattern = |pattern: &str, kind: &str| {
        format!(r#"{{"pattern":{{"pattern":"{pattern}","pattern_type":"{kind}"}}}}"#)
    };
    let globbed = allowed(fixture.perceive("retrieve", &pattern("src/**/*.rs", "glob"), EVERYWHERE, "{}"));
    assert_eq!(paths(&globbed), ["src/codec.rs", "src/main.rs"]);
    let worded = allowed(fixture.perceive("locate", &pattern("parse_*", "text"), EVERYWHERE, "{}"));
    assert_eq!(paths(&worded), ["src/codec.rs", "src/main.rs"]);
}

#[test]
fn a_place_is_only_named_as_surely_as_it_is_known() {
    let fixture = fixture();
    let asked = r#"{"workspace":"","query":"frame reader"}"#;
    let context = allowed(fixture.perceive("locate", &entity(""), asked, "{}"));
    let facts: Vec<&str> = context.facts.iter().map(|fact| fact.content.as_str()).collect();
    assert!(facts.contains(&"`src/codec.rs`, line 4, may answer to `frame reader`"), "{facts:?}");
}

#[test]
fn answers_keep_to_the_smaller_limit() {
    let fixture = fixture();
    for number in 0..30 {
        fixture.write(&format!("many/{number:02}.txt"), &"needle and more of it\n".repeat(200));
    }
    let ask =
        |constraints: &str| allowed(fixture.perceive("locate", &entity("needle"), EVERYWHERE, constraints));
    let bytes = |context: &InjectedContext| -> usize {
        context.file_contents.iter().flatten().map(|file| file.snippet.len() + file.path.len()).sum()
    };
    let free = ask("{}");
    assert_eq!(paths(&free).len(), 10);
    assert_eq!(free.facts[0].content, "30 files answer to `needle`");
    assert_eq!(paths(&ask(r#"{"max_results":3}"#)).len(), 3);
    assert_eq!(paths(&ask(r#"{"max_results":0}"#)).len(), 0);
    let short = ask(r#"{"max_context_length":300}"#);
    assert!(bytes(&short) <= 300 && bytes(&short) > 0, "{}", bytes(&short));
    assert!(bytes(&ask(r#"{"max_context_length":99999999}"#)) <= 20_000);
    let unsourced = ask(r#"{"include_sources":false}"#);
    assert_eq!(unsourced.facts.len(), 1);
    for file in free.file_contents.iter().flatten() {
        assert!((0.0..=1.0).contains(&file.relevance_score));
    }
}

#[test]
fn who_finds_nothing_is_told_how_to_ask() {
    let fixture = fixture();
    match fixture.perceive("locate", &entity("codek"), EVERYWHERE, "{}") {
        ContextPerceptionDecision::Refine { refined_intent, scope_hints, reason, .. } => {
            assert_eq!(refined_intent, Some(PerceptionIntent::Explore));
            assert_eq!(reason.as_deref(), Some("nothing that may be seen answers to `codek`"));
            assert!(scope_hints.iter().any(|hint| hint == "folders: src"), "{scope_hints:?}");
        }
        other => panic!("{other:?}"),
    }
    let vague = fixture.perceive("retrieve", &entity(""), EVERYWHERE, "{}");
    assert!(matches!(vague, ContextPerceptionDecision::Refine { .. }), "{vague:?}");
    let around = allowed(fixture.perceive("explore", &entity(""), EVERYWHERE, "{}"));
    assert!(around.facts.is_empty() && around.project_summary.is_some());
    let nothing = allowed(fixture.perceive("understand", &entity("zebra"), EVERYWHERE, "{}"));
    assert_eq!(nothing.facts[0].content, "no file that may be seen answers to `zebra`");
}

#[test]
fn advice_can_refuse_all_context() {
    let policy = "version: \"1\"\ndefault: allow\nadvice: {context: {allow: false, reason: not here}}\n";
    let fixture = Fixture::new(policy, FILES);
    match fixture.perceive("explore", &location("."), EVERYWHERE, "{}") {
        ContextPerceptionDecision::Block { reason, .. } => assert_eq!(reason, "not here"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_permission_to_read_there_is_nothing_to_see() {
    let fixture = Fixture::new("version: \"1\"\ndefault: deny\n", FILES);
    let context = allowed(fixture.perceive("explore", &location("."), EVERYWHERE, "{}"));
    let summary = context.project_summary.unwrap();
    assert_eq!(summary.structure_description, "no files that may be seen");
    assert_eq!((summary.project_name.as_str(), summary.language, summary.key_files), ("work", None, None));
}

#[test]
fn a_file_is_found_among_many() {
    let fixture = fixture();
    for number in 0..500 {
        fixture.write(&format!("big/{}/{number}.txt", number % 50), "some words and no others\n");
    }
    fixture.write("big/zz/last.txt", "parse_frame is used here too\n");
    let context = allowed(fixture.perceive("locate", &entity("parse_frame"), EVERYWHERE, "{}"));
    assert_eq!(paths(&context), ["big/zz/last.txt", "src/codec.rs", "src/main.rs"]);
}

#[test]
fn looking_ends_when_its_time_is_up() {
    let fixture = fixture();
    let folder = Folder::open(&fixture.path(""), "").unwrap();
    let question = Question::read(
        &Json::parse(
            br#"{"session_id":"s","intent":"locate","target":{"entity":{"name":"parse_frame","entity_type":""}},"context":{"workspace":""}}"#,
        )
        .unwrap()
        .read()
        .unwrap(),
    );
    let limits = Limits { results: 10, bytes: 10_000 };
    let (now, later) = (Instant::now(), Instant::now() + Duration::from_secs(600));
    for (search_until, until, matched, hits) in [(now, now, 0, 0), (later, now, 1, 0), (later, later, 1, 1)] {
        let view = View { in_scope: &|_| true, sees: &|_| true, cut: &str::to_owned, search_until, until };
        let found = search(&folder, &["src/codec.rs"], &question, limits, &view);
        assert_eq!((found.matched, found.hits.len(), found.cut_short), (matched, hits, hits == 0));
    }
}
