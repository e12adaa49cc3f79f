//! Unix sockets: who may open them, who called, how they begin and end.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use crate::support::probe::{Probe, ask, assert_decides, tell, value};
use proctor_clients::ahp::server::{AhpServer, Identity};
use proctor_net::unix::{UnixOptions, UnixSocket};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

struct Running {
    stop: CancellationToken,
    task: JoinHandle<io::Result<()>>,
}

impl Running {
    async fn start(path: &Path, server: &AhpServer<Probe>, options: UnixOptions) -> Running {
        let listening = UnixSocket::bind(path).await.unwrap();
        let stop = CancellationToken::new();
        let task = tokio::spawn(listening.serve(server.clone(), options, stop.clone()));
        Running { stop, task }
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

struct Client(BufReader<UnixStream>);

impl Client {
    async fn connect(path: &Path) -> Client {
        Client(BufReader::new(UnixStream::connect(path).await.unwrap()))
    }

    async fn send(&mut self, line: &str) {
        self.0.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn reply(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        value(&line)
    }

    async fn answer(&mut self, line: &str) -> Value {
        self.send(line).await;
        self.reply().await
    }

    async fn is_closed(&mut self) -> bool {
        self.0.read_u8().await.is_err()
    }
}

#[tokio::test]
async fn the_file_is_for_its_owner_and_goes_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ahp.sock");
    let server = Probe::server();
    let running = Running::start(&path, &server, UnixOptions::default()).await;
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut client = Client::connect(&path).await;
    assert_decides(&client.answer(&ask("1", "ok")).await, "1", "allow");
    let peer = server.handler().peers.lock().unwrap()[0].clone();
    let own = std::fs::metadata(folder.path()).unwrap().uid();
    assert_eq!((peer.transport, peer.identity), ("unix", Identity::Uid(own)));
    running.stop().await;
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn only_what_a_dead_server_left_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ahp.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "a socket that nobody listens on");
    let first = UnixSocket::bind(&path).await.unwrap();
    assert_eq!(UnixSocket::bind(&path).await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    assert!(path.exists());
    drop(first);
    assert!(!path.exists());
    std::fs::write(&path, "mine").unwrap();
    let refused = UnixSocket::bind(&path).await.unwrap_err();
    assert!(refused.to_string().contains("no socket"), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    let nowhere = UnixSocket::bind(folder.path().join("no/ahp.sock")).await.unwrap_err();
    assert_eq!(nowhere.kind(), io::ErrorKind::NotFound);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn of_many_that_start_at_once_one_listens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ahp.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let started = futures_util::future::join_all((0..8).map(|_| UnixSocket::bind(&path))).await;
    assert_eq!(started.iter().filter(|one| one.is_ok()).count(), 1);
}

#[tokio::test]
async fn a_slow_decision_does_not_delay_its_neighbour_and_a_stop_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ahp.sock");
    let server = Probe::server();
    let running = Running::start(&path, &server, UnixOptions::default()).await;
    let mut client = Client::connect(&path).await;
    client.send(&ask("slow", "wait")).await;
    assert_decides(&client.answer(&ask("quick", "ok")).await, "quick", "allow");
    assert_decides(&client.answer(&ask("panics", "panic")).await, "panics", "block");
    running.stop.cancel();
    // Stopping: the file has gone, or goes; what is in flight is answered.
    server.handler().gate.add_permits(1);
    assert_decides(&client.reply().await, "slow", "allow");
    running.stop().await;
    assert!(client.is_closed().await);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_stop_does_not_wait_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ahp.sock");
    let server = Probe::server().answer_within(Duration::from_secs(3600));
    let options = UnixOptions { grace: Duration::from_millis(50), ..UnixOptions::default() };
    let running = Running::start(&path, &server, options).await;
    let mut client = Client::connect(&path).await;
    client.send(&ask("never", "hang")).await;
    server.handler().begun(1).await;
    running.stop().await;
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn a_thousand_idle_connections_do_not_disturb_and_the_idlest_gives_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ahp.sock");
    let options = UnixOptions { max_connections: 1001, ..UnixOptions::default() };
    let running = Running::start(&path, &Probe::server(), options).await;
    let mut idle = Vec::new();
    for _ in 0..1000 {
        idle.push(Client::connect(&path).await);
    }
    let mut last = Client::connect(&path).await;
    assert_decides(&last.answer(&ask("busy", "ok")).await, "busy", "allow");
    let mut more = Client::connect(&path).await;
    assert_decides(&more.answer(&ask("more", "ok")).await, "more", "allow");
    assert!(idle.remove(0).is_closed().await, "the first that did nothing");
    assert_decides(&idle[500].answer(&ask("idle", "ok")).await, "idle", "allow");
    drop(idle);
    assert_decides(&last.answer(&ask("still", "ok")).await, "still", "allow");
    running.stop().await;
}

#[tokio::test]
async fn a_caller_that_leaves_at_once_loses_no_notification() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ahp.sock");
    let server = Probe::server();
    let running = Running::start(&path, &server, UnixOptions::default()).await;
    let mut client = Client::connect(&path).await;
    let lines = [vec![ask("unread", "ok"); 20], vec![tell("ok"); 200]].concat().join("\n");
    client.send(&lines).await;
    drop(client);
    server.handler().noticed(200).await;
    running.stop().await;
}
