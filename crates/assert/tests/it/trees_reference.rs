//! The checks on traces and on trees of traces against slow and obvious ones, on all beginnings of random traces.

use proctor_assert::{Assertion, Live, Status, Tools, Trace, evaluate, inspect_tree};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// A trace as plain data.
#[derive(Debug, Clone)]
struct Tree {
    id: &'static str,
    parent: &'static str,
    agent: &'static str,
    input: Option<Value>,
    output: Option<Value>,
    /// Tokens, milliseconds, and quarters of a dollar, so that sums are exact.
    numbers: [Option<u8>; 3],
    steps: Vec<Node>,
}

#[derive(Debug, Clone)]
struct Node {
    kind: &'static str,
    name: &'static str,
    /// Alias of the step; empty if it has none.
    alias: &'static str,
    agent: &'static str,
    args: Option<Value>,
    result: Option<Value>,
    start: Option<u8>,
    end: Option<u8>,
    below: Option<Tree>,
}

const NAMES: [&str; 3] = ["x", "y", "z"];
/// Names that a spec may use: the names of steps, and one that only ever is another name.
const WANTED: [&str; 4] = ["x", "y", "z", "w"];
const ALIASES: [&str; 6] = ["", "", "", "x", "y", "w"];
const AGENTS: [&str; 4] = ["", "a", "b", "c"];
const IDS: [&str; 5] = ["", "t1", "t2", "t3", "t4"];

fn value() -> impl Strategy<Value = Value> {
    select(vec![
        json!(null),
        json!(""),
        json!(" "),
        json!("ö"),
        json!("Grün"),
        json!("say \"hi\"\n4"),
        json!("ORD-4"),
        json!("about 4."),
        json!("n4 45 -4"),
        json!("{\"k\":4}"),
        json!(4),
        json!(4.0),
        json!(45),
        json!(-4),
        json!(true),
        json!("untrue"),
        json!([]),
        json!([4, "ö"]),
        json!({"k": 4}),
        json!({"k": 4, "l": {"m": [4, 5]}}),
    ])
}

fn object() -> impl Strategy<Value = Value> {
    vec((select(vec!["k", "l", "m"]), value()), 0..3).prop_map(|members| {
        Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    })
}

fn body() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![1 => Just(None), 4 => object().prop_map(Some), 2 => value().prop_map(Some)]
}

/// Absent and `null` values are the same: both say nothing.
fn said(value: Option<Value>) -> Option<Value> {
    value.filter(|value| !value.is_null())
}

fn tree(depth: u32) -> BoxedStrategy<Tree> {
    let length = if depth == 3 { 0..10_usize } else { 0..3_usize };
    let head = (
        select(&IDS),
        select(&IDS),
        select(&AGENTS),
        body(),
        body(),
        [option::of(0..9_u8), option::of(0..9_u8), option::of(0..9_u8)],
    );
    (head, vec(node(depth), length))
        .prop_map(|((id, parent, agent, input, output, numbers), steps)| Tree {
            id,
            parent,
            agent,
            input: said(input),
            output: said(output),
            numbers,
            steps,
        })
        .boxed()
}

fn node(depth: u32) -> BoxedStrategy<Node> {
    let below = if depth == 0 { Just(None).boxed() } else { option::weighted(0.7, tree(depth - 1)).boxed() };
    let kind = select(vec!["agent_call", "agent_call", "tool_call", "llm_call"]);
    let times = (option::weighted(0.9, 0..30_u8), option::weighted(0.9, 10..40_u8));
    (
        kind,
        (select(&NAMES), select(&ALIASES)),
        prop_oneof![3 => Just(""), 1 => select(&AGENTS)],
        body(),
        body(),
        times,
        below,
    )
        .prop_map(|(kind, (name, alias), agent, args, result, (start, end), below)| Node {
            kind,
            name,
            alias,
            agent,
            args: said(args),
            result: said(result),
            start,
            end,
            below,
        })
        .boxed()
}

