//! Erasing bodies.

use std::path::Path;

use proctor_core::record::RecordKind;
use proctor_ledger::NotRecorded;
use proctor_ledger::reader::BodyState;

use super::support::{World, assert_in_order};

const SECRET: &[u8] = b"the customer's telephone number is 555-0199";

fn is_anywhere(dir: &Path, wanted: &[u8]) -> bool {
    std::fs::read_dir(dir).unwrap().any(|entry| {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        bytes.windows(wanted.len()).any(|window| window == wanted)
    })
}

#[test]
fn an_erased_body_is_nowhere_and_everything_else_stays_proven() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(30));
    let ledger = world.open(dir.path());
    for n in 0..20 {
        let mut draft = world.draft(RecordKind::Decision);
        draft.body = Some(if n == 7 { SECRET.to_vec() } else { vec![n; 3000] });
        ledger.append(draft).wait().unwrap();
    }
    let mut large = world.draft(RecordKind::Decision);
    large.body = Some(SECRET.repeat(1000));
    let large = ledger.append(large).wait().unwrap().seq();
    let reader = ledger.reader();
    let BodyState::Present { salt, .. } = reader.body(7).unwrap() else { panic!("no body") };
    assert!(is_anywhere(dir.path(), SECRET) && is_anywhere(dir.path(), &salt));

    for seq in [7, large] {
        let mut erasure = world.envelope(RecordKind::Erasure);
        erasure.links = vec![seq];
        ledger.erase(seq, erasure).wait().unwrap();
        assert_eq!(reader.body(seq).unwrap(), BodyState::Erased);
    }
    // The writer removes traces after it has answered; this comes behind that in its queue.
    ledger.checkpoint().unwrap();
    assert!(!is_anywhere(dir.path(), &SECRET[..20]) && !is_anywhere(dir.path(), &salt));
    let mut again = world.envelope(RecordKind::Erasure);
    again.links = vec![7];
    assert!(
        matches!(ledger.erase(7, again).wait(), Err(NotRecorded::Failed(reason)) if reason.contains("erased already"))
    );
    let wrong = world.envelope(RecordKind::Erasure);
    assert!(matches!(ledger.erase(8, wrong).wait(), Err(NotRecorded::Failed(_))));
    ledger.close();
    assert!(!is_anywhere(dir.path(), &SECRET[..20]));
    assert_in_order(dir.path());
}
