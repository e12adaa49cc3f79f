//! Each protection with all features, attacked from inside. Run as root and, by `ordinary.rs`, as an ordinary user.

use crate::support::{Bench, GRACE, PATIENCE, drain};
use crate::world::World;
use proctor_sandbox::{Limit, Limits, Network, Protection, Status};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::time::Duration;

#[test]
fn nothing_but_the_own_workspace_is_within_reach() {
    let bench = Bench::new();
    if !Protection::ALL.into_iter().all(|protection| bench.holds(protection)) {
        return;
    }
    let results = World::new().attack(&bench);
    assert_eq!(results.worked, ["inside"]);
    assert!(results.failed.len() > 60, "{:?}", results.failed);
    assert_eq!(bench.survivors(), Vec::<String>::new());
}

#[test]
fn sockets_and_hidden_paths_in_closed_folders_of_other_users_are_masked_with_their_folder() {
    let bench = Bench::new();
    if !rustix::process::geteuid().is_root() {
        println!("not run: needs a folder of another user");
        return;
    }
    if !bench.holds(Protection::Network) {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let (closed, deep) = (outside.path().join("closed"), outside.path().join("closed/deep/deeper"));
    std::fs::create_dir_all(deep.join("hidden")).unwrap();
    let socket = deep.join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    // The folder is its owner's, who is not mapped into the run's user namespace.
    for folder in [&deep, &closed.join("deep"), &closed] {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).unwrap();
        let nobody = 65_534;
        std::os::unix::fs::chown(folder, Some(nobody), Some(nobody)).unwrap();
    }
    std::fs::set_permissions(outside.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let spec = bench.helper(&format!("connect-after-input {}", socket.display()));
    let mut process = bench.sandbox.spawn(spec.hidden([deep.join("hidden")])).unwrap();
    // The owner opens it while the run goes on.
    for folder in [&closed, &closed.join("deep"), &deep] {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    drop(process.stdin.take());
    let (stdout, stderr) = drain(&mut process);
    assert!(process.wait(PATIENCE).unwrap().is_some());
    process.terminate(GRACE).unwrap();
    let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
    assert!(stdout.contains("missed") && !stdout.contains("reached"), "{stdout}{stderr}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
}

#[test]
fn folders_above_a_hidden_path_inside_a_writable_one_cannot_be_moved() {
    let bench = Bench::new();
    if !bench.holds(Protection::HiddenPaths) {
        return;
    }
    let hidden = bench.workspace.workspace().join("home/local/state");
    std::fs::create_dir_all(&hidden).unwrap();
    std::fs::write(hidden.join("key"), "secret").unwrap();
    let script = "mv home aside; mv home/local aside; mv home/local/state aside; rm -rf home; echo x > home/local/file && cat home/local/file";
    let (_, stdout, stderr) = bench.run(bench.script(script).hidden([&hidden]));
    assert_eq!(stdout, "x\n", "{stderr}");
    assert_eq!(std::fs::read_to_string(hidden.join("key")).unwrap(), "secret", "{stderr}");
}

#[test]
fn sockets_of_others_inside_a_writable_folder_are_out_of_reach() {
    let bench = Bench::new();
    if !bench.holds(Protection::Network) {
        return;
    }
    let folder = bench.workspace.workspace().join("deep");
    std::fs::create_dir(&folder).unwrap();
    let (stream, datagram) = (folder.join("stream"), folder.join("datagram"));
    let listener = UnixListener::bind(&stream).unwrap();
    let receiver = UnixDatagram::bind(&datagram).unwrap();
    let linked = folder.join("linked");
    let connected = |hard_link: bool| {
        if hard_link {
            std::fs::hard_link(&stream, &linked).unwrap();
        }
        let paths = [&stream, &datagram, &linked].map(|path| path.display().to_string());
        let (_, stdout, stderr) = bench.run(bench.helper(&format!("connect {}", paths.join(" "))));
        let count = |word: &str| stdout.lines().filter(|line| line.starts_with(word)).count();
        assert_eq!((count("reached"), count("missed")), (0, 3), "{stdout}{stderr}");
        // The folder is writable all the same.
        let (exit, ..) = bench.run(bench.script("echo x > deep/file && ! rm -f deep/stream 2> /dev/null"));
        assert_eq!(exit.status, Status::Exited(0));
    };
    connected(false);
    connected(true);
    listener.set_nonblocking(true).unwrap();
    receiver.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err() && receiver.recv(&mut [0]).is_err());
}

#[test]
fn a_fork_bomb_is_stopped_and_reported() {
    let bench = Bench::new();
    if !bench.holds(Protection::Processes) {
        return;
    }
    // Bounded by itself to 255 shells with a child each, should the sandbox fail.
    let script = "f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; sleep 20; }; f 7; wait";
    let limits = Limits { processes: 60, wall_time: PATIENCE, ..Limits::default() };
    let mut process = bench.sandbox.spawn(bench.script(script).limits(limits)).unwrap();
    let exit = process.wait(PATIENCE).unwrap().unwrap();
    assert_eq!(exit.limit, Some(Limit::Processes), "{exit:?}");
    process.terminate(GRACE).unwrap();
    assert_eq!(bench.survivors(), Vec::<String>::new());
}

#[test]
fn a_memory_bomb_of_one_process_is_stopped() {
    let bench = Bench::new();
    if !bench.holds(Protection::Memory) {
        return;
    }
    let limits = Limits { memory: 200 << 20, wall_time: PATIENCE, ..Limits::default() };
    let mut process = bench.sandbox.spawn(bench.helper("memory 1000").limits(limits)).unwrap();
    let (stdout, stderr) = crate::support::drain(&mut process);
    let exit = process.wait(PATIENCE).unwrap().unwrap();
    process.terminate(GRACE).unwrap();
    assert_ne!(exit.status, Status::Exited(0));
    assert_ne!(exit.limit, Some(Limit::WallTime));
    assert!(!stdout.join().unwrap().contains("filled"));
    drop(stderr.join());
}

#[test]
fn a_memory_bomb_of_many_processes_is_stopped_and_reported() {
    let bench = Bench::new();
    if !bench.holds(Protection::Memory) {
        return;
    }
    let limits = Limits { memory: 200 << 20, wall_time: PATIENCE, ..Limits::default() };
    // Each of the four stays below the limit, all together do not.
    let program = crate::support::own_program().display();
    let script = format!(
        "for i in 1 2 3 4; do '{program}' helper::entry --exact --nocapture --test-threads=1 & done; wait"
    );
    let spec = bench.script(&script).environment(crate::helper::COMMAND, "memory 100").limits(limits);
    let mut process = bench.sandbox.spawn(spec).unwrap();
    let (stdout, stderr) = crate::support::drain(&mut process);
    let exit = process.wait(PATIENCE).unwrap().unwrap();
    assert_eq!(exit.limit, Some(Limit::Memory), "{exit:?}");
    process.terminate(GRACE).unwrap();
    drop((stdout.join(), stderr.join()));
    assert_eq!(bench.survivors(), Vec::<String>::new());
}

#[test]
fn memory_shared_by_processes_counts_once() {
    let bench = Bench::new();
    if !bench.holds(Protection::Memory) {
        return;
    }
    // The shell's own pages and those of its libraries, many times: far above the limit if each copy counted.
    let limits = Limits { memory: 40 << 20, ..Limits::default() };
    let script = "i=0; while [ $i -lt 60 ]; do sleep 0.5 & i=$((i+1)); done; wait; echo fine";
    let (exit, stdout, stderr) = bench.run(bench.script(script).limits(limits));
    assert_eq!((exit.status, stdout.as_str()), (Status::Exited(0), "fine\n"), "{exit:?} {stderr}");
}

#[test]
fn a_file_beyond_its_limit_ends_the_program() {
    let bench = Bench::new();
    if !bench.holds(Protection::FileSize) {
        return;
    }
    let limits = Limits { file_size: 100_000, ..Limits::default() };
    let (exit, ..) = bench
        .run(bench.spec("dd").arguments(["if=/dev/zero", "of=big", "bs=4096", "count=100"]).limits(limits));
    assert_eq!((exit.status, exit.limit), (Status::Signaled(25), Some(Limit::FileSize)));
}

#[test]
fn the_wall_time_ends_a_run() {
    let bench = Bench::new();
    let limits = Limits { wall_time: Duration::from_millis(200), ..Limits::default() };
    let spec = bench.script("trap '' TERM; while :; do sleep 10; done").limits(limits);
    let mut process = bench.sandbox.spawn(spec.grace(Duration::from_millis(100))).unwrap();
    let exit = process.wait(PATIENCE).unwrap().unwrap();
    assert_eq!((exit.status, exit.limit), (Status::Signaled(9), Some(Limit::WallTime)));
    process.terminate(GRACE).unwrap();
    assert_eq!(bench.survivors(), Vec::<String>::new());
}

#[test]
fn only_the_given_listener_is_reached() {
    let bench = Bench::new();
    let loopback = bench.sandbox.loopback().unwrap();
    let network = Network::Only(loopback.clone());
    let standing = bench.sandbox.protections_with(&network);
    let listener = loopback.listener().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut word = [0; 5];
        stream.read_exact(&mut word).unwrap();
        stream.write_all(&word).unwrap();
    });
    let Some(python) = python() else {
        println!("not run: no python3");
        return;
    };
    let code = format!(
        "import socket; s = socket.create_connection(('127.0.0.1', {})); s.sendall(b'hello'); print(s.recv(5).decode())",
        loopback.port()
    );
    let (exit, stdout, stderr) =
        bench.run(bench.spec(python).arguments(["-c", &code]).network(network.clone()));
    assert_eq!((exit.status, stdout.as_str()), (Status::Exited(0), "hello\n"), "{stderr}");
    server.join().unwrap();

    if standing.missing().next().is_some() {
        println!("not run: {:?}", standing.get(Protection::Network));
        return;
    }
    // Another run does not reach it, nor does this one reach the host.
    let host = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let other = format!("import socket; socket.create_connection(('127.0.0.1', {}))", loopback.port());
    let (exit, ..) = bench.run(bench.spec(python).arguments(["-c", &other]));
    assert_eq!(exit.status, Status::Exited(1));
    let outward = format!(
        "import socket; socket.create_connection(('127.0.0.1', {}))",
        host.local_addr().unwrap().port()
    );
    let (exit, ..) = bench.run(bench.spec(python).arguments(["-c", &outward]).network(network));
    assert_eq!(exit.status, Status::Exited(1));
}

