use super::*;
use crate::input::FoundSecret;
use crate::question::{
    Account, ActionsPerMinute, AgentStatus, ApprovalState, ApprovalView, Estimate, Scope, Stop, Unit,
};
use proctor_core::action::ActionKind;
use proctor_core::id::{ApprovalId, SessionId};
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;
use proctor_facts::Facts;
use proptest::prelude::*;
use rust_decimal::Decimal;

fn some_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        prop::sample::select(vec!["0", "-0", "1.50", "1e400", "123456789012345678901234567890", "-0.10E-2"])
            .prop_map(|text| Json::Number(text.into())),
        "\\PC{0,6}".prop_map(Json::String),
        Just(Json::String("\u{0}\n\"\\\u{1f600}".to_owned())),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
            prop::collection::btree_map("[a-z]{0,3}", inner, 0..4)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "\\PC{1,8}", Just("a\u{0}\"\\\n".to_owned())]
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(text(), 0..3)
}

fn decimal() -> impl Strategy<Value = Decimal> {
    (any::<i64>(), 0u32..28).prop_map(|(digits, scale)| Decimal::new(digits, scale))
}

fn uuid() -> impl Strategy<Value = [u8; 16]> {
    any::<[u8; 16]>()
}

fn facts() -> impl Strategy<Value = Facts> {
    let kind = prop::sample::select(ActionKind::ALL.to_vec());
    let names = (kind, text(), text(), text(), text(), text(), text(), text(), text(), text());
    let values = (some_json(), some_json(), some_json(), text(), text(), text());
    let numbers = (any::<u16>(), any::<u64>(), decimal(), any::<u32>());
    let lists = (texts(), texts(), texts(), texts(), texts(), texts(), texts(), texts());
    (names, values, numbers, lists).prop_map(|(names, values, numbers, lists)| Facts {
        kind: names.0,
        name: names.1,
        tool: names.2,
        operation: names.3,
        path: names.4,
        command: names.5,
        host: names.6,
        url: names.7,
        model: names.8,
        text: names.9,
        args: values.0,
        result: values.1,
        metadata: values.2,
        cwd: values.3,
        door: values.4,
        workspace: values.5,
        port: numbers.0,
        tokens: numbers.1,
        cost_usd: numbers.2,
        depth: numbers.3,
        paths: lists.0,
        writes: lists.1,
        commands: lists.2,
        hosts: lists.3,
        unknown: lists.4,
        expansions: lists.5,
        assignments: lists.6,
        opaque: lists.7,
    })
}

fn question() -> impl Strategy<Value = Question> {
    let scope = prop::sample::select(vec![Scope::Session, Scope::Agent]);
    let account = prop::sample::select(vec![Account::Agent, Account::Team, Account::Org]);
    let unit = prop::sample::select(vec![Unit::Usd, Unit::Tokens, Unit::Calls]);
    prop_oneof![
        (scope.clone(), text()).prop_map(|(scope, glob)| Question::Called(scope, glob)),
        (scope.clone(), text()).prop_map(|(scope, glob)| Question::Since(scope, glob)),
        (scope.clone(), text()).prop_map(|(scope, glob)| Question::Denied(scope, glob)),
        (scope.clone(), text()).prop_map(|(scope, name)| Question::Tainted(scope, name)),
        scope.prop_map(Question::Overflowed),
        (account, unit.clone(), any::<i64>()).prop_map(|(account, unit, from)| Question::Spent(
            account,
            unit,
            Timestamp::from_micros(from)
        )),
        (text(), unit.clone(), any::<i64>()).prop_map(|(principal, unit, from)| Question::SpentAbove(
            principal,
            unit,
            Timestamp::from_micros(from)
        )),
        (text(), any::<u32>()).prop_map(|(tool, limit)| Question::Rate(tool, limit)),
        Just(Question::Approval),
        text().prop_map(Question::AgentStatus),
        any::<u32>().prop_map(Question::Repeats),
        Just(Question::ActionsPerMinute),
    ]
}

