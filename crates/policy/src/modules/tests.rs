use proctor_core::action::ActionKind;
use proctor_core::decision::Effect;
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, SessionId};
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;
use proctor_facts::Facts;

use super::cedar::CedarModule;
use super::rego::RegoModule;
use super::{ModuleProblem, Opinion};
use crate::input::{FoundSecret, Input};
use crate::question::{Answer, Memory, Question, Standing};

struct Nothing;

impl Memory for Nothing {
    fn answer(&self, _question: &Question) -> Option<Answer> {
        None
    }
}

/// A registry that knows the agent.
struct Registered;

impl Memory for Registered {
    fn answer(&self, question: &Question) -> Option<Answer> {
        let standing = Standing {
            risk: "high".to_owned(),
            parent: "root".to_owned(),
            parent_risk: "low".to_owned(),
            depth: 2,
            children: 3,
            registered_at: Timestamp::parse("2025-11-15T20:44:07Z"),
            team_agents: 4,
            ..Standing::default()
        };
        matches!(question, Question::Standing(operation) if operation.is_empty())
            .then(|| Answer::Standing(Some(Box::new(standing))))
    }
}

fn input(kind: ActionKind) -> Input {
    let args = br#"{"command": "rm -rf /data", "count": 3, "price": 1.25, "none": null, "tags": ["a", "b"], "__entity": {"type": "Agent", "id": "root"}}"#;
    Input {
        facts: Facts {
            kind,
            name: "Bash".to_owned(),
            tool: "shell".to_owned(),
            args: Json::parse(args).expect("valid JSON"),
            path: "/etc/passwd".to_owned(),
            host: "evil.example".to_owned(),
            model: "gpt-x".to_owned(),
            port: 443,
            tokens: 10,
            cost_usd: "0.12345".parse().expect("a decimal"),
            paths: vec!["/etc/passwd".to_owned()],
            ..Facts::default()
        },
        findings: vec![FoundSecret { kind: "OpenAiKey".to_owned(), path: "$.args".to_owned() }],
        caller: Caller { principal: "ci-bot".to_owned(), team: "core".to_owned(), org: "acme".to_owned() },
        agent: "builder".to_owned(),
        session: SessionId::from_bytes([7; 16]),
        digest: Digest::of(b""),
        now: Timestamp::parse("2025-11-15T20:45:07Z").expect("a timestamp"),
        fresh_approval: ApprovalId::from_bytes([9; 16]),
    }
}

fn cedar(text: &str, kind: ActionKind) -> Vec<Opinion> {
    CedarModule::compile("p.cedar", text)
        .unwrap_or_else(|problems| panic!("{problems:?}"))
        .evaluate(&input(kind), &Nothing)
}

fn rego(text: &str) -> Vec<Opinion> {
    let text = format!("package proctor\nimport rego.v1\n{text}");
    RegoModule::compile("p.rego", &text)
        .unwrap_or_else(|problems| panic!("{problems:?}"))
        .evaluate(&input(ActionKind::ToolCall), &Nothing)
}

fn opinion(effect: Effect, rule: &str, reason: &str) -> Opinion {
    Opinion { effect, rule: rule.to_owned(), reason: reason.to_owned() }
}

fn places<T>(result: Result<T, Vec<ModuleProblem>>) -> Vec<String> {
    match result {
        Ok(_) => panic!("the module has to be refused"),
        Err(problems) => problems
            .into_iter()
            .map(|problem| format!("{}:{} {}", problem.line, problem.column, problem.message))
            .collect(),
    }
}

