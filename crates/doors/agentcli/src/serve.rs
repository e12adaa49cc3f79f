//! JSON-RPC on a pair of streams: one line after the other, each answered before the next is read.

use std::io::{BufRead, Write};
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use proctor_core::json::Json;
use proctor_net::lines::{self, Line as Read};
use proctor_wire::agentcli::error::{Code, Failure};
use proctor_wire::agentcli::rpc::{self, Call, Line, MAX_LINE};

/// Serves until the input ends or the output fails; the first line says that the server is ready.
///
/// A handler that panics is an internal error of its call: the next line is served.
pub async fn serve(
    mut input: impl BufRead,
    mut output: impl Write,
    answer: impl AsyncFn(&Call) -> Result<Json, Failure>,
) -> std::io::Result<()> {
    write_line(&mut output, &rpc::ready())?;
    while let Some(line) = lines::read(&mut input, MAX_LINE)? {
        let reply = match line {
            Read::TooLong(_) => Some(rpc::too_long()),
            Read::Text(line) => match rpc::read(&line) {
                Line::Blank => None,
                Line::Refused(reply) => reply,
                Line::Call(call) => {
                    let answered = AssertUnwindSafe(answer(&call)).catch_unwind().await;
                    let failed = |_| Err(Failure::new(Code::InternalError, "the handler failed"));
                    call.reply(answered.unwrap_or_else(failed))
                }
            },
        };
        if let Some(reply) = reply {
            write_line(&mut output, &reply)?;
        }
    }
    Ok(())
}

fn write_line(output: &mut impl Write, line: &str) -> std::io::Result<()> {
    output.write_all(line.as_bytes())?;
    output.write_all(b"\n")?;
    output.flush()
}
