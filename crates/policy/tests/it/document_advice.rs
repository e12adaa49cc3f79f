//! The section `advice`: every key, every mistake.

use proctor_core::json::Json;
use proctor_policy::advice::{
    AdviceSection, ContextSection, IdleSection, IntentMatch, IntentSection, MemorySection, MemorySessions,
    PlanningSection, RateLimitSection, ReasoningSection, TextSection,
};
use proctor_policy::document::{ActiveHours, Position, read_document};
use proptest::prelude::*;
use rust_decimal::Decimal;

use crate::any_input;

const FULL: &str = r#"
advice:
  idle:
    allow: false
    hours: {start: "22:00", end: 06:00, timezone: UTC}
    reason: Backups run now.
    retry_after: 5m
  intents:
    - {intent: locate, any: [where is, find the], confidence: 0.75, target_type: function, domain: coding}
    - intent: track
      regex: 'status of (?<target>\w+)'
  planning:
    allow: true
    reason: Ask a person.
    strategies: [step_by_step, "custom:mine"]
    deny: [production]
    max_chars: 4000
    hints: [keep the public API]
    template: {steps: [1, {a: null}]}
  reasoning:
    types: [chain_of_thought, "other:x y"]
    hints: [be brief]
    max_chars: 1000000
  context:
    allow: true
    files: ["src/**", "*.md"]
    never: ["**/secrets/**"]
    max_results: 1000
    max_bytes: 1048576
  memory: {allow: false, reason: Forget., sessions: principal, max_results: 5}
  rate_limit: {max_wait: 60s, skip_when_spent: false}
"#;

fn read(source: &str) -> AdviceSection {
    let document =
        read_document("p.yaml", source.as_bytes()).unwrap_or_else(|problems| panic!("{problems:#?}"));
    document.advice.expect("advice")
}

fn problems(source: &str) -> Vec<String> {
    let problems = read_document("p.yaml", source.as_bytes()).expect_err("must be refused");
    problems
        .iter()
        .map(|problem| format!("{}:{} {}", problem.at.line, problem.at.column, problem.message))
        .collect()
}

