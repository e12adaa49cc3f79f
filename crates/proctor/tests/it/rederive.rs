//! Every decision on record can be derived again from what its record holds: a stream of actions of many shapes, under changing
//! policies and principals, with approvals asked, given, refused and expired.

use std::collections::BTreeMap;

use crate::support::{Folder, Gate, count, lines, seed, text};
use proctor_core::json::Json;
use proctor_core::random::SeededRandomness;

/// The policy of a round; what changes from round to round is what decisions depend on.
fn policy(round: usize) -> String {
    let limit = 40 + round % 3 * 30;
    let hosts = ["api.example.com", "*.example.com", "*"][round % 3];
    format!(
        r#"
version: "1"
default: {default}
approval_timeout_secs: 3600
network: {{ allowlist: ["{hosts}"] }}
tools:
  shell: {{ allow: true, limit_per_hour: {limit}00 }}
  search: {{ allow: true, limit_per_hour: {limit} }}
  pay: {{ allow: true, requires_approval_if: args.amount > {limit} AND args.currency == "USD" }}
  forbidden: {{ allow: false }}
data:
  sensitive_patterns: ['\bticket-[0-9]+\b']
budget:
  trust_reports: true
  daily_limit_usd: {usd}
  team_daily_limit_usd: 100000
  tokens: {{ daily: 2000000 }}
  calls: {{ daily: 1000000 }}
rules:
  - {{ id: no-delete, when: 'action.commands.exists(c, c.startsWith("rm "))', then: deny, reason: Nothing is deleted. }}
  - {{ id: no-system-files, when: 'action.writes.exists(p, p.startsWith("/etc/"))', then: ask, expires: 1h }}
  - {{ id: read-marks, when: 'action.tool == "read_customer"', then: allow, taint: [customer, read] }}
  - {{ id: marked-stay-inside, when: 'action.tool == "upload" && session.tainted("customer")', then: deny }}
  - {{ id: uploads, when: 'action.tool == "upload" && !session.called("read_*")', then: allow, taint: uploaded }}
  - {{ id: often, when: 'action.tool == "search" && session.count("search") > 4', then: defer, retry_after: 90s }}
  - {{ id: soon-again, when: 'action.tool == "upload" && agent.called("upload") && agent.since("upload") < duration("1ms")', then: ask, expires: 1h }}
  - {{ id: bad-record, when: 'action.tool == "deploy" && agent.denied_count("*") > 100000', then: deny }}
  - {{ id: deploys, when: 'action.tool == "deploy" && action.args.to == "prod"', then: ask, expires: 1h, reason: Deploying needs a person. }}
  - {{ id: quick-questions, when: 'action.tool == "deploy" && action.args.to == "test"', then: ask, expires: 5ms }}
  - {{ id: missing-member, when: 'action.args.deep.member == 3', then: deny }}
  - {{ id: short-searches, when: 'action.tool == "search"', then: modify, set: {{ /args/limit: {limit}, /args/note: {{ by: policy }} }} }}
  - {{ id: cut-tokens, when: 'action.tool == "send"', then: redact, paths: [$.args.token, "$.args.list[*]"] }}
  - {{ id: sends, when: 'action.tool == "send" || action.kind == "llm_call" || action.kind == "prompt"', then: allow }}
  - {{ id: found, when: 'action.findings.exists(f, f == "AwsAccessKey") && action.tool == "shell"', then: deny }}
  - {{ id: deep, when: 'action.depth > 3u || action.depth > 3', then: deny }}
  - {{ id: weekdays, when: 'action.tool == "nightly" && (time.weekday == "monday" || time.hour < 6)', then: allow }}
"#,
        default = ["deny", "ask", "deny"][round % 3],
        // Reached in some rounds and not in others, however many actions there are.
        usd = (10 + count(100_000) / 2500) * (1 + round % 3 * 3),
    )
}

