//! Lines over any stream: what comes back for what, in which order, and in bounded memory.

use std::io;
use std::time::Duration;

use crate::support::probe::{
    Probe, ask, ask_nth, assert_decides, assert_refuses, handshake, request, tell, value,
};
use proctor_clients::ahp::server::{AhpServer, Peer, StreamLimits};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

struct Client {
    replies: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
    serving: JoinHandle<io::Result<()>>,
}

impl Client {
    fn of(server: &AhpServer<Probe>) -> Client {
        Client::with(server, StreamLimits::stdio(), 64 * 1024)
    }

    fn with(server: &AhpServer<Probe>, limits: StreamLimits, buffer: usize) -> Client {
        let (ours, theirs) = tokio::io::duplex(buffer);
        let (server, (reader, writer)) = (server.clone(), tokio::io::split(theirs));
        let serving =
            tokio::spawn(
                async move { server.serve_stream(Peer::this_process(), reader, writer, &limits).await },
            );
        let (replies, writer) = tokio::io::split(ours);
        Client { replies: BufReader::new(replies), writer, serving }
    }

    async fn send(&mut self, lines: &[impl AsRef<[u8]>]) {
        let mut text = Vec::new();
        for line in lines {
            text.extend_from_slice(line.as_ref());
            text.push(b'\n');
        }
        self.writer.write_all(&text).await.unwrap();
    }

    async fn reply(&mut self) -> Value {
        let mut line = String::new();
        self.replies.read_line(&mut line).await.unwrap();
        value(&line)
    }

    async fn answer(&mut self, line: impl AsRef<[u8]>) -> Value {
        self.send(&[line]).await;
        self.reply().await
    }

