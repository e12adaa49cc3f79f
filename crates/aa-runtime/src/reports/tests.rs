use proctor_wire::assembly::proto::common::v1::AgentId;

use super::*;

fn event(index: usize) -> AuditEvent {
    AuditEvent { event_id: index.to_string(), ..Default::default() }
}

fn reports() -> Reports {
    Reports::new(Limits::default(), Arc::new(TokenOwner::new(None)), None)
}

fn first(batch: &[AuditEvent]) -> &str {
    &batch.first().unwrap().event_id
}

#[test]
fn events_go_under_the_name_of_the_tokens_holder() {
    let named = |name: &str| AgentId { agent_id: name.to_owned(), ..AgentId::default() };
    let event = AuditEvent { agent_id: Some(named("mine")), ..AuditEvent::default() };
    assert_eq!(with_owner(None, std::slice::from_ref(&event)), std::slice::from_ref(&event));
    let owned = with_owner(Some(named("did:key:z")), std::slice::from_ref(&event)).pop().unwrap();
    assert_eq!(owned.agent_id, Some(named("did:key:z")));
    assert_eq!(owned.labels.get("claimed_agent_id").map(String::as_str), Some("mine"));
}

#[test]
fn of_too_many_the_oldest_are_dropped() {
    let limits = Limits { events: 50, ..Limits::default() };
    for (reports, max) in
        [(reports(), 10_000), (Reports::new(limits, Arc::new(TokenOwner::new(None)), None), 50)]
    {
        for index in 0..max + 3 {
            reports.push(event(index));
        }
        assert_eq!(reports.queue().dropped, 3);
        assert_eq!(reports.undelivered(), Some(format!("{max} events were not delivered")));
        assert_eq!(first(&reports.take_batch()), "3");
        let large = AuditEvent { event_id: "x".repeat(MAX_BYTES / 2), ..Default::default() };
        for _ in 0..3 {
            reports.push(large.clone());
        }
        assert!(reports.queue().bytes <= MAX_BYTES);
        assert_eq!(reports.queue().events.len(), 1);
    }
}

#[test]
fn a_batch_fits_into_a_message_and_one_alone_is_one() {
    let reports = reports();
    let large = AuditEvent { event_id: "x".repeat(BATCH_BYTES), ..Default::default() };
    reports.push(large);
    for index in 0..=reports.limits.batch {
        reports.push(event(index));
    }
    assert_eq!(reports.take_batch().len(), 1);
    assert_eq!(reports.take_batch().len(), 100);
    assert_eq!(reports.take_batch().len(), 1);
    assert!(reports.take_batch().is_empty());
    assert_eq!(reports.queue().bytes, 0);
}

#[tokio::test(start_paused = true)]
async fn a_batch_goes_when_it_is_full_or_old_and_the_end_comes_last() {
    let reports = reports();
    let age = reports.limits.age;
    reports.push(event(0));
    let began = Instant::now();
    assert!(reports.wait_for_batch().await);
    assert_eq!(began.elapsed(), age);
    for index in 0..reports.limits.batch {
        reports.push(event(index));
    }
    assert!(reports.wait_for_batch().await);
    assert_eq!(began.elapsed(), age);
    reports.close(Instant::now());
    assert!(reports.wait_for_batch().await);
    while !reports.take_batch().is_empty() {}
    assert!(!reports.wait_for_batch().await);
}

#[tokio::test(start_paused = true)]
async fn what_is_too_much_for_the_memory_waits_in_the_file_and_keeps_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events");
    let limits = Limits { events: 10, batch: 4, ..Limits::default() };
    let open = || {
        let buffer = Buffer::open(&path).unwrap();
        Reports::new(limits, Arc::new(TokenOwner::new(None)), Some(buffer))
    };
    let reports = open();
    for index in 0..25 {
        reports.push(event(index));
    }
    assert_eq!(reports.queue().events.len(), 10);
    assert_eq!(reports.queue().dropped, 0);
    // Some arrive, and more come meanwhile.
    let mut expected = 0;
    for _ in 0..3 {
        for event in reports.take_batch() {
            assert_eq!(event.event_id, expected.to_string());
            expected += 1;
            reports.acknowledge(1);
        }
    }
    reports.push(event(25));
    // One batch is on its way when the program ends: it is sent again.
    assert_eq!(first(&reports.take_batch()), expected.to_string());
    let left = reports.undelivered().unwrap();
    assert!(left.starts_with(&format!("{} events wait in ", 26 - expected)), "{left}");
    drop(reports);
    let reports = open();
    while reports.queue().waiting() > 0 {
        assert!(reports.wait_for_batch().await);
        for event in reports.take_batch() {
            assert_eq!(event.event_id, expected.to_string());
            expected += 1;
            reports.acknowledge(1);
        }
    }
    assert_eq!((expected, reports.undelivered()), (26, None));
    drop(reports);
    assert_eq!(open().undelivered(), None);
}
