//! Checks of values by the tables of [`structure`](crate::agentcli::structure).

use proctor_core::json::Json;

use super::condition::{self, ConditionError};
use super::path::Path;
use super::scalars::{given, is_environment_name};
use super::walk::Walk;
use super::{code, path};
use crate::agentcli::structure::{Block, FLAT_IDENTITY, IDENTITY, Kind, Member};

/// More members than any table has.
const MOST_MEMBERS: usize = 32;

impl Walk {
    /// Checks an object by its table, in the table's order.
    // Recursion is as deep as the tables, which do not contain themselves.
    pub(super) fn block(&mut self, path: &Path<'_>, object: &Json, block: &'static Block) {
        let mut values = [None; MOST_MEMBERS];
        self.fill(path, object, block, &mut values);
        for (member, value) in block.members.iter().zip(values) {
            self.member(&path.key(member.name), value, member);
        }
    }

    /// Checks a member's value.
    pub(super) fn member(&mut self, path: &Path<'_>, value: Option<&Json>, member: &Member) {
        if value.is_none() && !member.required {
            return;
        }
        let required = member.required;
        match member.kind {
            Kind::Text => {
                self.text(path, value, required);
            }
            Kind::AnyText => {
                if !matches!(value, None | Some(Json::Null | Json::String(_))) {
                    self.error(path, code::NOT_A_STRING, "must be a string");
                }
            }
            Kind::Identifier => self.identifier(path, value, required),
            Kind::Token => self.token(path, value, required),
            Kind::EnvironmentName => self.environment_name(path, value, required),
            Kind::FilePrefix => self.file_prefix(path, value, required),
            Kind::Condition => self.condition(path, value),
            Kind::Boolean => self.boolean(path, value),
            Kind::Integer(least) => self.integer(path, value, least),
            Kind::Amount => self.amount(path, value),
            Kind::Word(words) => self.word(path, value, required, words),
            Kind::Texts => self.texts(path, value),
            Kind::List => {
                self.array(path, value);
            }
            Kind::Map => {
                self.object(path, value, required);
            }
            Kind::Environment => self.environment(path, value),
            Kind::Anything => {}
            Kind::Removed => {
                if value.is_some() {
                    self.error(path, code::LEGACY_COMMAND, "is no longer supported: use `shell`");
                }
            }
            Kind::Block(block) => {
                if let Some(object) = self.object(path, value, required) {
                    self.block(path, object, block);
                }
            }
            Kind::Blocks(block) => {
                for (index, item) in self.array(path, value).unwrap_or_default().iter().enumerate() {
                    let path = path.index(index);
                    if let Some(object) = self.object(&path, Some(item), true) {
                        self.block(&path, object, block);
                    }
                }
            }
            Kind::Source(block) => self.source(path, value, block),
            Kind::Identity => self.identity(path, value),
        }
    }

    fn texts(&mut self, path: &Path<'_>, value: Option<&Json>) {
        for (index, item) in self.array(path, value).unwrap_or_default().iter().enumerate() {
            self.text(&path.index(index), Some(item), true);
        }
    }

    fn environment(&mut self, path: &Path<'_>, value: Option<&Json>) {
        let Some(object) = self.object(path, value, false) else { return };
        for (name, value) in object.as_object().unwrap_or_default() {
            let path = path.key(name);
            if !is_environment_name(name) {
                self.invalid_environment_name(&path);
            }
            self.text(&path, Some(value), true);
        }
    }

    /// Checks that a value source names at least one source that is allowed.
    fn source(&mut self, path: &path::Path<'_>, value: Option<&Json>, block: &'static Block) {
        let Some(object) = self.object(path, value, false) else { return };
        let mut values = [None; MOST_MEMBERS];
        self.fill(path, object, block, &mut values);
        let mut named = false;
        for (member, value) in block.members.iter().zip(values) {
            let path = path.key(member.name);
            match member.kind {
                Kind::Removed => {
                    if given(value).is_some() {
                        let message = "must not stand in the manifest: use `env`, `file` or `command`";
                        self.error(&path, code::LITERAL_FORBIDDEN, message);
                    }
                }
                _ => named |= self.text(&path, value, false).is_some(),
            }
        }
        if !named {
            self.error(path, code::NO_VALUE_SOURCE, "must name one of `env`, `file` or `command`");
        }
    }

    /// Checks an identity. Its members decide about its shape, not the manifest's version.
    fn identity(&mut self, path: &Path<'_>, value: Option<&Json>) {
        let Some(object) = self.object(path, value, false) else { return };
        let structured =
            object.as_object().unwrap_or_default().iter().any(|(key, value)| {
                !value.is_null() && IDENTITY.members.iter().any(|member| member.name == key)
            });
        if structured {
            self.block(path, object, &IDENTITY);
            return;
        }
        if self.is_strict() {
            // The flat shape is a set of unknown keys in 0.2; their values are checked all the same.
            let mut none = [None; MOST_MEMBERS];
            self.fill(path, object, &IDENTITY, &mut none);
        }
        for member in FLAT_IDENTITY.members {
            self.member(&path.key(member.name), object.get(member.name), member);
        }
    }

    pub(super) fn condition(&mut self, path: &Path<'_>, value: Option<&Json>) {
        let Some(text) = self.text(path, value, false) else { return };
        if let Err(error) = condition::parse(text).and_then(condition::Condition::check) {
            let code = match error {
                ConditionError::Prefix | ConditionError::Empty => code::INVALID_CONDITION,
                ConditionError::TooLong | ConditionError::TooDeep | ConditionError::Regex => {
                    code::INVALID_REGEX
                }
            };
            self.error(path, code, error.to_string());
        }
    }
}
