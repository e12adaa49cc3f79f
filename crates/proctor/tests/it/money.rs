//! Money: grants are for what was asked about, and reports of agents give no budget back that the price list says is spent.

use crate::support::{Folder, Gate, text};

const ASKS: &str = "version: \"1\"\ndefault: allow\nbudget: { daily_limit_usd: 100 }\n\
    rules:\n  - { id: pays, when: 'action.tool == \"pay\"', then: ask, expires: 1h }\n";

fn pay(cost: &str, tokens: u64) -> String {
    format!(r#"{{"tool":"pay","args":{{"to":"x"}},"cost_usd":"{cost}","tokens":{tokens},"session":"s"}}"#)
}

fn is_sound(folder: &Folder) {
    let fsck = folder.run(&["audit", "fsck"]);
    assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stdout));
    let (report, _) = folder.verify(None);
    assert_eq!(report.pointer("/derivation/different").unwrap().as_u64(), Some(0), "{report}");
}

#[test]
fn a_grant_is_for_no_more_than_the_cost_that_was_asked_about() {
    let folder = Folder::with_approver(ASKS);
    let mut gate = Gate::start(&folder, &[]);
    let asked = gate.ask(&pay("0.01", 10));
    assert_eq!(text(&asked, "decision"), "ask", "{asked}");
    let allow = |id: &str| assert!(folder.run(&["approve", "allow", id]).status.success());
    allow(text(&asked, "approval_id"));
    // Dearer in one unit or the other: another question.
    for dearer in [pay("4.99", 10), pay("0.01", 11)] {
        let answer = gate.ask(&dearer);
        assert_eq!(text(&answer, "decision"), "ask", "{answer}");
        assert_ne!(text(&answer, "approval_id"), text(&asked, "approval_id"));
        assert!(text(&answer, "reason").contains("was for at most 0.01 USD and 10 tokens"), "{answer}");
        // The question that stands now is about the dearer action; a grant for it covers the cheaper one.
        let again = gate.ask(&pay("0.01", 10));
        assert_eq!(text(&again, "approval_id"), text(&answer, "approval_id"));
        allow(text(&answer, "approval_id"));
        assert_eq!(text(&gate.ask(&dearer), "decision"), "allow");
        let fresh = gate.ask(&pay("0.01", 10));
        assert_eq!(text(&fresh, "decision"), "ask", "{fresh}");
        allow(text(&fresh, "approval_id"));
    }
    assert_eq!(text(&gate.ask(&pay("0.005", 3)), "decision"), "allow");
    assert_eq!(gate.end().0, 0);
    is_sound(&folder);
}

/// Calls of 0.90 USD each, of which the agent says that they cost nothing; the number that is let through.
fn free_calls(budget: &str, call: &str) -> usize {
    let folder = Folder::with_policy(&format!("version: \"1\"\ndefault: allow\nbudget: {budget}\n"));
    let mut gate = Gate::start(&folder, &[]);
    let mut through = 0;
    for _ in 0..6 {
        let answer = gate.ask(call);
        if text(&answer, "decision") == "allow" {
            through += 1;
            let id = text(&answer, "decision_id");
            gate.ask(&format!(
                r#"{{"outcome":{{"decision_id":"{id}","ok":true,"cost_usd":"0","tokens":0}}}}"#
            ));
        }
    }
    assert_eq!(gate.end().0, 0);
    is_sound(&folder);
    through
}

#[test]
fn a_report_gives_no_budget_back_that_the_price_list_says_is_spent() {
    let listed = r#"{"kind":"llm_call","model":"gpt-4","tokens":30000,"text":"x"}"#;
    let said = r#"{"tool":"search","args":{},"cost_usd":"0.90"}"#;
    for call in [listed, said] {
        // The call that crosses the limit is let through.
        assert_eq!(free_calls("{ daily_limit_usd: 1 }", call), 2, "{call}");
        assert_eq!(free_calls("{ daily_limit_usd: 1, trust_reports: true }", call), 6, "{call}");
    }
    // Tokens, too.
    assert_eq!(free_calls("{ tokens: { daily: 40000 } }", listed), 2);
    assert_eq!(free_calls("{ tokens: { daily: 40000 }, trust_reports: true }", listed), 6);
    // An estimate above the list comes down to the list.
    let dear = r#"{"kind":"llm_call","model":"gpt-4","tokens":1000,"cost_usd":"0.90","text":"x"}"#;
    assert_eq!(free_calls("{ daily_limit_usd: 1 }", dear), 6);
}
