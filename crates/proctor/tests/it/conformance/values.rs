//! Placeholders: `${name}` in what is sent and in what is expected, and `$repeat`.

use std::collections::BTreeMap;

use proctor_core::json::Json;

use super::case::Step;

/// A placeholder or a kept value that cannot be resolved.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ValueError {
    #[error("`${{{0}}}` is not known here")]
    Unknown(String),
    #[error("`${{` without its end in `{0}`")]
    Open(String),
    #[error("`$repeat` needs a number, and `of`")]
    Repeat,
    #[error("nothing to keep at `{pointer}` of {answer}")]
    NothingToKeep { pointer: String, answer: String },
}

/// Values that a case has by name.
#[derive(Debug, Default)]
pub struct Values {
    known: BTreeMap<String, Json>,
}

impl Values {
    pub fn set(&mut self, name: &str, value: impl Into<Json>) {
        self.known.insert(name.to_owned(), value.into());
    }

    pub fn get(&self, name: &str) -> Result<&Json, ValueError> {
        self.known.get(name).ok_or_else(|| ValueError::Unknown(name.to_owned()))
    }

    /// The value as text; other values than text as JSON.
    pub fn text(&self, name: &str) -> Result<String, ValueError> {
        let value = self.get(name)?;
        Ok(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }

    /// Stores the values that a step keeps of its answer.
    pub fn keep(&mut self, step: &Step, answer: &Json) -> Result<(), ValueError> {
        for (name, pointer) in &step.keep {
            let value = answer.pointer(pointer).ok_or_else(|| ValueError::NothingToKeep {
                pointer: pointer.clone(),
                answer: answer.to_string(),
            })?;
            self.set(name, value.clone());
        }
        Ok(())
    }

    /// A value with its placeholders replaced. A text that is one placeholder becomes the value itself, of any type.
    pub fn fill(&self, value: &Json) -> Result<Json, ValueError> {
        match value {
            Json::String(text) => self.fill_text(text),
            Json::Array(items) => {
                Ok(Json::Array(items.iter().map(|item| self.fill(item)).collect::<Result<_, _>>()?))
            }
            Json::Object(members) if value.get("$repeat").is_some() => self.repeat(value, members.len()),
            Json::Object(members) => {
                let filled = members.iter().map(|(name, member)| Ok((name.clone(), self.fill(member)?)));
                Ok(Json::Object(filled.collect::<Result<_, ValueError>>()?))
            }
            other => Ok(other.clone()),
        }
    }

    fn fill_text(&self, text: &str) -> Result<Json, ValueError> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').ok_or_else(|| ValueError::Open(text.to_owned()))?;
            if before.is_empty() && after.is_empty() && filled.is_empty() {
                return self.get(name).cloned();
            }
            filled.push_str(before);
            filled.push_str(&self.text(name)?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(Json::from(filled))
    }

    /// A text or a list of equal elements: `{ $repeat: 101, of: … }`.
    fn repeat(&self, value: &Json, members: usize) -> Result<Json, ValueError> {
        let times = value.get("$repeat").and_then(Json::as_u64).and_then(|times| usize::try_from(times).ok());
        match (times, value.get("of")) {
            (Some(times), Some(of)) if members == 2 => Ok(match self.fill(of)? {
                Json::String(text) => Json::from(text.repeat(times)),
                element => Json::Array(vec![element; times]),
            }),
            _ => Err(ValueError::Repeat),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_and_unknown_ones_refused() {
        let mut values = Values::default();
        values.set("id", Json::object().with("agent_id", "did"));
        values.set("n", 7u8);
        let json = |text: &str| Json::parse(text.as_bytes()).unwrap();
        let filled = values.fill(&json(
            r#"{"a":"${id}","b":"n=${n}!","c":{"$repeat":2,"of":"xy"},"d":{"$repeat":2,"of":1}}"#,
        ));
        assert_eq!(filled, Ok(json(r#"{"a":{"agent_id":"did"},"b":"n=7!","c":"xyxy","d":[1,1]}"#)));
        assert_eq!(values.fill(&json(r#""${nobody}""#)), Err(ValueError::Unknown("nobody".to_owned())));
        assert!(matches!(values.fill(&json(r#""${n""#)), Err(ValueError::Open(_))));
        assert_eq!(values.fill(&json(r#"{"$repeat":2}"#)), Err(ValueError::Repeat));
    }
}
