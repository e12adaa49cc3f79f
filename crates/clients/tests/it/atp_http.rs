//! The client of HTTP agents, against correct and hostile ones.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proctor_clients::atp::client::{
    AddressError, AgentClient, ClientOptions, ConnectError, ExecuteError, Headers, Item, MAX_MESSAGE,
};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

use crate::support::atp::{
    EVENT, REQUEST, RESPONSE, RawAgent, Seen, client, closed, executed, reply, reset, stream_head, transcript,
};

const JSON: &str = "content-type: application/json\r\n";

#[tokio::test]
async fn a_bare_host_is_asked_on_three_paths_and_the_one_that_answers_is_remembered() {
    let agent = RawAgent::start(|seen: Seen, mut stream| async move {
        let answer = match seen.path.as_str() {
            "/execute/stream" => reply("404 Not Found", "", "no"),
            "/execute" => reply("405 Method Not Allowed", "", ""),
            _ => reply("200 OK", JSON, RESPONSE),
        };
        let _ = stream.write_all(answer.as_bytes()).await;
    })
    .await;
    let client = client(&agent.url);
    for _ in 0..2 {
        let got = transcript(client.execute(REQUEST.into())).await;
        assert_eq!(got.messages, [(RESPONSE.to_owned(), true)]);
    }
    assert_eq!(agent.paths(), ["/execute/stream", "/execute", "/", "/"]);
}

#[tokio::test]
async fn the_request_goes_as_json_with_three_offers() {
    let agent = RawAgent::saying(reply("200 OK", JSON, RESPONSE)).await;
    executed(&agent.url).await.texts();
    let seen = agent.seen.lock().unwrap()[0].clone();
    assert!(seen.head.starts_with("post /execute/stream http/1.1\r\n"), "{}", seen.head);
    assert!(seen.head.contains("\r\ncontent-type: application/json\r\n"));
    assert!(
        seen.head
            .contains("\r\naccept: application/vnd.atp.v1+json, application/json, text/event-stream\r\n")
    );
    assert_eq!(seen.body, REQUEST);
}

#[tokio::test]
async fn a_path_is_used_as_it_is() {
    let agent = RawAgent::saying(reply("404 Not Found", JSON, "{\"detail\":\"nothing here\"}")).await;
    let error = executed(&format!("{}/agents/7?tenant=1", agent.url)).await.error();
    let ExecuteError::Status { status: 404, path, body } = &error else { panic!("{error:?}") };
    assert_eq!((path.as_str(), &body[..]), ("/agents/7", &b"{\"detail\":\"nothing here\"}"[..]));
    assert!(error.to_string().contains("404") && error.to_string().contains("nothing here"));
    // So is a bare host that a suite names as its endpoint.
    let options = ClientOptions { is_exact: true, ..ClientOptions::default() };
    let exact = AgentClient::new(&agent.url, &options).unwrap();
    transcript(exact.execute(REQUEST.into())).await.error();
    assert_eq!(agent.paths(), ["/agents/7?tenant=1", "/"]);
}

#[tokio::test]
async fn other_statuses_are_errors_and_are_not_tried_elsewhere() {
    for status in ["400 Bad Request", "401 Unauthorized", "422 Unprocessable Entity", "500 Oops", "503 Busy"]
    {
        let agent = RawAgent::saying(reply(status, "", &"x".repeat(100_000))).await;
        let error = executed(&agent.url).await.error();
        let ExecuteError::Status { status: seen, path, body } = error else { panic!("{status}: {error:?}") };
        assert!(status.starts_with(&seen.to_string()));
        assert_eq!(
            (path.as_str(), body.len()),
            ("/execute/stream", 4096),
            "only the start of the body is kept"
        );
        assert_eq!(agent.paths().len(), 1);
    }
}

#[tokio::test]
async fn after_415_the_request_goes_once_more_in_the_vendor_type() {
    let agent = RawAgent::start(|seen: Seen, mut stream| async move {
        let is_vendor = seen.head.contains("content-type: application/vnd.atp.v1+json");
        let vendor = "content-type: application/vnd.atp.v1+json\r\n";
        let answer = if is_vendor {
            reply("200 OK", vendor, RESPONSE)
        } else {
            reply("415 Unsupported Media Type", "", "")
        };
        let _ = stream.write_all(answer.as_bytes()).await;
    })
    .await;
    let client = client(&agent.url);
    for _ in 0..2 {
        let got = transcript(client.execute(REQUEST.into())).await;
        assert_eq!(got.texts(), [RESPONSE]);
    }
    // The second execution begins with the type that worked.
    assert_eq!(agent.paths().len(), 3);

    let stubborn = RawAgent::saying(reply("415 Unsupported Media Type", "", "never")).await;
    let error = executed(&stubborn.url).await.error();
    assert!(matches!(error, ExecuteError::Status { status: 415, .. }), "{error:?}");
    assert_eq!(stubborn.paths().len(), 2);
}

