//! An action from the command line: as JSON, or from flags.

use std::io::Read;

use proctor_core::action::Action;
use proctor_core::json::Json;
use proctor_net::lines::MAX_MESSAGE;

use crate::cli::ActionArgs;
use crate::failure::Failure;

/// The action that the arguments describe, with its agent and session, which may stand in the JSON as they do for `gate`.
pub struct Described {
    /// The action.
    pub action: Action,
    /// The agent, as claimed.
    pub agent: String,
    /// The session, as claimed.
    pub session: String,
    /// The action as one line of `gate`.
    pub line: Json,
}

/// Reads the action.
pub fn read(arguments: &ActionArgs) -> Result<Described, Failure> {
    let mut value = match arguments.action.as_deref() {
        None => Json::object(),
        Some("-") => {
            let mut text = Vec::new();
            std::io::stdin()
                .lock()
                .take(MAX_MESSAGE as u64 + 1)
                .read_to_end(&mut text)
                .map_err(|error| Failure::from(format!("stdin: {error}")))?;
            parse(&text)?
        }
        Some(text) => parse(text.as_bytes())?,
    };
    let flags = [
        ("tool", &arguments.tool),
        ("kind", &arguments.kind),
        ("path", &arguments.path),
        ("operation", &arguments.operation),
        ("command", &arguments.command),
        ("host", &arguments.host),
        ("url", &arguments.url),
        ("model", &arguments.model),
        ("text", &arguments.text),
        ("cwd", &arguments.cwd),
        ("session", &arguments.session),
    ];
    for (name, flag) in flags {
        if let Some(text) = flag {
            value.set_pointer(&format!("/{name}"), Json::from(text.as_str()));
        }
    }
    for pair in &arguments.args {
        let (name, text) =
            pair.split_once('=').ok_or_else(|| Failure::from(format!("`--arg {pair}`: write NAME=VALUE")))?;
        let argument = Json::parse(text.as_bytes()).unwrap_or_else(|_| Json::from(text));
        if value.get("args").is_none_or(Json::is_null) {
            value.set_pointer("/args", Json::object());
        }
        let name = name.replace('~', "~0").replace('/', "~1");
        value.set_pointer(&format!("/args/{name}"), argument);
    }
    describe(value)
}

fn parse(text: &[u8]) -> Result<Json, Failure> {
    let value =
        Json::parse(text).map_err(|error| Failure::from(format!("the action is not JSON: {error}")))?;
    match value {
        Json::Object(_) => Ok(value),
        other => Err(Failure::from(format!("an action is an object, this is {}", other.type_name()))),
    }
}

/// Takes agent and session out of the JSON, and reads the rest as an action.
pub fn describe(line: Json) -> Result<Described, Failure> {
    let mut members = Vec::new();
    let (mut agent, mut session) = (String::new(), String::new());
    for (name, member) in line.as_object().unwrap_or_default() {
        match (name.as_str(), member) {
            ("agent", Json::String(text)) => agent.clone_from(text),
            ("session", Json::String(text)) => session.clone_from(text),
            ("ref", _) => {}
            _ => members.push((name.clone(), member.clone())),
        }
    }
    if members.is_empty() {
        return Err(Failure::from(
            "no action is given: pass it as JSON, or describe it with flags such as `--tool` and `--arg`",
        ));
    }
    let mut action = Action::from_json(&Json::Object(members))
        .map_err(|problems| Failure::list(problems.iter().map(ToString::to_string)))?;
    if action.door.is_empty() {
        "check".clone_into(&mut action.door);
    }
    Ok(Described { action, agent, session, line })
}
