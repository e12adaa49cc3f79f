//! The command line: strict arguments, files below the working directory, registered manifests.

use proctor_core::json::Json;

use super::place::{Place, at, echo};

#[test]
fn the_command_line_is_strict() {
    let place = Place::new();
    for (arguments, code) in [
        (vec!["validate", "x", "--nope"], "invalid_argument"),
        (vec!["validate"], "invalid_argument"),
        (vec!["frobnicate"], "unknown_command"),
        (vec!["merge", "a", "b"], "unknown_command"),
        (vec!["validate", "{nope"], "parse_error"),
        (vec!["validate", "absent.json"], "invalid_argument"),
        (vec!["compile", r#"{"version":"0.2"}"#], "validation_error"),
    ] {
        let (refused, exit) = place.json(&arguments);
        assert_eq!((exit, at(&refused, "/code").as_str()), (1, Some(code)), "{arguments:?}: {refused}");
        assert_eq!(at(&refused, "/ok"), &Json::Bool(false));
    }
    assert!(place.run(&["help"]).status.success());
    assert!(String::from_utf8_lossy(&place.run(&["--version"]).stdout).contains("0.4.0"));
    place.write("m.json", &echo("x"));
    let (compiled, code) = place.json(&["compile", "m.json", "--target", "openclaw-scheduler"]);
    assert_eq!((code, at(&compiled, "/jobs/0/payload_message").as_str()), (0, Some("'/bin/echo' 'x'")));
    let (written, code) = place.json(&["compile", "m.json", "--write", "out.json"]);
    assert_eq!(code, 0, "{written}");
    assert!(place.path("out.json").is_file());
    let (_, code) = place.json(&["compile", "m.json", "--write", "../out.json"]);
    assert_eq!(code, 1);
    let (added, code) = place.json(&["registry", "add", "m.json"]);
    assert_eq!((code, at(&added, "/name").as_str()), (0, Some("m")));
    let (valid, code) = place.json(&["validate", "m"]);
    assert_eq!((code, at(&valid, "/ok")), (0, &Json::Bool(true)));
}
