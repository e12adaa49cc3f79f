//! Mistakes are refused before anything is evaluated, each with its position.

use super::*;

#[test]
fn all_mistakes_of_assertions_are_said_at_once_with_their_places() {
    let folder = folder();
    folder.write(
        "assertions.json",
        "[\n  {\"type\": \"contnt\", \"spec\": {}},\n  {\"type\": \"content\", \"spec\": {\"chek\": \"contains\", \"value\": \"x\"}},\n  {\"type\": \"trace\", \"specs\": {}, \"spec\": {\"check\": \"required_tools\", \"tools\": []}}\n]\n",
    );
    let output = command(&folder, &["assert", "--trace", "trace.json", "--assertions", "assertions.json"])
        .output()
        .unwrap();
    ends(&output, 1);
    assert_eq!(printed(&output), "");
    let problems: Vec<String> = said(&output).lines().map(str::to_owned).collect();
    assert_eq!(
        problems,
        [
            "error: assertions.json:2:12: `contnt` is not a type of assertion; did you mean `content`?",
            "error: assertions.json:3:32: unknown key `chek` in the spec of `content`; did you mean `check`?",
            "error: assertions.json:4:21: unknown key `specs` in an assertion; did you mean `spec`?",
        ]
    );
}

#[test]
fn nothing_to_check_or_the_same_name_twice_is_a_mistake() {
    let folder = folder();
    for (text, says) in [
        ("[]", "a.json:1:1: there is no assertion: nothing would be checked"),
        ("{\"assertions\": []}", "a.json:1:16: there is no assertion"),
        ("{\"assertion\": []}", "did you mean `assertions`?"),
        ("[{", "a.json:1:3: "),
        (
            "[{\"assertion_id\":\"x\",\"type\":\"plugin\",\"spec\":{}},{\"assertion_id\":\"x\",\"type\":\"plugin\",\"spec\":{}}]",
            "`x` is the id of another assertion, at a.json:1:18",
        ),
    ] {
        folder.write("a.json", text);
        let output = command(&folder, &["assert", "--trace", "trace.json", "--assertions", "a.json"])
            .output()
            .unwrap();
        ends(&output, 1);
        assert!(said(&output).contains(says), "{says}: {}", said(&output));
    }
}

