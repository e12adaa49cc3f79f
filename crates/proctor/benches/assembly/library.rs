//! An agent's library at the socket of its runtime.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use proctor_wire::assembly::frames::{ClientFrame, ServerDecoder, ServerFrame};
use proctor_wire::assembly::handshake;
use proctor_wire::assembly::proto::common::v1::Decision;

use crate::checks::Checks;
use crate::failure::Failure;

/// Time limit of an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to a runtime, or to what sends everything back.
pub struct Library {
    stream: UnixStream,
    checks: Checks,
    out: Vec<u8>,
    room: Vec<u8>,
    is_echo: bool,
}

impl Library {
    /// Connects to the runtime of this agent, and proves that it speaks for it.
    pub fn connected(socket: &Path, agent: &str, checks: Checks) -> Result<Library, Failure> {
        let mut library = Library::open(socket, checks, false)?;
        let mut decoder = ServerDecoder::new();
        let challenge = library.next(&mut decoder)?;
        let proof =
            handshake::answer(agent, "bench", &challenge).map_err(|error| format!("the runtime: {error}"))?;
        library.out.clear();
        proof.encode(&mut library.out).map_err(|error| error.to_string())?;
        library.stream.write_all(&library.out).map_err(|error| error.to_string())?;
        Ok(library)
    }

    /// Connects to the floor.
    pub fn at_echo(socket: &Path, checks: Checks) -> Result<Library, Failure> {
        Library::open(socket, checks, true)
    }

    fn open(socket: &Path, checks: Checks, is_echo: bool) -> Result<Library, Failure> {
        let stream = UnixStream::connect(socket).map_err(|error| format!("{}: {error}", socket.display()))?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
        Ok(Library { stream, checks, out: Vec::new(), room: vec![0; 64 * 1024], is_echo })
    }

    /// Asks once, and says how long the answer took.
    pub fn ask(&mut self) -> Result<Duration, Failure> {
        self.out.clear();
        let query = ClientFrame::PolicyQuery(self.checks.next());
        query.encode(&mut self.out).map_err(|error| error.to_string())?;
        let begin = Instant::now();
        self.stream.write_all(&self.out).map_err(|error| error.to_string())?;
        if self.is_echo {
            let room = self.room.get_mut(..self.out.len()).ok_or("the query is too long")?;
            self.stream.read_exact(room).map_err(|error| format!("the floor: {error}"))?;
            return Ok(begin.elapsed());
        }
        let frame = self.next(&mut ServerDecoder::new())?;
        let took = begin.elapsed();
        match frame {
            ServerFrame::PolicyResponse(answer) if answer.decision() == Decision::Allow => Ok(took),
            ServerFrame::PolicyResponse(answer) => Err(format!(
                "a query was answered with {}: {}",
                answer.decision().as_str_name(),
                answer.reason
            )
            .into()),
            other => Err(format!("a query was answered with a {}", other.kind()).into()),
        }
    }

    fn next(&mut self, decoder: &mut ServerDecoder) -> Result<ServerFrame, Failure> {
        loop {
            if let Some(frame) = decoder.next_frame().map_err(|error| error.to_string())? {
                return Ok(frame);
            }
            let count = self.stream.read(&mut self.room).map_err(|error| format!("the runtime: {error}"))?;
            let read = self.room.get(..count).unwrap_or_default();
            if read.is_empty() || !decoder.feed(read).is_empty() {
                return Err("the runtime closed the connection".into());
            }
        }
    }
}