    async fn finish(mut self) {
        self.writer.shutdown().await.unwrap();
        let mut rest = String::new();
        assert_eq!(self.replies.read_line(&mut rest).await.unwrap(), 0, "{rest}");
        self.serving.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn every_kind_of_id_comes_back_as_it_was_sent() {
    let mut client = Client::of(&Probe::server());
    for id in
        [json!("a-1"), json!(""), json!("ü\n"), json!(7), json!(-1.5), json!(null), json!("x".repeat(4096))]
    {
        assert_decides(&client.answer(ask(id.clone(), "ok")).await, id, "allow");
    }
    let literal = "123456789012345678901234567890.10";
    client.send(&[ask(0, "ok").replace(r#""id":0"#, &format!(r#""id":{literal}"#))]).await;
    let mut line = String::new();
    client.replies.read_line(&mut line).await.unwrap();
    assert!(line.contains(&format!(r#""id":{literal},"result""#)), "{line}");
    client.finish().await;
}

#[tokio::test]
async fn what_is_no_message_is_refused_and_the_connection_goes_on() {
    let server = Probe::server();
    let mut client = Client::of(&server);
    let long = "x".repeat(4097);
    let deep = "[".repeat(100_000);
    let cases: Vec<(Vec<u8>, Value, i32)> = vec![
        (b"not json".to_vec(), json!(null), -32700),
        (b"\xff\xfe{}".to_vec(), json!(null), -32700),
        (br#"{"jsonrpc":"2.0","id":"\xff"}"#.to_vec(), json!(null), -32700),
        (deep.into_bytes(), json!(null), -32700),
        (
            br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ahp/event","params":{}}"#.to_vec(),
            json!(null),
            -32700,
        ),
        ([ask(1, "ok"), ask(2, "ok")].concat().into_bytes(), json!(null), -32700),
        (br#"[1,"x",2,{}]"#.to_vec(), json!(null), -32600),
        (b"17".to_vec(), json!(null), -32600),
        (br#"{"id":"m","method":"ahp/event","params":{}}"#.to_vec(), json!("m"), -32600),
        (br#"{"jsonrpc":"2.0","id":"p","method":"ahp/event"}"#.to_vec(), json!("p"), -32600),
        (br#"{"jsonrpc":"2.0","id":true,"method":"ahp/event","params":{}}"#.to_vec(), json!(null), -32600),
        (request(long, "ahp/event", json!({})).into_bytes(), json!(null), -32600),
        (request("u", "ahp/other", json!({})).into_bytes(), json!("u"), -32601),
        (request("e", "ahp/event", json!({"event_type": "nothing"})).into_bytes(), json!("e"), -32602),
    ];
    let expected: Vec<i32> = cases.iter().map(|case| case.2).collect();
    for (line, id, code) in cases {
        assert_refuses(&client.answer(line).await, id, code);
    }
    assert_eq!(*server.handler().violations.lock().unwrap(), expected);
    assert_decides(&client.answer(ask("after", "ok").replace("2.0", "1.0")).await, "after", "allow");
    client.finish().await;
}

#[tokio::test]
async fn blank_lines_and_notifications_get_nothing() {
    let server = Probe::server();
    let mut client = Client::of(&server);
    let unknown = json!({"jsonrpc": "2.0", "method": "ahp/other", "params": {}}).to_string();
    let blocking = tell("ok").replace("post_action", "pre_action");
    client.send(&["", "  \t\r", &tell("ok"), &tell("panic"), &tell("fail"), &unknown, &blocking]).await;
    let padded = format!("   {}\r", ask("r", "ok"));
    assert_decides(&client.answer(padded).await, "r", "allow");
    server.handler().noticed(1).await;
    assert_eq!(*server.handler().violations.lock().unwrap(), [-32603]);
    client.finish().await;
}

#[tokio::test]
async fn a_slow_decision_does_not_delay_its_neighbour() {
    let server = Probe::server();
    let mut client = Client::of(&server);
    client.send(&[ask("slow", "wait"), ask("quick", "ok")]).await;
    assert_decides(&client.reply().await, "quick", "allow");
    assert_decides(&client.answer(ask("late", "ok")).await, "late", "allow");
    server.handler().gate.add_permits(1);
    assert_decides(&client.reply().await, "slow", "allow");
    client.finish().await;
}

#[tokio::test]
async fn messages_begin_in_order_of_arrival_however_many_there_are() {
    let server = Probe::server().window(5000);
    let mut client = Client::with(&server, StreamLimits::stdio(), 1 << 20);
    let lines: Vec<String> = (0..2000).map(|n| ask_nth(n, "wait", n)).collect();
    client.send(&lines).await;
    server.handler().begun(2000).await;
    assert!(server.handler().order.lock().unwrap().iter().copied().eq(0..2000));
    server.handler().gate.add_permits(2000);
    let mut ids = Vec::new();
    for _ in 0..2000 {
        ids.push(client.reply().await["id"].as_u64().unwrap());
    }
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..2000));
    client.finish().await;
}

#[tokio::test]
async fn the_events_of_a_batch_begin_in_order_and_run_side_by_side() {
    let server = Probe::server().answer_within(Duration::from_millis(200));
    let mut client = Client::of(&server);
    let events: Vec<Value> =
        (0..100).map(|n| crate::support::probe::params("pre_action", "hang", n)).collect();
    let began = std::time::Instant::now();
    let reply = client.answer(request("b", "ahp/batch", json!({"events": events}))).await;
    assert!(began.elapsed() < Duration::from_secs(5));
    let decisions = reply["result"]["decisions"].as_array().unwrap();
    assert!(decisions.len() == 100 && decisions.iter().all(|it| it["decision"] == "block"));
    assert!(server.handler().order.lock().unwrap().iter().copied().eq(0..100));
    client.finish().await;
}

#[tokio::test]
async fn no_more_than_a_window_is_worked_on_at_once() {
    let server = Probe::server().window(4);
    let mut client = Client::of(&server);
    let lines: Vec<String> = (0..20).map(|n| ask(n, "wait")).collect();
    client.send(&lines).await;
    server.handler().begun(4).await;
    server.handler().gate.add_permits(20);
    for _ in 0..20 {
        client.reply().await;
    }
    assert_eq!(server.handler().most_at_once(), 4);
    client.finish().await;
}

#[tokio::test]
async fn failures_are_blocks_and_not_errors() {
    let server = Probe::server().answer_within(Duration::from_millis(50));
    let mut client = Client::of(&server);
    for tool in ["panic", "fail", "hang"] {
        assert_decides(&client.answer(ask(tool, tool)).await, tool, "block");
    }
    let welcome = client.answer(handshake("h", "panic")).await;
    assert_eq!(welcome["result"]["protocol_version"], "2.4", "{welcome}");
    client.finish().await;
}

#[tokio::test]
async fn a_message_may_come_in_pieces() {
    let mut client = Client::of(&Probe::server());
    for byte in ask("pieces", "ok").bytes().chain(*b"\n") {
        client.writer.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_decides(&client.reply().await, "pieces", "allow");
    client.writer.write_all(ask("no line end", "ok").as_bytes()).await.unwrap();
    client.writer.shutdown().await.unwrap();
    assert_decides(&client.reply().await, "no line end", "allow");
    client.finish().await;
}

#[tokio::test]
async fn the_end_of_input_waits_for_what_is_in_flight() {
    let server = Probe::server();
    let mut client = Client::of(&server);
    client.send(&[ask("last", "wait")]).await;
    client.writer.shutdown().await.unwrap();
    server.handler().begun(1).await;
    server.handler().gate.add_permits(1);
    assert_decides(&client.reply().await, "last", "allow");
    client.finish().await;
}

#[tokio::test]
async fn a_peer_that_leaves_without_reading_loses_no_notification() {
    let server = Probe::server();
    let mut client = Client::with(&server, StreamLimits::stdio(), 1 << 20);
    let mut lines = vec![ask("unread", "ok"); 10];
    lines.extend(vec![tell("ok"); 500]);
    client.send(&lines).await;
    let Client { replies, writer, serving } = client;
    drop((replies, writer));
    assert!(serving.await.unwrap().is_err());
    server.handler().noticed(500).await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_is_given_up_and_one_that_is_slow_is_not() {
    let server = Probe::server();
    let lines: Vec<String> = (0..3000).map(|n| ask(n, "ok")).collect();
    let text = lines.join("\n") + "\n";

    let mut stuck = Client::with(&server, StreamLimits::stdio(), 1024);
    let began = tokio::time::Instant::now();
    let sent = tokio::time::timeout(Duration::from_secs(300), stuck.writer.write_all(text.as_bytes())).await;
    assert!(sent.unwrap().is_err(), "the connection is closed");
    assert_eq!(began.elapsed().as_secs(), 30);
    assert_eq!(stuck.serving.await.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
    let begun = *server.handler().begun.borrow();
    assert!(begun < 2500, "{begun} messages were taken from a peer that reads nothing");

    let mut slow = Client::with(&server, StreamLimits::stdio(), 1024);
    let writer = tokio::spawn(async move {
        slow.writer.write_all(text.as_bytes()).await.unwrap();
        slow.writer
    });
    for _ in 0..3000 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut line = String::new();
        slow.replies.read_line(&mut line).await.unwrap();
        value(&line);
    }
    writer.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_idle_peer_is_closed_but_not_while_it_waits() {
    let server = Probe::server().answer_within(Duration::from_secs(7200));
    let mut client = Client::with(&server, StreamLimits::socket(), 1024);
    client.send(&[ask("slow", "wait")]).await;
    tokio::time::sleep(Duration::from_secs(1800)).await;
    server.handler().gate.add_permits(1);
    assert_decides(&client.reply().await, "slow", "allow");
    let began = tokio::time::Instant::now();
    assert_decides(&client.answer(ask("again", "ok")).await, "again", "allow");
    client.serving.await.unwrap().unwrap();
    assert_eq!(began.elapsed().as_secs(), 600);
}

#[test]
fn what_a_message_in_work_takes_is_small() {
    let server = Probe::server();
    let peer = Peer::this_process();
    let size = std::mem::size_of_val(&server.handle_text(&peer, b""));
    assert!(size < 2500, "{size} bytes, of which most should be the handler's");
}
