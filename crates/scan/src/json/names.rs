//! Secrets in member names.

use std::collections::{HashMap, HashSet};

use proctor_core::json::Json;

use super::super::path::Path;
use super::Redactor;

impl Redactor<'_> {
    /// The names that change, at their member's index; empty when none does.
    pub(super) fn cut_names(&mut self, members: &[(String, Json)], path: &Path<'_>) -> Vec<Option<String>> {
        let mut cut_names: Vec<Option<String>> = Vec::new();
        let mut found = Vec::new();
        for (index, (name, _)) in members.iter().enumerate() {
            let findings = self.scanner.scan_claimed(name);
            if findings.is_empty() {
                continue;
            }
            if let Some(cut) = self.without_secrets(name, &findings) {
                cut_names.resize(members.len(), None);
                if let Some(slot) = cut_names.get_mut(index) {
                    *slot = Some(cut);
                }
            }
            found.push((index, findings));
        }
        tell_apart(members, &mut cut_names);
        for (index, findings) in found {
            let Some((name, _)) = members.get(index) else { continue };
            let shown = cut_names.get(index).and_then(Option::as_deref).unwrap_or(name);
            for finding in &findings {
                self.report(finding, &path.name(shown), true);
            }
        }
        cut_names
    }
}

/// Makes the new names unique among themselves and the names that stay.
fn tell_apart(members: &[(String, Json)], cut_names: &mut [Option<String>]) {
    if cut_names.is_empty() {
        return;
    }
    let mut taken: HashSet<String> = members
        .iter()
        .zip(cut_names.iter())
        .filter(|(_, cut)| cut.is_none())
        .map(|((name, _), _)| name.clone())
        .collect();
    let mut last_suffix: HashMap<String, usize> = HashMap::new();
    for name in cut_names.iter_mut().flatten() {
        if taken.contains(name) {
            let suffix = last_suffix.entry(name.clone()).or_insert(1);
            *name = loop {
                *suffix += 1;
                let candidate = format!("{name}~{suffix}");
                if !taken.contains(&candidate) {
                    break candidate;
                }
            };
        }
        taken.insert(name.clone());
    }
}