impl Tree {
    fn json(&self) -> Value {
        let mut members = Map::new();
        members.insert("trace_id".to_owned(), json!(self.id));
        members.insert("parent_trace_id".to_owned(), json!(self.parent));
        members.insert("agent_id".to_owned(), json!(self.agent));
        members.insert("input".to_owned(), json!(self.input));
        members.insert("output".to_owned(), json!(self.output));
        let [tokens, time, money] = self.numbers;
        members.insert(
            "metadata".to_owned(),
            json!({"total_tokens": tokens, "latency_ms": time, "cost_usd": money.map(|quarters| f64::from(quarters) / 4.0)}),
        );
        members.insert("steps".to_owned(), self.steps.iter().map(Node::json).collect());
        Value::Object(members)
    }

    /// The same trace, but only its first steps.
    fn cut(&self, steps: usize) -> Tree {
        Tree { steps: self.steps[..steps].to_vec(), ..self.clone() }
    }

    /// All traces, each with the agent above it.
    fn traces(&self) -> Vec<(&Tree, Option<&'static str>)> {
        let mut all = vec![(self, None)];
        for below in self.steps.iter().filter_map(Node::child) {
            let mut lower = below.traces();
            lower[0].1 = Some(self.agent);
            all.extend(lower);
        }
        all
    }

    fn depth(&self) -> usize {
        self.steps.iter().filter_map(Node::child).map(|below| below.depth() + 1).max().unwrap_or(0)
    }

    /// All steps, each with its agent.
    fn all_steps(&self) -> Vec<(&Node, &'static str)> {
        let traces = self.traces();
        let with_agent =
            |tree: &Tree, node: &Node| if node.agent.is_empty() { tree.agent } else { node.agent };
        traces
            .iter()
            .flat_map(|(tree, _)| tree.steps.iter().map(|node| (node, with_agent(tree, node))))
            .collect()
    }

    /// Whether a step of this trace has this name.
    fn calls(&self, name: &str) -> bool {
        self.steps.iter().any(|step| step.is_named(name))
    }
}

impl Node {
    fn json(&self) -> Value {
        json!({"type": self.kind, "name": self.name, "alias": self.alias, "agent_id": self.agent, "args": self.args, "result": self.result,
               "started_at_ms": self.start, "ended_at_ms": self.end, "sub_trace": self.below.as_ref().map(Tree::json)})
    }

    /// The names that it has: one or two.
    fn names(&self) -> Vec<&'static str> {
        [self.name, self.alias].into_iter().filter(|name| !name.is_empty()).collect()
    }

    fn is_named(&self, name: &str) -> bool {
        self.names().contains(&name)
    }

    fn child(&self) -> Option<&Tree> {
        self.below.as_ref().filter(|_| self.kind == "agent_call")
    }
}

/// Spellings of the same JSON that a client may use.
#[derive(Debug, Clone, Copy)]
enum Style {
    Compact,
    Spaced,
    Ascii,
}

fn style() -> impl Strategy<Value = Style> {
    select(vec![Style::Compact, Style::Spaced, Style::Ascii])
}

fn write(value: &Value, style: Style) -> String {
    match style {
        Style::Compact => value.to_string(),
        Style::Spaced => serde_json::to_string_pretty(value).unwrap(),
        Style::Ascii => {
            value
                .to_string()
                .chars()
                .map(|letter| {
                    if letter.is_ascii() {
                        letter.to_string()
                    } else {
                        format!("\\u{:04x}", u32::from(letter))
                    }
                })
                .collect()
        }
    }
}

type Reference<'p> = Box<dyn Fn(&Tree) -> bool + 'p>;

