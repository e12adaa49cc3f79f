//! Memory of overlong lines, measured in a process of its own.

use crate::support::isolated;
use crate::support::probe::{Probe, ask, assert_decides, assert_refuses, value};
use proctor_clients::ahp::server::{Peer, StreamLimits};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[tokio::test]
async fn a_line_without_end_takes_no_memory_and_the_next_one_is_answered() {
    if !isolated("ahp_server_memory::a_line_without_end_takes_no_memory_and_the_next_one_is_answered") {
        return;
    }
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(theirs);
    tokio::spawn(async move {
        Probe::server().serve_stream(Peer::this_process(), reader, writer, &StreamLimits::stdio()).await
    });
    let (replies, mut writer) = tokio::io::split(ours);
    let mut replies = BufReader::new(replies).lines();

    let piece = vec![b'x'; 1 << 20];
    let before = resident();
    let mut most = 0;
    for _ in 0..200 {
        writer.write_all(&piece).await.unwrap();
        most = most.max(resident());
    }
    assert!(most < before + (24 << 20), "{} bytes more", most - before);
    assert_refuses(&value(&replies.next_line().await.unwrap().unwrap()), json!(null), -32600);

    writer.write_all(format!("\n{}\n", ask("after", "ok")).as_bytes()).await.unwrap();
    assert_decides(&value(&replies.next_line().await.unwrap().unwrap()), "after", "allow");
    let message = ask("long", "ok");
    let longest = format!("{message}{}\n", " ".repeat((4 << 20) - message.len()));
    writer.write_all(longest.as_bytes()).await.unwrap();
    assert_decides(&value(&replies.next_line().await.unwrap().unwrap()), "long", "allow");
    writer.write_all(format!(" {longest}").as_bytes()).await.unwrap();
    assert_refuses(&value(&replies.next_line().await.unwrap().unwrap()), json!(null), -32600);
    assert!(resident() < before + (24 << 20));
}