#[test]
fn the_hosts_network_is_there_when_allowed() {
    let bench = Bench::new();
    let Some(python) = python() else {
        println!("not run: no python3");
        return;
    };
    let host = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let code = format!(
        "import socket; socket.create_connection(('127.0.0.1', {}))",
        host.local_addr().unwrap().port()
    );
    let (exit, _, stderr) = bench.run(bench.spec(python).arguments(["-c", &code]).network(Network::Host));
    assert_eq!(exit.status, Status::Exited(0), "{stderr}");
}

#[test]
fn a_listener_ends_with_its_value() {
    let bench = Bench::new();
    let loopback = bench.sandbox.loopback().unwrap();
    let forgotten = loopback.listener().unwrap();
    drop(loopback);
    assert!(forgotten.accept().is_err());
}

#[test]
fn the_environment_is_what_was_named() {
    let bench = Bench::new();
    let ambient = [("PATH", "/ambient"), ("HOME", "/ambient"), ("LANG", "C.UTF-8"), ("TOKEN", "secret")];
    let spec = bench.spec("/usr/bin/env").inherit(ambient.map(|(name, value)| (name.into(), value.into())));
    let (_, stdout, _) = bench.run(spec);
    let mut names: Vec<&str> = stdout.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["HOME", "LANG", "PATH", "SANDBOX_TEST_MARK", "TMPDIR"]);
    assert!(!stdout.contains("/ambient"), "{stdout}");
}

