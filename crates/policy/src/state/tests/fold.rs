//! The rows are the state: whatever records come, and in whatever order.

use proptest::prelude::*;

use super::*;

/// Small enough that everything overflows.
const TIGHT: Limits = Limits {
    session_tools: 2,
    session_taints: 2,
    agent_tools: 3,
    agent_taints: 2,
    sessions: 3,
    session_entries: 6,
    approvals: 4,
    approvals_of_principal: 2,
};

fn any_amount() -> impl Strategy<Value = Amount> {
    let unit = prop::sample::select(vec!["usd", "tokens", "calls", "rate", "apples"]);
    (unit, -50i64..500, 0u32..16, prop::option::of(0u32..4)).prop_map(|(unit, digits, scale, limit)| Amount {
        unit: unit.to_owned(),
        value: Decimal::new(digits, scale),
        limit,
    })
}

fn step() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => 0..10 * SECOND,
        2 => -30 * SECOND..HOUR,
        2 => -2 * DAY..4 * DAY,
        1 => -40 * DAY..80 * DAY,
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "shell", "Bash", "read/\"x\"", "\u{0}\\", "file_read"])
        .prop_map(str::to_owned)
}

/// Content of a record of kind `agent`.
fn agent_part() -> impl Strategy<Value = (&'static str, Option<Registration>)> {
    let code = prop::sample::select(vec![
        "registered",
        "token",
        "deregistered",
        "forgotten",
        "suspended",
        "resumed",
        "killed",
        "offline",
        "told",
        "op_paused",
        "op_resumed",
        "op_terminated",
    ]);
    let registration = (prop::option::of(0u8..4), name(), 0u32..3, any::<bool>()).prop_map(
        |(token, parent, depth, observe)| Registration {
            token: token.map(digest),
            parent,
            depth,
            observe,
            ..Registration::default()
        },
    );
    (code, prop::option::weighted(0.8, registration))
}

/// Any record at all; the time is a step from the record before.
fn any_envelope() -> impl Strategy<Value = (i64, Envelope)> {
    let kind = prop_oneof![
        5 => Just(RecordKind::Decision),
        3 => prop::sample::select(RecordKind::ALL.to_vec()),
        1 => Just(RecordKind::Retracted),
        1 => Just(RecordKind::Settlement),
        1 => Just(RecordKind::Approval),
        3 => Just(RecordKind::Agent),
    ];
    let effect = prop::sample::select(vec![
        None,
        Some(Effect::Allow),
        Some(Effect::Modify),
        Some(Effect::Deny),
        Some(Effect::Ask),
        Some(Effect::Defer),
    ]);
    let who = (0u8..5, name(), name(), name(), name());
    let what = (prop::collection::vec(name(), 0..3), prop::collection::vec(any_amount(), 0..4));
    let approval_part = (prop::option::of(0u64..6), 0u8..3, prop::option::of(-DAY..9 * DAY), any::<bool>());
    let links = prop::collection::vec(0u64..40, 0..2);
    (step(), kind, effect, who, what, approval_part, links, agent_part()).prop_map(
        |(step, kind, effect, who, what, approval_part, links, agent_part)| {
            let (id, action, expires, allow) = approval_part;
            let code = if kind == RecordKind::Agent {
                agent_part.0
            } else if allow {
                "allow"
            } else {
                "deny"
            };
            let record = Envelope {
                session: (who.0 > 0).then(|| session(who.0)),
                principal: who.1,
                team: who.2,
                tool: who.3,
                name: who.4,
                decision: effect,
                taints: what.0,
                amounts: what.1,
                action: Some(digest(action)),
                approval: id.map(approval),
                // Relative to the record; made absolute below.
                expires: expires.map(Timestamp::from_micros),
                code: code.to_owned(),
                links,
                registration: agent_part.1.map(Box::new),
                ..envelope(kind, 0)
            };
            (step, record)
        },
    )
}

fn with_times(records: Vec<(i64, Envelope)>) -> Vec<Envelope> {
    let mut now = 0;
    let record = |(step, record): (i64, Envelope)| {
        now += step;
        let expires = record.expires.map(|expires| at(now + expires.micros()));
        Envelope { time: at(now), expires, ..record }
    };
    records.into_iter().map(record).collect()
}

fn rows_are_the_state(limits: Limits, records: &[Envelope]) -> Result<(), TestCaseError> {
    let mut state = State::with_limits(limits);
    let mut saved = Saved::default();
    for (seq, record) in records.iter().enumerate() {
        let mut loaded = saved.load(limits);
        let rows = state.apply(seq as u64, record);
        prop_assert_eq!(&loaded.apply(seq as u64, record), &rows);
        saved.save(&rows);
        prop_assert_eq!(state.rows(), saved.rows());
        prop_assert_eq!(loaded.rows(), saved.rows());
        let list = |state: &State| {
            let mut sessions: Vec<_> = state.sessions().cloned().collect();
            sessions.sort_by_key(|session| session.id);
            let agents = state.registry().list().cloned().collect::<Vec<_>>();
            (sessions, state.approvals().cloned().collect::<Vec<_>>(), agents)
        };
        prop_assert_eq!(list(&state), list(&loaded));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_records(records in prop::collection::vec(any_envelope(), 1..60)) {
        rows_are_the_state(LIMITS, &with_times(records))?;
    }

    #[test]
    fn any_records_when_everything_overflows(records in prop::collection::vec(any_envelope(), 1..60)) {
        rows_are_the_state(TIGHT, &with_times(records))?;
    }
}

#[test]
fn damage_is_named() {
    let load = |fold: &str, key: &str, value: &str| {
        State::load([(fold, key, value)].into_iter()).unwrap_err().to_string()
    };
    assert_eq!(
        load("meter", "m/1/agent:alice", "[1,2"),
        "saved state is damaged: a value is not JSON in row `m/1/agent:alice` of `meter`: rebuild it from the records"
    );
    for (fold, key, value) in [
        ("weather", "x", "[1]"),
        ("meter", "m/1/agent:alice", "[2,0,0,0]"),
        ("meter", "m/1/agent:alice", "[1,0,0]"),
        ("meter", "w/1/agent:alice", "[1,0,0,0]"),
        ("meter", "m/x/agent:alice", "[1,0,0,0]"),
        ("session", "no id", "[1]"),
        ("session", "é", "[1]"),
        ("session", "07070707-0707-0707-0707-070707070707/t/\"a\"\"\"", "[1,[0,1,0],[]]"),
        ("agent", "\"alice", "[1,3]"),
        ("agent", "\"alice\"/t/\"a\"\"\"", "[1,[5,1,0,4,1,0],[]]"),
        ("agent", "\"alice\"/t/\"a\"\"\"", "[1,[],[]]"),
        ("rate", "x", "[1,1,-1,0]"),
        ("approval", "x", "[1]"),
        ("minute", "x", "[1,1]"),
        ("registry", "alice", "[1,1]"),
        ("registry", "\"alice\"", "[1]"),
        ("registry", "\"alice\"", "[1,\"\",\"\",\"\",0,0,8,\"\",0,0,0]"),
        ("registry", "\"alice\"", "[1,\"\",\"\",\"\",0,0,0,\"no digest\",0,0,0]"),
        ("registry", "op\"a:b\"", "[1,2]"),
    ] {
        load(fold, key, value);
    }
}
