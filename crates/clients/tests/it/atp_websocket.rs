//! The client of WebSocket agents, against correct and hostile ones.

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use proctor_clients::atp::client::{ExecuteError, Item, MAX_MESSAGE};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::support::atp::{
    EVENT, REQUEST, RESPONSE, RawAgent, Transcript, client, closed, executed, reply, reset,
};

/// An agent that does this on every connection, once it has the request.
async fn agent<F, W>(then: F) -> String
where
    F: Fn(WebSocketStream<TcpStream>) -> W + Send + 'static,
    W: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/run", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            let request = socket.next().await.unwrap().unwrap();
            assert_eq!(request, Message::text(REQUEST));
            tokio::spawn(then(socket));
        }
    });
    url
}

async fn said(messages: Vec<Message>) -> Transcript {
    let url = agent(move |mut socket| {
        let messages = messages.clone();
        async move {
            for message in messages {
                let _ = socket.send(message).await;
            }
            while let Some(Ok(_)) = socket.next().await {}
        }
    })
    .await;
    executed(&url).await
}

#[tokio::test]
async fn events_and_response_are_text_messages() {
    let got = said(vec![
        Message::text(EVENT),
        Message::Ping(Bytes::from_static(b"alive")),
        Message::text(RESPONSE),
    ])
    .await;
    // The agent keeps the connection open: it ends because the client closes it.
    assert_eq!(got.messages, [(EVENT.to_owned(), false), (RESPONSE.to_owned(), true)]);
    assert_eq!(got.errors, []);
}

#[tokio::test]
async fn two_responses_are_both_delivered() {
    let got = said(vec![Message::text(RESPONSE), Message::text(RESPONSE)]).await;
    assert_eq!(got.texts(), [RESPONSE, RESPONSE]);
}

#[tokio::test]
async fn a_close_without_a_response_is_an_error() {
    let got = said(vec![Message::text(EVENT), Message::Close(None)]).await;
    assert_eq!(got.messages.len(), 1);
    assert_eq!(got.error(), ExecuteError::ClosedBeforeResponse);
}

#[tokio::test]
async fn binary_messages_and_codes_of_errors_are_named() {
    let got = said(vec![Message::binary(RESPONSE)]).await;
    let expected = "a binary message came where a text was expected";
    assert_eq!(got.error(), ExecuteError::Transport(expected.to_owned()));
    let frame = CloseFrame { code: CloseCode::Error, reason: "out of memory".into() };
    let got = said(vec![Message::text(EVENT), Message::Close(Some(frame))]).await;
    let reason = "out of memory".to_owned();
    assert_eq!(got.error(), ExecuteError::ClosedWithCode { code: 1011, reason });
    let frame = CloseFrame { code: CloseCode::Away, reason: "".into() };
    let got = said(vec![Message::Close(Some(frame))]).await;
    assert_eq!(got.error(), ExecuteError::ClosedBeforeResponse);
}

#[tokio::test]
async fn resets_and_half_messages_are_lost_connections() {
    let url = agent(|socket| async move { reset(socket.into_inner()) }).await;
    assert_eq!(executed(&url).await.error(), ExecuteError::ConnectionLost);
    // A frame that announces 100 bytes, and a message whose last fragment is missing.
    for bytes in [&b"\x81\x64half"[..], b"\x01\x04half"] {
        let url = agent(move |socket| async move {
            let mut stream = socket.into_inner();
            stream.write_all(bytes).await.unwrap();
            stream.shutdown().await.unwrap();
            closed(&mut stream).await;
        })
        .await;
        assert_eq!(executed(&url).await.error(), ExecuteError::ConnectionLost);
    }
}

#[tokio::test]
async fn garbage_is_an_error_with_its_reason() {
    // A reserved opcode, a masked frame, and text that is no UTF-8.
    for bytes in [&b"\x83\x00"[..], b"\x81\x81\x00\x00\x00\x00x", b"\x81\x01\xff"] {
        let url = agent(move |socket| async move {
            let mut stream = socket.into_inner();
            stream.write_all(bytes).await.unwrap();
            closed(&mut stream).await;
        })
        .await;
        let error = executed(&url).await.error();
        assert!(matches!(error, ExecuteError::Transport(_)), "{error:?}");
    }
}

