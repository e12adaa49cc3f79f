use super::*;

/// Collects a table and all tables that it contains.
fn nested(block: &'static Block, seen: &mut Vec<&'static Block>) {
    if seen.iter().any(|other| std::ptr::eq(*other, block)) {
        return;
    }
    seen.push(block);
    for member in block.members {
        match member.kind {
            Kind::Block(inner) | Kind::Blocks(inner) | Kind::Source(inner) => nested(inner, seen),
            Kind::Identity => {
                nested(&IDENTITY, seen);
                nested(&FLAT_IDENTITY, seen);
            }
            _ => {}
        }
    }
}

#[test]
fn members_and_definitions_have_names_of_their_own() {
    let mut blocks = Vec::new();
    nested(&MANIFEST, &mut blocks);
    let mut names: Vec<_> = blocks.iter().map(|block| block.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    for block in blocks {
        let mut members: Vec<_> = block.members.iter().map(|member| member.name).collect();
        members.sort_unstable();
        members.dedup();
        assert_eq!(members.len(), block.members.len(), "{}", block.name);
    }
}
