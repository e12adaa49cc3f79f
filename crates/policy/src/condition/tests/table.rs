//! Meaning of conditions, one line each.

use super::{Truth, truth};

#[test]
fn conditions_that_hold() {
    for text in [
        "true",
        "action.kind == \"tool_call\"",
        "action.tool == 'shell' && action.name == \"Bash\"",
        "action.tool == \"shell\" && action.args.command.contains(\"rm -rf\")",
        "action[\"tool\"] == \"shell\"",
        "action.args[\"command\"].startsWith(\"rm\")",
        "action.command.endsWith(\"/data\")",
        "action.command.matches(\"^rm +-[a-z]*r\")",
        "matches(action.command, \"data$\")",
        "action.operation == \"\" && action.model == '' && action.url == \"\" && action.text == ''",
        "action.port == 443 && action.port == 443.0 && action.port == 443u",
        "action.tokens > 1000 && action.tokens < 1200.5",
        "action.cost_usd > 0.2 && action.cost_usd < 1",
        "action.depth == 1 && action.cwd == \"/home/me\" && action.door == \"ahp\"",
        "\"/etc/passwd\" in action.paths",
        "action.paths.exists(p, p.startsWith(\"/etc/\"))",
        "action.paths.all(p, p.startsWith(\"/\"))",
        "action.paths.exists_one(p, p == \"/etc/passwd\")",
        "action.paths.filter(p, p.contains(\"etc\")) == [\"/etc/passwd\"]",
        "action.paths.map(p, size(p)) == [9, 11]",
        "action.paths.map(p, p.startsWith(\"/etc\"), p + \"!\") == [\"/etc/passwd!\"]",
        "action.paths[1] == \"/etc/passwd\"",
        "action.writes == [] && size(action.hosts) == 0 && action.unknown.size() == 0",
        "action.commands.size() == 1",
        "\"OpenAiKey\" in action.findings",
        "action.kind in [\"tool_call\", \"process_exec\"]",
        "action.args.count == 3 && action.args.count == 3.0 && action.args.count < 3.5",
        "action.args.count + 1 == 4 && action.args.count * 2 - 1 == 5 && action.args.count / 2 == 1",
        "action.args.count % 2 == 1 && -action.args.count == -3",
        "action.args.big == 18446744073709551615u && action.args.big > 9223372036854775807",
        "action.args.huge > 1e300",
        "action.args.price == 2.5 && double(action.args.count) * 1.5 == 4.5",
        "action.args.force",
        "action.args.nothing == null && action.args.count != null",
        "action.args.files == [\"a.txt\", \"b.txt\"] && action.args.files[0] == \"a.txt\"",
        "\"a.txt\" in action.args.files && \"files\" in action.args",
        "action.args.nested == {\"deep\": {\"x\": 1}} && action.args.nested.deep.x == 1",
        "action.args.mixed.exists(m, m == \"two\")",
        "action.args.nested.exists(k, k == \"deep\")",
        "has(action.args.command) && !has(action.args.comand) && has(action.tool)",
        "has(action.args.missing) ? false : true",
        "size(action.args.empty) == 0 && action.args.empty == {}",
        "size(\"äöü\") == 3 && \"äöü\".size() == 3 && size(b\"abc\") == 3",
        "\"a\" + \"b\" == \"ab\" && [1] + [2] == [1, 2] && b\"a\" + b\"b\" == b\"ab\"",
        "\"ABC\".lowerAscii() == \"abc\" && \"abc\".upperAscii() == \"ABC\" && \" x \".trim() == \"x\"",
        "string(12) == \"12\" && string(true) == \"true\" && string(1.5) == \"1.5\" && string(b\"x\") == \"x\"",
        "int(\"12\") == 12 && int(3.9) == 3 && int(5u) == 5 && uint(7) == 7u && double(\"1.5\") == 1.5",
        "bool(\"true\") && bytes(\"a\") == b\"a\" && dyn(1) == 1",
        "duration(\"1h30m\") == duration(\"90m\") && duration(\"90m\").getMinutes() == 90",
        "string(duration(\"1.5s\")) == \"1.5s\" && -duration(\"2s\") == duration(\"-2s\")",
        "timestamp(\"2025-11-15T20:45:07.123456Z\") == time.now",
        "time.now - timestamp(\"2025-11-15T20:45:00Z\") < duration(\"8s\")",
        "time.now + duration(\"1h\") > time.now && time.now - duration(\"1h\") < time.now",
        "time.hour == 20 && time.minute == 45 && time.weekday == \"saturday\" && time.date == \"2025-11-15\"",
        "time.now.getHours() == 20 && time.now.getDayOfWeek() == 6 && time.now.getFullYear() == 2025",
        "time.now.getMonth() == 10 && time.now.getDate() == 15 && time.now.getDayOfMonth() == 14",
        "!(time.weekday in [\"monday\", \"friday\"]) && time.hour >= 18",
        "session.called(\"read_*\") && !session.called(\"write_*\")",
        "session.count(\"read_*\") == 3 && session.count(\"other\") == 0",
        "session.since(\"read_*\") == duration(\"90s\") && session.since(\"never\") > duration(\"800000h\")",
        "session.denied(\"shell\") && session.denied_count(\"shell\") == 2 && !session.denied(\"x\")",
        "session.tainted(\"customer_data\") && !agent.tainted(\"other\")",
        "session.denied(action.tool) && session.count(action.tool) == 0",
        "agent.count(\"deploy\") == 7 && agent.called(\"deploy\") && agent.denied_count(\"shell\") == 2",
        "session.id == \"07070707-0707-0707-0707-070707070707\"",
        "agent.name == \"builder\" && agent.principal == \"ci-bot\" && agent.team == \"core\" && agent.org == \"acme\"",
        "action.metadata.source == \"ide\"",
        "action.result == null",
        "1 < 2.5 && 2u > 1 && 9007199254740993 > 9007199254740992.0 && \"a\" < \"b\" && b\"a\" < b\"b\" && false < true",
        "{\"a\": 1}.a == 1 && {1: \"x\"}[1] == \"x\" && \"a\" in {\"a\": 1}",
        "[1, 2, 3].exists(x, [10, 20].exists(y, x * 10 == y))",
        "[\"action\"].exists(action, action == \"action\")",
        "// a comment\n action.tool == \"shell\" // and another",
        "action.args.missing == 1 || action.tool == \"shell\"",
        "action.tool == \"shell\" || action.args.missing == 1",
        "!(action.args.missing == 1 && action.tool == \"x\")",
        "action.args.files.exists(f, f == \"b.txt\" || f.missing == 1)",
    ] {
        assert_eq!(truth(text), Truth::True, "{text}");
        // What holds, its opposite does not.
        assert_eq!(truth(&format!("!({text}\n)")), Truth::False, "{text}");
    }
}

