//! Arrays of profiles: members, and unique identifiers.

use std::collections::HashSet;

use proctor_core::json::Json;

use super::code;
use super::path::Path;
use super::walk::Walk;
use crate::agentcli::structure::Block;

/// Checks an array of profiles. Every table of a profile begins with `id`.
pub(super) fn array(walk: &mut Walk, path: &Path<'_>, value: Option<&Json>, block: &'static Block) {
    let mut seen = HashSet::new();
    for (index, item) in walk.array(path, value).unwrap_or_default().iter().enumerate() {
        let path = path.index(index);
        let Some(object) = walk.object(&path, Some(item), true) else { continue };
        walk.block(&path, object, block);
        if let Some(id) = object.get("id").and_then(Json::as_str)
            && !seen.insert(id)
        {
            walk.error(&path.key("id"), code::DUPLICATE_ID, "is the id of another profile already");
        }
    }
}
