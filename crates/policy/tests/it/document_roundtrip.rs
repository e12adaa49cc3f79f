//! Any document, written as YAML or as JSON, reads back as itself.

use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_policy::document::{
    ActiveHours, AnomalySection, BudgetSection, CapabilitySection, CredentialAction, DataSection, Document,
    DocumentScope, LeakWatch, Limit, Located, LoopWatch, Module, Position, Response, Rule, SpikeWatch,
    ToolSection, read_document,
};
use proctor_policy::expression::Expression;
use proctor_policy::question::{Account, Unit};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use rust_decimal::Decimal;

use crate::any_input;

fn here<T>(value: T) -> Located<T> {
    Located { value, at: Position::default() }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,8}",
        "[ -~]{0,20}",
        "[\u{e0}-\u{ff}\u{4e00}-\u{4e10}]{1,5}",
        Just("null".to_owned()),
        Just("1.5".to_owned()),
        Just("- a: [b]\n# c\n\ttab \"q\" 'r' \\ end\n".to_owned()),
    ]
}

fn nonblank() -> impl Strategy<Value = String> {
    text().prop_map(|text| if text.trim().is_empty() { "x".to_owned() } else { text })
}

fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<i64>().prop_map(Json::from),
        text().prop_map(Json::String),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Json::Array),
            vec(inner, 0..4).prop_map(|items| {
                Json::Object(
                    items.into_iter().enumerate().map(|(index, item)| (format!("k{index}"), item)).collect(),
                )
            }),
        ]
    })
}

fn rule() -> impl Strategy<Value = Rule> {
    let effects = [Effect::Allow, Effect::Deny, Effect::Ask, Effect::Defer, Effect::Redact, Effect::Modify];
    let common = (
        "[A-Za-z0-9:._-]{1,12}",
        option::of(0_u32..1000),
        proptest::sample::select(effects.to_vec()),
        text(),
    );
    let own = (
        option::of(1_u64..100_000),
        vec(nonblank(), 0..3),
        1_u64..100_000,
        vec(value(), 1..3),
        any::<bool>(),
        vec(nonblank(), 0..3),
    );
    (common, own).prop_map(
        |((id, when, then, reason), (expires, approvers, retry, values, paths, taints))| Rule {
            id,
            when: when.map(|number| here(format!("action.depth > {number}"))),
            then,
            reason,
            expires_micros: expires.filter(|_| then == Effect::Ask),
            approvers: if then == Effect::Ask { approvers } else { Vec::new() },
            retry_after_ms: (then == Effect::Defer).then_some(retry),
            set: match then {
                Effect::Modify => values
                    .into_iter()
                    .enumerate()
                    .map(|(index, value)| (format!("/args/k{index}"), value))
                    .collect(),
                _ => Vec::new(),
            },
            paths: (then == Effect::Redact && paths)
                .then(|| vec!["$.args['a b'][*]".to_owned(), "$.text".to_owned()]),
            taints,
            at: Position::default(),
        },
    )
}

fn tool() -> impl Strategy<Value = ToolSection> {
    let expressions = [
        "path starts_with \"/etc\"",
        "args.n > 0.10 AND tool == \"x\"",
        "agent.age < \"24h\" OR url in [\"a\", \"b\"]",
    ];
    (
        option::of(any::<bool>()),
        option::of(1_u32..),
        option::of(proptest::sample::select(expressions.to_vec())),
    )
        .prop_map(|(allow, limit_per_hour, expression)| ToolSection {
            name: String::new(),
            allow: allow.unwrap_or(false),
            allow_written: allow.is_some(),
            limit_per_hour,
            requires_approval_if: expression.and_then(|text| Expression::parse(text).ok()),
            at: Position::default(),
        })
}