/// Compares on every beginning of the trace: the slow check, the whole at once, and step by step.
fn compare(
    tree: &Tree,
    style: Style,
    kind: &str,
    soft: bool,
    checks: &[(Value, Reference<'_>)],
) -> Result<(), TestCaseError> {
    let tools = Tools::default();
    let text = write(&tree.json(), style);
    let trace = Trace::parse(&text).unwrap();
    let specs: Vec<String> = checks
        .iter()
        .map(|(spec, _)| {
            let mut spec = spec.clone();
            spec["soft"] = json!(soft);
            spec.to_string()
        })
        .collect();
    let assertions: Vec<Assertion<'_>> =
        specs.iter().map(|spec| Assertion::new("a", kind, spec).unwrap()).collect();
    let mut live = Live::new(&assertions, &tools);
    for steps in 0..=trace.steps.len() {
        if let Some(last) = steps.checked_sub(1) {
            live.step(&trace.steps[last]);
        }
        let beginning = Trace { head: trace.head.clone(), steps: trace.steps[..steps].to_vec() };
        let model = tree.cut(steps);
        let verdicts = live.verdicts(&trace.head);
        for ((assertion, (spec, reference)), verdict) in assertions.iter().zip(checks).zip(verdicts) {
            let verdict = verdict.unwrap();
            prop_assert_eq!(
                &evaluate(&beginning, assertion, &tools),
                &verdict,
                "{} after {} steps",
                spec,
                steps
            );
            let expected = match (reference(&model), soft) {
                (true, _) => Status::Pass,
                (false, true) => Status::SoftFail,
                (false, false) => Status::HardFail,
            };
            prop_assert_eq!(
                verdict.status,
                expected,
                "{} after {} steps of {}: {:?}",
                spec,
                steps,
                write(&tree.json(), style),
                verdict
            );
            prop_assert_eq!(
                verdict.path.is_empty() || verdict.expected.is_empty() || verdict.suggestion.is_empty(),
                verdict.status.passed()
            );
        }
    }
    Ok(())
}

fn check<'p>(spec: Value, reference: impl Fn(&Tree) -> bool + 'p) -> (Value, Reference<'p>) {
    (spec, Box::new(reference))
}

fn count(tree: &Tree, name: &str) -> usize {
    tree.steps.iter().filter(|step| step.is_named(name)).count()
}

fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| contains(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len()
                && whole.iter().zip(part).all(|(whole, part)| contains(whole, part) && contains(part, whole))
        }
        (Value::Number(whole), Value::Number(part)) => {
            (whole.as_f64().unwrap() - part.as_f64().unwrap()).abs() < 1e-9
        }
        _ => whole == part,
    }
}

/// Whether arguments say what is excluded.
fn mentions(found: &Value, sought: &Value, case_sensitive: bool) -> bool {
    let fold = |text: &str| if case_sensitive { text.to_owned() } else { text.to_lowercase() };
    let mentions = |found: &Value, sought: &Value| mentions(found, sought, case_sensitive);
    match (found, sought) {
        (Value::Object(found), Value::Object(sought)) => {
            sought.iter().all(|(name, sought)| found.get(name).is_some_and(|found| mentions(found, sought)))
        }
        (Value::Array(found), Value::Array(sought)) => {
            sought.iter().all(|sought| found.iter().any(|found| mentions(found, sought)))
        }
        (Value::String(found), Value::String(sought)) => fold(found).contains(&fold(sought)),
        (Value::Array(found), _) => found.iter().any(|found| mentions(found, sought)),
        (Value::Object(found), Value::String(_)) => found.values().any(|found| mentions(found, sought)),
        _ => contains(found, sought) && contains(sought, found),
    }
}

