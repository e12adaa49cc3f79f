//! Bounds of the state: folds do not grow without end, and answers that were dropped are known to be unknown.

use super::*;

fn truth(state: &State, micros: i64, question: &Question) -> bool {
    ask(state, micros, question) == Some(Answer::Truth(true))
}

#[test]
fn a_session_remembers_so_many_tools_and_then_overflows() {
    let mut state = State::new();
    for number in 0..512 {
        state.apply(number, &decision(Effect::Allow, 0, &format!("tool{number}")));
    }
    assert!(!truth(&state, 0, &Question::Overflowed(Scope::Session)));
    assert_eq!(ask(&state, 0, &called(Scope::Session, "TOOL77")), Some(Answer::Count(1)));
    assert_eq!(ask(&state, 0, &called(Scope::Session, "tool7?")), Some(Answer::Count(10)));
    let rows = state.rows().len();
    for number in 512..2000 {
        state.apply(number, &decision(Effect::Allow, 0, &format!("tool{number}")));
    }
    assert!(truth(&state, 0, &Question::Overflowed(Scope::Session)));
    // Only the principal's memory has grown.
    assert_eq!(state.rows().len(), rows + 2000 - 512);
    assert_eq!(ask(&state, 0, &called(Scope::Agent, "*")), Some(Answer::Count(2000)));
}

#[test]
fn a_session_remembers_so_many_marks_and_then_overflows() {
    let mut state = State::new();
    let marks = |range: std::ops::Range<u32>| range.map(|number| format!("mark{number}")).collect();
    state.apply(0, &Envelope { taints: marks(0..256), ..decision(Effect::Allow, 0, "a") });
    assert!(!truth(&state, 0, &Question::Overflowed(Scope::Session)));
    state.apply(1, &Envelope { taints: marks(256..257), ..decision(Effect::Allow, 0, "a") });
    assert!(truth(&state, 0, &Question::Overflowed(Scope::Session)));
    assert!(!truth(&state, 0, &Question::Overflowed(Scope::Agent)));
}

#[test]
fn a_principal_that_overflowed_recovers_after_a_day() {
    let mut state = State::new();
    let mut saved = Saved::default();
    for number in 0..2049 {
        saved.save(&state.apply(number, &decision(Effect::Allow, 0, &format!("tool{number}"))));
    }
    assert!(truth(&state, 0, &Question::Overflowed(Scope::Agent)));
    assert!(truth(&state, 24 * HOUR, &Question::Overflowed(Scope::Agent)));
    assert!(!truth(&state, 25 * HOUR, &Question::Overflowed(Scope::Agent)));
    assert_eq!(ask(&state, 25 * HOUR, &called(Scope::Agent, "*")), Some(Answer::Count(0)));
    // The rows drain as records come in, whoever they are about.
    for number in 0..200 {
        let record = Envelope { principal: "bob".to_owned(), ..decision(Effect::Allow, 30 * HOUR, "a") };
        saved.save(&state.apply(3000 + number, &record));
    }
    assert_eq!(state.rows().iter().filter(|row| row.fold == "agent").count(), 1);
    assert_eq!(state.rows(), saved.rows());
}

#[test]
fn idle_sessions_are_forgotten_and_that_is_known() {
    let tainting = Envelope { taints: vec!["secret".to_owned()], ..decision(Effect::Allow, 0, "a") };
    let mut state = applied(&[tainting]);
    let later = Envelope {
        session: Some(session_made_at(34 * DAY / 1000)),
        ..decision(Effect::Allow, 34 * DAY, "a")
    };
    state.apply(1, &later);
    assert_eq!(state.sessions().count(), 1);
    assert!(!truth(&state, 34 * DAY, &Question::Tainted(Scope::Session, "secret".to_owned())));
    assert!(truth(&state, 34 * DAY, &Question::Overflowed(Scope::Session)));
    // It stays so when the session comes back.
    state.apply(2, &decision(Effect::Allow, 34 * DAY, "a"));
    assert!(truth(&state, 34 * DAY, &Question::Overflowed(Scope::Session)));
    let caller = alice();
    let fresh = state.view(&caller, session_made_at(35 * DAY / 1000), digest(0), at(35 * DAY));
    assert_eq!(fresh.answer(&Question::Overflowed(Scope::Session)), Some(Answer::Truth(false)));
}

#[test]
fn the_longest_idle_session_makes_room() {
    let limits = Limits { sessions: 10, ..LIMITS };
    let mut state = State::with_limits(limits);
    for number in 0..30 {
        let record = Envelope {
            session: Some(session(number)),
            ..decision(Effect::Allow, i64::from(number) * MINUTE, "a")
        };
        state.apply(u64::from(number), &record);
    }
    assert_eq!(state.sessions().count(), 10);
    assert!(state.session(session(29)).is_some() && state.session(session(19)).is_none());
    assert!(truth(&state, HOUR, &Question::Overflowed(Scope::Session)));
}

