//! Start and end of the server.

use std::os::unix::fs::PermissionsExt;

use proctor_clients::ahp::Decision;
use proctor_core::json::Json;
use rustix::process::Signal;

use crate::ahp_serve::agent;
use crate::ahp_serve::server::{
    ANY_PORT, Caller, POLICY, Server, decided, decision_id, pre_action, records, result, until,
};
use crate::support::{Folder, text};

#[test]
fn one_line_says_where_everything_is() {
    let folder = Folder::with_policy(POLICY);
    let server = Server::start(&folder);
    let Json::Object(members) = &server.announced else { panic!("{}", server.announced) };
    let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["http", "grpc", "ahp_socket", "assembly_socket", "state", "pid"]);
    assert_eq!(server.announced.get("pid").and_then(Json::as_u64), Some(u64::from(server.child.id())));
    assert!(server.http.ip().is_loopback() && server.http.port() != 0);
    assert!(server.grpc.ip().is_loopback() && server.grpc.port() != 0);
    assert_ne!(server.http.port(), server.grpc.port());
    let state = std::fs::canonicalize(folder.state()).unwrap();
    assert_eq!(std::fs::canonicalize(text(&server.announced, "state")).unwrap(), state);
    assert!(server.socket.is_absolute());
    let (status, rest, said) = server.end(Signal::TERM);
    assert_eq!((status.code(), rest.as_str()), (Some(143), ""), "{said}");
}

#[test]
fn the_socket_is_this_users_alone_and_goes_with_the_server() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let folder = Folder::with_policy(POLICY);
        let server = Server::start(&folder);
        let socket = server.socket.clone();
        assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(decided(&server.connect().tool("1", "look")), "allow");
        let (status, _, said) = server.end(signal);
        assert_eq!(status.code(), Some(code), "{said}");
        assert!(std::fs::symlink_metadata(&socket).is_err(), "{} is still there", socket.display());
    }
}

#[test]
fn the_socket_can_be_put_elsewhere() {
    let folder = Folder::with_policy(POLICY);
    let mut args = ANY_PORT.to_vec();
    args.extend(["--ahp-socket", "here.sock"]);
    let server = Server::spawn(folder.command(&args));
    assert_eq!(
        std::fs::canonicalize(&server.socket).unwrap(),
        std::fs::canonicalize(folder.path("here.sock")).unwrap()
    );
    assert_eq!(decided(&Caller::connect(&folder.path("here.sock")).tool("1", "look")), "allow");
    server.stop();
    assert!(!folder.path("here.sock").exists());
}

#[test]
fn a_second_server_on_the_same_state_is_refused() {
    let folder = Folder::with_policy(POLICY);
    let server = Server::start(&folder);
    let second = folder.run(&ANY_PORT);
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!((second.status.code(), second.stdout.as_slice()), (Some(1), &[][..]), "{said}");
    assert!(said.contains(".proctor is owned by another process") && said.contains("--state"), "{said}");
    // The first one has not noticed.
    assert_eq!(decided(&server.connect().tool("1", "look")), "allow");
    server.stop();
}