#[tokio::test]
async fn another_major_version_is_refused() {
    let agent =
        RawAgent::saying(reply("200 OK", "content-type: Application/vnd.atp.v2+JSON; q=1\r\n", RESPONSE))
            .await;
    let error = executed(&agent.url).await.error();
    assert_eq!(error, ExecuteError::UnsupportedMediaType("application/vnd.atp.v2+json".to_owned()));
}

#[tokio::test]
async fn redirects_are_refused() {
    let target = RawAgent::saying(reply("200 OK", JSON, RESPONSE)).await;
    for status in ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let location = format!("location: {}/execute\r\n", target.url);
        let agent = RawAgent::saying(reply(status, &location, "")).await;
        let error = executed(&agent.url).await.error();
        let ExecuteError::Redirect { location: Some(location), .. } = error else { panic!("{error:?}") };
        assert!(location.contains("/execute"));
    }
    assert_eq!(target.paths(), [""; 0]);
}

/// Defect 18: the released adapter refuses agents on this machine.
#[tokio::test]
async fn defect_18_agents_on_this_machine_are_reached() {
    let agent = RawAgent::saying(reply("200 OK", JSON, RESPONSE)).await;
    for host in ["127.0.0.1", "localhost"] {
        assert_eq!(executed(&agent.url.replace("127.0.0.1", host)).await.texts(), [RESPONSE]);
    }
}

#[tokio::test]
async fn unreachable_agents_and_bad_addresses_say_why() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = executed(&url).await.error();
    assert!(matches!(error, ExecuteError::Connect(ConnectError::Failed(_))), "{error:?}");
    assert!(error.to_string().contains("refused"), "{error}");
    let refused = |url: &str| AgentClient::new(url, &ClientOptions::default()).err().unwrap();
    for url in ["ftp://host", "localhost:80", ""] {
        assert_eq!(refused(url), AddressError::UnknownScheme, "{url}");
    }
    for url in ["http://", "ws://a b", "grpc://"] {
        assert!(matches!(refused(url), AddressError::Invalid(_)), "{url}");
    }
}

#[tokio::test]
async fn event_streams_are_read_whatever_their_chunks() {
    let stream = format!(
        "\u{feff}: hello\r\n\r\nretry: 5\rdata: {EVENT}\r\rid: 1\ndata: {{\ndata: \"event_type\": 1}}\n\nevent: ping\ndata:\n\nevent: response\r\ndata: {RESPONSE}\r\n\r\n"
    );
    for size in [1, 2, 7, 64, 100_000] {
        let stream: Arc<str> = stream.clone().into();
        let agent = RawAgent::start(move |_, mut socket: TcpStream| {
            let stream = Arc::clone(&stream);
            async move {
                let head =
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                socket.write_all(head.as_bytes()).await.unwrap();
                for chunk in stream.as_bytes().chunks(size) {
                    let _ = socket.write_all(format!("{:x}\r\n", chunk.len()).as_bytes()).await;
                    let _ = socket.write_all(chunk).await;
                    let _ = socket.write_all(b"\r\n").await;
                }
                let _ = socket.write_all(b"0\r\n\r\n").await;
                closed(&mut socket).await;
            }
        })
        .await;
        let got = executed(&agent.url).await;
        assert_eq!(got.errors, []);
        let expected = [
            (EVENT.to_owned(), false),
            ("{\n\"event_type\": 1}".to_owned(), false),
            (RESPONSE.to_owned(), true),
        ];
        assert_eq!(got.messages, expected, "chunks of {size}");
    }
}

#[tokio::test]
async fn a_last_block_without_a_blank_line_counts() {
    for end in ["", "\n", "\r\n"] {
        let text = format!("{}data: {EVENT}\n\ndata: {RESPONSE}{end}", stream_head());
        let agent = RawAgent::saying(text).await;
        assert_eq!(executed(&agent.url).await.texts(), [EVENT, RESPONSE]);
    }
}

#[tokio::test]
async fn streams_without_a_response_are_errors() {
    for stream in ["", ": only a comment\n\n", &format!("data: {EVENT}\n\n"), "data:\n\n"] {
        let agent = RawAgent::saying(format!("{}{stream}", stream_head())).await;
        let got = executed(&agent.url).await;
        assert_eq!(got.errors, [ExecuteError::ClosedBeforeResponse], "{stream:?}");
    }
    for body in ["", "  \n"] {
        let agent = RawAgent::saying(reply("200 OK", JSON, body)).await;
        assert_eq!(executed(&agent.url).await.error(), ExecuteError::ClosedBeforeResponse);
    }
}