#[test]
fn descriptors_of_the_caller_are_not_passed_on() {
    let bench = Bench::new();
    // An ordinary descriptor without close-on-exec.
    let leaked = std::fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    let (_, stdout, _) = bench.run(bench.script("ls /proc/self/fd | sort -n | tr '\\n' ' '"));
    // The fourth is the one by which `ls` reads the folder.
    assert_eq!(stdout.trim(), "0 1 2 3");
}

#[test]
fn nested_namespaces_and_mounts_are_refused() {
    let bench = Bench::new();
    for command in ["unshare -Ur true", "unshare -m true", "mount -t tmpfs none .", "umount /proc"] {
        let (exit, ..) = bench.run(bench.script(command));
        assert_ne!(exit.status, Status::Exited(0), "{command}");
    }
}

#[test]
fn ordinary_work_inside_the_workspace_works() {
    let bench = Bench::new();
    let script = "set -e; mkdir -p a/b; echo x > a/b/c; chmod 755 a/b/c; touch -d @0 a/b/c; ln -s b a/link; \
                  ln a/b/c a/hard; mv a/hard a/moved; cp -p a/b/c $TMPDIR/d; echo y > $HOME/e; mkfifo pipe; \
                  echo z > /dev/null; cat /dev/zero | head -c 3 > zeros; [ -r /proc/self/status ]; rm -r a; echo done";
    let (exit, stdout, stderr) = bench.run(bench.script(script));
    assert_eq!((exit.status, stdout.as_str()), (Status::Exited(0), "done\n"), "{stderr}");
}

#[test]
fn a_program_that_cannot_start_is_an_error() {
    let bench = Bench::new();
    let error = bench.sandbox.spawn(bench.spec("no-such-program")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`no-such-program` is no executable program; give a path, or a name that the process's `PATH` leads to"
    );
    let script = bench.workspace.workspace().join("broken");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let error = bench.sandbox.spawn(bench.spec("./broken")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`./broken` cannot be started: the interpreter of its `#!` line, `/no/such/interpreter`, does not exist"
    );
    let error = bench.sandbox.spawn(bench.spec("sh").arguments(["a\0b"])).unwrap_err();
    assert_eq!(error.to_string(), "argument cannot be passed to a process: it has a zero byte");
}