proptest! {
    #[test]
    fn sequences(
        tree in tree(3),
        style in style(),
        soft in any::<bool>(),
        tools in vec(select(&WANTED), 1..6),
        tool in select(&WANTED),
        most in 0..4_usize,
        pairs in vec((select(&WANTED), select(&WANTED)), 1..14),
        args in object(),
        result in value(),
    ) {
        let every = |tree: &Tree| tools.iter().all(|tool| tree.calls(tool));
        let none = |tree: &Tree| !tools.iter().any(|tool| tree.calls(tool));
        let listed = |tree: &Tree| tree.steps.windows(2).all(|steps| {
            pairs.iter().any(|(from, to)| steps[0].is_named(from) && steps[1].is_named(to))
        });
        let has = |step: &Node| contains(step.args.as_ref().unwrap_or(&json!({})), &args);
        let calls = |tree: &Tree| tree.steps.iter().filter(|step| step.is_named(tool)).cloned().collect::<Vec<_>>();
        let objects: Vec<Value> = pairs.iter().map(|(from, to)| json!({"from": from, "to": to})).collect();
        let mut checks = vec![
            check(json!({"check": "contains_in_order", "tools": tools}), |tree| {
                let mut steps = tree.steps.iter();
                tools.iter().all(|tool| steps.any(|step| step.is_named(tool)))
            }),
            check(json!({"check": "exact_order", "tools": tools}), |tree| {
                // Of two names that are both asked for, the first counts.
                let name = |step: &Node| step.names().into_iter().find(|name| tools.contains(name)).unwrap_or("");
                let names: Vec<&str> = tree.steps.iter().map(name).collect();
                names.windows(tools.len()).any(|run| run == tools)
            }),
            check(json!({"check": "loop_detection", "tool": tool, "max_repetitions": most + 1}), |tree| count(tree, tool) <= most + 1),
            check(json!({"check": "loop_detection", "tool_name": tool, "max": most + 1}), |tree| count(tree, tool) <= most + 1),
            check(json!({"check": "max_calls", "tool": tool, "max": most}), |tree| count(tree, tool) <= most),
            check(json!({"check": "max_steps", "max": most}), |tree| tree.steps.len() <= most),
            check(json!({"check": "no_duplicates"}), |tree| NAMES.iter().all(|name| tree.steps.iter().filter(|step| step.name == *name).count() < 2)),
            check(json!({"check": "required_tools", "tools": tools}), every),
            check(json!({"check": "contains", "tool_names": tools}), every),
            check(json!({"check": "contains", "tool_name": tool}), |tree| count(tree, tool) > 0),
            check(json!({"check": "forbidden_tools", "tools": tools}), none),
            check(json!({"check": "not_contains", "tools": tools}), none),
            check(json!({"check": "not_contains", "tool": tool}), |tree| count(tree, tool) == 0),
            check(json!({"check": "transitions", "transitions": pairs}), listed),
            check(json!({"check": "state_transitions", "transitions": objects}), listed),
            check(json!({"check": "argument_match", "tool": tool, "args": args}), |tree| calls(tree).iter().any(has)),
            check(json!({"check": "args_match", "tool": tool, "args": args, "all": true}), |tree| {
                let calls = calls(tree);
                !calls.is_empty() && calls.iter().all(has)
            }),
        ];
        checks.push(check(json!({"check": "argument_match", "tool": tool, "result": result}), |tree| {
            calls(tree).iter().any(|step| contains(step.result.as_ref().unwrap_or(&Value::Null), &result))
        }));
        checks.push(check(json!({"check": "argument_match", "tool": tool, "args": null, "all": true}), |tree| {
            let calls = calls(tree);
            !calls.is_empty() && calls.iter().all(|step| step.args.is_none())
        }));
        compare(&tree, style, "trace", soft, &checks)?;
    }

    /// No step of any trace of the tree may make the call; arguments without names cannot be decided.
    #[test]
    fn excluded_calls(
        tree in tree(3),
        style in style(),
        soft in any::<bool>(),
        case_sensitive in any::<bool>(),
        tool in select(&WANTED),
        args in option::of(object()),
    ) {
        let mut spec = json!({"check": "no_call", "tool": tool, "soft": soft});
        if let Some(args) = &args {
            spec["args"] = args.clone();
            spec["case_sensitive"] = case_sensitive.into();
        }
        let (text, spec) = (write(&tree.json(), style), spec.to_string());
        let trace = Trace::parse(&text).unwrap();
        let assertion = Assertion::new("a", "trace", &spec).unwrap();
        let mut live = Live::new(std::slice::from_ref(&assertion), &Tools::default());
        for steps in 0..=trace.steps.len() {
            if let Some(last) = steps.checked_sub(1) {
                live.step(&trace.steps[last]);
            }
            let model = tree.cut(steps);
            let calls: Vec<&Node> = model.all_steps().into_iter().map(|(step, _)| step).filter(|step| step.is_named(tool)).collect();
            let makes = |step: &&Node| match (&args, &step.args) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(args), Some(found)) => found.is_object() && mentions(found, args, case_sensitive),
            };
            let undecided = args.is_some() && calls.iter().any(|step| step.args.as_ref().is_some_and(|args| !args.is_object()));
            let expected = match (calls.iter().any(makes), undecided, soft) {
                _ if args.as_ref().is_some_and(|args| args.as_object().unwrap().is_empty()) => Status::Error,
                (true, _, false) => Status::HardFail,
                (_, true, _) => Status::Error,
                (true, false, true) => Status::SoftFail,
                (false, false, _) => Status::Pass,
            };
            let verdicts = live.verdicts(&trace.head);
            let beginning = Trace { head: trace.head.clone(), steps: trace.steps[..steps].to_vec() };
            prop_assert_eq!(verdicts[0].as_ref(), Some(&evaluate(&beginning, &assertion, &Tools::default())));
            prop_assert_eq!(verdicts[0].as_ref().map(|verdict| verdict.status), Some(expected), "{} after {} steps of {}", spec, steps, text);
        }
    }

    /// Few names and many steps, so that a run often begins within another that breaks off.
    #[test]
    fn runs(names in vec(select(&NAMES[..2]), 0..40), tools in vec(select(&NAMES[..2]), 1..7)) {
        let steps: Vec<Value> = names.iter().map(|name| json!({"type": "tool_call", "name": name})).collect();
        let text = json!({"trace_id": "t", "steps": steps}).to_string();
        let spec = json!({"check": "exact_order", "tools": tools}).to_string();
        let verdict = evaluate(&Trace::parse(&text).unwrap(), &Assertion::new("a", "trace", &spec).unwrap(), &Tools::default());
        prop_assert_eq!(verdict.status.passed(), names.windows(tools.len()).any(|run| run == tools));
    }

    #[test]
    fn agents(
        tree in tree(3),
        style in style(),
        soft in any::<bool>(),
        agents in vec(select(&AGENTS[1..]), 1..4),
        agent in select(&AGENTS[1..]),
        most in 1..4_usize,
        wanted in select(vec!["ö", "Ö", "GRÜN", "grün", "\"hi\"\n", "4", "k", "\"k\": 4", "\"k\":4", "\\u00f6", "\\", "[4,"]),
        case_sensitive in any::<bool>(),
        pairs in vec((select(&AGENTS), select(&AGENTS)), 1..16),
        tools in vec(select(&WANTED), 1..4),
    ) {
        let acts = |tree: &Tree, agent: &str| tree.traces().iter().any(|(trace, _)| trace.agent == agent);
        let checks = [
            check(json!({"check": "agent_called", "agent_id": agent}), |tree| acts(tree, agent)),
            check(json!({"check": "agent_called", "agents": agents}), |tree| agents.iter().all(|agent| acts(tree, agent))),
            check(json!({"check": "delegation_depth", "max_depth": most}), |tree| tree.depth() <= most),
            check(
                json!({"check": "agent_output_contains", "agent_id": agent, "value": wanted, "case_sensitive": case_sensitive}),
                |tree| {
                    let lower = |text: &str| if case_sensitive { text.to_owned() } else { text.to_lowercase() };
                    // Written within a string of a compact JSON text.
                    let quoted = json!(wanted).to_string();
                    let quoted = &quoted[1..quoted.len() - 1];
                    tree.traces().iter().filter(|(trace, _)| trace.agent == agent).any(|(trace, _)| {
                        trace.output.as_ref().is_some_and(|output| {
                            let (compact, sent) = (lower(&output.to_string()), lower(&write(output, style)));
                            [wanted, quoted].iter().any(|form| compact.contains(&lower(form)) || sent.contains(&lower(form)))
                        })
                    })
                },
            ),
            check(json!({"check": "follows_transitions", "transitions": pairs}), |tree| {
                tree.traces().iter().all(|(trace, above)| above.is_none_or(|above| pairs.contains(&(above, trace.agent))))
            }),
            check(json!({"check": "all_tools_called", "tools": tools}), |tree| {
                tools.iter().all(|tool| tree.all_steps().iter().any(|(step, _)| step.is_named(tool)))
            }),
        ];
        compare(&tree, style, "trace_tree", soft, &checks)?;
    }

    #[test]
    fn data_flow(
        tree in flowing(),
        style in style(),
        soft in any::<bool>(),
        from in select(&AGENTS[1..3]),
        to in select(&AGENTS[1..3]),
        field in select(vec!["k", "k", "l"]),
    ) {
        let spec = json!({"check": "cross_agent_data_flow", "from_agent": from, "to_agent": to, "field": field});
        let checks = [check(spec, |tree| {
            let traces = tree.traces();
            traces.iter().filter(|(trace, _)| trace.agent == from).any(|(source, _)| {
                let Some(value) = source.output.as_ref().and_then(|output| output.get(field)) else { return false };
                traces.iter().filter(|(trace, _)| trace.agent == to).any(|(target, _)| {
                    target.input.as_ref().is_some_and(|input| flows(value, input))
                })
            })
        })];
        compare(&tree, style, "trace_tree", soft, &checks)?;
    }

    #[test]
    fn sums(tree in tree(3), style in style(), soft in any::<bool>(), quarters in 0..80_u8) {
        let value = f64::from(quarters) / 4.0;
        let mut checks = Vec::new();
        for (index, name, unit) in [(0, "aggregate_tokens", 1.0), (1, "aggregate_latency", 1.0), (2, "aggregate_cost", 0.25)] {
            let sum = move |tree: &Tree| {
                let numbers = tree.traces().iter().filter_map(|(trace, _)| trace.numbers[index]).collect::<Vec<u8>>();
                // If no trace says it there is no sum, which is in no relation to anything.
                let sum = numbers.iter().map(|number| f64::from(*number) * unit).sum::<f64>();
                if numbers.is_empty() { f64::NAN } else { sum }
            };
            let with = |operator: &str| json!({"check": name, "operator": operator, "value": value});
            checks.push(check(with("lt"), move |tree| sum(tree) < value));
            checks.push(check(with("lte"), move |tree| sum(tree) <= value));
            checks.push(check(with("gt"), move |tree| sum(tree) > value));
            checks.push(check(with("gte"), move |tree| sum(tree) >= value));
            checks.push(check(with("eq"), move |tree| (sum(tree) - value).abs() < 0.01));
            checks.push(check(json!({"check": name, "op": "between", "min": value, "max": value + 3.0}), move |tree| {
                (value..=value + 3.0).contains(&sum(tree))
            }));
        }
        compare(&tree, style, "trace_tree", soft, &checks)?;
    }

    #[test]
    fn times(
        tree in timed(),
        style in style(),
        soft in any::<bool>(),
        (groups, first, second) in groups(),
        most in 1..80_u8,
    ) {
        // The times of an agent one of whose steps ends before it begins are of no use.
        let times = |tree: &Tree, agent: &str, time: fn(&Node) -> Option<u8>| {
            let steps = tree.all_steps();
            let steps = steps.into_iter().filter(|(_, whose)| *whose == agent).map(|(step, _)| step);
            // A delegation without times says nothing about when its agent acted.
            let timeless = |step: &Node| step.kind == "agent_call" && step.start.is_none() && step.end.is_none();
            let steps: Vec<&Node> = steps.filter(|step| !timeless(step)).collect();
            let backwards = |step: &&&Node| step.start.zip(step.end).is_some_and(|(start, end)| end < start);
            all(steps.iter().map(|step| time(step))).filter(|_| steps.iter().find(backwards).is_none())
        };
        let starts = |tree: &Tree, agent: &str| times(tree, agent, |step| step.start);
        let ends = |tree: &Tree, agent: &str| times(tree, agent, |step| step.end);
        let before = |tree: &Tree, one: &str, two: &str| match (ends(tree, one), starts(tree, two)) {
            (Some(ends), Some(starts)) => ends.iter().all(|end| starts.iter().all(|start| end < start)),
            _ => false,
        };
        let checks = [
            check(json!({"check": "agent_ordered_before", "agent_a": first, "agent_b": second}), |tree| before(tree, first, second)),
            check(json!({"check": "agents_overlap", "agent_a": first, "agent_b": second}), |tree| {
                let span = |agent| Some((starts(tree, agent)?.into_iter().min()?, ends(tree, agent)?.into_iter().max()?));
                match (span(first), span(second)) {
                    (Some(one), Some(two)) => !(one.1 <= two.0 || two.1 <= one.0),
                    _ => false,
                }
            }),
            check(json!({"check": "agent_wall_time_under", "agent_id": first, "max_ms": most}), |tree| {
                let sum = |times: Vec<u8>| times.into_iter().map(i64::from).sum::<i64>();
                match (starts(tree, first), ends(tree, first)) {
                    (Some(starts), Some(ends)) => sum(ends) - sum(starts) < i64::from(most),
                    _ => false,
                }
            }),
            check(json!({"check": "ordered_agents", "groups": groups}), |tree| {
                groups.windows(2).all(|pair| pair[0].iter().all(|one| pair[1].iter().all(|two| before(tree, one, two))))
            }),
            check(json!({"check": "ordered_agents", "agents": [first, second]}), |tree| before(tree, first, second)),
        ];
        compare(&tree, style, "trace_tree", soft, &checks)?;
    }

    #[test]
    fn reports(tree in tree(3), style in style()) {
        let text = write(&tree.json(), style);
        let report = inspect_tree(&Trace::parse(&text).unwrap());
        let traces = tree.traces();
        let sum = |index: usize| traces.iter().filter_map(|(trace, _)| trace.numbers[index]).map(f64::from).sum::<f64>();
        let agents: Vec<&str> = traces.iter().map(|(trace, _)| trace.agent).filter(|agent| !agent.is_empty()).collect();
        prop_assert_eq!(report.agent_count, agents.len());
        prop_assert_eq!(&report.agent_ids, &agents);
        prop_assert_eq!(report.depth, tree.depth());
        let sums = [report.aggregate_tokens, report.aggregate_latency_ms, report.aggregate_cost_usd * 4.0];
        prop_assert_eq!(sums, [sum(0), sum(1), sum(2)]);
        prop_assert_eq!(report.valid, hangs_together(&tree));
        prop_assert_eq!(report.errors.len(), usize::from(!report.valid));
    }
}

