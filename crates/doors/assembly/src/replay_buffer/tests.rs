use super::super::fixture::{Agent, Gateway};
use super::*;

async fn buffer() -> (Gateway, ReplayBuffer) {
    let gateway = Gateway::new("default: allow\nrules: []\n");
    let mut agent = Agent::new(1);
    gateway.register(&mut agent).await.unwrap();
    let scope = Scope::Team { org: "acme".to_owned(), team: "ml".to_owned() };
    let buffer = ReplayBuffer::new(scope, gateway.engine().notices());
    (gateway, buffer)
}

fn numbers(events: &[InvalidationEvent]) -> Vec<u64> {
    events.iter().map(|event| event.seq).collect()
}

#[tokio::test]
async fn an_evicted_position_gets_a_reset() {
    let (gateway, mut buffer) = buffer().await;
    let engine = gateway.engine();
    for _ in 0..CAPACITY + 3 {
        buffer.push(invalidate_all(engine));
    }
    assert_eq!((buffer.events.len(), buffer.evicted, buffer.last), (CAPACITY, 3, 1027));
    let mut sent = buffer.resume(engine, 3);
    assert_eq!(sent, 3, "all behind it is here");
    assert_eq!(numbers(&buffer.after(engine, &mut sent)), (4..=1027).collect::<Vec<_>>());
    assert_eq!(sent, 1027);
    assert!(buffer.after(engine, &mut sent).is_empty());
    let mut sent = buffer.resume(engine, 2);
    assert_eq!(sent, 1027, "one is missing");
    let told = buffer.after(engine, &mut sent);
    assert_eq!(numbers(&told), [1028]);
    assert!(matches!(told[0].payload, Some(Payload::PolicyInvalidated(_))));
}

#[tokio::test]
async fn a_slow_subscriber_gets_a_reset() {
    let (gateway, mut buffer) = buffer().await;
    let engine = gateway.engine();
    let mut sent = buffer.resume(engine, 0);
    for _ in 0..CAPACITY * 2 {
        buffer.push(invalidate_all(engine));
    }
    assert_eq!(numbers(&buffer.after(engine, &mut sent)), [2049]);
}

#[tokio::test]
async fn buffers_are_bounded_and_those_in_use_stay() {
    let (gateway, _) = buffer().await;
    let mut buffers = ReplayBuffers::default();
    let scope = Scope::Agent { principal: "a".to_owned() };
    let used = buffers.get(scope.clone(), "used", gateway.engine().notices());
    for number in 0..MAX_BUFFERS * 2 {
        buffers.get(scope.clone(), &number.to_string(), gateway.engine().notices());
    }
    assert_eq!(buffers.all.len(), MAX_BUFFERS);
    assert!(Arc::ptr_eq(&used, &buffers.get(scope, "used", gateway.engine().notices())));
}
