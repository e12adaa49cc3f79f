//! Merge of one block over its levels: task over workflow over profile.

use std::collections::HashMap;

use proctor_core::json::Json;

use super::members::member;

/// The levels at which a block is declared, innermost first. A later level is asked where an earlier one is silent.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::agentcli) struct Layers<'a> {
    levels: [Option<&'a Json>; 3],
}

impl<'a> Layers<'a> {
    /// A block of a task and of its workflow.
    pub(in crate::agentcli) fn of(task: &'a Json, workflow: &'a Json, name: &str) -> Layers<'a> {
        Layers { levels: [member(task, name), member(workflow, name), None] }
    }

    /// The same block with a profile below it.
    pub(in crate::agentcli) fn over(self, profile: Option<&'a Json>) -> Layers<'a> {
        let [task, workflow, _] = self.levels;
        Layers { levels: [task, workflow, profile] }
    }

    /// The levels of a block inside this one.
    pub(in crate::agentcli) fn block(self, name: &str) -> Layers<'a> {
        Layers { levels: self.levels.map(|level| level.and_then(|block| member(block, name))) }
    }

    /// The innermost declaration of a value.
    pub(in crate::agentcli) fn value(self, name: &str) -> Option<&'a Json> {
        self.levels.into_iter().flatten().find_map(|level| member(level, name))
    }

    /// [`Layers::value`] as a string.
    pub(in crate::agentcli) fn text(self, name: &str) -> Option<&'a str> {
        self.value(name).and_then(Json::as_str)
    }

    /// [`Layers::value`] as a member of an output: `null` where no level declares it.
    pub(in crate::agentcli) fn cloned(self, name: &str) -> Json {
        self.value(name).cloned().unwrap_or_default()
    }

    /// Values of this name at the levels that declare one, innermost first.
    pub(in crate::agentcli) fn declared(self, name: &str) -> impl Iterator<Item = &'a Json> + use<'a, '_> {
        self.levels.into_iter().flatten().filter_map(move |level| member(level, name))
    }

    /// An object with these members, each merged by itself.
    pub(in crate::agentcli) fn object(self, names: &[&str]) -> Json {
        let mut object = Vec::with_capacity(names.len() + 3);
        object.extend(names.iter().map(|name| ((*name).to_owned(), self.cloned(name))));
        Json::Object(object)
    }

    /// Shallow merge of a map over all levels, outermost members first; `null` where it has no member.
    pub(in crate::agentcli) fn map(self, name: &str) -> Json {
        let mut levels =
            self.levels.into_iter().rev().flatten().filter_map(|level| member(level, name)?.as_object());
        let mut merged: Vec<(String, Json)> = levels.next().unwrap_or_default().to_vec();
        // Names are unique within a level, so that only the second and third level need to look for them.
        for level in levels {
            let known: HashMap<String, usize> =
                merged.iter().enumerate().map(|(position, (key, _))| (key.clone(), position)).collect();
            for (key, value) in level {
                match known.get(key).and_then(|position| merged.get_mut(*position)) {
                    Some((_, slot)) if !value.is_null() => *slot = value.clone(),
                    Some(_) => {}
                    None => merged.push((key.clone(), value.clone())),
                }
            }
        }
        if merged.is_empty() { Json::Null } else { Json::Object(merged) }
    }

    /// A requirement that an inner level may add but not lift: true if any level says so.
    pub(in crate::agentcli) fn required(self) -> Json {
        let verify = self.block("verify");
        if verify.declared("required").any(|required| required.as_bool() == Some(true)) {
            return true.into();
        }
        verify.cloned("required")
    }
}