#[test]
fn cedar_permits_forbids_and_asks() {
    let text = r#"
        @id("tools-are-fine") @reason("Tools are allowed.")
        permit (principal, action == Action::"tool_call", resource is Tool);

        forbid (principal == Agent::"somebody-else", action, resource);

        @id("no-rm") @effect("ask") @reason("Deleting needs a person.")
        forbid (principal == Agent::"ci-bot", action, resource == Tool::"shell")
        when { context.action has args && context.action.args has command && context.action.args.command like "*rm -rf*" };

        forbid (principal, action == Action::"file_operation", resource == Path::"/etc/passwd");
        @effect("deny")
        forbid (principal, action in [Action::"network_call", Action::"llm_call"], resource)
        when { resource == Host::"evil.example" || resource == Model::"gpt-x" };
    "#;
    assert_eq!(
        cedar(text, ActionKind::ToolCall),
        [opinion(Effect::Ask, "no-rm", "Deleting needs a person.")]
    );
    assert_eq!(cedar(text, ActionKind::FileOperation), [opinion(Effect::Deny, "policy3", "")]);
    assert_eq!(cedar(text, ActionKind::NetworkCall), [opinion(Effect::Deny, "policy4", "")]);
    assert_eq!(cedar(text, ActionKind::LlmCall), [opinion(Effect::Deny, "policy4", "")]);
    assert_eq!(cedar(text, ActionKind::Prompt), [opinion(Effect::Ask, "no-rm", "Deleting needs a person.")]);
    let permit = "@id(\"a\") @reason(\"Yes.\") permit (principal, action, resource);";
    assert_eq!(cedar(permit, ActionKind::Custom), [opinion(Effect::Allow, "a", "Yes.")]);
    assert_eq!(cedar("", ActionKind::Custom), []);
}

#[test]
fn modules_see_what_the_registry_knows() {
    let cedar = r#"@id("a") forbid (principal, action, resource) when {
        context.agent.risk_tier == "high" && context.agent.depth == 2 && context.agent.parent == "root"
        && context.agent.parent_risk_tier == "low" && context.agent.children == 3 && context.agent.is_registered
        && context.agent.age == 60 && context.agent.team_agents == 4 };"#;
    let module = CedarModule::compile("p.cedar", cedar).unwrap();
    let input = input(ActionKind::ToolCall);
    assert_eq!(module.evaluate(&input, &Registered), [opinion(Effect::Deny, "a", "")]);
    // Without an answer the policy fails, which denies with its reason.
    assert!(module.evaluate(&input, &Nothing).iter().all(|opinion| !opinion.reason.is_empty()));
    assert_eq!(module.evaluate(&input, &Nothing).len(), 1);
    let rego = "package proctor\nimport rego.v1\ndecision := {\"effect\": \"deny\", \"id\": \"a\"} if {\n\
        agent := input.agent\nagent.risk_tier == \"high\"\nagent.depth == 2\nagent.parent == \"root\"\n\
        agent.parent_risk_tier == \"low\"\nagent.children == 3\nagent.is_registered\nagent.age == 60\n\
        agent.team_agents == 4\n}";
    let module = RegoModule::compile("p.rego", rego).unwrap_or_else(|problems| panic!("{problems:?}"));
    assert_eq!(module.evaluate(&input, &Registered), [opinion(Effect::Deny, "a", "")]);
}

#[test]
fn cedar_sees_the_record() {
    for condition in [
        "context.action.tool == \"shell\" && context.action.port == 443 && context.action.tokens == 10",
        "context.action.cost_usd.greaterThan(decimal(\"0.1234\")) && context.action.cost_usd == decimal(\"0.1235\")",
        "context.action.paths.contains(\"/etc/passwd\") && context.action.findings == [\"OpenAiKey\"]",
        "context.action.args.count == 3 && context.action.args.price == \"1.25\"",
        "!(context.action.args has none) && context.action.args.tags == [\"b\", \"a\"]",
        "context.action.args[\"__entity\"].id == \"root\"",
        "context.agent.principal == \"ci-bot\" && context.agent.name == \"builder\" && context.agent.team == \"core\"",
        "context.session.id == \"07070707-0707-0707-0707-070707070707\"",
        "context.time.hour == 20 && context.time.weekday == \"saturday\" && context.time.date == \"2025-11-15\"",
        "context.time.now == \"2025-11-15T20:45:07.000000Z\"",
        "context.action.operation == \"\" && context.action.writes.isEmpty()",
        "context has action && context.action has tool && !(context.action.result has x)",
        "context == context",
    ] {
        let text = format!("permit (principal, action, resource) when {{ {condition} }};");
        assert_eq!(
            cedar(&text, ActionKind::ToolCall),
            [opinion(Effect::Allow, "policy0", "")],
            "{condition}"
        );
    }
}

