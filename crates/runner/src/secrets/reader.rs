//! A reader that cuts secrets.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use proctor_mask::MaskStream;
use tokio::io::{AsyncRead, ReadBuf};

use super::Emitted;

/// Bytes that are read at once.
const CHUNK: usize = 16 * 1024;

/// Reader whose bytes hold no secrets. Those that may be the beginning of one are held back until more comes.
#[derive(Debug)]
pub struct CutReader<R> {
    inner: R,
    /// None if the secrets cannot be searched for: nothing is passed on then.
    stream: Option<MaskStream>,
    emitted: Emitted,
    /// Bytes that can be passed on; the first ones are already.
    ready: Vec<u8>,
    passed: usize,
    buffer: Box<[u8]>,
    is_over: bool,
}

impl<R> CutReader<R> {
    pub(super) fn new(inner: R, stream: Option<MaskStream>, emitted: Emitted) -> CutReader<R> {
        CutReader {
            inner,
            stream: stream.map(MaskStream::of_json_lines),
            emitted,
            ready: Vec::new(),
            passed: 0,
            buffer: vec![0; CHUNK].into(),
            is_over: false,
        }
    }

    /// Takes what was read, or the end.
    fn take(&mut self, length: usize) {
        self.ready.clear();
        self.passed = 0;
        self.is_over = length == 0;
        let Some(stream) = &mut self.stream else { return };
        if self.is_over {
            stream.finish(&mut self.ready);
        } else {
            stream.push(self.buffer.get(..length).unwrap_or_default(), &mut self.ready);
        }
        self.emitted.add(stream.found().map(str::to_owned));
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for CutReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        target: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            let rest = this.ready.get(this.passed..).unwrap_or_default();
            if !rest.is_empty() || this.is_over {
                let length = rest.len().min(target.remaining());
                target.put_slice(rest.get(..length).unwrap_or_default());
                this.passed += length;
                return Poll::Ready(Ok(()));
            }
            let mut chunk = ReadBuf::new(&mut this.buffer);
            ready!(Pin::new(&mut this.inner).poll_read(context, &mut chunk))?;
            let length = chunk.filled().len();
            this.take(length);
        }
    }
}