#[test]
fn the_cause_of_a_program_that_cannot_start_is_named() {
    use std::os::unix::fs::PermissionsExt as _;

    let bench = Bench::new();
    for (name, content, mode, cause) in [
        (
            "windows",
            "#!/bin/sh\r\nexit 0\r\n",
            0o700,
            "its lines end as on Windows (CR LF), so that its interpreter would be `/bin/sh\\r`",
        ),
        (
            "options",
            "#! /no/such/shell -e\n",
            0o700,
            "the interpreter of its `#!` line, `/no/such/shell`, does not exist",
        ),
        (
            "no-line",
            "print('hello')\n",
            0o700,
            "`./no-line` has no `#!` line, and is no program of this system",
        ),
        ("no-bit", "#!/bin/sh\n", 0o600, "`./no-bit` is not executable: run `chmod +x` on it"),
    ] {
        let script = bench.workspace.workspace().join(name);
        std::fs::write(&script, content).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(mode)).unwrap();
        let error = bench.sandbox.spawn(bench.spec(&format!("./{name}"))).unwrap_err().to_string();
        assert!(error.contains(cause), "{name}: {error}");
    }
    std::fs::create_dir(bench.workspace.workspace().join("folder")).unwrap();
    for (name, cause) in
        [("gone", "does not exist"), ("folder", "is a folder or another special file, and no program")]
    {
        let error = bench.sandbox.spawn(bench.spec(&format!("./{name}"))).unwrap_err().to_string();
        assert_eq!(error, format!("`./{name}` {cause}"));
    }
}

#[test]
fn another_run_is_out_of_reach_inside_a_hidden_base() {
    let bench = Bench::new();
    if !bench.holds(Protection::HiddenPaths) {
        return;
    }
    let other = proctor_sandbox::Workspace::create(bench.base.path()).unwrap();
    std::fs::write(other.workspace().join("answer"), "42").unwrap();
    let script = format!(
        "cat {}/answer; ls {}; echo own > own; cat own",
        other.workspace().display(),
        bench.base.path().display()
    );
    let (exit, stdout, _) = bench.run(bench.script(&script).hidden([bench.base.path()]));
    assert_eq!((exit.status, stdout.as_str()), (Status::Exited(0), "own\n"));
}

#[test]
fn a_run_cannot_put_another_folder_in_the_place_of_its_own() {
    let bench = Bench::new();
    if !bench.holds(Protection::Writes) {
        return;
    }
    let script = "cd ..; for name in workspace tmp home; do mv $name aside && ln -s /etc $name; done; \
        touch new; echo fine > workspace/own; echo fine > tmp/own; mv tmp/own workspace/moved; cat workspace/moved";
    let (exit, stdout, stderr) = bench.run(bench.script(script));
    assert_eq!((exit.status, stdout.as_str()), (Status::Exited(0), "fine\n"), "{stderr}");
    let mut names: Vec<_> =
        std::fs::read_dir(bench.workspace.root()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["home", "tmp", "workspace"]);
    assert!(bench.workspace.writable().iter().all(|folder| folder.symlink_metadata().unwrap().is_dir()));
}

#[test]
fn files_that_are_kept_cannot_be_changed_removed_or_replaced() {
    let bench = Bench::new();
    if !bench.holds(Protection::Writes) {
        return;
    }
    let check = bench.workspace.workspace().join("check.sh");
    std::fs::write(&check, "real\n").unwrap();
    let guard = bench.base.path().join("guard");
    std::fs::create_dir(&guard).unwrap();
    std::fs::write(guard.join("own.py"), "guard\n").unwrap();
    let script = format!(
        "echo forged > check.sh; rm -f check.sh; echo forged > new; mv new check.sh; chmod 777 check.sh; cat check.sh; \
         cd {}; echo forged > own.py; rm -f own.py; echo x > more; cat own.py; ls",
        guard.display()
    );
    let spec = bench.script(&script).read_only([&check]).readable(&guard).hidden([bench.base.path()]);
    let (_, stdout, stderr) = bench.run(spec);
    assert_eq!(stdout, "real\nguard\nown.py\n", "{stderr}");
}

#[test]
fn a_socket_of_another_program_is_masked_where_its_path_is_known() {
    let bench = Bench::new();
    if !bench.holds(Protection::Network) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let script = format!("if [ -S '{}' ]; then echo seen; else echo masked; fi", path.display());
    let (_, stdout, stderr) = bench.run(bench.script(&script));
    assert_eq!(stdout, "masked\n", "{stderr}");
}

/// Python outside of home directories, which other users can execute.
fn python() -> Option<&'static str> {
    let path = "/usr/bin/python3";
    std::path::Path::new(path).exists().then_some(path)
}