#[test]
fn what_sessions_remember_has_one_bound_for_all_of_them() {
    let limits = Limits { session_entries: 20, ..LIMITS };
    let mut state = State::with_limits(limits);
    let mut saved = Saved::default();
    let mut sequence = 0_u32;
    let mut note = |state: &mut State, number: u8, tool: &str, taints: &[&str]| {
        let record = Envelope {
            session: Some(session(number)),
            taints: taints.iter().map(|taint| (*taint).to_owned()).collect(),
            ..decision(Effect::Allow, i64::from(sequence) * MINUTE, tool)
        };
        saved.save(&state.apply(u64::from(sequence), &record));
        sequence += 1;
        assert_eq!(state.rows(), saved.rows());
        assert!(saved.load(limits).rows() == state.rows());
    };
    // Sessions of one action take two entries.
    for number in 0..15 {
        note(&mut state, number, "a", &[]);
    }
    assert_eq!(state.sessions().count(), 10);
    assert!(state.session(session(4)).is_none() && state.session(session(5)).is_some());
    // One of many tools and taints takes the place of several; it is never forgotten itself.
    for number in 0..15 {
        note(&mut state, 14, &format!("tool{number}"), &["secret", "web"]);
    }
    assert_eq!(state.sessions().count(), 1);
    note(&mut state, 15, "a", &[]);
    assert!(state.session(session(14)).is_none() && state.session(session(15)).is_some());
    assert!(
        truth(&state, HOUR, &Question::Overflowed(Scope::Session)),
        "what was forgotten is unknown, not absent"
    );
}

fn opening(micros: i64, id: u64, principal: &str) -> Envelope {
    Envelope {
        principal: principal.to_owned(),
        action: Some(Digest::of(&id.to_be_bytes())),
        approval: Some(approval(id)),
        expires: Some(at(micros + MINUTE)),
        ..decision(Effect::Ask, micros, "shell")
    }
}

#[test]
fn approvals_are_bounded_and_expired_ones_make_room() {
    let limits = Limits { approvals: 6, approvals_of_principal: 4, ..LIMITS };
    let mut state = State::with_limits(limits);
    for id in 0..5 {
        state.apply(id, &opening(0, id, "alice"));
    }
    assert_eq!(state.approvals().count(), 4);
    for id in 5..9 {
        state.apply(id, &opening(0, id, "bob"));
    }
    assert_eq!(state.approvals().count(), 6);
    // An hour later they have all expired, and give way one by one.
    state.apply(9, &opening(HOUR, 9, "alice"));
    state.apply(10, &opening(HOUR, 10, "carol"));
    assert_eq!(state.approvals().count(), 6);
    assert!(state.approval(approval(9)).is_some() && state.approval(approval(10)).is_some());
    // A week after expiry they are gone.
    state.apply(11, &decision(Effect::Allow, 8 * DAY, "a"));
    assert_eq!(state.approvals().count(), 0);
}

#[test]
fn closed_approvals_are_bounded_and_kept_a_week() {
    let limits = Limits { approvals: 5, ..LIMITS };
    let mut state = State::with_limits(limits);
    for id in 0..20 {
        let open = opening(0, id, "alice");
        state.apply(2 * id, &open);
        state.apply(
            2 * id + 1,
            &Envelope { decision: Some(Effect::Deny), time: at(i64::try_from(id).unwrap()), ..open },
        );
    }
    assert_eq!(state.approvals().count(), 5);
    state.apply(100, &decision(Effect::Allow, 7 * DAY - MINUTE, "a"));
    assert_eq!(state.approvals().count(), 5);
    state.apply(101, &decision(Effect::Allow, 7 * DAY + MINUTE, "a"));
    assert_eq!(state.approvals().count(), 0);
}

#[test]
fn spending_of_months_is_kept_in_few_rows() {
    let mut state = State::new();
    let mut saved = Saved::default();
    let charge = |minute: i64| Envelope {
        amounts: vec![amount("usd", "0.01")],
        ..decision(Effect::Allow, minute * MINUTE, "a")
    };
    let minutes = 60 * 24 * 60;
    for minute in (0..minutes).step_by(3) {
        saved.save(&state.apply(u64::try_from(minute).unwrap(), &charge(minute)));
    }
    let now = (minutes - 3) * MINUTE;
    let month = ask(&state, now, &spent(Unit::Usd, now - 33 * DAY + MINUTE));
    let Some(Answer::Amount(month)) = month else { panic!() };
    assert!(month >= Decimal::new(33 * 24 * 20, 2) && month <= Decimal::new(33 * 24 * 20 + 5, 2), "{month}");
    let meter_rows = state.rows().iter().filter(|row| row.fold == "meter").count();
    assert!(meter_rows < 35 * 96 + 26 * 20, "{meter_rows}");
    let minute_rows = state.rows().iter().filter(|row| row.fold == "minute").count();
    assert!(minute_rows <= 33 * 24 * 20 + 1, "{minute_rows}");
    assert_eq!(state.rows(), saved.rows());
    let loaded = saved.load(LIMITS);
    for from in [now - HOUR, now - DAY, now - 30 * DAY] {
        assert_eq!(ask(&loaded, now, &spent(Unit::Usd, from)), ask(&state, now, &spent(Unit::Usd, from)));
    }
    // An account that is used no more goes away, a few rows at a time.
    for number in 0..1000 {
        let record = Envelope { principal: "bob".to_owned(), ..decision(Effect::Deny, now + 40 * DAY, "a") };
        saved.save(&state.apply(1_000_000 + number, &record));
    }
    assert_eq!(state.rows().iter().filter(|row| row.fold == "meter").count(), 0);
    assert_eq!(state.rows(), saved.rows());
}

#[test]
fn rates_that_have_drained_are_dropped() {
    let mut state = State::new();
    let call =
        |micros, tool: &str| Envelope { amounts: vec![rate(2)], ..decision(Effect::Allow, micros, tool) };
    for number in 0..10 {
        state.apply(number, &call(0, &format!("tool{number}")));
    }
    for number in 10..14 {
        state.apply(number, &call(5 * HOUR, "a"));
    }
    assert_eq!(state.rows().iter().filter(|row| row.fold == "rate").count(), 1);
}
