//! A folder with a link to the binary under the program's name, an environment of its own, and a server.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use proctor_core::json::Json;

use crate::support::binary;

/// Policy that lets everything through.
pub const ALLOW: &str = "version: \"1\"\ndefault: allow\n";

/// Working directory of the program, beside a folder for the credentials of approvers.
pub struct Place {
    folder: tempfile::TempDir,
    work: PathBuf,
    variables: Vec<(String, String)>,
}

impl Place {
    /// A folder without settings: the state directory is `.agentcli/state`, and there is no policy.
    pub fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().canonicalize().unwrap().join("work");
        std::fs::create_dir(&work).unwrap();
        std::os::unix::fs::symlink(binary(), work.join("agentcli")).unwrap();
        Place { folder, work, variables: Vec::new() }
    }

    /// A folder with this policy, and its state directory in `state`.
    pub fn with_policy(policy: &str) -> Place {
        let place = Place::new();
        place.write("policy.yaml", policy);
        place.write("proctor.toml", "policy = \"policy.yaml\"\nstate = \"state\"\n");
        place
    }

    /// Sets a variable of all later commands.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    pub fn root(&self) -> &Path {
        &self.work
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.work).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", &self.work);
        command.env("XDG_CONFIG_HOME", self.folder.path().join("config"));
        command.env("USER", "tester").env("NO_COLOR", "1");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs `agentcli`.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(&self.path("agentcli"), arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs `proctor`.
    pub fn proctor(&self, arguments: &[&str]) -> Output {
        self.command(&binary(), arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// The output of `agentcli` as JSON, and its exit code.
    pub fn json(&self, arguments: &[&str]) -> (Json, i32) {
        let output = self.run(arguments);
        let code = output.status.code().unwrap();
        let text = if code == 0 || output.stderr.is_empty() { output.stdout } else { output.stderr };
        let json =
            Json::parse(&text).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&text)));
        (json, code)
    }

    /// The result of a command that succeeds.
    pub fn good(&self, arguments: &[&str]) -> Json {
        let (result, code) = self.json(arguments);
        assert_eq!(code, 0, "{arguments:?}: {result}");
        result
    }

    /// The failure of a command, whose code is this one. Standard output stays empty.
    pub fn refused(&self, arguments: &[&str], code: &str) -> Json {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}: {output:?}");
        let refused = Json::parse(said.as_bytes()).unwrap_or_else(|error| panic!("{error}: {said}"));
        assert_eq!(at(&refused, "/code").as_str(), Some(code), "{arguments:?}: {refused}");
        assert_eq!(at(&refused, "/ok"), &Json::Bool(false));
        refused
    }

    pub fn serve(&self) -> Server {
        let mut command = self.command(&self.path("agentcli"), &["serve"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut server = Server { child, stdin, stdout };
        assert_eq!(
            server.line(),
            r#"{"jsonrpc":"2.0","method":"agentcli.ready","params":{"ok":true,"manifest_version":"0.2"}}"#
        );
        server
    }
}

/// `agentcli serve`.
pub struct Server {
    pub child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Server {
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end_matches('\n').to_owned()
    }

    pub fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        stdin.write_all(b"\n").unwrap();
    }

    pub fn ask(&mut self, line: &str) -> Json {
        self.send(line);
        Json::parse(self.line().as_bytes()).unwrap()
    }

    pub fn call(&mut self, method: &str, params: &str) -> Json {
        self.ask(&format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#))
    }

    /// The result of a method that succeeds.
    pub fn good(&mut self, method: &str, params: &str) -> Json {
        let reply = self.call(method, params);
        reply.get("result").unwrap_or_else(|| panic!("{method}: {reply}")).clone()
    }

    /// The error of a method, with these codes.
    pub fn refused(&mut self, method: &str, params: &str, number: i64, code: &str) -> Json {
        let reply = self.call(method, params);
        let error = reply.get("error").unwrap_or_else(|| panic!("{method}: {reply}")).clone();
        assert_eq!(at(&error, "/code").as_i64(), Some(number), "{method}: {reply}");
        assert_eq!(at(&error, "/data/code").as_str(), Some(code), "{method}: {reply}");
        error
    }

    /// Ends the input; the program ends with it.
    pub fn end(mut self) {
        drop(self.stdin.take());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

pub fn at<'a>(value: &'a Json, pointer: &str) -> &'a Json {
    value.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is missing in {value}"))
}

/// A manifest with one scheduled shell task `a` in workflow `w`; `more` are members before `workflows`, each with its comma.
pub fn manifest(task: &str, more: &str) -> String {
    format!(
        r#"{{"version":"0.2",{more}"workflows":[{{"id":"w","name":"W","tasks":[{{"id":"a","name":"A","target":{{"session_target":"shell"}},"schedule":{{"cron":"0 9 * * *"}},{task}}}]}}]}}"#
    )
}

pub fn echo(text: &str) -> String {
    manifest(&format!(r#""shell":{{"program":"/bin/echo","args":["{text}"]}}"#), "")
}

/// Runs a command with this input; returns its standard output.
pub fn with_input(mut command: Command, input: &[u8]) -> String {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // A program that ends early does not read everything.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    String::from_utf8(output.stdout).unwrap()
}