#[test]
fn conditions_that_end_in_a_missing_member() {
    for text in [
        "action.args.missing == 1",
        "action.args.missing",
        "!action.args.missing",
        "action.args.missing != \"prod\"",
        "action.args.missing.deeper.contains(\"x\")",
        "action.args.command.missing == 1",
        "action.args.nothing.x == 1",
        "action.args.files[7] == \"x\"",
        "action.args.files[-1] == \"x\"",
        "action.args.files.name == \"x\"",
        "action.args[\"missing\"] == 1",
        "action.args.nested.deep.y == 1",
        "action.result.error == \"x\"",
        "action.metadata.missing == 1",
        "has(action.args.missing.deeper)",
        "action.args.missing == 1 && action.tool == \"shell\"",
        "action.tool == \"shell\" && action.args.missing == 1",
        "action.args.missing == 1 || action.tool == \"x\"",
        "action.args.missing ? true : true",
        "action.args.mixed.exists(m, m.three == 4)",
        "action.args.mixed.filter(m, m.three == 3).size() == 1",
        "[action.args.missing].size() == 1",
        "session.called(action.args.missing)",
        "action.args.missing == 1 && action.args.other == 2",
    ] {
        assert_eq!(truth(text), Truth::Missing, "{text}");
        assert_eq!(truth(&format!("!({text})")), Truth::Missing, "{text}");
        assert_eq!(truth(&format!("({text}) || true")), Truth::True, "{text}");
        assert_eq!(truth(&format!("({text}) && false")), Truth::False, "{text}");
    }
}

#[test]
fn conditions_that_end_in_an_error() {
    for (text, message) in [
        ("action.args.count.contains(\"x\")", "`contains` is not for an int"),
        ("action.args.command > 3", "`>` is not for a string and an int"),
        ("action.args.command + 1 == \"x\"", "`+` is not for a string and an int"),
        ("action.args.count / 0 == 1", "division by zero"),
        ("action.args.count % 0 == 1", "remainder by zero"),
        ("action.args.count + 9223372036854775807 > 0", "a number is out of range"),
        ("action.args.count * 9223372036854775807 > 0", "a number is out of range"),
        ("action.args.command", "expected a boolean, found a string"),
        ("!action.args.count", "expected a boolean, found an int"),
        ("action.args.count && true", "expected a boolean, found an int"),
        ("action.paths[5] == \"x\"", "the list has no element at this index"),
        ("int(action.args.command) == 1", "a string cannot be read as an int"),
        ("duration(action.args.command) > duration(\"1s\")", "a string cannot be read as a duration"),
        ("{\"a\": 1}[\"b\"] == 1", "the map has no member `b`"),
        (
            "action.args.command.matches(\"x\") && action.args.count.matches(\"x\") || action.args.count.matches(\"y\")",
            "`matches` is not for an int",
        ),
        ("\"x\" in action.args.count", "`in` is not for an int"),
        ("action.args.count.exists(x, x == 1)", "a list or a map can be gone through, and this is an int"),
        ("action.args.missing == 1 && action.args.count / 0 == 1", "division by zero"),
        ("action.args.count / 0 == 1 && action.args.missing == 1", "division by zero"),
        ("action.args.missing == 1 || action.args.count", "expected a boolean, found an int"),
        ("action.args.mixed.all(m, m.three == 3 || 1 / 0 == 1)", "division by zero"),
        ("{action.args.count: 1, 3: 2}.size() == 1", "a map has the same key twice"),
    ] {
        assert_eq!(truth(text), Truth::Error(message.to_owned()), "{text}");
        assert_eq!(truth(&format!("({text}) || true")), Truth::True, "{text}");
        assert_eq!(truth(&format!("({text}) && false")), Truth::False, "{text}");
        assert_eq!(truth(&format!("false && ({text})")), Truth::False, "{text}");
    }
}
