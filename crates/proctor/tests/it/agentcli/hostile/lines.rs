//! Lines of the server: deep, huge, cyclic, with duplicate members and control characters.

use super::super::place::{Place, manifest};
use super::Attacked;

fn tasks(tasks: &[String]) -> String {
    format!(r#"{{"version":"0.2","workflows":[{{"id":"w","name":"W","tasks":[{}]}}]}}"#, tasks.join(","))
}

fn task(id: &str, rest: &str) -> String {
    format!(
        r#"{{"id":"{id}","name":"T","target":{{"session_target":"shell"}},"shell":{{"program":"x"}},{rest}}}"#
    )
}

#[test]
fn large_and_twisted_manifests_are_answered_in_time_and_within_memory() {
    let mut attacked = Attacked::new(Place::new());
    let nested =
        |open: &str, close: &str, depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
    let config = |value: &str| {
        manifest(
            r#""shell":{"program":"x"},"identity":{"ref":"p"}"#,
            &format!(
                r#""identity_profiles":[{{"id":"p","provider":"none","provider_config":{{"x":{value}}}}}],"#
            ),
        )
    };
    let crons: Vec<String> = (0..2000)
        .map(|number| {
            let cron = format!("{} {} {} 2 *", number % 60, number / 60 % 24, 30 + number % 2);
            task(&format!("t{number}"), &format!(r#""schedule":{{"cron":"{cron}"}}"#))
        })
        .collect();
    let ring: Vec<String> = (0..2000)
        .map(|number| {
            let parent = (number + 1) % 2000;
            task(&format!("t{number}"), &format!(r#""trigger":{{"parent":"t{parent}","on":"success"}}"#))
        })
        .collect();
    let chain: Vec<String> = (0..2000)
        .map(|number| match number {
            0 => task("t0", r#""schedule":{"cron":"0 9 * * *"}"#),
            _ => {
                let parent = number - 1;
                task(&format!("t{number}"), &format!(r#""trigger":{{"parent":"t{parent}","on":"success"}}"#))
            }
        })
        .collect();
    let same: Vec<String> = vec![task("a", r#""schedule":{"cron":"0 9 * * *"}"#); 2000];
    let profiles: Vec<String> =
        (0..5000).map(|number| format!(r#"{{"id":"p{number}","provider":"none"}}"#)).collect();
    let unknown: Vec<String> = (0..20_000).map(|number| format!(r#""k{number}":0"#)).collect();
    for (what, manifest) in [
        ("deep arrays", nested("[", "]", 5000)),
        ("deep objects", nested(r#"{"a":"#, "}", 5000)),
        ("deep configuration", config(&nested("[", "]", 100))),
        ("impossible crons", tasks(&crons)),
        ("a ring of triggers", tasks(&ring)),
        ("a chain of triggers", tasks(&chain)),
        ("one id for all", tasks(&same)),
        (
            "many profiles",
            format!(r#"{{"version":"0.2","identity_profiles":[{}],"workflows":[]}}"#, profiles.join(",")),
        ),
        ("unknown keys", format!(r#"{{"version":"0.2",{},"workflows":[]}}"#, unknown.join(","))),
        ("a long text", format!("\"{}\"", "x".repeat(6 << 20))),
        (
            "a long name",
            manifest(r#""shell":{"program":"x"}"#, "")
                .replace("\"W\"", &format!("\"{}\"", "é".repeat(1 << 20))),
        ),
        ("a long cron", tasks(&[task("a", &format!(r#""schedule":{{"cron":"{}"}}"#, "1,".repeat(500_000)))])),
        (
            "a long zone",
            tasks(&[task(
                "a",
                &format!(r#""schedule":{{"cron":"0 9 * * *","tz":"{}"}}"#, "A/".repeat(500_000)),
            )]),
        ),
        (
            "a long argument",
            manifest(&format!(r#""shell":{{"program":"x","args":["{}"]}}"#, "'".repeat(1 << 20)), ""),
        ),
        ("a large number", config("1e999999")),
        ("many digits", config(&"9".repeat(1 << 20))),
        ("duplicate members", r#"{"version":"0.2","version":"0.1"}"#.to_owned()),
        ("lone surrogates", r#"{"version":"\ud800"}"#.to_owned()),
        (
            "control characters",
            manifest(r#""shell":{"program":"x\u0000","args":["\u0001"],"cwd":"\u007f"}"#, ""),
        ),
    ] {
        attacked.manifest(what, &manifest);
    }
    attacked.end();
}

#[test]
fn lines_beyond_the_limits_are_refused_and_not_kept() {
    let mut attacked = Attacked::new(Place::new());
    let long = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(40 << 20));
    attacked.server.send(&long);
    let reply = attacked.server.line();
    assert!(reply.contains("-32700"), "{reply}");
    let many = format!(r#"{{"manifest":[{}0]}}"#, "0,".repeat(2_000_000));
    let reply = attacked.call("many values", "validate", &many);
    assert!(reply.to_string().contains("-32700"), "{reply}");
    attacked.server.send("\u{0}\u{1}\u{2}");
    assert!(attacked.server.line().contains("-32700"));
    attacked.end();
}
