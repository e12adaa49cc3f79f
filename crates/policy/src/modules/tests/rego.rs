use proctor_core::action::ActionKind;
use proctor_core::decision::Effect;
use proctor_core::json::Json;

use super::{Nothing, Registered, assert_shared, deep_expressions, input, opinion, places};
use crate::modules::rego::RegoModule;
use crate::modules::{Engine, Opinion};

fn rego(text: &str) -> Vec<Opinion> {
    let text = format!("package proctor\nimport rego.v1\n{text}");
    RegoModule::compile("p.rego", &text)
        .unwrap_or_else(|problems| panic!("{problems:?}"))
        .evaluate(&input(ActionKind::ToolCall), &Nothing)
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
fn rego_sees_what_the_registry_knows() {
    let text = "package proctor\nimport rego.v1\ndecision := {\"effect\": \"deny\", \"id\": \"a\"} if {\n\
        agent := input.agent\nagent.risk_tier == \"high\"\nagent.depth == 2\nagent.parent == \"root\"\n\
        agent.parent_risk_tier == \"low\"\nagent.children == 3\nagent.is_registered\nagent.age == 60\n\
        agent.team_agents == 4\n}";
    let module = RegoModule::compile("p.rego", text).unwrap_or_else(|problems| panic!("{problems:?}"));
    let input = input(ActionKind::ToolCall);
    assert_eq!(module.evaluate(&input, &Registered), [opinion(Effect::Deny, "a", "")]);
}

#[test]
fn deep_modules_are_refused_quickly() {
    for expression in deep_expressions() {
        let text = format!("package proctor\ndecision := {expression}");
        assert!(places(RegoModule::compile("p.rego", &text))[0].contains("nested too deeply"));
    }
    // As much as is let through has to fit on the stack.
    let most = format!("1{}", "+1".repeat(990));
    let _ = RegoModule::compile("p.rego", &format!("package proctor\ndecision := {most}"));
}

#[test]
fn modules_can_be_shared_and_say_the_same_again() {
    let text =
        "package proctor\ndecision contains {\"effect\": e} if some e in [\"deny\", \"allow\", \"ask\"]";
    let module = RegoModule::compile("p.rego", text).unwrap();
    assert_shared(&module);
    let input = input(ActionKind::ToolCall);
    let first = module.evaluate(&input, &Nothing);
    for _ in 0..50 {
        assert_eq!(module.evaluate(&input, &Nothing), first);
    }
}