#[tokio::test]
async fn half_a_reply_is_a_lost_connection() {
    // A body that is shorter than announced, a chunk that breaks off, and nothing at all.
    let short = format!("HTTP/1.1 200 OK\r\n{JSON}content-length: 500\r\n\r\n{RESPONSE}");
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\nfff\r\ndata: {RESPONSE}\n"
    );
    for text in [short, chunked, String::new(), "HTTP/1.1 200".to_owned()] {
        let agent = RawAgent::saying(text.clone()).await;
        assert_eq!(executed(&agent.url).await.error(), ExecuteError::ConnectionLost, "{text:?}");
    }
    // Half a block of a stream that is reset is not delivered.
    let agent = RawAgent::start(|_, mut stream: TcpStream| async move {
        let text = format!("{}data: {EVENT}\n\ndata: {RESPONSE}", stream_head());
        stream.write_all(text.as_bytes()).await.unwrap();
        // A reset may overtake what was sent before it.
        reset(stream);
    })
    .await;
    let got = executed(&agent.url).await;
    assert_eq!(got.errors, [ExecuteError::ConnectionLost]);
    assert!(got.messages.len() <= 1);
}

#[tokio::test]
async fn a_reset_after_the_response_is_no_error() {
    let (responded, mut resets) = mpsc::channel::<TcpStream>(1);
    let agent = RawAgent::start(move |_, mut stream: TcpStream| {
        let responded = responded.clone();
        async move {
            let text = format!("{}event: response\ndata: {RESPONSE}\n\n", stream_head());
            stream.write_all(text.as_bytes()).await.unwrap();
            responded.send(stream).await.unwrap();
        }
    })
    .await;
    let mut exchange = client(&agent.url).execute(REQUEST.into());
    assert!(matches!(exchange.next().await, Ok(Item::Message(_))));
    reset(resets.recv().await.unwrap());
    assert_eq!(exchange.next().await, Ok(Item::End));
}

#[tokio::test]
async fn two_responses_are_both_delivered() {
    let text = format!("{}data: {RESPONSE}\n\ndata: {RESPONSE}\n\n", stream_head());
    let agent = RawAgent::saying(text).await;
    assert_eq!(executed(&agent.url).await.texts(), [RESPONSE, RESPONSE]);
}

/// An agent that keeps the connection open after its response holds up nobody, and is told by the closed connection.
#[tokio::test]
async fn an_open_stream_ends_soon_after_the_response() {
    let (ended, mut ends) = mpsc::channel(1);
    let agent = RawAgent::start(move |_, mut stream: TcpStream| {
        let ended = ended.clone();
        async move {
            let text = format!("{}data: {RESPONSE}\n\n", stream_head());
            stream.write_all(text.as_bytes()).await.unwrap();
            closed(&mut stream).await;
            ended.send(()).await.unwrap();
        }
    })
    .await;
    assert_eq!(executed(&agent.url).await.texts(), [RESPONSE]);
    ends.recv().await.unwrap();
}

#[tokio::test]
async fn messages_over_the_limit_are_cut_off() {
    let endless = |head: String| {
        RawAgent::start(move |_, mut stream: TcpStream| {
            let head = head.clone();
            async move {
                stream.write_all(head.as_bytes()).await.unwrap();
                let chunk = vec![b'x'; 1 << 20];
                // Until the client closes: an agent is never read for ever.
                while stream.write_all(&chunk).await.is_ok() {}
            }
        })
    };
    let json = format!("HTTP/1.1 200 OK\r\n{JSON}connection: close\r\n\r\n\"");
    for head in [format!("{}data: ", stream_head()), format!("{}:", stream_head()), json] {
        let agent = endless(head.clone()).await;
        assert_eq!(executed(&agent.url).await.error(), ExecuteError::TooLong, "{head}");
    }
    // A block of many short lines.
    let lines = format!("{}{}", stream_head(), "data: 0123456789abcdef\n".repeat(MAX_MESSAGE / 16));
    let agent = RawAgent::saying(lines).await;
    assert_eq!(executed(&agent.url).await.error(), ExecuteError::TooLong);
}

#[tokio::test]
async fn a_flood_of_events_is_read_in_order() {
    let mut text = stream_head().to_owned();
    for number in 0..50_000 {
        text.push_str(&format!("data: {{\"sequence\":{number}}}\n\n"));
    }
    text.push_str(&format!("data: {RESPONSE}\n\n"));
    let agent = RawAgent::saying(text).await;
    let got = executed(&agent.url).await;
    assert_eq!(got.errors, []);
    assert_eq!(got.messages.len(), 50_001);
    assert_eq!(got.messages[49_999].0, "{\"sequence\":49999}");
}

