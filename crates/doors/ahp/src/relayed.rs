//! Stream transport over the owner's socket, for relaying processes.

use std::io::BufReader;
use std::os::unix::net::UnixStream;

use proctor_core::session::Caller;
use proctor_engine::owner::RelayedDoor;
use proctor_net::peer::Peer;
use proctor_net::stream::StreamLimits;

use crate::AhpDoor;

impl RelayedDoor for AhpDoor {
    fn mode(&self) -> &'static str {
        "ahp"
    }

    fn serve(&self, caller: Caller, input: BufReader<UnixStream>, output: UnixStream) {
        let door = self.for_user(caller);
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        // The handshake's reader may have buffered the first messages.
        let rest = std::io::Cursor::new(input.buffer().to_vec());
        let reading = input.into_inner();
        runtime.block_on(async move {
            if reading.set_nonblocking(true).is_err() || output.set_nonblocking(true).is_err() {
                return;
            }
            let (Ok(reading), Ok(writing)) =
                (tokio::net::UnixStream::from_std(reading), tokio::net::UnixStream::from_std(output))
            else {
                return;
            };
            let reader = tokio::io::AsyncReadExt::chain(rest, reading);
            // An error means that the peer went away: there is nobody left to answer.
            let _ = door
                .server()
                .serve_stream(Peer::this_process(), reader, writing, &StreamLimits::stdio())
                .await;
        });
    }
}