#[tokio::test]
async fn messages_over_the_limit_are_cut_off() {
    let got = said(vec![Message::text("x".repeat(MAX_MESSAGE + 1))]).await;
    assert_eq!(got.error(), ExecuteError::TooLong);
    let long = "x".repeat(MAX_MESSAGE);
    let got = said(vec![Message::text(long.clone()), Message::text(RESPONSE)]).await;
    assert_eq!(got.texts(), [&long, RESPONSE]);
    // Fragments without an end.
    let url = agent(|socket| async move {
        let mut stream = socket.into_inner();
        let mut fragment = vec![0x00, 126, 0xff, 0xff];
        fragment.resize(4 + 0xffff, b'x');
        let mut first = fragment.clone();
        first[0] = 0x01;
        let _ = stream.write_all(&first).await;
        while stream.write_all(&fragment).await.is_ok() {}
    })
    .await;
    assert_eq!(executed(&url).await.error(), ExecuteError::TooLong);
}

#[tokio::test]
async fn a_flood_is_read_in_order() {
    let url = agent(|mut socket| async move {
        for number in 0..20_000 {
            socket.feed(Message::text(format!("{{\"sequence\":{number}}}"))).await.unwrap();
        }
        socket.send(Message::text(RESPONSE)).await.unwrap();
        while let Some(Ok(_)) = socket.next().await {}
    })
    .await;
    let got = executed(&url).await;
    assert_eq!((got.messages.len(), got.errors.len()), (20_001, 0));
    assert_eq!(got.messages[19_999].0, "{\"sequence\":19999}");
}

/// An agent that talks before it listens does not block itself, however long the request is.
#[tokio::test]
async fn the_request_is_sent_while_messages_are_read() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        for _ in 0..100 {
            socket.send(Message::text("x".repeat(100_000))).await.unwrap();
        }
        let request = socket.next().await.unwrap().unwrap();
        assert_eq!(request.len(), 10_000_000);
        socket.send(Message::text(RESPONSE)).await.unwrap();
        while let Some(Ok(_)) = socket.next().await {}
    });
    let exchange = client(&url).execute(Bytes::from(vec![b' '; 10_000_000]));
    let got = crate::support::atp::transcript(exchange).await;
    assert_eq!((got.messages.len(), got.errors.len()), (101, 0));
}

#[tokio::test]
async fn silence_can_be_cancelled_and_the_connection_is_closed() {
    let (silent, mut silences) = mpsc::channel(1);
    let (ended, mut ends) = mpsc::channel(1);
    let url = agent(move |mut socket| {
        let (silent, ended) = (silent.clone(), ended.clone());
        async move {
            silent.send(()).await.unwrap();
            while let Some(Ok(_)) = socket.next().await {}
            ended.send(()).await.unwrap();
        }
    })
    .await;
    let mut exchange = client(&url).execute(REQUEST.into());
    tokio::select! {
        biased;
        item = exchange.next() => panic!("{item:?}"),
        Some(()) = silences.recv() => {}
    }
    drop(exchange);
    ends.recv().await.unwrap();
}

#[tokio::test]
async fn refused_upgrades_and_redirects_are_errors() {
    let agent = RawAgent::saying(reply("404 Not Found", "", "no")).await;
    let error = executed(&agent.url.replace("http", "ws")).await.error();
    assert!(matches!(error, ExecuteError::Status { status: 404, .. }), "{error:?}");
    let agent = RawAgent::saying(reply("302 Found", "location: /elsewhere\r\n", "")).await;
    let error = executed(&agent.url.replace("http", "ws")).await.error();
    assert!(matches!(error, ExecuteError::Redirect { status: 302, .. }), "{error:?}");
    assert_eq!(agent.paths().len(), 1);
}

#[tokio::test]
async fn an_exchange_that_has_ended_stays_ended() {
    let url = agent(|mut socket| async move {
        socket.send(Message::text(RESPONSE)).await.unwrap();
        while let Some(Ok(_)) = socket.next().await {}
    })
    .await;
    let mut exchange = client(&url).execute(REQUEST.into());
    assert!(matches!(exchange.next().await, Ok(Item::Message(_))));
    for _ in 0..3 {
        assert_eq!(exchange.next().await, Ok(Item::End));
    }
}
