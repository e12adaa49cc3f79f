//! The released binary: started, asked, ended.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::process::Server;

/// The variable that says where the released binary is.
pub const BINARY: &str = "PROCTOR_RELEASE_BINARY";

/// The released binary.
pub fn binary() -> PathBuf {
    let path = std::env::var_os(BINARY).map_or_else(
        || panic!("{BINARY} is not set: it names the `proctor` binary to judge (run `scripts/interop`)"),
        PathBuf::from,
    );
    assert!(path.is_file(), "{BINARY} names `{}`, which is no file", path.display());
    path
}

/// A folder with a policy, a state directory, and a workspace.
#[derive(Debug)]
pub struct Place {
    folder: TempDir,
}

impl Place {
    /// A new one, with this policy.
    pub fn new(policy: &str) -> Place {
        let folder = tempfile::Builder::new().prefix("interop-").tempdir().unwrap();
        let place = Place { folder };
        std::fs::create_dir_all(place.workspace()).unwrap();
        std::fs::create_dir_all(place.path().join("home")).unwrap();
        std::fs::write(place.workspace().join("notes.txt"), "the notes say: parse first\n").unwrap();
        std::fs::write(place.policy(), policy).unwrap();
        place
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder that the agent works in; the binary runs in it.
    pub fn workspace(&self) -> PathBuf {
        self.path().join("work")
    }

    /// The policy file.
    pub fn policy(&self) -> PathBuf {
        self.path().join("policy.yaml")
    }

    /// The approver's credential.
    pub fn credential(&self) -> PathBuf {
        self.path().join("home/approver.key")
    }

    fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// Log file of the server.
    fn log(&self) -> PathBuf {
        self.path().join("stderr.log")
    }

    /// A command of the binary in this folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.current_dir(self.workspace()).env("HOME", self.path().join("home"));
        for name in [
            "PROCTOR_STATE",
            "PROCTOR_POLICY",
            "PROCTOR_HTTP",
            "PROCTOR_GRPC",
            "PROCTOR_AHP_SOCKET",
            "XDG_CONFIG_HOME",
        ] {
            command.env_remove(name);
        }
        command.args(arguments).arg("--policy").arg(self.policy()).arg("--state").arg(self.state());
        command
    }

    /// Runs a command of the binary to its end; it must succeed.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "proctor {arguments:?}: {output:?}");
        output
    }

    /// The same, with its output read as one JSON value a line.
    pub fn run_json(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.run(&[arguments, &["--json"]].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Exports the ledger and has every hash, proof and decision of it verified.
    pub fn verify(&self) {
        let bundle = self.path().join("ledger.bundle");
        let bundle = bundle.to_str().unwrap();
        self.run(&["audit", "export", "--output", bundle]);
        let verified = self.command(&["audit", "verify", bundle]).output().unwrap();
        let said = String::from_utf8_lossy(&verified.stdout);
        // 13: all of it fits together, and nobody was named whose signature would be trusted.
        assert_eq!(verified.status.code(), Some(13), "{verified:?}");
        assert!(said.contains(" 0 different, 0 undecidable"), "{said}");
    }

    /// `proctor serve`, on all network transports.
    pub fn serve(&self) -> Server {
        let socket = self.path().join("ahp.sock");
        let socket = socket.to_str().unwrap();
        let arguments =
            ["serve", "--json", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--ahp-socket", socket];
        let log = std::fs::File::create(self.log()).unwrap();
        Server::start(self.command(&arguments).stderr(log))
    }

    /// `proctor harness`, as a program and arguments for clients that start it themselves and cannot say where it runs.
    pub fn harness(&self) -> (String, Vec<String>) {
        let words = [
            "-c",
            "cd \"$1\" && export HOME=\"$2\" && exec 2>>\"$3\" && shift 3 && exec \"$@\"",
            "sh",
            self.workspace().to_str().unwrap(),
            self.path().join("home").to_str().unwrap(),
            self.log().to_str().unwrap(),
            binary().to_str().unwrap(),
            "harness",
            "--policy",
            self.policy().to_str().unwrap(),
            "--state",
            self.state().to_str().unwrap(),
        ]
        .map(str::to_owned);
        ("/bin/sh".to_owned(), words.to_vec())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.log()).unwrap_or_default();
            println!("what proctor said:\n{log}");
        }
    }
}
