//! A decision that is retracted counts as a deny.

use proptest::prelude::*;

use super::*;
use crate::question::ApprovalState;

/// A short past, a decision, and questions of every kind afterwards.
fn earlier() -> impl Strategy<Value = Vec<Envelope>> {
    let effect = prop::sample::select(vec![Effect::Allow, Effect::Deny, Effect::Ask]);
    let one = (effect, prop::sample::select(vec!["shell", "fetch"]), 0..2 * HOUR, any::<bool>());
    prop::collection::vec(one, 0..8).prop_map(|steps| {
        let mut now = 0;
        let record = |(effect, tool, step, taint): (Effect, &str, i64, bool)| {
            now += step;
            full(effect, now, tool, taint)
        };
        steps.into_iter().map(record).collect()
    })
}

fn full(effect: Effect, micros: i64, tool: &str, taint: bool) -> Envelope {
    Envelope {
        team: "red".to_owned(),
        org: "acme".to_owned(),
        taints: if taint { vec!["secret".to_owned()] } else { Vec::new() },
        amounts: vec![amount("usd", "0.37"), amount("tokens", "12"), amount("calls", "1"), rate(3)],
        ..decision(effect, micros, tool)
    }
}

fn all_questions(now: i64) -> Vec<Question> {
    let mut all = vec![
        Question::Approval,
        Question::Rate("shell".to_owned(), 3),
        Question::Rate("fetch".to_owned(), 3),
    ];
    for scope in [Scope::Session, Scope::Agent] {
        for glob in ["shell", "*"] {
            all.push(Question::Called(scope, glob.to_owned()));
            all.push(Question::Denied(scope, glob.to_owned()));
            all.push(Question::Since(scope, glob.to_owned()));
        }
        all.push(Question::Tainted(scope, "secret".to_owned()));
        all.push(Question::Overflowed(scope));
    }
    for above in ["mid", "root"] {
        all.push(Question::SpentAbove(above.to_owned(), Unit::Usd, at(now - HOUR)));
        all.push(Question::SpentAbove(above.to_owned(), Unit::Calls, at(now - 20 * DAY)));
    }
    for account in [Account::Agent, Account::Team, Account::Org] {
        for unit in [Unit::Usd, Unit::Tokens, Unit::Calls] {
            all.push(Question::Spent(account, unit, at(now - HOUR)));
            all.push(Question::Spent(account, unit, at(now - 20 * DAY)));
        }
    }
    all
}

proptest! {
    #[test]
    fn a_retracted_decision_is_a_deny(
        earlier in earlier(),
        effect in prop::sample::select(vec![Effect::Allow, Effect::Redact, Effect::Ask, Effect::Defer, Effect::Deny]),
        pause in 0..2 * HOUR,
        late in 0..2 * MINUTE,
        taint in any::<bool>(),
        granted in any::<bool>(),
    ) {
        let mut now = earlier.last().map_or(0, |record| record.time.micros() - START) + pause;
        let family = [registered(0, "root", ""), registered(0, "mid", "root"), registered(0, "alice", "mid")];
        let mut records: Vec<Envelope> = family.into_iter().chain(earlier.iter().cloned()).collect();
        // An approval is open for the very action; it may be granted.
        if granted {
            let opening = Envelope { approval: Some(approval(1)), expires: Some(at(now + DAY)), ..full(Effect::Ask, now, "shell", false) };
            records.extend([opening, person(now + SECOND, approval(1), "allow")]);
            now += 2 * SECOND;
        }
        let decision = Envelope {
            approval: granted.then(|| approval(1)).or((effect == Effect::Ask).then(|| approval(2))),
            expires: Some(at(now + HOUR)),
            ..full(effect, now, "shell", taint)
        };
        let mut retracted = applied(&records);
        let seq = records.len() as u64;
        retracted.apply(seq, &decision);
        retracted.apply(seq + 1, &retraction(seq, &decision, now + late));
        let mut denied = applied(&records);
        denied.apply(seq, &Envelope { decision: Some(Effect::Deny), approval: None, ..decision });
        let later = now + late + MINUTE;
        for question in all_questions(later) {
            prop_assert_eq!(ask(&retracted, later, &question), ask(&denied, later, &question), "{:?}", question);
        }
        prop_assert_eq!(retracted.session(session(0)), denied.session(session(0)));
    }
}

#[test]
fn a_retracted_use_gives_the_grant_back_unless_it_was_asked_anew() {
    let opening =
        Envelope { approval: Some(approval(1)), expires: Some(at(DAY)), ..decision(Effect::Ask, 0, "shell") };
    let using = Envelope { approval: Some(approval(1)), ..decision(Effect::Allow, 2, "shell") };
    let mut state = applied(&[opening.clone(), person(1, approval(1), "allow"), using.clone()]);
    assert_eq!(ask(&state, 3, &Question::Approval), Some(Answer::Approval(None)));
    let anew = Envelope { approval: Some(approval(2)), ..opening };
    state.apply(3, &anew);
    state.apply(4, &retraction(2, &using, 4));
    let Some(Answer::Approval(Some(open))) = ask(&state, 5, &Question::Approval) else { panic!() };
    assert_eq!((open.id, open.state), (approval(2), ApprovalState::Waiting));
}