fn limits() -> impl Strategy<Value = Vec<Limit>> {
    vec(option::of((1_u32..1_000_000, 0_u32..4)), 18).prop_map(|amounts| {
        let mut limits: Vec<Limit> = Vec::new();
        let accounts = [(Account::Agent, ""), (Account::Team, "team_"), (Account::Org, "org_")];
        let mut amounts = amounts.into_iter();
        for (unit, section) in [(Unit::Usd, ""), (Unit::Tokens, "tokens."), (Unit::Calls, "calls.")] {
            for (account, prefix) in accounts {
                for (monthly, period) in [(false, "daily"), (true, "monthly")] {
                    let Some(Some((amount, scale))) = amounts.next() else { continue };
                    let ending = if unit == Unit::Usd { "_limit_usd" } else { "" };
                    let mut most = Decimal::new(i64::from(amount), if unit == Unit::Usd { scale } else { 0 });
                    if let Some(day) = limits
                        .last()
                        .filter(|day| monthly && !day.monthly && day.account == account && day.unit == unit)
                    {
                        most += day.most;
                    }
                    limits.push(Limit {
                        key: format!("{section}{prefix}{period}{ending}"),
                        account,
                        unit,
                        monthly,
                        most,
                    });
                }
            }
        }
        limits
    })
}

fn anomalies() -> impl Strategy<Value = AnomalySection> {
    let then =
        || proptest::sample::select(vec![Response::Alarm, Response::Ask, Response::Deny, Response::Suspend]);
    let loops = (2_u32.., 1_u32..=3600, then()).prop_map(|(count, window_secs, then)| LoopWatch {
        count,
        window_secs,
        then,
    });
    let spikes = (10_u32..=1000, 1_u32.., then()).prop_map(|(sigma_tenths, at_least, then)| SpikeWatch {
        sigma_tenths,
        at_least,
        then,
    });
    let leaks = (1_u32.., then()).prop_map(|(findings, then)| LeakWatch { findings, then });
    let parts =
        (option::of(loops), option::of(spikes), option::of(leaks), option::of(then()), option::of(then()));
    parts.prop_map(|(loops, spikes, leaks, unknown_hosts, exfiltration)| AnomalySection {
        loops,
        spikes,
        leaks,
        unknown_hosts,
        exfiltration,
        at: Position::default(),
    })
}

fn document() -> impl Strategy<Value = Document> {
    let scopes = prop_oneof![
        Just(DocumentScope::Global),
        "[a-z]{1,5}".prop_map(DocumentScope::Org),
        "[a-z]{1,5}".prop_map(DocumentScope::Team),
        "[a-z]{1,5}".prop_map(DocumentScope::Agent),
        "[a-z]{1,5}".prop_map(DocumentScope::Tool),
    ];
    let defaults = proptest::sample::select(vec![Effect::Deny, Effect::Ask, Effect::Allow]);
    let actions = proptest::sample::select(vec![
        CredentialAction::RedactOnly,
        CredentialAction::Block,
        CredentialAction::AlertOnly,
        CredentialAction::AlertAndRedact,
    ]);
    let hours = (0_u16..1439, 0_u16..1439).prop_map(|(start, end)| ActiveHours {
        start,
        end: if end == start { 1440 } else { end },
        timezone: "Europe/Berlin".to_owned(),
    });
    let capabilities =
        vec(proptest::sample::select(vec!["file_read", "terminal_exec", "mcp_tool:x y", "model:m"]), 0..3)
            .prop_map(|names| names.into_iter().map(str::to_owned).collect::<Vec<String>>());
    let modules = vec(
        (any::<bool>(), nonblank())
            .prop_map(|(cedar, path)| here(if cedar { Module::Cedar(path) } else { Module::Rego(path) })),
        0..3,
    );
    let head =
        (text(), scopes, option::of(defaults), option::of(vec(rule(), 0..5)), modules, vec(tool(), 0..4));
    let sections = (
        option::of(vec(nonblank().prop_map(here), 0..3)),
        option::of((vec("[a-z]{1,5}".prop_map(here), 0..3), option::of(actions))),
        option::of((limits(), option::of(1_u64..1_000_000_000), any::<bool>())),
        option::of(hours),
        option::of((option::of(capabilities.clone()), capabilities)),
        option::of(1_u32..),
        option::of(nonblank()),
        (vec(nonblank().prop_map(here), 0..3), option::of(anomalies())),
    );
    (head, sections).prop_map(|((version, scope, default, rules, modules, mut tools), rest)| {
        let (
            network_allowlist,
            data,
            budget,
            active_hours,
            capabilities,
            approval_timeout_secs,
            escalation_role,
            (observe, anomalies),
        ) = rest;
        for (index, tool) in tools.iter_mut().enumerate() {
            tool.name = format!("Tool {index}: *");
        }
        Document {
            file: "p".to_owned(),
            version,
            scope,
            default: default.map(here),
            rules,
            modules,
            network_allowlist,
            tools,
            data: data.map(|(sensitive_patterns, credential_action)| DataSection {
                sensitive_patterns,
                credential_action,
                at: Position::default(),
            }),
            budget: budget.map(|(limits, window_micros, suspend)| BudgetSection {
                limits,
                timezone: "UTC".to_owned(),
                window_micros,
                suspend,
                // Drawn together, which is enough for a member that nothing else depends on.
                trust_reports: suspend,
            }),
            active_hours,
            capabilities: capabilities.map(|(allow, deny)| CapabilitySection {
                allow,
                deny,
                at: Position::default(),
            }),
            approval_timeout_secs,
            escalation_role,
            observe,
            anomalies,
            ..Document::default()
        }
    })
}