/// Two or three groups of agents, no agent in two of them, and two agents that differ.
fn groups() -> impl Strategy<Value = (Vec<Vec<&'static str>>, &'static str, &'static str)> {
    (Just(AGENTS[1..].to_vec()).prop_shuffle(), 1..3_usize, any::<bool>()).prop_map(|(agents, cut, three)| {
        let groups = if three {
            agents.iter().map(|agent| vec![*agent]).collect()
        } else {
            vec![agents[..cut].to_vec(), agents[cut..].to_vec()]
        };
        (groups, agents[0], agents[2])
    })
}

/// Traces of two agents that say and hear something more often than not.
fn flowing() -> impl Strategy<Value = Tree> {
    (tree(3), vec((value(), value(), any::<[bool; 4]>()), 32)).prop_map(|(mut tree, words)| {
        speak(&mut tree, &mut words.into_iter());
        tree
    })
}

fn speak(tree: &mut Tree, words: &mut dyn Iterator<Item = (Value, Value, [bool; 4])>) {
    let Some((output, input, [speaks, hears, plain, first])) = words.next() else { return };
    tree.agent = if first { "a" } else { "b" };
    if speaks {
        tree.output = Some(json!({"k": output}));
    }
    if hears {
        tree.input = said(Some(if plain { input } else { json!({"n": [input]}) }));
    }
    for below in tree.steps.iter_mut().filter_map(|step| step.below.as_mut()) {
        speak(below, words);
    }
}

