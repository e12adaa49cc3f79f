use proptest::prelude::*;
use rust_decimal::Decimal;

use super::*;
use crate::json::Json;
use crate::random::SeededRandomness;

fn any_envelope() -> impl Strategy<Value = Envelope> {
    let texts = prop::collection::vec(any::<String>(), 9);
    let lists = (
        prop::collection::vec(any::<String>(), 0..4),
        prop::collection::vec(("[a-z]{1,6}", any::<i64>(), 0u32..9, prop::option::of(any::<u32>())), 0..4),
        prop::collection::vec(0u64..(1 << 53), 0..4),
    );
    let options = (any::<[bool; 8]>(), 0usize..6, 0usize..12, 0i64..(1 << 53), any::<u64>());
    (texts, lists, options).prop_map(
        |(texts, (taints, amounts, links), (flags, effect, kind, time, seed))| {
            let randomness = SeededRandomness::new(seed);
            let moment = Timestamp::from_micros(time);
            let effects =
                [Effect::Allow, Effect::Deny, Effect::Ask, Effect::Modify, Effect::Redact, Effect::Defer];
            let mut envelope =
                Envelope::new(RecordId::new(moment, &randomness), moment, RecordKind::ALL[kind]);
            let mut texts = texts.into_iter();
            let mut text = || texts.next().unwrap();
            envelope.principal = text();
            envelope.agent = text();
            envelope.team = text();
            envelope.org = text();
            envelope.door = text();
            envelope.tool = text();
            envelope.name = text();
            envelope.rule = text();
            envelope.code = text();
            envelope.taints = taints;
            envelope.amounts = amounts
                .into_iter()
                .map(|(unit, value, scale, limit)| Amount {
                    unit,
                    value: Decimal::new(value, scale).normalize(),
                    limit,
                })
                .collect();
            envelope.links = links;
            let digest = Digest::of(&seed.to_be_bytes());
            envelope.session = flags[0].then(|| SessionId::new(moment, &randomness));
            envelope.decision = flags[1].then(|| effects[effect]);
            envelope.action = flags[2].then_some(digest);
            envelope.approval = flags[3].then(|| ApprovalId::new(moment, &randomness));
            envelope.expires = flags[3].then_some(moment);
            envelope.once = flags[4].then(|| format!("grant:{seed}\n\"x\""));
            envelope.policy = flags[5].then_some(digest);
            envelope.body = flags[6].then_some(digest);
            envelope.registration = flags[7].then(|| {
                Box::new(Registration {
                    token: flags[0].then_some(digest),
                    name: envelope.name.clone(),
                    risk: envelope.rule.clone(),
                    parent: envelope.team.clone(),
                    depth: u32::try_from(seed % 11).unwrap(),
                    max_child_depth: flags[1].then_some(3),
                    observe: flags[2],
                    reason: envelope.org.clone(),
                    tool: envelope.tool.clone(),
                })
            });
            envelope
        },
    )
}

proptest! {
    #[test]
    fn leaf_round_trips_and_is_canonical(envelope in any_envelope()) {
        let leaf = envelope.to_leaf().unwrap();
        prop_assert_eq!(&Envelope::from_leaf(&leaf).unwrap(), &envelope);
        let value = Json::parse(&leaf).unwrap();
        prop_assert_eq!(crate::canonical::rfc8785(&value).unwrap().into_bytes(), leaf);
    }

    #[test]
    fn a_changed_leaf_is_another_record_or_none(envelope in any_envelope(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let leaf = envelope.to_leaf().unwrap();
        let mut changed = leaf.clone();
        let at = at.index(changed.len());
        changed[at] = byte;
        if changed != leaf && let Ok(read) = Envelope::from_leaf(&changed) {
            prop_assert_ne!(read, envelope);
        }
    }

    #[test]
    fn reading_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Envelope::from_leaf(&bytes);
    }
}

#[test]
fn the_form_is_pinned() {
    let randomness = SeededRandomness::new(1);
    let moment = Timestamp::from_micros(1_700_000_000_000_000);
    let mut envelope = Envelope::new(RecordId::new(moment, &randomness), moment, RecordKind::Decision);
    envelope.principal = "uid:1000".into();
    envelope.tool = "shell".into();
    envelope.decision = Some(Effect::Deny);
    envelope.amounts = vec![Amount { unit: "rate".into(), value: Decimal::ONE, limit: Some(20) }];
    let leaf = String::from_utf8(envelope.to_leaf().unwrap()).unwrap();
    assert_eq!(
        leaf,
        format!(
            r#"{{"amounts":[{{"limit":20,"unit":"rate","value":"1"}}],"decision":"deny","id":"{}","kind":"decision","principal":"uid:1000","time":1700000000000000,"tool":"shell","v":1}}"#,
            envelope.id
        )
    );
}

#[test]
fn non_canonical_spellings_are_refused() {
    let randomness = SeededRandomness::new(1);
    let moment = Timestamp::from_micros(5);
    let mut envelope = Envelope::new(RecordId::new(moment, &randomness), moment, RecordKind::Gap);
    envelope.tool = "a/b".into();
    let leaf = String::from_utf8(envelope.to_leaf().unwrap()).unwrap();
    assert!(Envelope::from_leaf(leaf.as_bytes()).is_ok());
    for changed in [
        leaf.replace("a/b", "a\\/b"),
        leaf.replace("\"time\":5", "\"time\":05"),
        leaf.replace("\"v\":1", "\"v\":2"),
        format!("{leaf} "),
        leaf.replace("{\"id\"", "{\"agent\":\"\",\"id\""),
    ] {
        assert!(Envelope::from_leaf(changed.as_bytes()).is_err(), "{changed}");
    }
}

#[test]
fn a_leaf_over_the_limit_is_refused() {
    let randomness = SeededRandomness::new(1);
    let moment = Timestamp::from_micros(5);
    let mut envelope = Envelope::new(RecordId::new(moment, &randomness), moment, RecordKind::Decision);
    envelope.taints = vec!["x".repeat(70_000)];
    assert!(matches!(envelope.to_leaf(), Err(LeafError::TooLarge(_))));
}
