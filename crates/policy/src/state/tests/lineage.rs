//! Spending of an agent counts for those above it too.

use super::*;

fn family() -> Vec<Envelope> {
    vec![registered(0, "root", ""), registered(0, "mid", "root"), registered(0, "alice", "mid")]
}

fn costs(principal: &str, micros: i64, usd: &str) -> Envelope {
    Envelope {
        principal: principal.to_owned(),
        amounts: vec![amount("usd", usd), amount("calls", "1")],
        ..decision(Effect::Allow, micros, "shell")
    }
}

fn settled(principal: &str, linked: u64, micros: i64, usd: &str) -> Envelope {
    Envelope {
        principal: principal.to_owned(),
        amounts: vec![amount("usd", usd)],
        links: vec![linked],
        ..envelope(RecordKind::Settlement, micros)
    }
}

fn agent(code: &str, principal: &str, micros: i64) -> Envelope {
    Envelope {
        principal: principal.to_owned(),
        code: code.to_owned(),
        name: "operator".to_owned(),
        ..envelope(RecordKind::Agent, micros)
    }
}

/// Spending of the accounts of these principals, in dollars.
fn spent_by<const N: usize>(records: &[Envelope], principals: [&str; N]) -> [String; N] {
    let state = applied(records);
    // The rows are the state.
    let rows = state.rows();
    let loaded =
        State::load(rows.iter().map(|row| (row.fold, &row.key, row.value.clone().unwrap()))).unwrap();
    principals.map(|principal| {
        let question = Question::SpentAbove(principal.to_owned(), Unit::Usd, at(-DAY));
        let answer = ask(&state, HOUR, &question);
        assert_eq!(ask(&loaded, HOUR, &question), answer);
        match answer {
            Some(Answer::Amount(amount)) => amount.to_string(),
            other => panic!("{other:?}"),
        }
    })
}

fn with(records: &[Envelope], more: &[Envelope]) -> Vec<Envelope> {
    [records, more].concat()
}

const ALL: [&str; 3] = ["root", "mid", "alice"];

#[test]
fn whoever_stands_above_pays_too() {
    let records =
        with(&family(), &[costs("alice", 1, "1"), costs("mid", 2, "0.25"), costs("root", 3, "0.5")]);
    assert_eq!(spent_by(&records, ALL), ["1.75", "1.25", "1"]);
    let state = applied(&records);
    let calls = |principal: &str| Question::SpentAbove(principal.to_owned(), Unit::Calls, at(0));
    assert_eq!(ask(&state, HOUR, &calls("root")), Some(dollars("3")));
    // What a principal is asked about itself is the same account.
    assert_eq!(ask(&state, HOUR, &spent(Unit::Usd, 0)), Some(dollars("1")));
    assert_eq!(spent_by(&records, ["stranger"]), ["0"]);
}

#[test]
fn what_is_taken_back_is_taken_back_from_all() {
    let spending = costs("alice", 1, "1");
    let records = with(&family(), &[spending.clone(), costs("mid", 2, "2")]);
    assert_eq!(spent_by(&with(&records, &[retraction(3, &spending, 3)]), ALL), ["2", "2", "0"]);
    assert_eq!(spent_by(&with(&records, &[settled("alice", 3, 3, "-0.25")]), ALL), ["2.75", "2.75", "0.75"]);
    assert_eq!(spent_by(&with(&records, &[settled("alice", 3, 3, "0.5")]), ALL), ["3.5", "3.5", "1.5"]);
}

#[test]
fn nothing_is_given_back_to_those_that_were_not_above() {
    let spending = costs("alice", 1, "1");
    let other = [registered(0, "other", ""), costs("other", 1, "4")];
    // `mid` is forgotten and comes back below somebody else.
    let moved = [agent("forgotten", "mid", 2), registered(3, "mid", "other")];
    let records = with(&with(&family(), std::slice::from_ref(&spending)), &with(&other, &moved));
    let names = ["root", "mid", "alice", "other"];
    assert_eq!(spent_by(&with(&records, &[settled("alice", 3, 4, "-1")]), names), ["1", "1", "0", "4"]);
    assert_eq!(spent_by(&with(&records, &[retraction(3, &spending, 4)]), names), ["1", "1", "0", "4"]);
    // What is spent now is spent by those that are above now.
    assert_eq!(spent_by(&with(&records, &[costs("alice", 4, "1")]), names), ["1", "2", "2", "5"]);
    // The same if the agent itself was forgotten.
    let moved = [agent("forgotten", "alice", 2), registered(3, "alice", "other")];
    let records = with(&with(&family(), std::slice::from_ref(&spending)), &with(&other, &moved));
    assert_eq!(spent_by(&with(&records, &[retraction(3, &spending, 4)]), names), ["1", "1", "0", "4"]);
}

#[test]
fn whoever_goes_on_alone_pays_alone() {
    let alone = [agent("deregistered", "mid", 1), agent("resumed", "alice", 2), costs("alice", 3, "1")];
    assert_eq!(spent_by(&with(&family(), &alone), ALL), ["0", "0", "1"]);
    let back = with(&alone, &[registered(4, "mid", ""), costs("alice", 5, "1"), costs("mid", 5, "3")]);
    assert_eq!(spent_by(&with(&family(), &back), ALL), ["3", "3", "2"]);
}

#[test]
fn circles_and_long_lines_end() {
    let circle = [registered(0, "root", "alice"), registered(0, "alice", "root"), costs("alice", 1, "1")];
    assert_eq!(spent_by(&circle, ["alice", "root"]), ["1", "1"]);
    let own = [registered(0, "alice", "alice"), costs("alice", 1, "1")];
    assert_eq!(spent_by(&own, ["alice"]), ["1"]);
    let name = |number: usize| format!("agent {number}");
    let mut line: Vec<Envelope> =
        (0..20).map(|number| registered(0, &name(number), &name(number + 1))).collect();
    line.push(costs(&name(0), 1, "1"));
    assert_eq!(spent_by(&line, [&name(0), &name(10), &name(11)]), ["1", "1", "0"]);
}