fn status() -> impl Strategy<Value = AgentStatus> {
    let stop = prop::option::of((text(), text()).prop_map(|(rule, reason)| Stop { rule, reason }));
    let numbers = (any::<u32>(), any::<u64>(), any::<Option<i64>>(), any::<bool>(), any::<u64>());
    let caller = (text(), text(), text()).prop_map(|(principal, team, org)| Caller { principal, team, org });
    let more = (text(), prop::collection::vec(caller, 0..3));
    (stop, text(), text(), text(), numbers, more).prop_map(
        |(stop, risk, parent, parent_risk, numbers, more)| AgentStatus {
            stop,
            risk,
            parent,
            parent_risk,
            depth: numbers.0,
            children: numbers.1,
            registered_at: numbers.2.map(Timestamp::from_micros),
            observe: numbers.3,
            team_agents: numbers.4,
            name: more.0,
            above: more.1,
        },
    )
}

fn answer() -> impl Strategy<Value = Answer> {
    let state = prop_oneof![
        Just(ApprovalState::Waiting),
        text().prop_map(|by| ApprovalState::Granted { by }),
        (text(), text()).prop_map(|(by, reason)| ApprovalState::Refused { by, reason }),
    ];
    let amounts = (any::<u32>(), any::<u32>());
    let view =
        (uuid(), any::<i64>(), state, amounts).prop_map(|(id, expires, state, amounts)| ApprovalView {
            id: ApprovalId::from_bytes(id),
            expires: Timestamp::from_micros(expires),
            state,
            estimate: Estimate { usd: Decimal::new(amounts.0.into(), 4), tokens: amounts.1.into() },
        });
    prop_oneof![
        any::<u64>().prop_map(Answer::Count),
        any::<Option<u64>>().prop_map(Answer::Micros),
        any::<bool>().prop_map(Answer::Truth),
        decimal().prop_map(Answer::Amount),
        any::<u64>().prop_map(Answer::Level),
        prop::option::of(view).prop_map(Answer::Approval),
        prop::option::of(status().prop_map(Box::new)).prop_map(Answer::AgentStatus),
        any::<[u64; 4]>().prop_map(|[current, minutes, sum, squares]| Answer::ActionsPerMinute(
            ActionsPerMinute { current, minutes, sum, squares }
        )),
    ]
}

fn read_set() -> impl Strategy<Value = ReadSet> {
    let caller = (text(), text(), text()).prop_map(|(principal, team, org)| Caller { principal, team, org });
    let found = (text(), text()).prop_map(|(kind, path)| FoundSecret { kind, path });
    let ids = (uuid(), any::<[u8; 32]>(), any::<i64>(), uuid());
    let input = (facts(), prop::collection::vec(found, 0..3), caller, text(), ids);
    let asked = prop::collection::vec((question(), answer()), 0..6);
    let sources = prop::collection::vec(any::<[u8; 32]>().prop_map(Digest::from_bytes), 0..3);
    (input, asked, text(), sources).prop_map(
        |((facts, findings, caller, agent, ids), asked, semantics, sources)| ReadSet {
            input: Input {
                facts,
                findings,
                caller,
                agent,
                session: SessionId::from_bytes(ids.0),
                digest: Digest::from_bytes(ids.1),
                now: Timestamp::from_micros(ids.2),
                fresh_approval: ApprovalId::from_bytes(ids.3),
            },
            asked,
            semantics,
            sources,
        },
    )
}

fn empty() -> ReadSet {
    ReadSet {
        input: Input {
            facts: Facts::default(),
            findings: Vec::new(),
            caller: Caller::default(),
            agent: String::new(),
            session: SessionId::from_bytes([1; 16]),
            digest: Digest::of(b"x"),
            now: Timestamp::from_micros(0),
            fresh_approval: ApprovalId::from_bytes([2; 16]),
        },
        asked: Vec::new(),
        semantics: String::new(),
        sources: Vec::new(),
    }
}

