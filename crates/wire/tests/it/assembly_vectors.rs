//! The messages and the frames of Agent Assembly against the published vectors.

use std::path::{Path, PathBuf};

use proctor_wire::assembly::frames::bare::{self, BareDecoder};
use proctor_wire::assembly::proto::agent::v1::control_command::Command;
use proctor_wire::assembly::proto::agent::v1::{
    ControlCommand, DeregisterRequest, DeregisterResponse, HeartbeatRequest, HeartbeatResponse, KillCommand,
    PolicyUpdateCommand, RegisterRequest, RegisterResponse, ResumeCommand, SuspendCommand,
};
use proctor_wire::assembly::proto::common::v1::{ActionType, AgentId, Decision, RiskTier, Timestamp};
use proctor_wire::assembly::proto::policy::v1::action_context::Action;
use proctor_wire::assembly::proto::policy::v1::{
    ActionContext, CheckActionRequest, CheckActionResponse, RedactInstructions, RedactRule, ToolCallContext,
};
use prost::Message;
use serde_json::Value;

#[test]
fn framing_vectors_are_written_and_read() {
    let Some(vectors) = vectors("ipc_framing") else { return };
    for (name, vector) in &vectors {
        match vector["case_type"].as_str() {
            None => {
                let (payload, framed) = (bytes(&vector["input_hex"]), bytes(&vector["expected_framed_hex"]));
                assert_eq!(written(&payload), framed, "{name}");
                assert_eq!(read([framed.as_slice()]), std::slice::from_ref(&payload), "{name}");
                let message = AgentId::decode(payload.as_slice()).expect("an agent id");
                assert_eq!(message.encode_to_vec(), payload, "{name}");
            }
            Some("stream_split") => {
                let whole = bytes(&vector["full_framed_hex"]);
                let chunks: Vec<&[u8]> = list(&vector["chunks"])
                    .iter()
                    .map(|chunk| {
                        let (offset, length) = (number(&chunk["offset"]), number(&chunk["length"]));
                        &whole[offset..offset + length]
                    })
                    .collect();
                assert_eq!(chunks.concat(), whole, "{name}");
                assert_eq!(read(chunks), [bytes(&vector["expected_decoded_hex"])], "{name}");
            }
            Some("consecutive_frames" | "multi_message_stream") => {
                let frames = list(&vector["frames"]);
                let payloads: Vec<Vec<u8>> = frames.iter().map(|frame| bytes(&frame["input_hex"])).collect();
                for (frame, payload) in frames.iter().zip(&payloads) {
                    assert_eq!(written(payload), bytes(&frame["framed_hex"]), "{name}");
                }
                assert_eq!(read([bytes(&vector["concatenated_framed_hex"]).as_slice()]), payloads, "{name}");
            }
            Some(other) => panic!("{name}: a case of an unknown type `{other}`"),
        }
    }
    assert!(vectors.len() >= 10, "{} vectors", vectors.len());
}

#[test]
fn messages_have_the_published_encoding() {
    let Some(vectors) = vectors("message_serialization") else { return };
    for (name, vector) in &vectors {
        let golden = folder().join("proto").join(string(&vector["golden_bin"]));
        let golden = std::fs::read(golden).expect("a golden file");
        let fields = Fields::new(&vector["fields"]);
        match string(&vector["message_type"]).rsplit('.').next().expect("a name") {
            "AgentId" => same_bytes(name, &agent_id(fields), &golden),
            "Timestamp" => same_bytes(name, &timestamp(fields), &golden),
            "CheckActionRequest" => same_bytes(name, &check_request(fields), &golden),
            "CheckActionResponse" => same_bytes(name, &check_response(fields), &golden),
            // The golden file's map is in another order than ours, which is sorted.
            "RegisterRequest" => {
                let built = register_request(fields);
                assert_eq!(RegisterRequest::decode(golden.as_slice()).as_ref(), Ok(&built), "{name}");
                assert_eq!(built.encoded_len(), golden.len(), "{name}");
            }
            "RegisterResponse" => same_bytes(name, &register_response(fields), &golden),
            "HeartbeatRequest" => same_bytes(name, &heartbeat_request(fields), &golden),
            "DeregisterRequest" => same_bytes(name, &deregister_request(fields), &golden),
            other => panic!("{name}: a message of an unknown type `{other}`"),
        }
    }
    assert!(vectors.len() >= 10, "{} vectors", vectors.len());
}