fn strings(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

#[test]
fn every_key_is_read() {
    let text = |reason: Option<&str>, deny: &[&str], max_chars, hints: &[&str]| TextSection {
        allow: true,
        reason: reason.map(str::to_owned),
        deny: strings(deny),
        max_chars: Some(max_chars),
        hints: strings(hints),
    };
    let expected = AdviceSection {
        idle: Some(IdleSection {
            allow: false,
            hours: Some(ActiveHours { start: 1320, end: 360, timezone: "UTC".to_owned() }),
            reason: Some("Backups run now.".to_owned()),
            retry_after_ms: Some(300_000),
        }),
        intents: vec![
            IntentSection {
                intent: "locate".to_owned(),
                when: IntentMatch::Any(strings(&["where is", "find the"])),
                confidence: Some(Decimal::new(75, 2)),
                target_type: Some("function".to_owned()),
                domain: Some("coding".to_owned()),
                at: Position { line: 9, column: 7 },
            },
            IntentSection {
                intent: "track".to_owned(),
                when: IntentMatch::Regex(r"status of (?<target>\w+)".to_owned()),
                confidence: None,
                target_type: None,
                domain: None,
                at: Position { line: 10, column: 7 },
            },
        ],
        planning: Some(PlanningSection {
            text: text(Some("Ask a person."), &["production"], 4000, &["keep the public API"]),
            strategies: Some(strings(&["step_by_step", "custom:mine"])),
            template: Some(Json::parse(br#"{"steps":[1,{"a":null}]}"#).expect("JSON")),
        }),
        reasoning: Some(ReasoningSection {
            text: text(None, &[], 1_000_000, &["be brief"]),
            types: Some(strings(&["chain_of_thought", "other:x y"])),
        }),
        context: Some(ContextSection {
            allow: true,
            reason: None,
            files: Some(strings(&["src/**", "*.md"])),
            never: strings(&["**/secrets/**"]),
            max_results: Some(1000),
            max_bytes: Some(1 << 20),
        }),
        memory: Some(MemorySection {
            allow: false,
            reason: Some("Forget.".to_owned()),
            sessions: Some(MemorySessions::Principal),
            max_results: Some(5),
        }),
        rate_limit: Some(RateLimitSection { max_wait_ms: Some(60_000), skip_when_spent: Some(false) }),
        at: Position { line: 3, column: 3 },
    };
    assert_eq!(read(FULL), expected);
    let envelope = FULL.replace('\n', "\n  ").replacen("\n  advice", "spec:\n  advice", 1);
    assert_eq!(read(&envelope).planning, expected.planning);
}

#[test]
fn absent_is_not_empty() {
    assert_eq!(
        read("advice: {}\n"),
        AdviceSection { at: Position { line: 1, column: 9 }, ..AdviceSection::default() }
    );
    let section = read("advice: {idle: {}, planning: {}, context: {}, memory: {}, rate_limit: {}}\n");
    assert!(section.idle.is_some_and(|idle| idle.allow));
    let planning = section.planning.expect("planning");
    assert!(planning.text.allow && planning.strategies.is_none() && planning.template.is_none());
    assert_eq!(section.context.expect("context").files, None);
    assert_eq!(section.memory.expect("memory").sessions, None);
}

#[test]
fn one_section_with_many_mistakes_reports_all_of_them() {
    let source = r#"advice:
  idel: {}
  idle:
    alow: true
    reason: never told
    retry_after: soon
    hours: {start: 9:00, end: 09:00}
  intents:
    - {any: [a]}
    - {intent: " ", any: []}
    - {intent: both, any: [a], regex: b}
    - {intent: neither}
    - {intent: broken, regex: "(a", confidence: 1.5}
    - {intent: unsure, any: ["", 5], confidence: 0}
    - text
  planning:
    reason: never told
    template:
  reasoning:
    allow: "no"
    types: [react, chain, "other: "]
    max_chars: 1000001
    deny: production
    hints: [""]
  context:
    files: []
    never: [/etc/**, "!x", "a[b]", ../x, "src/**.rs", "{a,b}"]
    reason: never told
    max_results: 1001
    max_bytes: 0
  memory: {sessions: all, max_results: 1.5}
  rate_limit: {max_wait: 60, skip_when_spend: true}
"#;
    let expected = r"
2:3 unknown key `idel` in `advice`; did you mean `idle`?
4:5 unknown key `alow` in `advice.idle`; did you mean `allow`?
6:18 `advice.idle.retry_after`: a duration is a number and a unit, such as `24h`, `90m` or `1h30m`, found `soon`
7:12 `advice.idle.hours` needs `timezone`
7:20 `advice.idle.hours.start` must be a time from 00:00 to 23:59, found `9:00`
9:7 `advice.intents[0]` needs `intent`
10:16 `advice.intents[1].intent` is blank; write something or remove it
10:26 `advice.intents[1].any` is empty, so that it would never be meant; write a phrase
11:7 `advice.intents[2]` must have one of `any` and `regex`, which say when it is meant
12:7 `advice.intents[3]` must have one of `any` and `regex`, which say when it is meant
13:31 `advice.intents[4].regex` is not a regular expression: unclosed group
13:49 `advice.intents[4].confidence` must be at most 1, found `1.5`
14:30 `advice.intents[5].any[0]` is blank; write something or remove it
14:34 `advice.intents[5].any[1]`: expected a string, found a number; put it in quotes
14:50 `advice.intents[5].confidence` must be a number above 0, found `0`
15:7 `advice.intents[6]`: expected a mapping, found a string
17:5 `advice.planning.reason` is never told, because nothing is refused; it needs `allow: false`, `strategies`, `deny` or `max_chars`
18:13 `advice.planning.template`: expected a value, found nothing
20:12 `advice.reasoning.allow`: expected `true` or `false`, found a string
21:13 unknown type of reasoning `react`; did you mean `re_act`?
21:20 unknown type of reasoning `chain`; valid are `chain_of_thought`, `tree_of_thoughts`, `re_act`, `reflexion`, `other:NAME`
21:27 unknown type of reasoning `other: `; valid are `chain_of_thought`, `tree_of_thoughts`, `re_act`, `reflexion`, `other:NAME`
22:16 `advice.reasoning.max_chars` must be at most 1000000, found `1000001`
23:11 `advice.reasoning.deny`: expected a list, found a string
24:13 `advice.reasoning.hints[0]` is blank; write something or remove it
26:12 `advice.context.files` is empty, so that no file would be shown; write `allow: false` or a pattern
27:13 `advice.context.never[0]`: `/etc/**` is not a pattern: it begins at the workspace; take off the `/`, or write `./`
27:22 `advice.context.never[1]`: `!x` is not a pattern: `!` is not understood; `never` lists what is not shown
27:28 `advice.context.never[2]`: `a[b]` is not a pattern: the only wildcards are `*`, `**` and `?`; write `?` for any other sign, and one entry for each choice
27:36 `advice.context.never[3]`: `../x` is not a pattern: `..` leaves the workspace
27:42 `advice.context.never[4]`: `src/**.rs` is not a pattern: `**` stands alone between slashes, as in `src/**/*.rs`
27:55 `advice.context.never[5]`: `{a,b}` is not a pattern: the only wildcards are `*`, `**` and `?`; write `?` for any other sign, and one entry for each choice
28:5 `advice.context.reason` is never told, because nothing is refused; it needs `allow: false`
29:18 `advice.context.max_results` must be at most 1000, found `1001`
30:16 `advice.context.max_bytes` must be a whole number from 1 to 4294967295, found `0`
31:22 unknown value `all` for `advice.memory.sessions`; valid are `own`, `principal`
31:40 `advice.memory.max_results` must be a whole number from 1 to 4294967295, found `1.5`
32:26 `advice.rate_limit.max_wait`: expected a duration such as `30s` or `1h30m`, found a number
32:30 unknown key `skip_when_spend` in `advice.rate_limit`; did you mean `skip_when_spent`?
";
    assert_eq!(problems(source).join("\n"), expected.trim());
}

#[test]
fn hours_are_named_where_they_stand() {
    assert_eq!(
        problems("advice: {idle: {hours: {start: 09:00, end: 09:00, timezone: UTC}}}\n"),
        ["1:44 `advice.idle.hours` begins and ends at the same minute, so that nothing would ever run"]
    );
}

#[test]
fn strategies_are_not_guessed() {
    assert_eq!(
        problems("advice: {planning: {strategies: [stepbystep, other:x, 'custom:'], max_chars: 1}}\n"),
        [
            "1:34 unknown strategy `stepbystep`; did you mean `step_by_step`?",
            "1:46 unknown strategy `other:x`; valid are `none`, `step_by_step`, `tree_of_thoughts`, `graph_planning`, `custom:NAME`",
            "1:55 unknown strategy `custom:`; valid are `none`, `step_by_step`, `tree_of_thoughts`, `graph_planning`, `custom:NAME`",
        ]
    );
    assert_eq!(
        problems("advice: {planning: {strategies: []}}\n"),
        [
            "1:33 `advice.planning.strategies` is empty, so that nothing would be left; write `allow: false` or a name"
        ]
    );
}

#[test]
fn everything_is_bounded() {
    for (form, most) in [
        ("advice: {intents: [@]}", 256),
        ("advice: {intents: [{intent: a, any: [#]}]}", 64),
        ("advice: {planning: {deny: [#]}}", 64),
        ("advice: {planning: {hints: [#]}}", 64),
        ("advice: {reasoning: {types: [%]}}", 64),
        ("advice: {context: {never: [#]}}", 256),
    ] {
        let source = |count: usize| {
            form.replace('@', &"{intent: a, any: [x]}, ".repeat(count))
                .replace('#', &"x, ".repeat(count))
                .replace('%', &"re_act, ".repeat(count))
        };
        read(&source(most));
        let found = problems(&source(most + 1));
        assert!(found.len() == 1 && found[0].contains(&format!("at most {most} are allowed")), "{found:?}");
    }
    for (form, most) in [
        ("advice: {intents: [{intent: @, any: [x]}]}", 128),
        ("advice: {intents: [{intent: a, any: [@]}]}", 256),
        ("advice: {intents: [{intent: a, regex: @}]}", 4096),
        ("advice: {planning: {hints: [@]}}", 1024),
        ("advice: {idle: {allow: false, reason: @}}", 1024),
        ("advice: {context: {files: [@]}}", 512),
    ] {
        read(&form.replace('@', &"x".repeat(most)));
        let found = problems(&form.replace('@', &"x".repeat(most + 1)));
        assert!(found.len() == 1 && found[0].contains(&most.to_string()), "{found:?}");
    }
    let huge = problems("advice: {intents: [{intent: a, regex: 'a{1000}{1000}'}]}");
    assert_eq!(
        huge,
        [
            "1:39 `advice.intents[0].regex` is not a regular expression: the pattern is too large when compiled"
        ]
    );
}

proptest! {
    #[test]
    fn no_broken_section_makes_the_reader_fail(cut in any::<prop::sample::Index>(), noise in "[-a: \n\\[\\]{},|>&*!?#'\"0]{0,4}") {
        let mut source = FULL.to_owned();
        source.insert_str(cut.index(FULL.len()), &noise);
        any_input::document(source.as_bytes()).unwrap();
    }
}
