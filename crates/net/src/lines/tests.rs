use proptest::prelude::*;

use super::*;

async fn all(text: &[u8], limit: usize) -> Vec<Line> {
    let mut lines = Lines::new(text, limit);
    let mut out = Vec::new();
    while let Some(line) = lines.next().await.unwrap() {
        out.push(line);
    }
    out
}

fn all_sync(mut input: impl BufRead, limit: usize) -> Vec<Line> {
    std::iter::from_fn(|| read(&mut input, limit).unwrap()).collect()
}

fn text(line: &str) -> Line {
    Line::Text(Bytes::copy_from_slice(line.as_bytes()))
}

/// The overlong lines are not compared by the length that is reported.
fn is_too_long(line: &Line) -> bool {
    matches!(line, Line::TooLong(_))
}

#[tokio::test]
async fn lines_end_with_either_terminator_or_with_the_stream() {
    assert_eq!(all(b"a\r\n\nb\nrest", 10).await, [text("a"), text(""), text("b"), text("rest")]);
}

#[tokio::test]
async fn an_overlong_line_is_reported_once_and_the_next_one_is_whole() {
    let mut input = vec![b'x'; 100_000];
    input.extend_from_slice(b"\nok\n");
    let lines = all(&input, 1000).await;
    assert!(is_too_long(&lines[0]));
    assert_eq!(lines[1..], [text("ok")]);
    assert_eq!(all(b"12345\n1234\n", 4).await, [Line::TooLong(5), text("1234")]);
    let lines = all(&vec![b'x'; 50_000], 1000).await;
    assert!(lines.len() == 1 && is_too_long(&lines[0]));
}

#[tokio::test]
async fn an_overlong_line_is_reported_before_it_ends() {
    let (mut ours, theirs) = tokio::io::duplex(1 << 16);
    let mut lines = Lines::new(theirs, 1000);
    tokio::io::AsyncWriteExt::write_all(&mut ours, &[b'x'; 2000]).await.unwrap();
    assert!(is_too_long(&lines.next().await.unwrap().unwrap()));
}

#[tokio::test]
async fn reservations_are_released_with_their_lines() {
    let budget = MemoryBudget::new(200_000);
    let mut input = vec![b'x'; 100_000];
    input.extend_from_slice(b"\nok\n");
    let mut lines = Lines::new(input.as_slice(), MAX_MESSAGE).with_budget(&budget);
    assert!(matches!(lines.next().await.unwrap(), Some(Line::Text(line)) if line.len() == 100_000));
    assert!(budget.try_reserve(200_000).is_some());
    let _full = budget.try_reserve(190_000).unwrap();
    let mut lines = Lines::new(input.as_slice(), MAX_MESSAGE).with_budget(&budget);
    assert!(is_too_long(&lines.next().await.unwrap().unwrap()));
    assert_eq!(lines.next().await.unwrap(), Some(text("ok")));
}

#[test]
fn the_synchronous_front_skips_overlong_lines_and_tells_their_length() {
    let mut input = vec![b'x'; MAX_MESSAGE + 1];
    input.extend_from_slice(b"\nshort\n\nlast");
    let input = io::BufReader::with_capacity(7, input.as_slice());
    let expected = [Line::TooLong(MAX_MESSAGE as u64 + 1), text("short"), text(""), text("last")];
    assert_eq!(all_sync(input, MAX_MESSAGE), expected);
}

#[test]
fn the_synchronous_front_consumes_no_more_than_a_line() {
    let mut input = io::BufReader::new(b"a\r\nb\n".as_slice());
    assert_eq!(read(&mut input, 10).unwrap(), Some(text("a\r")));
    assert_eq!(input.buffer(), b"b\n");
}

proptest! {
    /// Blocking and async readers find the same lines, however the input is cut into reads.
    #[test]
    fn both_fronts_agree(
        lines in proptest::collection::vec("[a-z]{0,30}", 0..12),
        limit in 1_usize..40,
        capacity in 1_usize..40,
    ) {
        let input = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>();
        let expected: Vec<Line> = lines
            .iter()
            .map(|line| if line.len() > limit { Line::TooLong(line.len() as u64) } else { text(line) })
            .collect();
        let reader = io::BufReader::with_capacity(capacity, input.as_bytes());
        prop_assert_eq!(all_sync(reader, limit), expected.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        prop_assert_eq!(runtime.block_on(all(input.as_bytes(), limit)), expected);
    }
}