#[test]
fn specs_that_cannot_be_used_are_refused_with_everything_else() {
    let folder = folder();
    folder.write(
        "a.yaml",
        "- assertion_id: vague\n  type: content\n  spec: { check: contians, value: x }\n\
         - type: contnt\n  spec: {}\n\
         - assertion_id: odd\n  type: schema\n  spec: { target: output, schema: { type: 5 } }\n\
         - { type: constraint, spec: { field: metadata.cost_usd, operator: lte, value: \"0.05\" } }\n\
         - { type: content, spec: { check: regex_match, value: \"(\" } }\n",
    );
    let output =
        command(&folder, &["assert", "--trace", "trace.json", "--assertions", "a.yaml"]).output().unwrap();
    ends(&output, 1);
    assert_eq!(printed(&output), "");
    let text = said(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    for (line, begins) in lines.iter().zip([
        "error: a.yaml:3:9: `vague`: `contians` is not a check of content; did you mean `contains`?",
        "error: a.yaml:4:9: `contnt` is not a type of assertion; did you mean `content`?",
        "error: a.yaml:8:9: `odd`: the schema is not valid at ",
        "error: a.yaml:9:29: `a4`: `value` is not a number: it is `\"0.05\"`; write `value` as a number",
        "error: a.yaml:10:26: `a5`: the pattern `(` cannot be used: ",
    ]) {
        assert!(line.starts_with(begins) && !line.contains(" column "), "{line}: {begins}");
    }
}

#[test]
fn files_that_are_swapped_are_told_so_and_nothing_else() {
    let folder = folder();
    folder.write("a.yaml", &format!("- {HOLDS}\n"));
    let output =
        command(&folder, &["assert", "--trace", "a.yaml", "--assertions", "trace.json"]).output().unwrap();
    ends(&output, 1);
    assert_eq!(said(&output), "error: trace.json: this looks like a trace: are the two files swapped?\n");
}

#[test]
fn traces_that_cannot_be_judged_are_refused_with_their_place() {
    let folder = folder();
    for (trace, says) in [
        ("{\n  \"trace_id\": \"t\",\n  \"steps\": 5\n}", "trace.json:3:"),
        ("{\"trace_id\": \"t\"}", "trace.json: trace.output: a trace needs an output"),
        (
            "{\"trace_id\": \"t\", \"steps\": [{\"type\": \"tool_cal\", \"name\": \"x\"}], \"output\": {\"a\": 1}}",
            "trace.json: trace.steps[0].type: `tool_cal` is not a type of step",
        ),
        ("", "trace.json: the trace is empty\n"),
        ("trace_id: t\noutput: { a: 1 }\n", "trace.json:1:1: a trace is JSON; this looks like YAML\n"),
        (
            "{\n  \"trace_id\": \"t\",\n  \"step\": [],\n  \"output\": {\"a\": 1}\n}",
            "error: trace.json:3:3: unknown member `step`; did you mean `steps`?\n",
        ),
        (
            "{\"trace_id\": \"t\", \"steps\": [{\"type\": \"tool_call\", \"toolname\": \"x\"}], \"output\": {\"a\": 1}}",
            "error: trace.json:1:51: unknown member `toolname`; did you mean `name`?\n",
        ),
        ("{\"trace_id\": \"t\", \"output\": {\"a\": 1}} x", "trace.json:1:39: trailing characters"),
    ] {
        folder.write("trace.json", trace);
        let output = check(&folder, &[HOLDS], &[]);
        ends(&output, 1);
        assert_eq!(printed(&output), "");
        assert!(said(&output).contains(says), "{says}: {}", said(&output));
    }
}

#[test]
fn being_called_wrongly_is_exit_one() {
    let folder = folder();
    folder.write("assertions.yaml", &format!("- {HOLDS}\n"));
    for (args, says) in [
        ("", "required"),
        ("--trace trace.json", "--assertions"),
        (
            "--assertions assertions.yaml",
            "Usage: proctor assert --assertions <FILE> <--trace <FILE>|--session <ID>>",
        ),
        ("--trace trace.json --session s --assertions assertions.yaml", "cannot be used with"),
        ("--trace nowhere.json --assertions assertions.yaml", "nowhere.json: no such file"),
        ("--trace trace.json --assertions nowhere.yaml", "nowhere.yaml: no such file"),
        ("--trace trace.json --assertions assertions.yaml --report junt=x", "did you mean `junit`?"),
        ("--trace trace.json --assertions assertions.yaml --report junit=-", "names no file"),
        (
            "--trace trace.json --assertions assertions.yaml --report json=no/such/folder.json",
            "there is no folder",
        ),
        ("--session nobody --assertions assertions.yaml", ""),
        ("--session 01900000-0000-7000-8000-000000000000 --assertions assertions.yaml", ""),
    ] {
        let mut all = vec!["assert"];
        all.extend(args.split_whitespace());
        let output = command(&folder, &all).output().unwrap();
        ends(&output, 1);
        assert_eq!(printed(&output), "", "{args}");
        assert!(!said(&output).is_empty() && said(&output).contains(says), "{says}: {}", said(&output));
    }
    // A judge that cannot be used is told, and stops nothing that needs none.
    let output = command(&folder, &["assert", "--trace", "trace.json", "--assertions", "assertions.yaml"])
        .env("ATTEST_JUDGE_PROVIDER", "acme")
        .output()
        .unwrap();
    assert!(said(&output).contains("`acme`"), "{}", said(&output));
    assert!(!printed(&output).is_empty());
}
