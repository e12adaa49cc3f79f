//! Paths that are reached through links and copies which the same command line makes.

/// Most paths that are added.
const MAX_ADDED: usize = 256;

/// The paths behind `paths`, where a prefix of them is one of `links` (link, target). Both are absolute and clean.
pub(crate) fn behind(paths: &[String], links: &[(String, String)]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    if links.is_empty() {
        return found;
    }
    let mut from = 0;
    // A path that was found may lead through another link.
    loop {
        let known: Vec<String> =
            if from == 0 { paths.to_vec() } else { found.get(from - 1..).unwrap_or_default().to_vec() };
        let before = found.len();
        for path in &known {
            for (link, target) in links {
                let Some(rest) = path.strip_prefix(link.as_str()) else { continue };
                if link == target || !(rest.is_empty() || rest.starts_with('/')) {
                    continue;
                }
                let behind = crate::path::absolute(&format!("{target}{rest}"), "");
                if behind.len() > crate::MAX_PATH || paths.contains(&behind) || found.contains(&behind) {
                    continue;
                }
                found.push(behind);
                if found.len() >= MAX_ADDED {
                    return found;
                }
            }
        }
        if found.len() == before {
            return found;
        }
        from = before + 1;
    }
}
