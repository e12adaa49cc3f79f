use proptest::prelude::*;

use super::*;

type Table = PendingCalls<u64, Vec<u8>, u64>;

proptest! {
    /// In whatever order replies come, each settles its call, once.
    #[test]
    fn replies_find_their_calls(
        order in Just((1..=20_u64).collect::<Vec<_>>()).prop_shuffle(),
        cancelled in proptest::collection::hash_set(1..=20_u64, 0..10),
    ) {
        let table = Table::default();
        let mut calls = HashMap::new();
        for id in 1..=20 {
            calls.insert(id, table.register(Some(id), vec![b'x']).unwrap());
        }
        for (registration, _) in calls.values() {
            prop_assert_eq!(table.start(registration.serial()), Some(vec![b'x']));
        }
        for id in &cancelled {
            calls.remove(id);
        }
        for id in order {
            prop_assert_eq!(table.answer(&id, || id), !cancelled.contains(&id));
            prop_assert!(!table.answer(&id, || id));
        }
        for (id, (_registration, mut receiver)) in calls {
            prop_assert_eq!(receiver.try_recv(), Ok(id));
        }
        prop_assert_eq!(table.len(), 0);
    }
}

#[test]
fn a_reply_to_an_unsent_call_is_none() {
    let table = Table::default();
    let (registration, mut receiver) = table.register(Some(1), vec![b'x']).unwrap();
    assert!(!table.answer(&1, || 1));
    assert!(receiver.try_recv().is_err());
    assert_eq!(registration.stage(), CallStage::Queued);
    table.start(registration.serial());
    assert_eq!(registration.stage(), CallStage::Writing);
    assert!(table.written(registration.serial()));
    assert_eq!(registration.stage(), CallStage::Written);
    assert!(table.answer(&1, || 1));
    assert_eq!(receiver.try_recv(), Ok(1));
}

#[test]
fn a_cancelled_call_leaves_nothing_and_is_not_sent() {
    let table = Table::default();
    let (registration, _receiver) = table.register(Some(1), vec![b'x']).unwrap();
    let serial = registration.serial();
    drop(registration);
    assert_eq!(table.len(), 0);
    assert_eq!(table.start(serial), None);
    assert!(table.register(Some(1), vec![]).is_ok());
}

#[test]
fn a_registration_does_not_remove_a_later_call_with_the_same_id() {
    let table = Table::default();
    let (first, _receiver) = table.register(Some(1), vec![]).unwrap();
    assert!(table.start(first.serial()).is_some());
    table.answer(&1, || 1);
    let (_second, _receiver) = table.register(Some(1), vec![]).unwrap();
    drop(first);
    assert_eq!(table.len(), 1);
    assert_eq!(table.register(Some(1), vec![]).unwrap_err(), RegisterError::DuplicateId);
}

#[test]
fn a_notification_has_no_reply_to_wait_for() {
    let table = Table::default();
    let (notification, mut receiver) = table.register(None, vec![]).unwrap();
    table.start(notification.serial());
    assert!(!table.written(notification.serial()));
    table.settle(notification.serial(), 7);
    assert_eq!(receiver.try_recv(), Ok(7));
    assert_eq!(table.len(), 0);
}

#[test]
fn an_unidentified_reply_settles_the_only_call_and_none_of_several() {
    let table = Table::default();
    let (first, mut of_first) = table.register(Some(1), vec![]).unwrap();
    let (second, mut of_second) = table.register(Some(2), vec![]).unwrap();
    let (_queued, mut of_queued) = table.register(Some(3), vec![]).unwrap();
    table.start(first.serial());
    table.start(second.serial());
    table.answer_only_call(|| 9);
    assert!(of_first.try_recv().is_err() && of_second.try_recv().is_err());
    drop(second);
    table.answer_only_call(|| 9);
    assert_eq!(of_first.try_recv(), Ok(9));
    assert!(of_queued.try_recv().is_err());
}

#[test]
fn closing_settles_every_call_by_its_progress_and_refuses_later_ones() {
    let table: PendingCalls<u64, (), CallStage> = PendingCalls::default();
    let (started, mut of_started) = table.register(Some(1), ()).unwrap();
    let (_queued, mut of_queued) = table.register(None, ()).unwrap();
    assert!(table.start(started.serial()).is_some());
    table.close(|stage| stage);
    assert_eq!(of_started.try_recv(), Ok(CallStage::Writing));
    assert_eq!(of_queued.try_recv(), Ok(CallStage::Queued));
    assert_eq!(table.len(), 0);
    assert!(!table.is_open());
    assert_eq!(table.register(Some(2), ()).unwrap_err(), RegisterError::Closed);
}