proptest! {
    #[test]
    fn json_form_round_trips(set in read_set()) {
        let text = set.to_json().to_string();
        let read = ReadSet::from_json(&Json::parse(text.as_bytes()).unwrap()).unwrap();
        prop_assert_eq!(&read, &set);
        // Decimals compare by value; their text must be the same too.
        prop_assert_eq!(read.to_json().to_string(), text);
    }

    #[test]
    fn any_json_is_read_or_refused(value in some_json()) {
        let _ = ReadSet::from_json(&value);
    }
}

#[test]
fn empty_members_are_left_out() {
    let names: Vec<String> =
        empty().to_json().as_object().unwrap().iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names, ["action", "session", "digest", "now", "fresh_approval"]);
}

#[test]
fn deep_arguments_survive_in_a_body() {
    let text = format!("{}1{}", "[".repeat(127), "]".repeat(127));
    let mut set = empty();
    set.input.facts.args = Json::parse(text.as_bytes()).unwrap();
    let body = Json::object().with("read_set", set.to_json()).to_string();
    let read = Json::parse(body.as_bytes()).unwrap();
    assert_eq!(ReadSet::from_json(read.get("read_set").unwrap()), Ok(set));
}

#[test]
fn mistakes_are_named() {
    let error =
        |text: &str| ReadSet::from_json(&Json::parse(text.as_bytes()).unwrap()).unwrap_err().to_string();
    assert_eq!(error("3"), "not a read-set: `$` is not an object");
    assert_eq!(error("{}"), "not a read-set: `session` is missing");
    assert_eq!(error(r#"{"action":{"port":70000}}"#), "not a read-set: `port` is not an integer in range");
    assert_eq!(error(r#"{"extra":1}"#), "not a read-set: `extra` is not a member of read-sets");
    assert_eq!(error(r#"{"asked":[["called","session","x",1,2]]}"#), "not a read-set: `asked` is malformed");
}

/// Counts how often it was asked, and answers with that.
struct Counting(std::cell::Cell<u64>);

impl AnswerSource for Counting {
    fn answer(&self, question: &Question) -> Option<Answer> {
        self.0.set(self.0.get() + 1);
        if *question == Question::Approval { None } else { Some(Answer::Count(self.0.get())) }
    }
}

#[test]
fn each_question_is_recorded_once_in_order() {
    let counting = Counting(std::cell::Cell::new(0));
    let recording = RecordingSource::new(&counting);
    let glob = |number: usize| Question::Called(Scope::Session, format!("tool{number}"));
    for number in [0, 1, 0, 2, 1] {
        recording.answer(&glob(number));
    }
    assert_eq!(recording.answer(&Question::Approval), None);
    for number in 0..40 {
        assert_eq!(recording.answer(&glob(number)), recording.answer(&glob(number)));
    }
    let asked = recording.into_asked();
    assert_eq!(counting.0.get(), 41);
    assert_eq!(
        asked.iter().map(|(question, _)| question.clone()).collect::<Vec<_>>(),
        (0..40).map(glob).collect::<Vec<_>>()
    );
    let replay = ReplaySource::new(&asked);
    assert_eq!(replay.answer(&glob(2)), Some(Answer::Count(3)));
    assert_eq!(replay.answer(&glob(99)), None);
    assert_eq!(replay.answer(&Question::Approval), None);
}

#[test]
fn questions_are_bounded() {
    let counting = Counting(std::cell::Cell::new(0));
    let recording = RecordingSource::new(&counting);
    for number in 0..2 * MAX_QUESTIONS {
        let answer = recording.answer(&Question::Rate(String::new(), u32::try_from(number).unwrap()));
        assert_eq!(answer.is_some(), number < MAX_QUESTIONS);
    }
    assert_eq!(recording.into_asked().len(), MAX_QUESTIONS);
}
