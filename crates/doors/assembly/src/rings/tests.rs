use super::super::fixture::{Agent, Gateway};
use super::*;

async fn ring() -> (Gateway, Ring) {
    let gateway = Gateway::new("default: allow\nrules: []\n");
    let mut agent = Agent::new(1);
    gateway.register(&mut agent).await.unwrap();
    let scope = Scope::Team { org: "acme".to_owned(), team: "ml".to_owned() };
    let ring = Ring::new(scope, gateway.engine().notices());
    (gateway, ring)
}

fn numbers(events: &[InvalidationEvent]) -> Vec<u64> {
    events.iter().map(|event| event.seq).collect()
}

#[tokio::test]
async fn a_ring_that_does_not_reach_back_says_so() {
    let (gateway, mut ring) = ring().await;
    let engine = gateway.engine();
    for _ in 0..RING + 3 {
        ring.push(everything(engine));
    }
    assert_eq!((ring.events.len(), ring.gone, ring.last), (RING, 3, 1027));
    let mut sent = ring.listen(engine, 3);
    assert_eq!(sent, 3, "all behind it is here");
    assert_eq!(numbers(&ring.after(engine, &mut sent)), (4..=1027).collect::<Vec<_>>());
    assert_eq!(sent, 1027);
    assert!(ring.after(engine, &mut sent).is_empty());
    let mut sent = ring.listen(engine, 2);
    assert_eq!(sent, 1027, "one is missing");
    let told = ring.after(engine, &mut sent);
    assert_eq!(numbers(&told), [1028]);
    assert!(matches!(told[0].payload, Some(Payload::PolicyInvalidated(_))));
}

#[tokio::test]
async fn a_slow_listener_is_told_to_forget() {
    let (gateway, mut ring) = ring().await;
    let engine = gateway.engine();
    let mut sent = ring.listen(engine, 0);
    for _ in 0..RING * 2 {
        ring.push(everything(engine));
    }
    assert_eq!(numbers(&ring.after(engine, &mut sent)), [2049]);
}

#[tokio::test]
async fn rings_are_bounded_and_those_in_use_stay() {
    let (gateway, _) = ring().await;
    let mut rings = Rings::default();
    let scope = Scope::Agent { principal: "a".to_owned() };
    let used = rings.get(scope.clone(), "used", gateway.engine().notices());
    for number in 0..MOST * 2 {
        rings.get(scope.clone(), &number.to_string(), gateway.engine().notices());
    }
    assert_eq!(rings.all.len(), MOST);
    assert!(Arc::ptr_eq(&used, &rings.get(scope, "used", gateway.engine().notices())));
}
