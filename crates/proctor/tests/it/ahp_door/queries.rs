//! Questions: answered, recorded as one observation, and nothing changes by them.

use proctor_core::json::Json;

use crate::ahp_door::POLICY;
use crate::support::harness::{Event, Harness, before, of_kind, records};
use crate::support::{Folder, text};

#[test]
fn may_i_tells_what_the_answer_would_be_and_asks_nobody() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    harness.settle();
    let start = records(&folder).len();
    let questions = [
        (r#"{"tool_name":"bash","arguments":{"command":"ls"}}"#, true, "allow by `commands`"),
        (r#"{"tool":"bash","args":{"command":"rm -r x"}}"#, false, "Nothing is deleted here."),
        (r#"{"tool":"deploy"}"#, false, "ask by `deploys`"),
        (r#"{"tool":"search","args":{"limit":99}}"#, false, "modify by `short-searches`"),
        (r#"{"tool":"later"}"#, false, "defer by `later`"),
        (r#"{"tool":"teleport"}"#, false, "deny by `default`"),
        (r#"{"tool":"bash","tool_name":"deploy"}"#, false, "two different things"),
    ];
    for (payload, allowed, reason) in questions {
        let answer = harness.query("may_i", payload);
        assert_eq!(answer["answer"], Json::Bool(allowed), "{payload}: {answer}");
        assert!(text(&answer, "reason").contains(reason), "{payload}: {answer}");
    }
    let asked = harness.query("should_i_proceed", r#"{"tool":"deploy"}"#);
    assert!(asked["alternatives"].as_array().is_some_and(|others| !others.is_empty()), "{asked}");
    let all = records(&folder);
    assert_eq!(all.len(), start + questions.len() + 1, "one record for each question");
    assert_eq!(of_kind(&all, "decision").len(), 0);
    assert_eq!(of_kind(&all, "observation").len(), questions.len() + 2);
    assert_eq!(folder.json(&["approve", "list", "--all", "--json"]).len(), 0, "nobody was asked");
    // What was considered is not remembered as done or denied.
    assert_eq!(harness.word(&before("deploy", "{}")), "escalate");
    harness.close();
}

#[test]
fn the_policy_is_told_in_words() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    let answer = harness.query("policy", "{}")["answer"].clone();
    assert!(!text(&answer, "digest").is_empty(), "{answer}");
    let document = &answer["documents"].as_array().unwrap()[0];
    assert_eq!(text(document, "default"), "deny");
    let rules = document["rules"].as_array().unwrap();
    assert_eq!(
        (text(&rules[0], "id"), text(&rules[0], "then"), text(&rules[0], "reason")),
        ("no-delete", "deny", "Nothing is deleted here.")
    );
    harness.close();
}

#[test]
fn the_budget_is_told_after_spending() {
    let policy = "version: \"1\"\ndefault: allow\nbudget:\n  daily_limit_usd: 5\n  tokens: { daily: 1000 }\n";
    let folder = Folder::with_policy(policy);
    let mut harness = Harness::start(&folder);
    let limits = |harness: &mut Harness, payload: &str| {
        harness.query("budget_left", payload)["answer"]["limits"].as_array().unwrap().to_vec()
    };
    let number = |limit: &Json, name: &str| limit[name].to_string();
    let untouched = limits(&mut harness, r#"{"unit":"usd"}"#);
    assert_eq!(untouched.len(), 1, "{untouched:?}");
    assert_eq!((number(&untouched[0], "most"), number(&untouched[0], "left")), ("5".into(), "5".into()));
    let prompt = Event::new("pre_prompt", r#"{"prompt":"hi","tokens":300,"cost_usd":"1.25"}"#);
    assert_eq!(harness.word(&prompt), "allow");
    let spent = limits(&mut harness, r#"{"unit":"usd"}"#);
    assert_eq!(
        (number(&spent[0], "spent"), number(&spent[0], "left")),
        ("1.25".into(), "3.75".into()),
        "{spent:?}"
    );
    let all = limits(&mut harness, "null");
    assert_eq!(all.len(), 2, "{all:?}");
    let tokens = all.iter().find(|limit| text(limit, "unit") == "tokens").unwrap();
    assert_eq!((number(tokens, "spent"), number(tokens, "left")), ("300".into(), "700".into()));
    harness.close();
}

#[test]
fn the_status_of_an_approval_is_told_to_the_one_who_asked() {
    let folder = Folder::with_approver(POLICY);
    let mut harness = Harness::start(&folder);
    harness.settle();
    let mut other = Harness::start_with(&folder, &["--agent", "other"]);
    let deploy = before("deploy", "{}");
    let status = |harness: &mut Harness, id: &str| {
        let answer = harness.query("approval", &format!(r#"{{"approval_id":"{id}"}}"#));
        text(&answer["answer"], "status").to_owned()
    };
    let first = text(&harness.ask(&deploy), "approval_id").to_owned();
    assert_eq!(status(&mut harness, &first), "waiting");
    let strangers = other.query("approval_status", &format!("\"{first}\""));
    assert_eq!(strangers["answer"], Json::Null, "{strangers}");
    assert!(text(&strangers, "reason").contains("not one of yours"), "{strangers}");
    assert!(folder.run(&["approve", "allow", &first]).status.success());
    assert_eq!(status(&mut harness, &first), "granted");
    assert_eq!(harness.word(&deploy), "allow");
    assert_eq!(status(&mut harness, &first), "used");

    let second = text(&harness.ask(&deploy), "approval_id").to_owned();
    assert!(folder.run(&["approve", "deny", &second, "--reason", "too late"]).status.success());
    let refused = harness.query("approval", &format!(r#"{{"approval_id":"{second}"}}"#));
    assert_eq!(text(&refused["answer"], "status"), "refused", "{refused}");
    assert!(text(&refused, "reason").contains("too late"), "{refused}");
    assert_eq!(harness.word(&deploy), "block");

    for unknown in [r#"{"approval_id":"x"}"#, "{}", "null", "7"] {
        let answer = harness.query("approval", unknown);
        assert_eq!(answer["answer"], Json::Null, "{unknown}: {answer}");
        assert!(!text(&answer, "reason").is_empty(), "{answer}");
    }
    assert_eq!(other.close().0, 0);
    harness.close();
}

#[test]
fn an_unknown_question_is_answered_with_the_known_ones() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    let answer = harness.query("weather", "{}");
    assert_eq!(answer["answer"], Json::Null, "{answer}");
    assert!(text(&answer, "reason").contains("`weather`"), "{answer}");
    let known: Vec<&str> =
        answer["alternatives"].as_array().unwrap().iter().filter_map(Json::as_str).collect();
    assert_eq!(known, ["may_i", "policy", "budget", "approval"]);
    harness.close();
}
