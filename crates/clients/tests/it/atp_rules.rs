//! The rules of the protocol on what the client delivers: foreign task ids and second responses are found on every transport.

use futures_util::{SinkExt, StreamExt};
use proctor_clients::atp::client::Exchange;
use proctor_clients::atp::client::stdio::{Pipes, execute};
use proctor_wire::atp::conversation::{ConversationProblem, MessageKind, Transcript as Outcome};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;

use crate::support::atp::{EVENT, REQUEST, RESPONSE, RawAgent, client, outcome, reply, stream_head};

pub(crate) fn check_foreign(outcome: &Outcome) {
    let expected =
        ConversationProblem::ForeignTaskId { message: MessageKind::Response, found: "t-2".to_owned() };
    assert_eq!(outcome.problems, [expected]);
    assert!(outcome.response.is_none());
}

pub(crate) fn check_second(outcome: &Outcome) {
    assert_eq!(outcome.problems, [ConversationProblem::SecondResponse]);
}

fn over_pipes(responses: &[&str]) -> Exchange {
    let stdout = responses.join("\n").into_bytes();
    let pipes = Pipes {
        stdin: Box::new(tokio::io::sink()),
        stdout: Box::new(std::io::Cursor::new(stdout)),
        stderr: Box::new(EVENT.as_bytes()),
    };
    execute(pipes, REQUEST.into())
}

async fn over_events(responses: &[&str]) -> Exchange {
    let mut text = format!("{}data: {EVENT}\n\n", stream_head());
    for response in responses {
        text.push_str(&format!("data: {response}\n\n"));
    }
    client(&RawAgent::saying(text).await.url).execute(REQUEST.into())
}

async fn over_websocket(responses: &[&str]) -> Exchange {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    let messages: Vec<_> = [EVENT].iter().chain(responses).map(|text| Message::text(*text)).collect();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        socket.next().await.unwrap().unwrap();
        for message in messages {
            socket.send(message).await.unwrap();
        }
        while let Some(Ok(_)) = socket.next().await {}
    });
    client(&url).execute(REQUEST.into())
}

/// Defect 19: a response with a foreign task id is accepted. The test of gRPC is in `atp_grpc`.
#[tokio::test]
async fn defect_19_a_foreign_task_id_is_refused() {
    let foreign = RESPONSE.replace("t-1", "t-2");
    let json = "content-type: application/json\r\n";
    let body = RawAgent::saying(reply("200 OK", json, &foreign)).await;
    check_foreign(&outcome(client(&body.url).execute(REQUEST.into())).await);
    check_foreign(&outcome(over_pipes(&[&foreign])).await);
    check_foreign(&outcome(over_events(&[&foreign]).await).await);
    check_foreign(&outcome(over_websocket(&[&foreign]).await).await);
}

#[tokio::test]
async fn a_second_response_is_found() {
    let twice = [RESPONSE, RESPONSE];
    check_second(&outcome(over_pipes(&twice)).await);
    check_second(&outcome(over_events(&twice).await).await);
    check_second(&outcome(over_websocket(&twice).await).await);
}

#[tokio::test]
async fn a_correct_conversation_has_no_problems() {
    for exchange in
        [over_pipes(&[RESPONSE]), over_events(&[RESPONSE]).await, over_websocket(&[RESPONSE]).await]
    {
        let outcome = outcome(exchange).await;
        assert_eq!((outcome.problems.len(), outcome.events.len()), (0, 1));
        assert!(outcome.response.is_some());
    }
}
