use super::*;

fn refused(line: &str) -> Json {
    match read(line.as_bytes()) {
        Line::Refused(Some(reply)) => Json::parse(reply.as_bytes()).unwrap(),
        other => panic!("{line}: {other:?}"),
    }
}

fn call(line: &str) -> Call {
    match read(line.as_bytes()) {
        Line::Call(call) => call,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn ready_line_is_the_documented_one() {
    let line = r#"{"jsonrpc":"2.0","method":"agentcli.ready","params":{"ok":true,"manifest_version":"0.2"}}"#;
    assert_eq!(ready(), line);
}

#[test]
fn blank_lines_are_skipped() {
    for line in ["", " ", "\r", "\t \u{a0}\r"] {
        assert_eq!(read(line.as_bytes()), Line::Blank);
    }
}

#[test]
fn lines_that_are_not_json_are_parse_errors() {
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    for line in ["{", "nonsense", "{} {}", r#"{"id":1,"id":2}"#, r#"{"a":{"b":1,"b":1}}"#, &deep] {
        let reply = refused(line);
        assert_eq!(reply["id"], Json::Null);
        assert_eq!(reply["error"]["code"].as_i64(), Some(-32700), "{line}");
        assert_eq!(reply["error"]["data"]["code"], "parse_error");
        assert_eq!(reply["error"]["data"]["error_type"], "parse_error");
        assert!(reply["error"]["data"]["details"].as_str().is_some_and(|details| !details.is_empty()));
    }
    assert!(matches!(read(b"\"\xff\""), Line::Refused(Some(_))));
}

#[test]
fn size_is_bounded() {
    let reply = Json::parse(too_long().as_bytes()).unwrap();
    assert_eq!(reply["error"]["code"].as_i64(), Some(-32700));
    assert!(matches!(read(&vec![b' '; MAX_LINE + 1]), Line::Refused(Some(_))));
    let values = format!("[{}0]", "0,".repeat(MAX_VALUES));
    assert_eq!(refused(&values)["error"]["code"].as_i64(), Some(-32700));
}

#[test]
fn batches_and_scalars_are_invalid_requests_with_id_null() {
    for line in ["[]", r#"[{"jsonrpc":"2.0","id":1,"method":"agentcli.ping"}]"#, "1", "\"a\"", "null", "true"]
    {
        let reply = refused(line);
        assert!(reply.get("id").is_some_and(Json::is_null), "{line}");
        assert_eq!(reply["error"]["code"].as_i64(), Some(-32600), "{line}");
        assert_eq!(reply["error"]["data"]["error_type"], "invalid_argument");
        assert_eq!(reply["error"]["data"]["code"], "invalid_argument");
    }
}

#[test]
fn wrong_envelopes_echo_the_id_and_notifications_stay_silent() {
    for (members, code) in [
        (r#""method":"agentcli.ping""#, -32600),
        (r#""jsonrpc":"1.0","method":"agentcli.ping""#, -32600),
        (r#""jsonrpc":2.0,"method":"agentcli.ping""#, -32600),
        (r#""jsonrpc":"2.0""#, -32600),
        (r#""jsonrpc":"2.0","method":7"#, -32600),
        (r#""jsonrpc":"2.0","method":"agentcli.ping","params":[]"#, -32602),
        (r#""jsonrpc":"2.0","method":"agentcli.ping","params":"a""#, -32602),
        (r#""jsonrpc":"2.0","method":"agentcli.ping","params":false"#, -32602),
    ] {
        for id in ["1", "\"x\"", "null", r#"{"a":[1.50]}"#, "[]", "true"] {
            let reply = refused(&format!(r#"{{"id":{id},{members}}}"#));
            assert_eq!(reply["id"].to_string(), id);
            assert_eq!(reply["error"]["code"].as_i64(), Some(code), "{members}");
        }
        assert_eq!(read(format!("{{{members}}}").as_bytes()), Line::Refused(None), "{members}");
    }
}

#[test]
fn absent_and_null_params_are_an_empty_object() {
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null,"more":1}"#,
    ] {
        assert_eq!(call(line).params, Json::object());
    }
}

#[test]
fn replies_carry_the_id_as_it_was_sent() {
    let call = call(" {\"jsonrpc\":\"2.0\",\"id\":{\"n\":1.0},\"method\":\"m\",\"params\":{}}\r");
    assert_eq!(
        call.reply(Ok(Json::object().with("ok", true))).unwrap(),
        r#"{"jsonrpc":"2.0","id":{"n":1.0},"result":{"ok":true}}"#
    );
    let null = Call { id: Some(Json::Null), ..call.clone() };
    assert!(null.reply(Ok(Json::object())).unwrap().contains("\"id\":null"));
    assert_eq!(Call { id: None, ..call }.reply(Err(Failure::invalid_argument("a"))), None);
}

#[test]
fn internal_failures_do_not_tell_what_went_wrong() {
    let reply = refuse(&Json::from(1u8), &Failure::new(Code::InternalError, "secret path"));
    assert!(!reply.contains("secret"), "{reply}");
    let reply = refuse(&Json::from(1u8), &Failure::new(Code::SchedulerError, "job `a` was refused"));
    let reply = Json::parse(reply.as_bytes()).unwrap();
    assert_eq!(reply["error"]["code"].as_i64(), Some(-32603));
    assert_eq!(reply["error"]["message"], "internal error");
    assert_eq!(reply["error"]["data"]["details"], "job `a` was refused");
}

#[test]
fn required_means_truthy() {
    let call = call(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"","b":0,"c":null,"d":false,"e":-0.0,"f":"x","g":{},"h":2}}"#,
    );
    for missing in ["a", "b", "c", "d", "e", "absent"] {
        assert_eq!(call.required(missing).unwrap_err().code, Code::InvalidArgument, "{missing}");
    }
    assert_eq!(call.required_text("f").unwrap(), "x");
    assert!(call.required("g").is_ok());
    assert!(call.required_text("h").is_err());
    assert_eq!(call.text("absent"), Ok(None));
    assert_eq!(call.flag("d"), Ok(false));
    assert!(call.flag("h").is_err());
}
