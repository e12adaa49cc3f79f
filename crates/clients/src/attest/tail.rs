//! A bounded buffer of the end of a stream.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes per read.
const CHUNK: usize = 8 * 1024;

/// The last bytes of a stream.
#[derive(Debug)]
pub(super) struct Tail {
    kept: Mutex<Kept>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: VecDeque<u8>,
    total: u64,
}

impl Tail {
    /// A buffer of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Tail {
        Tail { kept: Mutex::default(), limit }
    }

    /// Reads a stream to its end, so that its writer never blocks.
    pub(super) async fn drain(&self, mut stream: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; CHUNK];
        while let Ok(count @ 1..) = stream.read(&mut chunk).await {
            self.push(chunk.get(..count).unwrap_or_default());
        }
    }

    /// The kept bytes as text. A truncated character is replaced.
    pub(super) fn text(&self) -> String {
        let mut kept = self.kept();
        String::from_utf8_lossy(kept.bytes.make_contiguous()).into_owned()
    }

    /// The length of the whole stream.
    pub(super) fn total(&self) -> u64 {
        self.kept().total
    }

    fn push(&self, chunk: &[u8]) {
        let mut kept = self.kept();
        kept.total = kept.total.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
        let new = chunk.get(chunk.len().saturating_sub(self.limit)..).unwrap_or_default();
        let surplus = (kept.bytes.len() + new.len()).saturating_sub(self.limit);
        kept.bytes.drain(..surplus);
        kept.bytes.extend(new);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_end_of_everything_is_kept(
            chunks in proptest::collection::vec("[a-z]{0,40}", 0..12),
            limit in 0_usize..60,
        ) {
            let tail = Tail::new(limit);
            for chunk in &chunks {
                tail.push(chunk.as_bytes());
            }
            let all = chunks.concat();
            prop_assert_eq!(tail.text(), &all[all.len().saturating_sub(limit)..]);
            prop_assert_eq!(tail.total(), all.len() as u64);
        }
    }

    #[tokio::test]
    async fn a_stream_is_read_to_its_end() {
        let tail = Tail::new(5);
        let mut stream = vec![b'x'; 100_000];
        stream.extend_from_slice("\u{e4}nde".as_bytes());
        tail.drain(stream.as_slice()).await;
        assert_eq!(tail.text(), "\u{e4}nde");
        assert_eq!(tail.total(), 100_005);
    }
}
