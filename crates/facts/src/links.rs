//! Paths that are reached through links and copies which the same command line makes.

/// Most paths that are added.
const MAX_ADDED: usize = 256;

/// A link with absolute and clean paths.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) path: String,
    pub(crate) target: String,
    /// Whether its own path counts, not only those below it: making a link does not touch its target.
    pub(crate) counts_itself: bool,
}

/// The paths behind `paths`, where `links` lead.
pub(crate) fn behind(paths: &[String], links: &[Ends]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    if links.is_empty() {
        return found;
    }
    let mut known = paths.to_vec();
    // A path that was found may lead through another link.
    while !known.is_empty() {
        let mut next: Vec<String> = Vec::new();
        for path in &known {
            for link in links {
                let Some(rest) = path.strip_prefix(link.path.as_str()) else { continue };
                let is_reached = rest.starts_with('/') || (rest.is_empty() && link.counts_itself);
                if link.path == link.target || !is_reached {
                    continue;
                }
                let behind = crate::path::absolute(&format!("{}{rest}", link.target), "");
                let is_new = !paths.contains(&behind) && !found.contains(&behind);
                if behind.len() > crate::MAX_PATH || !is_new {
                    continue;
                }
                next.push(behind.clone());
                found.push(behind);
                if found.len() >= MAX_ADDED {
                    return found;
                }
            }
        }
        known = next;
    }
    found
}
