use proctor_core::action::ActionKind;
use proctor_core::decision::Effect;

use super::{Nothing, Registered, assert_shared, deep_expressions, input, opinion, places};
use crate::modules::cedar::CedarModule;
use crate::modules::{Engine, Opinion};

fn cedar(text: &str, kind: ActionKind) -> Vec<Opinion> {
    CedarModule::compile("p.cedar", text)
        .unwrap_or_else(|problems| panic!("{problems:?}"))
        .evaluate(&input(kind), &Nothing)
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
fn cedar_sees_what_the_registry_knows() {
    let text = r#"@id("a") forbid (principal, action, resource) when {
        context.agent.risk_tier == "high" && context.agent.depth == 2 && context.agent.parent == "root"
        && context.agent.parent_risk_tier == "low" && context.agent.children == 3 && context.agent.is_registered
        && context.agent.age == 60 && context.agent.team_agents == 4 };"#;
    let module = CedarModule::compile("p.cedar", text).unwrap();
    let input = input(ActionKind::ToolCall);
    assert_eq!(module.evaluate(&input, &Registered), [opinion(Effect::Deny, "a", "")]);
    // Without an answer the policy fails, which denies with its reason.
    assert!(module.evaluate(&input, &Nothing).iter().all(|opinion| !opinion.reason.is_empty()));
    assert_eq!(module.evaluate(&input, &Nothing).len(), 1);
}

#[test]
fn deep_policies_are_refused_quickly() {
    for expression in deep_expressions() {
        let text = format!("permit (principal, action, resource) when {{ {expression} == 1 }};");
        assert!(places(CedarModule::compile("p.cedar", &text))[0].contains("nested too deeply"));
    }
    // As much as is let through has to fit on the stack.
    let most = format!("1{}", "+1".repeat(990));
    let choices = "if true then 1 else ".repeat(900);
    for condition in [format!("{most} == 991"), format!("{choices} 1 == 1")] {
        let text = format!("permit (principal, action, resource) when {{ {condition} }};");
        let _ = CedarModule::compile("p.cedar", &text)
            .map(|module| module.evaluate(&input(ActionKind::Custom), &Nothing));
    }
}

#[test]
fn policies_can_be_shared_and_say_the_same_again() {
    let text = "permit (principal, action, resource); forbid (principal, action, resource); @effect(\"ask\") forbid (principal, action, resource);";
    let module = CedarModule::compile("p.cedar", text).unwrap();
    assert_shared(&module);
    let input = input(ActionKind::ToolCall);
    let first = module.evaluate(&input, &Nothing);
    assert_eq!(first.len(), 2);
    for _ in 0..50 {
        assert_eq!(module.evaluate(&input, &Nothing), first);
    }
}
