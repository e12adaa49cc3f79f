use super::*;

/// The mistakes of a source whose files are these, and whose only folder is `folder`.
fn with_files(source: &str, files: &[&str]) -> Vec<String> {
    let paths = |written: &str| match written {
        "folder" => PathKind::Folder,
        _ if files.contains(&written) => PathKind::File,
        _ => PathKind::Missing,
    };
    let options = LoadOptions::new(&|_| Some("s3cr3t-v4lue".to_owned()), &|_| None).with_paths(&paths);
    match load(source.as_bytes(), &options) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn every_file_that_is_not_there_is_a_mistake_with_its_place() {
    let source = with_test(
        "assertions: [{type: no_errors}]\nfiles: [there.py, gone.py, {path: a.py, source: ./nofile.py}, {path: b, source: folder}]\nreference: gone\n",
    )
    .replace("{description: d}", "{description: d, workspace_fixture: fixture}");
    let advice = "relative paths start from the suite's folder, else from the working directory";
    assert_eq!(
        with_files(&source, &["there.py"]),
        [
            format!("5:47: $.tests[0].task.workspace_fixture: there is no folder `fixture`; {advice}"),
            format!("7:23: $.tests[0].files[1]: there is no file `gone.py`; {advice}"),
            format!("7:53: $.tests[0].files[2].source: there is no file `./nofile.py`; {advice}"),
            format!("8:16: $.tests[0].reference: there is no folder `gone`; {advice}"),
        ]
    );
    let source =
        source.replace("gone.py", "there.py").replace("./nofile.py", "folder").replace("fixture:", "x:");
    let source = source
        .replace("workspace_x: fixture", "workspace_fixture: folder")
        .replace("reference: gone", "reference: there.py");
    assert_eq!(
        with_files(&source, &["there.py"]),
        [format!("8:16: $.tests[0].reference: `there.py` is a file, and a folder is needed; {advice}")]
    );
    // Without a look at the files, nothing is missing.
    assert_eq!(mistakes(&source), Vec::<String>::new());
}

#[test]
fn the_value_of_a_variable_is_not_shown() {
    let source = with_test("assertions: [{type: no_errors}]\nreference: ${FOLDER}");
    let found = with_files(&source, &[]);
    assert!(found[0].contains("there is no folder `${FOLDER}`"), "{found:?}");
}

#[test]
fn doubtful_commands_values_and_tests_are_warnings() {
    let source = with_test(
        "setup: [mkdir out && ls, sh -c 'a && b', [echo, '|'], echo $HOME, 'find . -exec rm x \\;', 'curl http://h/?a=1&b=2']\nenvironment: {API_KEY: short, MODE: quick, OTHER_TOKEN: \"\"}",
    );
    let lines: Vec<String> = loaded(&source).warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "3:5: $.tests[0]: the test has no assertions: only the status of the agent counts; write `assertions` or `attest`",
            "6:13: $.tests[0].setup[0]: `&&` is an ordinary word: there is no shell; write `sh -c '…'`",
            "6:46: $.tests[0].setup[2]: `|` is an ordinary word: there is no shell; write `sh -c '…'`",
            "6:59: $.tests[0].setup[3]: `$HOME` is an ordinary word: there is no shell; write `sh -c '…'`",
            "7:19: $.tests[0].environment.API_KEY: the value of `API_KEY` has fewer than 8 bytes: it is not kept out of reports and records",
        ]
    );
}

#[test]
fn other_names_of_required_keys_and_impossible_ports_are_pointed_out() {
    let with_agent = |config: &str, kind: &str| {
        format!(
            "test_suite: s\nagents: [{{name: a, type: {kind}, config: {config}}}]\n{}",
            &with_test("assertions: [{type: no_errors}]")["test_suite: s\n".len()..]
        )
    };
    assert_eq!(
        mistakes(&with_agent("{url: \"http://h/\"}", "http")),
        [
            "2:41: $.agents[0].config: unknown key `url` in the config of an agent, and `endpoint` is missing; did you mean `endpoint`?"
        ]
    );
    assert_eq!(
        mistakes(&with_agent("{cmd: x}", "cli")),
        [
            "2:40: $.agents[0].config: unknown key `cmd` in the config of an agent, and `command` is missing; did you mean `command`?"
        ]
    );
    assert_eq!(
        mistakes(&with_agent("{endpoint: \"ws://h:99999/\"}", "ws")),
        [
            "2:49: $.agents[0].config.endpoint: the address `ws://h:99999/` cannot be used: the port `99999` is no number from 1 to 65535"
        ]
    );
}
