use proctor_core::session::Caller;
use proctor_core::time::Timestamp;

use super::*;
use crate::policy::{Policy, Source};

mod laws;

fn policy(documents: &[&str]) -> Policy {
    let sources = documents
        .iter()
        .enumerate()
        .map(|(index, text)| {
            Source::document(&format!("p{index:03}.yaml"), &format!("default: deny\n{text}"))
        })
        .collect();
    Policy::compile(sources).unwrap()
}

fn advice(documents: &[&str]) -> Advice {
    policy(documents).advice(&Caller::default())
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn blocked(advice: PlanningAdvice<'_>) -> String {
    match advice {
        PlanningAdvice::Block { reason } => reason,
        PlanningAdvice::Use { strategy, .. } => panic!("{strategy}"),
    }
}

#[test]
fn without_advice_the_defaults_hold() {
    for advice in [Advice::default(), advice(&[""]), advice(&["advice: {}"])] {
        assert_eq!(advice.idle(at("2026-11-15T00:00:00Z")), IdleAdvice::Allow);
        assert_eq!(advice.intent("where is main"), None);
        let plan =
            |strategy: &'static str| PlanningAdvice::Use { strategy, hints: Vec::new(), template: None };
        assert_eq!(advice.planning("x", &["graph_planning", "none"]), plan("graph_planning"));
        assert_eq!(advice.planning("x", &[]), plan("none"));
        assert_eq!(advice.reasoning("other:anything", "x"), ReasoningAdvice::Allow { hints: Vec::new() });
        let ContextAdvice::Allow(context) = advice.context() else { panic!("refused") };
        assert_eq!((context.max_results, context.max_bytes), (20, 65_536));
        assert!(
            context.matches("any/file") && !context.matches("../outside") && !context.matches("/etc/passwd")
        );
        assert_eq!(advice.memory(), MemoryAdvice::Allow { sessions: MemorySessions::Own, max_results: 20 });
        assert_eq!(advice.rate_limit(60_000, false), RateLimitAdvice::Retry { after_ms: 60_000 });
        assert_eq!(advice.rate_limit(60_001, false), RateLimitAdvice::Queue);
        assert_eq!(advice.rate_limit(1, true), RateLimitAdvice::Skip { reason: "the budget is spent" });
        let edge = "é".repeat(100_000);
        assert!(matches!(advice.planning(&edge, &[]), PlanningAdvice::Use { .. }));
        let over = edge + "x";
        assert_eq!(blocked(advice.planning(&over, &[])), "the task has more than 100000 characters");
        assert_eq!(
            advice.reasoning("re_act", &over),
            ReasoningAdvice::Block { reason: "the problem has more than 100000 characters".to_owned() }
        );
    }
}

#[test]
fn a_document_advises_only_those_it_speaks_about() {
    let policy = policy(&[
        "scope: team:red\nadvice: {memory: {max_results: 1}}",
        "scope: org:acme\nadvice: {memory: {max_results: 2}}",
        "scope: agent:ann\nadvice: {memory: {max_results: 3}}",
        "scope: tool:shell\nadvice: {memory: {max_results: 4}}",
    ]);
    let most = |principal: &str, team: &str, org: &str| {
        let caller = Caller { principal: principal.to_owned(), team: team.to_owned(), org: org.to_owned() };
        match policy.advice(&caller).memory() {
            MemoryAdvice::Allow { max_results, .. } => max_results,
            MemoryAdvice::Block { .. } => 0,
        }
    };
    assert_eq!(most("bob", "", ""), 20);
    assert_eq!(most("ann", "", ""), 3);
    assert_eq!(most("ann", "", "acme"), 2);
    assert_eq!(most("ann", "red", "acme"), 1);
}

#[test]
fn idle_work_is_deferred() {
    let now = at("2026-11-15T12:00:00Z");
    let defer = |reason, retry_after_ms| IdleAdvice::Defer { reason, retry_after_ms };
    assert_eq!(advice(&["advice: {idle: {allow: true}}"]).idle(now), IdleAdvice::Allow);
    assert_eq!(
        advice(&["advice: {idle: {allow: false}}"]).idle(now),
        defer("idle work is not allowed", 30_000)
    );
    let night = "advice: {idle: {hours: {start: '22:00', end: 06:00, timezone: UTC}, reason: At night., retry_after: 1h}}";
    assert_eq!(advice(&[night]).idle(now), defer("At night.", 3_600_000));
    assert_eq!(advice(&[night]).idle(at("2026-11-15T23:00:00Z")), IdleAdvice::Allow);
    assert_eq!(
        advice(&[night, "advice: {idle: {allow: false}}"]).idle(at("2026-11-15T23:00:00Z")),
        defer("idle work is not allowed", 30_000)
    );
}

#[test]
fn the_first_intent_that_matches_wins() {
    let advice = advice(&[
        r"
advice:
  intents:
    - {intent: validate, any: [does it pass], confidence: 0.25}
    - {intent: locate, any: [where is, find the], target_type: function, domain: coding}
    - {intent: track, regex: 'status of (?P<target>[^?.]+)', confidence: 1}
",
        "advice: {intents: [{intent: other, regex: '(?i)WHERE'}]}",
    ]);
    let locate = advice.intent("Where  IS the parser? Find the tests.").unwrap();
    assert_eq!(
        (locate.name, locate.target_type, locate.domain),
        ("locate", Some("function"), Some("coding"))
    );
    assert!((locate.confidence - 0.8).abs() < f32::EPSILON && locate.target_name.is_none());
    let first = advice.intent("does it pass, and where is it").unwrap();
    assert!(first.name == "validate" && (first.confidence - 0.25).abs() < f32::EPSILON);
    let track = advice.intent("status of  the release ?").unwrap();
    assert!((track.confidence - 1.0).abs() < f32::EPSILON);
    assert_eq!((track.name, track.target_name.as_deref()), ("track", Some("the release")));
    assert_eq!(advice.intent("elsewhere").map(|intent| intent.name), Some("other"));
    assert_eq!(advice.intent("nothing known"), None);
}

#[test]
fn prompts_and_targets_are_cut() {
    let advice =
        advice(&["advice: {intents: [{intent: a, any: [find]}, {intent: b, regex: 'x+(?<target>é+)'}]}"]);
    assert_eq!(advice.intent(&("y ".repeat(MAX_PROMPT_BYTES) + "find")), None);
    let long = format!("x{}", "é".repeat(MAX_PROMPT_BYTES));
    let target = advice.intent(&long).unwrap().target_name.unwrap();
    assert_eq!(target, "é".repeat(MAX_TARGET_CHARS));
}

#[test]
fn planning_takes_the_preferred_strategy_that_is_offered() {
    let advice = advice(&[
        r"
advice:
  planning:
    strategies: [graph_planning, step_by_step, 'custom:mine']
    hints: [keep the public API, small steps]
    template: {steps: []}
    deny: [production, drop table]
    max_chars: 40
",
        "advice: {planning: {strategies: ['custom:mine', step_by_step], hints: [small steps, test first], template: 1}}",
    ]);
    let expected = |strategy| PlanningAdvice::Use {
        strategy,
        hints: vec!["keep the public API", "small steps", "test first"],
        template: advice.parts[0].section().planning.as_ref().unwrap().template.as_ref(),
    };
    assert_eq!(advice.planning("x", &["custom:mine", "step_by_step"]), expected("step_by_step"));
    assert_eq!(advice.planning("x", &["none", "custom:mine"]), expected("custom:mine"));
    assert_eq!(advice.planning("x", &[]), expected("step_by_step"));
    assert_eq!(
        blocked(advice.planning("x", &["graph_planning"])),
        "none of the offered strategies is allowed; allowed: `step_by_step`, `custom:mine`"
    );
    assert_eq!(blocked(advice.planning("fix PRODUCTION", &[])), "the task mentions `PRODUCTION`");
    assert_eq!(blocked(advice.planning(&"x".repeat(41), &[])), "the task has more than 40 characters");
    assert!(matches!(advice.planning("fix reproduction", &[]), PlanningAdvice::Use { .. }));
}

#[test]
fn the_document_that_refuses_gives_the_reason() {
    let documents = [
        "advice: {planning: {strategies: [none, step_by_step], reason: one, deny: [a]}}",
        "advice: {planning: {strategies: [none], reason: two, deny: [b], max_chars: 9}}",
    ];
    let advice = advice(&documents);
    for (task, offered, reason) in [
        ("a", &["none"][..], "one"),
        ("b", &["none"], "two"),
        ("xxxxxxxxxx", &["none"], "two"),
        ("x", &["step_by_step"], "two"),
        ("x", &["graph_planning"], "one"),
    ] {
        assert_eq!(blocked(advice.planning(task, offered)), reason, "{task} {offered:?}");
    }
    let closed =
        super::tests::advice(&["advice: {planning: {allow: false}, reasoning: {allow: false, reason: No.}}"]);
    assert_eq!(blocked(closed.planning("x", &[])), "planning is not allowed");
    assert_eq!(closed.reasoning("re_act", "x"), ReasoningAdvice::Block { reason: "No.".to_owned() });
}

#[test]
fn reasoning_is_allowed_in_listed_ways() {
    let advice = advice(&[
        "advice: {reasoning: {types: [chain_of_thought, 'other:x'], hints: [be brief], deny: [password]}}",
    ]);
    assert_eq!(advice.reasoning("other:x", "sum"), ReasoningAdvice::Allow { hints: vec!["be brief"] });
    let reason = |text: &str| ReasoningAdvice::Block { reason: text.to_owned() };
    assert_eq!(
        advice.reasoning("re_act", "sum"),
        reason("`re_act` is not an allowed type of reasoning; allowed: `chain_of_thought`, `other:x`")
    );
    assert_eq!(advice.reasoning("other:x", "the Password is"), reason("the problem mentions `Password`"));
}

#[test]
fn context_shows_what_every_document_lets_be_shown() {
    let advice = advice(&[
        "advice: {context: {files: ['src/**', '*.md'], max_results: 50, max_bytes: 1000}}",
        "advice: {context: {files: ['**/*.rs', docs, README.md], never: ['**/secrets/**', .env], max_results: 40}}",
    ]);
    let ContextAdvice::Allow(context) = advice.context() else { panic!("refused") };
    assert_eq!((context.max_results, context.max_bytes), (40, 1000));
    for (path, expected) in [
        ("src/a.rs", true),
        ("./src//a/b.rs", true),
        ("README.md", true),
        ("docs/a.md", true),
        ("src/a.txt", false),
        ("other/a.rs", false),
        ("src/secrets/a.rs", false),
        ("src/../etc/a.rs", false),
        ("", false),
    ] {
        assert_eq!(context.matches(path), expected, "{path}");
    }
    let closed =
        super::tests::advice(&["advice: {context: {allow: false}, memory: {allow: false, reason: Forget.}}"]);
    assert!(matches!(closed.context(), ContextAdvice::Block { reason: "context is not given" }));
    assert_eq!(closed.memory(), MemoryAdvice::Block { reason: "Forget." });
}

#[test]
fn memory_and_waits_follow_the_narrowest() {
    let memory = |documents: &[&str]| match advice(documents).memory() {
        MemoryAdvice::Allow { sessions, max_results } => (sessions, max_results),
        MemoryAdvice::Block { reason } => panic!("{reason}"),
    };
    let wide = "advice: {memory: {sessions: principal, max_results: 100}, rate_limit: {max_wait: 5m, skip_when_spent: false}}";
    let narrow = "advice: {memory: {sessions: own}, rate_limit: {max_wait: 1500us}}";
    assert_eq!(memory(&[wide]), (MemorySessions::Principal, 100));
    assert_eq!(memory(&[wide, narrow]), (MemorySessions::Own, 100));
    assert_eq!(advice(&[wide]).rate_limit(300_000, true), RateLimitAdvice::Retry { after_ms: 300_000 });
    assert_eq!(advice(&[wide, narrow]).rate_limit(2, true), RateLimitAdvice::Queue);
    assert_eq!(advice(&[wide, narrow]).rate_limit(1, true), RateLimitAdvice::Retry { after_ms: 1 });
    let strict = "advice: {rate_limit: {skip_when_spent: true}}";
    assert!(matches!(advice(&[wide, strict]).rate_limit(1, true), RateLimitAdvice::Skip { .. }));
}

#[test]
fn the_number_of_intents_is_bounded() {
    let many = format!("advice: {{intents: [{}]}}", "{intent: a, any: [x]}, ".repeat(256));
    let full = [many.as_str(); 4];
    assert_eq!(policy(&full).advice(&Caller::default()).parts.len(), 4);
    let sources = |more: &str| {
        let mut sources: Vec<Source> = full
            .iter()
            .enumerate()
            .map(|(index, text)| Source::document(&format!("p{index}"), text))
            .collect();
        sources.push(Source::document("q", more));
        sources
    };
    let problems = Policy::compile(sources("advice: {intents: [{intent: a, any: [x]}]}")).unwrap_err();
    let found: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(found, ["q:1:20: at most 1024 intents are allowed in all documents together"]);
    assert!(Policy::compile(sources("advice: {idle: {}}")).is_ok());
}

#[test]
fn advice_is_part_of_the_digest_and_changes_no_rule() {
    let with = policy(&["advice: {idle: {allow: false}}"]);
    let without = policy(&[""]);
    assert_ne!(with.digest(), without.digest());
    assert_eq!((with.rule_count(), with.weakenings()), (without.rule_count(), without.weakenings()));
}
