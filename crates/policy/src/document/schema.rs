//! The JSON Schema of the document, for editors and other tools. The reader is stricter where a schema cannot say it.

/// The schema, JSON Schema draft-07.
pub const SCHEMA: &str = include_str!("../../../../schemas/policy/v1/policy-document.schema.json");

#[cfg(test)]
mod tests {
    use proctor_core::json::Json;

    use super::*;
    use crate::document::keys;

    fn schema() -> Json {
        Json::parse(SCHEMA.as_bytes()).expect("the schema is JSON")
    }

    fn names(object: &Json) -> Vec<String> {
        let members = object.as_object().expect("an object");
        members.iter().map(|(name, _)| name.clone()).collect()
    }

    fn sorted(mut names: Vec<String>) -> Vec<String> {
        names.sort();
        names
    }

    #[test]
    fn the_schema_and_the_reader_have_the_same_keys() {
        let tables = [
            ("document", keys::DOCUMENT),
            ("envelope", keys::ENVELOPE),
            ("metadata", keys::METADATA),
            ("rule", keys::RULE),
            ("module", keys::MODULE),
            ("network", keys::NETWORK),
            ("tool", keys::TOOL),
            ("data", keys::DATA),
            ("budget", keys::BUDGET),
            ("counts", keys::COUNTS),
            ("schedule", keys::SCHEDULE),
            ("active_hours", keys::ACTIVE_HOURS),
            ("capabilities", keys::CAPABILITIES),
            ("approval", keys::APPROVAL),
            ("anomalies", keys::ANOMALIES),
            ("anomalies_loops", keys::ANOMALIES_LOOPS),
            ("anomalies_spikes", keys::ANOMALIES_SPIKES),
            ("anomalies_leaks", keys::ANOMALIES_LEAKS),
            ("anomalies_response", keys::ANOMALIES_RESPONSE),
            ("advice", keys::ADVICE),
            ("advice_idle", keys::ADVICE_IDLE),
            ("advice_intent", keys::ADVICE_INTENT),
            ("advice_planning", keys::ADVICE_PLANNING),
            ("advice_reasoning", keys::ADVICE_REASONING),
            ("advice_context", keys::ADVICE_CONTEXT),
            ("advice_memory", keys::ADVICE_MEMORY),
            ("advice_rate_limit", keys::ADVICE_RATE_LIMIT),
        ];
        let schema = schema();
        let definitions = schema.get("definitions").expect("definitions");
        let defined: Vec<String> = tables.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(sorted(names(definitions)), sorted(defined));
        for (name, table) in tables {
            let definition = definitions.get(name).expect(name);
            let properties = definition.get("properties").expect(name);
            let table: Vec<String> = table.iter().map(|key| (*key).to_owned()).collect();
            assert_eq!(sorted(names(properties)), sorted(table), "{name}");
            assert_eq!(
                definition.get("additionalProperties"),
                Some(&Json::Bool(false)),
                "{name} must be closed"
            );
            assert!(definition.get("description").is_some(), "{name} needs a description");
            for (key, property) in properties.as_object().expect(name) {
                let described = property.get("description").is_some() || property.get("$ref").is_some();
                assert!(described, "{name}.{key} needs a description");
            }
        }
    }

    #[test]
    fn the_schema_and_the_reader_have_the_same_words() {
        let schema = schema();
        for (pointer, words) in [
            ("/definitions/document/properties/default/enum", keys::DEFAULTS),
            ("/definitions/rule/properties/then/enum", keys::EFFECTS),
            ("/definitions/data/properties/credential_action/enum", keys::CREDENTIAL_ACTIONS),
            ("/definitions/budget/properties/action_on_exceed/enum", keys::EXCEED_ACTIONS),
            ("/definitions/anomalies_loops/properties/then/enum", keys::RESPONSES),
            ("/definitions/anomalies_spikes/properties/then/enum", keys::RESPONSES),
            ("/definitions/anomalies_leaks/properties/then/enum", keys::RESPONSES),
            ("/definitions/anomalies_response/properties/then/enum", keys::RESPONSES),
            ("/definitions/advice_memory/properties/sessions/enum", keys::MEMORY_SESSIONS),
        ] {
            let listed = schema.pointer(pointer).and_then(Json::as_array).expect(pointer);
            let listed: Vec<&str> = listed.iter().filter_map(Json::as_str).collect();
            assert_eq!(listed, words, "{pointer}");
        }
        let named: [(&str, &[&str], &[&str]); 3] = [
            ("capabilities/properties/deny", keys::CAPABILITY_NAMES, keys::CAPABILITY_PREFIXES),
            ("advice_planning/properties/strategies", keys::STRATEGIES, &[keys::STRATEGY_PREFIX]),
            ("advice_reasoning/properties/types", keys::REASONING_TYPES, &[keys::REASONING_PREFIX]),
        ];
        for (place, names, prefixes) in named {
            let pattern =
                schema.pointer(&format!("/definitions/{place}/items/pattern")).and_then(Json::as_str);
            let pattern = regex::Regex::new(pattern.expect("a pattern")).expect("a regular expression");
            for name in names {
                assert!(pattern.is_match(name), "{name}");
            }
            for prefix in prefixes {
                assert!(pattern.is_match(&format!("{prefix}x")) && !pattern.is_match(prefix), "{prefix}");
            }
            assert!(!pattern.is_match("something_else"));
        }
    }

    #[test]
    fn every_part_of_anomalies_can_be_turned_off() {
        let schema = schema();
        for part in keys::ANOMALIES {
            let pointer = format!("/definitions/anomalies/properties/{part}/anyOf/0/const");
            assert_eq!(schema.pointer(&pointer).and_then(Json::as_str), Some(keys::OFF), "{part}");
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let schema = schema();
        let mut waiting = vec![&schema];
        let mut count = 0;
        while let Some(value) = waiting.pop() {
            if let Some(target) = value.get("$ref").and_then(Json::as_str) {
                let pointer = target.strip_prefix('#').expect("a local reference");
                assert!(schema.pointer(pointer).is_some(), "{target}");
                count += 1;
            }
            waiting.extend(value.as_array().unwrap_or_default());
            waiting.extend(value.as_object().unwrap_or_default().iter().map(|(_, member)| member));
        }
        assert!(count > 10);
    }
}