/// The document as the tree that its source is.
fn render(document: &Document) -> Json {
    let strings =
        |items: &[String]| Json::Array(items.iter().map(|item| Json::String(item.clone())).collect());
    let located = |items: &[Located<String>]| {
        Json::Array(items.iter().map(|item| Json::String(item.value.clone())).collect())
    };
    let scope = match &document.scope {
        DocumentScope::Global => "global".to_owned(),
        DocumentScope::Org(id) => format!("org:{id}"),
        DocumentScope::Team(id) => format!("team:{id}"),
        DocumentScope::Agent(id) => format!("agent:{id}"),
        DocumentScope::Tool(id) => format!("tool:{id}"),
    };
    let mut out = Json::object().with("version", document.version.as_str()).with("scope", scope);
    if let Some(default) = &document.default {
        out.push("default", default.value.word());
    }
    if let Some(rules) = &document.rules {
        out.push("rules", rules.iter().map(render_rule).collect::<Vec<Json>>());
    }
    let module = |module: &Located<Module>| match &module.value {
        Module::Cedar(path) => Json::object().with("cedar", path.as_str()),
        Module::Rego(path) => Json::object().with("rego", path.as_str()),
    };
    out.push("modules", document.modules.iter().map(module).collect::<Vec<Json>>());
    if let Some(hosts) = &document.network_allowlist {
        out.push("network", Json::object().with("allowlist", located(hosts)));
    }
    let mut tools = Json::object();
    for tool in &document.tools {
        let mut section = Json::object();
        if tool.allow_written {
            section.push("allow", tool.allow);
        }
        if let Some(limit) = tool.limit_per_hour {
            section.push("limit_per_hour", limit);
        }
        if let Some(expression) = &tool.requires_approval_if {
            section.push("requires_approval_if", expression.to_string());
        }
        tools.push(&tool.name, section);
    }
    out.push("tools", tools);
    if let Some(data) = &document.data {
        let mut section = Json::object().with("sensitive_patterns", located(&data.sensitive_patterns));
        if let Some(action) = data.credential_action {
            section.push(
                "credential_action",
                match action {
                    CredentialAction::RedactOnly => "redact_only",
                    CredentialAction::Block => "block",
                    CredentialAction::AlertOnly => "alert_only",
                    CredentialAction::AlertAndRedact => "alert_and_redact",
                },
            );
        }
        out.push("data", section);
    }
    if let Some(budget) = &document.budget {
        let mut section = Json::object().with("timezone", budget.timezone.as_str());
        let (mut tokens, mut calls) = (Json::object(), Json::object());
        for limit in &budget.limits {
            let amount = Json::Number(limit.most.to_string().into());
            match limit.key.split_once('.') {
                Some(("tokens", key)) => tokens.push(key, amount),
                Some((_, key)) => calls.push(key, amount),
                None => section.push(&limit.key, amount),
            }
        }
        section.push("tokens", tokens);
        section.push("calls", calls);
        if let Some(micros) = budget.window_micros {
            section.push("window", format!("{micros}us"));
        }
        section.push("action_on_exceed", if budget.suspend { "suspend" } else { "deny" });
        section.push("trust_reports", budget.trust_reports);
        out.push("budget", section);
    }
    if let Some(hours) = &document.active_hours {
        let end = if hours.end == 1440 { 1439 } else { hours.end };
        let clock = |minute: u16| format!("{:02}:{:02}", minute / 60, minute % 60);
        let section = Json::object()
            .with("start", clock(hours.start))
            .with("end", clock(end))
            .with("timezone", hours.timezone.as_str());
        out.push("schedule", Json::object().with("active_hours", section));
    }
    if let Some(capabilities) = &document.capabilities {
        let mut section = Json::object().with("deny", strings(&capabilities.deny));
        if let Some(allow) = &capabilities.allow {
            section.push("allow", strings(allow));
        }
        out.push("capabilities", section);
    }
    if let Some(seconds) = document.approval_timeout_secs {
        out.push("approval_timeout_secs", seconds);
    }
    if let Some(role) = &document.escalation_role {
        out.push("approval", Json::object().with("escalation_role", role.as_str()));
    }
    out.push("observe", located(&document.observe));
    if let Some(anomalies) = &document.anomalies {
        out.push("anomalies", render_anomalies(anomalies));
    }
    out
}