/// Traces whose agents often act one after the other, so that order is not only ever broken.
fn timed() -> impl Strategy<Value = Tree> {
    (tree(3), option::of(0..2_u8)).prop_map(|(mut tree, gap)| {
        if let Some(gap) = gap {
            advance(&mut tree, &mut 0, gap);
        }
        tree
    })
}

/// Lets each step begin when the one before it has ended, or this much later.
fn advance(tree: &mut Tree, clock: &mut u8, gap: u8) {
    for step in &mut tree.steps {
        step.start = step.start.map(|_| *clock);
        if let Some(below) = &mut step.below {
            advance(below, clock, gap);
        }
        *clock = clock.saturating_add(2);
        step.end = step.end.map(|_| *clock);
        *clock = clock.saturating_add(gap);
    }
}

/// The times of all steps: nothing if there is no step, or one does not say.
fn all(times: impl Iterator<Item = Option<u8>>) -> Option<Vec<u8>> {
    times.collect::<Option<Vec<u8>>>().filter(|times| !times.is_empty())
}

fn flows(value: &Value, input: &Value) -> bool {
    let (needle, text) = (value.to_string(), input.to_string());
    let within = |needle: &str| {
        let quoted = json!(needle).to_string();
        text.contains(&quoted[1..quoted.len() - 1])
    };
    match value {
        Value::Null => false,
        Value::String(value) => !value.trim().is_empty() && within(value),
        Value::Array(items) => !items.is_empty() && (text.contains(&needle) || within(&needle)),
        Value::Object(members) => !members.is_empty() && (text.contains(&needle) || within(&needle)),
        Value::Number(_) | Value::Bool(_) => leaves(input).iter().any(|leaf| match leaf {
            Value::String(text) => text
                .split(|letter: char| !letter.is_alphanumeric() && !"._+-".contains(letter))
                .filter_map(|word| serde_json::from_str::<Value>(word.trim_end_matches(['.', '-', '+'])).ok())
                .any(|word| contains(&word, value)),
            leaf => contains(leaf, value),
        }),
    }
}

/// All values without parts, and all names of members.
fn leaves(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items.iter().flat_map(leaves).collect(),
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| std::iter::once(json!(name)).chain(leaves(value)))
            .collect(),
        leaf => vec![leaf.clone()],
    }
}

fn hangs_together(tree: &Tree) -> bool {
    fn below(tree: &Tree) -> bool {
        tree.steps.iter().filter(|step| step.kind == "agent_call").all(|step| {
            step.below
                .as_ref()
                .is_some_and(|child| (child.parent.is_empty() || child.parent == tree.id) && below(child))
        })
    }
    let mut ids: Vec<&str> =
        tree.traces().iter().map(|(trace, _)| trace.id).filter(|id| !id.is_empty()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    ids.len() == all && tree.depth() <= 5 && below(tree)
}
