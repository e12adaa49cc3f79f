//! Interpreters of the machine under the sandbox, wherever they are installed.

use crate::support::Bench;
use proctor_sandbox::{
    Feature, Features, Mode, Network, PRIVATE_HOME_PATHS, Protection, Status, private_paths,
};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;

/// Specification with the caller's own `PATH`, its home hidden where it holds credentials.
fn spec(bench: &Bench, program: &str) -> proctor_sandbox::Spec {
    let home = std::env::var_os("HOME").map_or(PathBuf::from("/nonexistent"), PathBuf::from);
    bench.spec(program).environment("PATH", std::env::var_os("PATH").unwrap()).hidden(private_paths(&home))
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).exists());
    if !found {
        println!("not run: no {program}");
    }
    found
}

#[test]
fn python_runs_from_where_it_is_installed() {
    if !is_installed("python3") {
        return;
    }
    let bench = Bench::new();
    let code = "import json, ssl, subprocess, tempfile, multiprocessing as m\n\
                def double(x): return 2 * x\n\
                if __name__ == '__main__':\n\
                \x20   open('made', 'w').write(json.dumps([1]))\n\
                \x20   tempfile.NamedTemporaryFile().write(b'x')\n\
                \x20   print(m.get_context('fork').Pool(2).map(double, [1, 2]), subprocess.check_output(['echo', 'hi']))\n";
    let (exit, stdout, stderr) = bench.run(spec(&bench, "python3").arguments(["-c", code]));
    assert_eq!((exit.status, stdout.as_str()), (Status::Exited(0), "[2, 4] b'hi\\n'\n"), "{stderr}");
}

#[test]
fn an_interpreter_below_the_home_folder_runs_beside_hidden_credentials() {
    // Where pyenv, nvm and uv put theirs.
    let places = [".pyenv/versions/3/bin", ".nvm/versions/node/v24/bin", ".local/share/uv/python/bin"];
    for features in [Features::all(), Features::all().without(Feature::MountNamespace)] {
        let bench = Bench::with(Mode::Auto, features);
        if !bench.holds(Protection::HiddenPaths) {
            continue;
        }
        let home = tempfile::tempdir().unwrap();
        for name in PRIVATE_HOME_PATHS {
            std::fs::create_dir(home.path().join(name)).unwrap();
            std::fs::write(home.path().join(name).join("secret"), "secret").unwrap();
        }
        for place in places {
            let folder = home.path().join(place);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::copy("/bin/sh", folder.join("interpreter")).unwrap();
            std::fs::write(folder.join("library"), "found").unwrap();
            let script = format!(
                "cat {0}/{place}/library; cat {0}/.*/secret 2> errors || echo ' alone'",
                home.path().display()
            );
            let spec = bench
                .spec("interpreter")
                .arguments(["-c", &script])
                .environment("PATH", format!("{}:/usr/bin:/bin", folder.display()))
                .hidden(private_paths(home.path()));
            let (exit, stdout, stderr) = bench.run(spec);
            assert_eq!(
                (exit.status, stdout.as_str()),
                (Status::Exited(0), "found alone\n"),
                "{place}: {stderr}"
            );
        }
    }
}

#[test]
fn fetch_of_node_reaches_the_listener() {
    if !is_installed("node") {
        return;
    }
    let bench = Bench::new();
    let loopback = bench.sandbox.loopback().unwrap();
    let listener = loopback.listener().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello").unwrap();
    });
    let code =
        format!("fetch('http://127.0.0.1:{}/').then(r => r.text()).then(console.log)", loopback.port());
    let spec = spec(&bench, "node").arguments(["-e", &code]).network(Network::Only(loopback));
    let (exit, stdout, stderr) = bench.run(spec);
    assert_eq!((exit.status, stdout.as_str()), (Status::Exited(0), "hello\n"), "{stderr}");
    server.join().unwrap();
}