fn render_anomalies(section: &AnomalySection) -> Json {
    let part = |then: Option<Response>| match then {
        None => Json::from("off"),
        Some(then) => Json::object().with(
            "then",
            match then {
                Response::Alarm => "alarm",
                Response::Ask => "ask",
                Response::Deny => "deny",
                Response::Suspend => "suspend",
            },
        ),
    };
    let mut loops = part(section.loops.map(|watch| watch.then));
    if let Some(watch) = section.loops {
        loops.push("count", watch.count);
        loops.push("window", format!("{}s", watch.window_secs));
    }
    let mut spikes = part(section.spikes.map(|watch| watch.then));
    if let Some(watch) = section.spikes {
        spikes.push("sigma", Json::Number(Decimal::new(i64::from(watch.sigma_tenths), 1).to_string().into()));
        spikes.push("at_least", watch.at_least);
    }
    let mut leaks = part(section.leaks.map(|watch| watch.then));
    if let Some(watch) = section.leaks {
        leaks.push("findings", watch.findings);
    }
    Json::object()
        .with("loops", loops)
        .with("spikes", spikes)
        .with("leaks", leaks)
        .with("unknown_hosts", part(section.unknown_hosts))
        .with("exfiltration", part(section.exfiltration))
}

fn render_rule(rule: &Rule) -> Json {
    let strings =
        |items: &[String]| Json::Array(items.iter().map(|item| Json::String(item.clone())).collect());
    let mut out = Json::object()
        .with("id", rule.id.as_str())
        .with("then", rule.then.word())
        .with("reason", rule.reason.as_str());
    if let Some(when) = &rule.when {
        out.push("when", when.value.as_str());
    }
    if let Some(micros) = rule.expires_micros {
        out.push("expires", format!("{micros}us"));
    }
    if !rule.approvers.is_empty() {
        out.push("approvers", strings(&rule.approvers));
    }
    if let Some(milliseconds) = rule.retry_after_ms {
        out.push("retry_after", format!("{milliseconds}ms"));
    }
    if !rule.set.is_empty() {
        out.push("set", Json::Object(rule.set.clone()));
    }
    if let Some(paths) = &rule.paths {
        out.push("paths", strings(paths));
    }
    match rule.taints.as_slice() {
        [] => {}
        [taint] => out.push("taint", taint.as_str()),
        taints => out.push("taint", strings(taints)),
    }
    out
}