#[test]
fn a_cedar_policy_that_fails_denies() {
    let text =
        "@id(\"broken\") permit (principal, action, resource) when { context.action.args.missing == 1 };
        permit (principal, action, resource);";
    let opinions = cedar(text, ActionKind::ToolCall);
    assert_eq!(opinions.len(), 2);
    assert_eq!((opinions[0].effect, opinions[0].rule.as_str()), (Effect::Deny, "broken"));
    assert!(opinions[0].reason.starts_with("the policy could not be evaluated: "), "{opinions:?}");
    assert_eq!(opinions[1].effect, Effect::Allow);
}

#[test]
fn cedar_refuses_what_can_never_apply() {
    let refused = |text: &str| places(CedarModule::compile("p.cedar", text));
    assert_eq!(
        refused(
            "permit (principal,\n  action == Action::\"tool_cal\", resource == Tol::\"x\");\nforbid (principal == User::\"x\", action, resource) when { context.acton.tool == \"x\" };\nforbid (principal, action, resource) when { context.action.toool == \"x\" };"
        ),
        [
            "2:22 there is no action `Action::\"tool_cal\"`; did you mean `Action::\"tool_call\"`?",
            "2:45 the resource is never a `Tol`; did you mean `Tool`?",
            "3:22 the principal is never a `User`; it is Agent",
            "3:66 `context` has no member `acton`; did you mean `context.action`?",
            "4:60 `context.action` has no member `toool`; did you mean `context.action.tool`?",
        ]
    );
    assert_eq!(
        refused(
            "@effct(\"ask\")\nforbid (principal, action, resource);\n@effect(\"maybe\") forbid (principal, action, resource);\n@effect(\"ask\") permit (principal, action, resource);\n@id(\"a b\") permit (principal, action, resource);"
        ),
        [
            "1:2 unknown annotation `@effct`; did you mean `@effect`?",
            "3:2 `@effect` is \"ask\" or \"deny\", not \"maybe\"",
            "4:2 `@effect` is for forbid: a permit allows",
            "5:6 the id `a b` may have letters, digits and `:._-`",
        ]
    );
    assert!(
        refused("permit (principal == ?principal, action, resource);")[0]
            .starts_with("1:1 templates are not supported")
    );
    assert!(refused("permit (principal, action, resource)\nwhen { context.x = 3 };")[0].starts_with("2:"));
    assert!(!refused("permit (").is_empty());
}

#[test]
fn rego_gives_one_decision_or_several() {
    let ask = "decision := {\"effect\": \"ask\", \"id\": \"no-rm\", \"reason\": \"Ask first.\"} if contains(input.action.args.command, \"rm -rf\")";
    assert_eq!(rego(ask), [opinion(Effect::Ask, "no-rm", "Ask first.")]);
    assert_eq!(rego("decision := {\"effect\": \"allow\"} if input.action.tool == \"other\""), []);
    assert_eq!(rego("decision := {\"effect\": \"allow\"} if input.action.args.missing == 1"), []);
    assert_eq!(
        rego(
            "decision contains {\"effect\": \"deny\", \"id\": \"b\"} if input.agent.principal == \"ci-bot\"\ndecision contains {\"effect\": \"allow\", \"id\": \"a\", \"reason\": \"r\"} if input.time.hour == 20\ndecision contains {\"effect\": \"allow\"} if input.time.hour == 3"
        ),
        [opinion(Effect::Allow, "a", "r"), opinion(Effect::Deny, "b", "")]
    );
    assert_eq!(
        rego("decision := [{\"effect\": \"defer\", \"id\": \"d\"}]"),
        [opinion(Effect::Defer, "d", "")]
    );
    assert_eq!(rego("decision := []"), []);
}

