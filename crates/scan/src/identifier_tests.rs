//! Identifiers that are cut stay traceable, and cannot be found by trying.

use super::{Identifiers, Scanner};

#[test]
fn an_identifier_that_is_cut_is_a_keyed_digest_and_always_the_same() {
    let scanner = Scanner::new(&["EMP-[0-9]{6}".to_owned()]).unwrap();
    let (ours, other) = ([1; 32], [2; 32]);
    let identifiers = Identifiers::new(&scanner, &ours);
    let cut = identifiers.text("EMP-123456");
    assert!(cut.starts_with("id-") && !cut.contains("123456"), "{cut}");
    assert_eq!(identifiers.text("EMP-123456"), cut);
    assert_eq!(identifiers.text(&cut), cut, "cutting again changes nothing");
    assert_ne!(identifiers.text("EMP-123457"), cut);
    assert_ne!(Identifiers::new(&scanner, &other).text("EMP-123456"), cut);
    assert!(identifiers.stands_for(&cut, "EMP-123456") && !identifiers.stands_for(&cut, "EMP-1"));
    // Records of earlier versions.
    assert!(identifiers.stands_for(&super::unkeyed("EMP-123456"), "EMP-123456"));
    for clean in ["trace-1:span-2", "task-7", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", ""] {
        assert_eq!(identifiers.text(clean), clean);
    }
}

#[test]
fn a_name_of_several_identifiers_is_cut_piece_by_piece_and_a_public_key_stays() {
    let scanner = Scanner::new(&["EMP-[0-9]{6}".to_owned()]).unwrap();
    let identifiers = Identifiers::new(&scanner, &[1; 32]);
    let cut = identifiers.text("EMP-123456");
    assert_eq!(identifiers.name("agent:acme/red/EMP-123456"), format!("agent:acme/red/{cut}"));
    assert_eq!(identifiers.name("uid:1000/EMP-123456"), format!("uid:1000/{cut}"));
    assert_eq!(identifiers.name("uid:1000/coder"), "uid:1000/coder");
    let key = format!("agent:did:key:z6Mk{}", "aB3dEfGhiJkmNoPqRsTuVwXyZ123456789AbCdEfGhJk");
    assert_eq!(identifiers.name(&key), key);
}
