//! Programs that know no protocol: the description on standard input, the artifact on standard output.

use std::collections::VecDeque;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_sandbox::Process;
use proctor_sandbox::wait::Pipes;
use proctor_wire::atp::artifact::FileArtifact;
use proctor_wire::atp::{Artifact, Response, Status};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::time::Instant;

use super::super::{DRAIN, Run, RunContext, StartError};
use crate::supervision::Crossing;

/// Bytes of standard output that a plain agent may write: those of the content of an artifact.
const MAX_OUTPUT: u64 = 10_000_000;

/// Last lines of standard error that are kept.
const LAST_LINES: usize = 20;

/// Bytes of a line that are kept.
const MAX_LINE: u64 = 2048;

/// The end of an output that is too long.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("the agent wrote more than {MAX_OUTPUT} bytes")]
    TooLong,
    #[error("the output of the agent cannot be read: {0}")]
    Read(#[from] std::io::Error),
}

/// Gives the description to a program and takes its output as the artifact.
pub(super) async fn talk(
    context: &RunContext<'_>,
    Pipes { stdin, stdout, stderr }: Pipes,
    run: &mut Run<'_>,
    process: &mut Process,
    ended: impl Future<Output = ()>,
) -> Result<(), StartError> {
    let description = context.test.task.description.clone();
    let writing = async move {
        // A program that does not read its input may still be right.
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(description.as_bytes()).await;
        }
        Ok(())
    };
    let cut = |pipe: pipe::Receiver| context.secrets.reader(pipe, &run.emitted);
    let (stdout, stderr) = (cut(stdout), cut(stderr));
    let (mut output, mut lines) = (Vec::new(), VecDeque::new());
    let mut interrupted = context.interrupted.clone();
    let mut program_end = None;
    let finished = {
        let talk =
            async { tokio::try_join!(writing, read_all(stdout, &mut output), read_last(stderr, &mut lines)) };
        let ended = async {
            ended.await;
            program_end = Some(Instant::now());
            tokio::time::sleep(DRAIN).await;
        };
        // The guard that comes with the value must not live on while another branch waits.
        let interruption = async { drop(interrupted.wait_for(|is_interrupted| *is_interrupted).await) };
        tokio::pin!(talk);
        tokio::select! {
            biased;
            () = interruption => {
                run.is_interrupted = true;
                Ok(())
            }
            () = tokio::time::sleep_until(run.deadline) => {
                run.crossing = Some(Crossing::Time { seconds: run.limit.as_secs_f64() });
                Ok(())
            }
            read = &mut talk => read.map(drop),
            () = ended => {
                // A process that the program has started holds its output open.
                process.request_end(Duration::ZERO);
                tokio::time::timeout(DRAIN, talk).await.map_or(Ok(()), |read| read.map(drop))
            }
        }
    };
    run.times.ended = program_end.map(|end: Instant| end.duration_since(run.started));
    run.times.over = Some(run.started.elapsed());
    run.last_lines = lines.into();
    if let Err(error) = finished {
        run.cut_off(error.to_string());
        return Ok(());
    }
    if run.crossing.is_some() || run.is_interrupted {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output);
    let path = expected_name(context.test.task.expected_artifacts.as_deref().unwrap_or_default());
    let file = FileArtifact { path, content: Some(&text), ..FileArtifact::default() };
    let response =
        Response::new(&context.identity.task_id, Status::Completed).with_artifact(&Artifact::File(file));
    run.answer(&response);
    Ok(())
}

async fn read_all(stdout: impl AsyncRead + Unpin, output: &mut Vec<u8>) -> Result<(), ReadError> {
    // One byte more than allowed shows that there is more.
    stdout.take(MAX_OUTPUT + 1).read_to_end(output).await?;
    if output.len() as u64 > MAX_OUTPUT { Err(ReadError::TooLong) } else { Ok(()) }
}

/// Reads to the end, however much it is: a program never waits at a full pipe.
async fn read_last(stderr: impl AsyncRead + Unpin, lines: &mut VecDeque<String>) -> Result<(), ReadError> {
    let mut stderr = BufReader::new(stderr);
    let mut continues = false;
    loop {
        let mut line = Vec::new();
        if (&mut stderr).take(MAX_LINE).read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        // The rest of a long line is dropped.
        if !std::mem::replace(&mut continues, line.last() != Some(&b'\n')) {
            if lines.len() == LAST_LINES {
                lines.pop_front();
            }
            lines.push_back(String::from_utf8_lossy(line.trim_ascii_end()).into_owned());
        }
    }
}

/// Name for the output of a plain agent: that of the first artifact that the test expects.
fn expected_name(expected: &[Json]) -> &str {
    let name = expected.iter().find_map(|artifact| match artifact {
        Json::String(path) => Some(path.as_str()),
        other => other.get("name").and_then(Json::as_str),
    });
    name.unwrap_or("output.txt")
}