#[test]
fn a_port_that_is_taken_is_named() {
    let folder = Folder::with_policy(POLICY);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = folder.run(&["serve", "--json", "--http", &address, "--grpc", "127.0.0.1:0"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains(&address), "{said}");
}

#[test]
fn what_is_in_flight_is_answered_before_the_end() {
    for signal in [Signal::TERM, Signal::INT] {
        let folder = Folder::with_approver(POLICY);
        folder.write("proctor.toml", "policy = \"policy.yaml\"\n[ahp]\nhold_ms = 7000\n");
        let server = Server::start(&folder);
        let mut caller = server.connect();
        caller.send(&pre_action("held", "s", "publish"));
        let waiting =
            until("the approval is asked for", || folder.json(&["approve", "list", "--json"]).pop());
        server.signal(signal);
        // It takes no new callers any more, but it still answers the old one, and lets a person decide.
        until("the socket is gone", || std::fs::symlink_metadata(&server.socket).is_err().then_some(()));
        let approval = text(&waiting, "approval_id").to_owned();
        let decide = folder.run(&["approve", "allow", &approval]);
        assert!(decide.status.success(), "{}", String::from_utf8_lossy(&decide.stderr));
        let answer = caller.next().expect("an answer before the end");
        assert_eq!((text(&answer, "id"), decided(&result(&answer))), ("held", "allow"), "{answer}");
        assert_eq!(caller.next(), None, "then the connection ends");
        let mut server = server;
        let (status, _, said) = server.ended();
        assert_eq!(status.code(), Some(128 + signal.as_raw()), "{said}");
        let id = decision_id(&result(&answer));
        assert!(records(&folder, "decision").iter().any(|record| text(record, "id") == id));
    }
}

#[test]
fn what_is_in_flight_is_answered_on_every_transport() {
    let folder = Folder::with_approver(POLICY);
    folder.write("proctor.toml", "policy = \"policy.yaml\"\n[ahp]\nhold_ms = 7000\n");
    let server = Server::start(&folder);
    let answers = agent::run(async {
        let mut asking = tokio::task::JoinSet::new();
        for (name, transport) in agent::all(&server) {
            asking.spawn(async move {
                let client = agent::connect(transport, name).await.unwrap();
                (name, agent::ask(&client, "publish").await)
            });
        }
        tokio::task::block_in_place(|| {
            let waiting = until("all are asked for", || {
                let waiting = folder.json(&["approve", "list", "--json"]);
                (waiting.len() == 5).then_some(waiting)
            });
            server.signal(Signal::TERM);
            until("the socket is gone", || std::fs::symlink_metadata(&server.socket).is_err().then_some(()));
            for approval in &waiting {
                let decide = folder.run(&["approve", "allow", text(approval, "approval_id")]);
                assert!(decide.status.success(), "{}", String::from_utf8_lossy(&decide.stderr));
            }
        });
        asking.join_all().await
    });
    for (name, answer) in answers {
        assert!(matches!(answer, Decision::Allow { .. }), "{name}: {answer:?}");
    }
    let mut server = server;
    let (status, _, said) = server.ended();
    assert_eq!(status.code(), Some(143), "{said}");
}

#[test]
fn a_signal_counts_from_the_moment_that_the_server_says_it_is_ready() {
    let folder = Folder::with_policy(POLICY);
    for _ in 0..10 {
        Server::start(&folder).stop();
    }
}

#[test]
fn a_state_path_that_is_too_long_for_a_socket_still_works() {
    let folder = Folder::with_policy(POLICY);
    let long = folder.path(&"deep/".repeat(40)).join("state");
    std::fs::create_dir_all(long.parent().unwrap()).unwrap();
    let runtime = folder.path("runtime");
    std::fs::create_dir_all(&runtime).unwrap();
    std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut args = ANY_PORT.to_vec();
    args.extend(["--state", long.to_str().unwrap()]);
    let mut command = folder.command(&args);
    command.env("XDG_RUNTIME_DIR", &runtime);
    let server = Server::spawn(command);
    assert!(server.socket.as_os_str().len() <= 107, "{}", server.socket.display());
    assert_eq!(decided(&server.connect().tool("1", "look")), "allow");
    assert_eq!(
        std::fs::read_link(long.join("run/ahp.sock")).unwrap(),
        server.socket,
        "the state directory says where it is"
    );
    // Others find the owner, too.
    let mut relay = folder.command(&["harness", "--state", long.to_str().unwrap()]);
    relay.env("XDG_RUNTIME_DIR", &runtime);
    let mut relay = crate::support::Gate::spawn(relay);
    assert_eq!(decided(&result(&relay.ask(&pre_action("2", "s", "look")))), "allow");
    let (code, said) = relay.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("relaying"), "{said}");
    let socket = server.socket.clone();
    server.stop();
    assert!(std::fs::symlink_metadata(socket).is_err(), "the socket is still there");
    assert!(
        std::fs::symlink_metadata(long.join("run/ahp.sock")).is_err(),
        "a link to nothing is still there"
    );
}

#[test]
fn beyond_this_machine_only_with_credentials() {
    let folder = Folder::with_policy(POLICY);
    for (http, grpc) in
        [("0.0.0.0:0", "127.0.0.1:0"), ("127.0.0.1:0", "0.0.0.0:0"), ("[::]:0", "127.0.0.1:0")]
    {
        let refused = folder.run(&["serve", "--json", "--http", http, "--grpc", grpc]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!((refused.status.code(), refused.stdout.as_slice()), (Some(1), &[][..]), "{said}");
        assert!(
            said.contains("can be reached from other machines") && said.contains("no credentials"),
            "{said}"
        );
    }
    folder.write("ci.token", "wFv3nQ0mJkq2Zb8rTt5y\n");
    folder.write("proctor.toml", "policy = \"policy.yaml\"\n[[token]]\nname = \"ci\"\nfile = \"ci.token\"\n");
    let server =
        Server::spawn(folder.command(&["serve", "--json", "--http", "0.0.0.0:0", "--grpc", "0.0.0.0:0"]));
    assert!(server.http.ip().is_unspecified());
    server.stop();
}

#[test]
fn settings_that_are_wrong_are_refused_before_anything_listens() {
    let folder = Folder::with_policy(POLICY);
    for (settings, wanted) in [
        ("[ahp]\nhold_ms = 7900\n", "must leave half a second"),
        ("[[token]]\nname = \"ci\"\nfile = \"short.token\"\n", "shorter than 16 bytes"),
        ("[[token]]\nname = \"ci\"\n", "exactly one of"),
        ("[[token]]\nname = \"ci\"\nsha256 = \"12\"\n", "64 hexadecimal digits"),
        ("[tls]\ncertificate = \"none.pem\"\nkey = \"none.key\"\n", "none.pem"),
        ("[ahp]\nhold = 1\n", "unknown key `hold`"),
    ] {
        folder.write("short.token", "abc\n");
        folder.write("proctor.toml", &format!("policy = \"policy.yaml\"\n{settings}"));
        let refused = folder.run(&ANY_PORT);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!((refused.status.code(), refused.stdout.as_slice()), (Some(1), &[][..]), "{said}");
        assert!(said.contains(wanted), "{said}");
        assert!(!said.contains("abc\n"), "a secret was printed");
    }
}