#[test]
fn session_messages_come_back() {
    let Some(vectors) = vectors("session_lifecycle") else { return };
    for (name, vector) in &vectors {
        let mut fields = Fields::new(&vector["fields"]);
        let kind = string(&vector["message_type"]);
        if fields.0.contains_key("credential_token") {
            assert_ne!(fields.0["credential_token"], "", "{name}");
        }
        let command = match kind {
            "RegisterRequest" => return_trip(name, &register_request(fields)),
            "RegisterResponse" => return_trip(name, &register_response(fields)),
            "HeartbeatRequest" => return_trip(name, &heartbeat_request(fields)),
            "HeartbeatResponse" => {
                let (policy_updated, should_suspend) =
                    (fields.flag("policy_updated"), fields.flag("should_suspend"));
                return_trip(name, &HeartbeatResponse { policy_updated, should_suspend })
            }
            "DeregisterRequest" => return_trip(name, &deregister_request(fields)),
            "DeregisterResponse" => {
                let (success, agent_id) = (fields.flag("success"), fields.text("agent_id"));
                return_trip(name, &DeregisterResponse { success, agent_id })
            }
            "ControlCommand_Suspend" => {
                Some(Command::Suspend(SuspendCommand { reason: fields.text("reason") }))
            }
            "ControlCommand_Resume" => Some(Command::Resume(ResumeCommand { note: fields.text("note") })),
            "ControlCommand_Kill" => Some(Command::Kill(KillCommand { reason: fields.text("reason") })),
            "ControlCommand_PolicyUpdate" => Some(Command::PolicyUpdate(PolicyUpdateCommand {
                new_policy_id: fields.text("new_policy_id"),
                policy_bytes: fields.text("policy_bytes").into_bytes(),
            })),
            other => panic!("{name}: a message of an unknown type `{other}`"),
        };
        if let Some(command) = command {
            return_trip(name, &ControlCommand { command: Some(command) });
        }
    }
    assert!(vectors.len() >= 10, "{} vectors", vectors.len());
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors").join("assembly")
}

/// The vectors of a family by name, or `None` where they are absent.
fn vectors(family: &str) -> Option<Vec<(String, Value)>> {
    let Ok(entries) = std::fs::read_dir(folder().join(family)) else {
        println!("not run: shared vectors are absent");
        return None;
    };
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let mut vectors: Vec<(String, Value)> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            let name = path.file_stem().expect("a file name").to_string_lossy().into_owned();
            let text = std::fs::read(&path).expect("a readable vector");
            (name, serde_json::from_slice(&text).expect("a JSON vector"))
        })
        .collect();
    vectors.sort_by(|(one, _), (other, _)| one.cmp(other));
    Some(vectors)
}

fn written(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    bare::encode(payload, &mut out).expect("a payload within the limit");
    out
}

/// Feeds chunk by chunk; nothing may be left at the end, and a frame comes with its last byte, not before.
fn read<'chunk>(chunks: impl IntoIterator<Item = &'chunk [u8]>) -> Vec<Vec<u8>> {
    let mut decoder = BareDecoder::new();
    let mut frames = Vec::new();
    for chunk in chunks {
        assert_eq!(decoder.next_frame(), Ok(None));
        assert!(decoder.feed(chunk).is_empty());
        while let Some(frame) = decoder.next_frame().expect("well-formed frames") {
            frames.push(frame);
        }
    }
    assert_eq!(decoder.pending(), 0);
    frames
}

fn same_bytes<M: Message + Default + PartialEq + std::fmt::Debug>(name: &str, built: &M, golden: &[u8]) {
    assert_eq!(built.encode_to_vec(), golden, "{name}");
    assert_eq!(M::decode(golden).as_ref(), Ok(built), "{name}");
}

fn return_trip<M: Message + Default + PartialEq + std::fmt::Debug>(name: &str, built: &M) -> Option<Command> {
    let bytes = built.encode_to_vec();
    assert!(!bytes.is_empty(), "{name}");
    assert_eq!(M::decode(bytes.as_slice()).as_ref(), Ok(built), "{name}");
    None
}

/// The fields of a message. What no builder took is a field that we do not know.
struct Fields(serde_json::Map<String, Value>);

impl Fields {
    fn new(fields: &Value) -> Self {
        Self(fields.as_object().expect("an object of fields").clone())
    }

    fn take(&mut self, name: &str) -> Value {
        self.0.remove(name).unwrap_or_else(|| panic!("no field `{name}`"))
    }

    fn text(&mut self, name: &str) -> String {
        string(&self.take(name)).to_owned()
    }

    fn integer(&mut self, name: &str) -> i64 {
        self.take(name).as_i64().expect("a whole number")
    }