/// Cancelling loses nothing, and dropping the exchange closes the connection: after silence before the head, within the head, and
/// within an event.
#[tokio::test]
async fn silence_can_be_cancelled_at_any_point() {
    for said in ["", "HTTP/1.1 20", stream_head(), &format!("{}data: {{\"ha", stream_head())] {
        let said: Arc<str> = said.into();
        let (silent, mut silences) = mpsc::channel(1);
        let (ended, mut ends) = mpsc::channel(1);
        let agent = RawAgent::start(move |_, mut stream: TcpStream| {
            let (said, silent, ended) = (Arc::clone(&said), silent.clone(), ended.clone());
            async move {
                stream.write_all(said.as_bytes()).await.unwrap();
                silent.send(()).await.unwrap();
                closed(&mut stream).await;
                ended.send(()).await.unwrap();
            }
        })
        .await;
        let mut exchange = client(&agent.url).execute(REQUEST.into());
        tokio::select! {
            biased;
            item = exchange.next() => panic!("{item:?}"),
            Some(()) = silences.recv() => {}
        }
        drop(exchange);
        ends.recv().await.unwrap();
    }
}

#[tokio::test]
async fn a_trickle_survives_cancellation_between_any_two_bytes() {
    let (step, stepped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let bytes: Arc<str> = format!("data: {EVENT}\n\ndata: {RESPONSE}\n\n").into();
    let agent = {
        let (step, stepped) = (Arc::clone(&step), Arc::clone(&stepped));
        RawAgent::start(move |_, mut stream: TcpStream| {
            let (step, stepped, bytes) = (Arc::clone(&step), Arc::clone(&stepped), Arc::clone(&bytes));
            async move {
                stream.set_nodelay(true).unwrap();
                stream.write_all(stream_head().as_bytes()).await.unwrap();
                for byte in bytes.as_bytes() {
                    step.notified().await;
                    stream.write_all(&[*byte]).await.unwrap();
                    stepped.notify_one();
                }
            }
        })
        .await
    };
    let mut exchange = client(&agent.url).execute(REQUEST.into());
    let mut texts = Vec::new();
    step.notify_one();
    while texts.len() < 2 {
        // The call is cancelled after every byte that was sent.
        tokio::select! {
            biased;
            item = exchange.next() => match item.unwrap() {
                Item::Message(message) => texts.push(message.text),
                item => panic!("{item:?}"),
            },
            () = stepped.notified() => step.notify_one(),
        }
    }
    assert_eq!(texts, [EVENT, RESPONSE]);
    assert_eq!(exchange.next().await, Ok(Item::End));
}

#[tokio::test]
async fn connecting_has_a_time_limit() {
    // A listener that accepts nobody, and whose queue is full, lets no one in.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let _fill: Vec<_> = (0..2)
        .filter_map(|_| std::net::TcpStream::connect_timeout(&address, Duration::from_millis(100)).ok())
        .collect();
    let options = ClientOptions { connect_timeout: Duration::from_millis(50), ..ClientOptions::default() };
    for scheme in ["http", "ws", "grpc"] {
        let client = AgentClient::new(&format!("{scheme}://{address}"), &options).unwrap();
        let error = transcript(client.execute(Bytes::from_static(REQUEST.as_bytes()))).await.error();
        assert_eq!(error, ExecuteError::Connect(ConnectError::TimedOut), "{scheme}");
    }
}

#[tokio::test]
async fn additional_headers_are_sent_and_checked() {
    let agent = RawAgent::saying(reply("200 OK", JSON, RESPONSE)).await;
    let headers =
        Headers::default().with("Authorization", "Bearer t0ken").unwrap().with("x-tenant", "7").unwrap();
    for scheme in ["http", "ws", "grpc"] {
        let options = ClientOptions { headers: headers.clone(), ..ClientOptions::default() };
        let client = AgentClient::new(&agent.url.replace("http", scheme), &options).unwrap();
        transcript(client.execute(REQUEST.into())).await;
    }
    // The third speaks HTTP/2; its head is compressed.
    let seen = agent.seen.lock().unwrap().clone();
    for head in [&seen[0].head, &seen[1].head] {
        assert!(
            head.contains("authorization: bearer t0ken\r\n") && head.contains("x-tenant: 7\r\n"),
            "{head}"
        );
    }
    for name in ["host", "Accept", "Sec-WebSocket-Key", "grpc-timeout"] {
        assert!(matches!(Headers::default().with(name, "x"), Err(AddressError::ReservedHeader(_))), "{name}");
    }
    for (name, value) in [("a b", "x"), ("", "x"), ("x", "a\nb")] {
        for scheme in ["http", "ws", "grpc"] {
            let headers = Headers::default().with(name, value).unwrap();
            let options = ClientOptions { headers, ..ClientOptions::default() };
            let refused = AgentClient::new(&format!("{scheme}://localhost"), &options).err();
            assert_eq!(refused, Some(AddressError::InvalidHeader(name.to_owned())), "{scheme}");
        }
    }
}