/// Block YAML, in the style of a person where the text permits it.
fn yaml(value: &Json, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    match value {
        Json::Array(items) if !items.is_empty() => {
            for item in items {
                out.extend([format!("\n{pad}-")]);
                yaml(item, indent + 2, out);
            }
        }
        Json::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                out.extend([format!("\n{pad}{}:", scalar(name))]);
                yaml(member, indent + 2, out);
            }
        }
        Json::String(text) if text.ends_with('\n') && !text.starts_with([' ', '\n']) => {
            out.push_str(" |");
            for line in text.lines() {
                out.extend([format!("\n{pad}  {line}")]);
            }
        }
        Json::String(text) => out.extend([format!(" {}", scalar(text))]),
        other => out.extend([format!(" {other}")]),
    }
}

fn scalar(text: &str) -> String {
    let plain = !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        && text != "null"
        && text != "true"
        && text != "false";
    if plain {
        text.to_owned()
    } else if text.contains(['\n', '\t']) {
        Json::String(text.to_owned()).to_string()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

fn without_positions(mut document: Document) -> Document {
    let nowhere = Position::default();
    document.default.iter_mut().for_each(|default| default.at = nowhere);
    document.modules.iter_mut().for_each(|module| module.at = nowhere);
    document.network_allowlist.iter_mut().flatten().for_each(|host| host.at = nowhere);
    document.tools.iter_mut().for_each(|tool| tool.at = nowhere);
    document.active_hours_at = nowhere;
    document.version_at = None;
    document.observe.iter_mut().for_each(|glob| glob.at = nowhere);
    document.anomalies.iter_mut().for_each(|section| section.at = nowhere);
    document.capabilities.iter_mut().for_each(|section| section.at = nowhere);
    if let Some(data) = &mut document.data {
        data.at = nowhere;
        data.sensitive_patterns.iter_mut().for_each(|pattern| pattern.at = nowhere);
    }
    for rule in document.rules.iter_mut().flatten() {
        rule.at = nowhere;
        rule.when.iter_mut().for_each(|when| when.at = nowhere);
    }
    document
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_document_reads_back_from_yaml_and_from_json(document in document()) {
        let tree = render(&document);
        let mut block = String::new();
        yaml(&tree, 0, &mut block);
        for source in [tree.to_string(), block] {
            let read = read_document("p", source.as_bytes());
            let read = read.map(without_positions).map_err(|problems| format!("{problems:#?}\n{source}"));
            prop_assert_eq!(read.as_ref(), Ok(&document), "{}", source);
        }
    }

    #[test]
    fn no_source_makes_the_reader_fail(source in vec(any::<u8>(), 0..200)) {
        any_input::document(&source).unwrap();
    }

    #[test]
    fn no_yaml_like_source_makes_the_reader_fail(source in "[-a: \n\t\\[\\]{},|>&*!?%#'\"0-3@`]{0,60}") {
        any_input::document(source.as_bytes()).unwrap();
    }

    #[test]
    fn no_broken_document_makes_the_reader_fail(document in document(), cut in any::<prop::sample::Index>(), noise in "[-a: \n\\[\\]{},|>&*!?#'\"]{0,4}") {
        let mut block = String::new();
        yaml(&render(&document), 0, &mut block);
        let at = block.char_indices().map(|(index, _)| index).nth(cut.index(block.chars().count())).unwrap_or(0);
        block.insert_str(at, &noise);
        any_input::document(block.as_bytes()).unwrap();
    }
}