    fn flag(&mut self, name: &str) -> bool {
        self.take(name).as_bool().expect("true or false")
    }

    fn nested(&mut self, name: &str) -> Option<Self> {
        let value = self.take(name);
        (!value.is_null()).then(|| Self::new(&value))
    }
}

impl Drop for Fields {
    fn drop(&mut self) {
        assert!(std::thread::panicking() || self.0.is_empty(), "fields that no one knows: {:?}", self.0);
    }
}

fn agent_id(mut fields: Fields) -> AgentId {
    AgentId {
        org_id: fields.text("org_id"),
        team_id: fields.text("team_id"),
        agent_id: fields.text("agent_id"),
    }
}

fn timestamp(mut fields: Fields) -> Timestamp {
    // For people; not part of the message.
    fields.take("note");
    Timestamp { unix_ms: fields.integer("unix_ms") }
}

fn check_request(mut fields: Fields) -> CheckActionRequest {
    let action_type = ActionType::from_str_name(&fields.text("action_type")).expect("an action type");
    let mut context = fields.nested("context").expect("a context");
    let mut tool_call = context.nested("tool_call").expect("a tool call");
    CheckActionRequest {
        agent_id: fields.nested("agent_id").map(agent_id),
        credential_token: fields.text("credential_token"),
        trace_id: fields.text("trace_id"),
        span_id: fields.text("span_id"),
        action_type: action_type.into(),
        context: Some(ActionContext {
            action: Some(Action::ToolCall(ToolCallContext {
                tool_name: tool_call.text("tool_name"),
                tool_source: tool_call.text("tool_source"),
                args_json: tool_call.text("args_json_utf8").into_bytes(),
                target_url: tool_call.text("target_url"),
            })),
        }),
        ..Default::default()
    }
}

fn check_response(mut fields: Fields) -> CheckActionResponse {
    let redact = fields.nested("redact").map(|mut redact| RedactInstructions {
        rules: list(&redact.take("rules"))
            .iter()
            .map(|rule| {
                let mut rule = Fields::new(rule);
                RedactRule { field_path: rule.text("field_path"), replacement: rule.text("replacement") }
            })
            .collect(),
    });
    CheckActionResponse {
        decision: Decision::from_str_name(&fields.text("decision")).expect("a decision").into(),
        reason: fields.text("reason"),
        policy_rule: fields.text("policy_rule"),
        approval_id: fields.text("approval_id"),
        redact,
        decision_latency_us: fields.integer("decision_latency_us"),
        ..Default::default()
    }
}

fn register_request(mut fields: Fields) -> RegisterRequest {
    let metadata = fields.take("metadata");
    let metadata = metadata.as_object().expect("a map");
    RegisterRequest {
        agent_id: fields.nested("agent_id").map(agent_id),
        name: fields.text("name"),
        framework: fields.text("framework"),
        version: fields.text("version"),
        risk_tier: RiskTier::from_str_name(&fields.text("risk_tier")).expect("a risk tier").into(),
        tool_names: list(&fields.take("tool_names")).iter().map(|name| string(name).to_owned()).collect(),
        public_key: fields.text("public_key"),
        metadata: metadata.iter().map(|(key, value)| (key.clone(), string(value).to_owned())).collect(),
        ..Default::default()
    }
}

fn register_response(mut fields: Fields) -> RegisterResponse {
    RegisterResponse {
        credential_token: fields.text("credential_token"),
        assigned_policy: fields.text("assigned_policy"),
        heartbeat_interval_sec: fields.integer("heartbeat_interval_sec"),
        ..Default::default()
    }
}

fn heartbeat_request(mut fields: Fields) -> HeartbeatRequest {
    HeartbeatRequest {
        agent_id: fields.nested("agent_id").map(agent_id),
        credential_token: fields.text("credential_token"),
        active_runs: fields.integer("active_runs").try_into().expect("a 32-bit number"),
        actions_count: fields.integer("actions_count"),
    }
}

fn deregister_request(mut fields: Fields) -> DeregisterRequest {
    DeregisterRequest {
        agent_id: fields.nested("agent_id").map(agent_id),
        credential_token: fields.text("credential_token"),
        reason: fields.text("reason"),
    }
}

fn bytes(text: &Value) -> Vec<u8> {
    hex::decode(string(text)).expect("hexadecimal digits")
}

fn string(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn number(value: &Value) -> usize {
    value.as_u64().and_then(|number| usize::try_from(number).ok()).expect("a whole number")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}