#[test]
fn rego_sees_the_record() {
    for condition in [
        "input.action.kind == \"tool_call\"; input.action.name == \"Bash\"; input.action.port == 443",
        "input.action.cost_usd > 0.12; input.action.args.price == 1.25; input.action.args.count == 3",
        "input.action.args.none == null; input.action.args.tags[1] == \"b\"",
        "\"/etc/passwd\" in input.action.paths; input.action.findings[0] == \"OpenAiKey\"",
        "input.session.id == \"07070707-0707-0707-0707-070707070707\"; input.time.weekday == \"saturday\"",
        "some path in input.action.paths; startswith(path, \"/etc/\")",
        "input.action.operation == \"\"; count(input.action.writes) == 0; input.agent.org == \"acme\"",
    ] {
        assert_eq!(
            rego(&format!("decision := {{\"effect\": \"allow\"}} if {{ {condition} }}")),
            [opinion(Effect::Allow, "rego", "")],
            "{condition}"
        );
    }
}

#[test]
fn a_huge_number_does_not_fill_the_memory() {
    let text =
        "package proctor\nimport rego.v1\ndecision := {\"effect\": \"deny\"} if input.action.args.n > 10";
    let module = RegoModule::compile("p.rego", text).unwrap();
    for number in ["1e1000000000", "1e300", "11", "1".repeat(10_000).as_str(), "10.5", "18446744073709551615"]
    {
        let mut input = input(ActionKind::ToolCall);
        input.facts.args = Json::object().with("n", Json::Number(number.into()));
        assert_eq!(module.evaluate(&input, &Nothing), [opinion(Effect::Deny, "rego", "")]);
    }
}

#[test]
fn a_rego_decision_of_another_shape_denies() {
    for decision in [
        "decision := true",
        "decision := {\"effect\": \"permit\"}",
        "decision := {\"id\": \"x\"}",
        "decision := {\"effect\": \"allow\", \"id\": \"a b\"}",
        "decision := {\"effect\": \"allow\", \"more\": 1}",
        "decision := {\"effect\": \"redact\"}",
        "decision := [\"allow\"]",
        "decision := {\"effect\": \"allow\"} if to_number(input.action.tool) == 1",
        "decision := {\"effect\": \"allow\"}\ndecision := {\"effect\": \"deny\"}",
        "decision := {\"effect\": \"allow\"} if input.action.tool + 1 == 2",
    ] {
        let opinions = rego(decision);
        assert_eq!(opinions.len(), 1, "{decision}: {opinions:?}");
        assert_eq!((opinions[0].effect, opinions[0].rule.as_str()), (Effect::Deny, "rego"), "{decision}");
        assert!(!opinions[0].reason.is_empty());
    }
}

#[test]
fn rego_ends_after_so_many_instructions() {
    let list = (0..60).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    let opinions = rego(&format!(
        "items := [{list}]\ndecision := {{\"effect\": \"allow\"}} if count([1 | some a in items; some b in items; some c in items; a + b + c > 0]) > 0"
    ));
    assert_eq!(opinions.len(), 1);
    assert_eq!(opinions[0].effect, Effect::Deny, "{opinions:?}");
    assert!(opinions[0].reason.contains("could not be evaluated"));
}