/// A random line for the gate.
fn line(random: &SeededRandomness) -> String {
    let n = random.below(12);
    let session = random.below(40);
    let secret =
        ["", "", "", " sk-a1B2c3D4e5F6g7H8i9J0", " AKIAIOSFODNN7EXAMPLE", " ticket-77", " a.b@example.com"]
            [random.below(7) as usize];
    let action = match random.below(22) {
        0..4 => format!(r#""tool":"Bash","args":{{"command":"ls -l {n}{secret}"}},"cwd":"/w""#),
        4 => format!(r#""tool":"bash","args":{{"command":"sudo rm -rf /{n}{secret}"}}"#),
        5 => format!(r#""tool":"bash","args":{{"command":"echo {n} | tee /etc/x{n}"}},"cwd":"/w""#),
        6 => format!(r#""tool":"bash","args":{{"command":["curl","https://h{n}.example.com/{secret}"]}}"#),
        7 | 8 => format!(r#""tool":"search","args":{{"q":"x{n}{secret}","limit":{n}e3}}"#),
        9 => r#""tool":"read_customer","args":{"path":"/data/x"}"#.to_owned(),
        10 => format!(r#""tool":"upload","args":{{"to":"x{n}{secret}"}}"#),
        11 => format!(r#""tool":"pay","args":{{"amount":{}.50,"currency":"USD"}}"#, n * 20),
        12 => format!(r#""tool":"deploy","args":{{"to":"prod","n":{}}}"#, n % 4),
        13 => format!(r#""tool":"deploy","args":{{"to":"test","n":{}}}"#, n % 4),
        14 => format!(r#""tool":"send","args":{{"token":"t{n}","list":["a",{{"b":1}}],"text":"x{secret}"}}"#),
        15 | 16 => format!(
            r#""kind":"llm_call","model":"m{n}","cost_usd":"0.{n:02}","tokens":{},"text":"hello{secret}""#,
            n * 100
        ),
        17 => format!(
            r#""kind":"network_call","url":"https://h{n}.example.{}/p""#,
            ["com", "org"][n as usize % 2]
        ),
        18 => format!(r#""kind":"tool_result","tool":"bash","result":{{"out":"x{secret}","n":[1.50,{n}]}}"#),
        19 => format!(
            r#""kind":"file_operation","operation":"write","path":"../etc/x{n}","cwd":"/w","depth":{}"#,
            n % 6
        ),
        20 => format!(r#""tool":"{}","metadata":{{"why":"x"}}"#, ["forbidden", "nightly"][n as usize % 2]),
        _ => {
            return ["{", "{\"tol\":1}", "[]", "{\"tool\":\"a\",\"tool\":\"b\"}", "\"x\""][n as usize % 5]
                .to_owned();
        }
    };
    match random.below(10) {
        0 => format!("{{{action}}}"),
        1 => format!(r#"{{{action},"agent":"a{}","session":"s{session}"}}"#, n % 3),
        _ => format!(r#"{{{action},"session":"s{session}"}}"#),
    }
}

/// Reports outcomes for some decisions, so that budgets settle.
fn report_outcomes(folder: &Folder, args: &[&str], random: &SeededRandomness) {
    let mut gate = Gate::start(folder, args);
    for _ in 0..10 {
        let cents = random.below(90);
        let answer = gate.ask(&format!(
            r#"{{"kind":"llm_call","model":"m","cost_usd":"1.00","tokens":50,"session":"s{cents}"}}"#
        ));
        let id = text(&answer, "decision_id").to_owned();
        gate.ask(&format!(r#"{{"outcome":{{"decision_id":"{id}","cost_usd":"0.{cents:02}","tokens":70,"ok":true,"result":{{"n":1.0}}}}}}"#));
    }
    let (code, said) = gate.end();
    assert_eq!(code, 0, "{said}");
}

/// Decides some of what waits.
fn decide_approvals(folder: &Folder, round: usize) -> usize {
    let waiting = folder.json(&["approve", "list", "--json"]);
    for (index, approval) in waiting.iter().enumerate().take(4) {
        let verdict = if (index + round).is_multiple_of(3) { "deny" } else { "allow" };
        let output =
            folder.run(&["approve", verdict, text(approval, "approval_id"), "--reason", "as the test says"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    waiting.len().min(4)
}

fn derivation(report: &Json) -> (u64, u64, u64) {
    let number = |name: &str| report.pointer(&format!("/derivation/{name}")).and_then(Json::as_u64).unwrap();
    (number("same"), number("different"), number("undecidable"))
}

#[test]
fn every_decision_is_derived_again_and_the_same() {
    let random = SeededRandomness::new(seed());
    let folder = Folder::with_approver(&policy(0));
    // Some lines are no actions, and are alarms instead: so many are sent that the decisions alone are enough.
    let total = count(108_000);
    let rounds = 24;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut decided = 0;
    for round in 0..rounds {
        // A policy holds for three rounds, a principal for two: grants are used under other policies than they were asked under.
        folder.write("policy.yaml", &policy(round / 3));
        let agent = format!("agent-{}", round / 2 % 4);
        let args = ["--agent", &agent, "--team", ["blue", "red"][round % 2]];
        let input: String = (0..total / rounds).map(|_| line(&random) + "\n").collect();
        let mut all = vec!["gate"];
        all.extend(args);
        let output = folder.run_with(&all, &input);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let answers = lines(&output);
        assert_eq!(answers.len(), total / rounds);
        for answer in &answers {
            let rule = text(answer, "rule").split(':').next().unwrap_or_default().to_owned();
            *seen.entry(format!("{} {rule}", text(answer, "decision"))).or_default() += 1;
        }
        report_outcomes(&folder, &args, &random);
        decided += decide_approvals(&folder, round);
    }
    for (what, number) in &seen {
        println!("{number:>7}  {what}");
    }
    let shapes = ["allow", "deny", "ask", "defer", "modify", "redact"];
    for shape in shapes {
        assert!(seen.keys().any(|what| what.starts_with(shape)), "no {shape}");
    }
    assert!(decided > 10, "{decided} approvals decided");

    let (report, code) = folder.verify(None);
    assert_eq!(code, 13, "{report}");
    let decisions = folder.json(&["audit", "tail", "--json", "--kind", "decision", "-n", "100000000"]);
    assert_eq!(derivation(&report), (decisions.len() as u64, 0, 0), "{report}");
    let fsck = folder.run(&["audit", "fsck"]);
    assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stdout));
    println!("{} decisions, {decided} approvals decided", decisions.len());

    // What is erased cannot be derived; exactly that is counted, and everything else still can.
    for index in 0..3 {
        let chosen = &decisions[(index * 7919 + 11) % decisions.len()];
        let output = folder.run(&["audit", "erase", text(chosen, "id"), "--reason", "asked for"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let (report, code) = folder.verify(None);
    assert_eq!(code, 13, "{report}");
    assert_eq!(derivation(&report), (decisions.len() as u64 - 3, 0, 3), "{report}");
    assert_eq!(report.get("erased").and_then(Json::as_u64), Some(3));
}

#[test]
fn a_decision_whose_policy_was_erased_is_undecidable() {
    let folder = Folder::with_policy(&policy(0));
    let gate = |folder: &Folder, n: usize| {
        let input = "{\"tool\":\"bash\",\"args\":{\"command\":\"ls\"}}\n".repeat(n);
        assert_eq!(lines(&folder.run_with(&["gate"], &input)).len(), n);
    };
    gate(&folder, 5);
    folder.write("policy.yaml", &policy(1));
    gate(&folder, 7);
    let policies = folder.json(&["audit", "tail", "--json", "--kind", "policy"]);
    assert_eq!(policies.len(), 2);
    let output = folder.run(&["audit", "erase", text(&policies[0], "id"), "--reason", "asked for"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (report, _) = folder.verify(None);
    assert_eq!(derivation(&report), (7, 0, 5), "{report}");
}
