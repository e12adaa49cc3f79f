use super::*;
use futures_util::{SinkExt, StreamExt};
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Message, Role};

/// A client, and the server's side of its connection.
async fn pair(
    budget: &MemoryBudget,
) -> (WebSocketStream<tokio::io::DuplexStream>, WebSocketStream<BoundedFrames<tokio::io::DuplexStream>>) {
    let (client, server) = tokio::io::duplex(1 << 20);
    let server = BoundedFrames::new(server, budget, 1_000_000);
    (
        WebSocketStream::from_raw_socket(client, Role::Client, None).await,
        WebSocketStream::from_raw_socket(server, Role::Server, None).await,
    )
}

#[tokio::test]
async fn messages_of_every_length_arrive_as_they_were_sent() {
    let budget = MemoryBudget::new(10_000_000);
    let (mut client, mut server) = pair(&budget).await;
    for length in [0, 1, 125, 126, 16_383, 16_384, 16_385, 32_768, 65_535, 65_536, 500_001] {
        let text: String = ('a'..='z').cycle().take(length).collect();
        client.send(Message::text(text.clone())).await.unwrap();
        client.send(Message::Ping(vec![7; length.min(125)].into())).await.unwrap();
        assert_eq!(server.next().await.unwrap().unwrap(), Message::text(text), "{length}");
        assert!(matches!(server.next().await.unwrap().unwrap(), Message::Ping(_)));
        assert!(budget.try_reserve(10_000_000).is_some(), "{length}");
    }
    client.send(Message::binary(vec![1; 100_000])).await.unwrap();
    assert_eq!(server.next().await.unwrap().unwrap(), Message::binary(vec![1; 100_000]));
    client.close(None).await.unwrap();
    assert!(matches!(server.next().await.unwrap().unwrap(), Message::Close(_)));
}

#[tokio::test]
async fn what_does_not_fit_ends_its_connection_and_no_other() {
    let budget = MemoryBudget::new(1_000_000);
    let (mut holder, mut held) = pair(&budget).await;
    // The header of a masked frame of 900,000 bytes, and a part of it.
    let header = [&[0x81, 0xff][..], &900_000_u64.to_be_bytes(), &[0; 4]].concat();
    holder.get_mut().write_all(&header).await.unwrap();
    holder.get_mut().write_all(&[b'x'; 100]).await.unwrap();
    assert!(futures_util::poll!(held.next()).is_pending());
    let (mut small, mut answered) = pair(&budget).await;
    small.send(Message::text("small")).await.unwrap();
    assert_eq!(answered.next().await.unwrap().unwrap(), Message::text("small"));
    small.send(Message::text("x".repeat(200_000))).await.unwrap();
    let problem = answered.next().await.unwrap().unwrap_err().to_string();
    assert!(problem.contains("exhausted"), "{problem}");
    drop((holder, held));
    assert!(budget.try_reserve(1_000_000).is_some());
}

#[tokio::test]
async fn fragments_of_one_message_are_counted_together() {
    let budget = MemoryBudget::new(100_000);
    let (mut client, mut server) = pair(&budget).await;
    let fragment =
        |first: u8| [&[first, 0xfe][..], &60_000_u16.to_be_bytes(), &[0; 4], &b"x".repeat(60_000)].concat();
    // One alone may be larger than the budget, but not beside another.
    let _other = budget.try_reserve(1).unwrap();
    client.get_mut().write_all(&[fragment(0x01), fragment(0x80)].concat()).await.unwrap();
    assert!(server.next().await.unwrap().unwrap_err().to_string().contains("exhausted"));
}

#[tokio::test(start_paused = true)]
async fn half_a_message_ends_its_connection_in_time() {
    let budget = MemoryBudget::new(1_000_000);
    let (mut client, mut server) = pair(&budget).await;
    let header = [&[0x81, 0xff][..], &900_000_u64.to_be_bytes(), &[0; 4]].concat();
    client.get_mut().write_all(&header).await.unwrap();
    let began = tokio::time::Instant::now();
    let problem = server.next().await.unwrap().unwrap_err().to_string();
    assert!(problem.contains("not finished in time"), "{problem}");
    assert_eq!(began.elapsed(), UNFINISHED_TIME);
}
