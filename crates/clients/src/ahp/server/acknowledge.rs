//! Notifications on transports that acknowledge them: slow handlers do not delay the caller.

use std::sync::Arc;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_wire::ahp::rpc::{INTERNAL_ERROR, RpcError};

use super::{AhpServer, EventHandler, Peer};

/// Time that an acknowledgement waits for the handler's refusal.
const ACKNOWLEDGE_WITHIN: Duration = Duration::from_secs(1);

impl<H: EventHandler> AhpServer<H> {
    /// Handles a notification in a task of its own, so that it is completed also if the caller leaves. After a second it is acknowledged
    /// while the handler goes on. `hold` is dropped when the handler is done.
    pub(crate) async fn take_notification(
        &self,
        peer: Peer,
        method: String,
        params: Json,
        hold: impl Send + 'static,
    ) -> Result<(), RpcError> {
        let server = self.clone();
        let permit = Arc::clone(&self.inner.unacknowledged).try_acquire_owned().ok();
        let may_go_on = permit.is_some();
        let mut work = tokio::spawn(async move {
            let _held = (hold, permit);
            server.notify(&peer, &method, params).await
        });
        let done = if may_go_on {
            match tokio::time::timeout(ACKNOWLEDGE_WITHIN, &mut work).await {
                Ok(done) => done,
                Err(_still_running) => return Ok(()),
            }
        } else {
            // Too many handlers go on already: this caller waits for its own.
            work.await
        };
        done.unwrap_or_else(|_| {
            Err(RpcError::new(INTERNAL_ERROR, "Handler error: the harness failed inside"))
        })
    }
}