#[test]
fn rego_refuses_what_cannot_be_derived_again() {
    let refused = |text: &str| places(RegoModule::compile("p.rego", text));
    assert_eq!(
        refused(
            "package proctor\n# time.now_ns()\ndecision := {\"effect\": \"allow\"} if {\n  time.now_ns() > 3\n  rand.intn(\"a\", 3) == 1\n  \"uuid.rfc4122()\" != \"\"\n}"
        ),
        [
            "4:3 `time.now_ns` reads the clock; use `input.time.now`: decisions have to be derivable again",
            "5:3 `rand.intn` draws random numbers: decisions have to be derivable again",
        ]
    );
    for call in [
        "http.send({})",
        "opa.runtime()",
        "trace(\"x\")",
        "print(\"x\")",
        "numbers.range(1, 1000000000)",
        "uuid.rfc4122(\"x\")",
    ] {
        let problems =
            refused(&format!("package proctor\ndecision := {{\"effect\": \"allow\"}} if {{ {call} }}"));
        assert!(problems[0].starts_with("2:38 "), "{problems:?}");
    }
    // However its name is written.
    let problems = refused("package proctor\ndecision := {\"effect\": \"allow\"} if time[\"now_ns\"]() > 3");
    assert!(!problems.is_empty());
}

#[test]
fn rego_problems_have_a_place() {
    let refused = |text: &str| places(RegoModule::compile("p.rego", text));
    assert!(
        refused("package proctor\n\ndecision := {")[0].starts_with("3:"),
        "{:?}",
        refused("package proctor\n\ndecision := {")
    );
    assert_eq!(
        refused("package other\ndecision := {\"effect\": \"allow\"}"),
        ["1:1 the package is `other`, and has to be `proctor`"]
    );
    assert_eq!(refused("package proctor\nother := 1"), ["1:1 the module has no rule `decision`"]);
    assert!(refused("package proctor\nimport rego.v1\ndecision := nowhere(1)")[0].starts_with("3:"));
}

#[test]
fn deep_modules_are_refused_quickly() {
    let deep = 100_000;
    let brackets = format!("{}1{}", "(".repeat(deep), ")".repeat(deep));
    let sum = format!("1{}", "+1".repeat(deep));
    for expression in [brackets, sum, "!".repeat(deep), "[".repeat(deep), "a".to_owned() + &".b".repeat(deep)]
    {
        let cedar = format!("permit (principal, action, resource) when {{ {expression} == 1 }};");
        assert!(places(CedarModule::compile("p.cedar", &cedar))[0].contains("nested too deeply"));
        let rego = format!("package proctor\ndecision := {expression}");
        assert!(places(RegoModule::compile("p.rego", &rego))[0].contains("nested too deeply"));
    }
    // As much as is let through has to fit on the stack.
    let most = format!("1{}", "+1".repeat(990));
    let cedar = format!("permit (principal, action, resource) when {{ {most} == 991 }};");
    let _ = CedarModule::compile("p.cedar", &cedar)
        .map(|module| module.evaluate(&input(ActionKind::Custom), &Nothing));
    let choices = "if true then 1 else ".repeat(900);
    let _ = CedarModule::compile(
        "p.cedar",
        &format!("permit (principal, action, resource) when {{ {choices} 1 == 1 }};"),
    )
    .map(|module| module.evaluate(&input(ActionKind::Custom), &Nothing));
    let _ = RegoModule::compile("p.rego", &format!("package proctor\ndecision := {most}"));
}

#[test]
fn modules_can_be_shared_and_say_the_same_again() {
    fn shared<T: Send + Sync>(_: &T) {}
    let cedar = CedarModule::compile("p.cedar", "permit (principal, action, resource); forbid (principal, action, resource); @effect(\"ask\") forbid (principal, action, resource);").unwrap();
    let rego = RegoModule::compile(
        "p.rego",
        "package proctor\ndecision contains {\"effect\": e} if some e in [\"deny\", \"allow\", \"ask\"]",
    )
    .unwrap();
    shared(&cedar);
    shared(&rego);
    let input = input(ActionKind::ToolCall);
    let (first_cedar, first_rego) = (cedar.evaluate(&input, &Nothing), rego.evaluate(&input, &Nothing));
    assert_eq!(first_cedar.len(), 2);
    for _ in 0..50 {
        assert_eq!(cedar.evaluate(&input, &Nothing), first_cedar);
        assert_eq!(rego.evaluate(&input, &Nothing), first_rego);
    }
}
