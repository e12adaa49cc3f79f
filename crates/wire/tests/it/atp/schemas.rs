//! The schemas and the gRPC definition that are shipped.

use proctor_wire::atp::schema;
use serde_json::Value;

#[test]
fn schemas_are_valid_json_schemas_with_the_documents_names() {
    for (text, id) in [
        (schema::REQUEST, "https://atp.schema/request/v1"),
        (schema::RESPONSE, "https://atp.schema/response/v1"),
        (schema::EVENT, "https://atp.schema/event/v1"),
    ] {
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(value["$id"], id);
        assert_eq!(value["$schema"], "http://json-schema.org/draft-07/schema#");
        assert!(jsonschema::meta::is_valid(&value));
    }
}

#[test]
fn the_service_has_the_agreed_methods() {
    for part in [
        "package proctor.atp.v1;",
        "rpc Execute(Request) returns (Response);",
        "rpc ExecuteStream(Request) returns (stream Message);",
    ] {
        assert!(schema::PROTO.contains(part), "{part}");
    }
}
